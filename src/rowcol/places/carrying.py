"""There: what steps on blocks carry along, on the workers of a cluster, each of which has its part of it.

A step is one question to every worker: the block's points, or their numbers where workers have all points, what the
step adds to α there, and who is next. Back come a few sums, and of those who are next, their points and residuals:
bytes depend on the block, not on the number of points. α and its companions are here as well. So what a lost worker had
is made anew from them, by a product with K; nothing else is ever lost.
"""

from __future__ import annotations

import logging
from copy import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..core.carried import Carried, Pace, Sums, Trio, at_block, begun, restarted, stepped
from ..core.gram import Gram, product
from ..core.place import cut, stacked
from .crew import TRIES, LostError
from .grounds import Ground, Seat, Step
from .keeping import Lost
from .seating import Seated

log = logging.getLogger(__name__)

NOWHERE = np.empty(0, np.int64)
QUICK = (
    5e8  # entries of a worker's part of a step, times features and 8: 10 ms. Longer ones are tasks, which Dask shows
)


class Change(NamedTuple):
    """Something that is to be done to what workers carry, before the next question."""

    name: str  # a method of Carried; or "begin"
    shared: tuple = ()
    sliced: tuple = ()  # of the length of a column: each worker is sent its own


class Found(NamedTuple):
    """What is known of some points: of one piece, or of a block."""

    points: Any
    r_z: np.ndarray
    r_w: np.ndarray


class Own(NamedTuple):
    """What of a question is for one piece only."""

    first: int  # of the block's points
    at: np.ndarray  # which of its rows these are
    picks: np.ndarray | None
    changes: list[tuple]


