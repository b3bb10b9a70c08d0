"""Conjugate gradients for many λ at once, on the passes of one.

The Krylov space of (A + λ, b) is the same for every λ. So the directions for the smallest λ serve them all: the
residual of another one is ζ times the base's, and its own steps follow from the base's by three scalars (Jegerlehner's
multi-shift form). Only vectors are many; X is visited once a step. It starts from zero and cannot be preconditioned or
corrected; where an exact look finds that a column is not there yet, plain conjugate gradients go on from what there is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..core.certify import Evidence
from ..core.passes import Products
from ..core.problem import Problem
from ..core.products import back, conormal, normal
from .conjugate import Conjugate, conjugate, dot
from .loop import Round
from .states import held, places, put

MOVING = (
    "ids",
    "base",
    "low",
    "r",
    "p",
    "x",
    "d",
    "zeta",
    "zeta_before",
    "step_before",
    "turn_before",
    "live",
    "moving",
)


@dataclass
class Shifted:
    """Conjugate gradients for several λ of the same y: a `Mover`. Rows: (XXᴴ + λ)α = y; columns: (XᴴX + λ)β = Xᴴy."""

    problem: Problem
    by: Products
    side: str  # "rows" or "cols"
    ids: np.ndarray
    base: np.ndarray  # (q,) which of the different y a right-hand side has
    low: np.ndarray  # (b,) the smallest λ of each
    r: np.ndarray  # (b, m) residuals at that
    p: np.ndarray  # (b, m) and directions
    x: np.ndarray  # (q, m)
    d: np.ndarray  # (q, m) directions
    tol: float  # a column that is well below it rests
    patience: float = 30.0
    aim: float = 0.8
    then: Conjugate | None = None  # what goes on where a look was not content
    failed: bool = False
    zeta: np.ndarray = field(default_factory=lambda: np.empty(0))
    zeta_before: np.ndarray = field(default_factory=lambda: np.empty(0))
    step_before: np.ndarray = field(default_factory=lambda: np.empty(0))  # (b,)
    turn_before: np.ndarray = field(default_factory=lambda: np.empty(0))  # (b,)
    live: np.ndarray = field(default_factory=lambda: np.empty(0, int))  # (k,) columns that do not rest
    moving: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))  # (k, m) x of these, as d is
    scratch: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))

    def __post_init__(self) -> None:
        q, b = self.ids.size, len(self.low)
        self.zeta, self.zeta_before = np.ones(q), np.ones(q)
        self.step_before, self.turn_before = np.ones(b), np.zeros(b)
        self.live, self.moving, self.scratch = np.arange(q), self.x.copy(), np.empty_like(self.x)

    @property
    def needs_solution(self) -> bool:
        """λ > 0: there is one."""
        return False

    def advance(self, room: float, deadline: float) -> Round:
        """One step for every y, and all its λ."""
        if self.failed and self.then is None:
            beta, alpha = self.answers()
            full = np.zeros((len(self.problem.y), beta.shape[1]), beta.dtype)
            full[self.ids] = beta
            dual = None
            if alpha is not None:
                dual = np.zeros((len(full), alpha.shape[1]), alpha.dtype)
                dual[self.ids] = alpha
            self.then = conjugate(self.problem, self.by, self.side, full, dual)
            mask = np.zeros(len(full), bool)
            mask[self.ids] = True
            self.then.keep(mask)
            self.then.spent = 3.0
        if self.then is not None:
            return self.then.advance(room, deadline)
        if self.side == "rows":
            _, pulled, passes = conormal(self.by, self.p)
        else:
            pulled, passes = normal(self.by, self.p)
        rr = dot(self.r, self.r)
        curvature = dot(self.p, pulled) + self.low * dot(self.p, self.p)
        going = (rr > 0) & (curvature > 0)
        step = np.divide(rr, curvature, out=np.zeros_like(rr), where=going)
        self.r -= step[:, None] * (pulled + self.low[:, None] * self.p)
        turn = np.divide(dot(self.r, self.r), rr, out=np.zeros_like(rr), where=going)
        # ζ of the next residual, by the three-term recurrence that all λ share
        at, more = self.base, self.problem.each[self.ids] - self.low[self.base]  # type: ignore[index]
        before = self.zeta_before * self.step_before[at]
        bottom = step[at] * self.turn_before[at] * (self.zeta_before - self.zeta) + before * (1 + step[at] * more)
        zeta = np.divide(self.zeta * before, bottom, out=np.zeros_like(bottom), where=going[at] & (bottom != 0))
        share = np.divide(zeta, self.zeta, out=np.zeros_like(zeta), where=self.zeta != 0)
        own = step[at] * share
        k, scratch = self.live, self.scratch[: self.live.size]
        self.moving += np.multiply(own[k, None], self.d, out=scratch)
        self.d *= (turn[at] * share**2)[k, None]
        self.d += np.multiply(zeta[k, None], self.r[at[k]] if len(self.low) > 1 else self.r, out=scratch)
        self.p *= turn[:, None]
        self.p += self.r
        self.zeta_before, self.zeta = self.zeta, zeta
        self.step_before, self.turn_before = np.where(going, step, 1.0), turn
        left = np.abs(zeta) * np.linalg.norm(self.r, axis=1)[at]
        size = np.maximum(np.linalg.norm(self.problem.y[self.ids], axis=1), 1e-300)
        estimate = left / size
        if self.side == "cols":
            estimate = estimate / np.sqrt(self.problem.each[self.ids])  # type: ignore[index]
        rest = estimate[k] < 0.3 * self.tol
        if rest.sum() > 0.2 * k.size:
            self._flush(~rest)
        # all are looked at together, as a look at one takes the products of all
        return Round(passes, 1, own * rr[at], np.full(len(estimate), estimate.max(initial=0.0)), ~going[at])

    def _flush(self, go_on: np.ndarray) -> None:
        """Write down x of the moving columns, and go on with some of them."""
        self.x[self.live] = self.moving
        self.live, self.moving, self.d = self.live[go_on], self.moving[go_on], self.d[go_on]

    def answers(self) -> tuple[np.ndarray, np.ndarray | None]:
        """β, and α on the side of rows."""
        if self.then is not None:
            return self.then.answers()
        self.x[self.live] = self.moving
        return (self.x.copy(), None) if self.side == "cols" else (back(self.by, self.x), self.x.copy())

    def learn(self, place: int, evidence: Evidence, k: int) -> None:
        """Is ζr what the look found? What the recurrence lost, it cannot get back."""
        if self.then is not None:
            self.then.learn(place, evidence, k)
            return
        lam = self.problem.each[self.ids[place]]  # type: ignore[index]
        true = (evidence.residual if self.side == "rows" else evidence.slope)[k] - lam * self.x[place]
        off = np.linalg.norm(true - self.zeta[place] * self.r[self.base[place]])
        self.failed = self.failed or bool(off > 0.1 * np.linalg.norm(true)) or place not in self.live

    def keep(self, mask: np.ndarray) -> None:
        """Go on with some right-hand sides only; and with those y that some of them have."""
        if self.then is not None:
            self.then.keep(mask)
        self._flush(mask[self.live])
        self.live = np.searchsorted(np.flatnonzero(mask), self.live)
        for name in ("ids", "base", "x", "zeta", "zeta_before"):
            setattr(self, name, getattr(self, name)[mask])
        kept = np.unique(self.base)
        if kept.size < len(self.low):
            self.base = np.searchsorted(kept, self.base)
            for name in ("low", "r", "p", "step_before", "turn_before"):
                setattr(self, name, getattr(self, name)[kept])

    def column_norms(self) -> np.ndarray | None:
        """Those of the first look are kept by the loop."""
        return None

    def state(self) -> dict[str, Any] | None:
        """The recurrence, and that of what goes on where it failed."""
        return held(self, "failed", *MOVING) | {"then": None if self.then is None else self.then.state()}

    def restore(self, told: dict[str, Any]) -> None:
        """Go on from there."""
        mask = np.isin(self.ids, places(told["ids"], self.ids.size, self.ids.size))
        k = places(told["live"], int(mask.sum()), self.ids.size).size
        self.keep(mask)
        self.live, self.moving, self.d = np.arange(k), self.moving[:k], self.d[:k]
        put(self, told, "failed", *MOVING)
        places(self.base, len(self.low), self.ids.size)
        if told["then"] is not None:
            self.then = conjugate(self.problem, self.by, self.side, None, None)
            self.then.restore(told["then"])


def shifted(problem: Problem, by: Products, side: str, base: np.ndarray, tol: float) -> Shifted:
    """A mover from zero."""
    assert problem.each is not None
    first = [int(np.flatnonzero(base == i)[0]) for i in range(int(base.max()) + 1)]
    low = np.array([problem.each[base == i].min() for i in range(len(first))])
    y = problem.y[first]
    r = y.copy() if side == "rows" else back(by, y)
    m = r.shape[1]
    x = np.zeros((len(base), m), r.dtype)
    return Shifted(problem, by, side, np.arange(len(base)), base, low, r, r.copy(), x, r[base].copy(), tol)
