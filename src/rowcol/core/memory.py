"""Memory: arrays that begin where a line of the cache does, such as are used again, and how wide tiles are.

NumPy's begin at any sixteenth byte, and what arrives from another process anywhere. Every vector of 64 bytes that is
read from there lies on two lines of the cache: products with a kernel matrix take a tenth longer, on workers a fifth.
"""

from __future__ import annotations

from typing import Any

import numpy as np

LINE = 64  # bytes of a line of the cache, and of the longest vector
WIDE, NARROW = 704, 448  # points in a tile; narrower where there are few, so that threads have enough to share
SAME = 512  # points: as many times that apart, features come to lie in the same few sets of the first cache


def zeros(shape: Any, kind: Any) -> np.ndarray:
    """Zeros that begin at a line."""
    kind = np.dtype(kind)
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    raw = np.zeros(size + LINE, np.uint8)
    start = -raw.ctypes.data % LINE
    return raw[start : start + size].view(kind).reshape(shape)


def laid(a: np.ndarray, kind: Any = None) -> np.ndarray:
    """`a` of this kind, in the order of C; itself, if it begins at a line and may be written.

    What arrives from another process may not be: that would be another type to compile.
    """
    kind = a.dtype if kind is None else np.dtype(kind)
    if a.dtype == kind and a.flags.c_contiguous and a.flags.writeable and a.ctypes.data % LINE == 0:
        return a
    out = zeros(a.shape, kind)
    out[...] = a
    return out


def width_of(n: int, most: int = WIDE) -> int:
    """Points in a tile, where there are n, and a tile may have `most`."""
    return spaced(min(WIDE if n >= 8 * WIDE else NARROW, most))


def narrowed(width: int, many: int) -> int:
    """Tiles no wider than so many points need."""
    return min(width, spaced(max(-(-many // 4) * 4, 4)))


def spaced(width: int) -> int:
    """The least width from this on that spreads features over the cache: others may take up to twice as long."""
    return width if width % SAME else width + 16


class Rooms:
    """Memory that is used again: workers of Dask give it back at once, and what is new costs a page fault for 4 kB.

    New memory for every band takes 3 % of a product there, and for every tile two thirds of the time of lines of K.
    """

    def __init__(self) -> None:
        self.rooms: list[np.ndarray] = []

    def some(self, size: int, kind: Any = np.float64) -> np.ndarray:
        """Of so many numbers, whatever they are: memory that is free, if it is long enough, or new."""
        try:
            room = self.rooms.pop()
        except IndexError:
            room = np.empty(0, kind)
        return room[:size] if room.size >= size and room.dtype == kind else np.empty(size, kind)

    def zeros(self, q: int, m: int) -> np.ndarray:
        """(q, m) zeros."""
        out = self.some(q * m).reshape(q, m)
        out.fill(0.0)
        return out

    def free(self, a: np.ndarray) -> None:
        """It may be used again."""
        self.rooms.append(a.base if a.base is not None else a)
