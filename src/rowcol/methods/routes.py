"""From one route to the next: `follow` takes the way a Plan begins."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import scipy.sparse as sp

from ..core.centre import centred_copy, scaled_shift
from ..core.place import Place, until
from ..core.problem import Problem, answer, ridge_of, shared
from ..core.problem import some as some_of
from ..core.threads import lent
from .choose import SIDE_OF, Choice, after
from .conjugate import Seen
from .costs import BY_LINES, gram_passes, sketch_passes
from .direct import Direct
from .given import held_by, scaled, zero_rows
from .loop import Outcome, joined, run
from .movers import mover_of
from .progress import Progress
from .result import Status, count_passes
from .saying import learn
from .still import CUT, cut_by, still
from .stop import Stop
from .way import Way

log = logging.getLogger(__name__)

RACE = 3  # passes allowed from which on there is one: two laps, and something left
COMPILED = 0.5  # seconds: less is the loading of what was compiled before
BY_MATRICES = ("direct", "subset", "sketch", "blocks")  # factors and products of matrices: for BLAS and its threads
ASTRAY = 1e-7  # of ‖β‖ outside the row space, and it is not said to be in it


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
        # where it was rounding, none leaves less than a factor, nor a sketch less than any conjugate gradients
        least = last == "direct" or (isinstance(way.asked.X, Place) and onward is not None and onward[0] == "sketch")
        if onward is None or (least and all(out.statuses[i] is Status.ROUNDING for i in stuck)):
            break
        learn(log, way.learned, _told(last, out, out.statuses[stuck[0]], onward[0]))
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
    if way.stop.max_passes < RACE:
        return None
    lap, began = way.stop._replace(max_passes=1.0), time.perf_counter()
    tried: list[tuple[float, str, Outcome]] = []
    everyone, stopped = list(range(len(way.asked.y))), []

    def watch(done: Outcome | None, part: Progress) -> object:
        """A lap's last round ends by its own limit: that a callback wants to stop is to be remembered."""
        assert way.callback is not None
        end = way.callback(part) if done is None else _whole(way.callback, way.asked, done, everyone, part)
        stopped.append(bool(end))
        return end

    # turned once, and used again by the one that goes on
    X = way.asked.X
    lies = {"rk": X if X.format == "csr" else X.tocsr(), "rcd": X if X.format == "csc" else X.tocsc()}
    turned = sum(held_by(a) for a in lies.values() if a is not X)
    for name in (choice.route, choice.rival):
        seen = None if way.callback is None else partial(watch, tried[0][2] if tried else None)
        asked = way.asked._replace(X=lies[name])
        out = _take(way, asked, name, SIDE_OF[name], choice, beta0, alpha0, lap, seen)
        tried.append((max(c.value for c in out.certificates.values()), name, out))
        if any(stopped):
            left = {i: s if s is Status.CONVERGED else Status.CALLBACK for i, s in out.statuses.items()}
            out.statuses = left
        if not set(out.statuses.values()) <= {Status.PASSES, Status.CONVERGED} or out.all_converged:
            break
    (best, name, first), lost = min(tried, key=lambda one: one[0]), max(tried, key=lambda one: one[0])
    if len(tried) == 2:
        sides = {"rk": "rows", "rcd": "columns"}
        raced = f"raced for a pass: {sides[name]} reached {best:.1e}, {sides[lost[1]]} {lost[0]:.1e}"
        learn(log, way.learned, raced)
        first.passes, first.steps = first.passes + lost[2].passes, first.steps + lost[2].steps
        way.taken.remove(f"{lost[1]} {SIDE_OF[lost[1]]}")
    first.copied = turned + sum(out.copied for *_, out in tried)
    if not set(first.statuses.values()) <= {Status.PASSES, Status.CONVERGED} or first.all_converged:
        return first
    go_on = [i for i, status in first.statuses.items() if status is not Status.CONVERGED]
    spent = time.perf_counter() - began - first.compiling
    stop = way.stop._replace(
        max_passes=way.stop.max_passes - first.passes, max_seconds=max(way.stop.max_seconds - spent, 0.0)
    )
    told = None if way.callback is None else partial(_whole, way.callback, way.asked, first, go_on)
    alpha = None if first.alpha is None else first.alpha[go_on]
    way.taken.pop()
    some = some_of(way.asked._replace(X=lies[name]), go_on)
    more = _take(way, some, name, SIDE_OF[name], choice, first.beta[go_on], alpha, stop, told)
    more.copied = 0  # the same as in its lap
    return joined(first, more, go_on)