class There:
    """What is carried for all rows, as `Here`, but by the workers; α and its companions also here."""

    def __init__(
        self,
        ground: Ground,
        by: Gram,
        lam: np.ndarray,
        x: np.ndarray,
        r: np.ndarray,
        y: np.ndarray,
        root: np.ndarray | None,
    ) -> None:
        self.ground, self.by, self.lam, self.y, self.root = ground, by, lam, y, root
        self.x = begun(x)
        self.known: Sums | None = None  # until they are asked for
        self.before: Sums | None = None  # before the last step
        self.ahead: tuple[np.ndarray, Found] | None = None  # the block to come
        self.block: Any = None  # what is to be sent of the block that was met
        self.looked = False
        self.seated = Seated(ground, Cell)
        self.turn = 0  # questions since all were given their share
        self.begin(self._carried(self.x, begun(r)))

    def begin(self, of: Carried) -> None:
        """The workers that are there share this; it travels with the next question."""
        self.x, self.known, self.before = of.x, None, None
        self.ahead = None
        self.seated.leave()
        self.turn = 0
        self.changes = [Change("begin", (), (*_thrice(of.x), *_thrice(of.r), of.y, of.lam, of.root))]

    @property
    def w(self) -> np.ndarray:
        """α."""
        return self.x.w

    def sums(self) -> Sums:
        """Of all rows."""
        if self.known is None:
            self._ask(self.by, None, NOWHERE)
        assert self.known is not None
        return self.known

    def meet(self, g: Gram, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The entries of a block, and what z leaves at its points, as the last step told, or as they are asked for."""
        if self.looked and self.seated.changed():
            self.begin(self._whole())  # a look is a pass: after it, those who have come since get their share
        if self.ahead is None or not np.array_equal(self.ahead[0], at):
            self.ahead = at, _together([found for _, _, found in self._ask(g, None, at)])
        self.looked = False
        small, self.block = self.ground.met(g, at, self.ahead[1].points)
        return small, self.ahead[1].r_z

    def go(self, g: Gram, at: np.ndarray, d: np.ndarray, pace: Pace, then: np.ndarray) -> Sums:
        """A step, and what the block after it needs."""
        before = self.known
        found = self._ask(g, Step(self.block, d, pace), then, at)
        self.x, self.before, self.block = stepped(self.x, pace, at_block(at, d)), before, None
        self.ahead = then, _together([one for _, _, one in found])
        return self.sums()

    def restart(self, which: np.ndarray) -> None:
        """Begin anew from w, for some right-hand sides."""
        self.x = restarted(self.x, which)
        self.changes.append(Change("restart", (which,)))
        if self.ahead is not None:
            at, found = self.ahead
            self.ahead = at, found._replace(r_z=np.where(which[:, None], found.r_w, found.r_z))

    def back(self) -> None:
        """Begin anew from w as it was before the last step."""
        self.x, self.known, self.ahead = begun(self.x.before), self.before, None
        self.changes.append(Change("back"))

    def fresh(self, place: int, r: np.ndarray) -> None:
        """Begin anew from the true residual, for one right-hand side."""
        self.x, self.known, self.ahead = restarted(self.x, np.arange(len(self.y)) == place), None, None
        self.changes.append(Change("fresh", (place,), (r,)))
        self.looked = True

    def keep(self, mask: np.ndarray) -> None:
        """Go on with some right-hand sides only; with none, workers forget all."""
        self.x, self.y = Trio(*(one[mask] for one in self.x)), self.y[mask]
        self.known, self.before = (_some(one, mask) for one in (self.known, self.before))
        self.changes.append(Change("keep", (mask,)))
        if self.ahead is not None:
            at, (points, r_z, r_w) = self.ahead
            self.ahead = at, Found(points, r_z[mask], r_w[mask])
        if not len(self.y):
            self.seated.leave()
            self.changes = []

    def told(self) -> dict[str, np.ndarray]:
        """All that moves, by name: residuals come here for it."""
        return self._whole().told()

    def put(self, told: dict[str, np.ndarray]) -> None:
        """Go on from there."""
        of = self._carried(self.x, self.x)
        of.put(told)
        self.begin(of)

    def _carried(self, x: Trio, r: Trio) -> Carried:
        return Carried(x, r, self.y, self.lam, self.root)

    def _whole(self) -> Carried:
        r = np.zeros((3, *self.y.shape))
        for rows, _, part in self._ask(self.by, None, None) if len(self.y) else ():
            r[:, :, rows] = part
        return self._carried(self.x, Trio(r[0], r[1], r[2], r[0]))

    def _ask(
        self, g: Gram, step: Step | None, picks: np.ndarray | None, at: np.ndarray = NOWHERE
    ) -> list[tuple[slice, Sums, Any]]:
        """Of every piece: its rows, their sums, and what is known of the picks among them; without picks, residuals."""
        for _ in range(TRIES):
            found = self._answers(g, step, picks, at)
            if found is not None:
                self.changes = []
                self.known = Sums(*(np.sum([sums[i] for _, sums, _ in found], axis=0) for i in (0, 1)))
                return found
            if any(one.name == "begin" for one in self.changes):
                self.seated.leave()  # what they lost is still here
                self.turn = 0
            else:
                log.info("a worker was lost, and with it a part of the residual: a product makes it anew")
                self.begin(self._made_anew())
        raise LostError(f"workers were lost over a step, {TRIES} times: is it too large for them?")

    def _made_anew(self) -> Carried:
        u = np.concatenate(self.x[:3])
        image = product(self.by, u)
        image += self.lam * u
        r = self.y - image.reshape(3, *self.y.shape)
        return self._carried(self.x, Trio(r[0], r[1], r[2], r[0]))

    def _answers(
        self, g: Gram, step: Step | None, picks: np.ndarray | None, at: np.ndarray
    ) -> list[tuple[slice, Sums, Any]] | None:
        """None if somebody does not know what was carried."""
        self.turn += 1
        shared = self.turn, tuple((one.name, one.shared) for one in self.changes), step, self.ground.tasks

        def own(seat: Seat) -> list[Own]:
            return [self._own(rows, picks, at) for rows in seat.pieces]

        entries = 0 if step is None else at.size * self.by.shape[0] / max(len(self.seated.seats), 1)
        short = step is not None and entries * (g.features + 2 + 6 * len(self.y)) < QUICK
        answers = self.seated.ask(carried_on, g, shared, own, short, again=False)
        if answers is None:
            return None
        found = []
        for seat, answer in zip(self.seated.seats, answers, strict=True):
            found += [(rows, *one) for rows, one in zip(seat.pieces, answer, strict=True)]
        return sorted(found, key=lambda one: one[0].start)

    def _own(self, rows: slice, picks: np.ndarray | None, at: np.ndarray) -> Own:
        """What belongs to some rows, which count from zero there."""
        first, stop = np.searchsorted(at, (rows.start, rows.stop)).tolist()
        mine = None if picks is None else picks[slice(*np.searchsorted(picks, (rows.start, rows.stop)))] - rows.start
        changes = [tuple(cut(a, rows) for a in one.sliced) for one in self.changes]
        return Own(first, at[first:stop] - rows.start, mine, changes)


def _thrice(of: Trio) -> tuple[np.ndarray | None, ...]:
    """None for what is the same as the first."""
    return of.w, *(None if one is of.w else one for one in (of.v, of.z))


def _some(sums: Sums | None, mask: np.ndarray) -> Sums | None:
    return None if sums is None else Sums(*(one[mask] for one in sums))


def _together(found: list[Found]) -> Found:
    points = None if found[0].points is None else stacked([one.points for one in found])
    return Found(points, *(np.concatenate([one[i] for one in found], axis=1) for i in (1, 2)))


# --- on a worker -----------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Cell:
    """What one thread of a worker carries, and which question it answered last: so a copy that is late is found out."""

    turn: int = 0
    pieces: list[Carried] = field(default_factory=list)
    answer: Any = None


def carried_on(cell: Cell | None, given: Any, shared: Any, mine: Any) -> Any:
    """Changes, a step if there is one, and of every piece its sums and what is known of the picks."""
    if cell is None:
        return Lost()
    turn, changes, step, (moved_by, points_of) = shared
    fresh = bool(changes) and changes[0][0] == "begin"
    if cell.turn == turn and not fresh:
        return cell.answer  # it was asked before, and the answer was lost on its way
    if cell.turn != turn - 1 and not fresh:
        return Lost()
    pieces: list[Any] = [None] * len(mine) if fresh else [copy(one) for one in cell.pieces]
    answer = []
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # it is found, and said
        moved = None if step is None else moved_by(given, step)
        for i, own in enumerate(mine):
            for (name, args), sliced in zip(changes, own.changes, strict=True):
                if name == "begin":
                    pieces[i] = _begun(*sliced)
                else:
                    getattr(pieces[i], name)(*args, *sliced)
            piece = pieces[i]
            if step is not None and moved is not None:
                piece.step(own.at, step.d[:, own.first : own.first + own.at.size], moved[i], step.pace)
            r, picks = piece.r, own.picks
            told = np.stack(r[:3]) if picks is None else Found(points_of(given, i, picks), r.z[:, picks], r.w[:, picks])
            answer.append((piece.sums(), told))
    cell.turn, cell.pieces, cell.answer = turn, pieces, answer
    return answer


def _begun(w: Any, v: Any, z: Any, r_w: Any, r_v: Any, r_z: Any, *rest: Any) -> Carried:
    """None is what is the same as the first."""
    x, r = ((a, a if b is None else b, a if c is None else c, a) for a, b, c in ((w, v, z), (r_w, r_v, r_z)))
    return Carried(Trio(*x), Trio(*r), *rest)
