"""Factors of the small Gram matrix: `direct` (all rows) and `subset` (a random sample of them).

Let T be X if it is tall and Xᴴ if it is wide, m its smaller side, and G = TᴴT + λ, with columns scaled alike. Every
step is the same correction: β += G⁻¹(Xᴴρ − λβ) if tall, α += G⁻¹(ρ − λα) and β = Xᴴα if wide. The first one solves;
the next ones refine, with what the exact look found, so they cost nothing but the look.

| factor | when |
|---|---|
| Cholesky of G | condition of G below 1e12, which leaves refinement four digits a step |
| eigenvalues of G, truncated | some are zero, and X times their vectors is zero too: rank-deficient, beyond doubt |
| QR of T, block by block | otherwise: it does not square the condition; small systems have it at once, and its SVD |
| all eigenvalues of G without λ; or, where that is not enough, the SVD of QR's R | several λ at once |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp

from ..core.explain import explain_values
from ..core.passes import Products
from ..core.place import Place, by_pieces, cut, pieces_of, whole
from ..core.problem import Shift
from ..core.products import back, times
from ..core.threads import AHEAD, SHARED, by_threads

SAFE = 1e12  # condition of G up to which Cholesky and refinement are enough
NULL = 1e-12  # ‖Xv‖ ≤ NULL·√m·‖X‖ for a unit vector v: X is rank-deficient along v
BLOCK_BYTES = 32_000_000
CACHED = 2_000_000  # bytes of a block that is still in cache when it is used a second time
SINGLE = 2.0**-24  # the rounding error of single precision
TINY = 1e-20  # squares no smaller, and no larger than 1/TINY, are far from where single precision ends
SMALL = 3e7  # numbers times unknowns: up to here QR and SVD cost less than asking whether they are needed


@dataclass
class Factor:
    """G⁻¹, or its pseudo-inverse, as a function: `apply`."""

    kind: str  # "cholesky", "eigen", "qr" or "svd"; "spectrum": eigenvalues without λ, for many of them
    scale: np.ndarray  # (m,) D: what was factored is D G D
    upper: np.ndarray  # R with DGD = RᴴR; or, of "eigen" and "svd", the vectors V kept
    values: np.ndarray | None  # the eigenvalues of DGD kept
    null: np.ndarray | None  # (m, k) orthonormal: what X does not see
    condition: float  # of DTD or less
    rank: int
    cut: float  # singular values below this share of the largest were taken as zero

    def apply(self, v: np.ndarray, lam: Any = 0.0) -> np.ndarray:
        """G⁻¹v for (q, m) vectors; in the row space, where that is not everything. `lam`: of a spectrum, (q, 1)."""
        u = (v * self.scale).T
        if self.values is None:
            u = sl.solve_triangular(self.upper, u, trans="C", check_finite=False)
            u = sl.solve_triangular(self.upper, u, check_finite=False)
        else:
            u = self.upper @ ((self.upper.conj().T @ u) / (self.values[:, None] + np.transpose(lam)))
        return self.inside(u.T * self.scale)

    def polish(self, by: Products) -> None:
        """Take from the null vectors what X still sees of them: QR knows X to rounding of its norm, not of its rows."""
        if self.null is not None:
            seen = back(by, times(by, np.ascontiguousarray(self.null.T)))
            null, self.null = self.null, None
            self.null = _orthonormal(null - self.apply(seen).T)

    def inside(self, beta: np.ndarray) -> np.ndarray:
        """β without its part in the null space."""
        if self.null is not None:
            beta = beta - (beta @ self.null.conj()) @ self.null.T
        return np.ascontiguousarray(beta)

    @property
    def bytes(self) -> int:
        """Memory kept."""
        return sum(a.nbytes for a in (self.scale, self.upper, self.values, self.null) if a is not None)


def tall_blocks(X: Any, dtype: Any, wide: bool, columns: int, shift: Shift | None = None) -> Iterator[np.ndarray]:
    """T, dense and in double precision, some rows at a time."""
    n, p = X.shape
    length = max(int(BLOCK_BYTES / (8 * min(n, p))), columns, 1)
    for i in range(0, p if wide else n, length):
        yield _tall_block(X, dtype, wide, shift, i, length)


def _tall_block(X: Any, dtype: Any, wide: bool, shift: Shift | None, i: int, length: int) -> np.ndarray:
    """Rows i, ..., i + length − 1 of T."""
    rows, cols = (slice(None), slice(i, i + length)) if wide else (slice(i, i + length), slice(None))
    part = X[rows, cols]
    part = part.toarray() if sp.issparse(part) else part
    if shift is not None:
        ones = shift.ones[rows]
        off = shift.mean[cols] if (ones == 1).all() else np.multiply.outer(ones, shift.mean[cols])
        part = part - off
        part = part if shift.live is None else np.multiply(part, shift.live[cols], out=part)
    return np.asarray(part.conj().T if wide else part, dtype=dtype)


def gram_and_slope(X: Any, y: np.ndarray, pool: Executor | None) -> tuple[np.ndarray, np.ndarray]:
    """XᵀX and yX of a tall dense X of real numbers, every block of which is read once: y is (q, n)."""
    n, p = X.shape
    G, slope = np.zeros((p, p), y.dtype), np.zeros((len(y), p), y.dtype)
    rows_first = X.flags.c_contiguous  # short rows gain from the cache, long columns from their length
    room = CACHED if rows_first else BLOCK_BYTES
    step = max(room // (8 * p), p) if pool is None else _share(n, p, rows_first)

    def block(i: int) -> tuple[np.ndarray, np.ndarray]:
        part = np.asarray(X[i : i + step], dtype=y.dtype)
        return part.T @ part, y[:, i : i + step] @ part

    for product, pulled in by_threads(pool if p <= SHARED else None, block, range(0, n, step), G.nbytes):
        G += product
        slope += pulled
    return G, slope


def _share(long: int, m: int, rows_first: bool) -> int:
    """Rows of T in a block, so that threads have as many blocks each; of a size that suits the layout."""
    blocks = AHEAD * max(round(8 * long * m / (AHEAD * (CACHED if rows_first else BLOCK_BYTES / 3))), 1)
    return max(-(-long // blocks), m)


def quick_gram(
    by: Products, X: np.ndarray, y: np.ndarray, alpha: float, tol: float
) -> tuple[Factor, np.ndarray, np.ndarray] | None:
    """A factor of XᵀX + alpha from products in single precision, yX in double, and ‖X_j‖² from above.

    None where such a factor is not enough for the tolerance, which a first block of rows foretells; where numbers are
    too large or too small for single precision; and where they are not numbers.
    """
    n, p = X.shape
    step = max(min(CACHED // (8 * p), 16_384), 8 * p)
    if tol < 2 * SINGLE or n < 4 * step or not X.flags.c_contiguous:  # columns gain nothing: they are read in long runs
        return None
    few = X[:256]  # foretell by these first, without BLAS: SciPy's threads would then be in the way of NumPy's
    size = float(np.einsum("ij,ij->j", few, few).max()) * n / len(few)
    if not tol > 8 * SINGLE * np.sqrt(1 + size / alpha):
        return None
    space = np.empty((step, p), np.float32)
    pool = by.pool if p <= SHARED else None

    def block(i: int) -> tuple[np.ndarray, np.ndarray]:
        part = X[i : i + step]
        few = space[: len(part)] if pool is None else np.empty(part.shape, np.float32)
        few[:] = part
        return few.T @ few, y[:, i : i + step] @ part

    first, slope = block(0)
    G = first.astype(np.float64)
    if _tame(by, G * (n / step), alpha, tol) is None:
        return None
    for product, pulled in by_threads(pool, block, range(step, n, step), G.nbytes):
        G += product
        slope += pulled
    factor = _tame(by, G.copy(), alpha, tol)
    # a term is rounded three times, and a sum as often as it has terms; 1.05 is for the squares of all that
    return None if factor is None else (factor, slope, np.diagonal(G) * (1 + 1.05 * SINGLE * (step + 3)))


def _tame(by: Products, G: np.ndarray, alpha: float, tol: float) -> Factor | None:
    """Cholesky of G + alpha, where errors of single precision in G leave an answer good to tol, as far as can be told.

    They move the answer by SINGLE times the condition; a gap sees that times √(1 + ‖X‖²/alpha), as it divides by alpha.
    """
    if not in_single(np.diagonal(G) / by.shape[0]):
        return None
    seen = SINGLE * np.sqrt(1 + float(np.diagonal(G).max()) / alpha)
    return from_gram(by, G, alpha, False, tame=tol / (2 * seen)) if tol > 2 * seen else None


def in_single(typical: np.ndarray) -> bool:
    """Are such squares, which numbers of columns typically have, far from where single precision ends?"""
    return bool(((typical > TINY) & (typical < 1 / TINY)).all())  # False for NaN too


def gram(X: Any, dtype: Any, wide: bool, shift: Shift | None = None, pool: Executor | None = None) -> np.ndarray:
    """TᴴT, block by block, which threads share; of a sparse X as a sparse product."""
    if isinstance(X, Place):
        return np.asarray(sum(X.map(_gram_less, (dtype,), (shift,), pool)))
    if sp.issparse(X):
        Z = X.astype(dtype)
        G = np.asarray(((Z @ Z.conj().T) if wide else (Z.conj().T @ Z)).toarray())
        return G if shift is None else less_mean(Z, G, wide, shift)
    small = shift is not None and not wide and small_means(shift)
    m, long = X.shape if wide else X.shape[::-1]
    pool = pool if m <= SHARED else None
    G, taken = np.zeros((m, m), dtype), None if small else shift
    rows_first = isinstance(X, np.ndarray) and X.flags.c_contiguous and not wide
    length = max(BLOCK_BYTES // (8 * m), 1) if pool is None else _share(long, m, rows_first)

    def block(i: int) -> np.ndarray:
        part = _tall_block(X, dtype, wide, taken, i, length)
        return part.conj().T @ part if np.iscomplexobj(part) else part.T @ part

    for part in by_threads(pool, block, range(0, long, length), G.nbytes):
        G += part
    return less_mean(X, G, wide, shift) if small and shift is not None else G


@by_pieces
def _gram_less(part: Any, pool: Executor | None, dtype: Any, shift: Shift | None) -> np.ndarray:
    if pool is not None or sp.issparse(part):
        return gram(whole(part), dtype, False, shift, pool)
    pieces = pieces_of(part, 2 * part.shape[1])
    return np.asarray(sum(gram(piece, dtype, False, cut(shift, rows)) for rows, piece in pieces))


def small_means(shift: Shift) -> bool:
    """Are means small enough for their squares to be taken off afterwards? Then blocks are looked at in place."""
    if shift.column2 is None:
        return False
    live = shift.column2 > 0
    return bool(((shift.ones @ shift.ones) * np.abs(shift.mean[live]) ** 2 <= 1e3 * shift.column2[live]).all())


def less_mean(Z: Any, G: np.ndarray, wide: bool, shift: Shift) -> np.ndarray:
    """The Gram matrix of Z − u x̄ᵀ from that of Z. It cancels where means are large: refinement mends that."""
    u, mean = shift.ones, shift.mean if shift.live is None else shift.mean * shift.live
    if not wide:  # Zᴴu = ‖u‖² conj(x̄)
        G -= np.multiply.outer(mean.conj(), (u @ u) * mean)
        if shift.live is not None:
            G *= np.multiply.outer(shift.live, shift.live)
        return G
    if shift.live is not None:
        fixed = Z[:, shift.live == 0]
        G = G - np.asarray((fixed @ fixed.conj().T).toarray())
    cross = np.multiply.outer(Z @ mean.conj(), u)
    return G - cross - cross.conj().T + np.multiply.outer(u, u) * (np.abs(mean) ** 2).sum()


def from_gram(by: Products, G: np.ndarray, alpha: float, wide: bool, tame: float = 0.0) -> Factor | None:
    """Cholesky, or eigenvalues where X is rank-deficient beyond doubt; None where only QR is safe. G is used up."""
    if not np.isfinite(np.diagonal(G)).all():
        raise ValueError(explain_values(by.X))
    diagonal, scale = scaled(G, alpha)
    if (diagonal + alpha > 0).all():
        made = cholesky(G, scale, tame or SAFE)
        if made is not None:
            return made
    if tame or alpha > 0 or (wide and not np.allclose(scale, scale[0])):
        return None  # rows of different size must not be scaled where none fits
    values, V = eigen(G)
    top = max(float(values[-1]), 1e-300)
    keep = values > 1e-10 * top
    if ((values > 1e-14 * len(G) * top) & ~keep).any() or not keep.any():
        return None  # no gap: zero or small, G cannot tell
    N = _orthonormal(V[:, ~keep] * scale[:, None])
    seen = np.linalg.norm(back(by, N.T.copy()) if wide else times(by, N.T.copy()), axis=1)
    if not (seen <= NULL * np.sqrt(diagonal.sum())).all():
        return None
    return Factor("eigen", scale, V[:, keep], values[keep], N, (top / values[keep][0]) ** 0.5, int(keep.sum()), 1e-7)


def scaled(G: np.ndarray, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """D(G + alpha)D in place of G, whose diagonal is about one; the diagonal that G had, and D."""
    diagonal = np.real(np.diagonal(G)).copy()
    scale = _scale(diagonal + alpha)
    G *= scale[:, None]
    G *= scale
    G.flat[:: len(G) + 1] += alpha * scale**2
    return diagonal, scale


def cholesky(G: np.ndarray, scale: np.ndarray, most: float) -> Factor | None:
    """Of a matrix that is `scaled` by this, if its condition is no larger than `most`."""
    size = float(np.abs(G).sum(axis=0).max())
    R, info = sl.lapack.get_lapack_funcs(("potrf",), (G,))[0](G, lower=False, clean=True, overwrite_a=False)
    if info != 0:
        return None
    rcond, _ = sl.lapack.get_lapack_funcs(("pocon",), (R,))[0](R, size)
    return Factor("cholesky", scale, R, None, None, rcond**-0.5, len(G), 0.0) if rcond * most >= 1.0 else None


def from_blocks(
    X: Any,
    y: np.ndarray | None,
    alpha: float,
    dtype: Any,
    wide: bool,
    always_svd: bool,
    shift: Shift | None = None,
) -> tuple[Factor, np.ndarray]:
    """QR of [T y], block by block, and its SVD where it is rank-deficient; and β itself, where T is tall."""
    n, p = X.shape
    m = min(n, p)
    q = 0 if y is None or wide else len(y)
    columns = np.asarray(sum(_each(X, _norms_of, (dtype, wide, m + q), (shift,))))
    if not np.isfinite(columns).all():
        raise ValueError(explain_values(X))
    scale = np.ones(m) if wide else _scale(columns + alpha)
    R = np.zeros((0, m + q), dtype)
    for part in _each(X, _triangle_of, (scale, dtype, wide, m + q), (y if q else None, shift)):
        R = np.asarray(np.linalg.qr(np.vstack([R, part]), mode="r"))
    if alpha > 0:
        penalty = np.hstack([np.diag(np.sqrt(alpha) * scale), np.zeros((m, q))]).astype(dtype)
        R = np.asarray(np.linalg.qr(np.vstack([R, penalty]), mode="r"))
    R, c = np.ascontiguousarray(R[:m, :m]), R[:m, m:]
    R = np.vstack([R, np.zeros((m - len(R), m), dtype)])
    c = np.vstack([c, np.zeros((m - len(c), q), dtype)])
    cut, most = max(n, p) * 2.0**-52, m
    if shift is not None:
        # rows that sum to nothing have one rank less; and means leave rounding errors, which are no rank
        most = min(m, int(np.count_nonzero(shift.ones)) - 1)
        noise = float(np.linalg.norm(shift.mean if wide else shift.mean * scale) * np.linalg.norm(shift.ones))
        cut *= max(1.0, noise / max(float(np.linalg.norm(R)), 1e-300))
    if not always_svd and (most == m or alpha > 0):
        rcond = float(sl.lapack.get_lapack_funcs(("trcon",), (R,))[0](R)[0])
        if rcond > 100 * cut:
            made = Factor("qr", scale, R, None, None, 1 / rcond, m, 0.0)
            return made, (sl.solve_triangular(R, c, check_finite=False) * scale[:, None]).T
    U, s, Vh = sl.svd(R, check_finite=False, lapack_driver="gesdd")
    keep = s > cut * s[0] if s[0] > 0 else s > 0
    keep[most:] = keep[most:] & (alpha > 0)
    null = None if keep.all() else _orthonormal((Vh[~keep].conj() * scale).T)
    V, s = Vh[keep].conj().T, s[keep]
    made = Factor("svd", scale, V, s**2, null, float(s[0] / s[-1]) if s.size else np.inf, int(keep.sum()), cut)
    beta = V @ ((U[:, keep].conj().T @ c) / s[:, None])
    return made, made.inside((beta * scale[:, None]).T)


def _each(X: Any, f: Callable, shared: tuple, sliced: tuple) -> Iterable[Any]:
    """f of every part of X; of an X that is here, of all of it."""
    return X.map(f, shared, sliced) if isinstance(X, Place) else [f(X, None, *shared, *sliced)]


def _norms_of(X: Any, pool: Any, dtype: Any, wide: bool, length: int, shift: Shift | None) -> np.ndarray:
    return np.asarray(sum((np.abs(b) ** 2).sum(axis=0) for b in tall_blocks(X, dtype, wide, 4 * length, shift)))


def _triangle_of(
    X: Any, pool: Any, scale: np.ndarray, dtype: Any, wide: bool, length: int, y: Any, shift: Shift | None
) -> np.ndarray:
    """R of [T y] = QR, block by block."""
    R, start = np.zeros((0, len(scale) + (0 if y is None else len(y))), dtype), 0
    for part in tall_blocks(X, dtype, wide, 4 * length, shift):
        block = part * scale
        if y is not None:
            block = np.hstack([block, y[:, start : start + len(part)].T])
        start += len(part)
        R = np.asarray(np.linalg.qr(np.vstack([R, block]), mode="r"))
    return R


def eigen(G: np.ndarray, overwrite: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, ascending, and vectors of a Hermitian matrix, by halves: the quickest where all are wanted."""
    driver = "evd" if len(G) > 1 else "ev"  # SciPy 1.12 gives evd too little room for a single number
    return sl.eigh(G, overwrite_a=overwrite, check_finite=False, driver=driver)


