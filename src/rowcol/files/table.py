"""`Table`: a file's columns, numbers apart from text."""

from __future__ import annotations

import difflib
import logging
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core.words import first_line
from ..places.heads import NO_NAMES, PlainError, are_numbers, head_of
from .arrays import ARRAYS, array_from, arrays_from, needed
from .arrow import arrow_frame
from .delimited import WIDE, check_commas, wide_columns
from .market import market

log = logging.getLogger(__name__)

TEXT = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
ARROW = (".parquet", ".arrow", ".feather")
SVM = (".svmlight", ".svm", ".libsvm")
NEAR = 5_000  # columns whose names are compared with one that is not there
COLUMNS = 1 << 20  # that a sparse table may have besides one for each byte of its file: each takes a name
EXACT = 2.0**53  # whole numbers up to here are themselves as float64
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
    notes : list of str
        What a person should know of how it was read.

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
    notes: list[str] = field(default_factory=list)

    @property
    def names(self) -> tuple[str, ...]:
        """All columns, numbers first."""
        return (*self.numeric, *self.text)

    def __len__(self) -> int:
        return int(self.numbers.shape[0])

    def rows(self, which: np.ndarray) -> Table:
        """Some rows."""
        text = {k: v[which] for k, v in self.text.items()}
        return Table(self.numeric, self.numbers[which], text, self.name, self.notes)

    def some(self, names: tuple[str, ...] | list[str]) -> Any:
        """Columns of numbers, in this order."""
        if tuple(names) == self.numeric:
            return self.numbers
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
                raise PlainError(f"{self.name} has no column {name!r}: {_instead(name, self.names)}")


def _instead(name: str, names: tuple[str, ...]) -> str:
    """Names that are nearly this one, or the first of them."""
    folded = name.casefold().strip()
    same = [one for one in names if one.casefold().strip() == folded]
    near = same or (difflib.get_close_matches(name, names, 3) if len(names) <= NEAR else [])
    if near:
        return f"did you mean {' or '.join(map(repr, near))}?"
    if are_numbers(names):
        return NO_NAMES
    shown = ", ".join(map(repr, names[:8]))
    return f"it has {shown}" + (f" and {len(names) - 8:,} more" if len(names) > 8 else "")


def table_from(path: str | Path, needs: tuple[str, ...] = (), decimal: str = ".") -> Table:
    """A table from a file; no file can run code.

    Parameters
    ----------
    path : str or Path
        .csv or .tsv (also .gz; the first line has the names), .parquet, .arrow, .feather,
        .npy, .npz, .mat, .h5, .hdf5, .mtx (also .gz), .svmlight, .svm or .libsvm. Of files of arrays, those with one
        column keep their name, and others have theirs numbered: X0, X1, ...; the target of svmlight is y.
    needs : tuple of str
        Columns that must be there: of text this is known from its first line.
    decimal : {".", ","}
        Of numbers in .csv and .tsv.

    Returns
    -------
    Table
    """
    path = Path(path)
    if decimal not in (".", ","):
        raise ValueError(f"decimal must be '.' or ',', got {decimal!r}")
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
            found = _frame(path, needs, decimal) if name.endswith((*TEXT, *ARROW)) else _arrays(path, name)
    except (ImportError, OSError, ValueError, MemoryError) as wrong:
        if isinstance(wrong, (ImportError, FileNotFoundError, PermissionError, PlainError)):
            raise
        raise ValueError(f"{path.name} cannot be read as a table: {first_line(wrong)}") from wrong
    except Exception as wrong:  # whatever a broken file makes a reader say
        raise ValueError(f"{path.name} cannot be read as a table: {first_line(wrong)}") from wrong
    if not len(found):
        raise PlainError(f"{path.name} has names but no rows")
    if len(set(found.names)) < len(found.names):
        twice = next(one for one, count in Counter(found.names).items() if count > 1)
        raise PlainError(f"{path.name} has two columns {twice!r}: rename one")
    found.check(*needs)
    log.info("read %s: %s rows x %s columns", path, f"{len(found):,}", f"{len(found.names):,}")
    return found


# --- tables proper ---------------------------------------------------------------------------------------------------


def _frame(path: Path, needs: tuple[str, ...], decimal: str) -> Table:
    name = path.name.lower()
    if name.endswith(TEXT):
        head = head_of(path, "\t" if ".tsv" in name else ",")
        Table(tuple(head.names), np.empty((0, len(head.names))), {}, path.name).check(*needs)
        if len(head.names) > WIDE:
            names, values, text = wide_columns(path, head, decimal)
            for one, column in text.items():
                check_commas(path, one, column)
            return Table(tuple(names), values, text, path.name, unnamed(names))
        frame = _text_frame(path, head.separator, head.packed, decimal)
    else:
        frame = arrow_frame(path)
        frame = frame.reset_index() if frame.index.name is not None else frame
    return _parted(frame, path)


def _text_frame(path: Path, separator: str, packed: bool, decimal: str) -> Any:
    pandas = needed("pandas", f"{path.name}, a table,")
    exact: dict[str, Any] = {"low_memory": False, "index_col": False, "decimal": decimal}
    exact["compression"] = "gzip" if packed else None
    if tuple(int(part) for part in pandas.__version__.split(".")[:2]) < (3, 1):
        exact["float_precision"] = "round_trip"  # from then on it is the only one
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            frame = pandas.read_csv(path, sep=separator, **exact)
        except UnicodeDecodeError:
            raise PlainError(f"{path.name} is not text in UTF-8: is it a table?") from None
    if any(issubclass(one.category, pandas.errors.ParserWarning) for one in told):
        raise PlainError(f"{path.name} has more values in a row than names in its first line")
    last = frame.columns[-1] if len(frame.columns) else ""
    if str(last).startswith("Unnamed: ") and len(frame) and frame[last].isna().all():
        frame = frame.iloc[:, :-1]  # every line ends with a separator
    return _large(frame)


