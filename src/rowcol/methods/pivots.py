"""A preconditioner for kernel matrices: randomly pivoted Cholesky, K ≈ FᵀF from a few of its columns.

Pivots are drawn in proportion to what is left of the diagonal, so far points come soon and duplicates hardly ever. They
are drawn by blocks: many at once from the diagonal as it was, each then kept with the share that the pivots before it
in the block have left of it. That gives the same law as drawing one by one, at the speed of matrix products.

M = FᵀF + Λ is inverted by Woodbury. As FᵀF never exceeds K, rᵀM⁻¹r is no less than rᵀA⁻¹r, the squared energy norm of
the error, up to the single precision that F is kept in: a far tighter figure than ‖r‖²/λ, and free.
"""

from __future__ import annotations

import time
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.linalg

from ..core.gram import Gram, block
from ..core.lowrank import LowRank, Thin
from ..core.sizes import diagonal
from ..core.threads import lent

BLOCK = 320  # pivots drawn at once
SPENT = 1e-7  # of the trace: what is left then is rounding
FLOOR = 1e-4  # of a typical k(x, x): of a pivot of which less is left, single precision makes more than there is
BEARABLE = 5e-7  # Λ over ‖K‖: below that, single precision could take M for indefinite


@dataclass(eq=False)
class Pivots:
    """(FᵀF + Λ)⁻¹, F being in single precision; Λ may be another for every column."""

    low: Thin  # (r, n) F
    root: np.ndarray  # (1, n) or (q, n) Λ^−½; zero at points that do not count
    cores: list[np.ndarray]  # one or q Cholesky factors of 1 + FΛ⁻¹Fᵀ
    which: np.ndarray  # (r,) the pivots
    left: float  # of the trace, relatively
    passes: float  # over K
    unit: float  # all of this is of unit (K + Λ)
    slack: np.ndarray = field(default_factory=lambda: np.ones(1))  # by how much Λ was raised, at most, column by column
    inner: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))  # (r, r) FFᵀ, its lower triangle
    landmarks: Any = None  # (r, d) where it was moved from other points (landmarks.py): not all are among these
    lower: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))  # (r, r) the Cholesky factor of K of them
    home: Any = None  # what it was moved from

    @property
    def lines(self) -> np.ndarray:
        """(r, n) F, where it is here."""
        assert isinstance(self.low, LowRank)
        return self.low.lines

    def __call__(self, v: np.ndarray) -> np.ndarray:
        """M⁻¹v of every row of v."""
        u = v * self.root
        if not self.low.known:  # no pivot was found: M is Λ, and SciPy 1.12 fails where nothing is to be solved
            return u * (self.unit * self.root)
        scaled = u * self.root
        size = np.maximum(np.abs(scaled).max(axis=1, keepdims=True), 1e-300)
        seen = self.low.times((scaled / size).astype(np.float32))
        if len(self.cores) == 1:
            inner = scipy.linalg.cho_solve((self.cores[0], True), seen.T).T
        else:
            inner = np.stack([scipy.linalg.cho_solve((c, True), one) for c, one in zip(self.cores, seen, strict=True)])
        return (u - size * self.low.back(inner.astype(np.float32)) * self.root) * (self.unit * self.root)

    def shared(self, pool: Executor | None) -> Pivots:
        """The same, its products by these threads: for no longer than they are there."""
        return replace(self, low=replace(self.low, pool=pool)) if isinstance(self.low, LowRank) else self

    def some(self, mask: np.ndarray) -> Pivots:
        """The same for some of the columns."""
        if len(self.cores) == 1:
            return self
        return replace(self, root=self.root[mask], cores=[c for c, kept in zip(self.cores, mask, strict=True) if kept])


def pivots(
    g: Gram,
    lam: np.ndarray,
    rank: int,
    seed: np.random.SeedSequence,
    at_once: int = BLOCK,
    deadline: float = np.inf,
    floor: float = FLOOR,
    most: int | None = None,
    low: Thin | None = None,
) -> Pivots:
    """A preconditioner of at most this rank; of less where nothing is left of K, or no time, or after `most` pivots.

    `low`: where F is made; here, unless it is said.
    """
    n, rng = g.shape[0], np.random.default_rng(seed)
    which, k, room = np.empty(rank, np.int64), 0, min(at_once, rank)
    if low is None:
        low = LowRank(np.empty((rank, n), np.float32), pool=g.pool, room=np.empty((room, n), np.float32))
    rest = np.maximum(diagonal(g), 0.0)
    typical = float(rest.mean()) or float(lam.mean())
    unit = 2.0 ** -round(np.log2(min(max(typical, 1e-290), 1e290)))  # of K and Λ: nothing leaves single precision
    rest *= unit
    whole = float(rest.sum())
    for _ in range(rank):  # a round keeps one pivot or more
        ends = np.cumsum(rest)
        if k >= (rank if most is None else most) or not ends[-1] > SPENT * whole or time.perf_counter() > deadline:
            break
        drawn = np.minimum(np.searchsorted(ends, rng.random(at_once) * ends[-1], side="right"), n - 1)
        drawn = drawn[np.sort(np.unique(drawn, return_index=True)[1])]  # each once, in the order they came
        mine = low.columns(drawn)
        own = unit * block(g, drawn, drawn) - (mine.T @ mine)
        kept, lower = accepted(own, rest[drawn], rng.random(drawn.size), floor)
        kept, lower = kept[: rank - k], lower[: rank - k, : rank - k]
        if not kept.size:
            break
        chosen, m = drawn[kept], kept.size
        inverse = scipy.linalg.solve_triangular(lower, np.eye(m), lower=True).astype(np.float32)
        rest -= low.take(g, chosen, unit, np.ascontiguousarray(mine[:, kept].T), inverse)
        np.maximum(rest, 0.0, out=rest)
        rest[chosen] = 0.0
        which[k : k + m] = chosen
        k += m
    left = float(rest.sum()) / max(whole, 1e-300)
    if isinstance(low, LowRank):  # memory and threads end with this
        low = LowRank(low.F, low.known)
    return inverted(unit * lam.reshape(-1, n), room * n, Pivots(low, lam, [], which[:k], left, k / n, unit))


