"""Kernel ridge regression: points, kernel and y -> Problem -> Plan -> Mover -> loop -> Result, and its function."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from .asking import How, start_array
from .core.certify import UNIT, Certificate, certify
from .core.function import KernelFunction, summed
from .core.gram import Gram, alone, diagonal, fits_single, gram, product, sizes2
from .core.kernels import Function, Precomputed, kernel_of
from .core.problem import Problem, answer, flag, numbers_of, posed, right_hand_sides, weights
from .core.recipes import Kernel
from .core.sides import leaves_of, points
from .core.threads import blas_limit, pooled
from .core.words import shown
from .methods.center_fit import fit_centers, plan_centers, with_remedy
from .methods.choose import Plan, with_learned
from .methods.kernel import ridge_of
from .methods.kernel_routes import Way, choose, follow, planned
from .methods.landmarks import Memo, keep, moved
from .methods.loop import Outcome
from .methods.progress import Progress
from .methods.result import WORST_FIRST, Result, Status
from .methods.saying import announce, conclude, learn, tell_travelled, travelled

log = logging.getLogger(__name__)

SINGLE_LOSES = 1e-3  # of an entry, for certain kernels on hostile data: then steps are taken in double precision


def fit(
    X: Any,
    y: Any,
    kernel: Any,
    alpha: Any,
    how: How,
    x0: Any,
    sample_weight: Any,
    fit_intercept: bool,
    began: float,
    memo: Memo | None = None,
    n_centers: Any = None,
) -> Result:
    """Solve (K + alpha) α = y, or the same on centres, and say how good the answer is.

    A `memo` brings and takes what another fit can use.
    """
    if n_centers is not None:
        few = _pose(X, y, kernel, alpha, how, sample_weight, False)
        pose = few.X, few.kernel, few.asked, few.live, few.single
        return fit_centers(*pose, n_centers, how, x0, fit_intercept, began)
    posed_as = _pose(X, y, kernel, alpha, how, sample_weight, fit_intercept)
    asked = posed_as.asked
    with ExitStack() as stack:
        stack.enter_context(np.errstate(over="ignore", invalid="ignore", divide="ignore"))  # it is found, and said
        stack.enter_context(blas_limit(how.limit_blas))
        pool = stack.enter_context(pooled(how.jobs))
        leaves, first = _tiled(posed_as.kernel), how.stop._replace(max_seconds=how.patience)
        choice = choose(asked, posed_as.X, leaves, how.method, how.memory, first)
        exact, quick = _grams(posed_as, pool, how.team)
        asked = asked._replace(X=exact)
        plan = planned(posed_as.X, leaves, None, asked, choice, how.stop, how.memory, how.jobs)
        announce(log, plan)
        stop = how.stop._replace(tol=how.stop.tol / 2) if fit_intercept else how.stop
        sampler = how.sampler if isinstance(how.sampler, str) else _weights_of(how.sampler, posed_as)
        watch = None if how.callback is None else partial(_whole, how.callback, posed_as, fit_intercept)
        way = Way(asked, quick, stop, how.seed, how.memory, sampler, watch, how.bar, how.method == "auto", log=how.log)
        every = posed_as.live.size == posed_as.count and not _is_given(posed_as.kernel)
        if memo is not None and every and choice.route == "pcg" and choice.rank:
            way.preconditioner = moved(memo, posed_as.X, quick, ridge_of(asked), how.memory)
            if way.preconditioner is not None:
                count = len(way.preconditioner.F)
                learn(log, way.learned, f"{count:,} pivots, of the last fit and of what changed since, serve again")
        before = travelled(how.team)
        out = follow(way, choice, _start(x0, posed_as, memo if fit_intercept else None))
        function, certificates, x, intercept, fitted = _finish(posed_as, asked, out, quick, how, fit_intercept)
        tell_travelled(log, way.learned, how.team, before)
        if memo is not None:
            same = way.preconditioner, posed_as.X, posed_as.kernel, memo.kept, memo.changed
            memo.kept = keep(*same) if every else None
            memo.ones, memo.intercept = _ones(posed_as, asked, out, fit_intercept), intercept
    q, history = len(certificates), out.history  # what the column of ones did is no business of the user's
    history.certificate = [look for look in history.certificate if look[1] < q]
    history.energy = [one[:q] for one in history.energy]
    ones = q + np.broadcast_to(posed_as.ones, q)
    statuses = [_status(out, i, c, int(ones[i]), how.stop.tol) for i, c in enumerate(certificates)]
    status = next(s for s in WORST_FIRST if s in statuses)
    exact_function = replace(function, quick=alone(quick), exact=alone(exact))
    if posed_as.out.size:
        fitted[posed_as.out] = exact_function(points(X)[posed_as.out])
    result = Result(
        x=x,
        dual=x,
        status=status,
        message=status.value,
        solution="kernel ridge" if status is Status.CONVERGED else "not converged",
        method=" → ".join(way.taken),
        sampler=out.sampler or "none",
        passes=out.passes,
        steps=out.steps,
        seconds=time.perf_counter() - began,
        copied=sum(side.tiles.nbytes for side in (*exact.left, *quick.left)),
        tol=how.stop.tol,
        statuses=statuses,
        certificates=certificates,
        history=out.history,
        plan=with_learned(plan, way.learned),
        intercept=intercept,
        function=exact_function,
        fitted=fitted,
        error_estimate=_estimate(way, asked, out, function.bound, posed_as.single) if not fit_intercept else None,
    )
    conclude(log, result)
    return result


def plan_fit(X: Any, y: Any, kernel: Any, alpha: Any, how: How, sample_weight: Any, n_centers: Any = None) -> Plan:
    """What `fit` would do."""
    posed_as = _pose(X, y, kernel, alpha, how, sample_weight, False)
    if n_centers is not None:
        return plan_centers(posed_as.X, posed_as.kernel, posed_as.asked, n_centers, how)
    some = np.sort(np.random.default_rng(0).choice(posed_as.X.shape[0], min(posed_as.X.shape[0], 2000), replace=False))
    few = posed_as.X[some]
    few = few[:, some] if _is_given(posed_as.kernel) else few
    leaves, asked = _tiled(posed_as.kernel), posed_as.asked
    choice = choose(asked, posed_as.X, leaves, how.method, how.memory, how.stop)
    g = gram(posed_as.kernel, few, np.float64)
    plan = planned(posed_as.X, leaves, g, asked, choice, how.stop, how.memory, how.jobs)
    fewer = not _is_given(posed_as.kernel) and posed_as.kernel.definite
    return with_remedy(plan, how.jobs) if fewer else plan


# --- before ----------------------------------------------------------------------------------------------------------


@dataclass
class _Posed:
    X: Any  # the points that count
    kernel: Kernel
    asked: Problem  # its X is yet to come
    live: np.ndarray  # positions of these points in the user's X
    out: np.ndarray  # and of those that every column leaves out, though they have weight
    count: int  # of the user's points
    mean: np.ndarray  # (q,) of y, taken off where there is an intercept
    ones: np.ndarray  # which column of ones, after those of y, goes with each of them; one for all where they are alike
    single: bool  # y came as one dimension


class _Shape:
    """Stands for a Gram that is not made yet."""

    def __init__(self, n: int) -> None:
        self.shape, self.dtype = (n, n), np.dtype(np.float64)


def _pose(X: Any, y: Any, kernel: Any, alpha: Any, how: How, sample_weight: Any, fit_intercept: Any) -> _Posed:
    kernel = kernel_of(kernel)
    if how.method != "rk" and not (isinstance(how.sampler, str) and how.sampler == "auto"):
        raise ValueError(f"with a kernel only method='rk' picks single points: leave out sampler for {how.method!r}")
    flag(fit_intercept, "fit_intercept")
    X = points(X)
    n = X.shape[0]
    b, single = right_hand_sides(y, n)
    if np.iscomplexobj(b):
        raise TypeError("kernel ridge regression is for real y")
    w = np.ones(n) if sample_weight is None else weights(sample_weight, n)
    lam, inverse = _ridge(alpha, n, b.shape[1])
    total = w if inverse is None else w * inverse  # (n,), or (q, n)
    live = np.flatnonzero(total.reshape(-1, n).any(axis=0))
    out = np.setdiff1d(np.flatnonzero(w), live)
    total = total[..., live]
    if not total.reshape(-1, live.size).any(axis=1).all():
        raise ValueError("no point counts for one of the columns: alpha is infinite, or sample_weight zero, at all")
    counts: Any = 1.0 if total.ndim == 1 else (total > 0).T
    b, mean = b[live] * counts, np.zeros(b.shape[1])
    first, ones = np.zeros(1, int), np.zeros(1, int)
    if fit_intercept and total.ndim == 2:  # a column of ones for each Λ, not for each column
        rows = [row.tobytes() for row in total]
        kinds = list(dict.fromkeys(rows))
        first, ones = (np.array([a.index(one) for one in b]) for a, b in ((rows, kinds), (kinds, rows)))
    if fit_intercept:
        mean = ((total @ b if total.ndim == 1 else np.einsum("qi,iq->q", total, b)).T / total.sum(axis=-1)).T
        tallest, b = np.abs(b).max(axis=0), (b - mean) * counts
        b = np.where(np.abs(b).max(axis=0) <= 8 * UNIT * tallest, 0.0, b)  # a constant, but for rounding
        b = np.hstack([b, np.ones((live.size, 1)) * (counts if total.ndim == 1 else counts[:, first])])
    given = None if sample_weight is None and inverse is None else total
    if live.size < n:
        X = X[live][:, live] if _is_given(kernel) else X[live]
    asked = posed(_Shape(live.size), 0, b, lam, given if total.ndim == 1 else None)
    if total.ndim == 2:
        total = np.vstack([total, total[first]]) if fit_intercept else total
        asked = asked._replace(weight=total)
    return _Posed(X, kernel, asked, live, out, n, mean, ones, single)


def _tiled(kernel: Kernel) -> int:
    """How many one-line kernels lay out the points in tiles of their own."""
    return sum(not isinstance(leaf, (Function, Precomputed)) for leaf in leaves_of(kernel))


def _is_given(kernel: Kernel) -> bool:
    return any(isinstance(leaf, Precomputed) for leaf in leaves_of(kernel))


def _ridge(alpha: Any, n: int, q: int) -> tuple[float, np.ndarray | None]:
    """λ; or 1 and 1/λ_i, where there is one a point: (n,), or (q, n)."""
    value = numbers_of(alpha, "alpha", "a number above 0, or one a point")
    if value.ndim == 0:
        if not (math.isfinite(float(value)) and value > 0):
            raise ValueError(
                f"alpha must be above 0 and finite with a kernel, got {shown(alpha)}: to interpolate, take a small "
                "one, such as 1e-8 times k(x, x)"
            )
        return float(value), None
    if value.shape not in ((n,), (n, q)):
        raise ValueError(
            f"alpha must be a number above 0, or {n} of them, one a point, or {n} x {q}, one a point and column; got "
            f"shape {value.shape}"
        )
    if not (value > 0).all() or (value.ndim == 1 and not np.isfinite(value).all()):
        raise ValueError("alpha must be above 0, and finite, at every point; infinite only for some of the columns")
    return 1.0, np.ascontiguousarray((1.0 / value).T)


def _grams(posed_as: _Posed, pool: Executor | None, team: Any) -> tuple[Gram, Gram]:
    team = None if _is_given(posed_as.kernel) else team  # a given matrix is here, and n² numbers are many to send
    exact = replace(gram(posed_as.kernel, posed_as.X, np.float64, pool), team=team)
    if any(leaf.recipe is None for leaf in exact.leaves):
        return exact, exact  # a function, or a given matrix, would be converted on every visit
    quick = replace(gram(posed_as.kernel, posed_as.X, np.float32, pool), team=team)
    return exact, quick if fits_single(exact) and quick.error <= SINGLE_LOSES else exact


def _start(x0: Any, posed_as: _Posed, memo: Memo | None = None) -> np.ndarray | None:
    if x0 is None:
        return None
    source = start_array(x0.x if isinstance(x0, Result) else x0)
    asked = posed_as.asked
    many = len(posed_as.mean)
    shape = (posed_as.count,) if posed_as.single else (posed_as.count, many)
    if source.dtype.kind not in "fiub" or source.shape != shape:
        raise ValueError(f"x0 must be real numbers of shape {shape}, or an earlier Result; got {source.shape}")
    if not np.isfinite(source).all():
        raise ValueError("x0 has a NaN or infinity")
    out = np.zeros_like(asked.y)
    scale = np.where(asked.y[:many].any(axis=1), asked.scale[:many], np.inf)  # where y is zero so is the answer
    out[:many] = source.reshape(posed_as.count, -1)[posed_as.live].T / scale[:, None]
    if memo is not None and memo.ones is not None and memo.ones.shape == (posed_as.count, len(asked.y) - many):
        # α leaves the intercept of y − ȳ, which is no part of it: (K + Λ)⁻¹ of it is known
        ones = memo.ones[posed_as.live].T
        out[many:] = ones / asked.scale[many:, None]
        out[:many] += ((np.ravel(memo.intercept) - posed_as.mean) / scale)[:, None] * ones
    if not (np.abs(out) < 1e140).all():
        raise ValueError("x0 is too large beside y: rescale it, or start from zero")
    if asked.weight is not None and asked.weight.ndim == 2:
        out *= asked.weight > 0
    return out


# --- after -----------------------------------------------------------------------------------------------------------


def _finish(
    posed_as: _Posed, asked: Problem, out: Outcome, quick: Gram, how: How, fit_intercept: bool
) -> tuple[KernelFunction, list[Certificate], np.ndarray, Any, np.ndarray]:
    """α of all the user's points, the intercept, the certificates of the pair, and f at all points."""
    beta, exact = out.beta, asked.X
    certificates = [out.certificates[i] for i in range(len(beta))]
    intercept, centre, centre2 = np.zeros(len(posed_as.mean)), None, np.zeros(1)
    blur, image = np.zeros(len(posed_as.mean)), asked.y - out.residual
    if fit_intercept:
        # (K + Λ)u = y, (K + Λ)v = 1: α = u − tv sums to zero, and b is the mean of what it leaves
        q, ones = len(intercept), asked.weight if asked.weight is not None else np.ones(beta.shape[1])
        v = (beta[q:] * asked.scale[q:, None])[posed_as.ones]
        alpha = _summing_to_zero(beta[:q], v)  # it, y and what follows are in units of scale
        w = ones.reshape(-1, beta.shape[1])[: len(v)]
        centre = w / w.sum(axis=1, keepdims=True)
        y, scale = asked.y[:q], asked.scale[:q]
        both = product(exact, np.vstack([alpha, centre]))
        offset = np.einsum("qi,qi->q", y - both[:q], np.broadcast_to(centre, y.shape))
        centre2 = np.einsum("qi,qi->q", centre, both[q:])
        intercept = posed_as.mean + offset * scale
        sizes, at = np.sqrt(sizes2(exact)), np.broadcast_to(centre, y.shape)
        blur = scale * (
            summed(exact) * (np.abs(alpha) @ sizes) * (at @ sizes) + 4 * UNIT * (at * np.abs(y)).sum(axis=1)
        )
        blur = blur + 4 * UNIT * np.abs(posed_as.mean)
        kept = asked.weight if asked.weight is None or asked.weight.ndim == 1 else asked.weight[:q]
        live = 1.0 if kept is None or kept.ndim == 1 else kept > 0
        whole = asked._replace(y=(y - offset[:, None]) * live, scale=scale, weight=kept)
        unknown = np.full(alpha.shape[1], -1.0)
        found = certify(whole, exact, alpha, None, np.arange(len(alpha)), unknown)
        certificates, image = found.certificates, whole.y - found.residual
        beta, asked = alpha, asked._replace(scale=scale)
    full = np.zeros((len(beta), posed_as.count))
    full[:, posed_as.live] = beta
    x = answer(asked, full)
    lost = np.abs(x.T / asked.scale[:, None] - full).max(axis=1)  # no norm: squares may vanish as well
    if not (lost <= 1e-3 * np.abs(full).max(axis=1)).all():
        raise ValueError("the coefficients are too large or too small for float64: rescale y, the kernel or alpha")
    bound = np.array([np.inf if c.error_bound is None else c.error_bound for c in certificates])
    of_given = posed_as.live if _is_given(posed_as.kernel) and posed_as.live.size < posed_as.count else None
    shown: Any = (float(intercept[0]) if posed_as.single else intercept) if fit_intercept else None
    coefficients = beta * asked.scale[:, None]
    # errors of single precision add up like random ones
    lost = 4 * 2.0**-24 * np.linalg.norm(beta, axis=1) * math.sqrt(float(np.abs(diagonal(exact)).max()))
    rough = bool((lost <= how.stop.tol * np.linalg.norm(asked.y[: len(beta)], axis=1) / math.sqrt(beta.shape[1])).all())
    function = KernelFunction(
        quick,
        exact,
        coefficients,
        intercept,
        bound,
        centre,
        centre2,
        blur,
        rough,
        of_given,
        posed_as.single,
        how.jobs,
        ridge_of(asked).reshape(-1, beta.shape[1])[: len(beta)],
        posed_as.live,
    )
    fitted = np.full((posed_as.count, len(beta)), np.nan)
    fitted[posed_as.live] = (image * asked.scale[:, None] + intercept[:, None]).T
    return (
        function,
        certificates,
        x[:, 0].copy() if posed_as.single else x,
        shown,
        fitted[:, 0] if posed_as.single else fitted,
    )