def spectrum(X: Any, dtype: Any, wide: bool, shift: Shift | None, safely: bool) -> tuple[Factor, np.ndarray | None]:
    """All eigenvalues of TᴴT, from it or, safely, from the singular values of QR's R: one factor for every λ.

    And the squared norms of T's columns, where they came by the way.
    """
    m = min(X.shape)
    if not safely:
        G = gram(X, dtype, wide, shift)
        if not np.isfinite(G).all():
            raise ValueError(explain_values(X))
        norms = np.real(np.diagonal(G)).copy()
        values, V = eigen(G, overwrite=True)
        return Factor("spectrum", np.ones(m), V, np.maximum(values, 0.0), None, np.inf, m, 0.0), norms
    R = triangle(X, dtype, wide, shift)
    _, s, Vh = sl.svd(R, full_matrices=False, check_finite=False, lapack_driver="gesdd")
    return Factor("svd", np.ones(m), Vh.conj().T, s**2, None, np.inf, m, 0.0), None


def triangle(X: Any, dtype: Any, wide: bool, shift: Shift | None = None) -> np.ndarray:
    """R of T = QR, block by block: every row of T is read once."""
    m = min(X.shape)
    R = np.zeros((0, m), dtype)
    for part in _each(X, _triangle_of, (np.ones(m), dtype, wide, m), (None, shift)):
        R = np.asarray(np.linalg.qr(np.vstack([R, part]), mode="r"))
    return R


def _scale(squares: np.ndarray) -> np.ndarray:
    """Powers of two near 1/√ of these, which cost no bit; one for zero."""
    exponent = np.frexp(np.where(squares > 0, squares, 1.0))[1]
    return np.ldexp(1.0, -(exponent // 2))


def _orthonormal(N: np.ndarray) -> np.ndarray:
    return np.linalg.qr(N / np.maximum(np.linalg.norm(N, axis=0), 1e-300))[0]
