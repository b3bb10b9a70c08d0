"""A kernel matrix that is never formed: the points of its two sides, and products with it tile by tile.

A kernel is a tree whose leaves are one-line kernels, functions, or a given matrix: tiles of the leaves are made, and
combined. Where there is one leaf, the compiled tiles multiply on the way and nothing is written out.

Threads share rows of tiles, and what they find is added up in a fixed order: bits do not depend on how many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from itertools import pairwise
from itertools import product as product_of
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..engine.tiles import Absolute, Dot, Ratio, Square, band, bend, fill, spend
from .kernels import Function, Precomputed
from .memory import Rooms, laid, narrowed, width_of, zeros
from .problem import array_of
from .recipes import Kernel, Product, Scaled, Sum
from .sides import Leaf, Side, arrived, leaves_of, points, settle, side_of, some_of, symmetric, tree_error
from .threads import by_threads, spread

LINES = 256  # of a tile that is written out
MANY = 384  # features: from here on BLAS makes the bases quicker

Both = tuple[np.ndarray, np.ndarray]  # K v, and Kᵀ u


@dataclass(eq=False)
class Gram:
    """k(x_i, y_j) for the points of two sides, in one precision."""

    kernel: Kernel
    leaves: tuple[Leaf, ...]
    left: tuple[Side, ...]
    right: tuple[Side, ...]
    shape: tuple[int, int]
    features: int
    sparse: bool
    dtype: type
    width: int
    pool: Executor | None
    team: Any = None  # workers elsewhere that have the same points, and share products
    far: Any = None  # Far, where the points of the right side are not here; nor those of the left, if it is the same

    def __setstate__(self, state: dict[str, Any]) -> None:
        left, right = state["left"], state["right"]
        self.__dict__.update(state, left=arrived(left))
        self.right = self.left if left is right else arrived(right)

    @property
    def symmetric(self) -> bool:
        """Are both sides the same points?"""
        return self.left is self.right

    @property
    def error(self) -> float:
        """Of an entry, against √(k_ii k_jj)."""
        return tree_error(self.kernel, iter(self.leaves))

    @property
    def chain(self) -> int:
        """Terms in the longest chain of a product's sums: of a tile's width, then of as many tiles as there are."""
        return self.width + -(-self.shape[1] // self.width) + (0 if self.far is None else self.far.cuts(self))


def gram(
    kernel: Kernel, X: Any, dtype: type = np.float64, pool: Executor | None = None, some: np.ndarray | None = None
) -> Gram:
    """The kernel matrix of X with itself; or that of `some` of its points, with the kernel settled on all of them."""
    leaves = tuple(settle(one, X, dtype) for one in leaves_of(kernel))
    X = X if some is None else X[some]
    n = X.shape[0]
    width = width_of(n)
    X = symmetric(X) if any(isinstance(leaf.kernel, Precomputed) for leaf in leaves) else X
    sides = tuple(side_of(leaf, X, dtype, width) for leaf in leaves)
    return Gram(kernel, leaves, sides, sides, (n, n), X.shape[1], sp.issparse(X), dtype, width, pool)


def alone(g: Gram) -> Gram:
    """g without threads and workers: to be kept, or sent."""
    return replace(g, pool=None, team=None)


def cross(g: Gram, A: Any) -> Gram:
    """k(a, x) of new points with those of g."""
    left = sides_for(g, A, narrowed(g.width, A.shape[0]))
    return replace(g, left=left, shape=(A.shape[0], g.shape[1]), team=None)


def facing(g: Gram, A: Any) -> Gram:
    """k(x, a) of the points on g's left with new ones."""
    width, m = narrowed(g.width, A.shape[0]), A.shape[0]
    return replace(g, right=sides_for(g, A, width), shape=(g.shape[0], m), width=width, team=None, far=None)


def between(g: Gram, A: Any) -> Gram:
    """g of these points instead of its own, with the kernel as it was settled."""
    width, n = narrowed(g.width, A.shape[0]), A.shape[0]
    both = sides_for(g, A, width)
    return replace(g, left=both, right=both, shape=(n, n), width=width, team=None, far=None)


def sides_for(g: Gram, A: Any, width: int) -> tuple[Side, ...]:
    """New points, as the leaves of g see them."""
    if A.shape[1] != g.features:
        raise ValueError(f"points must have {g.features} features, as those fitted, got {A.shape[1]}")
    if sp.issparse(A) != g.sparse:  # as those fitted
        A = sp.csr_array(A) if g.sparse else A.toarray()
    return tuple(side_of(leaf, A, g.dtype, width) for leaf in g.leaves)


