"""LowRank: K ≈ FᵀF, F thin and in single precision; of all columns of K, or of those that one worker has.

A column of F needs nothing of other columns but of the pivots: so F is made, and used, columns by columns, by threads
that share them or by workers that keep them. What a sum over all columns needs of each is as short as F is thin.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import scipy.linalg

from .gram import Gram, picked, written
from .recipes import Scaled
from .threads import AHEAD, by_threads


class Thin(Protocol):
    """F, wherever it is; `known` counts its lines so far."""

    known: int

    def columns(self, which: np.ndarray) -> np.ndarray:
        """F of some points, (known, ·)."""

    def take(self, g: Gram, chosen: np.ndarray, unit: float, seen: np.ndarray, inverse: np.ndarray) -> np.ndarray:
        """A block of pivots more; by how much the diagonal of what is left of K falls.

        seen : (m, known) F of these pivots, transposed
        inverse : (m, m) of the Cholesky factor of what was left of `unit` K at them
        """

    def squared(self) -> np.ndarray:
        """FFᵀ, its lower triangle."""

    def weighed(self, shape: np.ndarray, rest: bool, room: int) -> np.ndarray:
        """F diag(shape²) Fᵀ, its lower triangle; or, of the rest, FFᵀ of the points where the shape is zero.

        `room` counts numbers of memory to be used.
        """

    def times(self, u: np.ndarray) -> np.ndarray:
        """F u of every line of u, in float64."""

    def back(self, w: np.ndarray) -> np.ndarray:
        """Fᵀ w of every line of w."""


@dataclass(eq=False)
class LowRank:
    """F of some columns, which are here."""

    F: np.ndarray  # (rank, n) float32, of which the first `known` lines are there
    known: int = 0
    pool: Executor | None = None
    room: np.ndarray = field(default_factory=lambda: np.empty((0, 0), np.float32))  # for lines of K

    @property
    def lines(self) -> np.ndarray:
        """Those of F that are there."""
        return self.F[: self.known]

    def columns(self, which: np.ndarray) -> np.ndarray:
        """F of some points."""
        return np.ascontiguousarray(self.lines[:, which])

    def take(self, g: Gram, chosen: np.ndarray, unit: float, seen: np.ndarray, inverse: np.ndarray) -> np.ndarray:
        """A block of pivots more, of the points of g."""
        lines = replace(picked(g, chosen), kernel=Scaled(g.kernel, unit))
        self.grow(written(lines, self.room[: chosen.size]), seen, inverse)
        return self.fallen(self.known - chosen.size, self.known)

    def grow(self, lines: np.ndarray, seen: np.ndarray, inverse: np.ndarray) -> None:
        """What F does not yet know of these lines of K, by threads that have some columns each."""
        k, n = self.known, lines.shape[1]
        F, out = self.F[:k], self.F[k : k + len(lines)]

        def some(i: int) -> None:
            at = slice(i, i + step)
            left = lines[:, at] - seen @ F[:, at] if k else lines[:, at]
            np.matmul(inverse, left, out=out[:, at])

        step = max(-(-n // AHEAD), 1)
        deque(by_threads(self.pool, some, range(0, n, step), 0), maxlen=0)
        self.known = k + len(lines)  # last: what was left in the middle is done again

    def fallen(self, first: int, stop: int) -> np.ndarray:
        """By how much these lines of F let the diagonal fall."""
        return np.einsum("ij,ij->j", self.F[first:stop], self.F[first:stop])

    def squared(self) -> np.ndarray:
        """Half of a product."""
        return squared(self.lines)

    def weighed(self, shape: np.ndarray, rest: bool, room: int) -> np.ndarray:
        """By as many columns at a time as there is room for."""
        k = self.known
        total = np.zeros((k, k), np.float32)
        which, step = np.flatnonzero(shape == 0 if rest else shape), max(room // max(k, 1), 1)
        for i in range(0, which.size if k else 0, step):
            at = which[i : i + step]
            part = np.multiply(self.lines[:, at], 1.0 if rest else shape[at], dtype=np.float32)
            total += squared(part)
        return total

    def times(self, u: np.ndarray) -> np.ndarray:
        """Threads have some lines of F each."""
        step = max(-(-self.known // AHEAD), 1)
        parts = by_threads(self.pool, lambda i: u @ self.lines[i : i + step].T, range(0, self.known, step), 0)
        return np.concatenate(list(parts), axis=1, dtype=np.float64)

    def back(self, w: np.ndarray) -> np.ndarray:
        """Threads have some columns each."""
        n = self.F.shape[1]
        step = max(-(-n // AHEAD), 1)
        parts = by_threads(self.pool, lambda i: w @ self.lines[:, i : i + step], range(0, n, step), 0)
        return np.concatenate(list(parts), axis=1)


def squared(F: np.ndarray) -> np.ndarray:
    """FFᵀ, its lower triangle: half of a product."""
    return scipy.linalg.blas.ssyrk(1.0, F.T, trans=1, lower=1) if F.size else F @ F.T
