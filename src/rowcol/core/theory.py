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
