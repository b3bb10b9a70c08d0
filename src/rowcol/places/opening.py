"""`chunks`: from a path, an array or a function to a Place, and its y."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..core.place import Place
from ..core.problem import precision
from ..core.words import cut, first_line, shown
from .chunks import Filed, Sliced, flowing, within
from .cluster import Spread, is_dask, spread
from .tables import tables
from .team import Team

LONG = 2  # vectors as long as y that any method needs beside it: a residual, and one on the way to it


class Chunks(NamedTuple):
    """An X that is read in parts, and what came with it.

    X : the rows, for `solve`, `Ridge` and others
    y : the target, where there is one; an array in memory
    names : of the columns of X, where they have any
    """

    X: Place
    y: np.ndarray | None
    names: tuple[str, ...] | None


def chunks(
    source: Any, *, columns: Any = None, target: str | None = None, rows: int | None = None, name: str | None = None
) -> Chunks:
    """X in parts, which never is in memory as a whole.

    Parameters
    ----------
    source : path, array, callable or iterable
        A .npy, HDF5 (.h5, .hdf5), Zarr (.zarr), Parquet, Arrow, Feather or CSV file; a folder or a list of Parquet
        files; an ``h5py.Dataset``, a Zarr array, a memory map; or chunks of rows, or of pairs of these and of their y:
        a function that returns an iterator of them each time it is called, or what can be iterated again and again,
        as a list can. A Dask array in chunks of rows, a Dask data
        frame or a list of ``delayed`` parts stay where they are: on the workers of the current client, if there is one.
    columns : str or list of str, optional
        Which columns of a table are X, in this order; all but the target, and an index that pandas stored, unless said.
    target : str, optional
        The column of a table that is y.
    rows : int, optional
        Rows of a chunk. About 16 MB of them unless said, or as they are stored.
    name : str, optional
        Which array of an HDF5 file or of a Zarr group.

    Returns
    -------
    Chunks
        A tuple (X, y, names).

    Examples
    --------
    >>> import numpy as np, rowcol
    >>> def begin():
    ...     rng = np.random.default_rng(0)
    ...     for _ in range(10):
    ...         X = rng.standard_normal((100, 3))
    ...         yield X, X @ [1.0, 2.0, 3.0]
    >>> X, y, _ = rowcol.chunks(begin)
    >>> X.shape, X.count
    ((1000, 3), 10)
    >>> rowcol.solve(X, y).x.round(6)
    array([1., 2., 3.])
    """
    if rows is not None and (isinstance(rows, bool) or not isinstance(rows, (int, np.integer)) or rows < 1):
        raise ValueError(f"rows must be a positive integer, got {shown(rows)}")
    if callable(source) and not isinstance(source, type) and not hasattr(source, "shape"):
        place, y = flowing(source, getattr(source, "__name__", "the function"))
        return Chunks(place, y, None)
    columns = (columns,) if isinstance(columns, str) else columns
    if is_dask(source):
        return Chunks(*spread(source, columns, target))
    several = isinstance(source, (list, tuple)) and source and all(isinstance(one, (str, Path)) for one in source)
    if isinstance(source, (str, Path)) or several:
        return _from_paths(source, columns, target, rows, name)
    if columns is not None or target is not None:
        raise TypeError(f"columns and target are for tables with names, not for {type(source).__name__}")
    if hasattr(source, "__next__"):
        raise TypeError(
            f"source is a {type(source).__name__}, which can be gone through once: give a function that returns it anew"
        )
    if hasattr(source, "__iter__") and not any(hasattr(source, one) for one in ("shape", "keys", "__array__")):
        place, y = flowing(lambda: iter(source), f"the {type(source).__name__}")
        place.lent = isinstance(source, (list, tuple))
        return Chunks(place, y, None)
    return Chunks(_array(source, rows), None, None)


def _from_paths(source: Any, columns: Any, target: str | None, rows: int | None, name: str | None) -> Chunks:
    paths = [Path(one) for one in (source if isinstance(source, (list, tuple)) else [source])]
    for path in paths:
        if not _there(path):
            raise FileNotFoundError(f"source: there is no file {cut(str(path))}")
    first = paths[0].name.lower()
    if len(paths) == 1 and first.endswith((".npy", ".h5", ".hdf5", ".zarr")) and not (columns or target):
        return Chunks(_array(_opened(paths[0], name), rows), None, None)
    if first.endswith((".npy", ".zarr")) or (first.endswith((".h5", ".hdf5")) and not name):
        raise TypeError(f"{paths[0].name} has no named columns: leave out columns and target, and give y by itself")
    place, y, names = tables(paths, columns, target, rows)
    return Chunks(place, y, names)


def _there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name that no file can have
        return False


def _opened(path: Path, name: str | None) -> Any:
    if path.name.lower().endswith(".npy"):
        try:
            found = np.load(path, mmap_mode="r", allow_pickle=False)
            if not isinstance(found, np.ndarray):  # a zip, whatever it is called
                raise ValueError("it holds several arrays")
            return found
        except (ValueError, EOFError) as wrong:
            raise ValueError(f"{path.name} is not a .npy file of numbers: {wrong}") from wrong
    if path.name.lower().endswith(".zarr"):
        try:
            import zarr
        except ImportError as missing:
            raise ImportError("Zarr arrays need zarr: pip install zarr") from missing
        try:
            found = zarr.open(str(path), mode="r")
            if hasattr(found, "shape"):
                return found
            held = sorted(found.array_keys())
            if name is None and len(held) == 1:
                name = held[0]
            if name is not None and name in found and hasattr(found[name], "shape"):
                return found[name]
        except Exception as wrong:  # whatever a broken store makes it say
            raise ValueError(f"{path.name} cannot be read as Zarr: {first_line(wrong)}") from wrong
        raise ValueError(_which(path, name, held))
    try:
        import h5py
    except ImportError as missing:
        raise ImportError("HDF5 files need h5py: pip install 'rowcol[files]'") from missing
    try:
        file = h5py.File(path, "r")
    except OSError as wrong:
        raise ValueError(f"{path.name} cannot be read as HDF5: {first_line(wrong)}") from wrong
    own = [key for key in file if isinstance(file.get(key, getlink=True), h5py.HardLink)]  # not those to other files
    held = [key for key in own if isinstance(file[key], h5py.Dataset)]
    if (name is None and len(held) != 1) or (name or held[0]) not in file:
        raise ValueError(_which(path, name, held))
    found = file[name or held[0]]
    if not isinstance(found, h5py.Dataset) or found.file != file or found.is_virtual or found.external:
        raise ValueError(f"{path.name}: {name or held[0]} is no array of this file: others are not followed")
    return found


def _which(path: Path, name: str | None, held: list[str]) -> str:
    """What to say where no array, or none of several, was named."""
    has = f"it holds {', '.join(held)}" if held else "it holds no arrays"
    return f"{path.name} has no {name!r}: {has}" if name else f"{path.name}: {has}: say which by name="


def _array(source: Any, rows: int | None) -> Place:
    if np.ma.isMaskedArray(source):
        raise TypeError("source is a masked array: fill or drop the masked entries first")
    shape = getattr(source, "shape", None)
    if not isinstance(shape, tuple) or not hasattr(source, "dtype") or not hasattr(source, "__getitem__"):
        raise TypeError(
            f"source must be a path, an array or a function, which rows of X come from; got {type(source).__name__}"
        )
    if len(shape) != 2:
        raise ValueError(f"X must have 2 dimensions, got {len(shape)} (shape {tuple(shape)})")
    if isinstance(source, np.memmap) and source.flags.c_contiguous and source.filename is not None:
        offset = _offset(source)
        if offset is not None:
            return Filed(str(source.filename), offset, source.dtype, (int(shape[0]), int(shape[1])), rows)
    name = getattr(source, "filename", None) or getattr(source, "name", None) or "X"
    name = Path(str(name)).name or Path(str(getattr(source, "store_path", "X"))).name  # a Zarr array of its own is "/"
    return Sliced(source if not sp.issparse(source) else source.tocsr(), rows, name)


def _offset(mapped: np.memmap) -> int | None:
    """Where in its file a memory map's numbers begin; None where it is a slice of one.

    None, too, where what was changed is not in the file: a map for reading and writing shares its pages with those
    who read the file, one that copies on write ("c") does not.
    """
    whole = not isinstance(mapped.base, np.memmap) and mapped.mode in ("r", "r+", "w+")
    return int(mapped.offset) if whole and mapped.offset is not None else None


def placed(X: Any, memory: int) -> Any:
    """X as it is, or as a Place: Dask collections, arrays of files, and arrays that are too much for `memory`.

    These are maps of larger files, and what would have to be copied: broadcast, strided, of whole numbers.
    """
    X = _lying(X, memory)
    return affordable(within(X, memory, _beside(X)), memory) if isinstance(X, Place) else X


def _lying(X: Any, memory: int) -> Any:
    """X as it is, or as a Place."""
    if isinstance(X, Chunks):
        X = X.X
    if is_dask(X):
        return spread(X)[0]
    kind = type(X).__module__.split(".")[0]
    large = type(X) in (np.memmap, np.ndarray) and X.ndim == 2 and 0 not in X.shape and _taken(X) > memory
    return _array(X, None) if large or (kind in ("h5py", "zarr") and hasattr(X, "shape")) else X


def affordable(X: Place, memory: int) -> Place:
    """X, if what has to be in memory at a time can be there; an error, before any work, if not.

    That is what is read, a part once more, centred or scaled, an answer, its slope and a step, and vectors as long as
    y. What methods take beside it they are chosen by.
    """
    (n, p), most, said = X.shape, int(np.diff(X.starts).max()), f"memory={_mb(memory)}"
    parts = (0 if X.lent else 4 * X.waiting // 3) + 3 * p * X.dtype.itemsize
    beside, enough = X.unpacked + X.kept, 1.13 * (X.unpacked + X.kept + _beside(X) + 4 * p * X.dtype.itemsize)
    if beside + memory // 9 > memory and X.kept > X.unpacked:  # which parts are cut to, if need be
        raise ValueError(
            f"{X.name} is stored in {X.stored}, and where each of them lies takes about {_mb(X.kept)} to know, of "
            f"{said}: store it in longer {X.stored.split(' of ')[0]}, of some 16 MB, or allow memory='{_mb(enough)}'"
        )
    if beside + memory // 9 > memory:
        raise ValueError(
            f"{X.name} is stored in {X.stored}, and reading a row unpacks about {_mb(X.unpacked)}, of {said}: store it "
            f"in {X.stored.split(' of ')[0]} of fewer rows, of some 16 MB, or allow memory='{_mb(enough)}'"
        )
    if parts > memory and X.shorter:
        raise ValueError(
            f"{said} is too little for rows of {p:,} numbers: the shortest chunks of {X.name} and an answer take "
            f"{_mb(parts)}"
        )
    if parts > memory:
        raise ValueError(
            f"{said} is too little for chunks of {most:,} x {p:,} numbers: three of {X.name}, and one that is made of "
            f"them, take {_mb(parts)}: {X.remedy}, or allow more memory"
        )
    need = parts + beside + LONG * 8 * n
    if need > memory:
        raise ValueError(
            f"{said} is too little for {n:,} rows: vectors as long as y, and what is read at a time of {X.name}, take "
            f"{_mb(need)}: allow more memory, or take fewer rows"
        )
    return X


def _beside(X: Place) -> int:
    """Bytes of vectors that there are in any case: as long as y, an answer, its slope and a step."""
    return LONG * 8 * X.shape[0] + 3 * X.shape[1] * X.dtype.itemsize


def _mb(size: float) -> str:
    return f"{size / 1e6:,.0f} MB" if size >= 9.5e6 else f"{size / 1e6:.2g} MB"


def _taken(X: np.ndarray) -> int:
    """Bytes that using X takes: those of a file that is mapped, or those of a copy, where one has to be made."""
    if X.dtype.kind not in "fciub":  # what is no number is refused later
        return 0
    kind = precision(X.dtype, "X")
    in_place = kind == X.dtype and X.flags.aligned and (X.flags.c_contiguous or X.flags.f_contiguous)
    return (X.nbytes if isinstance(X, np.memmap) else 0) if in_place else X.size * kind.itemsize


def with_team(X: Any, memory: int, whole: bool = False) -> tuple[Any, Team | None]:
    """Points of a kernel: in memory, and the workers they came from, who may share its products.

    Where they do not fit there they stay where they are, unless `whole` is asked for.
    """
    X = placed(X, memory)
    if isinstance(X, Place) and not whole and _needed(X) > memory:
        X = copy.copy(within(X, memory // 8))
        X.room = memory // 4
        return X, None
    return gathered(X, memory), Team(X.crew) if isinstance(X, Spread) else None


def _needed(X: Place, more: int = 20) -> int:
    """Bytes of all of X, with `more` for each number, and of what is read ahead."""
    return X.shape[0] * X.shape[1] * (X.dtype.itemsize + more) + X.held


def gathered(X: Any, memory: int, more: int = 20) -> Any:
    """X in memory, for what needs all rows at once; an error where they, and `more` bytes a number, do not fit."""
    X = _lying(X, memory)
    if not isinstance(X, Place):
        return X
    X = within(X, memory)
    need = _needed(X, more)
    if need > memory:
        raise ValueError(
            f"this model needs all {X.shape[0]:,} x {X.shape[1]:,} numbers of X in memory, about {need / 1e6:,.0f} MB "
            f"of memory={memory / 1e6:,.0f} MB: allow more, or fit some of the rows"
        )
    out = np.empty(X.shape, X.dtype)
    for k, part in X.parts():
        out[X.starts[k] : X.starts[k + 1]] = part.toarray() if sp.issparse(part) else part
    return out
