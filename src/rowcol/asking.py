"""What was asked of `solve`, and the way it will be answered: parameters validated, a route chosen, a Plan made."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from .core import sampler as samplers
from .core import threads
from .core.place import Place
from .core.problem import Problem, Shift, array_of, precision, real_number, scaled_bounds
from .core.words import shown
from .methods.choose import ROUTES, SIDE_OF, Choice, Plan, after, choose, planned
from .methods.costs import BY_LINES, budget, bytes_of, copies_of
from .methods.kernel_routes import ROUTES as KERNEL_ROUTES
from .methods.log import Log
from .methods.predict import predict
from .methods.progress import Bar, Progress
from .methods.result import Result, dual_here
from .methods.stop import Stop
from .methods.way import Kept

METHODS = ("auto", *ROUTES)
DEFAULT_PASSES = 1000


@dataclass
class How:
    """The parameters of one solve, validated."""

    method: str
    stop: Stop
    sampler: Any
    callback: Callable[[Progress], object] | None
    bar: Bar | None
    memory: int
    jobs: int
    jobs_said: bool  # by n_jobs: BLAS has as many; else no more than that
    seed: np.random.SeedSequence
    many_y: bool = False  # more right-hand sides are to come
    log: Log | None = None  # where to write down what was done
    patience: float = math.inf  # max_seconds as a choice of routes takes it: that of the first of several processes
    team: Any = None  # workers that share products with kernels


def how_to(
    method: Any,
    tol: Any,
    max_passes: Any,
    max_seconds: Any,
    sampler: Any,
    callback: Any,
    progress: Any,
    memory: Any,
    n_jobs: Any,
    random_state: Any,
    kernel: bool = False,
    called: tuple[str, str] = ("method", "max_passes"),
) -> How:
    """Parameters of `solve`, validated before any work; `called` are the names that two of them have where they are."""
    known = ("auto", *KERNEL_ROUTES) if kernel else METHODS
    if not isinstance(method, str) or method not in known:
        said = " with a kernel" if kernel else ""
        raise ValueError(f"{called[0]} must be one of {', '.join(known)}{said}, got {shown(method)}")
    samplers.check(sampler)
    tol = real_number(tol, "tol", above=0.0, below=1.0)
    limit = DEFAULT_PASSES if max_passes is None else real_number(max_passes, called[1], above=0.0)
    seconds = math.inf if max_seconds is None else real_number(max_seconds, "max_seconds", above=0.0)
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be callable, got {type(callback).__name__}")
    if progress is not None and not isinstance(progress, (bool, np.bool_)):
        raise TypeError(f"progress must be None, True or False, got {shown(progress)}")
    if not isinstance(sampler, str) and method not in ("rk", "rcd"):
        raise ValueError(
            f"sampler weights need rows or columns to pick: say method='rk' (one a row) or 'rcd' (one a column), not "
            f"{method!r}"
        )
    if isinstance(sampler, str) and sampler != "auto" and method not in ("auto", "rk", "rcd", "rek", "sgs-cg"):
        raise ValueError(f"method={method!r} picks no rows or columns: leave out sampler")
    bar = Bar(tol) if progress or (progress is None and sys.stderr.isatty()) else None
    jobs = threads.count(n_jobs)
    return How(
        method,
        Stop(tol, limit, seconds),
        sampler,
        callback,
        bar,
        budget(memory),
        jobs,
        n_jobs is not None,
        samplers.seeds(random_state),
        patience=seconds,
    )


def factored(asked: Problem, how: How, kept: Kept) -> bool:
    """Will an X that lies elsewhere be factored, once it has no means? The memory they take may lead elsewhere."""
    if not isinstance(asked.X, Place) or kept.factor is not None:
        return False
    n, p = asked.X.shape
    shift = Shift(np.zeros(p), np.broadcast_to(1.0, n), None, None)
    return choice_for(asked._replace(shift=shift), how, kept).route == "direct"


def choice_for(asked: Problem, how: How, kept: Kept) -> Choice:
    """The route: the one named, or the best one known."""
    n, p = asked.X.shape
    method = how.method
    if asked.bounds is not None:
        return _within_bounds(asked, how, kept)
    if kept.precondition is not None:
        if method not in ("auto", "cg"):
            raise ValueError(f"a preconditioner is for conjugate gradients: method='cg', not {method!r}")
        size = getattr(kept.precondition, "size", p)
        side = "rows" if (size == n and size != p) or (size == n and n < p) else "columns"
        return Choice("cg", side, ["a preconditioner was given: conjugate gradients use it"])
    if method == "auto":
        _pickable(asked, how)
        if how.sampler != "auto" and asked.each is None:  # a sampler is for steps: the paper's own methods
            side = "columns" if n >= p else "rows"
            reason = (
                f"a sampler was named, so single steps; {side}, as X is {'tall' if n >= p else 'wide'} (Sections 3-5)"
            )
            return Choice("rcd" if n >= p else "rk", side, [reason])
        return choose(asked, how.stop.tol, how.memory, how.seed, how.many_y)
    if isinstance(asked.X, Place):
        if method not in ("cg", "direct", "rk", "sketch") or (method == "rk" and asked.shift is not None):
            also = " together with an intercept" if method == "rk" else ""
            raise TypeError(
                f"method={method!r} cannot be used{also} where rows of X lie elsewhere: say method='direct', 'cg', "
                "'sketch' or 'auto', or load X into memory; columns need X column by column"
            )
        if method == "direct" and n < p:
            raise ValueError("method='direct' needs as many rows as columns where rows of X lie elsewhere: say 'cg'")
    elif isinstance(asked.X, LinearOperator) and method not in ("cg", "sketch"):
        raise TypeError(
            f"method={method!r} needs the rows or columns of X, and a LinearOperator has only products: say "
            "method='cg' or 'auto', or pass X as an array or a sparse array"
        )
    _pickable(asked, how)
    if asked.each is not None and method in (*BY_LINES, "subset"):
        raise ValueError(
            f"method={method!r} takes one alpha: solve each by itself, or say method='auto', 'direct' or 'cg', which "
            "share the work"
        )
    if method == "rek" and asked.alpha > 0:
        raise ValueError("method='rek' is for alpha=0: ridge regression is method='rk' (rows) or 'rcd' (columns)")
    if method == "subset" and (asked.alpha > 0 or n < 2 * p):
        raise ValueError(
            f"method='subset' is for alpha=0 and at least twice as many rows as columns, X is {n} x {p}: say 'direct'"
        )
    need = bytes_of(method, asked, copies_of(method, asked))
    if need > how.memory and (method in ("direct", "subset", "sketch", "blocks") or copies_of(method, asked)):
        raise ValueError(
            f"method={method!r} needs about {need / 1e6:,.0f} MB beside X, more than memory={how.memory / 1e6:,.0f} "
            "MB: allow more, or say method='cg' or 'auto'"
        )
    side = SIDE_OF.get(method, "rows" if n < p else "columns")
    if method in ("sgs-cg", "blocks") and asked.alpha > 0 and n == p:
        side = "rows"
    return Choice(method, side, [f"method={method!r} was asked for"])


def _pickable(asked: Problem, how: How) -> None:
    """A sampler needs lines to pick from."""
    name = how.sampler if isinstance(how.sampler, str) else "weights"
    if name == "auto" or not isinstance(asked.X, LinearOperator) or (how.method, name) == ("rk", "shuffled"):
        return
    if isinstance(asked.X, Place):
        raise TypeError(
            "sampler cannot be used where rows of X lie elsewhere, as they come part by part, shuffled: leave out "
            "sampler, or load X into memory"
        )
    raise TypeError(
        "sampler needs the rows or columns of X, and a LinearOperator has only products: leave out sampler, or pass X "
        "as an array or a sparse array"
    )


def _within_bounds(asked: Problem, how: How, kept: Kept) -> Choice:
    """Columns, whose unknowns are β itself: a step that stops at a bound is exact. No other method keeps them."""
    if kept.precondition is not None:
        raise ValueError("a preconditioner is for conjugate gradients, which keep no bounds: leave out one of the two")
    if how.method not in ("auto", "rcd"):
        raise ValueError(f"bounds are kept by columns only: say method='rcd' or 'auto', not {how.method!r}")
    if isinstance(asked.X, LinearOperator):
        where = "where its rows lie elsewhere" if isinstance(asked.X, Place) else "as a LinearOperator"
        raise TypeError(f"bounds need the columns of X: pass it as an array or a sparse array in memory, not {where}")
    if asked.each is not None:
        raise ValueError("bounds take one alpha: solve the right-hand sides of each by themselves")
    copies = copies_of("rcd", asked)
    need = bytes_of("rcd", asked, copies)
    if copies and need > how.memory:
        raise ValueError(
            f"bounds need columns, and these about {need / 1e6:,.0f} MB beside X, more than "
            f"memory={how.memory / 1e6:,.0f} MB: allow more, or pass X in Fortran order or as CSC"
        )
    reasons = ["bounds: only columns can keep them"]
    if how.method == "auto" and how.sampler == "auto":
        reasons.append("after each sweep, the best combination of its move and of those before, within the bounds")
    return Choice("rcd", "columns", reasons)


def plan_of(asked: Problem, how: How, choice: Choice, foretell: bool) -> Plan:
    """The Plan of a Choice, and of where it may lead."""
    then: list[str] = []
    if how.method == "auto":
        tried, route, side = [f"{choice.route} {choice.side}"], choice.route, choice.side
        for _ in range(3):
            onward = None if route == "direct" else after(route, side, asked, how.memory, True, tried)
            if onward is None:
                break
            route, side = onward
            tried.append(f"{route} {side}")
            then.append(route)
    rate, passes = None, None
    if foretell and asked.bounds is None:  # no rate is known within bounds
        rate, passes = predict(asked, choice, how.stop.tol, how.seed)
    return planned(asked, choice, how.stop.tol, how.memory, tuple(then), rate, passes)


def preconditioner_of(given: Any, asked: Problem) -> Any:
    """A user's preconditioner as a function of (q, m) arrays, with its `size` where it has one."""
    if given is None:
        return None
    n, p = asked.X.shape
    if not callable(given) or isinstance(given, LinearOperator):
        operator = (
            given if isinstance(given, LinearOperator) or sp.issparse(given) else array_of(given, "preconditioner")
        )
        if operator.ndim != 2 or operator.shape[0] != operator.shape[1] or operator.shape[0] not in (n, p):
            raise ValueError(f"preconditioner must be {p} x {p} (or {n} x {n}, for rows), got shape {operator.shape}")
        made = _Applied(lambda v: operator @ v, operator.shape[0])
    else:
        made = _Applied(given, p)
    return made


