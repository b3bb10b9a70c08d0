"""`Table`: a file's columns, numbers apart from text."""

from __future__ import annotations

import csv
import gzip
import logging
import re
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp

from .arrays import ARRAYS, arrays_from, needed

log = logging.getLogger(__name__)

TEXT = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
ARROW = (".parquet", ".arrow", ".feather")
SVM = (".svmlight", ".svm", ".libsvm")
KINDS = (*TEXT, *ARROW, ".npy", *ARRAYS, ".mtx", ".mtx.gz", *SVM)


@dataclass(eq=False)
class Table:
    """Columns with names: numbers in one array, text one by one.

    Attributes
    ----------
    numeric : tuple of str
        The names of the columns of `numbers`.
    numbers : ndarray or CSR array, (n, len(numeric))
        NaN where a value is missing.
    text : dict of str to ndarray of object, (n,)
        Strings, and None where one is missing.
    name : str
        Of the file, for messages.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rowcol.files.table import table_from
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "homes.csv"
    ...     _ = path.write_text("size,town,price\\n50,Ulm,200\\n,Köln,310\\n")
    ...     homes = table_from(path)
    >>> homes.names, homes.numbers.tolist(), homes.text["town"].tolist()
    (('size', 'price', 'town'), [[50.0, 200.0], [nan, 310.0]], ['Ulm', 'Köln'])
    """

    numeric: tuple[str, ...]
    numbers: Any
    text: dict[str, np.ndarray] = field(default_factory=dict)
    name: str = "the table"

    @property
    def names(self) -> tuple[str, ...]:
        """All columns, numbers first."""
        return (*self.numeric, *self.text)

    def __len__(self) -> int:
        return int(self.numbers.shape[0])

    def rows(self, which: np.ndarray) -> Table:
        """Some rows."""
        return Table(self.numeric, self.numbers[which], {k: v[which] for k, v in self.text.items()}, self.name)

    def some(self, names: tuple[str, ...] | list[str]) -> Any:
        """Columns of numbers, in this order."""
        at = {name: j for j, name in enumerate(self.numeric)}
        return self.numbers[:, [at[name] for name in names]]

    def column(self, name: str) -> np.ndarray:
        """One column: numbers, or text."""
        self.check(name)
        if name in self.text:
            return self.text[name]
        found = self.some([name])
        return (found.toarray() if sp.issparse(found) else found)[:, 0]

    def check(self, *names: str) -> None:
        """Are there such columns?"""
        known = set(self.names)
        for name in names:
            if name not in known:
                raise ValueError(f"{self.name} has no column {name!r}: it has {_listed(self.names)}")


def _listed(names: tuple[str, ...]) -> str:
    shown = ", ".join(map(repr, names[:8]))
    return shown + (f" and {len(names) - 8:,} more" if len(names) > 8 else "")