def _seen(some: Problem, out: Outcome, where: list[int]) -> Seen | None:
    if out.slope is None:
        return None
    # norms are in the user's units: powers of two
    left = np.array([out.certificates[i].residual_norm for i in where]) / some.scale / np.sqrt(some.gauge)
    return Seen(out.slope[where], left**2)


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
    copy_centred = asked.shift is not None and route in BY_LINES and not sp.issparse(asked.X)
    if copy_centred:
        assert asked.shift is not None
        root = None if asked.weight is None or by_rows else np.sqrt(asked.weight)
        if (root is None) not in way.kept.shifted:
            way.kept.shifted[root is None] = centred_copy(asked.X, asked.shift, root, asked.weight)
        X = way.kept.shifted[root is None]
        given = asked._replace(X=X, shift=None, copied=asked.copied + held_by(X))
        if root is not None:
            given = given._replace(y=asked.y * root, weight=None)
            if alpha0 is not None:
                alpha0 = np.divide(alpha0, root, out=np.zeros_like(alpha0), where=root > 0)
    elif asked.weight is not None and not by_rows:
        if way.kept.scaled is None:
            way.kept.scaled = scaled(asked.X, asked.weight)
        root = np.sqrt(asked.weight)
        given = asked._replace(X=way.kept.scaled, y=asked.y * root, weight=None, shift=scaled_shift(asked.shift, root))
        given = given._replace(copied=asked.copied + held_by(given.X))
        if alpha0 is not None:
            alpha0 = np.divide(alpha0, root, out=np.zeros_like(alpha0), where=root > 0)
    way.compiling = 0.0
    unknowns = min(asked.X.shape) if route in BY_MATRICES else 0
    began, logged = time.perf_counter(), way.log
    try:
        if way.cut is not None:
            raise way.cut
        with lent(unknowns), until(np.inf if logged is not None else began + stop.max_seconds):
            mover, kind, look, compiling, copied = mover_of(way, given, route, side, choice, beta0, alpha0, seen)
    except CUT as why:
        way.cut, mover, kind, look = why, still(given, way.pool, beta0, alpha0), "none", False
        compiling, copied = 0.0, 0
        if logged is not None:
            logged.ended, logged = True, None  # no part of the course
    spent = max(time.perf_counter() - began - compiling - way.compiling, 0.0)
    stop = stop._replace(max_seconds=max(stop.max_seconds - spent, 0.0))
    if compiling + way.compiling > COMPILED:
        log.info("%.1f s went to compiling, which is kept for the next time", compiling + way.compiling)
    with lent(0 if route == "sketch" else unknowns):  # whose steps are products that our threads share
        out = run(
            given,
            mover,
            stop,
            look_first=look,
            callback=callback,
            bar=way.bar,
            otherwise=_otherwise(way, given, route, side),
            column2=way.column2,
            log=logged,
            cut=None if way.cut is None else cut_by(way.cut),
        )
    if out.column2 is not None and (out.column2 >= 0).all():
        way.column2 = out.column2
    out.compiling, out.sampler = compiling + way.compiling, kind
    out.copied = given.copied - asked.copied + getattr(mover, "copied", copied)
    out.zero_rows = zero_rows(given, out, stop.tol) if asked.shift is None else {}
    if route == "rk" and asked.alpha == 0:
        for i in out.zero_rows:
            if out.statuses[i] not in (Status.CONVERGED, Status.CALLBACK):
                out.statuses[i] = Status.INCONSISTENT
    direct = mover if isinstance(mover, Direct) else None
    unknown = out.alpha is None or (direct is not None and not direct.started)  # its own, where x0 was good enough
    if asked.alpha > 0 and unknown and out.residual is not None:
        # α* = W(y − Xβ*)/alpha; nobody asks any more for what is left of those that have converged
        room = out.residual if out.all_converged else None
        out.alpha = np.divide(out.residual, ridge_of(asked, np.arange(len(asked.y))), out=room)
    if asked.weight is not None and given.weight is None and out.alpha is not None:
        out.alpha = out.alpha * np.sqrt(asked.weight)
    if direct is not None and direct.started:
        way.factor, way.row_space = direct.factor, True
        way.kept.factor = way.kept.factor if direct.probe is not None else direct.factor
    if side == "rows" and asked.alpha == 0 and out.alpha is not None and way.column2 is not None:
        # where no β fits, α goes far along what Xᴴ does not see, and rounding takes Xᴴα out of the row space
        travel = getattr(mover, "travel", np.linalg.norm(out.alpha, axis=1))
        lost = 4 * np.finfo(given.X.dtype).eps  # products are as precise as X is stored
        astray = lost * travel * np.sqrt(way.column2.sum()) / np.maximum(np.linalg.norm(out.beta, axis=1), 1e-300)
        if not (astray <= max(ASTRAY, 100 * lost)).all():
            way.row_space, out.alpha = False, None  # nor does α give β any more
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
    # sweeps that fall are not left for plain steps lightly: where no β fits, the plateau is found by other signs; and
    # with a penalty there always is a β: on text, where 25 sweeps do, conjugate gradients take 160 passes
    patient = route == "sgs-cg" or given.alpha > 0
    return {"sketch": sketch_passes(given.X), "sgs-cg": 6.0, "cg": 60.0 if patient else 12.0}.get(onward[0], np.inf)
