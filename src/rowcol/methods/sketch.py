"""Preconditioners from a random sketch, for conjugate gradients.

- Tall (or wide) X: S X with a few random signs in every column of S, four rows of it for every unknown, and its QR.
  Then R⁻ᴴ(XᴴX)R⁻¹ has a condition near 3, whatever that of X. The sketched problem's own solution is the start; exact
  looks along the way refine it, so the answer does not inherit the sketch's errors.
- Nearly square X, where that would cost as much as solving, and X that lies elsewhere: the few largest directions of
  XᴴX, from a random sample of its range (Nyström). What they leave is a flat tail.
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
from ..core.products import back, conormal, normal, times
from .factor import tall_blocks

OVERSAMPLE = 4  # rows of the sketch for every unknown
SIGNS = 4  # in every column of S
DIRECTIONS = 80  # of a low-rank sketch


@dataclass
class Sketched:
    """g ↦ D R⁻¹R⁻ᴴ D g, or g ↦ D(I + U·shrink·Uᴴ)D g, where D scales columns alike."""

    scale: np.ndarray  # D
    upper: np.ndarray | None = None  # R
    U: np.ndarray | None = None
    shrink: np.ndarray | None = None
    start: np.ndarray | None = None  # the sketched solution

    def __call__(self, g: np.ndarray) -> np.ndarray:
        """What it makes of (q, m) gradients."""
        g = g * self.scale
        if self.upper is None:
            assert self.U is not None
            return (g + ((g @ self.U.conj()) * self.shrink) @ self.U.T) * self.scale
        u = sl.solve_triangular(self.upper, g.T, trans="C", check_finite=False)
        return np.ascontiguousarray(sl.solve_triangular(self.upper, u, check_finite=False).T * self.scale)

    @property
    def bytes(self) -> int:
        """Memory kept."""
        return sum(a.nbytes for a in (self.scale, self.upper, self.U, self.shrink) if a is not None)


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
    made = Sketched(scale, R)
    if not wide:
        made.start = np.ascontiguousarray(sl.solve_triangular(R, Q.conj().T @ Sy, check_finite=False).T * scale)
    return made


def low_rank(
    problem: Problem,
    by: Products,
    side: str,
    seed: np.random.SeedSequence,
    share: np.ndarray | None = None,
    directions: int = DIRECTIONS,
) -> Sketched:
    """The large directions U of DXᴴXD (or XXᴴ), with values Λ: I + U(μ/Λ − 1)Uᴴ, where μ is the last of Λ, and D² is
    the `share` of every column, if they are to be scaled alike."""
    n, p = problem.X.shape
    m = n if side == "rows" else p
    count = min(directions, m)
    rng = np.random.default_rng(seed)
    omega = rng.standard_normal((m, count)).astype(problem.y.dtype)
    D = np.ones((m, 1)) if share is None else np.sqrt(share)[:, None]
    there, home = _many(by, side)
    far = by.side == "place"  # then nothing is made that is as long as the longer side, but in parts
    seen = D * (_gram(by, side, D * omega) if far else home(there(D * omega)))
    if not np.isfinite(seen).all():
        raise ValueError(explain_values(problem.X))
    U = np.linalg.qr(seen)[0]
    if far:
        values, V = np.linalg.eigh(U.conj().T @ (D * _gram(by, side, D * U)))
        s, V = np.sqrt(np.maximum(values[::-1], 0.0)), V[:, ::-1]
    else:
        _, s, Vh = sl.svd(there(D * U), full_matrices=False, check_finite=False)
        V = Vh.conj().T
    keep = s > 1e-4 * max(float(s[0]), 1e-300)  # what is smaller is noise, and may be outside the row space
    U = np.ascontiguousarray(U @ V[:, keep])
    values = s[keep] ** 2 + problem.alpha * ((D * np.abs(U)) ** 2).sum(axis=0)
    shrink = values.min(initial=np.inf) / values - 1.0
    return Sketched(D[:, 0], None, U, shrink)


def _gram(by: Products, side: str, a: np.ndarray) -> np.ndarray:
    """XᴴX a, or XXᴴ a, in as few passes as there are."""
    v = np.ascontiguousarray(a.T)
    return (conormal(by, v)[1] if side == "rows" else normal(by, v)[0]).T


def _many(by: Products, side: str) -> tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], np.ndarray]]:
    """X· and Xᴴ· (or the other way round) on the columns of a matrix: one product of matrices where X is one."""
    X: Any = by.X
    if by.lines is None or by.shift is not None:
        first, second = (lambda a: times(by, a.T.copy()).T), (lambda a: back(by, a.T.copy()).T)
    else:
        first, second = (lambda a: X @ a), (lambda a: (a.conj().T @ X).conj().T)
    return (second, first) if side == "rows" else (first, second)
