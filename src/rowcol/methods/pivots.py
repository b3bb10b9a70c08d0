"""A preconditioner for kernel matrices: randomly pivoted Cholesky, K ≈ FᵀF from a few of its columns.

Pivots are drawn in proportion to what is left of the diagonal, so far points come soon and duplicates hardly ever. They
are drawn by blocks: many at once from the diagonal as it was, each then kept with the share that the pivots before it
in the block have left of it. That gives the same law as drawing one by one, at the speed of matrix products.

M = FᵀF + Λ is inverted by Woodbury. As FᵀF never exceeds K, rᵀM⁻¹r is no less than rᵀA⁻¹r, the squared energy norm of
the error, up to the single precision that F is kept in: a far tighter figure than ‖r‖²/λ, and free.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ..core.gram import Gram, block, diagonal, picked, written

BLOCK = 320  # pivots drawn at once
SPENT = 1e-7  # of the trace: what is left then is rounding


@dataclass(eq=False)
class Pivots:
    """(FᵀF + Λ)⁻¹, F being in single precision, and scaled by Λ^−½."""

    F: np.ndarray  # (r, n)
    root: np.ndarray  # (n,) Λ^−½
    core: np.ndarray  # Cholesky factor of 1 + FΛ⁻¹Fᵀ
    which: np.ndarray  # (r,) the pivots
    left: float  # of the trace, relatively
    passes: float  # over K

    def __call__(self, v: np.ndarray) -> np.ndarray:
        """M⁻¹v of every row of v."""
        u = v * self.root
        size = np.maximum(np.abs(u).max(axis=1, keepdims=True), 1e-300)
        small = (u / size).astype(np.float32)
        inner = scipy.linalg.cho_solve((self.core, True), (small @ self.F.T).astype(np.float64).T).T
        return (u - size * (inner.astype(np.float32) @ self.F)) * self.root


def pivots(g: Gram, lam: np.ndarray, rank: int, seed: np.random.SeedSequence, at_once: int = BLOCK) -> Pivots:
    """A preconditioner of at most this rank; fewer where nothing is left of K."""
    n, rng = g.shape[0], np.random.default_rng(seed)
    F, which, k = np.empty((rank, n), np.float32), np.empty(rank, np.int64), 0
    rest = np.maximum(diagonal(g), 0.0)
    whole = float(rest.sum())
    room = np.empty((min(at_once, rank), n), np.float32)
    for _ in range(rank):  # a round keeps one pivot or more
        ends = np.cumsum(rest)
        if k == rank or not ends[-1] > SPENT * whole:
            break
        drawn = np.unique(np.searchsorted(ends, rng.random(at_once) * ends[-1], side="right"))
        drawn = rng.permutation(np.minimum(drawn, n - 1))
        mine = np.ascontiguousarray(F[:k, drawn])
        kept, lower = _accept(block(g, drawn, drawn) - (mine.T @ mine), rest[drawn], rng.random(drawn.size))
        kept, lower = kept[: rank - k], lower[: rank - k, : rank - k]
        if not kept.size:
            break
        chosen, m = drawn[kept], kept.size
        lines = room[:m] if g.dtype is np.float32 else None
        lines = written(picked(g, chosen), lines).astype(np.float32, copy=False)
        if k:
            lines -= np.ascontiguousarray(mine[:, kept].T) @ F[:k]
        inverse = scipy.linalg.solve_triangular(lower, np.eye(m), lower=True).astype(np.float32)
        np.matmul(inverse, lines, out=F[k : k + m])
        rest -= np.einsum("ij,ij->j", F[k : k + m], F[k : k + m])
        np.maximum(rest, 0.0, out=rest)
        rest[chosen] = 0.0
        which[k : k + m] = chosen
        k += m
    F, which = F[:k], which[:k]
    root = np.broadcast_to(1.0 / np.sqrt(lam), n)
    F *= root.astype(np.float32)
    core = np.zeros((0, 0))
    if k:
        core = scipy.linalg.blas.ssyrk(1.0, F.T, trans=1, lower=1).astype(np.float64)  # half of a product
        core[np.diag_indices(k)] += 1.0
        core = scipy.linalg.cholesky(core, lower=True, overwrite_a=True)
    return Pivots(F, np.ascontiguousarray(root), core, which, float(rest.sum()) / max(whole, 1e-300), k / n)


def _accept(rest: np.ndarray, drawn: np.ndarray, luck: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which of the drawn are kept, one after the other, and the Cholesky factor of what was left of K at those."""
    kept: list[int] = []
    lower = np.zeros_like(rest)
    for i in range(len(rest)):
        left = rest[i, i]
        if left > 1e-4 * drawn[i] and luck[i] * drawn[i] < left:  # below that, single precision knows no more
            column = rest[i:, i] / np.sqrt(left)
            lower[i:, len(kept)] = column
            rest[i:, i:] -= np.outer(column, column)
            kept.append(i)
    which = np.array(kept, np.int64)
    return which, lower[which, : which.size]