def _large(frame: Any) -> Any:
    """Whole numbers that no integer of 64 bits holds are read as text: they are numbers."""
    for at in range(len(frame.columns)):
        column = frame.iloc[:, at]
        held = column.dropna() if str(column.dtype).startswith(("object", "str")) else ()
        if len(held) and all(str(one).lstrip("+-").isdecimal() for one in held):
            frame = frame.assign(**{frame.columns[at]: column.map(float, na_action="ignore").astype(float)})
    return frame


def unnamed(names: Any) -> list[str]:
    """What to say of columns without a name: of the first."""
    return [
        f"column {j + 1} has no name and is taken as {one!r}: leave it out by --drop {one!r} if it only counts rows"
        for j, one in enumerate(names)
        if one == f"Unnamed: {j}"
    ][:1]


def _parted(frame: Any, path: Path) -> Table:
    """Numbers apart from text."""
    pandas = needed("pandas", f"{path.name}, a table,")
    frame.columns = [str(one) for one in frame.columns]
    for at, kind in enumerate(frame.dtypes):
        if kind.kind == "O" and pandas.api.types.infer_dtype(frame.iloc[:, at]) == "decimal":
            frame = frame.assign(**{frame.columns[at]: frame.iloc[:, at].astype(float)})
    types, found = pandas.api.types, list(frame.dtypes)
    numeric = {kind: bool(types.is_numeric_dtype(kind)) for kind in set(found)}
    if any(types.is_complex_dtype(kind) for kind in numeric):
        raise PlainError(f"{path.name} has complex numbers, which models do not take")
    kinds, notes = [numeric[kind] for kind in found], unnamed(frame.columns)
    numbers = frame if all(kinds) else frame.loc[:, kinds]
    values = np.ascontiguousarray(numbers.to_numpy(dtype=np.float64, na_value=np.nan))
    for j in [k for k, kind in enumerate(numbers.dtypes) if types.is_integer_dtype(kind)]:
        if len(values) and np.nanmax(np.abs(values[:, j]), initial=0.0) >= EXACT:
            notes.append(f"column {numbers.columns[j]!r} has whole numbers beyond 2^53, which are rounded")
    text = {}
    for at in [k for k, is_number in enumerate(kinds) if not is_number]:
        column, head = frame.iloc[:, at], frame.columns[at]
        if column.isna().all():  # nothing in it says that it is text
            values = np.column_stack([values, np.full(len(frame), np.nan)])
            numbers = numbers.assign(**{head: np.nan})
            continue
        plain = column.astype(object)
        text[head] = np.array([None if gone else str(one) for one, gone in zip(plain, column.isna())], object)
        check_commas(path, head, text[head])
    return Table(tuple(numbers.columns), values, text, path.name, notes)


# --- arrays as tables ------------------------------------------------------------------------------------------------


def _arrays(path: Path, name: str) -> Table:
    if name.endswith(SVM):
        from sklearn.datasets import load_svmlight_file

        X, y = load_svmlight_file(str(path))
        return _together({"X": X, "y": y}, path)
    if name.endswith((".mtx", ".mtx.gz")):
        return _together({"X": market(path)}, path)
    if name.endswith(".npy"):
        found = array_from(path)
        if found.dtype.names:
            return _together({one: found[one] for one in found.dtype.names}, path)
        return _together({"X": found}, path)
    return _together(arrays_from(path), path)


def _together(held: dict[str, Any], path: Path) -> Table:
    """Arrays side by side, sparse if one of them is."""
    if not held:
        raise PlainError(f"{path.name} holds no array of numbers")
    names: list[str] = []
    parts = []
    passed = [k for k, v in held.items() if v.dtype.kind in "USO" or (v.size == 1 and len(held) > 1)]
    held = {key: value for key, value in held.items() if key not in passed}
    rows = max((value.shape[0] if value.ndim else 0 for value in held.values()), default=0)
    if not rows:
        raise PlainError(f"{path.name} holds no array of numbers with rows")
    for key, value in held.items():
        if value.dtype.kind not in "biuf":
            raise PlainError(f"{path.name}: {key} has no real numbers but {value.dtype}")
        if value.ndim == 2 and value.shape[0] == 1 and value.shape[1] == rows > 1:
            value = value.reshape((rows, 1))  # MATLAB's row vectors
        if value.ndim not in (1, 2) or value.shape[0] != rows:
            shapes = ", ".join(f"{k} {v.shape}" for k, v in held.items())
            raise PlainError(f"{path.name}: arrays of a table have a row for each of its rows; here are {shapes}")
        part = value.reshape((rows, 1)) if value.ndim == 1 else value
        if part.shape[1] > COLUMNS + path.stat().st_size:
            raise PlainError(f"{path.name}: {key} declares {part.shape[1]:,} columns, more than the file can hold")
        parts.append(part)
        # a single array has numbered columns also if it has one
        alone = part.shape[1] == 1 and len(held) > 1
        names += [key] if alone else [f"{key}{j}" for j in range(part.shape[1])]
    if any(sp.issparse(part) for part in parts):
        numbers: Any = sp.csr_array(sp.hstack([sp.csr_array(part, dtype=np.float64) for part in parts]))
    else:
        numbers = np.column_stack([np.asarray(part, np.float64) for part in parts])
    notes = [f"{path.name}: {', '.join(passed)} is text or a single value, and is passed over"] if passed else []
    return Table(tuple(names), numbers, {}, path.name, notes)
