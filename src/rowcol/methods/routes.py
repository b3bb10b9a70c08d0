"""From a route's name to a Mover, and from one route to the next: `follow` takes the way a Plan begins."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from ..core.problem import Problem, answer
from ..core.products import Products, back, of_view, products
from ..core.sampler import sampler as make_sampler
from ..core.sampler import take
from ..core.view import both, cols, rows, unknowns
from . import coordinate, extended
from .blocks import blocks
from .bounded import bounded
from .choose import SIDE_OF, Choice, after, gram_passes, sketch_passes
from .conjugate import Precondition, Seen, conjugate, jacobi, sweeps
from .factor import Direct, Factor, direct, probe
from .loop import Mover, Outcome, joined, run
from .progress import Bar, Progress
from .result import Status, count_passes
from .sketch import OVERSAMPLE, Sketched, full_sketch, low_rank
from .stop import Stop

ASTRAY = 1e-7  # of ‖β‖ outside the row space, and it is not said to be in it


@dataclass
class Kept:
    """What can be used again for other right-hand sides of the same X."""

    scaled: Any = None  # √w X
    factor: Factor | None = None
    sketch: dict[str, Sketched] = field(default_factory=dict)
    precondition: Precondition | None = None  # the user's own

    @property
    def bytes(self) -> int:
        """Memory kept."""
        held = 0 if self.scaled is None else _bytes(self.scaled)
        return held + (0 if self.factor is None else self.factor.bytes) + sum(f.bytes for f in self.sketch.values())


@dataclass
class Way:
    """What every route of one solve shares."""

    asked: Problem
    sampler: Any
    stop: Stop
    seed: np.random.SeedSequence
    memory: int
    callback: Callable[[Progress], object] | None
    bar: Bar | None
    pool: Executor | None
    jobs: int
    kept: Kept
    auto: bool
    learned: list[str] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)
    row_space: bool = True  # is the β of this route in the row space, by construction?
    proven: bool = True  # and those of all routes by which a right-hand side converged?
    factor: Factor | None = None  # of all of X, where one was made
    column2: np.ndarray | None = None  # ‖W^½X_j‖², once known


def follow(way: Way, choice: Choice, beta0: np.ndarray | None, alpha0: np.ndarray | None) -> Outcome:
    """Take the chosen route and, on the way of "auto", go on by another, warm, where it is slow or stuck."""
    began = time.perf_counter()
    out = _take(way, way.asked, choice.route, choice.side, choice, beta0, alpha0, way.stop, way.callback)
    for _ in range(4):
        left = {Status.SLOW, Status.STALLED, Status.PLATEAU, Status.INCONSISTENT, Status.ROUNDING}
        stuck = [i for i, status in out.statuses.items() if status in left]
        if not way.auto or not stuck or set(out.statuses.values()) - left - {Status.CONVERGED}:
            break
        falling = out.rate < 0.9
        last, side = way.taken[-1].split(" ")
        onward = after(last, side, way.asked, way.memory, falling, way.taken)
        if onward is None or (all(out.statuses[i] is Status.ROUNDING for i in stuck) and last == "direct"):
            break
        way.learned.append(_told(last, out, out.statuses[stuck[0]], onward[0]))
        if way.stop.max_passes - out.passes <= 0:
            break
        spent = time.perf_counter() - began - out.compiling
        stop = way.stop
        stop = stop._replace(max_passes=stop.max_passes - out.passes, max_seconds=max(stop.max_seconds - spent, 0.0))
        some = way.asked._replace(y=way.asked.y[stuck], scale=way.asked.scale[stuck])
        watch = None if way.callback is None else partial(_whole, way.callback, way.asked, out, stuck)
        alpha = None if out.alpha is None else out.alpha[stuck]
        warm = way.asked.alpha > 0 or way.row_space or onward[1] == "columns"
        beta = out.beta[stuck] if warm else None
        alpha = alpha if warm else None
        seen = _seen(some, out, stuck) if warm else None
        more = _take(way, some, onward[0], onward[1], None, beta, alpha, stop, watch, seen)
        out = joined(out, more, stuck)
    # left for another route, but there was no pass left for it
    out.statuses = {i: Status.PASSES if status is Status.SLOW else status for i, status in out.statuses.items()}
    return out


def _seen(some: Problem, out: Outcome, where: list[int]) -> Seen | None:
    if out.slope is None:
        return None
    left2 = np.abs(out.residual[where]) ** 2
    return Seen(out.slope[where], (left2 if some.weight is None else left2 * some.weight).sum(axis=1))


def _told(route: str, out: Outcome, status: Status, onward: str) -> str:
    anew = "solves it anew" if onward == "direct" else "goes on from there"
    after_so_many = f"{route}, after {count_passes(out.passes)}"
    if status is Status.SLOW:
        pace = f"the error falls by {out.rate:.2g} a pass" if out.rate < 1 else "the error does not fall"
        return f"{after_so_many}: {pace}; {onward} is predicted to be quicker, and {anew}"
    why = {
        Status.PLATEAU: "plateau: inconsistent, or as good as",
        Status.INCONSISTENT: "a row of zeros asks for something: inconsistent",
        Status.ROUNDING: "rounding errors are left",
    }.get(status, "no more progress")
    return f"{after_so_many}: {why}; {onward} {anew}"


def _whole(
    callback: Callable[[Progress], object], asked: Problem, done: Outcome, stuck: list[int], part: Progress
) -> object:
    """Show a callback all right-hand sides and all work while only some are still being solved."""
    x = part.x
    if not asked.single:
        x = answer(asked, done.beta)
        x[:, stuck] = part.x
    seconds = part.seconds + (done.history.seconds or [0.0])[-1]
    whole = replace(part, x=x, passes=done.passes + part.passes, steps=done.steps + part.steps, seconds=seconds)
    return callback(whole)


def _take(
    way: Way,
    asked: Problem,
    route: str,
    side: str,
    choice: Choice | None,
    beta0: np.ndarray | None,
    alpha0: np.ndarray | None,
    stop: Stop,
    callback: Callable[[Progress], object] | None,
    seen: Seen | None = None,
) -> Outcome:
    """Run one method; what it found in terms of the user's rows, and what it took."""
    way.taken.append(f"{route} {side}")
    way.row_space = beta0 is None or way.row_space
    given = asked
    by_rows = route == "rk" or (route == "sgs-cg" and side == "rows")
    if asked.weight is not None and not by_rows:
        if way.kept.scaled is None:
            way.kept.scaled = scaled(asked.X, asked.weight)
        root = np.sqrt(asked.weight)
        given = asked._replace(X=way.kept.scaled, y=asked.y * root, weight=None)
        given = given._replace(copied=asked.copied + _bytes(given.X))
        if alpha0 is not None:
            alpha0 = np.divide(alpha0, root, out=np.zeros_like(alpha0), where=root > 0)
    mover, kind, look, compiling, copied = _mover(way, given, route, side, choice, beta0, alpha0, seen)
    out = run(
        given,
        mover,
        stop,
        look_first=look,
        callback=callback,
        bar=way.bar,
        otherwise=_otherwise(way, given, route, side),
        column2=way.column2,
    )
    if out.column2 is not None and (out.column2 >= 0).all():
        way.column2 = out.column2
    out.compiling, out.sampler = compiling, kind
    out.copied = given.copied - asked.copied + getattr(mover, "copied", copied)
    out.zero_rows = zero_rows(given, out, stop.tol)
    if route == "rk" and asked.alpha == 0:
        for i in out.zero_rows:
            if out.statuses[i] not in (Status.CONVERGED, Status.CALLBACK):
                out.statuses[i] = Status.INCONSISTENT
    if asked.alpha > 0 and out.alpha is None:
        out.alpha = out.residual / asked.alpha  # α* = W(y − Xβ*)/alpha
    if given is not asked and out.alpha is not None and asked.weight is not None:
        out.alpha = out.alpha * np.sqrt(asked.weight)
    if isinstance(mover, Direct):
        if mover.started:
            way.factor, way.row_space = mover.factor, True
            way.kept.factor = way.kept.factor if mover.probe is not None else mover.factor
        elif asked.alpha > 0:  # the user's own x0 was good enough
            out.alpha = out.residual / asked.alpha
    if side == "rows" and asked.alpha == 0 and out.alpha is not None and way.column2 is not None:
        # where no β fits, α goes far along what Xᴴ does not see, and rounding takes Xᴴα out of the row space
        travel = getattr(mover, "travel", np.linalg.norm(out.alpha, axis=1))
        lost = 4 * np.finfo(given.X.dtype).eps  # products are as precise as X is stored
        astray = lost * travel * np.sqrt(way.column2.sum()) / np.maximum(np.linalg.norm(out.beta, axis=1), 1e-300)
        way.row_space = way.row_space and bool((astray <= max(ASTRAY, 100 * lost)).all())
    if Status.CONVERGED in out.statuses.values():
        way.proven = way.proven and way.row_space
    return out