def table_from(path: str | Path, needs: tuple[str, ...] = ()) -> Table:
    """A table from a file; no file can run code.

    Parameters
    ----------
    path : str or Path
        .csv or .tsv (also .gz; the first line has the names, numbers have decimal points), .parquet, .arrow, .feather,
        .npy, .npz, .mat, .h5, .hdf5, .mtx (also .gz), .svmlight, .svm or .libsvm. Of files of arrays, those with one
        column keep their name, and others have theirs numbered: X0, X1, ...; the target of svmlight is y.
    needs : tuple of str
        Columns that must be there: of text this is known from its first line.

    Returns
    -------
    Table
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a file in it")
    name = path.name.lower()
    if not name.endswith(KINDS):
        raise ValueError(f"{path.name}: a table is read from {', '.join(KINDS)}")
    if path.is_file() and path.stat().st_size == 0:
        raise ValueError(f"{path.name} is empty")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of readers, about types and fragments
            found = _frame(path, needs) if name.endswith((*TEXT, *ARROW)) else _arrays(path, name)
    except (ImportError, OSError, ValueError, MemoryError) as wrong:
        if isinstance(wrong, (ImportError, FileNotFoundError, PermissionError, _PlainError)):
            raise
        raise ValueError(f"{path.name} cannot be read as a table: {_first_line(wrong)}") from wrong
    except Exception as wrong:  # whatever a broken file makes a reader say
        raise ValueError(f"{path.name} cannot be read as a table: {_first_line(wrong)}") from wrong
    if not len(found):
        raise _PlainError(f"{path.name} has names but no rows")
    if len(set(found.names)) < len(found.names):
        twice = next(one for one, count in Counter(found.names).items() if count > 1)
        raise _PlainError(f"{path.name} has two columns {twice!r}: rename one")
    found.check(*needs)
    log.info("read %s: %s rows x %s columns", path, f"{len(found):,}", f"{len(found.names):,}")
    return found


class _PlainError(ValueError):
    """An error that says all there is to say."""


def _first_line(wrong: Exception) -> str:
    lines = str(wrong).strip().splitlines() or [type(wrong).__name__]
    return lines[0][:300]


# --- tables proper ---------------------------------------------------------------------------------------------------


def _frame(path: Path, needs: tuple[str, ...]) -> Table:
    pandas = needed("pandas", f"{path.name}, a table,")
    name = path.name.lower()
    if name.endswith(TEXT):
        separator = "\t" if ".tsv" in name else ","
        _check_head(path, separator, needs)
        exact: dict[str, Any] = {"low_memory": False, "index_col": False}
        if tuple(int(part) for part in pandas.__version__.split(".")[:2]) < (3, 1):
            exact["float_precision"] = "round_trip"  # from then on it is the only one
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                frame = pandas.read_csv(path, sep=separator, **exact)
            except UnicodeDecodeError:
                raise _PlainError(f"{path.name} is not text in UTF-8: is it a table?") from None
        if any(issubclass(one.category, pandas.errors.ParserWarning) for one in told):
            raise _PlainError(f"{path.name} has more values in a row than names in its first line")
    else:
        needed("pyarrow", f"{path.name}, an Arrow table,")
        frame = pandas.read_parquet(path) if name.endswith(".parquet") else _arrow(path)
        frame = frame.reset_index() if frame.index.name is not None else frame
    frame.columns = [str(one) for one in frame.columns]
    types, found = pandas.api.types, list(frame.dtypes)
    numeric = {kind: bool(types.is_numeric_dtype(kind)) for kind in set(found)}
    if any(types.is_complex_dtype(kind) for kind in numeric):
        raise _PlainError(f"{path.name} has complex numbers, which models do not take")
    kinds = [numeric[kind] for kind in found]
    numbers = frame if all(kinds) else frame.loc[:, kinds]
    values = np.ascontiguousarray(numbers.to_numpy(dtype=np.float64, na_value=np.nan))
    text = {}
    for at in np.flatnonzero(~np.array(kinds, bool)):
        column, head = frame.iloc[:, at], frame.columns[at]
        if column.isna().all():  # nothing in it says that it is text
            values = np.column_stack([values, np.full(len(frame), np.nan)])
            numbers = numbers.assign(**{head: np.nan})
            continue
        plain = column.astype(object)
        text[head] = np.array([None if gone else str(one) for one, gone in zip(plain, column.isna())], object)
        _check_commas(path, head, text[head])
    return Table(tuple(numbers.columns), values, text, path.name)


def _arrow(path: Path) -> Any:
    """Arrow's file format, which feather is, or its stream format."""
    ipc, arrow = needed("pyarrow.ipc", path.name), needed("pyarrow", path.name)
    try:
        return needed("pyarrow.feather", path.name).read_table(path).to_pandas()
    except arrow.ArrowInvalid:
        with ipc.open_stream(path.read_bytes()) as stream:
            return stream.read_all().to_pandas()