def picked(g: Gram, which: np.ndarray) -> Gram:
    """Some rows of g."""
    width = narrowed(g.width, which.size)
    if g.far is not None:
        return replace(g, left=sides_for(g, g.far.points(which), width), shape=(which.size, g.shape[1]))
    left = tuple(some_of(leaf, side, which, width) for leaf, side in zip(g.leaves, g.left, strict=True))
    return replace(g, left=left, shape=(which.size, g.shape[1]), team=None)


def among(g: Gram, which: np.ndarray) -> Gram:
    """g of some points only."""
    if g.far is not None:
        return between(g, g.far.points(which))
    both = tuple(
        side._replace(raw=side.raw[np.ix_(which, which)])
        if isinstance(leaf.kernel, Precomputed)
        else some_of(leaf, side, which, g.width)
        for leaf, side in zip(g.leaves, g.left, strict=True)
    )
    return replace(g, left=both, right=both, shape=(which.size, which.size), team=None)


def some_columns(g: Gram, which: np.ndarray) -> Gram:
    """Some columns of g."""
    width = narrowed(g.width, which.size)
    if g.far is not None:
        near = sides_for(g, g.far.points(which), width)
        return replace(g, right=near, shape=(g.shape[0], which.size), width=width, far=None)
    left, right = [], []
    for leaf, mine, other in zip(g.leaves, g.left, g.right, strict=True):
        given = isinstance(leaf.kernel, Precomputed)
        left.append(mine._replace(raw=np.ascontiguousarray(mine.raw[:, which])) if given else mine)
        right.append(other if given else some_of(leaf, other, which, width))
    shape = g.shape[0], which.size
    return replace(g, left=tuple(left), right=tuple(right), shape=shape, width=width, team=None)


def tiles_of(g: Gram, share: range) -> Gram:
    """The columns of g that lie in these tiles: nothing is copied."""
    at, rows = slice(share.start, share.stop), slice(share.start * g.width, min(share.stop * g.width, g.shape[1]))
    raws = [None if one.raw is None else one.raw[rows] for one in g.right]
    right = tuple(Side(one.tiles[at], one.offsets[at], raw) for one, raw in zip(g.right, raws, strict=True))
    return replace(g, right=right, shape=(g.shape[0], rows.stop - rows.start))


# --- tiles ---------------------------------------------------------------------------------------------------------


def _base(leaf: Leaf, dtype: type) -> Any:
    assert leaf.recipe is not None
    if leaf.dots:
        return Dot(dtype(-2 if leaf.recipe.base == "distance" else 1))
    return {"distance": Square, "absolute": Absolute, "ratio": Ratio}[leaf.recipe.base](dtype(1))


def _leaf_tile(
    g: Gram, k: int, b: int, w_left: int, start: int, stop: int, c: int, room: np.ndarray | None = None
) -> np.ndarray:
    leaf, left, right = g.leaves[k], g.left[k], g.right[k]
    j0, j1 = c * g.width, min((c + 1) * g.width, g.shape[1])
    i0, i1 = b * w_left + start, b * w_left + stop
    if leaf.recipe is None:
        if isinstance(leaf.kernel, Precomputed):
            return np.array(left.raw[i0:i1, j0:j1], g.dtype)
        assert isinstance(leaf.kernel, Function)
        return checked(leaf.kernel.f(left.raw[i0:i1], right.raw[j0:j1]), (i1 - i0, j1 - j0), g.dtype)
    shape = leaf.recipe.shape_in(g.dtype)
    base = _base(leaf, g.dtype)
    a, c_right = left.offsets[b][start:stop], right.offsets[c][: j1 - j0]
    if left.raw is not None:
        out: np.ndarray = np.ascontiguousarray((left.raw[i0:i1] @ right.raw[j0:j1].T).toarray(), dtype=g.dtype)
    elif _by_blas(leaf, left):
        out = left.tiles[b][:, start:stop].T @ right.tiles[c][:, : j1 - j0]
    else:
        size = (stop - start) * (j1 - j0)
        out = (np.empty(size, g.dtype) if room is None else room[:size]).reshape(stop - start, j1 - j0)
        fill(base, shape, left.tiles[b], left.offsets[b], start, stop, right.tiles[c], right.offsets[c], j1 - j0, out)
        return out
    out *= base.factor
    bend(shape, a, c_right, out)
    return out


def checked(block: Any, shape: tuple[int, int], dtype: type) -> np.ndarray:
    """What a kernel function gave, if it is a block of finite numbers."""
    block = block.toarray() if sp.issparse(block) else array_of(block, "what the kernel function gave")
    if block.shape != shape or block.dtype.kind not in "fiub":
        raise ValueError(f"the kernel function gave {block.shape} {block.dtype}, for blocks that need real {shape}")
    if not np.isfinite(block).all():
        raise ValueError("the kernel function gave a NaN or infinity")
    return np.array(block, dtype)