def _otherwise(way: Way, given: Problem, route: str, side: str) -> float:
    """What the next route would take, in passes."""
    if not way.auto or route in ("direct", "subset", "rek"):
        return np.inf
    onward = after(route, side, way.asked, way.memory, True, way.taken)
    if onward is None:
        return np.inf
    if onward[0] == "direct":
        return gram_passes(given.X, len(given.y))
    # sweeps that fall are not left for plain steps lightly: where no β fits, the plateau is found by other signs
    return {"sketch": sketch_passes(given.X), "sgs-cg": 6.0, "cg": 60.0 if route == "sgs-cg" else 12.0}.get(
        onward[0], np.inf
    )


def _mover(
    way: Way,
    given: Problem,
    route: str,
    side: str,
    choice: Choice | None,
    beta0: np.ndarray | None,
    alpha0: np.ndarray | None,
    seen: Seen | None,
) -> tuple[Mover, str, bool, float, int]:
    """The Mover of a route, its sampler's name, whether to look first, seconds compiling and bytes copied."""
    if route in ("rk", "rcd", "rek", "sgs-cg", "blocks"):
        return _by_lines(way, given, route, side, beta0, alpha0)
    by = products(given.X, way.pool)
    if alpha0 is not None and beta0 is not None and seen is None:
        beta0 = back(by, alpha0)  # of this X, and of the rows that count
    if route == "direct":
        factor = way.kept.factor
        if factor is not None and np.iscomplexobj(factor.upper) and not np.iscomplexobj(given.y):
            factor = None  # made for a complex y
        return direct(given, by, factor, None, beta0), "none", beta0 is not None and seen is None, 0.0, 0
    if route == "subset":
        sample = choice.sample if choice is not None else None
        if sample is None or given.weight is not None:
            sample = probe(given, way.seed, min(2 * given.X.shape[1], given.X.shape[0]))
        return direct(given, by, None, sample, beta0), "uniform", beta0 is not None, 0.0, sample.X.nbytes
    where = "rows" if side == "rows" else "cols"
    precondition: Any = way.kept.precondition
    if route == "sketch":
        precondition = _sketch(way, given, by, where)
        start, precondition.start = precondition.start, None  # it is this y's own
        beta0 = start if beta0 is None else beta0
        # by columns, the few directions of a low-rank sketch are in the row space up to 1e-8 or so only
        way.row_space = way.row_space and where == "rows"
    if precondition is None and where == "cols" and given.X.shape[0] >= given.X.shape[1]:
        precondition = jacobi(given, by, way.seed, way.column2)
        way.row_space = way.row_space and precondition is None
    mover = conjugate(given, by, where, beta0, alpha0 if where == "rows" else None, precondition, seen)
    if way.column2 is not None:
        mover.column = np.sqrt(way.column2)  # so that it knows its certificate as it goes
    if route == "sketch":
        mover.spent = 4.0
    look = beta0 is not None and seen is None
    if way.kept.precondition is not None:
        way.row_space = False
    return mover, "none", look, 0.0, 0


