"""A preconditioner kept for the next fit, of points that are mostly the same: nothing is drawn or factored anew.

With landmarks S and LLᵀ = K(S, S), F = L⁻¹K(S, X): points that came need only their own columns of F, and points that
went only lose theirs. The points that came or went become landmarks themselves: their change of K is then known
exactly to M, and what they leave of the residual is nearly gone after a step or two.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from ..core.gram import Gram, cross, gram, some_columns, written
from ..core.recipes import Scaled
from .pivots import BLOCK, Pivots, accepted, inverted, squared

MOST = 256_000_000  # bytes of F that are kept
WORN = 1 / 3  # of the points: once as many have changed, pivots are drawn anew
WIDER = 1.5  # times the rank that was drawn: then no more landmarks


@dataclass(eq=False)
class Kept:
    """A preconditioner, and what it takes to move it to other points."""

    made: Pivots
    points: Any  # (k, d) the landmarks
    lower: np.ndarray  # (k, k) L
    rank: int  # that was drawn
    changed: float = 0.0  # points that came or went since, over all


@dataclass(eq=False)
class Memo:
    """What one fit leaves to the next, and what has changed between them."""

    kept: Kept | None = None
    ones: np.ndarray | None = None  # (n, 1 or q) (K + Λ)⁻¹1, where there is an intercept
    intercept: Any = 0.0
    stay: np.ndarray | None = None  # which columns of F stay; those of new points follow
    changed: Any = None  # (m, d) the points that came or went


def keep(made: Pivots | None, X: Any, last: Kept | None, changed: Any) -> Kept | None:
    """What to keep of a preconditioner of the points X; None if it is too large, or nothing."""
    if made is None or not len(made.F) or made.F.nbytes > MOST:
        return None
    if last is not None and made.home is last:  # it was moved from there
        share = last.changed + changed.shape[0] / X.shape[0]
        return Kept(replace(made, home=None), made.landmarks, made.lower, last.rank, share)
    lower = np.tril(made.F[:, made.which].T.astype(np.float64))
    return Kept(made, X[made.which], lower, len(made.F))


def moved(memo: Memo, g: Gram, lam: np.ndarray, memory: int) -> Pivots | None:
    """The kept preconditioner, for the points of g; None if one is better drawn anew."""
    kept, changed = memo.kept, memo.changed
    if kept is None or memo.stay is None or changed is None:
        return None
    n, old, k = g.shape[0], int(memo.stay.sum()), len(kept.lower)
    if kept.changed + changed.shape[0] / n > WORN or 12 * kept.made.F.nbytes > 4 * memory:
        return None
    unit, lower, few = kept.made.unit, kept.lower, max(int(WIDER * kept.rank) - k, 0)
    some = gram(g.kernel, changed[:few]) if few else None  # of a sample of what changed, if that is much
    more, G, inner = np.empty(0, np.int64), np.empty((0, k)), np.empty((0, 0))
    if some is not None:
        G = _solve(lower, unit * written(cross(some, kept.points))).T
        rest, own = unit * written(some) - G @ G.T, unit * np.diagonal(written(some))
        more, inner = accepted(rest, own, np.zeros(len(own)))
        G = G[more]
    F = np.empty((k + more.size, n), np.float32)
    F[:k, :old] = kept.made.F[:, memo.stay]
    scaled = replace(g, kernel=Scaled(g.kernel, unit))
    if old < n:
        F[:k, old:] = _solve(lower, written(some_columns(cross(scaled, kept.points), np.arange(old, n))))
    if more.size:
        lines = written(cross(scaled, changed[:few][more])) - G.astype(np.float32) @ F[:k]
        F[k:] = _solve(inner, lines)
    grown = np.zeros((len(F), len(F)))
    grown[:k, :k], grown[k:, :k], grown[k:, k:] = lower, G, inner
    passes = (k * (n - old) + more.size * n) / n**2
    made = Pivots(F, lam, [], np.empty(len(F), np.int64), kept.made.left, passes, unit)
    made.inner = np.zeros((len(F), len(F)))  # what has changed of FFᵀ, and nothing else, is summed anew
    made.inner[:k, :k] = kept.made.inner + squared(F[:k, old:]) - squared(kept.made.F[:, ~memo.stay])
    made.inner[k:, :k], made.inner[k:, k:] = F[k:] @ F[:k].T, squared(F[k:])
    made = inverted(F, unit * lam.reshape(-1, n), BLOCK * n, made)
    if not len(made.F):
        return None
    made.landmarks, made.lower, made.home = _stacked(kept.points, changed[:few][more]), grown, kept
    return made


def _solve(lower: np.ndarray, lines: np.ndarray) -> np.ndarray:
    return scipy.linalg.solve_triangular(lower, lines, lower=True, check_finite=False)


def _stacked(a: Any, b: Any) -> Any:
    return sp.csr_array(sp.vstack([a, b])) if sp.issparse(a) else np.vstack([a, b])