def _tile(g: Gram, b: int, start: int, stop: int, c: int, room: np.ndarray | None = None) -> np.ndarray:
    """Lines start, ..., stop-1 of the tile (b, c); written into the room given, if it can be."""
    w_left = _left_width(g)
    parts = (_leaf_tile(g, k, b, w_left, start, stop, c, room if k == 0 else None) for k in range(len(g.leaves)))
    return combined(g.kernel, parts)


def combined(kernel: Kernel, parts: Iterator[np.ndarray]) -> np.ndarray:
    """What the leaves gave, put together as the kernel says."""
    if isinstance(kernel, (Sum, Product)):
        out = combined(kernel.a, parts)
        other = combined(kernel.b, parts)
        return np.add(out, other, out=out) if isinstance(kernel, Sum) else np.multiply(out, other, out=out)
    if isinstance(kernel, Scaled):
        out = combined(kernel.a, parts)
        out *= out.dtype.type(kernel.c)
        return out
    return next(parts)


def _fused(g: Gram) -> bool:
    """Can the compiled tiles multiply on the way, or must tiles be written out first?"""
    return (
        len(g.leaves) == 1
        and g.kernel is g.leaves[0].kernel
        and g.leaves[0].recipe is not None
        and g.left[0].raw is None
        and not _by_blas(g.leaves[0], g.left[0])
    )


# --- products ------------------------------------------------------------------------------------------------------


def product(g: Gram, v: np.ndarray) -> np.ndarray:
    """K v for each row of v, in float64; where both sides are the same points, every tile serves twice."""
    if not v.any():
        return np.zeros((len(v), g.shape[0]))
    work = laid(v, g.dtype)
    if g.far is not None:
        return g.far.product(g, work)
    return bands(g, work, range(len(bands_of(g)) - 1)) if g.team is None else g.team.product(g, work)


