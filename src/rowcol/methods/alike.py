"""Columns of different size, scaled alike: the simplest preconditioner of conjugate gradients."""

from __future__ import annotations

import numpy as np

from ..core.passes import Products, norms_of, residual_pass
from ..core.problem import Problem
from ..core.sums import column_squares
from .conjugate import Precondition

UNLIKE = 10.0  # columns that differ in size by more are scaled


def unlike(
    problem: Problem, by: Products, seed: np.random.SeedSequence, column2: np.ndarray | None
) -> np.ndarray | None:
    """‖X_j‖², where columns are of different size, which a few rows tell; None where they are not."""
    n = problem.X.shape[0]
    if by.side == "operator":
        return None
    if column2 is None and not (hasattr(problem.X, "format") or by.side == "place"):
        where = np.sort(np.random.default_rng(seed).choice(n, min(n, 200), replace=False))
        tall = (np.abs(problem.X[where]) ** 2).sum(axis=0)
        if float(tall.max()) <= UNLIKE**2 * float(tall.min()):
            return None
    if column2 is not None:
        norms = column2
    elif by.side == "place":
        norms = column_squares(by)  # a pass: many are to come
    else:
        norms = norms_of(by) if by.side == "cols" else residual_pass(by, *_nothing(problem), True)[2]
    if norms.max() + problem.alpha <= UNLIKE**2 * (norms[norms > 0].min(initial=np.inf) + problem.alpha):
        return None
    return norms


def jacobi(curvature: np.ndarray) -> Precondition:
    """1/(‖X_j‖² + λ)."""
    share = np.divide(1.0, curvature, out=np.zeros_like(curvature), where=curvature > 0)
    return lambda g: share * g


def _nothing(problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    (n, p), kind = problem.X.shape, problem.y.dtype
    return np.zeros((1, n), kind), np.zeros((1, p), kind), np.ones(n)
