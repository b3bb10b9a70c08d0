"""The one loop: advance, watch, look, stop. A Mover advances, by whatever method; everything else is here."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..core.certify import Certificate, Evidence, certify, certify_residual, hopeless
from ..core.explain import explain_values
from ..core.place import Late, until
from ..core.problem import Problem, answer
from ..core.sums import stays
from ..core.view import size
from .log import Log, gone_on, told
from .progress import Bar, Progress, watched
from .result import History, Status, count_passes
from .stop import Stop, Watch, due, slow, verdict

log = logging.getLogger(__name__)

LARGE = 1_000_000  # numbers in X: from here on the residual is looked at first, alone, where it should vanish


class Round(NamedTuple):
    """What one advance did."""

    passes: float  # over X
    steps: int
    gain: np.ndarray  # (q,) what the objective fell by, twice
    estimate: np.ndarray  # (q,) of the certificate, for nothing; zero asks for a look now
    stuck: np.ndarray | None = None  # (q,) which cannot be improved any more by this method


class Mover(Protocol):
    """A method on its way to some answers: the right-hand sides `ids` of a Problem."""

    by: Any  # Products, or the Gram of a kernel: what the answers are certified by
    patience: float  # passes before gains may be called flat

    @property
    def ids(self) -> np.ndarray:
        """The right-hand sides still moving."""

    @property
    def needs_solution(self) -> bool:
        """Flat gains may mean that no β fits: rows, without a penalty."""

    def advance(self, room: float, deadline: float) -> Round:
        """Move on by a round: at most about `room` passes, and not much beyond the deadline."""

    def answers(self) -> tuple[np.ndarray, np.ndarray | None]:
        """β as (q, p) and, where it is kept, α with β = Xᴴα as (q, n)."""

    def learn(self, place: int, evidence: Evidence, k: int) -> None:
        """An exact look was taken at ids[place], and its k-th finding is about it: drift never certifies itself."""

    def keep(self, mask: np.ndarray) -> None:
        """Go on with some right-hand sides only."""

    def column_norms(self) -> np.ndarray | None:
        """‖X_j‖², if known."""

    def state(self) -> dict[str, Any] | None:
        """What moves, as plain data; None if it had better begin anew, as all it does is a round or two."""

    def restore(self, told: dict[str, Any]) -> None:
        """Go on from there: of a Mover made in the same way. A ValueError, or the like, if that cannot be."""


@dataclass
class Outcome:
    """What a run found, right-hand side by right-hand side, and what it took."""

    beta: np.ndarray  # (q, p)
    residual: np.ndarray | None  # (q, n); None where it `stays` with parts of X
    alpha: np.ndarray | None  # (q, n)
    certificates: dict[int, Certificate] = field(default_factory=dict)
    statuses: dict[int, Status] = field(default_factory=dict)
    passes: float = 0.0
    steps: int = 0
    history: History = field(default_factory=History)
    zero_rows: dict[int, int] = field(default_factory=dict)  # a row of zeros that asks for something
    sampler: str = ""
    copied: int = 0
    compiling: float = 0.0  # seconds
    column2: np.ndarray | None = None  # ‖X_j‖², if they became known
    slope: np.ndarray | None = None  # (q, p) XᴴWρ, as the last look found it
    at_start: int = 0  # right-hand sides whose start was good enough
    rate: float = float("nan")  # what the estimate fell by, a pass, at the end

    @property
    def all_converged(self) -> bool:
        """Did every right-hand side reach the tolerance?"""
        return set(self.statuses.values()) == {Status.CONVERGED}


def run(
    problem: Problem,
    mover: Mover,
    stop: Stop,
    *,
    look_first: bool = False,
    callback: Callable[[Progress], object] | None = None,
    bar: Bar | None = None,
    otherwise: float = np.inf,
    column2: np.ndarray | None = None,
    log: Log | None = None,
    cut: Status | None = None,
) -> Outcome:
    """Advance until every right-hand side has its verdict; or, where it was `cut` short already, only look.

    `otherwise` is what another method would take, in passes: one that is predicted to take longer is left. With a
    `log` the clock ends no round before its time, so that all of them are the same in any process.
    """
    began = time.perf_counter()
    q, (n, p) = len(problem.y), problem.X.shape
    beta, alpha = mover.answers()
    # zeros take no memory before they are written to, and every answer is written down by the look that ends it
    out = Outcome(beta.copy(), None, None if alpha is None else np.zeros((q, n), alpha.dtype))
    if not stays(mover.by, alpha if problem.alpha > 0 else None, problem.alpha > 0):
        out.residual = np.zeros((q, n), beta.dtype)
    out.column2, out.slope = np.full(p, -1.0) if column2 is None else column2, np.zeros_like(out.beta)
    watches = [Watch() for _ in range(q)]
    ended: Status | None = None  # by its own limits; what cuts it short is the clock, or a callback
    past = None if log is None else log.begin()
    if log is not None and past is not None:
        ended, done = gone_on(log, past, out, watches, mover)
        if done:
            return out
    before, deadline = (out.history.seconds or [0.0])[-1], np.inf if log is not None else began + stop.max_seconds
    plain_rows = problem.alpha == 0 and mover.needs_solution
    aim = getattr(mover, "aim", 0.5)

    with ExitStack() as stack:
        if bar is not None:
            stack.enter_context(watched(bar))
        if look_first and past is None:
            _look(problem, mover, np.ones(q, bool), watches, stop, out, None, plain_rows)
            out.at_start = len(out.statuses)
        try:
            while mover.ids.size and ended is None and cut is None:
                ids = mover.ids
                with until(deadline):
                    now = mover.advance(stop.max_passes - out.passes, deadline)
                if not np.isfinite(now.gain).all():
                    raise ValueError(explain_values(problem.X))
                out.steps += now.steps
                out.passes += now.passes
                _record(out, now.gain / max(now.steps, 1), ids, q)
                for i, value, gained in zip(ids, now.estimate, now.gain, strict=True):
                    watches[i].estimate = float(value)
                    watches[i].track.append((out.passes, float(value)))
                    watches[i].rounds.append((now.steps, float(gained)))
                late = time.perf_counter() - began > stop.max_seconds
                which = np.array([due(watches[i], stop, out.passes, mover.patience, aim) for i in ids], bool)
                stuck = np.zeros(ids.size, bool) if now.stuck is None else now.stuck
                if (which | stuck).any():
                    _look(problem, mover, which | stuck, watches, stop, out, None, plain_rows, stuck)
                if out.passes >= stop.max_passes * (1 - 1e-12):
                    ended = Status.PASSES
                if ended is None and any(slow(watches[i], stop, otherwise) for i in mover.ids):
                    ended, out.rate = Status.SLOW, watches[mover.ids[0]].rate
                latest = out.history.certificate[-1][2] if out.history.certificate else None
                out.history.seconds[-1] = spent = before + time.perf_counter() - began  # its look counts, too
                if bar is not None:
                    worst = max((w.factor * w.estimate for w in watches), default=0.0)
                    bar.show(out.passes, spent, latest, worst)
                if callback is not None:
                    out.beta[mover.ids] = mover.answers()[0]
                    x = answer(problem, out.beta)
                    if callback(Progress(out.passes, out.steps, spent, x, latest)):
                        cut = Status.CALLBACK
                cut = Status.SECONDS if late else cut
                if log is not None and mover.ids.size:
                    log.offer(partial(told, out, watches, mover, ended, False), out.passes, now=cut is not None)
        except KeyboardInterrupt:  # once: what is there is looked at, and returned; twice is taken as meant
            cut = Status.INTERRUPTED
            if log is not None:
                log.ended = True  # this round is not whole: what was written before it stays
        except Late:
            cut = Status.SECONDS
        if mover.ids.size:
            if cut is Status.SECONDS or (cut is not None and ended in (None, Status.SLOW)):
                ended = cut
            _look(problem, mover, np.ones(mover.ids.size, bool), watches, stop, out, ended, plain_rows)
    if log is not None:
        log.finish(partial(told, out, watches, mover, None, True))
    return out


def _look(
    problem: Problem,
    mover: Mover,
    which: np.ndarray,
    watches: list[Watch],
    stop: Stop,
    out: Outcome,
    otherwise: Status | None,
    plain_rows: bool,
    stuck: np.ndarray | None = None,
) -> None:
    """Certify some right-hand sides, write down what was found, and let go of those that are done."""
    began = time.perf_counter()
    assert out.column2 is not None
    norms = mover.column_norms()
    if norms is not None:
        out.column2[:] = norms
    beta, alpha = mover.answers()
    some = mover.ids[which]
    if not which.all():
        beta, alpha = beta[which], None if alpha is None else alpha[which]
    evidence = None
    if plain_rows and min(w.factor * w.estimate for w in watches) <= stop.tol and size(problem.X) >= LARGE:
        evidence = certify_residual(problem, mover.by, beta, some, stop.tol)
    if evidence is None:
        expected = mover.expected() if hasattr(mover, "expected") else None
        expected = expected if expected is None or which.all() else expected[which]
        evidence = certify(problem, mover.by, beta, alpha, some, out.column2, expected)
    if some.size == len(out.beta):  # of all: kept as it is, as one more vector of n numbers may not fit
        out.residual = evidence.residual
    done, anew, telling = np.zeros(mover.ids.size, bool), [], log.isEnabledFor(logging.DEBUG)
    for k, (place, i) in enumerate(zip(np.flatnonzero(which), some, strict=True)):
        found = evidence.certificates[k]
        out.history.certificate.append((out.passes, int(i), found))
        out.certificates[int(i)] = found
        out.beta[i] = beta[k]
        if out.residual is not None and out.residual is not evidence.residual:
            out.residual[i] = evidence.residual[k]
        if out.slope is not None and evidence.slope.size:
            out.slope[i] = evidence.slope[k]
        # as many steps as there were passes: asking costs no more than was spent
        ask = partial(hopeless, problem, mover.by, beta[k], int(i), int(out.passes)) if plain_rows else None
        status = verdict(watches[i], stop, out.passes, found, ask) or otherwise
        if status is None and stuck is not None and stuck[place]:
            status = Status.ROUNDING if found.exhausted else Status.STALLED
            if ask is not None and mover.patience < np.inf and ask():
                status = Status.PLATEAU
        if status not in (None, Status.CONVERGED) and plain_rows and _lost(problem, int(i), found):
            # conjugate gradients by rows run away where no β fits: nothing is nearer than that
            found = _begin_again(problem, mover, int(i), out)
            anew.append(i)
            status = (
                Status.CONVERGED if found.value <= stop.tol else Status.PLATEAU
            )  # for y outside X's range it is zero
        if telling:
            _tell(out, int(i), status)
        if status is not None:
            out.statuses[int(i)] = status
            done[place] = True
        else:
            mover.learn(int(place), evidence, k)
    if out.alpha is not None and alpha is not None and done.any():
        over = done[which]  # α of those that are done comes here now, if it was not
        out.alpha[some[over]] = np.asarray(alpha if over.all() else alpha[over])
        out.alpha[anew] = 0.0
    out.history.check_seconds += time.perf_counter() - began
    if done.any():
        mover.keep(~done)


def _tell(out: Outcome, i: int, status: Status | None) -> None:
    said = "go on" if status is None else status.name
    found = out.certificates[i]
    passes = count_passes(out.passes)
    log.debug("look after %s of this run, right-hand side %d: %s %.2e: %s", passes, i, found.kind, found.value, said)


def _lost(problem: Problem, i: int, found: Certificate) -> bool:
    """Is an answer so far off that zero would be nearer, beside ‖W^½y‖ in the user's units?"""
    root = 1.0 if problem.weight is None else np.sqrt(problem.weight * problem.gauge)
    size = float(np.linalg.norm(root * problem.y[i]) * problem.scale[i])
    return not (found.rounding <= 0.1 and found.residual_norm <= 1e3 * size)


