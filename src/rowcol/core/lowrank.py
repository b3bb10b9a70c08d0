"""LowRank: K ≈ FᵀF, F thin and in single precision; of all columns of K, or of those that one worker has.

A column of F needs nothing of other columns but of the pivots: so F is made, and used, columns by columns, by threads
that share them or by workers that keep them. What a sum over all columns needs of each is as short as F is thin.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

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
        """What F does not yet know of these lines of K, which are spent, as new memory is slow."""
        k = self.known
        F, out = self.F[:k], self.F[k : k + len(lines)]

        def some(at: slice) -> None:
            left = lines[:, at]
            left -= np.matmul(seen, F[:, at], out=out[:, at])  # zeros, while nothing is known
            np.matmul(inverse, left, out=out[:, at])

        deque(self._sliced(some), maxlen=0)
        self.known = k + len(lines)  # last: what was left in the middle is done again

    def fallen(self, first: int, stop: int) -> np.ndarray:
        """By how much these lines of F let the diagonal fall."""
        F = self.F[first:stop]
        return np.concatenate(list(self._sliced(lambda at: np.einsum("ij,ij->j", F[:, at], F[:, at]))))

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
        """Sums of what slices have: lines of F, shared out, were read no faster by two threads than by one."""
        total = np.zeros((len(u), self.known))
        for part in self._sliced(lambda at: u[:, at] @ self.lines[:, at].T):
            total += part
        return total

    def back(self, w: np.ndarray) -> np.ndarray:
        """Slice by slice."""
        return np.concatenate(list(self._sliced(lambda at: w @ self.lines[:, at])), axis=1)

    def _sliced(self, f: Callable[[slice], Any]) -> Iterator[Any]:
        """f of slices of the columns, which threads share; the same slices for any number of them."""
        n = self.F.shape[1]
        step = max(-(-n // AHEAD), 1)
        return by_threads(self.pool, f, [slice(i, min(i + step, n)) for i in range(0, n, step)], 0)


def squared(F: np.ndarray) -> np.ndarray:
    """FFᵀ, its lower triangle: half of a product."""
    return scipy.linalg.blas.ssyrk(1.0, F.T, trans=1, lower=1) if F.size else F @ F.T
