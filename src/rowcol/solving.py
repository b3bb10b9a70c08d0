"""`solve`: Problem -> View -> loop -> Result."""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from .core import sampler as samplers
from .core import threads
from .core.problem import Problem, answer, problem, real_number
from .core.view import both, cols, rows
from .methods import coordinate, extended
from .methods.loop import Outcome, compile_for, joined, run
from .methods.progress import Bar, Progress
from .methods.result import MEANING, WORST_FIRST, ConvergenceWarning, Result, StartWarning, Status, count_passes
from .methods.stop import Stop

METHODS = ("auto", "rk", "rcd", "rek")
DEFAULT_PASSES = 1000


def solve(
    X: Any,
    y: Any,
    *,
    alpha: float = 0.0,
    method: str = "auto",
    tol: float = 1e-6,
    max_passes: float | None = None,
    max_seconds: float | None = None,
    x0: Any = None,
    sampler: Any = "auto",
    sample_weight: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    callback: Callable[[Progress], object] | None = None,
    progress: bool | None = None,
) -> Result:
    """Solve X β = y by rows or by columns, and say how good the answer is.

    Minimises ½‖y − Xβ‖² + ½ alpha ‖β‖².

    Parameters
    ----------
    X : array, sparse array or anything with ``__array__``, (n, p)
        Used in place where the method allows it: rows want C order or CSR, columns want Fortran order or CSC.
        float32 and complex64 are kept; steps and sums are in double precision all the same.
    y : array, (n,) or (n, q)
        One right-hand side or several, which share the picks and stop one by one. The answer has as many dimensions.
    alpha : float
        Ridge penalty, at least 0.
    method : {"auto", "rk", "rcd", "rek"}
        Randomized Kaczmarz (rows), randomized coordinate descent (columns), randomized extended Kaczmarz (both).
        "auto" takes columns unless X is wide, rows if it is, and extended Kaczmarz where rows find no solution. For
        the pseudo-inverse's answer whatever the rank of X, say "rek".
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
    n_jobs : int, optional
        Threads, which share the right-hand sides of a 2-D y. The answer does not depend on it, bit for bit.
    random_state : None, int, SeedSequence, Generator or RandomState
        The same seed gives the same bits, whatever callbacks and progress bars do; None, other picks every time.
    callback : callable, optional
        Called after every round with a `Progress`; the solve stops if it returns something true.
    progress : bool, optional
        A line on stderr, from the second second on; by default on a terminal only.

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
    began = time.perf_counter()
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    samplers.check(sampler)
    tol = real_number(tol, "tol", above=0.0, below=1.0)
    limit = DEFAULT_PASSES if max_passes is None else real_number(max_passes, "max_passes", above=0.0)
    seconds = math.inf if max_seconds is None else real_number(max_seconds, "max_seconds", above=0.0)
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be callable, got {type(callback).__name__}")
    if progress not in (None, True, False):
        raise TypeError(f"progress must be None, True or False, got {progress!r}")
    jobs, seed = threads.count(n_jobs), samplers.seeds(random_state)
    asked = problem(X, y, alpha, sample_weight)
    n, p = asked.X.shape
    beta0, alpha0 = _start(x0, asked)
    if method == "auto" and not isinstance(sampler, str):
        raise ValueError("sampler weights need a named method: say method='rk' (one a row) or 'rcd' (one a column)")
    if method == "rek" and not isinstance(sampler, str):
        raise ValueError("method='rek' picks rows and columns: give its sampler by name")
    if method == "rek" and asked.alpha > 0:
        raise ValueError("method='rek' is for alpha=0: ridge regression is method='rk' (rows) or 'rcd' (columns)")

    stop = Stop(tol, limit, seconds)
    bar = Bar(tol) if progress or (progress is None and sys.stderr.isatty()) else None
    route = ("rcd" if n >= p else "rk") if method == "auto" else method
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what leaves float64 is found, and said
        outcome = _route(route, asked, sampler, method, stop, seed, beta0, alpha0, callback, bar, jobs)
        story = ""
        if method == "auto":
            story = f"rows, because X is wide ({n} x {p})"
            if route == "rcd":
                story = f"columns, because X has no more columns than rows ({n} x {p})"
        stuck = [i for i, status in outcome.statuses.items() if status is Status.PLATEAU]
        if method == "auto" and stuck and set(outcome.statuses.values()) <= {Status.CONVERGED, Status.PLATEAU}:
            story += f"; no solution in sight after {count_passes(outcome.passes)}, so rows and columns woven"
            spent = time.perf_counter() - began - outcome.compiling
            left = stop._replace(max_passes=max(limit - outcome.passes, 1.0), max_seconds=max(seconds - spent, 0.0))
            some = asked._replace(y=asked.y[stuck], scale=asked.scale[stuck])
            watch = None if callback is None else partial(_whole, callback, asked, outcome, stuck)
            assert outcome.alpha is not None  # rows keep it, so that β = Xᴴα is a start that keeps minimum norm
            start = outcome.beta[stuck], outcome.alpha[stuck]
            more = _route("rek", some, sampler, method, left, seed, *start, watch, bar, jobs)
            route, outcome = "rek", joined(outcome, more, stuck)

    status = next(s for s in WORST_FIRST if s in outcome.statuses.values())
    message = status.value
    zero_row = next(iter(outcome.zero_rows.values()), None)
    if zero_row is not None and status is Status.CONVERGED and asked.alpha == 0:
        message += f"; the system is inconsistent: row {zero_row} of X is zero but y is not"
    if status is not Status.CONVERGED and not isinstance(sampler, str) and not np.all(sampler):
        message += "; what has sampler weight zero was never picked"
    storing = max(c.storing for c in outcome.certificates.values())
    if status is Status.CONVERGED and storing > tol / 10:
        message += f"; storing x as {asked.dtype} can add {storing:.0e} to it"
    clean_start = beta0 is None or alpha0 is not None
    x = answer(asked, outcome.beta)
    lost = np.linalg.norm(x.reshape(p, -1).T / asked.scale[:, None] - outcome.beta, axis=1)
    if not (lost <= 1e-3 * np.linalg.norm(outcome.beta, axis=1)).all():
        raise ValueError(f"the solution is too large or too small for {x.dtype}: rescale X or y")
    dual = None if outcome.alpha is None or (asked.alpha == 0 and not clean_start) else answer(asked, outcome.alpha)
    q = len(asked.y)
    result = Result(
        x=x,
        dual=dual if dual is not None and np.isfinite(dual).all() else None,
        status=status,
        message=message,
        solution=_which(asked, route, status, outcome, clean_start),
        method=f"{route} (auto: {story})" if method == "auto" else route,
        sampler=outcome.sampler,
        passes=outcome.passes,
        steps=outcome.steps,
        seconds=time.perf_counter() - began - outcome.compiling,
        copied=asked.copied + outcome.copied,
        tol=tol,
        statuses=[outcome.statuses[i] for i in range(q)],
        certificates=[outcome.certificates[i] for i in range(q)],
        history=outcome.history,
    )
    if status not in (Status.CONVERGED, Status.CALLBACK):
        worst = result.certificate
        reached = f"{MEANING[worst.kind]} = {worst.value:.1e} after {count_passes(result.passes)}, tol {tol:.0e}"
        warnings.warn(f"{reached}: {message}", ConvergenceWarning, stacklevel=2)
    return result


def _whole(
    callback: Callable[[Progress], object], asked: Problem, done: Outcome, stuck: list[int], part: Progress
) -> object:
    """Show a callback all right-hand sides and all work while only some are still being solved."""
    x = part.x
    if not asked.single:
        x = answer(asked, done.beta)
        x[:, stuck] = part.x
    return callback(replace(part, x=x, passes=done.passes + part.passes, steps=done.steps + part.steps))


def _route(
    route: str,
    asked: Problem,
    sampler: Any,
    method: str,
    stop: Stop,
    seed: np.random.SeedSequence,
    beta0: np.ndarray | None,
    alpha0: np.ndarray | None,
    callback: Callable[[Progress], object] | None,
    bar: Bar | None,
    jobs: int,
) -> Outcome:
    """Run one method; what it found in terms of the user's rows, and what it took."""
    given = asked
    if asked.weight is not None and route != "rk":
        given = _scaled(asked)
        if alpha0 is not None:
            root = np.sqrt(asked.weight)
            alpha0 = np.divide(alpha0, root, out=np.zeros_like(alpha0), where=root > 0)
    view = {"rk": rows, "rcd": cols, "rek": both}[route](given)
    if isinstance(sampler, str) and sampler == "auto":
        many_sparse_rows = route == "rk" and sp.issparse(asked.X) and asked.alpha == 0 and asked.X.shape[0] >= 10_000
        kind = "norms" if method != "auto" else "chunks" if many_sparse_rows else "shuffled"
    else:
        kind = sampler
    if route == "rek":
        now = extended.start(given, view, beta0, alpha0)
    elif route == "rk":
        now = coordinate.start_rows(given, view, beta0, alpha0)
    else:
        now = coordinate.start_cols(given, view, beta0)
    before = time.perf_counter()
    compile_for(view, now, kind if isinstance(kind, str) else "norms")
    compiling = time.perf_counter() - before
    source: Any
    if route == "rek":
        source = extended.picks(given, view, now, kind, seed)
    else:
        source = coordinate.picks(view, now, kind, seed, given.weight)
    out = run(given, view, source, now, stop, warm=beta0 is not None, callback=callback, bar=bar, jobs=jobs)
    out.compiling, out.copied = compiling, given.copied - asked.copied + view.copied + out.copied
    out.sampler = kind if isinstance(kind, str) else "weights"
    out.zero_rows = _zero_rows(given, out, stop.tol)
    if route == "rk" and asked.alpha == 0:
        for i in out.zero_rows:
            if out.statuses[i] not in (Status.CONVERGED, Status.CALLBACK):
                out.statuses[i] = Status.INCONSISTENT
    if route == "rcd" and asked.alpha > 0:
        out.alpha = out.residual / asked.alpha  # α* = W(y − Xβ*)/alpha
    if given is not asked and out.alpha is not None and asked.weight is not None:
        out.alpha = out.alpha * np.sqrt(asked.weight)
    return out