def by_columns(g: Gram, which: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Some columns of K, times v."""
    if g.far is not None:
        assert g.symmetric
        return g.far.columns(g, which, v)
    return product(some_columns(g, which), v) if g.team is None else g.team.product(g, v, which)


def two_ways(g: Gram, u: np.ndarray, v: np.ndarray) -> Both:
    """K v and Kᵀ u, where the sides are of different points: every tile serves twice."""
    w, (n, m) = _left_width(g), g.shape
    u, v = laid(u, g.dtype), laid(v, g.dtype)
    make = _fused_band if _fused(g) else _written_band
    out, image, rooms = np.empty((len(v), n)), np.zeros((len(v), m)), Rooms()
    for b, (mine, back) in enumerate(shared(g, lambda b: make(g, u, v, b, w, 0, rooms), list(range(-(-n // w))))):
        out[:, b * w : b * w + mine.shape[1]] = mine
        image += back
        rooms.free(back)
    return out, image


def bands_of(g: Gram) -> list[int]:
    """Where rows of tiles begin, by which a product is shared, and where the last one ends."""
    return [*range(0, g.shape[0], _left_width(g)), g.shape[0]]


def bands(g: Gram, work: np.ndarray, which: Sequence[int]) -> np.ndarray:
    """What some rows of tiles, in rising order, add to K v: from their first line on, to the last they add to."""
    n, w = g.shape[0], _left_width(g)
    make, start = _fused_band if _fused(g) else _written_band, which[0] * w
    stop = n if g.symmetric else min((which[-1] + 1) * w, n)
    out, rooms = np.zeros((len(work), stop - start)), Rooms()

    def band_of(b: int) -> tuple[int, np.ndarray, np.ndarray]:
        return (b, *make(g, work, work, b, w, b + 1 if g.symmetric else -(-g.shape[1] // g.width), rooms))

    for b, mine, image in shared(g, band_of, list(which)):
        out[:, b * w - start : b * w - start + mine.shape[1]] += mine
        if image.size:
            out[:, (b + 1) * w - start :] += image
            rooms.free(image)
    return out


def _left_width(g: Gram) -> int:
    return next((side.offsets.shape[1] for side in g.left if side.offsets.size), g.width)


def _by_blas(leaf: Leaf, side: Side) -> bool:
    return leaf.dots and side.raw is None and side.tiles.shape[1] >= MANY


def shared(g: Gram, f: Callable, items: list) -> Iterable:
    """f of every item by our threads; where BLAS makes the tiles, with one thread for each: the two never multiply."""
    blas = any(_by_blas(leaf, side) for leaf, side in zip(g.leaves, g.left, strict=True))
    return by_threads(g.pool, f, items) if blas else spread(g.pool, f, items)


def _fused_band(g: Gram, u: np.ndarray, v: np.ndarray, b: int, w: int, back: int, rooms: Rooms) -> Both:
    """A row of tiles, times v; and from the tile `back` on also its transpose, times u."""
    leaf, left, right, (n, m) = g.leaves[0], g.left[0], g.right[0], g.shape
    assert leaf.recipe is not None
    base, shape = _base(leaf, g.dtype), leaf.recipe.shape_in(g.dtype)
    count, last, q = min(w, n - b * w), len(right.tiles), len(v)
    out, nothing, mine = np.zeros((q, count)), np.empty((q, 0)), u[:, b * w : b * w + count]
    image = rooms.zeros(q, max(m - back * g.width, 0))
    tile = left.tiles[b], left.offsets[b], count, right.tiles, right.offsets, m
    step = max(128 // q, 1)  # so that no compiled call is long
    first, room = b if g.symmetric else 0, zeros((4 + q, g.width), g.dtype)
    for start, stop in pairwise(sorted({*range(first, back, step), *range(back, last, step), min(back, last), last})):
        part = image[:, (start - back) * g.width : (stop - back) * g.width] if start >= back else nothing
        band(base, shape, *tile, start, stop, mine, v, out, part, room)
    return out, image


def _written_band(g: Gram, u: np.ndarray, v: np.ndarray, b: int, w: int, back: int, rooms: Rooms) -> Both:
    n, m = g.shape
    count, q = min(w, n - b * w), len(v)
    out = np.zeros((q, count))
    image, nothing = rooms.zeros(q, max(m - back * g.width, 0)), np.empty((q, 0))
    for c in range(b if g.symmetric else 0, -(-m // g.width)):
        j0, j1 = c * g.width, min((c + 1) * g.width, m)
        for start in range(0, count, LINES):
            stop = min(start + LINES, count)
            tile = _tile(g, b, start, stop, c)
            part = image[:, j0 - back * g.width : j1 - back * g.width] if c >= back else nothing
            spend(tile, u[:, b * w + start : b * w + stop], v, j0, out[:, start:stop], part)
    return out, image


def there_and_back(g: Gram, v: np.ndarray, between: Callable[[slice, np.ndarray], np.ndarray]) -> np.ndarray:
    """Kᵀr for each row of v, r being between(lines, Kv of these lines): every tile is made once, and used both ways."""
    n, m = g.shape
    w, (q, _), nothing = _left_width(g), v.shape, np.empty((len(v), 0))
    v, image = laid(v, g.dtype), np.zeros((q, m))
    rooms = zeros((-(-m // g.width), LINES * g.width), g.dtype)  # used again: fresh memory would cost as much again
    for b, start in product_of(range(-(-n // w)), range(0, w, LINES)):
        stop = min(start + LINES, w, n - b * w)
        if stop <= start:
            continue
        tiles, moved = [_tile(g, b, start, stop, c, room) for c, room in enumerate(rooms)], np.zeros((q, stop - start))
        for c, tile in enumerate(tiles):
            spend(tile, v, v, c * g.width, moved, nothing)
        r = laid(between(slice(b * w + start, b * w + stop), moved), g.dtype)
        for c, tile in enumerate(tiles):
            spend(tile, r, v, c * g.width, moved, image[:, c * g.width : (c + 1) * g.width])
    return image


def written(g: Gram, out: np.ndarray | None = None) -> np.ndarray:
    """All of it, in its own precision: for few rows, or few points."""
    n, m = g.shape
    out = np.empty((n, m), g.dtype) if out is None else out
    if g.far is not None:
        return g.far.written(g, out)
    w, rooms = _left_width(g), Rooms()

    def column(c: int) -> None:
        room = rooms.some(LINES * g.width, g.dtype)
        for b, start in product_of(range(-(-n // w)), range(0, w, LINES)):
            stop = min(start + LINES, w, n - b * w)
            if stop > start:
                out[b * w + start : b * w + stop, c * g.width : (c + 1) * g.width] = _tile(g, b, start, stop, c, room)
        rooms.free(room)

    list(shared(g, column, list(range(-(-m // g.width)))))
    return out


def block(g: Gram, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The entries of some rows and some columns, in float64."""
    return written(replace(some_columns(picked(g, rows), columns), pool=None)).astype(np.float64)


def dense(kernel: Kernel, A: Any, B: Any = None) -> np.ndarray:
    """The matrix k(a_i, b_j) in float64."""
    A = points(A)
    g = gram(kernel, A if B is None else points(B))
    return written(g if B is None else cross(g, A))
