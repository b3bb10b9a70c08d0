"""What a solve has done so far, written down or kept, so that another one can go on from there to the same bits.

A solve is a course of runs of the one loop: laps of a race, one route and the next, one penalty and the next. The same
X, y, parameters and seed lead through the same runs. So a solve that goes on begins as it did at first, and makes the
same Movers; runs that were done return what was written down, and the one that was not goes on within. No route need
know. Nothing may then be decided by the clock but the end; what was all the same (`facts`) is written down too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np

from ..core.certify import Certificate
from .result import CheckpointWarning, History, Status, warn
from .states import like
from .stop import Watch

SHARE = 10  # of the time between two, writing may take one part
COPYING = 20  # and keeping a copy in memory one of these


@dataclass
class Log:
    """The runs of a solve, and where they are written.

    With `keeps` a copy of what was done up to some round is kept in memory, too: of a round that no limit of passes has
    shortened, so that a solve with another limit may go on from it.
    """

    name: str  # of the file
    save: Callable[[dict[str, Any]], None] | None  # None: there is no file
    seconds: float = 30.0  # between two writings; zero: after every round
    passes: float | None = None  # or so many passes, whichever comes first
    runs: list[dict[str, Any] | None] = field(default_factory=list)  # done, but for the last; None: to be run again
    facts: dict[str, Any] = field(default_factory=dict)  # what the clock decided
    spent: float = 0.0  # seconds, by processes before this
    begun: int = 0  # runs, by this process
    ended: bool = False  # by the clock or a callback: what comes after is not part of the course
    failed: bool = False
    exists: bool = False  # is there a file that was written before?
    keeps: bool = False
    kept: dict[str, Any] = field(default_factory=dict)  # as it is saved
    limit: float = inf  # of passes, of all runs
    copied: tuple[float, float] = (0.0, 0.0)  # when the copy was made, and how long that took
    began: float = field(default_factory=time.perf_counter)
    last: tuple[float, float, float] = (0.0, 0.0, 0.0)  # when it was written, at which passes, and how long that took

    def __post_init__(self) -> None:
        self.last = (time.perf_counter(), 0.0, 0.0)

    def begin(self) -> dict[str, Any] | None:
        """A run begins: what is known of it."""
        self.begun += 1
        self.last = (self.last[0], 0.0, self.last[2])
        if self.begun > len(self.runs):
            self.runs.append(None)
        return self.runs[self.begun - 1]

    def offer(self, state: Callable[[], dict[str, Any] | None], passes: float, now: bool) -> None:
        """A round is over: write, if it is time or has to be now, as there will be no more of them."""
        at, at_passes, took = self.last
        since = time.perf_counter() - at
        due = since >= max(self.seconds, (SHARE - 1) * took if self.seconds else 0.0)
        due = due or (self.passes is not None and passes - at_passes >= self.passes)
        if not self.ended and self.save is not None and (due or now):
            began = time.perf_counter()
            self.runs[self.begun - 1] = state()
            self._write(passes, began)
        if not self.ended and self.keeps:
            self._keep(state, now)
        self.ended = self.ended or now

    def finish(self, state: Callable[[], dict[str, Any] | None]) -> None:
        """A run is done. What it found is changed by those after it: so a copy is kept."""
        if not self.ended:
            self.runs[self.begun - 1] = deepcopy(state())

    def close(self) -> None:
        """The solve is done: so is the file."""
        if not self.ended and self.save is not None:
            self._write(0.0, time.perf_counter())
        self.ended = True

    def recalled(self, name: str) -> int | None:
        """What the clock decided, before the run to come."""
        known = self.facts.get(f"{name} {self.begun}")
        return known if type(known) is int else None

    def note(self, name: str, value: int) -> None:
        """The clock decided."""
        self.facts[f"{name} {self.begun}"] = value

    def _keep(self, state: Callable[[], dict[str, Any] | None], now: bool) -> None:
        """A copy of all that, if it is time, and if it would be the same without a limit of passes."""
        began, before = time.perf_counter(), self.runs[: self.begun - 1]
        at, took = self.copied
        spent = sum(one["outcome"]["passes"] for one in before if one is not None)
        if (not now and began - at < (COPYING - 1) * took) or spent >= self.limit * (1 - 1e-12):
            return
        last = state()
        if last is None or (last["ended"] != "PASSES" and not last["shortened"]):
            done = {"runs": [*before, deepcopy(last)], "facts": dict(self.facts)}
            self.kept = done | {"seconds": self.spent + began - self.began}
        self.copied = time.perf_counter(), time.perf_counter() - began

    def _write(self, passes: float, began: float) -> None:
        assert self.save is not None
        try:
            self.save({"runs": self.runs, "facts": self.facts, "seconds": self.spent + began - self.began})
            self.exists = True
        except OSError as wrong:
            if not self.failed:
                left = "the last one stays as it is" if self.exists else "there is none"
                warn(f"no checkpoint could be written, and {left}: {wrong}", CheckpointWarning)
            self.failed = True
        now = time.perf_counter()
        self.last = (now, passes, now - began)


# --- a run as plain data, and back -----------------------------------------------------------------------------------

ARRAYS = ("beta", "residual", "alpha", "column2", "slope")
WATCHED = ("estimate", "factor", "looked", "suspect", "stuck_at", "next_doubt", "flat_at", "rate", "doubts")


def told(out: Any, watches: list[Watch], mover: Any, ended: Status | None, done: bool) -> dict[str, Any] | None:
    """A run, at the end of a round or of its own; None if its Mover would rather begin anew."""
    state = mover.state()
    if state is None:
        return None
    history, q = out.history, len(out.beta)
    numbers = [[float(getattr(w, name)) for name in WATCHED] for w in watches]
    tracks = [[(*a, *b) for a, b in zip(w.rounds, w.track, strict=True)] for w in watches]
    return {
        "done": done,
        "ended": None if ended is None else ended.name,
        "shortened": bool(getattr(mover, "shortened", False)),
        "mover": state,
        "outcome": {name: getattr(out, name) for name in ARRAYS}
        | {"passes": float(out.passes), "steps": int(out.steps), "rate": float(out.rate), "at_start": int(out.at_start)}
        | {"statuses": [[int(i), s.name] for i, s in out.statuses.items()]}
        | {"certificates": _looks([(0.0, i, c) for i, c in out.certificates.items()])},
        "history": {
            "passes": np.array(history.passes, float),
            "seconds": np.array(history.seconds, float),
            "energy": np.array(history.energy, float).reshape(-1, q),
            "check_seconds": float(history.check_seconds),
            "looks": _looks(history.certificate),
        },
        "watches": np.array(numbers, float).reshape(q, len(WATCHED)),
        "rounds": np.array([len(one) for one in tracks], np.int64),
        "tracks": np.array([row for one in tracks for row in one], float).reshape(-1, 4),
    }


def gone_on(log: Log, known: Any, out: Any, watches: list[Watch], mover: Any) -> tuple[Status | None, bool]:
    """Set all that to what was told; how the run was about to end, if it was, and whether it is done."""
    try:
        known = deepcopy(known)  # what is found will be changed, and is to be written again as it is
        return _retold(known, out, watches, mover), _of(known["done"], bool)
    except MemoryError:
        raise
    except Exception as wrong:  # whatever forged data lead to
        told = (str(wrong).splitlines() or [type(wrong).__name__])[0][:200]
        raise ValueError(
            f"checkpoint: {log.name} is damaged: {told}; remove it to begin anew, or name another file"
        ) from wrong


def _retold(known: dict[str, Any], out: Any, watches: list[Watch], mover: Any) -> Status | None:
    found, past, q = known["outcome"], known["history"], len(out.beta)
    for name in ARRAYS:
        now = getattr(out, name)
        setattr(out, name, _of(found[name], type(None)) if now is None else like(found[name], now.shape, now.dtype))
    for name, kind in (("passes", float), ("steps", int), ("rate", float), ("at_start", int)):
        setattr(out, name, _of(found[name], kind))
    out.statuses = {_within(i, q): Status[name] for i, name in found["statuses"]}
    out.certificates = {i: c for _, i, c in _looked(found["certificates"], q)}
    passes = past["passes"]
    rounds = len(passes)
    out.history = History(
        like(passes, (rounds,)).tolist(),
        like(past["seconds"], (rounds,)).tolist(),
        list(like(past["energy"], (rounds, q))),
        _looked(past["looks"], q),
        _of(past["check_seconds"], float),
    )
    numbers, counts = like(known["watches"], (q, len(WATCHED))), like(known["rounds"], (q,), np.int64)
    tracks = like(known["tracks"], (int(counts.sum()), 4))
    for watch, row, rows in zip(watches, numbers.tolist(), np.split(tracks, np.cumsum(counts)[:-1]), strict=True):
        for name, value in zip(WATCHED, row, strict=True):
            setattr(watch, name, type(getattr(watch, name))(value))
        watch.rounds = [(int(steps), gain) for steps, gain in rows[:, :2].tolist()]
        watch.track = [(at, estimate) for at, estimate in rows[:, 2:].tolist()]
    mover.restore(known["mover"])
    if (
        sorted([*mover.ids.tolist(), *out.statuses]) != list(range(q))
        or not out.statuses.keys() <= out.certificates.keys()
    ):
        raise ValueError("a right-hand side is lost")
    return None if known["ended"] is None else Status[known["ended"]]


def _looks(found: list[tuple[float, int, Certificate]]) -> dict[str, Any]:
    """Looks as columns: there may be thousands."""
    numbers = [(at, *c[1:6], np.nan if c.error_bound is None else c.error_bound) for at, _, c in found]
    return {
        "which": np.array([i for _, i, _ in found], np.int64),
        "kind": [c.kind for *_, c in found],
        "numbers": np.array(numbers, float).reshape(-1, 7),
        "bounded": np.array([c.error_bound is not None for *_, c in found], bool),
        "exhausted": np.array([bool(c.exhausted) for *_, c in found], bool),
    }


def _looked(found: dict[str, Any], q: int) -> list[tuple[float, int, Certificate]]:
    kinds = [_of(kind, str) for kind in found["kind"]]
    k = len(kinds)
    rows = like(found["numbers"], (k, 7)).tolist()
    which = [_within(i, q) for i in like(found["which"], (k,), np.int64).tolist()]
    bounded, over = (like(found[name], (k,), bool).tolist() for name in ("bounded", "exhausted"))
    return [
        (row[0], i, Certificate(kind, row[1], row[2], row[3], row[4], row[5], row[6] if known else None, end))
        for i, kind, row, known, end in zip(which, kinds, rows, bounded, over, strict=True)
    ]


def _of(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise ValueError(f"a {kind.__name__} is something else")
    return value


def _within(i: Any, q: int) -> int:
    if type(i) is not int or not 0 <= i < q:
        raise ValueError("there is no such right-hand side")
    return i
