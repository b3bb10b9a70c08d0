"""Named arrays from files that hold several: .npz, MATLAB's .mat and HDF5."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core.sparse import checked
from .matlab import SWELL, is_hdf5, variables

ARRAYS = (".npz", ".mat", ".h5", ".hdf5")
LINES = 16_000_000  # rows and columns that a sparse matrix may have without a word about them in its file


def needed(module: str, for_what: str) -> Any:
    """A module of the extra `files`, or an error that names it.

    Examples
    --------
    >>> from rowcol.files.arrays import needed
    >>> needed("no_such_module", "a table")
    Traceback (most recent call last):
    ...
    ImportError: a table needs no_such_module: pip install 'rowcol[files]'
    """
    try:
        return import_module(module)
    except ImportError as missing:
        raise ImportError(f"{for_what} needs {module.split('.')[0]}: pip install 'rowcol[files]'") from missing


def array_from(path: Path) -> np.ndarray:
    """The array of a .npy file."""
    found = np.load(path, allow_pickle=False)
    if not isinstance(found, np.ndarray):  # a zip, whatever it is called
        raise ValueError("it is no .npy file, but a zip of some: call it .npz")
    return found


def arrays_from(path: Path) -> dict[str, Any]:
    """The arrays of numbers in a file, by name, in its order."""
    name = path.name.lower()
    if name.endswith(".npz"):
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as held:
            if "format" in held.files:
                return {"X": within(sp.load_npz(path), path)}
            found = {key: held[key] for key in held.files}
            if not all(isinstance(one, np.ndarray) for one in found.values()):  # else NumPy gives the bytes
                raise ValueError("it holds something that is no array")
            return found
    if name.endswith(".mat"):
        with open(path, "rb") as file:
            if is_hdf5(file.read(128)):  # which lies the other way round
                return {key: np.ascontiguousarray(value.T) for key, value in _datasets(path).items()}
        found = variables(path.read_bytes())
        return {
            key: within(value, path) for key, value in found.items() if sp.issparse(value) or value.dtype.kind != "c"
        }
    return _datasets(path)


def within(X: Any, path: Path) -> Any:
    """An array whose places lie within its shape, if it is sparse: compiled code does not look, and a file may lie."""
    if sp.issparse(X) and sum(X.shape) > LINES + SWELL * path.stat().st_size:
        raise ValueError(f"it declares {X.shape[0]:,} x {X.shape[1]:,}, more than the file can hold")
    return checked(X) if sp.issparse(X) and X.format in ("csr", "csc", "bsr") else X


def _datasets(path: Path) -> dict[str, np.ndarray]:
    """The datasets at the top of an HDF5 file. Links to other files are not followed."""
    h5py = needed("h5py", f"{path.name}, an HDF5 file,")
    out = {}
    with h5py.File(path, "r") as held:
        for key in held:
            if not isinstance(held.get(key, getlink=True), h5py.HardLink):
                continue
            one = held[key]
            char = one.attrs.get("MATLAB_class") == b"char" if isinstance(one, h5py.Dataset) else False
            if not isinstance(one, h5py.Dataset) or one.dtype.kind not in "biuf" or char:
                continue
            if one.is_virtual or one.external:
                raise ValueError(f"{key} lies in another file, which is not followed")
            if one.size * one.dtype.itemsize > SWELL * path.stat().st_size:
                raise ValueError(f"{key} declares {one.size:,} numbers, more than the file can hold")
            out[key] = one[()]
    return out
