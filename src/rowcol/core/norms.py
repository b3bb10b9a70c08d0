"""Lengths of vectors, also where their squares leave float64: those a certificate needs, of all rows or of a part."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

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


class Lengths(NamedTuple):
    """All that a certificate needs of vectors as long as y, of every right-hand side: (q,) each."""

    rho: np.ndarray  # ‖W^½ρ‖
    alpha: np.ndarray  # ‖W^-½α‖; zero where there is no α
    left: np.ndarray  # ‖W^½(ρ − λW⁻¹α)‖; the same


def lengths(rho: np.ndarray, weight: Any, alpha: Any, lam: np.ndarray) -> Lengths:
    """Of (q, n) vectors, all rows or those of a part."""
    found = Lengths(*np.zeros((3, len(rho))))
    root = 1.0 if weight is None else np.sqrt(weight)
    inverse = 1.0 if weight is None else np.divide(1.0, weight, out=np.zeros_like(weight), where=weight > 0)
    for q, own in enumerate(rho):
        found.rho[q] = norm(own if weight is None else root * own)
        if alpha is not None:
            found.alpha[q] = norm(alpha[q] if weight is None else np.sqrt(inverse) * alpha[q])
            left = lam[q] * inverse * alpha[q]  # in place from here: each is as long as y
            left = np.subtract(own, left, out=left)
            left *= root
            found.left[q] = norm(left)
    return found


def of_parts(found: Iterable[Lengths]) -> Lengths:
    """Of all rows, from those of parts."""
    return Lengths(*(np.array([norm(one) for one in np.array(each).T]) for each in zip(*found, strict=True)))
