"""Passes over the lines of X, compiled, in float64 whatever X is stored in.

Sums are cut into blocks, whose parts are added in order: threads that share the blocks change no bit, and the rounding
error of a sum grows with its longest chain only.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from typing import Any, NamedTuple

import numpy as np

from ..engine.across import PLACES, down
from ..engine.lines import BLOCK, Dense, Sparse, extent, misfits, norms, pulls, pushes, residuals
from .problem import Shift
from .threads import AHEAD, spread
from .view import PIECE, pieces

SMALL = 500_000  # bytes: one thread is quicker on its own
FEW_LINES = 512  # so many long ones are still in cache, a piece of each, when they are multiplied with again


class Products(NamedTuple):
    """A matrix that can be multiplied with, and how."""

    X: Any  # what multiplies: an array, a sparse array or a LinearOperator
    side: str  # whose lines these are: "rows", "cols"; "operator" for none, "place" for those of its parts
    lines: Dense | Sparse | None
    pool: Executor | None  # threads that share the blocks; None for one
    scratch: dict  # vectors used again by every product
    shift: Shift | None = None  # X − u x̄ᵀ is multiplied with
    blas: bool = False  # several vectors may go by BLAS, whose bits depend on how many there are

    @property
    def shape(self) -> tuple[int, int]:
        """(n, p)."""
        return self.X.shape


def residual_pass(
    by: Products, y: np.ndarray, s: np.ndarray, weight: np.ndarray, squares: bool, r: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """r = y − B s, Bᴴ W r and, on request, Σ_i w_i |a_ij|², in one pass over the lines."""
    assert by.lines is not None
    s, many = np.ascontiguousarray(s), len(s)
    r = np.empty((many, y.shape[1]), np.result_type(y, s)) if r is None else r
    width, lines, entries = s.shape[1], by.lines, stored(by.lines)

    def block(ends: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        part, square = np.zeros((many, width), r.dtype), np.zeros(width if squares else 0)
        for k, (a, b) in enumerate(groups(many, *ends, y.shape[1], entries)):
            own = square if k == 0 else square[:0]
            residuals(lines, *ends, y[a:b], s[a:b], weight, r[a:b], part[a:b], own)
        return part, square

    image, total = np.zeros((many, width), r.dtype), np.zeros(width if squares else 0)
    for part, square in spread(
        by.pool, block, blocks(y.shape[1], width, entries), (image.size + total.size) * r.itemsize
    ):
        image += part
        total += square
    return r, image, total


def few_lines(by: Products, side: str, v: np.ndarray) -> bool:
    """Are these lines few and long, in double precision, and v one vector? Then tiles of our own read them once."""
    dense = by.side == side and isinstance(by.lines, Dense) and by.X.dtype == v.dtype == np.float64
    return dense and len(v) == 1 and min(by.shape) == extent(by.lines) <= FEW_LINES


def there_and_back(by: Products, s: np.ndarray, r: np.ndarray) -> np.ndarray:
    """r −= Σ_i s_i a_i, in place, and then ⟨a_i, r⟩ of every line: one pass over few and long ones."""
    assert isinstance(by.lines, Dense)
    lines, s, total = by.lines.a, np.ascontiguousarray(s), np.zeros(len(s))

    def block(ends: tuple[int, int]) -> np.ndarray:
        part = np.zeros(len(s))
        down(lines, ends[0] * PLACES, min(ends[1] * PLACES, r.size), s, r, part)
        return part

    for part in spread(workers(by), block, tiles_of(by), total.nbytes):
        total += part
    return total


def tiles_of(by: Products) -> list[tuple[int, int]]:
    """Pieces of long lines, counted in PLACES, that are pulled and pushed by one compiled call each."""
    count = -(-width_of(by) // PLACES)
    length = min(max(math.isqrt(count), 1), max(PIECE // (PLACES * min(by.shape)), 1))
    many = min(AHEAD * -(-count // (AHEAD * length)), count)  # even shares, for two threads or for four
    return [(count * i // many, count * (i + 1) // many) for i in range(many)]


def misfit_pass(by: Products, y: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """r = y − B s, and ‖ |B| |s| ‖ of each right-hand side: what its rounding errors grow with."""
    assert by.lines is not None
    lines, count = by.lines, extent(by.lines)
    r, s, total = np.empty((len(s), count), np.result_type(y, s)), np.ascontiguousarray(s), np.zeros(len(s))
    size = np.abs(s)
    for part in spread(by.pool, lambda ends: misfits(lines, *ends, y, s, size, r), _pieces(by, len(s))):
        total += part
    return r, np.sqrt(total)


def pull_all(by: Products, s: np.ndarray) -> np.ndarray:
    """⟨a_i, s⟩ of every line, unconjugated."""
    assert by.lines is not None
    lines, count = by.lines, extent(by.lines)
    s = np.ascontiguousarray(s)
    out = np.empty((len(s), count), s.dtype)
    for _ in spread(by.pool, lambda ends: pulls(lines, *ends, s, out), _pieces(by, len(s))):
        pass
    return out


def _pieces(by: Products, many: int) -> list[tuple[int, int]]:
    """Lines cut for compiled calls that write line by line; into eight or more where threads may share them."""
    assert by.lines is not None
    count = extent(by.lines)
    return pieces(count, max(stored(by.lines) / count * many, 0.0 if by.pool is None else 8 * PIECE / count))


def norms_of(by: Products) -> np.ndarray:
    """‖a_i‖² of every line."""
    assert by.lines is not None
    lines, count = by.lines, extent(by.lines)
    out = np.empty(count)
    for _ in spread(by.pool, lambda ends: norms(lines, *ends, out), _pieces(by, 1)):
        pass
    return out


def push_all(by: Products, c: np.ndarray) -> np.ndarray:
    """Σ_i c_i conj(a_i), block by block."""
    assert by.lines is not None
    lines, (many, count) = by.lines, c.shape
    c, width, entries = np.ascontiguousarray(c), width_of(by), stored(lines)

    def block(ends: tuple[int, int]) -> np.ndarray:
        part = np.zeros((many, width), c.dtype)
        for a, b in groups(many, *ends, count, entries):
            pushes(lines, *ends, c[a:b], part[a:b])
        return part

    out = np.zeros((many, width), c.dtype)
    for part in spread(by.pool, block, blocks(count, width, entries), out.nbytes):
        out += part
    return out


def workers(by: Products) -> Executor | None:
    """The threads that share products by BLAS; none where X is so small that handing it over takes longer."""
    return by.pool if by.X.nbytes >= SMALL else None


def width_of(by: Products) -> int:
    """The length of a line."""
    return by.shape[1] if by.side == "rows" else by.shape[0]


def stored(lines: Dense | Sparse | None) -> int:
    """Numbers stored in the lines."""
    assert lines is not None
    return max(lines.a.size if isinstance(lines, Dense) else lines.data.size, 1)


def blocks(count: int, width: int, entries: int) -> list[tuple[int, int]]:
    """Blocks of lines, so that no sum is one chain of them all; as many as cost little beside the lines themselves."""
    cheap = max(entries // (8 * width), 1)
    steps = min(max(math.isqrt(count) // 4, 1), cheap)
    length = min(-(-count // steps), max(int(PIECE * count / entries), 1))
    return [(i, min(i + length, count)) for i in range(0, count, length)]


def groups(many: int, start: int, stop: int, count: int, entries: int) -> list[tuple[int, int]]:
    """Right-hand sides that may share one compiled call on the lines start, ..., stop-1 without making it long."""
    step = max(int(PIECE / (entries / count * (stop - start))), 1)
    return [(a, min(a + step, many)) for a in range(0, many, step)]


def chain(cuts: list[tuple[int, int]]) -> int:
    """Terms in the longest chain of a sum by blocks."""
    return max(stop - start for start, stop in cuts) + len(cuts)


def longest(lines: Dense | Sparse | None) -> int:
    """Terms in the longest chain of a pull."""
    assert lines is not None
    if isinstance(lines, Dense):
        k = lines.a.shape[1]
        return k if k <= BLOCK else BLOCK + -(-k // BLOCK)
    return int(np.diff(lines.indptr).max())
