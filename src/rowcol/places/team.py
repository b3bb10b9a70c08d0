"""Team: workers that share the products of a kernel matrix.

Each worker is sent all points once, n·d numbers as tiles in each precision that is used. Then a product sends it v, n
numbers, and it takes rows of tiles by turns, so that shares are even although a tile serves both its sides; n numbers a
thread come back. Of a product with some columns it is sent their numbers, and gives its lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.gram import Gram, alone, bands, bands_of, some_columns
from ..core.memory import laid
from .crew import Crew

BRIEF = 7e9  # entries of a thread, times their work: a tenth of a second. Longer ones are tasks, which Dask shows


class Team:
    """The workers of a crew, and where each has the points."""

    def __init__(self, crew: Crew) -> None:
        self.crew = crew
        self.points: dict[tuple[str, int], Any] = {}  # of a worker and a Gram
        self.known: list[Gram] = []  # kept, so that no other gets their ids
        self.reached = True  # by questions that are no tasks, until one of these is not answered

    def product(self, g: Gram, v: np.ndarray, columns: np.ndarray | None = None) -> np.ndarray:
        """K v, or K[:, columns] v."""
        seats, starts = self.seats(), bands_of(g)
        count, many = len(starts) - 1, min(len(seats), len(starts) - 1)
        if columns is None:  # long rows of tiles and short ones, by turns
            turns = [[*range(many), *reversed(range(many))][b % (2 * many)] for b in range(count)]
            shares: list[Sequence[int]] = [[b for b in range(count) if turns[b] == i] for i in range(many)]
        else:
            ends = [count * i // many for i in range(many + 1)]
            shares = [range(ends[i], ends[i + 1]) for i in range(many)]
        entries = g.shape[0] * (g.shape[0] / 2 if columns is None else columns.size) / many
        there = all((worker, id(g)) in self.points for worker in seats[:many])
        short = self.reached and there and entries * (g.features + 6 + 2 * len(v)) < BRIEF
        common: dict[str, Any] = {}

        def question(i: int, again: bool) -> tuple[str | None, tuple]:
            if again:
                common.clear()
                seats[:] = self.seats()
            worker = seats[i % len(seats)]
            if worker not in common:
                # short ones go to a worker in one message, in which v is once
                threads = 1 if again or short else sum(one == worker for one in seats[:many])
                common[worker] = self.crew.send((v, columns), worker, threads)
            return worker, (self.points_at(g, worker), shares[i], common[worker])

        found = self.crew.beside(kernel_product, [question(i, False) for i in range(many)]) if short else None
        self.reached = self.reached and (found is not None or not short)
        answers = self.crew.ask(kernel_product, many, question) if found is None else found
        out = np.zeros((len(v), g.shape[0]))
        for share, part in zip(shares, answers, strict=True):
            out[:, starts[share[0]] : starts[share[0]] + part.shape[1]] += part
        return out

    def seats(self) -> list[str]:
        """A worker for each of its threads; what was sent to those who left is forgotten."""
        workers = self.crew.workers()
        self.points = {key: one for key, one in self.points.items() if key[0] in workers}
        return [worker for worker, threads in workers.items() for _ in range(threads)]

    def points_at(self, g: Gram, worker: str) -> Any:
        """Where a worker has the points, which it is sent the first time."""
        key = worker, id(g)
        if key not in self.points:
            if not any(one is g for one in self.known):
                self.known.append(g)
            self.points[key] = self.crew.lay(alone(g), worker)
        return self.points[key]


def kernel_product(g: Gram, which: Sequence[int], asked: tuple[np.ndarray, np.ndarray | None]) -> np.ndarray:
    """What rows of tiles add to a product, on a worker."""
    v, columns = asked
    return bands(g if columns is None else some_columns(g, columns), laid(v, g.dtype), which)