def _scaled(asked: Problem) -> Problem:
    """The same problem with √w moved into X and y: columns need it, rows take weights as they are."""
    assert asked.weight is not None
    root = np.sqrt(asked.weight)  # in double precision, also where X is not: rounding X would change the problem
    if sp.issparse(asked.X):
        X = (sp.diags_array(root) @ asked.X).asformat(asked.X.format)
        size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    else:
        X = np.multiply(asked.X, root[:, None], order="K")
        size = X.nbytes
    return asked._replace(X=X, y=asked.y * np.sqrt(asked.weight), weight=None, copied=asked.copied + size)


def _start(x0: Any, asked: Problem) -> tuple[np.ndarray | None, np.ndarray | None]:
    """x0 as (q, p) β and, from an earlier Result that fits, (q, n) α."""
    if x0 is None:
        return None, None
    (q, n), p = asked.y.shape, asked.X.shape[1]
    source, dual = (x0.x, x0.dual) if isinstance(x0, Result) else (x0, None)
    beta = np.array(source)
    if beta.dtype.kind not in "fiubc":
        raise TypeError(f"x0 must be numbers or an earlier Result, got dtype {beta.dtype}")
    if np.iscomplexobj(beta) and not np.iscomplexobj(asked.y):
        raise TypeError("x0 is complex but X and y are real")
    shape = (p,) if asked.single else (p, q)
    if beta.shape != shape:
        raise ValueError(f"x0 must have shape {shape}, got {beta.shape}")
    if not np.isfinite(beta).all():
        raise ValueError("x0 has a NaN or infinity")
    # where y is zero so is the answer, wherever one starts
    scale = np.where(asked.y.any(axis=1), asked.scale, np.inf)[:, None]
    with np.errstate(over="ignore"):
        rows_of = np.ascontiguousarray(beta.reshape(p, -1).T / scale, dtype=asked.y.dtype)
    if not (np.abs(rows_of) < 1e140).all():
        raise ValueError("x0 is too large beside y: rescale it, or start from zero")
    if dual is not None and np.shape(dual) == ((n,) if asked.single else (n, q)):
        alpha = np.ascontiguousarray(np.reshape(dual, (n, -1)).T / scale, dtype=asked.y.dtype)
        if (np.abs(alpha) < 1e140).all():
            return rows_of, alpha
    if not rows_of.any():
        return None, None
    if p > n and asked.alpha == 0:
        warnings.warn(
            "x0 may reach outside the row space of X, and then rows cannot find the minimum-norm solution: start from "
            "zero, or pass an earlier Result of method 'rk' or 'rek' instead of its x",
            StartWarning,
            stacklevel=3,
        )
    return rows_of, None