@dataclass
class _Applied:
    f: Callable[[np.ndarray], Any]
    size: int

    def __call__(self, g: np.ndarray) -> np.ndarray:
        out = np.stack([np.array(self.f(v.copy())).reshape(-1) for v in g])
        if out.shape != g.shape:
            raise ValueError(f"preconditioner took a vector of {g.shape[1]} to one of {out.shape[1]}")
        if not np.isfinite(out).all():
            raise ValueError("preconditioner gave a NaN or infinity")
        if np.iscomplexobj(out) and not np.iscomplexobj(g):
            raise TypeError("preconditioner is complex but X and y are real")
        if (np.einsum("qi,qi->q", g.conj(), out).real <= 0)[g.any(axis=1)].any():
            raise ValueError("preconditioner is not positive definite: conjugate gradients need vᴴPv > 0")
        return out.astype(g.dtype, copy=False)


def plan_for(asked: Problem, how: How, kept: Kept) -> Plan:
    """The Plan of a Problem."""
    return plan_of(asked, how, choice_for(asked, how, kept), foretell=True)


def start_of(x0: Any, asked: Problem, rows: bool) -> tuple[np.ndarray | None, np.ndarray | None]:
    """x0 as (q, p) β and, from an earlier Result that fits, (q, n) α: one that is not here comes for rows only."""
    if x0 is None:
        return _inside(np.zeros((len(asked.y), asked.X.shape[1])), asked), None
    (q, n), p = asked.y.shape, asked.X.shape[1]
    source, dual = (x0.x, x0.dual if rows else dual_here(x0)) if isinstance(x0, Result) else (x0, None)
    beta = start_array(source)
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
    if asked.bounds is not None:
        return _inside(rows_of, asked), None
    if dual is not None and np.shape(dual) == ((n,) if asked.single else (n, q)):
        alpha = np.ascontiguousarray(np.reshape(dual, (n, -1)).T / scale, dtype=asked.y.dtype)
        if (np.abs(alpha) < 1e140).all():
            return rows_of, alpha
    if not rows_of.any():
        return None, None
    return rows_of, None


def start_array(source: Any) -> np.ndarray:
    """x0 as an array of numbers, which is not the user's own."""
    beta = array_of(source, "x0")
    if beta.dtype.kind not in "fiubc":
        raise TypeError(f"x0 must be numbers or an earlier Result, got dtype {beta.dtype}")
    with np.errstate(over="ignore"):
        return np.array(beta, precision(beta.dtype, "x0"))


def _inside(beta: np.ndarray, asked: Problem) -> np.ndarray | None:
    """The nearest start within the bounds; None if that is zero."""
    box = scaled_bounds(asked)
    start = beta if box is None else np.clip(beta, *box)
    if not (np.abs(start) < 1e140).all():
        raise ValueError("bounds are too far from zero beside y: rescale X or y")
    return start if start.any() else None
