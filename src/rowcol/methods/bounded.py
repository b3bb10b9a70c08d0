"""Columns within bounds, as "auto" takes them: sweeps, and after each the best of its move and of those before it.

A sweep takes x to z. Over z + c0 (z − x) + c1 d1 + c2 d2, where d1 and d2 are the moves of the two rounds before, the
objective is a quadratic of three numbers, known without touching X: the image of a move is what s moved by. Where no
bound is near, that is conjugate gradients preconditioned by a sweep; as sweeps are shuffled, and so not the same each
time, two moves are remembered and not one (CT of 64 x 64 from 40 angles, with noise: 6,144 passes without, 816 with
one, 301 with two, few less with more). What leaves the box is put back to its side, by the one loop: in a box of a
single point a step leads there. Unknowns that the sweep left at a bound stay. If the objective is not below that of z
then, z it is: so it falls in every round, and converges as plain sweeps do.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..core.view import unknowns
from ..engine.lines import descend
from .coordinate import Coordinate
from .loop import Round

MOVES = 2  # rounds remembered


@dataclass
class Bounded(Coordinate):
    """Coordinate descent on columns within bounds, hastened between sweeps. A `Mover`."""

    moves: np.ndarray = field(init=False)  # (MOVES, q, p) what x moved by in the rounds before
    moved: np.ndarray = field(init=False)  # (MOVES, q, n) and s

    def __post_init__(self) -> None:
        self.moves = np.zeros((MOVES, *unknowns(self.view, self.now).shape))
        self.moved = np.zeros((MOVES, *self.now.s.shape))

    def advance(self, room: float, deadline: float) -> Round:
        """A sweep, then a step along its move and those before."""
        x, s = unknowns(self.view, self.now), self.now.s.copy()
        made = super().advance(room, deadline)
        if np.isfinite(made.gain).all() and room - made.passes >= 1:
            steps, gain = self._combine(x, s)
            more = steps / (x.size or 1)
            self.passes += more
            made = made._replace(passes=made.passes + more, steps=made.steps + steps, gain=made.gain + gain)
        self.moves = np.concatenate([(unknowns(self.view, self.now) - x)[None], self.moves[:-1]])
        self.moved = np.concatenate([(self.now.s - s)[None], self.moved[:-1]])
        return made

    def _combine(self, x: np.ndarray, s: np.ndarray) -> tuple[int, np.ndarray]:
        """From a sweep that began at x and s, to the best combination: steps taken, and twice what was gained."""
        t, m, lam = self.now.table, self.view.b.shape[1], self.problem.alpha
        z, image = unknowns(self.view, self.now), self.now.s.copy()
        d, D = np.concatenate([(z - x)[None], self.moves]), np.concatenate([(image - s)[None], self.moved])
        gram = np.einsum("aqi,bqi->qab", D, D) + lam * np.einsum("aqi,bqi->qab", d, d)
        slope = np.einsum("aqi,qi->qa", D, image) + lam * np.einsum("aqi,qi->qa", d, z)
        size = np.sqrt(np.einsum("qaa->qa", gram))
        share = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)  # of moves of length one
        gram = share[:, :, None] * gram * share[:, None, :]
        best = -share * np.einsum("qab,qb->qa", np.linalg.pinv(gram, rcond=1e-10, hermitian=True), share * slope)
        there = z + np.einsum("qa,aqi->qi", best, d)
        low, high = t["low"][:m].T, t["high"][:m].T
        inside = np.where((z == low) | (z == high), z, np.clip(there, low, high))
        before = _energy(image, z, lam)
        t["x"][:m] = there.T
        self.now.s[:] += np.einsum("qa,aqi->qi", best, D)
        steps = sum(self._put(q, inside[q], np.flatnonzero(there[q] != inside[q])) for q in range(len(z)))
        after = _energy(self.now.s, inside, lam)
        back = ~(after < before)
        t["x"][:m, back], self.now.s[back] = z[back].T, image[back]
        return steps, np.where(back, 0.0, before - after)

    def _put(self, q: int, x: np.ndarray, which: np.ndarray) -> int:
        """Take some unknowns of a right-hand side to given values, and s with them."""
        if which.size:
            t, one, point = self.now.table, slice(q, q + 1), np.zeros((len(self.now.table), 2))
            point[: len(x), 0] = x
            there = t["diag"], t["lam"], t["b"][:, one], t["x"][:, one], self.now.s[one]
            descend(self.stepping.lines, *there, which, (point[:, :1], point[:, :1]))
        return int(which.size)

    def keep(self, mask: np.ndarray) -> None:
        """Go on with some right-hand sides only."""
        super().keep(mask)
        self.moves, self.moved = self.moves[:, mask], self.moved[:, mask]


def bounded(plain: Coordinate) -> Bounded:
    """The same mover, hastened."""
    c = plain
    return Bounded(
        c.problem, c.view, c.source, c.now, c.by, c.jobs, c.patience, c.length, c.stepping, c.least, c.passes, c.first
    )


def _energy(s: np.ndarray, x: np.ndarray, lam: float) -> np.ndarray:
    """Twice the objective; not by BLAS, whose sums may depend on its threads."""
    return np.einsum("qi,qi->q", s, s) + lam * np.einsum("qi,qi->q", x, x)
