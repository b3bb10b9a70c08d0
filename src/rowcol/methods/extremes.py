"""The largest and the smallest singular value of X: exactly where X is small, and by a few passes where it is not.

| X | how | passes over X |
|---|---|---|
| small | all singular values, of R from X = QR | 1 |
| its smaller side a few thousand | R again, and Lanczos with its inverse: small values are the large ones of R⁻¹ | 1 |
| larger | Golub-Kahan-Lanczos; its values lie within those of X, so σ_min is approached from above | 2 a step |

A value comes with a range. From R it is what rounding can do, and Lanczos' own residual. Of Golub-Kahan's σ_min the
upper end is certain, and the lower one holds with probability 1 − DOUBT for the random start (Kuczyński and
Woźniakowski 1992); where that says nothing, it is 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from ..core.problem import explain_values, matrix
from ..core.products import Products, back, products, times
from .factor import triangle

SMALL = 600  # unknowns of which all singular values are taken,
SMALL_WORK = 1e9  # if X has no more than so many numbers times unknowns
TRIANGLE = 3000  # unknowns of which R is taken,
TRIANGLE_WORK = 6e10  # if X has no more than so many numbers times unknowns: some seconds
STEPS = 60  # of Golub-Kahan-Lanczos
DOUBT = 1e-3  # that the smallest singular value is below its range
UNIT = 2.0**-52


@dataclass(frozen=True)
class Extremes:
    """Singular values of X at both ends, and how well they are known.

    Attributes
    ----------
    shape : tuple
    total : float
        ‖X‖_F², the sum of all squared singular values.
    largest, smallest : float
        σ_max, and the smallest σ that is not zero to rounding.
    largest_range, smallest_range : tuple of float
        Where they can be.
    rank : int or None
        How many are not zero; None where that is not known.
    exact : bool
        All singular values were taken: the ranges are what rounding can do.
    words : str
        How they were found.
    """

    shape: tuple[int, int]
    total: float
    largest: float
    smallest: float
    largest_range: tuple[float, float]
    smallest_range: tuple[float, float]
    rank: int | None
    exact: bool
    words: str

    @property
    def full(self) -> bool:
        """Is the rank as large as the shape allows, as far as is known?"""
        return self.rank is None or self.rank == min(self.shape)


def extremes(X: Any, random_state: Any = 0, steps: int = STEPS) -> Extremes:
    """σ_max and the smallest σ > 0 of a dense or sparse X."""
    X, _ = matrix(X)
    if isinstance(X, LinearOperator):
        raise TypeError("X is a LinearOperator, which does not show its rows and their norms: give an array")
    n, p = X.shape
    total = float(line_squares(X, rows=True).sum())
    if not math.isfinite(total):
        raise ValueError(explain_values(X))
    work = float(X.nnz if sp.issparse(X) else n * p) * min(n, p)
    dtype = np.result_type(X.dtype, np.float64)
    if min(n, p) <= TRIANGLE and max(work, float(min(n, p)) ** 3) <= TRIANGLE_WORK:
        R = triangle(X, dtype, n < p)
        if min(n, p) <= SMALL and work <= SMALL_WORK:
            return _all_of(X.shape, total, R, "all singular values were taken")
        return _of_triangle(X.shape, total, R, np.random.default_rng(random_state))
    return _few_passes(products(X), total, np.random.default_rng(random_state), steps)


def line_squares(X: Any, rows: bool) -> np.ndarray:
    """‖a_i‖² of every row, or of every column, in float64."""
    if sp.issparse(X):
        return np.asarray(abs(X).astype(np.float64).power(2).sum(axis=int(rows))).ravel()
    return np.einsum("ij,ij->i" if rows else "ij,ij->j", X, X.conj(), dtype=np.result_type(X, np.float64)).real


def _all_of(shape: tuple[int, int], total: float, R: np.ndarray, words: str) -> Extremes:
    values = sl.svdvals(R, check_finite=False)
    top, slip = float(values[0]), max(shape) * UNIT * float(values[0])
    kept = values[values > slip]
    if not kept.size:
        return Extremes(shape, total, 0.0, 0.0, (0.0, 0.0), (0.0, 0.0), 0, True, "X is zero")
    low = float(kept[-1])
    if kept.size < min(shape) and values[kept.size] > 1e-3 * low:
        words += "; small ones are clustered at rounding level, so the rank is a guess"
    return Extremes(
        shape, total, top, low, (top - slip, top + slip), (max(low - slip, 0.0), low + slip), kept.size, True, words
    )


def _of_triangle(shape: tuple[int, int], total: float, R: np.ndarray, rng: np.random.Generator) -> Extremes:
    """From R: its largest value by Lanczos with RᴴR, its smallest by Lanczos with (RᴴR)⁻¹."""
    m, start = min(shape), rng.standard_normal(min(shape)).astype(R.dtype)
    top, top_off = _largest(lambda v: R.conj().T @ (R @ v), m, R.dtype, start)
    slip = max(shape) * UNIT * top
    if abs(R.diagonal()).min() > slip:
        inverse, off = _largest(
            lambda v: sl.solve_triangular(
                R, sl.solve_triangular(R, v, trans="C", check_finite=False), check_finite=False
            ),
            m,
            R.dtype,
            start,
        )
        low = 1.0 / inverse
        if low > 10 * slip:
            words = "X was read once, for R of X = QR; Lanczos with R and with its inverse found its extremes"
            bar = low * off / inverse + slip
            return Extremes(
                shape,
                total,
                top,
                low,
                (top - top_off - slip, top + top_off + slip),
                (max(low - bar, 0.0), low + bar),
                m,
                False,
                words,
            )
    return _all_of(
        shape, total, R, "X was read once, for R of X = QR; it is rank-deficient, so all its values were taken"
    )


def _largest(apply: Any, m: int, dtype: Any, start: np.ndarray) -> tuple[float, float]:
    """√ of the largest eigenvalue of a psd operator, and how far off it can be by its residual."""
    by = LinearOperator((m, m), matvec=apply, dtype=dtype)
    try:
        values, vectors = eigsh(by, k=1, which="LM", v0=start, tol=1e-8, ncv=min(m, 40))
    except ArpackNoConvergence as late:  # the best there is: its residual says how good
        values, vectors = late.eigenvalues, late.eigenvectors
        if not len(values):
            vectors, values = start[:, None] / np.linalg.norm(start), np.ones(1)
    v = vectors[:, 0] / np.linalg.norm(vectors[:, 0])
    image = apply(v)
    value = float(np.real(np.vdot(v, image)))
    off = float(np.linalg.norm(image - value * v))
    root = math.sqrt(value)
    return root, off / (2 * root)


def _few_passes(by: Products, total: float, rng: np.random.Generator, steps: int) -> Extremes:
    """Golub-Kahan-Lanczos on the smaller side, with every vector kept orthogonal to those before."""
    (n, p), wide = by.shape, by.shape[0] < by.shape[1]
    m, k = min(n, p), min(steps, min(n, p))
    forth, home = (back, times) if wide else (times, back)
    kind = np.result_type(by.X.dtype, np.float64)
    V, U, B = np.zeros((k + 1, m), kind), np.zeros((k, max(n, p)), kind), np.zeros((k, k + 1))
    V[0] = rng.standard_normal(m)
    V[0] /= np.linalg.norm(V[0])
    done = k
    for i in range(k):
        u = forth(by, V[i : i + 1])[0]
        u -= U[:i].T @ (U[:i].conj() @ u)
        B[i, i] = np.linalg.norm(u)
        if B[i, i] <= m * UNIT * math.sqrt(total):
            done = i
            break
        U[i] = u / B[i, i]
        v = home(by, U[i : i + 1])[0]
        for _ in range(2):  # twice is enough
            v -= V[: i + 1].T @ (V[: i + 1].conj() @ v)
        B[i, i + 1] = np.linalg.norm(v)
        V[i + 1] = v / max(B[i, i + 1], 1e-300)
    B = B[:done, :done]
    values = sl.svdvals(B) if done else np.zeros(1)
    top, low = float(values[0]), float(values[-1])
    # P[θ − λ_min > ε(λ_max − λ_min)] ≤ 1.648 √m e^{−√ε(2k − 1)}, for eigenvalues of XᴴX and a uniformly random start
    share = (math.log(1.648 * math.sqrt(m) / DOUBT) / (2 * max(done, 1) - 1)) ** 2
    high = min(top * math.sqrt(1.0 / (1.0 - share)) if share < 1 else math.sqrt(total), math.sqrt(total))
    sure = math.sqrt(max(low**2 - share * high**2, 0.0))
    words = f"an estimate from {2 * done} passes over X (Golub-Kahan-Lanczos): the smallest can be smaller"
    return Extremes((n, p), total, top, low, (top, high), (sure, low), None, False, words)
