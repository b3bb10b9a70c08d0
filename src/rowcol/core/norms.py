"""The length of a vector, also where its square leaves float64."""

from __future__ import annotations

import math

import numpy as np


def norm(a: np.ndarray) -> float:
    """‖a‖."""
    with np.errstate(over="ignore", under="ignore"):
        size = float(np.linalg.norm(a))
    if 1e-140 < size < 1e140:
        return size
    sizes = np.abs(a)
    top = float(sizes.max(initial=0.0))
    return float(np.linalg.norm(sizes / top)) * top if 0.0 < top < math.inf else top