def _begin_again(problem: Problem, mover: Mover, i: int, out: Outcome) -> Certificate:
    """Leave β = 0, and its certificate, for a right-hand side."""
    assert out.column2 is not None
    zero, ids = np.zeros((1, problem.X.shape[1]), out.beta.dtype), np.array([i])
    evidence = certify(problem, mover.by, zero, None, ids, out.column2)
    out.certificates[i], out.beta[i] = evidence.certificates[0], zero[0]
    if out.residual is not None:
        out.residual[i] = evidence.residual[0]
    out.history.certificate.append((out.passes, i, evidence.certificates[0]))
    if out.slope is not None:
        out.slope[i] = evidence.slope[0]
    return out.certificates[i]


def _record(out: Outcome, energy: np.ndarray, ids: np.ndarray, q: int) -> None:
    out.history.passes.append(out.passes)
    out.history.seconds.append((out.history.seconds or [0.0])[-1])  # until its look is over
    out.history.energy.append(_spread(energy, ids, q))


def joined(first: Outcome, second: Outcome, where: list[int]) -> Outcome:
    """The first run, with the right-hand sides `where` taken from the second, and the work of both."""
    a, b = first.history, second.history
    history = History(
        a.passes + [first.passes + v for v in b.passes],
        a.seconds + [(a.seconds or [0.0])[-1] + v for v in b.seconds],
        a.energy + [_spread(v, where, len(first.beta)) for v in b.energy],
        a.certificate + [(first.passes + v, where[i], c) for v, i, c in b.certificate],
        a.check_seconds + b.check_seconds,
    )
    first.beta[where] = second.beta
    if first.residual is not None and second.residual is not None:
        first.residual[where] = second.residual
    if first.slope is not None and second.slope is not None:
        first.slope[where] = second.slope
    alpha = first.alpha
    if alpha is not None and second.alpha is not None:
        alpha[where] = second.alpha
    elif len(where) or second.alpha is None:
        alpha = None  # of some it is not known
    return Outcome(
        first.beta,
        first.residual if second.residual is not None else None,
        alpha,
        first.certificates | {where[i]: c for i, c in second.certificates.items()},
        first.statuses | {where[i]: s for i, s in second.statuses.items()},
        first.passes + second.passes,
        first.steps + second.steps,
        history,
        first.zero_rows | {where[i]: row for i, row in second.zero_rows.items()},
        second.sampler,
        first.copied + second.copied,
        first.compiling + second.compiling,
        first.column2 if second.column2 is None else second.column2,
        slope=first.slope,
        at_start=first.at_start,
        rate=second.rate,
    )


def _spread(values: np.ndarray, where: list[int] | np.ndarray, q: int) -> np.ndarray:
    full = np.full(q, np.nan)
    full[where] = values
    return full
