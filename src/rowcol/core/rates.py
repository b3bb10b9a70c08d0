"""The paper's rates as formulas: what E‖error‖² is multiplied by in a step, at most. `rowcol.theory` asks them of X.

All are one theorem. For A x = b with A = BBᴴ + Λ and a step that solves line i exactly, picked with probability p_i,
‖x − x*‖² in the energy norm falls by |r_i|²/A_ii, so in the mean by at least σ_min(A)·min_i(p_i/A_ii) of itself. With
p_i in proportion to A_ii that is σ_min(A)/Tr(A).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def kernel_step_rate(K: np.ndarray, lam: Any) -> float:
    """What E‖α − α*‖² in the energy norm is multiplied by in a step, at most: 1 − σ_min(K + Λ)/Tr(K + Λ) (35).

    For single steps on points picked in proportion to k(x_i, x_i) + λ_i.
    """
    A = K + np.diag(np.broadcast_to(lam, len(K)))
    return step_rate(float(np.linalg.eigvalsh(A)[0]), float(np.trace(A)))


def ridge_step_rate(smallest: float, trace: float, lines: int, lam: float) -> float:
    """What E‖error‖² is multiplied by in a step, at most: 1 − (σ_min + λ)/(Tr + mλ); by rows (36), by columns (38).

    σ_min is the smallest eigenvalue of XXᴴ (rows) or XᴴX (columns), Tr = ‖X‖_F², m the number of lines; for lines
    picked in proportion to ‖a_i‖² + λ. With λ = 0 these are (25) and (26).
    """
    return step_rate(smallest + lam, trace + lines * lam)


def step_rate(smallest: float, trace: float) -> float:
    """1 − σ_min(A)/Tr(A), kept above zero and, where rounding made σ_min negative, not above one."""
    return min(max(1.0 - smallest / max(trace, 1e-300), 1e-12), 1.0)


def conjugate_rate(low: float, high: float) -> float:
    """What the energy norm of the error is multiplied by in a step of conjugate gradients, but for a factor of two."""
    root = math.sqrt(high / max(low, 1e-300))
    return (root - 1.0) / (root + 1.0)


def steps_to(rate: float, share: float) -> float:
    """Steps until a quantity that falls by `rate` each is `share` of itself; infinite where nothing makes it fall."""
    if share >= 1.0:
        return 0.0
    if rate <= 0.0:  # a step is the answer
        return 1.0
    return math.log(share) / math.log(rate) if rate < 1.0 else math.inf


def extended_steps_to(rate: float, extra: float, share: float) -> float:
    """Pairs of steps after which rate^k (1 + k·extra) stays within `share`: extended Kaczmarz, whose target moves."""
    from scipy.optimize import brentq  # every solve reads this file, and few ask for this

    if rate >= 1.0:
        return math.inf
    peak = max(-1.0 / math.log(rate) - 1.0 / extra, 0.0) if extra > 0 else 0.0  # up to here it may rise

    def over(k: float) -> float:
        return k * math.log(rate) + math.log1p(k * extra) - math.log(share)

    if over(peak) <= 0:
        return peak if over(0.0) > 0 else 0.0
    last = next(k for k in (peak + 2.0**j for j in range(1100)) if over(k) <= 0)
    return float(brentq(over, peak, last, xtol=1e-9 * last))
