"""Carried: what steps on blocks with momentum carry along, for some rows of a kernel system (K + Λ)α = y.

That is α = w with its companions v and z, and the residuals of all three. A step moves w, v and z at a block's points,
and the residuals everywhere, by the same rule; each row needs nothing of the others but their step. So what is here is
all of it (`Here`), or what one worker has of it: then no residual travels (`places/carrying.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .gram import Gram, block, by_columns

NAMES = ("w", "r_w", "v", "r_v", "z", "r_z")  # of all that is carried


class Pace(NamedTuple):
    """How much momentum a step has."""

    beta: float
    gamma: float
    a: float


class Trio(NamedTuple):
    """An answer and its companions, or the residuals of these: (q, rows) each. None is changed in place."""

    w: np.ndarray
    v: np.ndarray
    z: np.ndarray
    before: np.ndarray  # w before the last step


class Sums(NamedTuple):
    """What a step tells, of each right-hand side; sums over all rows."""

    energy: np.ndarray  # (q,) αᵀ(y + r), which is −2 times the energy
    left2: np.ndarray  # (q,) ‖W^½r‖²


def begun(w: np.ndarray) -> Trio:
    """No momentum yet."""
    return Trio(w, w, w, w)


def restarted(old: Trio, which: np.ndarray) -> Trio:
    """No momentum of some right-hand sides any more."""
    return old._replace(v=np.where(which[:, None], old.w, old.v), z=np.where(which[:, None], old.w, old.z))


def stepped(old: Trio, pace: Pace, add: Callable[[np.ndarray, float], None]) -> Trio:
    """One step from z; `add(array, c)` adds c times what the step brings."""
    w = old.z.copy()
    add(w, 1.0)
    v = pace.beta * old.v + (1 - pace.beta) * old.z
    add(v, pace.gamma)
    return Trio(w, v, pace.a * v + (1 - pace.a) * w, old.w)


def at_block(at: np.ndarray, d: np.ndarray) -> Callable[[np.ndarray, float], None]:
    """A step of α: d at some points."""

    def add(to: np.ndarray, c: float) -> None:
        to[:, at] += c * d

    return add


@dataclass
class Carried:
    """The rows of a part, or all of them."""

    x: Trio
    r: Trio
    y: np.ndarray  # (q, rows)
    lam: np.ndarray  # Λ
    root: np.ndarray | None  # W^½

    def step(self, at: np.ndarray, d: np.ndarray, moved: np.ndarray, pace: Pace) -> None:
        """A step whose block adds d to α at some of these rows, and `moved` to Kα."""
        moved[:, at] += self.lam[at] * d

        def take(to: np.ndarray, c: float) -> None:
            to -= c * moved

        self.x, self.r = stepped(self.x, pace, at_block(at, d)), stepped(self.r, pace, take)

    def sums(self) -> Sums:
        """Of these rows."""
        r = self.r.w if self.root is None else self.root * self.r.w
        return Sums(np.einsum("qi,qi->q", self.x.w, self.y + self.r.w), np.add.reduce(r * r, axis=1))

    def restart(self, which: np.ndarray) -> None:
        """Begin anew from w, for some right-hand sides."""
        self.x, self.r = restarted(self.x, which), restarted(self.r, which)

    def back(self) -> None:
        """Begin anew from w as it was before the last step."""
        self.x, self.r = begun(self.x.before), begun(self.r.before)

    def fresh(self, place: int, r: np.ndarray) -> None:
        """Begin anew from the true residual, for one right-hand side."""
        w, which = self.r.w.copy(), np.arange(len(self.y)) == place
        w[place] = r
        self.r = self.r._replace(w=w)
        self.restart(which)

    def keep(self, mask: np.ndarray) -> None:
        """Go on with some right-hand sides only."""
        self.x, self.r = (Trio(*(one[mask] for one in trio)) for trio in (self.x, self.r))
        self.y = self.y[mask]

    def told(self) -> dict[str, np.ndarray]:
        """All that moves, by name."""
        return dict(zip(NAMES, (self.x.w, self.r.w, self.x.v, self.r.v, self.x.z, self.r.z), strict=True))

    def put(self, told: dict[str, np.ndarray]) -> None:
        """Go on from there."""
        w, r_w, v, r_v, z, r_z = (told[name] for name in NAMES)
        self.x, self.r = Trio(w, v, z, w), Trio(r_w, r_v, r_z, r_w)


@dataclass
class Here(Carried):
    """All rows, in this process, wherever the points are."""

    @property
    def w(self) -> np.ndarray:
        """α."""
        return self.x.w

    def meet(self, g: Gram, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The entries of a block, and what z leaves at its points."""
        return block(g, at, at), self.r.z[:, at]

    def go(self, g: Gram, at: np.ndarray, d: np.ndarray, pace: Pace, then: Any) -> Sums:
        """A step; `then` is the block after it, for those who have to ask for it."""
        self.step(at, d, by_columns(g, at, d), pace)
        return self.sums()