def _summing_to_zero(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """u − tv; u itself where v is not known yet."""
    total = v.sum(axis=1)
    return u - np.divide(u.sum(axis=1), total, out=np.zeros(len(u)), where=total > 0)[:, None] * v


def _ones(posed_as: _Posed, asked: Problem, out: Outcome, fit_intercept: bool) -> np.ndarray | None:
    """(K + Λ)⁻¹1 at all the user's points."""
    if not fit_intercept:
        return None
    many = len(posed_as.mean)
    full = np.zeros((posed_as.count, len(out.beta) - many))
    full[posed_as.live] = (out.beta[many:] * asked.scale[many:, None]).T
    return full


def _whole(callback: Callable[[Progress], object], posed_as: _Posed, fit_intercept: bool, part: Progress) -> object:
    """Show a callback the coefficients of all the user's points, and no column that is not theirs."""
    x, q = part.x.T, len(posed_as.mean)
    x = _summing_to_zero(x[:q], x[q:][posed_as.ones]) if fit_intercept else x
    full = np.zeros((posed_as.count, q))
    full[posed_as.live] = x.T
    return callback(replace(part, x=full[:, 0].copy() if posed_as.single else full))


def _weights_of(sampler: Any, posed_as: _Posed) -> Any:
    """Those of the points that count."""
    given = np.asarray(sampler)
    return given[posed_as.live] if given.shape == (posed_as.count,) else given


def _status(out: Outcome, i: int, certificate: Certificate, one: int, tol: float) -> Status:
    """With an intercept, the worse of both its columns; and what counts is the certificate of the pair."""
    ones = out.statuses.get(one, Status.CONVERGED)
    if certificate.value <= tol:
        return Status.CONVERGED
    status = next(s for s in WORST_FIRST if s in (out.statuses[i], ones))
    if status is Status.CONVERGED:
        status = Status.ROUNDING if certificate.exhausted else Status.STALLED
    return status


def _estimate(way: Way, asked: Problem, out: Outcome, bound: np.ndarray, single: bool) -> Any:
    """√(rᵀM⁻¹r), which is no less than the error in the energy norm as far as M is no more than K + Λ; or the bound."""
    if way.preconditioner is None:
        return None
    lam = ridge_of(asked)
    r = (out.residual - lam * out.beta) * (lam > 0)
    size = np.sqrt(np.maximum(np.einsum("qi,qi->q", r, way.preconditioner(r)), 0.0)) * asked.scale
    slack = np.where(np.isfinite(way.preconditioner.slack), way.preconditioner.slack, 1e300)
    size = np.minimum(size * np.sqrt(slack), bound)
    return float(size[0]) if single else size
