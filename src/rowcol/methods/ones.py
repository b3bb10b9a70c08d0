"""An intercept where single steps run on sparse lines: one more right-hand side, all ones, instead of a dense X − 1x̄ᵀ.

With β_y for y − b and β_1 for ones, of the same X and λ, β = β_y − sβ_1 solves the problem with the intercept b + s, s
being such that what is left sums to zero; y is centred, so b + s = −x̄ᵀβ. What counts is the certificate of the pair;
where it is not met yet, it is done again from there, with y − (b + s), for which little of ones is needed any more.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from ..core.centre import scaled_shift
from ..core.certify import certify
from ..core.problem import Problem
from ..core.products import products
from .choose import Choice
from .given import scaled
from .loop import Outcome, joined
from .progress import Progress
from .result import Status
from .routes import follow
from .way import Way

ROUNDS = 4


def with_ones(way: Way, choice: Choice, beta0: np.ndarray | None, alpha0: np.ndarray | None) -> Outcome:
    """`follow`, on rows or columns of a sparse X with an intercept."""
    asked, q = way.asked, len(way.asked.y)
    assert asked.shift is not None
    stop, whole, beta, alpha = way.stop, None, beta0, alpha0
    tol = 0.4 * stop.tol  # the errors of two add up
    began = time.perf_counter()
    for _ in range(ROUNDS):
        # from β = β_y − bβ_1 on, y − b is nearer to what β is for, and little is left for ones to mend
        b = np.zeros(q) if beta is None else -beta @ asked.shift.mean
        inner = _inner(way, asked, b)
        spent = (0.0, 0.0) if whole is None else (whole.passes, time.perf_counter() - began - whole.compiling)
        inner.stop = stop._replace(
            tol=tol, max_passes=stop.max_passes - spent[0], max_seconds=max(stop.max_seconds - spent[1], 0.0)
        )
        out = follow(inner, choice, _more(beta), _more(alpha))
        pair = _combined(way, asked, out, b)
        beta, alpha = pair.beta.copy(), None if pair.alpha is None else pair.alpha.copy()
        whole = pair if whole is None else joined(whole, pair, list(range(q)))
        way.row_space, way.proven, way.factor = inner.row_space, inner.proven, inner.factor
        if pair.all_converged or not out.all_converged or whole.passes >= stop.max_passes:
            break
        worst = max(c.value for c in pair.certificates.values())
        tol = max(0.5 * tol * stop.tol / worst, 1e-15)  # y − b may be far larger than y, and tol is of its size
    assert whole is not None
    return whole


def _inner(way: Way, asked: Problem, b: np.ndarray) -> Way:
    """The way of y − b and ones, without an intercept."""
    y = np.vstack([asked.y - b[:, None], np.ones((1, asked.y.shape[1]), asked.y.dtype)])
    plain = asked._replace(y=y, scale=np.append(asked.scale, 1.0), shift=None, single=False)
    inner = replace(way, asked=plain, column2=None)
    if way.callback is not None:
        inner.callback = partial(_pair, way.callback, asked, b)
    return inner


def _more(start: np.ndarray | None) -> np.ndarray | None:
    return None if start is None else np.vstack([start, np.zeros((1, start.shape[1]), start.dtype)])


def _share(asked: Problem, beta: np.ndarray, b: np.ndarray) -> np.ndarray:
    """How much of ones to take off every right-hand side: what is left of y − b then sums to zero."""
    assert asked.shift is not None
    seen = beta @ asked.shift.mean
    left = 1.0 - seen[-1]
    return (-b - seen[:-1]) / left if abs(left) > 1e-12 else np.zeros_like(b)


def _combined(way: Way, asked: Problem, out: Outcome, b: np.ndarray) -> Outcome:
    """What was found for y − b and for ones, put together and looked at as the centred problem it solves."""
    q, share = len(asked.y), _share(asked, out.beta, b)[:, None]
    if out.alpha is not None and abs(out.alpha[q].sum()) > 0:
        # α that sums to zero is feasible for the intercept, and β = Xᴴα is (X − 1x̄ᵀ)ᴴα then: so it is for rows
        share = (out.alpha[:q].sum(axis=1) / out.alpha[q].sum())[:, None]
    beta = np.ascontiguousarray(out.beta[:q] - share * out.beta[q:])
    alpha = None if out.alpha is None else np.ascontiguousarray(out.alpha[:q] - share * out.alpha[q:])
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
    out = replace(out, certificates=found, statuses=statuses, history=history)
    return replace(out, beta=beta, residual=residual, alpha=alpha, slope=None, zero_rows={})


def _unscaled(asked: Problem, beta: np.ndarray) -> np.ndarray:
    assert asked.shift is not None
    return np.asarray((asked.X @ beta.T).T) - np.multiply.outer(beta @ asked.shift.mean, asked.shift.ones)


def _pair(callback: Callable[[Progress], object], asked: Problem, b: np.ndarray, part: Progress) -> object:
    """Show a callback the pair put together, and no column that is not theirs."""
    beta = part.x.T / np.append(asked.scale, 1.0)[:, None]
    x = ((beta[:-1] - _share(asked, beta, b)[:, None] * beta[-1:]) * asked.scale[:, None]).T
    return callback(replace(part, x=np.ascontiguousarray(x[:, 0] if asked.single else x, dtype=asked.dtype)))
