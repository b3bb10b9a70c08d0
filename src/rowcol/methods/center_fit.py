"""A fit on centres: what was asked -> centres -> the columns of the one loop -> Result, and its function."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..core.certify import UNIT
from ..core.function import KernelFunction, summed
from ..core.kernels import Precomputed
from ..core.problem import Problem, flag
from ..core.recipes import Kernel
from ..core.sides import leaves_of
from ..core.sizes import diagonal
from ..core.threads import blas_limit, pooled
from ..core.words import shown
from .centers import Centers, bytes_of, drawn, rows_for, sampled
from .choose import Plan, with_learned
from .conjugate import Conjugate
from .costs import FEWER, enough
from .loop import run
from .progress import Progress
from .result import WORST_FIRST, Result, Status
from .saying import announce, conclude, learn

log = logging.getLogger(__name__)

HOUR = 3600.0
METHODS = ("auto", "pcg", "cg")


def fit_centers(
    X: Any,
    kernel: Kernel,
    asked: Problem,
    live: np.ndarray,
    single: bool,
    n_centers: Any,
    how: Any,
    x0: Any,
    fit_intercept: bool,
    began: float,
) -> Result:
    """Minimise ½Σ w_i (y_i − f(x_i))² + ½ alpha ‖f‖² over f = Σ_j a_j k(c_j, ·), c_j being m of the points.

    `how` is `asking.How`; `live` are the positions of the points X, all of which count, in the user's.
    """
    m, plan = _checked(n_centers, X, kernel, asked, how), plan_centers(X, kernel, asked, n_centers, how)
    announce(log, plan)
    asked = _one_weight(asked)
    fit_intercept = flag(fit_intercept, "fit_intercept")
    n, q = X.shape[0], len(asked.y)
    w = np.ones(n) if asked.weight is None else asked.weight
    root, offset = np.sqrt(w), np.zeros(q)
    learned: list[str] = []
    if fit_intercept:
        offset = asked.y @ (w / w.sum())
        offset = offset + (asked.y - offset[:, None]) @ (w / w.sum())  # what the first sum lost
        even = (asked.y == asked.y[:, :1]).all(axis=1)
        asked = asked._replace(y=np.where(even[:, None], 0.0, asked.y - offset[:, None]))
    with enough(X.shape, FEWER), ExitStack() as stack:
        stack.enter_context(np.errstate(over="ignore", invalid="ignore", divide="ignore"))  # it is found, and said
        stack.enter_context(blas_limit(how.jobs, at_most=not how.jobs_said))
        pool = stack.enter_context(pooled(how.jobs))
        at, sample = how.seed.spawn(2)
        pivoted = bytes_of(n, X, q, m) <= how.memory
        x = drawn(kernel, X, m, root, fit_intercept, pivoted, at, pool)
        learn(log, learned, f"{x.shape[1]:,} centres" + _spared(x, m))
        given = asked._replace(X=x, y=asked.y * root, weight=None)
        spent, precondition = float(fit_intercept), None
        if how.method != "cg":
            rows, _ = rows_for(*x.shape, how.stop.tol)
            precondition = sampled(x, given, rows, sample)
            learn(log, learned, f"the preconditioner knows {rows:,} of {n:,} rows")
            spent += rows / n
        beta = _start(x0, x, asked)
        _, image = x.pulled(beta @ x.T, given.y)
        slope = image @ x.T.T
        lam = asked.alpha if asked.each is None else asked.each[:, None]
        mover = Conjugate(
            given,
            x,
            "cols",
            np.arange(q),
            beta,
            None,
            slope - lam * beta,
            precondition,
            [x.normal],
            spent + 1,
            math.inf,
            0.85,
        )
        left = how.stop.max_seconds - (time.perf_counter() - began)
        watch = None if how.callback is None else partial(_watched, how.callback, x, single)
        stop = how.stop._replace(max_seconds=max(left, 0.0))
        out = run(given, mover, stop, look_first=x0 is not None, callback=watch, bar=how.bar, log=how.log)
    certificates = [out.certificates[i] for i in range(q)]
    statuses = [out.statuses[i] for i in range(q)]
    status = next(s for s in WORST_FIRST if s in statuses)
    function = _function(x, asked, out.beta, offset, certificates, fit_intercept, live, single, how)
    a = np.ascontiguousarray(function.coefficients[0] if single else function.coefficients.T)
    intercept: Any = float(function.intercept[0]) if single else function.intercept
    result = Result(
        x=a,
        dual=a,
        status=status,
        message=status.value,
        solution=f"kernel ridge on {x.shape[1]:,} centres" if status is Status.CONVERGED else "not converged",
        method="cg" if precondition is None else "pcg",
        sampler="none",
        passes=out.passes,
        steps=out.steps,
        seconds=time.perf_counter() - began,
        copied=0,
        tol=how.stop.tol,
        statuses=statuses,
        certificates=certificates,
        history=out.history,
        plan=with_learned(plan, learned),
        intercept=intercept if fit_intercept else None,
        function=function,
    )
    conclude(log, result)
    return result


def plan_centers(X: Any, kernel: Kernel, asked: Problem, n_centers: Any, how: Any) -> Plan:
    """What `fit_centers` would do."""
    (n, d), m, q = X.shape, _checked(n_centers, X, kernel, asked, how), len(asked.y)
    by_pivots = bytes_of(n, X, q, m) <= how.memory
    need = bytes_of(n, X, q, m) if by_pivots else least_bytes(n, X, q, m)
    if need > how.memory:
        raise ValueError(
            f"n_centers={m} needs about {need / 1e6:,.0f} MB beside X, more than memory={how.memory / 1e6:,.0f} MB: "
            "allow more, or take fewer"
        )
    way = "randomly pivoted Cholesky" if by_pivots else "uniform picks, as memory allows no pivots"
    told = f"a function of {m:,} centres, found by {way}, stands for one of all {n:,} points"
    told = told if m < n else f"no fewer than there are points: all {n:,} are centres, but for those that others know"
    route, rows = ("cg", 0) if how.method == "cg" else ("pcg", rows_for(n, m, how.stop.tol)[0])
    passes = None if route == "cg" else _passes(n, m, how.stop.tol)
    reasons = [
        f"n_centers={n_centers:,}: {told}",
        "kernel values of points with centres are made anew for every product, and used both ways: one pass a step",
    ]
    if rows:
        reasons.append(f"conjugate gradients, preconditioned by the features of {rows:,} rows, need few of them")
    return Plan(
        route,
        "centres",
        tuple(reasons),
        (),
        None,
        passes,
        need,
        0,
        (n, d),
        asked.alpha * asked.gauge,
        how.stop.tol,
        how.memory,
        seconds=None if passes is None else _seconds(n, d, m, how.stop.tol, how.jobs),
    )


def _passes(n: int, m: int, tol: float) -> float:
    rows, steps = rows_for(n, m, tol)
    return steps + 2 + rows / n


def _seconds(n: int, d: int, m: int, tol: float, jobs: int) -> float:
    """A rough guess, from the speed of common machines: passes, the sample, and what is of m by m."""
    entries = 1e-9 * (0.8 + 0.06 * d) * n * m * _passes(n, m, tol)
    return (entries + 4e-11 * (3 * rows_for(n, m, tol)[0] + 10 * m) * m * m) / jobs


def with_remedy(plan: Plan, jobs: int) -> Plan:
    """The Plan of an exact fit; where that is beyond reach, it says what centres would take."""
    (n, d), blocks = plan.shape, plan.route == "blocks"
    if not blocks and (plan.seconds is None or plan.seconds <= HOUR):
        return plan
    m = min(max(int(10 * math.sqrt(n)) // 100 * 100, 100), 10_000, n)
    takes = f"about {_long(_seconds(n, d, m, plan.tol, jobs))}"
    why = "memory allows the exact solution no preconditioner" if blocks else ""
    why = why or f"the exact solution takes about {_long(plan.seconds or 0.0)}"
    return replace(plan, reasons=(*plan.reasons, f"{why}: one on centres, n_centers={m}, {takes}"))


def least_bytes(n: int, X: Any, q: int, m: int) -> int:
    """Memory where centres are picked uniformly."""
    return int(8 * (4 * m * m + 3 * 2048 * m) + 8 * n * (6 * q + 4) + 24 * m * X.shape[1] + 10_000_000)


def _long(seconds: float) -> str:
    for unit, size in (("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.2g} {unit}" if seconds < 100 * size else f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.2g} s"


# --- before and after ------------------------------------------------------------------------------------------------


def _checked(n_centers: Any, X: Any, kernel: Kernel, asked: Problem, how: Any) -> int:
    """How many centres: no more than there are points."""
    if isinstance(n_centers, bool) or not isinstance(n_centers, (int, np.integer)) or n_centers < 1:
        raise ValueError(
            f"n_centers must be a whole number, 1 or more, or None for the exact solution; got {shown(n_centers)}"
        )
    if any(isinstance(leaf, Precomputed) for leaf in leaves_of(kernel)):
        raise ValueError("n_centers needs points, and a precomputed kernel has none: leave out one of the two")
    if not kernel.definite:
        raise ValueError("n_centers needs a positive definite kernel, as its norm is what is penalised")
    if how.method not in METHODS:
        raise ValueError(f"with n_centers, method must be one of {', '.join(METHODS)}; got {shown(how.method)}")
    _one_weight(asked)
    return int(min(n_centers, X.shape[0]))


def _one_weight(asked: Problem) -> Problem:
    """An alpha for each column, where it came as one for each point and column, all points alike."""
    w = asked.weight
    if w is None or w.ndim == 1:
        return asked
    ratio = w / w.max(axis=1, keepdims=True)
    if not np.allclose(ratio, ratio[0], rtol=1e-12, atol=0.0):
        raise ValueError(
            "with n_centers, alpha must be a number, one a point, or one a column: not one a point and column, nor may "
            "it leave points out of some columns"
        )
    each = asked.alpha / w.max(axis=1)
    return asked._replace(weight=ratio[0], alpha=float(each.min()), each=each)


def _spared(x: Centers, m: int) -> str:
    spared = m - x.shape[1]
    return f", as these know the other {spared:,} of {m:,} but for rounding" if spared else ""


def _start(x0: Any, x: Centers, asked: Problem) -> np.ndarray:
    """β of an earlier Result's f, as the centres see it: f's projection has the coordinates T f(c)."""
    if x0 is None:
        return np.zeros((len(asked.y), x.shape[1]))
    function = getattr(x0, "function", None)
    if not isinstance(function, KernelFunction) or len(function.coefficients) != len(asked.y):
        raise ValueError("with n_centers, x0 must be an earlier Result of a kernel and of as many right-hand sides")
    values = np.reshape(function(x.points[x.which]), (x.shape[1], -1)).T - function.intercept[:, None]
    scale = np.where(asked.y.any(axis=1), asked.scale, np.inf)  # where y is zero so is the answer
    return (values / scale[:, None]) @ x.T.T


def _watched(callback: Callable[[Progress], object], x: Centers, single: bool, part: Progress) -> object:
    """Show a callback the coefficients of the centres."""
    a = x.T.T @ part.x
    return callback(replace(part, x=a[:, 0].copy() if single else a))


def _function(
    x: Centers,
    asked: Problem,
    beta: np.ndarray,
    offset: np.ndarray,
    certificates: list,
    fit_intercept: bool,
    live: np.ndarray,
    single: bool,
    how: Any,
) -> KernelFunction:
    """f, from its centres. With an intercept, f − f* is of their span: so φ̄ counts as far as that sees it, T k̄."""
    a, g = beta @ x.T, x.exact
    with np.errstate(over="ignore"):
        coefficients, intercept, blur = a * asked.scale[:, None], np.zeros(len(a)), np.zeros(len(a))
    if not np.isfinite(coefficients).all():
        raise ValueError("the coefficients are too large for float64: rescale y, the kernel or alpha")
    s, centre, centre2 = np.sqrt(diagonal(g)), None, np.zeros(1)
    if fit_intercept:
        assert x.mean is not None
        intercept = (offset - a @ x.mean) * asked.scale
        seen = x.T @ x.mean
        centre, centre2 = (seen @ x.T)[None], np.array([seen @ seen * x.stretch**2])
        typical = float(x.root**2 @ x.sizes) / float(x.root @ x.root)
        blur = asked.scale * (2 * summed(g) * (np.abs(a) @ s) * typical + 4 * UNIT * np.abs(offset))
    bound = np.array([c.error_bound for c in certificates])
    lost = 4 * 2.0**-24 * np.linalg.norm(a, axis=1) * float(s.max())
    rough = (lost <= how.stop.tol * np.linalg.norm(asked.y, axis=1) / math.sqrt(x.shape[0])).all()
    return KernelFunction(
        replace(x.quick, pool=None),
        replace(g, pool=None),
        coefficients,
        intercept,
        bound,
        centre,
        centre2,
        blur,
        bool(rough),
        None,
        single,
        how.jobs,
        centers=live[x.which],
    )
