"""Preconditioners from a random sketch, for conjugate gradients.

- Tall (or wide) X: S X with a few random signs in every column of S, four rows of it for every unknown, and its QR.
  Then R⁻ᴴ(XᴴX)R⁻¹ has a condition near 3, whatever that of X. The sketched problem's own solution is the start; exact
  looks along the way refine it, so the answer does not inherit the sketch's errors.
- Nearly square X, where that would cost as much as solving: the few largest directions of XᴴX, from a random sample of
  its range (Nyström). What they leave is a flat tail.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp

from ..core.explain import explain_values
from ..core.passes import Products
from ..core.problem import Problem
from ..core.products import back, times
from .factor import tall_blocks

OVERSAMPLE = 4  # rows of the sketch for every unknown
SIGNS = 4  # in every column of S
DIRECTIONS = 80  # of a low-rank sketch


@dataclass
class Sketched:
    """g ↦ R⁻¹R⁻ᴴg, columns scaled alike; or g ↦ g + U·shrink·Uᴴg."""

    upper: np.ndarray | None  # R
    scale: np.ndarray
    U: np.ndarray | None = None
    start: np.ndarray | None = None  # the sketched solution

    def __call__(self, g: np.ndarray) -> np.ndarray:
        """What it makes of (q, m) gradients."""
        if self.upper is None:
            assert self.U is not None
            return g + ((g @ self.U.conj()) * self.scale) @ self.U.T
        u = sl.solve_triangular(self.upper, (g * self.scale).T, trans="C", check_finite=False)
        return np.ascontiguousarray(sl.solve_triangular(self.upper, u, check_finite=False).T * self.scale)

    @property
    def bytes(self) -> int:
        """Memory kept."""
        return sum(a.nbytes for a in (self.upper, self.scale, self.U) if a is not None)


def full_sketch(problem: Problem, seed: np.random.SeedSequence) -> Sketched | None:
    """R of SX = QR, and the sketched solution; None where SX is rank-deficient."""
    X, y, alpha = problem.X, problem.y, problem.alpha
    (n, p), q = X.shape, len(y)
    wide = n < p
    m, rows = min(n, p), max(n, p)
    count = min(OVERSAMPLE * m, rows)
    rng = np.random.default_rng(seed)
    SX, Sy = np.zeros((count, m), y.dtype), np.zeros((count, q), y.dtype)
    start = 0
    for part in tall_blocks(X, y.dtype, wide, 0, problem.shift):
        size = len(part)
        where = rng.integers(0, count, (size, SIGNS))
        signs = rng.choice([-1.0, 1.0], (size, SIGNS)) / np.sqrt(SIGNS)
        S = sp.csr_array((signs.ravel(), (where.ravel(), np.repeat(np.arange(size), SIGNS))), shape=(count, size))
        SX += S @ part
        if not wide:
            Sy += S @ y[:, start : start + size].T
        start += size
    if alpha > 0:
        SX, Sy = np.vstack([SX, np.sqrt(alpha) * np.eye(m)]), np.vstack([Sy, np.zeros((m, q))])
    if not np.isfinite(SX).all():
        raise ValueError(explain_values(X))
    scale = np.linalg.norm(SX, axis=0)
    scale = np.divide(1.0, scale, out=np.ones(m), where=scale > 0)
    Q, R = np.linalg.qr(SX * scale)
    rcond = float(sl.lapack.get_lapack_funcs(("trcon",), (R,))[0](R)[0])
    if not rcond > 1e-13:
        return None
    made = Sketched(R, scale)
    if not wide:
        made.start = np.ascontiguousarray(sl.solve_triangular(R, Q.conj().T @ Sy, check_finite=False).T * scale)
    return made


def low_rank(
    problem: Problem, by: Products, side: str, seed: np.random.SeedSequence, directions: int = DIRECTIONS
) -> Sketched:
    """The large directions U of XᴴX (or XXᴴ), with values Λ: g ↦ g + U(μ/Λ − 1)Uᴴg, where μ is the last of Λ."""
    n, p = problem.X.shape
    m = n if side == "rows" else p
    count = min(directions, m)
    rng = np.random.default_rng(seed)
    omega = rng.standard_normal((m, count)).astype(problem.y.dtype)
    there, home = _many(by, side)
    seen = home(there(omega))
    if not np.isfinite(seen).all():
        raise ValueError(explain_values(problem.X))
    U = np.linalg.qr(seen)[0]
    half = there(U)
    _, s, Vh = sl.svd(half, full_matrices=False, check_finite=False)
    keep = s > 1e-4 * max(float(s[0]), 1e-300)  # what is smaller is noise, and may be outside the row space
    U, values = U @ Vh[keep].conj().T, s[keep] ** 2 + problem.alpha
    shrink = values[-1] / values - 1.0 if keep.any() else np.empty(0)
    return Sketched(None, shrink, np.ascontiguousarray(U))


def _many(by: Products, side: str) -> tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], np.ndarray]]:
    """X· and Xᴴ· (or the other way round) on the columns of a matrix: one product of matrices where X is one."""
    X: Any = by.X
    if by.lines is None or by.shift is not None:
        first, second = (lambda a: times(by, a.T.copy()).T), (lambda a: back(by, a.T.copy()).T)
    else:
        first, second = (lambda a: X @ a), (lambda a: (a.conj().T @ X).conj().T)
    return (second, first) if side == "rows" else (first, second)
