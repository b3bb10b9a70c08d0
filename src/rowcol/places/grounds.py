"""Grounds: who of a cluster has which rows of a kernel matrix, and what of a block of points has to travel.

`Apart`: every worker has points of its own, and those of a block go to all. `Shared`: every worker has all points.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..core.carried import Pace
from ..core.gram import (
    Gram,
    alone,
    bands,
    bands_of,
    between,
    block,
    cross,
    facing,
    picked,
    product,
    some_columns,
    tiles_of,
    written,
)
from .cluster import Spread
from .crew import Crew
from .team import Team


class Seat(NamedTuple):
    """A thread of a worker, and which rows it has, piece by piece."""

    worker: str
    pieces: list[slice]
    parts: Any  # how the ground knows them


class Step(NamedTuple):
    """A block, and what it adds to α."""

    block: Any  # its points, or their numbers
    d: np.ndarray
    pace: Pace


class Ground(Protocol):
    """Who has which points, and what of a block must travel."""

    @property
    def tasks(self) -> Any:
        """What workers do: how a step moves their rows, and which of a piece's points are picked."""

    @property
    def lines(self) -> Any:
        """What workers do to make lines of K, of their own columns."""

    @property
    def crew(self) -> Crew:
        """The workers."""

    def seats(self) -> list[Seat]:
        """Who is there now."""

    def given(self, g: Gram, seat: Seat) -> Any:
        """What a task at that seat is given of the points: as it lies there."""

    def few(self, g: Gram, at: np.ndarray) -> Any:
        """What of some points is to be sent, so that workers make their lines of K."""

    def met(self, g: Gram, at: np.ndarray, points: Any) -> tuple[np.ndarray, Any]:
        """The entries of a block, and what is to be sent of it."""


@dataclass
class Apart:
    """Every worker has points of its own, and no other: those of a block travel."""

    place: Spread

    @property
    def tasks(self) -> Any:
        """As functions that workers know."""
        return _moved_apart, _points_apart

    @property
    def lines(self) -> Any:
        """The points that were sent, against their parts."""
        return _lines_apart

    @property
    def crew(self) -> Crew:
        """The workers."""
        return self.place.crew

    def seats(self) -> list[Seat]:
        """The parts of a worker, shared out among its threads."""
        self.place.settle()
        found = []
        for worker, threads in self.place.seen.items():
            mine = [k for k, owner in enumerate(self.place.owners) if owner == worker]
            shares = [mine[i::threads] for i in range(threads)]
            found += [Seat(worker, [self.place.rows(k) for k in share], share) for share in shares if share]
        return [seat._replace(parts=[self.place.futures[k] for k in seat.parts]) for seat in found]

    def given(self, g: Gram, seat: Seat) -> Any:
        """Its parts."""
        return seat.parts

    def few(self, g: Gram, at: np.ndarray) -> Any:
        """The points."""
        return replace(alone(picked(g, at)), far=None)

    def met(self, g: Gram, at: np.ndarray, points: Any) -> tuple[np.ndarray, Any]:
        """The points of a block are here, as all workers that had some sent them."""
        few = between(replace(alone(g), far=None), points)
        return written(few).astype(np.float64), few


@dataclass
class Shared:
    """Every worker has all points: their numbers will do."""

    g: Gram
    team: Team

    @property
    def tasks(self) -> Any:
        """As functions that workers know."""
        return _moved_shared, _points_shared

    @property
    def lines(self) -> Any:
        """Some points against those of their rows of tiles."""
        return _lines_shared

    @property
    def crew(self) -> Crew:
        """The workers."""
        return self.team.crew

    def seats(self) -> list[Seat]:
        """Rows of tiles, shared out evenly."""
        workers, starts = self.team.seats(), bands_of(self.g)
        count = len(starts) - 1
        many = min(len(workers), count)
        ends = [count * i // many for i in range(many + 1)]
        shares = [range(ends[i], ends[i + 1]) for i in range(many)]
        return [Seat(workers[i], [slice(starts[s.start], starts[s.stop])], s) for i, s in enumerate(shares)]

    def given(self, g: Gram, seat: Seat) -> Any:
        """All points, and which rows of tiles are its own."""
        return self.team.points_at(g, seat.worker), seat.parts

    def few(self, g: Gram, at: np.ndarray) -> Any:
        """Their numbers."""
        return at

    def met(self, g: Gram, at: np.ndarray, points: Any) -> tuple[np.ndarray, Any]:
        """All points are here, and there."""
        return block(g, at, at), at


def ground_of(g: Gram) -> Ground | None:
    """Where workers can carry what is theirs; None: it is carried here."""
    if g.team is not None:
        return Shared(g, g.team)
    if g.far is not None and isinstance(g.far.place, Spread):
        return Apart(g.far.place)
    return None


# --- on a worker -----------------------------------------------------------------------------------------------------


def _moved_apart(given: Any, step: Step) -> list[np.ndarray]:
    return [product(cross(step.block, part), step.d) for part in given]


def _moved_shared(given: Any, step: Step) -> list[np.ndarray]:
    g, share = given
    return [bands(some_columns(g, step.block), np.ascontiguousarray(step.d, dtype=g.dtype), share)]


def _lines_apart(given: Any, few: Gram) -> np.ndarray:
    return np.concatenate([written(facing(few, part)) for part in given], axis=1)


def _lines_shared(given: Any, few: np.ndarray) -> np.ndarray:
    g, share = given
    return written(tiles_of(picked(g, few), share))


def _points_apart(given: Any, i: int, picks: np.ndarray) -> Any:
    return given[i][picks]


def _points_shared(given: Any, i: int, picks: np.ndarray) -> Any:
    return None
