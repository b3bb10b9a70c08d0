"""Seated: something that stays with every thread of a cluster's workers, each of which has some rows of its own.

A worker that is lost takes its own along. Then nobody's answer counts: whoever asked makes all of it anew, from what is
here, with those who are there by then.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any

from ..core.gram import Gram
from .grounds import Ground, Seat
from .keeping import Lost


class Seated:
    """A cell at every seat of a ground."""

    def __init__(self, ground: Ground, make: Callable[[], Any]) -> None:
        self.ground, self.make = ground, make
        self.seats: list[Seat] = []
        self.cells: list[Any] = []
        self.seen: dict[str, int] = {}
        self.known: list[Gram] = []  # of which everybody has the points
        self.reached = True  # by questions that are no tasks, until one of these is not answered

    def leave(self) -> None:
        """Nobody is seated; Dask forgets cells when they are forgotten here."""
        self.seats, self.cells, self.known = [], [], []

    def changed(self) -> bool:
        """Are others there than those who are seated?"""
        return bool(self.cells) and self.ground.crew.workers() != self.seen

    def sit(self) -> None:
        """A cell for everybody who is there, unless they have one."""
        if self.cells:
            return
        client, name = self.ground.crew.client, f"rowcol-cell-{uuid.uuid4().hex}"
        self.seats, self.seen = self.ground.seats(), self.ground.crew.workers()
        self.cells = [
            client.submit(self.make, key=(name, i), pure=False, workers=[seat.worker], allow_other_workers=True)
            for i, seat in enumerate(self.seats)
        ]

    def ask(
        self,
        f: Callable,
        g: Gram,
        shared: Any,
        own: Callable[[Seat], Any],
        short: bool = False,
        again: bool = True,
    ) -> list[Any] | None:
        """f(cell, points, shared, own) of every seat; None if somebody is gone, or has lost what was there.

        `short`: it takes little, so that it need be no task, once all have answered one. If no answer comes then, it is
        asked for `again`, by tasks, or counts as lost, where f changes what is there and may still be at it.
        """
        short = short and self.reached and any(one is g for one in self.known)
        self.sit()
        crew, common = self.ground.crew, dict[str, Any]()
        times = Counter(seat.worker for seat in self.seats)

        def question(i: int, again: bool) -> tuple[str | None, tuple]:
            if again:  # whoever was asked is gone
                return None, (None, None, None, None)
            seat = self.seats[i]
            if seat.worker not in common:
                # short ones go to a worker in one message, in which what they share is once
                common[seat.worker] = crew.send(shared, seat.worker, 1 if short else times[seat.worker])
            mine = crew.send(own(seat), seat.worker)
            return seat.worker, (self.cells[i], self.ground.given(g, seat), common[seat.worker], mine)

        answers: list[Any] = []
        found = crew.beside(f, [question(i, False) for i in range(len(self.seats))]) if short else None
        self.reached = self.reached and (found is not None or not short)
        if short and found is None and not again:
            return None
        for answer in crew.ask(f, len(self.seats), question) if found is None else found:
            if isinstance(answer, Lost):
                return None
            answers.append(answer)
        if not any(one is g for one in self.known):
            self.known.append(g)
        return answers
