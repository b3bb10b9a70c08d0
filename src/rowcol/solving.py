"""`solve` and `plan`: Problem -> Plan -> Mover -> loop -> Result."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from .asking import How, choice_for, factored, how_to, plan_for, plan_of, preconditioner_of, start_of
from .checkpoints import closed, opened, recalled
from .core.centre import centred, centred_y, intercepts
from .core.norms import norm
from .core.place import Place
from .core.problem import Problem, answer, flag, problem
from .core.threads import blas_limit, pooled, single_blas
from .fitting import fit, plan_fit
from .methods.choose import Choice, Plan, with_learned
from .methods.costs import BY_LINES, LESS, enough
from .methods.direct import gathered_for
from .methods.later import bring_later
from .methods.loop import Outcome
from .methods.ones import with_ones
from .methods.progress import Progress, watched
from .methods.result import WORST_FIRST, Asked, Result, StartWarning, Status, warn
from .methods.routes import follow
from .methods.saying import announce, conclude, tell_travelled, travelled
from .methods.still import less_means
from .methods.way import Kept, Way
from .methods.which import which_solution
from .places.opening import placed, with_team

log = logging.getLogger(__name__)


def solve(
    X: Any,
    y: Any,
    *,
    alpha: Any = 0.0,
    kernel: Any = None,
    n_centers: int | None = None,
    fit_intercept: bool = False,
    method: str = "auto",
    tol: float = 1e-6,
    max_passes: float | None = None,
    max_seconds: float | None = None,
    x0: Any = None,
    sampler: Any = "auto",
    sample_weight: Any = None,
    bounds: Any = None,
    preconditioner: Any = None,
    memory: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    callback: Callable[[Progress], object] | None = None,
    progress: bool | None = None,
    checkpoint: Any = None,
) -> Result:
    """Solve X β = y by rows or by columns, and say how good the answer is.

    Minimises ½‖y − Xβ‖² + ½ alpha ‖β‖²; with a kernel, ½‖y − f(X)‖² + ½ alpha ‖f‖² over its functions f.

    Parameters
    ----------
    X : array, sparse array, LinearOperator, anything with __array__, or what `chunks` gives, (n, p)
        Used in place where the method allows it: rows want C order or CSR, columns want Fortran order or CSC.
        float32 and complex64 are kept; steps and sums are in double precision all the same.
    y : array, (n,) or (n, q)
        One right-hand side or several, which share the picks and stop one by one. The answer has as many dimensions.
    alpha : float or array, (q,)
        Ridge penalty, at least 0; or one a right-hand side, all above 0, for which methods "cg" and "direct" share the
        work. With a kernel it must be above 0, and an array means: one a point, or, (n, q), one a point and right-hand
        side; there infinity leaves a point out, so that folds share every tile.
    kernel : kernel, str or callable, optional
        Kernel ridge regression (K + alpha) x = y on the points X, by tiles of K: see `rowcol.kernels`.
        `result.function` predicts. Methods are then "rk" (the paper's single steps), "blocks" (random blocks of points,
        with momentum), "pcg" (conjugate gradients preconditioned by randomly drawn pivots), "cg" (plainly) and "direct"
        (Cholesky).
    n_centers : int, optional
        With a kernel: f is a combination of so many k(c_j, ·) only, the centres c_j being points picked by randomly
        pivoted Cholesky, and the optimum among these is what is found and certified. `result.x` has one coefficient a
        centre, `result.function.centers` says which points they are: all, if there are no more; fewer, where these
        know the others. Memory grows with n and with n_centers². Methods are "auto", "pcg" and "cg".
    fit_intercept : bool
        Add an intercept that is not penalised: `result.intercept`. X is not copied for it, nor made dense; but single
        steps on a dense X take a centred copy.
    method : str
        "auto" chooses, says why in `result.plan`, and goes on by another method where the first is slow. By name:
        "rk" (rows: randomized Kaczmarz), "rcd" (columns: randomized coordinate descent), "rek" (both: extended
        Kaczmarz), "sgs-cg" (conjugate gradients preconditioned by a sweep forward and back), "cg" (plainly),
        "sketch" (preconditioned by a random sketch), "blocks" (block projection with momentum), "direct" (Cholesky, QR
        or truncated eigenvalues of the smaller side), "subset" (a random sample of rows, certified by the others).
    tol : float
        One meaning on every side: √(2·duality gap) ≤ tol‖y‖ if alpha > 0; otherwise ‖y − Xβ‖ ≤ tol‖y‖ if that can be
        had, or else |X_j·r| ≤ tol‖X_j‖‖r‖ for every column.
    max_passes : float, optional
        Passes over X before giving up; 1000 unless said.
    max_seconds : float, optional
        Seconds before giving up, not counting compilation, which is done once a machine.
    x0 : array or Result, optional
        A start, never changed. It changes the way, not the goal; except that where solutions are many, a start
        outside the row space keeps rows from the minimum-norm one: that is warned about if X is wide, and minimum
        norm is not claimed. An earlier Result of "rk" or "rek", or of ridge, is always a good start.
    sampler : {"auto", "norms", "uniform", "shuffled", "chunks", "cyclic"} or array of weights
        Which row (or column) is next: independent picks in proportion to squared norms, or alike; all of them in a new
        random order each pass; runs of 64 neighbours ("chunks:16": of 16) in random order; first to last. For a named
        method "auto" is the paper's "norms"; for method "auto" it is "shuffled", or "chunks" on many sparse rows.
    sample_weight : array, (n,), optional
        A weight of 2 is the same as having the row twice.
    bounds : pair (low, high), optional
        low ≤ x ≤ high, each a number or an array (p,), -inf and inf where there is none: (0, inf) keeps x non-negative.
        X and y must be real. Only columns ("rcd") keep bounds, and x keeps them exactly; where it is float32, they are
        rounded inward to it. tol means the same, with slopes that lead out of the bounds not counted.
    preconditioner : array, LinearOperator or callable, optional
        For conjugate gradients: it takes a vector v to about (XᴴX + alpha)⁻¹v, or, of size n, to (XXᴴ + alpha)⁻¹v.
        Implies method "cg". It may lead out of the row space, so minimum norm is then not claimed.
    memory : int or str, optional
        How much may be used beside X and y, in bytes or as "2 GB": half of what is free unless said. It decides whether
        a Gram matrix or a transposed copy may be made; a named method that needs more is refused.
    n_jobs : int, optional
        Threads, which share right-hand sides and passes over X, and those of BLAS. By "rk", "rcd", "rek" and "sgs-cg"
        the answer does not depend on it, bit for bit. None obeys the environment variables.
    random_state : None, int, SeedSequence, Generator or RandomState
        The same seed gives the same bits, whatever callbacks and progress bars do; None, other picks every time.
    callback : callable, optional
        Called after every round with a `Progress`; the solve stops if it returns something true.
    progress : bool, optional
        A line on stderr, from the second second on; by default on a terminal only.
    checkpoint : str, Path or Checkpoint, optional
        A file to write to, every 30 seconds and at the end, what was done so far. If it is there already, and is of the
        same X, y and parameters, the solve goes on from it, to the same bits; of others, it is an error. The file
        stays. max_seconds is of this process, x0 counts only if there is no file, and rounds are not cut short.

    Returns
    -------
    Result

    Warns
    -----
    ConvergenceWarning
        If the tolerance was not reached. The status says why, and what to do.
    StartWarning
        If x0 may spoil the minimum norm.

    Examples
    --------
    >>> import numpy as np, rowcol
    >>> rng = np.random.default_rng(0)
    >>> X, beta = rng.standard_normal((300, 20)), rng.standard_normal(20)
    >>> result = rowcol.solve(X, X @ beta, method="rk", random_state=0)
    >>> result.success, bool(np.linalg.norm(result.x - beta) < 1e-5)
    (True, True)
    """
    began, source = time.perf_counter(), None
    limits = tol, max_passes, max_seconds
    how = how_to(method, *limits, sampler, callback, progress, memory, n_jobs, random_state, kernel=kernel is not None)
    flag(fit_intercept, "fit_intercept")
    given = {"alpha": alpha, "kernel": kernel, "n_centers": n_centers, "fit_intercept": fit_intercept, "method": method}
    given |= {"tol": tol, "max_passes": max_passes, "max_seconds": max_seconds, "x0": x0, "sampler": sampler}
    given |= {"sample_weight": sample_weight, "bounds": bounds, "preconditioner": preconditioner, "memory": memory}
    given |= {"n_jobs": n_jobs, "random_state": random_state}
    checkpoint, room = recalled(checkpoint, how.memory, memory)  # the same parts of X as when it was begun
    with watched(how.bar):  # parts of X may be made, or read for a fingerprint, before there is a problem
        if kernel is not None:
            if preconditioner is not None:
                raise ValueError("a kernel brings its own preconditioner: leave out preconditioner")
            _no_bounds(bounds)
            X, how.team = with_team(X, room, n_centers is not None)
            x0 = opened(checkpoint, how, X, y, given)
            result = fit(X, y, kernel, alpha, how, x0, sample_weight, fit_intercept, began, n_centers=n_centers)
        else:
            _no_centers(n_centers)
            source, X = X, placed(X, room)
            asked = problem(X, y, alpha, sample_weight, bounds)
            kept = Kept(precondition=preconditioner_of(preconditioner, asked))
            x0 = opened(checkpoint, how, X, y, given)
            result = result_for(asked, how, x0, kept, began, fit_intercept=fit_intercept)
    result.asked = Asked(X, y, source)
    return closed(how, result)


def plan(
    X: Any,
    y: Any,
    *,
    alpha: Any = 0.0,
    kernel: Any = None,
    n_centers: int | None = None,
    fit_intercept: bool = False,
    tol: float = 1e-6,
    memory: Any = None,
    method: str = "auto",
    sample_weight: Any = None,
    bounds: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> Plan:
    """What `solve` would do, and why, without doing it: it looks at a few rows of X, and for an intercept at its means.

    Parameters
    ----------
    X, y, alpha, kernel, n_centers, fit_intercept, tol, memory, method, sample_weight, bounds, n_jobs, random_state
        As for `solve`.

    Returns
    -------
    Plan

    Examples
    --------
    >>> import numpy as np, rowcol
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((20_000, 40))
    >>> print(rowcol.plan(X, rng.standard_normal(20_000), memory="1 GB", random_state=0))  # doctest: +ELLIPSIS
    rowcol.Plan for 20,000 x 40, least squares or minimum norm, tol 1e-06: direct, by columns
      because     X is tall: one solution if consistent (Section 3), least squares if not (Section 4)
      because     80 of 20,000 rows sampled: they contradict each other by 0.7 of ‖y‖: not RK (Section 4)
      because     the 40 x 40 Gram matrix costs about 4.43 passes: fewer than steps would take
      work        about 4.43 passes over X
      memory      ... MB beside X and y, of a budget of 1 GB
      copies of X none
    """
    how = how_to(method, tol, None, None, "auto", None, False, memory, n_jobs, random_state, kernel is not None)
    flag(fit_intercept, "fit_intercept")
    if kernel is not None:
        _no_bounds(bounds)
        X, _ = with_team(X, how.memory, n_centers is not None)
        return plan_fit(X, y, kernel, alpha, how, sample_weight, n_centers)
    _no_centers(n_centers)
    asked = problem(placed(X, how.memory), y, alpha, sample_weight, bounds)
    return plan_for(centred(asked)[0] if fit_intercept else asked, how, Kept())


def _no_bounds(bounds: Any) -> None:
    if bounds is not None:
        raise ValueError("bounds are for the unknowns of columns, and a kernel has none: leave out bounds or kernel")


def _no_centers(n_centers: Any) -> None:
    if n_centers is not None:
        raise ValueError("n_centers is for kernels: name one, or leave it out")


def result_for(asked: Problem, how: How, x0: Any, kept: Kept, began: float, fit_intercept: bool = False) -> Result:
    """Problem -> Plan -> Mover -> loop -> Result."""
    offset, method, stop = None, how.method, how.stop
    with ExitStack() as stack:
        stack.enter_context(watched(how.bar))
        plans = stack.enter_context(enough(asked.X.shape, LESS))
        stack.enter_context(np.errstate(over="ignore", invalid="ignore", divide="ignore"))  # it is found, and said
        stack.enter_context(blas_limit(how.jobs, at_most=not how.jobs_said))
        if not isinstance(asked.X, LinearOperator) or isinstance(asked.X, Place):
            stack.enter_context(single_blas(lends=True))  # our threads share X; what else there is is mostly too short
        pool = stack.enter_context(pooled(how.jobs))
        known, cut = None, None
        if fit_intercept:
            asked, offset = centred_y(asked, own=True)
            loose = 0.0 if kept.often else stop.tol
            sums = partial(gathered_for, asked, loose, pool) if factored(asked, how, kept) else lambda: None
            asked, known, cut = less_means(asked, pool, sums, np.inf if how.log else began + stop.max_seconds)
        beta0, alpha0 = start_of(x0, asked, method == "rk")
        choice = choice_for(asked, how, kept)
        plan = plan_of(asked, how, choice, foretell=False)
        plans.append(plan)
        announce(log, plan)
        auto = method == "auto" and kept.precondition is None
        limits = how.sampler, stop, how.seed, how.memory, how.callback, how.bar
        way = Way(asked, *limits, pool, how.jobs, kept, auto, log=how.log, gathered=known, cut=cut)
        before = travelled(asked.X)
        take = with_ones if _needs_ones(asked, choice) else follow
        outcome = take(way, choice, beta0, alpha0)
        tell_travelled(log, way.learned, asked.X, before)
        if asked.shift is not None and asked.shift.live is not None and asked.bounds is None:
            outcome.beta *= asked.shift.live  # constant columns: rounding may have left something
        clean_start = beta0 is None or alpha0 is not None
        result = _told(asked, how, way, plan, outcome, offset, clean_start, began)
        bring_later(result, asked, outcome, how.memory)
    conclude(log, result)
    if not clean_start:
        _warn_of_start(asked, way, outcome)
    return result


def _told(
    asked: Problem,
    how: How,
    way: Way,
    plan: Plan,
    outcome: Outcome,
    offset: np.ndarray | None,
    clean_start: bool,
    began: float,
) -> Result:
    """What was found, in the user's units."""
    stop = how.stop
    status = next(s for s in WORST_FIRST if s in outcome.statuses.values())
    message = status.value
    if asked.bounds is not None:
        message = message.replace(", loosen tol, or try another method", " or loosen tol")
    zero_row = next(iter(outcome.zero_rows.values()), None)
    if zero_row is not None and status is Status.CONVERGED and asked.alpha == 0:
        message += f"; the system is inconsistent: row {zero_row} of X is zero but y is not"
    if status is not Status.CONVERGED and not isinstance(how.sampler, str) and not np.all(how.sampler):
        message += "; what has sampler weight zero was never picked"
    storing = max(c.storing for c in outcome.certificates.values())
    if status is Status.CONVERGED and storing > stop.tol / 10:
        message += f"; storing x as {asked.dtype} can add {storing:.0e} to it"
    x = answer(asked, outcome.beta)
    if _lost(asked, x, outcome.beta):
        raise ValueError(f"the solution is too large or too small for {x.dtype}: rescale X or y")
    alpha = None if asked.alpha == 0 and not clean_start else outcome.alpha
    dual = None if alpha is None else answer(asked, alpha, dual=True)
    routes = [name.split(" ")[0] for name in way.taken]
    q = len(asked.y)
    return Result(
        x=x,
        dual=dual if dual is not None and np.isfinite(dual).all() else None,
        status=status,
        message=message,
        solution=which_solution(asked, way, status, outcome, clean_start),
        method=" → ".join(routes),
        sampler=outcome.sampler,
        passes=outcome.passes,
        steps=outcome.steps,
        seconds=time.perf_counter() - began - outcome.compiling,
        copied=asked.copied + outcome.copied,
        tol=stop.tol,
        statuses=[outcome.statuses[i] for i in range(q)],
        certificates=[outcome.certificates[i] for i in range(q)],
        history=outcome.history,
        plan=with_learned(plan, way.learned),
        intercept=_intercept(asked, offset, x),
        at_bound=_at_bound(asked, x),
    )