def inverted(lam: np.ndarray, room: int, made: Pivots) -> Pivots:
    """The Woodbury factors of FᵀF + Λ, with Λ no less than single precision can bear."""
    with lent(made.low.known):
        return _inverted(lam, room, made)


def _inverted(lam: np.ndarray, room: int, made: Pivots) -> Pivots:
    inner = made.inner if made.inner.size else made.low.squared()
    for more in (1.0, 10.0, 100.0, 1e3):
        raised = np.where(lam > 0, np.maximum(lam, more * BEARABLE * _largest(inner)), 0.0)
        root = np.sqrt(np.divide(1.0, raised, out=np.zeros_like(lam), where=raised > 0))
        slack = np.divide(raised, lam, out=np.ones_like(lam), where=lam > 0).max(axis=1)
        try:
            cores = _cores(made.low, root, inner, room)
        except scipy.linalg.LinAlgError:
            continue
        return replace(made, root=root, cores=cores, slack=slack, inner=inner)
    none = LowRank(np.empty((0, lam.shape[1]), np.float32))
    cores, slack = [np.eye(0)] * len(root), np.full(len(root), np.inf)
    return replace(made, low=none, which=made.which[:0], root=root, cores=cores, slack=slack)


def _largest(inner: np.ndarray) -> float:
    """‖FFᵀ‖₂ from its lower triangle, by a few products."""
    v, size = np.ones(len(inner)), 0.0
    for _ in range(8 if len(inner) else 0):
        v = inner @ v + inner.T @ v - np.diagonal(inner) * v
        size = float(np.linalg.norm(v))
        if not 0 < size < np.inf:
            break
        v = v / size
    return size


def _cores(low: Thin, root: np.ndarray, inner: np.ndarray, room: int) -> list[np.ndarray]:
    """The Cholesky factors of 1 + FΛ⁻¹Fᵀ: columns that share a Λ share one, alphas of one fold the product."""
    kept: dict[bytes, np.ndarray] = {}
    tops = root.max(axis=1)
    shapes = [(one / top).astype(np.float32) for one, top in zip(root, tops, strict=True)]
    names = [shape.tobytes() for shape in shapes]
    for shape, name in {name: (shape, name) for shape, name in zip(shapes, names, strict=True)}.values():
        product = _weighed(low, shape, inner, room)
        for i, mine in enumerate(names):
            if mine == name and root[i].tobytes() not in kept:
                core = tops[i] ** 2 * product.astype(np.float64)
                core[np.diag_indices(len(core))] += 1.0
                kept[root[i].tobytes()] = (
                    scipy.linalg.cholesky(core, lower=True, overwrite_a=True) if len(core) else core
                )
    return [kept[one.tobytes()] for one in root]


def _weighed(low: Thin, shape: np.ndarray, inner: np.ndarray, room: int) -> np.ndarray:
    """F diag(shape²) Fᵀ, its lower triangle; where a few points are left out, what they add is taken off."""
    out = np.flatnonzero(shape != 1.0)
    if not out.size:
        return inner
    if not shape[out].any() and out.size <= shape.size // 2:
        return np.asarray(inner - low.weighed(shape, True, room))
    return low.weighed(shape, False, room)


def accepted(
    rest: np.ndarray, drawn: np.ndarray, luck: np.ndarray, floor: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Which of the drawn are kept, one after the other, and the Cholesky factor of what was left of K at those."""
    kept: list[int] = []
    lower = np.zeros_like(rest)
    for i in range(len(rest)):
        left = rest[i, i]
        known = left > max(1e-4 * drawn[i], floor)  # below that, single precision knows no more
        if known and luck[i] * drawn[i] < left:
            column = rest[i:, i] / np.sqrt(left)
            lower[i:, len(kept)] = column
            rest[i:, i:] -= np.outer(column, column)
            kept.append(i)
    which = np.array(kept, np.int64)
    return which, lower[which, : which.size]
