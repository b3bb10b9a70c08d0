"""Ridge by rows or by columns? Both of the paper's rates, and how to tell whether they settle it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from ..core.problem import Problem
from ..core.rates import ridge_step_rate
from .result import count_passes

LINES = 200  # of X, that are looked at,
NUMBERS = 1_000_000  # or fewer, with as many numbers,
FEW = 20  # but no fewer than these;
SAMPLE = 40_000  # numbers of them are enough
UNLIKE = 1.5  # times as many lines make a side the longer one


class Rivals(NamedTuple):
    """What the error is multiplied by in a pass, at most, and the passes to the tolerance: by rows, by columns."""

    rate: tuple[float, float]
    passes: tuple[float, float]

    def told(self) -> str:
        """Both rates in a sentence."""
        by = [f"{rate:.4g} a pass ({count_passes(p)})" for rate, p in zip(self.rate, self.passes, strict=True)]
        return f"single steps multiply the error by {by[0]} at most by rows (36), {by[1]} by columns (38)"

    def settled(self, n: int, p: int) -> str | None:
        """The side that should be ahead; None where they are alike, and a race has to tell.

        The bounds take σ_min as 0. On the longer side it is 0; on the shorter one it seldom is, so that its bound is
        the worst it can be. Measured on random sparse X, the shorter side took fewer passes every time: by 1.4 (alpha
        10) to over 50 times (alpha 0.01).
        """
        if max(n, p) < UNLIKE * min(n, p):
            return None
        return "rows" if n < p else "columns"


def rivals(asked: Problem, tol: float) -> Rivals | None:
    """The rates (36) and (38) with the smallest singular value taken as 0: σ + λ ≥ λ, and nothing cheap knows more."""
    X, lam = asked.X, asked.alpha
    if isinstance(X, LinearOperator):
        return None
    n, p = X.shape
    centred = None if asked.shift is None else asked.shift.column2
    trace = _trace(X) if centred is None else float(centred.sum())
    if not 0 < trace < math.inf:
        return None
    # of E‖error‖², a step; a pass is as many steps as there are lines, and ‖error‖ is the root
    rate = tuple(ridge_step_rate(0.0, trace, m, lam) ** (m / 2) for m in (n, p))
    passes = tuple(math.log(tol) / math.log(r) if r < 1 - 1e-12 else 1e12 for r in rate)
    return Rivals((rate[0], rate[1]), (passes[0], passes[1]))


def _trace(X: Any) -> float:
    """‖X‖_F², of a sparse X; about that, from some of the lines of a dense one."""
    if sp.issparse(X):
        return _squared(X.data)
    lines = X if X.flags.c_contiguous else X.T
    count = min(max(NUMBERS // lines.shape[1], FEW), LINES)
    some = lines[:: max(len(lines) // count, 1)]
    some = some[:, :: max(some.size // SAMPLE, 1)]  # of long ones some of their numbers
    parts = (some.real, some.imag) if np.iscomplexobj(some) else (some,)
    # not by BLAS: for so little its threads would only be woken, and then be in the way of ours for a tenth of a second
    return sum(float(np.einsum("ij,ij->", part, part, dtype=float)) for part in parts) * (lines.size / some.size)


def _squared(a: np.ndarray) -> float:
    return float(np.linalg.norm(a.astype(np.result_type(a.dtype, np.float64), copy=False)) ** 2)