def _check_head(path: Path, separator: str, needs: tuple[str, ...]) -> None:
    """The first line: is it text, separated as it should be, with names that differ, and those that are needed?"""
    with (gzip.open if path.name.lower().endswith(".gz") else open)(path, "rb") as file:
        if b"\0" in file.read(4096):
            raise _PlainError(f"{path.name} is not text in UTF-8: is it a table?")
    with (gzip.open if path.name.lower().endswith(".gz") else open)(
        path, "rt", encoding="utf-8-sig", newline=""
    ) as text:
        try:
            names = next(csv.reader(text, delimiter=separator), [])
        except UnicodeDecodeError:
            raise _PlainError(f"{path.name} is not text in UTF-8: is it a table?") from None
    for other, said in ((";", "semicolons"), ("\t", "tabs")):
        if other != separator and len(names) == 1 and other in names[0]:
            commas = ", and decimal commas by points" if other == ";" else ""
            raise _PlainError(
                f"{path.name} is separated by {said}: replace them by commas{commas}, or write .tsv with tabs"
            )
    if len(set(names)) < len(names):
        twice = next(one for one, count in Counter(names).items() if count > 1)
        raise _PlainError(f"{path.name} has two columns {twice!r}: rename one")
    Table(tuple(names), np.empty((0, len(names))), {}, path.name).check(*needs)


def _check_commas(path: Path, head: str, values: np.ndarray) -> None:
    held = [one for one in values[:100] if one is not None]
    if held and all(re.fullmatch(r"\s*[-+]?\d+(,\d+)?\s*", one) for one in held) and any("," in one for one in held):
        first = next(one for one in held if "," in one)
        raise _PlainError(f"{path.name}: column {head!r} has decimal commas ({first.strip()}): write decimal points")


# --- arrays as tables ------------------------------------------------------------------------------------------------


def _arrays(path: Path, name: str) -> Table:
    if name.endswith(SVM):
        from sklearn.datasets import load_svmlight_file

        X, y = load_svmlight_file(str(path))
        return _together({"X": X, "y": y}, path)
    if name.endswith((".mtx", ".mtx.gz")):
        return _together({"X": scipy.io.mmread(path)}, path)
    if name.endswith(".npy"):
        found = np.load(path, allow_pickle=False)
        if found.dtype.names:
            return _together({one: found[one] for one in found.dtype.names}, path)
        return _together({"X": found}, path)
    return _together(arrays_from(path), path)


def _together(held: dict[str, Any], path: Path) -> Table:
    """Arrays side by side, sparse if one of them is."""
    if not held:
        raise _PlainError(f"{path.name} holds no array of numbers")
    names: list[str] = []
    parts = []
    rows = max(value.shape[0] if value.ndim else 0 for value in held.values())
    for key, value in held.items():
        if value.dtype.kind not in "biuf":
            raise _PlainError(f"{path.name}: {key} has no real numbers but {value.dtype}")
        if value.ndim == 2 and value.shape[0] == 1 and value.shape[1] == rows > 1:
            value = value.reshape((rows, 1))  # MATLAB's row vectors
        if value.ndim not in (1, 2) or value.shape[0] != rows:
            shapes = ", ".join(f"{k} {v.shape}" for k, v in held.items())
            raise _PlainError(f"{path.name}: arrays of a table have a row for each of its rows; here are {shapes}")
        part = value.reshape((rows, 1)) if value.ndim == 1 else value
        parts.append(part)
        # a single array has numbered columns also if it has one
        alone = part.shape[1] == 1 and len(held) > 1
        names += [key] if alone else [f"{key}{j}" for j in range(part.shape[1])]
    if any(sp.issparse(part) for part in parts):
        numbers: Any = sp.csr_array(sp.hstack([sp.csr_array(part, dtype=np.float64) for part in parts]))
    else:
        numbers = np.column_stack([np.asarray(part, np.float64) for part in parts])
    return Table(tuple(names), numbers, {}, path.name)
