"""Matrices from files: Matrix Market, NumPy, MATLAB, HDF5, svmlight and plain text."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core.words import first_line
from .arrays import ARRAYS, array_from, arrays_from
from .market import market

log = logging.getLogger(__name__)

KINDS = (".mtx", ".mtx.gz", ".npy", ".npz", ".csv", ".tsv", ".txt", ".mat", ".h5", ".hdf5")


def matrix_from(path: str | Path, decimal: str = ".") -> Any:
    """X from a file, dense or sparse as it is stored; no file can run code.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from pathlib import Path
    >>> from rowcol.files.matrices import matrix_from
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder) / "X.npy", np.eye(3))
    ...     matrix_from(Path(folder) / "X.npy").shape
    (3, 3)
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    name = path.name.lower()
    if not name.endswith(KINDS):
        raise ValueError(f"{path.name}: a matrix is read from {', '.join(KINDS)}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of readers, about which sparse class they will give some day
            found = _matrix(path, name, decimal)
    except (FileNotFoundError, ImportError):
        raise
    except Exception as wrong:  # whatever a broken file makes a reader say
        hint = "; if it has decimal commas, say --decimal ," if ";" in str(wrong) and decimal == "." else ""
        raise ValueError(f"{path.name} cannot be read as a matrix of numbers: {first_line(wrong)}{hint}") from wrong
    log.info("read %s: %s", path, " x ".join(f"{size:,}" for size in found.shape))
    return found


def _matrix(path: Path, name: str, decimal: str) -> Any:
    if name.endswith((".mtx", ".mtx.gz")):
        found = market(path)
        return found.tocsr() if sp.issparse(found) else np.asarray(found)
    if name.endswith(".npy"):
        return array_from(path)
    if name.endswith(ARRAYS):
        held = arrays_from(path)
        if len(held) != 1:
            raise ValueError(f"it holds {', '.join(held) or 'nothing'}: one array is wanted")
        return next(iter(held.values()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # an empty file is only warned of
        comma = "\t" if name.endswith(".tsv") else "," if name.endswith(".csv") else None
        if decimal == ",":
            lines = path.read_text(encoding="utf-8-sig").replace(",", ".").splitlines()
            return np.loadtxt(lines, delimiter=";" if comma == "," else comma, ndmin=2)
        return np.loadtxt(path, delimiter=comma, ndmin=2, encoding="utf-8-sig")  # spreadsheets begin with a mark


def vector_from(path: str | Path, decimal: str = ".") -> np.ndarray:
    """y from a file: one column or one row."""
    found = matrix_from(path, decimal)
    found = found.toarray() if sp.issparse(found) else np.asarray(found)
    if found.ndim == 2 and 1 in found.shape:
        found = found.reshape(-1)
    if found.ndim != 1:
        raise ValueError(f"{Path(path).name} has shape {found.shape}: a right-hand side is one column")
    return found