def _sketch(way: Way, given: Problem, by: Products, where: str) -> Sketched:
    n, p = given.X.shape
    kept = way.kept.sketch.get(where)
    if kept is not None and np.iscomplexobj(given.y) < any(
        np.iscomplexobj(a) for a in (kept.upper, kept.U) if a is not None
    ):
        del way.kept.sketch[where]  # made for a complex y
    if where not in way.kept.sketch:
        made = None
        if not isinstance(given.X, LinearOperator) and max(n, p) >= 2 * OVERSAMPLE * min(n, p):
            made = full_sketch(given, way.seed)
        way.kept.sketch[where] = made or low_rank(given, by, where, way.seed)
    return way.kept.sketch[where]


def _by_lines(
    way: Way, given: Problem, route: str, side: str, beta0: np.ndarray | None, alpha0: np.ndarray | None
) -> tuple[Mover, str, bool, float, int]:
    view = {"rows": rows, "columns": cols, "both": both}[SIDE_OF.get(route, side)](given)
    kind = way.sampler
    if isinstance(kind, str) and kind == "auto":
        many_sparse_rows = side == "rows" and sp.issparse(given.X) and given.X.shape[0] >= 10_000
        kind = "chunks" if many_sparse_rows else "shuffled"
        if route in ("sgs-cg", "blocks"):
            kind = "cyclic"
        elif not way.auto:
            kind = "norms"
    if view.side == "both":
        now = extended.start(given, view, beta0, alpha0)
    elif view.side == "rows":
        now = coordinate.start_rows(given, view, beta0, alpha0)
    else:
        now = coordinate.start_cols(given, view, beta0)
    before = time.perf_counter()
    coordinate.compile_for(view, now, kind if isinstance(kind, str) else "norms")
    compiling = time.perf_counter() - before
    name, warm = kind if isinstance(kind, str) else "weights", beta0 is not None
    by = of_view(given.X, view, way.pool)
    mover: Mover
    if route == "sgs-cg":
        order = take(make_sampler(kind, view.b.shape[1], way.seed), view.b.shape[1])
        mover = sweeps(given, view, now, by, order, way.jobs)
    elif route == "blocks":
        mover = blocks(given, view, by, unknowns(view, now), now.s.copy(), way.seed)
    else:
        source: Any
        if view.side == "both":
            source = extended.picks(given, view, now, kind, way.seed)
        else:
            source = coordinate.picks(view, now, kind, way.seed, given.weight)
        plain = coordinate.coordinate(given, view, source, now, way.pool, way.jobs)
        # a named method or sampler takes single steps, as always
        mover = bounded(plain) if given.bounds is not None and way.auto and way.sampler == "auto" else plain
    # dependent lines make the small systems of blocks nearly singular, and β leaves the row space by rounding
    if (view.side == "cols" or route == "blocks") and given.alpha == 0:
        way.row_space = False
    elif view.side == "both":
        way.row_space = way.row_space or alpha0 is not None
    return mover, name, warm, compiling, view.copied


