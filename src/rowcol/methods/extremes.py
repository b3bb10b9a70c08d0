"""The largest and the smallest singular value of X: exactly where X is small, and by a few passes where it is not.

| X | how | passes over X |
|---|---|---|
| small | all singular values, of R from X = QR | 1 |
| its smaller side a few thousand | R again, and Lanczos with its inverse: small values are the large ones of R⁻¹ | 1 |
| larger | Golub-Kahan-Lanczos; its values lie within those of X, so σ_min is approached from above | 2 a step |

A value comes with a range. From R it is what rounding can do, and Lanczos' own residual. Golub-Kahan's values lie
within those of X, and how far outside of them σ_min and σ_max can be is known with probability 1 − DOUBT for the random
start (Kuczyński and Woźniakowski 1992). Where that leaves room for σ_min = 0, X may be rank-deficient, and nothing is
claimed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from ..core.explain import explain_values
from ..core.passes import Products
from ..core.problem import matrix
from ..core.products import back, products, times
from ..core.sampler import seeds
from ..core.words import shown
from .factor import triangle

SMALL = 600  # unknowns of which all singular values are taken,
SMALL_WORK = 1e9  # if X has no more than so many numbers times unknowns
TRIANGLE = 3000  # unknowns of which R is taken,
TRIANGLE_WORK = 6e10  # if X has no more than so many numbers times unknowns: some seconds
STEPS = 60  # of Golub-Kahan-Lanczos
DOUBT = 1e-3  # that the smallest singular value is below its range
UNIT = 2.0**-52
TINY = 1e-150  # of ‖X‖_F²: the smallest, and one over the largest, of which squares can be taken


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
        """Is the rank known to be as large as the shape allows?"""
        return self.rank == min(self.shape)


def extremes(X: Any, random_state: Any = 0, steps: int = STEPS) -> Extremes:
    """σ_max and the smallest σ > 0 of a dense or sparse X."""
    X, _ = matrix(X)
    if isinstance(X, LinearOperator):
        raise TypeError("X is a LinearOperator, which does not show its rows and their norms: give an array")
    n, p = X.shape
    if not isinstance(random_state, (np.random.Generator, np.random.RandomState)):
        seeds(random_state)  # its errors, also where nothing is drawn
    if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < 1:
        raise ValueError(f"steps must be a whole number, at least 1, got {shown(steps)}")
    with np.errstate(over="ignore"):
        sizes = line_squares(X, rows=n < p)
    total = float(sizes.sum())
    if not np.isfinite(X.data if sp.issparse(X) else X).all():
        raise ValueError(explain_values(X))
    if (abs(X).max() > 0 and total < TINY) or total > 1 / TINY:
        raise ValueError("X is so small or so large that squares of its squares leave float64: rescale it")
    work = float(X.nnz if sp.issparse(X) else n * p) * min(n, p)
    dtype = np.result_type(X.dtype, np.float64)
    if min(n, p) <= TRIANGLE and max(work, float(min(n, p)) ** 3) <= TRIANGLE_WORK:
        R = triangle(X, dtype, n < p)
        if min(n, p) <= SMALL and work <= SMALL_WORK:
            return _all_of(X.shape, total, R, sizes, "all singular values were taken")
        return _of_triangle(X.shape, total, R, sizes, np.random.default_rng(random_state))
    return _few_passes(products(X), total, np.random.default_rng(random_state), steps)


def line_squares(X: Any, rows: bool) -> np.ndarray:
    """‖a_i‖² of every row, or of every column, in float64."""
    if sp.issparse(X):
        return np.asarray(abs(X).astype(np.float64).power(2).sum(axis=int(rows))).ravel()
    return np.einsum("ij,ij->i" if rows else "ij,ij->j", X, X.conj(), dtype=np.result_type(X, np.float64)).real


def _all_of(shape: tuple[int, int], total: float, R: np.ndarray, sizes: np.ndarray, words: str) -> Extremes:
    values = sl.svdvals(R, check_finite=False)
    top, slip = float(values[0]), max(shape) * UNIT * float(values[0])
    kept = values[values > slip]
    if not kept.size:
        return Extremes(shape, total, 0.0, 0.0, (0.0, 0.0), (0.0, 0.0), 0, True, "X is zero")
    low, rank = float(kept[-1]), int(kept.size)
    ends = max(low - slip, 0.0), low + slip
    if rank < min(shape):
        words += f"; {min(shape) - rank} of them, below {slip:.1e}, were taken as zero"
        if values[rank] > 1e-3 * low:
            words += ", but small ones are clustered at rounding level: the rank is a guess"
        if (sizes[sizes > 0] < slip**2).any():  # one this small is hidden by rounding, but it is there
            words += ", and lines of X differ so much in size that this may be wrong: rescale them"
            return Extremes(shape, total, top, low, (top - slip, top + slip), (0.0, ends[1]), None, False, words)
    return Extremes(shape, total, top, low, (top - slip, top + slip), ends, rank, True, words)


def _of_triangle(
    shape: tuple[int, int], total: float, R: np.ndarray, sizes: np.ndarray, rng: np.random.Generator
) -> Extremes:
    """From R: its largest value by Lanczos with RᴴR, its smallest by Lanczos with (RᴴR)⁻¹."""
    m, start = min(shape), rng.standard_normal(min(shape)).astype(R.dtype)
    unit = 2.0 ** -math.frexp(math.sqrt(total))[1]  # ARPACK has absolute tolerances
    S = R * unit
    top, top_off = _largest(lambda v: S.conj().T @ (S @ v), m, R.dtype, start)
    slip = max(shape) * UNIT * top
    if abs(S.diagonal()).min() > slip:

        def inverse(v: np.ndarray) -> np.ndarray:
            half = sl.solve_triangular(S, v, trans="C", check_finite=False)
            return sl.solve_triangular(S, half, check_finite=False)

        found, off = _largest(inverse, m, R.dtype, start)
        low = 1.0 / found
        if low > 10 * slip:
            words = "X was read once, for R of X = QR; Lanczos with R and with its inverse found its extremes"
            bar = low * off / found + slip
            tops, lows = (top - top_off - slip, top + top_off + slip), (max(low - bar, 0.0), low + bar)
            ends = [(a / unit, b / unit) for a, b in (tops, lows)]
            return Extremes(shape, total, top / unit, low / unit, ends[0], ends[1], m, False, words)
    return _all_of(shape, total, R, sizes, "X was read once, for R of X = QR; all its values were taken")


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
    """Golub-Kahan-Lanczos; vectors of the smaller side are kept, and each is made orthogonal to those before."""
    (n, p), wide = by.shape, by.shape[0] < by.shape[1]
    m, k = min(n, p), min(steps, min(n, p))
    forth, home = (back, times) if wide else (times, back)
    kind = np.result_type(by.X.dtype, np.float64)
    V, B, nothing = np.zeros((k + 1, m), kind), np.zeros((k, k + 1)), m * UNIT * math.sqrt(total)
    V[0] = rng.standard_normal(m)
    V[0] /= np.linalg.norm(V[0])
    u, rows, columns = np.zeros(max(n, p), kind), 0, 0  # of B, that are known
    for i in range(k):
        u = forth(by, V[i : i + 1])[0] - (B[i - 1, i] * u if i else 0.0)
        B[i, i] = np.linalg.norm(u)
        columns = i + 1
        if B[i, i] <= nothing:  # V[i] is a null vector but for what B has: X is rank-deficient, and B is all of it
            break
        rows, u = i + 1, u / B[i, i]
        v = home(by, u[None])[0]
        for _ in range(2):  # twice is enough
            v -= V[: i + 1].T @ (V[: i + 1].conj() @ v)
        B[i, i + 1] = np.linalg.norm(v)
        if B[i, i + 1] <= nothing:  # nothing new: B has every singular value there is
            break
        V[i + 1] = v / B[i, i + 1]
    whole = bool(rows < columns or B[rows - 1, rows] <= nothing)
    values = sl.svdvals(B[:rows, :columns]) if rows else np.zeros(1)
    top, low = float(values[0]), float(values[values > nothing][-1]) if rows else 0.0
    passes = f"{rows + columns} passes over X (Golub-Kahan-Lanczos)"
    if whole:
        rank = m if rows == columns and values[-1] > nothing else None
        ends = [(max(v - nothing, 0.0), v + nothing) for v in (top, low)]
        return Extremes((n, p), total, top, low, ends[0], ends[1], rank, False, f"{passes} found every one")
    # P[θ − λ_min > ε(λ_max − λ_min)] ≤ 1.648 √m e^{−√ε(2k − 1)}, for eigenvalues of XᴴX and a uniformly random start
    share = (math.log(1.648 * math.sqrt(m) / (DOUBT / 2)) / (2 * columns - 1)) ** 2
    high = min(top * math.sqrt(1.0 / (1.0 - share)) if share < 1 else math.sqrt(total), math.sqrt(total))
    sure = math.sqrt(max(low**2 - share * high**2, 0.0))
    if sure > 0:
        return Extremes((n, p), total, top, low, (top, high), (sure, low), m, False, f"an estimate from {passes}")
    words = f"an estimate from {passes}: the smallest can be smaller, or, if X is rank-deficient, larger"
    return Extremes((n, p), total, top, low, (top, high), (0.0, high), None, False, words)
