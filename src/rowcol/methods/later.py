"""α of ridge by columns on a cluster, W(y − Xβ)/λ: n numbers, which come here when they are asked for, not before."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..core.problem import Problem, right_hand_sides
from ..core.products import products, times
from ..places.opening import placed
from .loop import Outcome
from .result import Asked, Result


class Later(NamedTuple):
    """What it takes beside X and y, which nobody keeps for it."""

    x: np.ndarray  # (p,) or (p, q)
    intercept: Any
    weight: np.ndarray | None
    alpha: Any  # one, or one a right-hand side
    memory: int

    def __call__(self, asked: Asked | None) -> np.ndarray | None:
        """α, by a pass over X; None where X or y is gone."""
        found, y = (None, None) if asked is None else (asked.source if asked.X is None else asked.X, asked.y)
        if found is None or y is None:
            return None
        X = placed(found, self.memory)
        y, single = right_hand_sides(y, X.shape[0])
        beta = np.ascontiguousarray(self.x.reshape(len(self.x), -1).T, np.result_type(self.x, np.float64))
        left = y - times(products(X), beta).T - (0.0 if self.intercept is None else self.intercept)
        left = (left if self.weight is None else self.weight[:, None] * left) / self.alpha
        return np.asarray(left[:, 0] if single else left, self.x.dtype)


def bring_later(result: Result, asked: Problem, out: Outcome, memory: int) -> None:
    """Of a result without α whose ρ has stayed with the workers: they are asked when it is."""
    if result.dual is None and asked.alpha > 0 and out.residual is None:
        alpha = asked.gauge * (asked.alpha if asked.each is None else asked.each)
        weight = None if asked.weight is None else asked.gauge * asked.weight
        vars(result)["bring"] = Later(result.x, result.intercept, weight, alpha, memory)
        del result.dual
