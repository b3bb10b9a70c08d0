"""A preconditioner kept for the next fit, of points that are mostly the same: nothing is drawn or factored anew.

With landmarks S and LLᵀ = K(S, S), F = L⁻¹K(S, X): points that came need only their own columns of F, and points that
went only lose theirs. The points that came or went become landmarks themselves: their change of K is then known
exactly to M; and so does the point nearest to each, which feels it most.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from ..core.gram import Gram, cross, gram, some_columns, written
from ..core.lowrank import LowRank, squared
from ..core.recipes import Kernel, Scaled
from ..core.sizes import sizes2
from .pivots import BLOCK, Pivots, accepted, inverted

MOST = 256_000_000  # bytes of F that are kept
WORN = 1 / 3  # of the points: once as many have changed, pivots are drawn anew
WIDER = 0.5  # of the rank that was drawn: so many landmarks more, at most
NEAR = 1  # old point near one that changed becomes a landmark too; three saved one pass more, and cost as much


@dataclass(eq=False)
class Kept:
    """A preconditioner, and what it takes to move it to other points."""

    made: Pivots
    points: Any  # (k, d) the landmarks
    lower: np.ndarray  # (k, k) L
    rank: int  # that was drawn
    kernel: Kernel  # whose columns F has
    changed: float = 0.0  # points that came or went since, over all


@dataclass(eq=False)
class Memo:
    """What one fit leaves to the next, and what has changed between them."""

    kept: Kept | None = None
    ones: np.ndarray | None = None  # (n, 1 or q) (K + Λ)⁻¹1, where there is an intercept
    intercept: Any = 0.0
    stay: np.ndarray | None = None  # which columns of F stay; those of new points follow
    changed: Any = None  # (m, d) the points that came or went


def keep(made: Pivots | None, X: Any, kernel: Kernel, last: Kept | None, changed: Any) -> Kept | None:
    """What to keep of a preconditioner of the points X; None if it is too large, or nothing."""
    if made is None or not isinstance(made.low, LowRank) or not len(made.lines) or made.lines.nbytes > MOST:
        return None
    if last is not None and made.home is last:  # it was moved from there
        share = last.changed + changed.shape[0] / X.shape[0]
        return Kept(replace(made, home=None), made.landmarks, made.lower, last.rank, kernel, share)
    lower = np.tril(made.lines[:, made.which].T.astype(np.float64))
    return Kept(made, X[made.which], lower, len(made.lines), kernel)


def moved(memo: Memo, X: Any, g: Gram, lam: np.ndarray, memory: int) -> Pivots | None:
    """The kept preconditioner, for the points X of g; None if one is better drawn anew."""
    kept, changed, stay = memo.kept, memo.changed, memo.stay
    if kept is None or stay is None or changed is None or not _same(kept.kernel, g.kernel):
        return None
    n, old, k = g.shape[0], int(stay.sum()), kept.rank
    if kept.changed + changed.shape[0] / n > WORN or 3 * kept.made.lines.nbytes > memory:
        return None
    # only those that were drawn stay: landmarks of an earlier change have done their work
    before, base, lower, unit = kept.made.lines[:k], kept.points[:k], kept.lower[:k, :k], kept.made.unit
    fresh: Any = None
    F: np.ndarray = np.empty((k + int(WIDER * k), n), np.float32)
    F[:k, :old] = before if old == stay.size else before[:, stay]
    if old < n:
        F[:k, old:] = _solve(lower, unit * written(some_columns(cross(g, base), np.arange(old, n))))
    few = changed[: int(WIDER * k)]
    if few.shape[0]:
        fresh = stacked(few, X[_near(g, few, old, len(F) - k - few.shape[0])])
    more, G, inner = _further(g, base, lower, unit, fresh)
    F = F[: k + more.size]
    if more.size:
        lines = written(replace(cross(g, fresh[more]), kernel=Scaled(g.kernel, unit)), F[k:])
        lines -= G.astype(np.float32) @ F[:k]
        F[k:] = scipy.linalg.solve_triangular(inner, np.eye(len(inner)), lower=True).astype(np.float32) @ lines
    grown = np.zeros((len(F), len(F)))
    grown[:k, :k], grown[k:, :k], grown[k:, k:] = lower, G, inner
    passes = (k * (n - old) + (more.size + few.shape[0]) * n) / n**2
    made = Pivots(LowRank(F, len(F)), lam, [], np.empty(len(F), np.int64), kept.made.left, passes, unit)
    made.inner = np.zeros((len(F), len(F)))  # what has changed of FFᵀ, and nothing else, is summed anew
    made.inner[:k, :k] = kept.made.inner[:k, :k] + squared(F[:k, old:]) - squared(before[:, ~stay])
    made.inner[k:, :k], made.inner[k:, k:] = F[k:] @ F[:k].T, squared(F[k:])
    made = inverted(unit * lam.reshape(-1, n), BLOCK * n, made)
    if not len(made.lines):
        return None
    made.landmarks, made.lower, made.home = base if fresh is None else stacked(base, fresh[more]), grown, kept
    return made


def _same(a: Kernel, b: Kernel) -> bool:
    """Are they one kernel? Parameters may have been set since; arrays among those of a function do not tell."""
    try:
        return bool(a == b)
    except ValueError:
        return False


def _near(g: Gram, few: Any, old: int, most: int) -> np.ndarray:
    """The nearest of the first `old` points to each of a few others, as the kernel sees it; no more than so many."""
    each = min(NEAR, most // few.shape[0], old)
    if not each:
        return np.empty(0, np.int64)
    size = np.sqrt(np.maximum(sizes2(g)[:old], 1e-300))
    return np.unique(np.argpartition(-written(cross(g, few))[:, :old] / size, each - 1, axis=1)[:, :each])


def _further(
    g: Gram, base: Any, lower: np.ndarray, unit: float, fresh: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which of the fresh landmarks tell something new, and their rows of L."""
    if fresh is None:
        return np.empty(0, np.int64), np.empty((0, len(lower))), np.empty((0, 0))
    some = gram(g.kernel, fresh)
    K, G = unit * written(some), _solve(lower, unit * written(cross(some, base))).T
    more, inner = accepted(K - G @ G.T, np.diagonal(K).copy(), np.zeros(len(K)))
    return more, G[more], inner


def _solve(lower: np.ndarray, lines: np.ndarray) -> np.ndarray:
    return scipy.linalg.solve_triangular(lower, lines, lower=True, check_finite=False)


def stacked(a: Any, b: Any) -> Any:
    """The points a, then b."""
    return sp.csr_array(sp.vstack([a, b])) if sp.issparse(a) or sp.issparse(b) else np.vstack([a, b])
