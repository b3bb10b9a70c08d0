"""An intercept where single steps run on sparse lines: one more right-hand side, all ones, instead of a dense X − 1x̄ᵀ.

With β_y for y and β_1 for ones, of the same X and λ, β = β_y − bβ_1 solves the problem with the intercept b for which
what is left sums to zero: b = −x̄ᵀβ_y / (1 − x̄ᵀβ_1), y being centred. What counts is the certificate of the pair; where
it is not met yet, both go on from where they are, to a tighter tolerance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from ..core.centre import scaled_shift
from ..core.certify import certify
from ..core.problem import Problem
from ..core.products import products
from .choose import Choice
from .loop import Outcome, joined
from .progress import Progress
from .result import Status
from .routes import Way, follow, scaled

ROUNDS = 4


def with_ones(way: Way, choice: Choice, beta0: np.ndarray | None, alpha0: np.ndarray | None) -> Outcome:
    """`follow`, on rows or columns of a sparse X with an intercept."""
    asked, (q, n) = way.asked, way.asked.y.shape
    assert asked.shift is not None
    plain = asked._replace(
        y=np.vstack([asked.y, np.ones((1, n))]), scale=np.append(asked.scale, 1.0), shift=None, single=False
    )
    inner, stop = replace(way, asked=plain, column2=None), way.stop
    tol, whole = stop.tol / 2, None
    if way.callback is not None:
        inner.callback = partial(_pair, way.callback, asked)
    beta, alpha = _more(beta0, q), _more(alpha0, q)
    for _ in range(ROUNDS):
        inner.stop = stop._replace(tol=tol, max_passes=stop.max_passes - (0.0 if whole is None else whole.passes))
        out = follow(inner, choice, beta, alpha)
        beta, alpha = out.beta.copy(), None if out.alpha is None else out.alpha.copy()
        pair = _combined(way, asked, out)
        whole = pair if whole is None else joined(whole, pair, list(range(q)))
        worst = max(c.value for c in pair.certificates.values())
        converged = out.all_converged
        if worst <= stop.tol or not converged or whole.passes >= stop.max_passes:
            break
        tol = max(0.5 * tol * stop.tol / worst, 1e-15)
    way.row_space, way.proven, way.factor = inner.row_space, inner.proven, inner.factor
    assert whole is not None
    return whole


def _more(start: np.ndarray | None, q: int) -> np.ndarray | None:
    return None if start is None else np.vstack([start, np.zeros((1, start.shape[1]))])


def _share(asked: Problem, beta: np.ndarray) -> np.ndarray:
    """b of every right-hand side, from β of them and of ones."""
    assert asked.shift is not None
    seen = beta @ asked.shift.mean
    left = 1.0 - seen[-1]
    return -seen[:-1] / left if abs(left) > 1e-12 else np.zeros(len(beta) - 1)


def _combined(way: Way, asked: Problem, out: Outcome) -> Outcome:
    """What was found for y and for ones, put together and looked at as the centred problem it solves."""
    q, b = len(asked.y), _share(asked, out.beta)[:, None]
    beta = np.ascontiguousarray(out.beta[:q] - b * out.beta[q:])
    alpha = None if out.alpha is None else np.ascontiguousarray(out.alpha[:q] - b * out.alpha[q:])
    given, dual, root = asked, alpha, None
    if asked.weight is not None:
        root = np.sqrt(asked.weight)
        way.kept.scaled = scaled(asked.X, asked.weight) if way.kept.scaled is None else way.kept.scaled
        given = asked._replace(X=way.kept.scaled, y=asked.y * root, weight=None, shift=scaled_shift(asked.shift, root))
        if alpha is not None:
            dual = np.divide(alpha, root, out=np.zeros_like(alpha), where=root > 0)
    assert given.shift is not None
    assert given.shift.column2 is not None
    by, ids = products(given.X, way.pool, given.shift), np.arange(q)
    evidence = certify(given, by, beta, dual, ids, given.shift.column2.copy())
    residual = evidence.residual if root is None else asked.y - _unscaled(asked, beta)
    found = dict(enumerate(evidence.certificates))
    statuses = {}
    for i, c in found.items():
        both = out.statuses[i] if out.statuses[i] is not Status.CONVERGED else out.statuses[q]
        stuck = Status.ROUNDING if c.exhausted else Status.STALLED
        statuses[i] = Status.CONVERGED if c.value <= way.stop.tol else stuck if both is Status.CONVERGED else both
    history = replace(
        out.history,
        energy=[e[:q] for e in out.history.energy],
        certificate=[(out.passes, i, c) for i, c in found.items()],
    )
    told = {"certificates": found, "statuses": statuses, "history": history}
    return replace(out, beta=beta, residual=residual, alpha=alpha, slope=None, **told)


def _unscaled(asked: Problem, beta: np.ndarray) -> np.ndarray:
    assert asked.shift is not None
    return np.asarray((asked.X @ beta.T).T) - np.multiply.outer(beta @ asked.shift.mean, asked.shift.ones)


def _pair(callback: Callable[[Progress], object], asked: Problem, part: Progress) -> object:
    """Show a callback the pair put together, and no column that is not theirs."""
    beta = part.x.T / np.append(asked.scale, 1.0)[:, None]
    x = ((beta[:-1] - _share(asked, beta)[:, None] * beta[-1:]) * asked.scale[:, None]).T
    return callback(replace(part, x=np.ascontiguousarray(x[:, 0] if asked.single else x, dtype=asked.dtype)))
