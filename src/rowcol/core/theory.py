"""The paper's rates that methods and tests share."""

from __future__ import annotations

from typing import Any

import numpy as np


def kernel_step_rate(K: np.ndarray, lam: Any) -> float:
    """What E‖α − α*‖² in the energy norm is multiplied by in a step, at most: 1 − σ_min(K + Λ)/Tr(K + Λ) (35).

    For single steps on points picked in proportion to k(x_i, x_i) + λ_i.
    """
    A = K + np.diag(np.broadcast_to(lam, len(K)))
    return 1.0 - float(np.linalg.eigvalsh(A)[0]) / float(np.trace(A))


def ridge_step_rate(smallest: float, trace: float, lines: int, lam: float) -> float:
    """What E‖error‖² is multiplied by in a step, at most: 1 − (σ_min + λ)/(Tr + mλ); by rows (36), by columns (38).

    σ_min is the smallest eigenvalue of XXᴴ (rows) or XᴴX (columns), Tr = ‖X‖_F², m the number of lines; for lines
    picked in proportion to ‖a_i‖² + λ. With λ = 0 these are (25) and (26).
    """
    return max(1.0 - (smallest + lam) / max(trace + lines * lam, 1e-300), 1e-12)
