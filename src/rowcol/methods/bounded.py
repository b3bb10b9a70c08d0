"""Columns within bounds, as "auto" takes them: sweeps, and after each the best of its move and of those before it.

A sweep takes x to z. Over z + c0 (z − x) + c1 d1 + c2 d2, where d1 and d2 are the moves of the two rounds before, the
objective is a quadratic of three numbers, known without touching X: the image of a move is what s moved by, or is
summed anew where that is too little to tell. Where no bound is near, that is conjugate gradients preconditioned by a
sweep; as sweeps are shuffled, and so not the same each time, two moves are remembered and not one (CT of 64 x 64 from
40 angles, with noise, three seeds: 6,800 passes without, 1,041 to 1,310 with one, 403 to 408 with two, no fewer with
three or four). What leaves the box is put back to its side, by the one loop: in a box of a single point a step leads
there. Unknowns that the sweep left at a bound stay. If the objective is not below that of z then, z it is: so it falls
in every round, as by plain sweeps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..core.certify import Evidence
from ..core.view import image, unknowns
from ..engine.lines import descend
from .coordinate import Coordinate
from .loop import Round
from .states import held, put

MOVES = 2  # rounds remembered
FAINT = 1e-4  # of s: images of shorter moves are summed anew


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
        x, s = unknowns(self.view, self.now).copy(), self.now.s.copy()
        made = super().advance(room, deadline)
        if not np.isfinite(made.gain).all() or room - made.passes < 2:
            self.shortened = True
            return made
        steps, gain = self._combine(x, s)
        more = steps / x.size
        self.passes += more
        return made._replace(passes=made.passes + more, steps=made.steps + steps, gain=made.gain + gain)

    def _combine(self, x: np.ndarray, s: np.ndarray) -> tuple[int, np.ndarray]:
        """From a sweep that began at x and s, to the best combination: columns touched, and twice what was gained."""
        m, lam = self.view.b.shape[1], self.problem.alpha
        low, high = self.now.table["low"][:m].T, self.now.table["high"][:m].T
        z, at = unknowns(self.view, self.now).copy(), self.now.s
        move, moved = z - x, at - s
        # A difference of images is rounded as they are. Along s that is a slope where there is none: moves of ε‖s‖ gain
        # about ε²‖s‖², and rounding must stay far below.
        faint = _dot(moved, moved) < FAINT**2 * _dot(at, at)
        if faint.any():
            moved[faint] = image(self.view, np.ascontiguousarray(move[faint]))
        d, D = np.concatenate([move[None], self.moves]), np.concatenate([moved[None], self.moved])
        best = best_combination(
            np.einsum("aqi,bqi->qab", D, D) + lam * np.einsum("aqi,bqi->qab", d, d),
            np.einsum("aqi,qi->qa", D, at) + lam * np.einsum("aqi,qi->qa", d, z),
        )
        onward, ahead = np.einsum("qa,aqi->qi", best, d), np.einsum("qa,aqi->qi", best, D)
        inside = np.where((z == low) | (z == high), z, np.clip(z + onward, low, high))
        stopped = np.where(inside == z + onward, 0.0, inside - z - onward)  # by how much less they go
        onward += stopped
        steps = sum(self._push(part, row) for part, row in zip(stopped, ahead, strict=True))
        gain = -_dot(2 * at + ahead, ahead) - lam * _dot(2 * z + onward, onward)
        onward[~(gain > 0)], ahead[~(gain > 0)] = 0.0, 0.0
        self.now.table["x"][:m] = np.where(gain[:, None] > 0, inside, z).T
        self.now.s[:] += ahead
        # the moves as they were before x was rounded, so that their images stay theirs
        self.moves = np.concatenate([(move + onward)[None], self.moves[:-1]])
        self.moved = np.concatenate([(moved + ahead)[None], self.moved[:-1]])
        return steps + int(faint.sum()) * m, np.maximum(gain, 0.0)

    def _push(self, x: np.ndarray, s: np.ndarray) -> int:
        """s += X x, by a step from zero in a box of the one point x; for how many unknowns."""
        which = np.flatnonzero(x)
        if which.size:
            t, point = self.now.table, np.zeros((len(self.now.table), 4))
            point[: len(x), 0] = x
            box = point[:, :1], point[:, :1]
            descend(self.stepping.lines, t["diag"], t["lam"], point[:, 2:3], point[:, 3:], s[None], which, box)
        return int(which.size)

    def learn(self, place: int, evidence: Evidence, k: int) -> None:
        """The carried image is replaced by the one just summed anew; moves begin anew, too."""
        super().learn(place, evidence, k)
        self.moves[:, place], self.moved[:, place] = 0.0, 0.0

    def keep(self, mask: np.ndarray) -> None:
        """Go on with some right-hand sides only."""
        super().keep(mask)
        self.moves, self.moved = self.moves[:, mask], self.moved[:, mask]

    def state(self) -> dict[str, Any] | None:
        """The moves, too."""
        return {"sweeps": super().state(), **held(self, "moves", "moved")}

    def restore(self, told: dict[str, Any]) -> None:
        """Go on from there."""
        super().restore(told["sweeps"])
        put(self, told, "moves", "moved")


def bounded(plain: Coordinate) -> Bounded:
    """The same mover, hastened."""
    c = plain
    return Bounded(
        c.problem, c.view, c.source, c.now, c.by, c.jobs, c.patience, c.length, c.stepping, c.least, c.passes, c.first
    )


def best_combination(gram: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """The combination of moves at which the objective is least."""
    size = np.sqrt(np.einsum("qaa->qa", gram))
    share = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)  # moves of length one, or none
    inverse = np.linalg.pinv(share[:, :, None] * gram * share[:, None, :], rcond=1e-10, hermitian=True)
    return -share * np.einsum("qab,qb->qa", inverse, share * slope)


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Not by BLAS, whose sums may depend on its threads."""
    return np.einsum("qi,qi->q", a, b)