def _lost(asked: Problem, x: np.ndarray, beta: np.ndarray) -> bool:
    """Is the answer, as it is stored, another than the one that was found?"""
    with np.errstate(over="ignore", invalid="ignore"):
        kept = x.reshape(x.shape[0], -1).T / asked.scale[:, None]
        return not all(norm(a - b) <= 1e-3 * norm(b) for a, b in zip(kept, beta, strict=True))


def _warn_of_start(asked: Problem, way: Way, outcome: Outcome) -> None:
    """A start with a part outside the row space keeps it, unless a factor has solved anew."""
    n, p = asked.X.shape
    anew = way.taken[-1].startswith("direct") and not outcome.at_start
    if p > n and asked.alpha == 0 and asked.bounds is None and not anew:
        warn(
            "x0 may reach outside the row space of X, and then rows cannot find the minimum-norm solution: start from "
            "zero, or pass an earlier Result of method 'rk' or 'rek' instead of its x",
            StartWarning,
        )


def _needs_ones(asked: Problem, choice: Choice) -> bool:
    needs = asked.shift is not None and choice.route in BY_LINES and sp.issparse(asked.X)
    if needs and asked.bounds is not None:
        raise ValueError(
            "bounds with an intercept take no sparse X, as X − x̄ is dense: pass X.toarray(), or no fit_intercept"
        )
    if needs and asked.alpha == 0:
        raise ValueError(
            f"method={choice.route!r} on a sparse X with an intercept needs alpha > 0, as X − x̄ is dense: say "
            "method='auto' or 'cg'"
        )
    return needs and (asked.weight is not None or choice.route not in ("rk", "rcd"))


def _intercept(asked: Problem, offset: np.ndarray | None, x: np.ndarray) -> Any:
    """b = ȳ − x̄ᵀx, of x as it is stored."""
    if offset is None:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        b = intercepts(asked, offset, x.reshape(x.shape[0], -1).T / asked.scale[:, None])
    if not np.isfinite(b).all():
        raise ValueError("the intercept is too large for float64: rescale X or y")
    return b[0].item() if asked.single else b


def _at_bound(asked: Problem, x: np.ndarray) -> Any:
    """How many unknowns of each right-hand side are at a bound."""
    if asked.bounds is None:
        return None
    low, high = asked.bounds
    at = (low == x.T) | (high == x.T)
    return int(at.sum()) if asked.single else at.sum(axis=1)
