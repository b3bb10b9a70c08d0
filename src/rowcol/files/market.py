"""Matrix Market files, .mtx: our own reader, as SciPy's ends the process on some files that are broken or forged."""

from __future__ import annotations

import gzip
import warnings
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from .arrays import LINES, SWELL

WIDTH = {"real": 1, "double": 1, "integer": 1, "unsigned-integer": 1, "complex": 2, "pattern": 0}
SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")


def market(path: Path) -> Any:
    """A matrix, as a COO or a dense array; what it declares is held against its size before anything is allocated.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rowcol.files.market import market
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "A.mtx"
    ...     _ = path.write_text("%%MatrixMarket matrix coordinate real symmetric\\n2 2 2\\n1 1 4\\n2 1 -1\\n")
    ...     market(path).toarray().tolist()
    [[4.0, -1.0], [-1.0, 0.0]]
    """
    packed = path.name.lower().endswith(".gz")
    size = path.stat().st_size * (SWELL if packed else 1)
    with (gzip.open if packed else open)(path, "rt", encoding="latin1") as file:
        banner = file.readline(1000).lower().split()
        if banner[:2] != ["%%matrixmarket", "matrix"] or len(banner) != 5:
            raise ValueError("it does not begin with %%MatrixMarket matrix")
        kind, field, symmetry = banner[2:]
        dense = kind == "array"
        if kind not in ("array", "coordinate") or field not in WIDTH or (dense and field == "pattern"):
            raise ValueError(f"a matrix by {kind[:20]} of {field[:20]} is not known")
        if symmetry not in SYMMETRIES:
            raise ValueError(f"{symmetry[:20]} is not known: there are {', '.join(SYMMETRIES)}")
        sizes = next((line for line in file if line.strip() and not line.startswith("%")), "").split()
        if len(sizes) != 3 - dense or not all(one.isdecimal() and len(one) < 19 for one in sizes):
            raise ValueError("it does not say how many rows and columns it has")
        rows, cols = int(sizes[0]), int(sizes[1])
        if symmetry != "general" and rows != cols:
            raise ValueError(f"it is {rows:,} x {cols:,}, and {symmetry}")
        written = size if symmetry == "general" else 2 * size + rows  # a triangle is enough
        if rows * cols > written if dense else rows + cols > LINES + size:
            raise ValueError(f"it declares {rows:,} x {cols:,}, more than the file can hold")
        numbers = _numbers(file, WIDTH[field] + 2 * (not dense))
    values = numbers[:, -2] + 1j * numbers[:, -1] if field == "complex" else numbers[:, -1]
    if dense:
        return _dense(rows, cols, values, symmetry)
    if len(numbers) != int(sizes[2]):
        raise ValueError(f"it declares {int(sizes[2]):,} values, and has {len(numbers):,}")
    at = numbers[:, :2]
    if not (np.isfinite(at).all() and (at == np.floor(at)).all() and (at >= 1).all() and (at <= (rows, cols)).all()):
        raise ValueError(f"a value lies outside of {rows:,} x {cols:,}")
    return _sparse(rows, cols, at.astype(np.int64).T - 1, np.ones(len(at)) if field == "pattern" else values, symmetry)


def _numbers(file: IO[str], width: int) -> np.ndarray:
    """The rest of a file, so many numbers a line."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is nothing is seen by its count
        found = np.loadtxt(file, comments="%", ndmin=2)
    if found.size and found.shape[1] != width:
        raise ValueError(f"it has {found.shape[1]} numbers in a line, and not {width}")
    return found.reshape(-1, width)


def _sparse(rows: int, cols: int, at: np.ndarray, values: np.ndarray, symmetry: str) -> sp.coo_array:
    if symmetry != "general":  # one half was written, and means the other
        off = at[0] != at[1]
        at = np.hstack([at, at[::-1, off]])
        values = np.concatenate([values, _mirrored(values[off], symmetry)])
    return sp.coo_array((values, (at[0], at[1])), shape=(rows, cols))


def _dense(rows: int, cols: int, values: np.ndarray, symmetry: str) -> np.ndarray:
    """By columns; of a symmetric one from the diagonal down, of a skew one from below it."""
    wanted = rows * cols
    if symmetry != "general":
        wanted = rows * (rows + 1) // 2 if symmetry != "skew-symmetric" else rows * (rows - 1) // 2
    if len(values) != wanted:
        raise ValueError(f"it declares {wanted:,} values, and has {len(values):,}")
    if symmetry == "general":
        return values.reshape(cols, rows).T
    out = np.zeros((rows, rows), values.dtype)
    j, i = np.triu_indices(rows, 1 if symmetry == "skew-symmetric" else 0)
    out[j, i] = _mirrored(values, symmetry)
    out[i, j] = values
    return out


def _mirrored(values: np.ndarray, symmetry: str) -> np.ndarray:
    return -values if symmetry == "skew-symmetric" else values.conj() if symmetry == "hermitian" else values
