"""Preconditioners from a random sketch, for conjugate gradients.

- Tall (or wide) X: S X with a few random signs in every column of S, four rows of it for every unknown, and its QR.
  Then R⁻ᴴ(XᴴX)R⁻¹ has a condition near 3, whatever that of X. The sketched problem's own solution is the start; exact
  looks along the way refine it, so the answer does not inherit the sketch's errors.
- Nearly square X, where that would cost as much as solving, and X that lies elsewhere: the few largest directions of
  XᴴX, from a random sample of its range (Nyström), and what they leave of each column. Left is a flat tail.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp

from ..core.explain import explain_values
from ..core.passes import Products
from ..core.problem import Problem
from ..core.products import conormal, normal
from .factor import tall_blocks

OVERSAMPLE = 4  # rows of the sketch for every unknown
SIGNS = 4  # in every column of S
DIRECTIONS = 80  # of a low-rank sketch
NOISE = 1e-8  # of the largest value: what is smaller is no direction


@dataclass
class Sketched:
    """g ↦ D R⁻¹R⁻ᴴ D g, or g ↦ D(I + U·shrink·Uᴴ)D g, where D scales columns alike."""

    scale: np.ndarray  # D
    upper: np.ndarray | None = None  # R
    U: np.ndarray | None = None
    shrink: np.ndarray | None = None
    start: np.ndarray | None = None  # the sketched solution
    passes: float = 4.0  # over X, that it took

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
    column2: np.ndarray | None = None,
    directions: int = DIRECTIONS,
) -> Sketched:
    """The inverse of FFᴴ + δ: F has the large directions of A = XᴴX (or XXᴴ), and δ what they leave of A + λ.

    FFᴴ = AU(UᴴAU)⁻¹UᴴA is never more than A. Where columns are of different size their squares are given, `column2`,
    and δ is the diagonal; else all of it is the last of the large values. Scaling columns first would tilt the tail
    that λ has made flat, and large directions alone leave columns as they are.
    """
    n, p = problem.X.shape
    m = n if side == "rows" else p
    omega = np.random.default_rng(seed).standard_normal((m, min(directions, m))).astype(problem.y.dtype)
    seen, first = _gram(by, side, omega)
    if not np.isfinite(seen).all():
        raise ValueError(explain_values(problem.X))
    U = np.linalg.qr(seen)[0]
    AU, second = _gram(by, side, U)
    values, V = np.linalg.eigh(U.conj().T @ AU)
    stored = np.result_type(problem.X.dtype, np.float32)  # an operator may be of whole numbers
    noise = max(NOISE, float(np.finfo(stored).eps)) * max(float(values[-1]), np.finfo(float).tiny)
    keep = values > noise  # what is smaller may be outside the row space
    F = AU @ (V[:, keep] / np.sqrt(values[keep]))
    rest = np.full(m, max(float(values[0]), noise))
    if column2 is not None:
        rest = np.maximum(column2 - np.einsum("ij,ij->i", F, F.conj()).real, NOISE * column2)
    rest += problem.alpha
    D = np.divide(1.0, np.sqrt(rest), out=np.zeros(m), where=rest > 0)
    W, s, _ = sl.svd(F * D[:, None], full_matrices=False, check_finite=False)
    return Sketched(D, None, np.ascontiguousarray(W), -(s**2) / (1 + s**2), passes=first + second)


def _gram(by: Products, side: str, a: np.ndarray) -> tuple[np.ndarray, float]:
    """XᴴX a, or XXᴴ a, and the passes it took."""
    v = np.ascontiguousarray(a.T)
    if side == "rows":
        _, found, passes = conormal(by, v)
    else:
        found, passes = normal(by, v)
    return found.T, passes
