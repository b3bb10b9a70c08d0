"""Cut short before the first round: by Ctrl-C, or by the clock in a pass over parts. What is there is a start."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.centre import centred_x
from ..core.certify import Evidence
from ..core.place import Late, until
from ..core.problem import Problem
from ..core.products import products
from .gathered import Gathered
from .loop import Round
from .result import Status

CUT = (KeyboardInterrupt, Late)


def cut_by(why: BaseException) -> Status:
    """What a solve that was cut short by this is called."""
    return Status.INTERRUPTED if isinstance(why, KeyboardInterrupt) else Status.SECONDS


@dataclass
class Still:
    """A start, and nothing more: a `Mover` that is not moved, to be certified as any other."""

    by: Any
    ids: np.ndarray
    beta: np.ndarray  # (q, p)
    alpha: np.ndarray | None
    patience: float = np.inf
    needs_solution: bool = False

    def advance(self, room: float, deadline: float) -> Round:
        """Nowhere."""
        zeros = np.zeros(self.ids.size)
        return Round(0.0, 0, zeros, zeros, zeros == 0)

    def answers(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Those it has."""
        return self.beta, self.alpha

    def learn(self, place: int, evidence: Evidence, k: int) -> None:
        """There is no use for it."""

    def keep(self, mask: np.ndarray) -> None:
        """Go on with some right-hand sides only."""
        self.ids, self.beta = self.ids[mask], self.beta[mask]
        self.alpha = None if self.alpha is None else self.alpha[mask]

    def column_norms(self) -> np.ndarray | None:
        """Not known."""
        return None

    def state(self) -> dict[str, Any] | None:
        """Nothing moves."""
        return None

    def restore(self, told: dict[str, Any]) -> None:
        """There is nothing to go on from."""
        raise ValueError("a start has no state")


def less_means(
    asked: Problem, pool: Executor | None, sums: Callable[[], Gathered | None], deadline: float
) -> tuple[Problem, Gathered | None, BaseException | None]:
    """X less its means, and the sums they came with, if any; or what cut that short.

    Then the means are found all the same: what is returned is to be certified.
    """
    try:
        with until(deadline):
            known = sums()
            return centred_x(asked, pool, None if known is None else known.moments), known, None
    except CUT as why:
        return centred_x(asked, pool), None, why


def still(problem: Problem, pool: Executor | None, beta0: np.ndarray | None, alpha0: np.ndarray | None) -> Still:
    """The user's start, or zero."""
    (q, n), p = problem.y.shape, problem.X.shape[1]
    beta = np.zeros((q, p), problem.y.dtype) if beta0 is None else beta0.copy()
    alpha = np.zeros((q, n), problem.y.dtype) if beta0 is None and problem.alpha > 0 else alpha0
    return Still(products(problem.X, pool, problem.shift), np.arange(q), beta, alpha)
