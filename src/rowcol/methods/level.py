"""An intercept where rows or columns of a sparse X are stepped on: b is levelled between rounds, and X stays as it is.

Steps solve for y − b, b fixed. The best b leaves Σα = 0 by rows, Σρ = 0 by columns. How far b is from it is told by one
more right-hand side, of ones: its x_1 and s_1 are what x and s change by when b does, so that taking off a share of
them levels b at once. An error in x_1 enters times that share, which goes to zero with b: so ones ride along for the
first passes only, until they are known loosely. Where what their error brings does not stay below what the steps leave,
they are taken along again, to be known better. What is looked at in the end is the centred problem itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.certify import Evidence
from ..core.passes import Products
from ..core.problem import Problem
from ..core.view import with_another
from .coordinate import Coordinate
from .loop import Round
from .states import held, like, put

LOOSE = 0.1  # of ‖1‖: as far as ones are solved at first
TOO_MUCH = 0.25  # of what steps leave, brought by ones: they are solved to a tenth of that then


@dataclass
class Level:
    """Descent on rows or columns of a sparse X, with an intercept: a `Mover`."""

    problem: Problem  # centred
    inner: Coordinate  # of y − b and, while they ride along, ones
    by: Products  # with the shift
    patience: float
    ones: tuple[np.ndarray, np.ndarray] | None = None  # (m,) x_1 and (k,) s_1, once they are good enough
    left: float = 1.0  # of ones, as a share of ‖1‖
    loose: float = LOOSE

    @property
    def needs_solution(self) -> bool:
        """There is a penalty: every y has a solution."""
        return False

    @property
    def ids(self) -> np.ndarray:
        """The right-hand sides still moving, but for ones."""
        return self.inner.ids[: self._count]

    @property
    def shortened(self) -> bool:
        """The last round, by the limit of passes."""
        return self.inner.shortened

    @property
    def _count(self) -> int:
        return self.inner.ids.size - (self.ones is None)

    def advance(self, room: float, deadline: float) -> Round:
        """A round of steps; then b is levelled."""
        now, q = self.inner.advance(room, deadline), self._count
        if self.ones is None:
            self.left = float(now.estimate[q])
        share, estimate = self._level(), now.estimate[:q]
        size = np.maximum(np.linalg.norm(self.problem.y[self.ids], axis=1), 1e-300)
        brought = np.abs(share) * self.left * np.sqrt(self.problem.y.shape[1]) / size
        m, state = self.inner.view.b.shape[1], self.inner.now
        if self.ones is None and self.left <= self.loose:
            self.ones = state.table["x"][:m, q].copy(), state.s[q].copy()
            self.inner.keep(np.arange(q + 1) < q)
        elif self.ones is not None and (brought > TOO_MUCH * estimate).any():
            right = 1.0 if self.inner.view.side == "rows" else 0.0  # columns have y in s
            self.inner.now = with_another(state, len(self.problem.y), right, *self.ones)
            self.ones, self.loose = None, 0.1 * self.left
        return now._replace(gain=now.gain[:q], estimate=np.hypot(estimate, brought))

    def _level(self) -> np.ndarray:
        """Take from x, s and b the shares of ones that leave nothing to the mean; what these are."""
        m, state, q = self.inner.view.b.shape[1], self.inner.now, self._count
        x, s = state.table["x"][:m], state.s
        x1, s1 = (x[:, q].copy(), s[q].copy()) if self.ones is None else self.ones
        by_rows = self.inner.view.side == "rows"
        left, whole = (x[:, :q].sum(axis=0), x1.sum()) if by_rows else (s[:q].sum(axis=1), s1.sum())
        if not abs(whole) > 1e-12 * (np.abs(x1).sum() if by_rows else np.abs(s1).sum()):
            return np.zeros(q)
        share = left / whole
        x[:, :q] -= np.multiply.outer(x1, share)
        s[:q] -= np.multiply.outer(share, s1)
        if by_rows:  # columns have y − b in s
            state.table["b"][:m, :q] -= share
        return share

    def answers(self) -> tuple[np.ndarray, np.ndarray | None]:
        """β, and α where rows keep it."""
        (beta, alpha), q = self.inner.answers(), self._count
        return beta[:q], None if alpha is None else alpha[:q]

    def learn(self, place: int, evidence: Evidence, k: int) -> None:
        """The carried image is replaced by the one just summed anew."""
        self.inner.learn(place, evidence, k)

    def keep(self, mask: np.ndarray) -> None:
        """Go on with some right-hand sides only."""
        self.inner.keep(mask if self.ones is not None else np.append(mask, True))

    def column_norms(self) -> np.ndarray | None:
        """Those of centred columns are known from the start."""
        return None

    def state(self) -> dict[str, Any] | None:
        """That of the steps, b, and what is known of ones."""
        told = {"inner": self.inner.state(), "b": self._b().copy(), "ones": None if self.ones is None else [*self.ones]}
        return told | held(self, "left", "loose")

    def restore(self, told: dict[str, Any]) -> None:
        """Go on from there."""
        x, s = self.inner.view.b.shape[1], self.inner.now.s.shape[1]
        self.inner.restore(told["inner"])
        self._b()[:] = like(told["b"], self._b().shape)
        put(self, told, "left", "loose")
        ones = told["ones"]
        self.ones = None if ones is None else (like(ones[0], (x,)), like(ones[1], (s,)))
        if (ones is None) != bool((self.inner.ids == len(self.problem.y)).any()):
            raise ValueError("ones are lost")

    def _b(self) -> np.ndarray:
        return self.inner.now.table["b"][: self.inner.view.b.shape[1]]

    @property
    def copied(self) -> int:
        """Bytes of copies of X made so far."""
        return self.inner.copied


def with_one(problem: Problem, beta0: np.ndarray | None) -> Problem:
    """The problem of y − b and ones, without an intercept: b is the best one for β0."""
    assert problem.shift is not None
    b = np.zeros(len(problem.y)) if beta0 is None else -beta0 @ problem.shift.mean
    y = np.vstack([problem.y - b[:, None], np.ones((1, problem.y.shape[1]), problem.y.dtype)])
    return problem._replace(y=y, scale=np.append(problem.scale, 1.0), shift=None, single=False)


def one_more(start: np.ndarray | None) -> np.ndarray | None:
    """A start for ones as well: zero."""
    return None if start is None else np.vstack([start, np.zeros((1, start.shape[1]), start.dtype)])


def level(problem: Problem, inner: Coordinate) -> Level:
    """A mover of the centred problem, from one that solves y − b and ones."""
    # what is left is measured by the size of y itself
    inner.problem = inner.problem._replace(y=np.vstack([problem.y, inner.problem.y[-1:]]))
    return Level(problem, inner, inner.by._replace(shift=problem.shift), inner.patience)
