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

from ..core.centre import scaled_shift, shifted
from ..core.problem import Problem, answer, ridge_of, shared
from ..core.problem import some as some_of
from ..core.products import Products, back, of_view, products
from ..core.sampler import sampler as make_sampler
from ..core.sampler import take
from ..core.view import both, cols, rows, unknowns
from . import coordinate, extended
from .blocks import blocks
from .bounded import bounded
from .choose import SIDE_OF, Choice, after
from .conjugate import Precondition, Seen, conjugate, jacobi, sweeps
from .costs import BY_LINES, gram_passes, sketch_passes
from .factor import Direct, Factor, direct, probe
from .given import held_by, scaled, zero_rows
from .loop import Mover, Outcome, joined, run
from .progress import Bar, Progress
from .result import Status, count_passes
from .shifted import shifted as shifted_cg
from .sketch import OVERSAMPLE, Sketched, full_sketch, low_rank
from .stop import Stop

ASTRAY = 1e-7  # of ‖β‖ outside the row space, and it is not said to be in it


@dataclass
class Kept:
    """What can be used again for other right-hand sides of the same X."""

    scaled: Any = None  # √w X
    shifted: Any = None  # that without the means of its columns, where lines are stepped on
    factor: Factor | None = None
    sketch: dict[str, Sketched] = field(default_factory=dict)
    precondition: Precondition | None = None  # the user's own

    @property
    def bytes(self) -> int:
        """Memory kept."""
        held = sum(held_by(a) for a in (self.scaled, self.shifted) if a is not None)
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

    def __post_init__(self) -> None:
        if self.asked.shift is not None and self.asked.shift.column2 is not None:
            self.column2 = self.asked.shift.column2.copy()


def follow(way: Way, choice: Choice, beta0: np.ndarray | None, alpha0: np.ndarray | None) -> Outcome:
    """Take the chosen route and, on the way of "auto", go on by another, warm, where it is slow or stuck."""
    began = time.perf_counter()
    out = _race(way, choice, beta0, alpha0) if choice.rival else None
    if out is None:
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
        some = some_of(way.asked, stuck)
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


def _race(way: Way, choice: Choice, beta0: np.ndarray | None, alpha0: np.ndarray | None) -> Outcome | None:
    """A pass of rows and a pass of columns from the same start; the one with the better certificate goes on."""
    assert choice.rival is not None
    if way.stop.max_passes < 3:
        return None
    lap, began, tried = way.stop._replace(max_passes=1.0), time.perf_counter(), []
    for name in (choice.route, choice.rival):
        out = _take(way, way.asked, name, SIDE_OF[name], choice, beta0, alpha0, lap, way.callback)
        tried.append((max(c.value for c in out.certificates.values()), name, out))
        if not set(out.statuses.values()) <= {Status.PASSES, Status.CONVERGED} or out.all_converged:
            break
    (best, name, first), lost = min(tried, key=lambda one: one[0]), max(tried, key=lambda one: one[0])
    if len(tried) == 2:
        sides = {"rk": "rows", "rcd": "columns"}
        way.learned.append(f"raced for a pass: {sides[name]} reached {best:.1e}, {sides[lost[1]]} {lost[0]:.1e}")
        first.passes, first.steps = first.passes + lost[2].passes, first.steps + lost[2].steps
        way.taken.remove(f"{lost[1]} {SIDE_OF[lost[1]]}")
    if not set(first.statuses.values()) <= {Status.PASSES, Status.CONVERGED} or first.all_converged:
        return first
    go_on = [i for i, status in first.statuses.items() if status is not Status.CONVERGED]
    spent = time.perf_counter() - began - first.compiling
    stop = way.stop._replace(
        max_passes=way.stop.max_passes - first.passes, max_seconds=max(way.stop.max_seconds - spent, 0.0)
    )
    watch = None if way.callback is None else partial(_whole, way.callback, way.asked, first, go_on)
    alpha = None if first.alpha is None else first.alpha[go_on]
    way.taken.pop()
    more = _take(way, some_of(way.asked, go_on), name, SIDE_OF[name], choice, first.beta[go_on], alpha, stop, watch)
    return joined(first, more, go_on)


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
        given = asked._replace(X=way.kept.scaled, y=asked.y * root, weight=None, shift=scaled_shift(asked.shift, root))
        given = given._replace(copied=asked.copied + held_by(given.X))
        if alpha0 is not None:
            alpha0 = np.divide(alpha0, root, out=np.zeros_like(alpha0), where=root > 0)
    if given.shift is not None and route in BY_LINES:
        if way.kept.shifted is None:
            way.kept.shifted = shifted(given.X, given.shift)
        given = given._replace(X=way.kept.shifted, shift=None, copied=given.copied + held_by(way.kept.shifted))
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
    out.zero_rows = zero_rows(given, out, stop.tol) if asked.shift is None else {}
    if route == "rk" and asked.alpha == 0:
        for i in out.zero_rows:
            if out.statuses[i] not in (Status.CONVERGED, Status.CALLBACK):
                out.statuses[i] = Status.INCONSISTENT
    if asked.alpha > 0 and out.alpha is None:
        out.alpha = out.residual / ridge_of(asked, np.arange(len(asked.y)))  # α* = W(y − Xβ*)/alpha
    if asked.weight is not None and given.weight is None and out.alpha is not None:
        out.alpha = out.alpha * np.sqrt(asked.weight)
    if isinstance(mover, Direct):
        if mover.started:
            way.factor, way.row_space = mover.factor, True
            way.kept.factor = way.kept.factor if mover.probe is not None else mover.factor
        elif asked.alpha > 0:  # the user's own x0 was good enough
            out.alpha = out.residual / ridge_of(asked, np.arange(len(asked.y)))
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
        base = shared(given)
        return gram_passes(given.X, len(given.y) if base is None else int(base.max()) + 1)
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
    if route in BY_LINES:
        return _by_lines(way, given, route, side, beta0, alpha0)
    by = products(given.X, way.pool, given.shift)
    if alpha0 is not None and beta0 is not None and seen is None:
        beta0 = back(by, alpha0)  # of this X, and of the rows that count
    if route == "direct":
        factor = way.kept.factor
        if factor is not None and (factor.kind == "spectrum") != (given.each is not None):
            factor = None  # made for one alpha, or for many
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
    base = shared(given) if precondition is None and beta0 is None else None
    if base is not None:
        return shifted_cg(given, by, where, base, way.stop.tol), "none", False, 0.0, 0
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
        # neighbours in a row are read quickly, but are often alike: with a penalty they took five times the passes
        many_sparse_rows = side == "rows" and sp.issparse(given.X) and given.X.shape[0] >= 10_000
        kind = "chunks" if many_sparse_rows and given.alpha == 0 else "shuffled"
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
