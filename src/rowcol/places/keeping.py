"""Keeping: what a method keeps beside every part of X, where that part is, so that it need not travel.

It begins from something, and is changed by short changes, of which each part makes the same: so changes travel, with
the question after them, and what is kept does not. A worker that is lost takes its own along. Then the changes since
all of it was here last are made again, by whoever has the part now, to the same bits; they are kept here for that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..core.place import Place
from .crew import TRIES, LostError, weight

log = logging.getLogger(__name__)


class Keeping:
    """Something beside every part of a place.

    begin : of a part, its number and what `begin` is given: what is kept at first
    change : of a part, what is kept and a change: what is kept then; None, if that cannot be told from a short one
    """

    def __init__(self, place: Place, begin: Callable, change: Callable) -> None:
        self.place, self.tasks = place, (begin, change)
        self.cells: Sequence = place.cells(Cell)
        self.base = self.known = 0  # the turn that all of it was here at; the one that all parts are known to be at
        self.start: tuple[tuple, tuple] = ((), ())
        self.changes: list[Any] = []  # since it was here
        self.short: list[Any] = []  # since all parts answered
        self.spent = 0  # bytes of changes that are kept here
        self.begun = False

    def begin(self, shared: tuple, sliced: tuple) -> None:
        """All begin from this; it travels with the next question."""
        self.here(shared, sliced)
        self.base, self.begun = self.base + 1, False  # behind it are all who have not begun
        self.known = self.base

    def here(self, shared: tuple, sliced: tuple) -> None:
        """This is what they have now: nobody need make again what led to it."""
        self.start, self.base = (shared, sliced), self.base + len(self.changes)
        self.changes, self.short, self.spent = [], [], 0

    def tell(self, change: Any, short: Any = None) -> None:
        """All are to change what they have; the short change will do for those who answered the last question."""
        self.changes.append(change)
        self.spent += weight(change)
        self.short.append(change if short is None else short)

    def map(self, f: Callable, shared: tuple = ()) -> list[Any]:
        """f(part, pool, *shared, what is kept) of every part."""
        found = self._asked(f, shared, self.known, self.short, not self.begun, None)
        for _ in range(TRIES):
            lost = [k for k, one in enumerate(found) if isinstance(one, Lost)]
            if not lost:
                self.known, self.short, self.begun = self.base + len(self.changes), [], True
                return found
            log.info("what %d of %d parts kept was lost with a worker: it is made anew", len(lost), len(found))
            for k, one in zip(lost, self._asked(f, shared, self.base, self.changes, True, lost), strict=True):
                found[k] = one
        raise LostError(f"workers were lost over what they kept, {TRIES} times: is it too large for them?")

    def _asked(
        self, f: Callable, shared: tuple, first: int, changes: list, anew: bool, which: list[int] | None
    ) -> list[Any]:
        given, sliced = self.start if anew else ((), ())
        opening = (len(sliced), *given) if anew else None
        # f comes last of the functions: it is what the task is called by
        asked = *self.tasks, Told(first, changes, opening), f, *shared
        return list(self.place.map(kept_on, asked, sliced, None, which, self.cells))


class Told(NamedTuple):
    """What a part is told with a question."""

    first: int  # the turn before the first of these changes
    changes: list
    opening: tuple | None  # of what is of a part's own, how many; and what all begin from. None: they have begun


# --- on a worker -----------------------------------------------------------------------------------------------------


class Cell:
    """What is kept beside a part, and at which turn that is: so a copy that is behind is found out."""

    def __init__(self, k: int) -> None:
        self.k = k
        self.now: tuple[int, Any] = -1, None  # one value: a task that is left in the middle has changed nothing


class Lost(NamedTuple):
    """What a worker answers that does not know what was kept: it came later, in the place of another."""


def kept_on(
    part: Any, pool: Any, cell: Cell, begin: Callable, change: Callable, told: Told, f: Callable, *rest: Any
) -> Any:
    """What is kept beside a part, brought to the turn of the question; and f of it."""
    many = len(rest) - (0 if told.opening is None else told.opening[0])
    shared, sliced = rest[:many], rest[many:]
    if cell.now[0] < told.first and told.opening is not None:
        cell.now = told.first, begin(part, cell.k, *told.opening[1:], *sliced)
    turn, kept = cell.now
    if turn < told.first:
        return Lost()
    for one in told.changes[turn - told.first :]:
        kept = change(part, kept, one)
        if kept is None:
            return Lost()
        turn += 1
        cell.now = turn, kept
    return f(part, pool, *shared, kept)