def _zero_rows(given: Problem, out: Outcome, tol: float) -> dict[int, int]:
    """For each right-hand side that has one, a row of zeros that asks for more than tol‖y‖."""
    found = {}
    counts = None
    for i, (y, r) in enumerate(zip(given.y, out.residual, strict=True)):
        # a row of zeros leaves y_i exactly as it is
        untouched = np.flatnonzero((r == y) & (np.abs(y) > tol * np.linalg.norm(y)))
        if given.weight is not None:
            untouched = untouched[given.weight[untouched] > 0]
        if untouched.size and sp.issparse(given.X):
            if counts is None:
                kept = given.X.tocoo()
                counts = np.bincount(kept.coords[0][kept.data != 0], minlength=given.X.shape[0])
            untouched = untouched[counts[untouched] == 0]
        elif untouched.size:
            parts = (untouched[k : k + 4096] for k in range(0, untouched.size, 4096))
            untouched = next((z for z in (u[~given.X[u].any(axis=1)] for u in parts) if z.size), untouched[:0])
        if untouched.size:
            found[i] = int(untouched[0])
    return found


def _which(asked: Problem, route: str, status: Status, outcome: Outcome, clean_start: bool) -> str:
    """Which solution this is: no more is claimed than the method and its start warrant."""
    if status is not Status.CONVERGED:
        return "not converged"
    if asked.alpha > 0:
        return "ridge"
    exact = all(c.kind == "residual" for c in outcome.certificates.values())
    if route == "rcd" or not clean_start:
        n, p = asked.X.shape
        unclaimed = "one of many" if p > n else "the only one if X has full column rank"
        return f"{'a solution' if exact else 'least squares'} ({unclaimed})"
    return "minimum norm" if exact else "minimum-norm least squares"
