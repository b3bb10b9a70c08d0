"""Sparse arrays as compiled code may trust them: CSR or CSC, every index in its place, no entry twice."""

from __future__ import annotations

from typing import Any

import numpy as np


def sound(X: Any, dtype: Any, name: str = "X") -> Any:
    """X in canonical CSR or CSC format and of this dtype: itself where it is that, or else a copy; or an error."""
    out = X if X.format in ("csr", "csc") else X.tocsr()
    data, indices, ends = out.data, out.indices, out.indptr
    lines, places = out.shape if out.format == "csr" else out.shape[::-1]
    used = int(ends[-1]) if len(ends) else -1
    if len(ends) != lines + 1 or ends[0] != 0 or (ends[1:] < ends[:-1]).any() or used > min(len(data), len(indices)):
        raise ValueError(f"{name} is no valid sparse array, as its indptr is wrong: make it anew from a COO array")
    plain = all(a.flags.c_contiguous and a.flags.aligned for a in (data, indices, ends))
    if used < max(len(data), len(indices)) or indices.dtype != ends.dtype or not plain:
        # room to spare, types that SciPy mixes up, or strides
        kind = np.promote_types(indices.dtype, ends.dtype)
        out = type(out)(out.shape, dtype=data.dtype)
        out.data, out.indices = _plain(data[:used], data.dtype), _plain(indices[:used], kind)
        out.indptr = _plain(ends, kind)
    if out.dtype != dtype:
        out = out.astype(dtype)
    if not out.has_canonical_format:  # entries that appear twice would spoil the norms
        out = out.copy() if np.may_share_memory(out.data, data) else out
        out.sum_duplicates()
    # all of them: SciPy remembers that lines were sorted, also where somebody has changed them since
    if out.indices.size and (out.indices.min() < 0 or out.indices.max() >= places):
        raise ValueError(f"{name} is no valid sparse array: it has indices outside of its shape {out.shape}")
    return out


def checked(X: Any) -> Any:
    """A compressed sparse array of a file: every place within its shape, or an error. SciPy passes over empty ones."""
    if (X.indptr[1:] < X.indptr[:-1]).any():
        raise ValueError("its indptr falls")
    X.check_format(full_check=True)
    return X


def _plain(a: np.ndarray, kind: np.dtype) -> np.ndarray:
    return np.require(a, kind, ("C", "A"))