def scaled(X: Any, weight: np.ndarray) -> Any:
    """√w X: columns need it, rows take weights as they are."""
    root = np.sqrt(weight)  # in double precision, also where X is not: rounding X would change the problem
    if isinstance(X, LinearOperator):
        return _scaled_operator(X, root)
    if sp.issparse(X):
        each = root[X.indices] if X.format == "csc" else np.repeat(root, np.diff(X.indptr))
        return type(X)((X.data * each, X.indices, X.indptr), shape=X.shape)
    return np.multiply(X, root[:, None], order="K")


def _scaled_operator(X: LinearOperator, root: np.ndarray) -> LinearOperator:
    return LinearOperator(
        X.shape,
        matvec=lambda v: root * np.asarray(X.matvec(v)).reshape(-1),
        rmatvec=lambda u: X.rmatvec(root * np.asarray(u).reshape(-1)),
        dtype=X.dtype,
    )


def _bytes(X: Any) -> int:
    if isinstance(X, LinearOperator):
        return 0
    return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else X.nbytes


def zero_rows(given: Problem, out: Outcome, tol: float) -> dict[int, int]:
    """For each right-hand side that has one, a row of zeros that asks for more than tol‖y‖."""
    found: dict[int, int] = {}
    counts = None
    if isinstance(given.X, LinearOperator):
        return found
    for i, (y, r) in enumerate(zip(given.y, out.residual, strict=True)):
        if out.certificates[i].value <= tol and out.certificates[i].kind == "residual":
            continue
        # a row of zeros leaves y_i exactly as it is
        untouched = np.flatnonzero(r == y)
        if not untouched.size:
            continue
        untouched = untouched[np.abs(y[untouched]) > tol * np.linalg.norm(y)]
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
