"""Arrays that begin where a line of the cache does.

NumPy's begin at any sixteenth byte, and what arrives from another process anywhere. Every vector of 64 bytes that is
read from there lies on two lines of the cache: products with a kernel matrix take a tenth longer, on workers a fifth.
"""

from __future__ import annotations

from typing import Any

import numpy as np

LINE = 64  # bytes of a line of the cache, and of the longest vector


def zeros(shape: Any, kind: Any) -> np.ndarray:
    """Zeros."""
    kind = np.dtype(kind)
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    raw = np.zeros(size + LINE, np.uint8)
    start = -raw.ctypes.data % LINE
    return raw[start : start + size].view(kind).reshape(shape)


def laid(a: np.ndarray, kind: Any = None) -> np.ndarray:
    """`a` of this kind, in the order of C; itself, if it begins at a line."""
    kind = a.dtype if kind is None else np.dtype(kind)
    if a.dtype == kind and a.flags.c_contiguous and a.ctypes.data % LINE == 0:
        return a
    out = zeros(a.shape, kind)
    out[...] = a
    return out
