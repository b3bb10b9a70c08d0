"""Kernel ridge regression: points, kernel and y -> Problem -> Plan -> Mover -> loop -> Result, and its function."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from .asking import How
from .core.certify import UNIT, Certificate, certify
from .core.function import KernelFunction, summed
from .core.gram import Gram, alone, gram, product
from .core.place import Place
from .core.problem import Problem, answer
from .core.sides import points
from .core.sizes import diagonal, sizes2
from .core.threads import blas_limit, pooled, single_blas
from .methods.center_fit import fit_centers, plan_centers, with_remedy
from .methods.choose import Plan, with_learned
from .methods.costs import FEWER, enough
from .methods.kernel import ridge_of
from .methods.kernel_routes import Way, choose, follow, planned
from .methods.landmarks import Memo, keep, moved
from .methods.loop import Outcome
from .methods.progress import Progress, watched
from .methods.result import WORST_FIRST, Result, Status
from .methods.saying import announce, conclude, learn, tell_travelled, travelled
from .posing import Posed, grams, is_given, pose, start_of, tiled

log = logging.getLogger(__name__)


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
        few = pose(X, y, kernel, alpha, how, sample_weight, False)
        asked_of = few.X, few.kernel, few.asked, few.live, few.single
        return fit_centers(*asked_of, n_centers, how, x0, fit_intercept, began)
    our_threads = single_blas(lends=True)  # which make the tiles
    with watched(how.bar), blas_limit(how.jobs, at_most=not how.jobs_said), our_threads:
        posed_as = pose(X, y, kernel, alpha, how, sample_weight, fit_intercept)
        return _fit(posed_as, X, how, x0, fit_intercept, began, memo)


def _fit(posed_as: Posed, X: Any, how: How, x0: Any, fit_intercept: bool, began: float, memo: Memo | None) -> Result:
    asked = posed_as.asked
    with enough(posed_as.X.shape, FEWER) as plans, np.errstate(all="ignore"), pooled(how.jobs) as pool:
        leaves, first = tiled(posed_as.kernel), how.stop._replace(max_seconds=how.patience)
        choice = choose(asked, posed_as.X, leaves, how.method, how.memory, first)
        exact, quick = grams(posed_as, pool, how.team)
        asked = asked._replace(X=exact)
        plan = planned(posed_as.X, leaves, None, asked, choice, how.stop, how.memory, how.jobs)
        plans.append(plan)
        announce(log, plan)
        stop = how.stop._replace(tol=how.stop.tol / 2) if fit_intercept else how.stop
        sampler = how.sampler if isinstance(how.sampler, str) else _weights_of(how.sampler, posed_as)
        watch = None if how.callback is None else partial(_whole, how.callback, posed_as, fit_intercept)
        way = Way(asked, quick, stop, how.seed, how.memory, sampler, watch, how.bar, how.method == "auto", log=how.log)
        elsewhere = isinstance(posed_as.X, Place)
        every = posed_as.live.size == posed_as.count and not is_given(posed_as.kernel) and not elsewhere
        if memo is not None and every and choice.route == "pcg" and choice.rank:
            way.preconditioner = moved(memo, posed_as.X, quick, ridge_of(asked), how.memory)
            if way.preconditioner is not None:
                count = len(way.preconditioner.lines)
                learn(log, way.learned, f"{count:,} pivots, of the last fit and of what changed since, serve again")
        sender = how.team if how.team is not None else posed_as.X
        before = travelled(sender)
        out = follow(way, choice, start_of(x0, posed_as, memo if fit_intercept else None))
        function, certificates, x, intercept, fitted = _finish(posed_as, asked, out, quick, how, fit_intercept)
        tell_travelled(log, way.learned, sender, before)
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
    posed_as = pose(X, y, kernel, alpha, how, sample_weight, False)
    if n_centers is not None:
        return plan_centers(posed_as.X, posed_as.kernel, posed_as.asked, n_centers, how)
    some = np.sort(np.random.default_rng(0).choice(posed_as.X.shape[0], min(posed_as.X.shape[0], 2000), replace=False))
    few = posed_as.X.some(some) if isinstance(posed_as.X, Place) else posed_as.X[some]
    few = few[:, some] if is_given(posed_as.kernel) else few
    leaves, asked = tiled(posed_as.kernel), posed_as.asked
    choice = choose(asked, posed_as.X, leaves, how.method, how.memory, how.stop)
    g = gram(posed_as.kernel, few, np.float64)
    plan = planned(posed_as.X, leaves, g, asked, choice, how.stop, how.memory, how.jobs)
    fewer = not is_given(posed_as.kernel) and posed_as.kernel.definite
    return with_remedy(plan, how.jobs) if fewer else plan


# --- after -----------------------------------------------------------------------------------------------------------


def _finish(
    posed_as: Posed, asked: Problem, out: Outcome, quick: Gram, how: How, fit_intercept: bool
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
    of_given = posed_as.live if is_given(posed_as.kernel) and posed_as.live.size < posed_as.count else None
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


def _ones(posed_as: Posed, asked: Problem, out: Outcome, fit_intercept: bool) -> np.ndarray | None:
    """(K + Λ)⁻¹1 at all the user's points."""
    if not fit_intercept:
        return None
    many = len(posed_as.mean)
    full = np.zeros((posed_as.count, len(out.beta) - many))
    full[posed_as.live] = (out.beta[many:] * asked.scale[many:, None]).T
    return full


def _whole(callback: Callable[[Progress], object], posed_as: Posed, fit_intercept: bool, part: Progress) -> object:
    """Show a callback the coefficients of all the user's points, and no column that is not theirs."""
    x, q = part.x.T, len(posed_as.mean)
    x = _summing_to_zero(x[:q], x[q:][posed_as.ones]) if fit_intercept else x
    full = np.zeros((posed_as.count, q))
    full[posed_as.live] = x.T
    return callback(replace(part, x=full[:, 0].copy() if posed_as.single else full))


def _weights_of(sampler: Any, posed_as: Posed) -> Any:
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
