"""F of a preconditioner on the workers of a cluster, each of which has the columns of its own points.

A block of pivots travels to all: their points, or their numbers where workers have all points, what F knows of them,
and the inverse of their factor. Then workers make their columns. Here come the diagonal, F of those that are drawn,
FFᵀ and, in every step, as many numbers as F has lines and one for each point. All blocks are kept here, in all as long
as FFᵀ: from them F is made anew, where a worker was lost, by those that are there then.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..core.gram import Gram
from ..core.lowrank import LowRank
from ..core.threads import single_blas, workers_of
from .crew import TRIES, LostError
from .grounds import Ground, Seat, ground_of
from .keeping import Lost
from .seating import Seated

log = logging.getLogger(__name__)

SHARE = 0.25  # of the workers' memory: so much F may take
PACE = 1.2e11  # multiplications and additions a second and thread, in single precision
PRICE = 0.25  # seconds: two questions more in each of some twenty steps, of 4 ms, and two for every block of pivots
SHORT = ("columns", "times", "back")  # questions that only read F
BRIEF = 2.5e8  # numbers of F a thread that these may read, times columns: a tenth of a second


class Block(NamedTuple):
    """Pivots that were drawn together."""

    few: Any  # their points, or numbers
    unit: float
    seen: np.ndarray  # (m, ·) F of them, transposed
    inverse: np.ndarray  # (m, m)


class Told(NamedTuple):
    """What all are told with a question."""

    rank: int
    first: int  # blocks that they had when they answered last
    blocks: list[Block]  # since then
    lines: Any  # how they make lines of K
    name: str  # of what they are asked: a method of LowRank


class LowRankThere:
    """F, as `LowRank`, but kept by the workers."""

    def __init__(self, ground: Ground, g: Gram, rank: int) -> None:
        self.ground, self.g, self.rank, self.known = ground, g, rank, 0
        self.seated = Seated(ground, Cell)
        self.blocks: list[Block] = []
        self.answered = 0  # blocks that all who are seated have

    def columns(self, which: np.ndarray) -> np.ndarray:
        """F of some points."""
        order, out = np.argsort(which), np.empty((self.known, which.size), np.float32)
        inside = which[order]
        if not self.known:
            return out

        def mine(seat: Seat) -> tuple:
            return (np.concatenate([_within(inside, rows) + at for rows, at in _laid_out(seat)]),)

        for seat, found in self._ask("columns", mine):
            places = np.concatenate([np.arange(*np.searchsorted(inside, (r.start, r.stop))) for r in seat.pieces])
            out[:, order[places]] = found
        return out

    def take(self, g: Gram, chosen: np.ndarray, unit: float, seen: np.ndarray, inverse: np.ndarray) -> np.ndarray:
        """A block of pivots more; the question that it travels with is what falls by it."""
        self.blocks.append(Block(self.ground.few(g, chosen), unit, seen, inverse))
        first, self.known = self.known, self.known + chosen.size
        return self._along(self._ask("fallen", lambda seat: (first, first + chosen.size)))

    def squared(self) -> np.ndarray:
        """Sums of what each has."""
        if not self.known:
            return np.empty((0, 0), np.float32)
        return _added([found for _, found in self._ask("squared", lambda seat: ())])

    def weighed(self, shape: np.ndarray, rest: bool, room: int) -> np.ndarray:
        """Sums of what each has."""
        return _added([found for _, found in self._ask("weighed", lambda seat: (_own(shape, seat), rest, room))])

    def times(self, u: np.ndarray) -> np.ndarray:
        """Sums of what each has."""
        return np.asarray(sum(found for _, found in self._ask("times", lambda seat: (_own(u, seat),), len(u))))

    def back(self, w: np.ndarray) -> np.ndarray:
        """Of each, its own columns."""
        return self._along(self._ask("back", lambda seat: (w,), len(w)))

    def _along(self, found: list[tuple[Seat, np.ndarray]]) -> np.ndarray:
        out = np.empty((*found[0][1].shape[:-1], self.g.shape[0]), found[0][1].dtype)
        for seat, one in found:
            for rows, at in _laid_out(seat):
                out[..., rows] = one[..., at : at + rows.stop - rows.start]
        return out

    def _ask(self, name: str, own: Any, many: int = 1) -> list[tuple[Seat, Any]]:
        """What everybody answers, in the order of seats; of so many columns."""
        for _ in range(TRIES):
            told = Told(self.rank, self.answered, self.blocks[self.answered :], self.ground.lines, name)
            read = self.known * self.g.shape[0] * many / max(len(self.seated.seats), 1)
            found = self.seated.ask(low_rank, self.g, told, own, name in SHORT and read < BRIEF)
            if found is not None:
                self.answered = len(self.blocks)
                return list(zip(self.seated.seats, found, strict=True))
            log.info("a worker was lost, and with it columns of the preconditioner: they are made anew")
            self.seated.leave()
            self.answered = 0
        raise LostError(f"workers were lost over the preconditioner, {TRIES} times: is it too large for them?")


def low_rank_there(g: Gram, rank: int) -> LowRankThere | None:
    """F on the workers, where that is the better place: they have the points, or threads that save more than it costs.

    None: it is made here, as where it would take too much of their memory. Nothing of this looks at the clock.
    """
    ground = ground_of(g)
    if ground is None or 4 * rank * g.shape[0] > SHARE * ground.crew.memory():
        return None
    here, there = workers_of(g.pool), sum(ground.crew.workers().values())
    saved = 2.0 * g.shape[0] * rank**2 / PACE * (1 / here - 1 / there)
    return LowRankThere(ground, g, rank) if g.far is not None or saved > PRICE else None


def _laid_out(seat: Seat) -> list[tuple[slice, int]]:
    """Its rows, piece by piece, and where each piece begins among its columns of F."""
    lengths = [rows.stop - rows.start for rows in seat.pieces]
    return list(zip(seat.pieces, np.cumsum([0, *lengths[:-1]]).tolist(), strict=True))


def _within(which: np.ndarray, rows: slice) -> np.ndarray:
    """Those of these rows, which count from zero there."""
    return which[slice(*np.searchsorted(which, (rows.start, rows.stop)))] - rows.start


def _own(a: np.ndarray, seat: Seat) -> np.ndarray:
    return np.concatenate([a[..., rows] for rows in seat.pieces], axis=-1)


def _added(found: list[np.ndarray]) -> np.ndarray:
    total = found[0].copy()
    for one in found[1:]:
        total += one
    return total


# --- on a worker -----------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Cell:
    """F of one seat, and how many blocks it is made of."""

    low: LowRank | None = None
    turn: int = 0


def low_rank(cell: Cell | None, given: Any, told: Told, own: Any) -> Any:
    """The blocks that are new, and an answer."""
    if cell is None or cell.turn < told.first:
        return Lost()
    with single_blas(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for block in told.blocks[cell.turn - told.first :]:
            lines = told.lines(given, block.few)
            lines *= lines.dtype.type(block.unit)
            if cell.low is None:
                cell.low = LowRank(np.empty((told.rank, lines.shape[1]), np.float32))
            cell.low.grow(lines.astype(np.float32, copy=False), block.seen, block.inverse)
            cell.turn += 1
        assert cell.low is not None, "nothing is asked before a block is there"
        return getattr(cell.low, told.name)(*own)
