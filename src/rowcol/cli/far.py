"""Files that do not fit into memory: commands read them in chunks, where what is asked allows it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from .common import listed, note

TABLES = (".parquet", ".arrow", ".feather", ".csv", ".tsv", ".csv.gz", ".tsv.gz")
MATRICES = (".npy", ".h5", ".hdf5", ".zarr")
UNPACKED = 4  # bytes of text in one that is packed, about
IN_CHUNKS = ("columns", "drop")  # what may be asked of columns then
METHODS = ("auto", "direct", "cg", "sketch", "rk")  # and by what X may be solved


def is_far(path: Path, memory: str | None, kinds: tuple[str, ...] = TABLES) -> bool:
    """Is there more in a file than `memory`? Unless that is said: than a quarter of what is free, as tables are copied.

    Folders of Parquet files are always read in chunks. Whatever is wrong with a file is for those to say who read it.
    """
    from ..methods.costs import budget

    name, limit = path.name.lower(), budget(memory) / (1 if memory else 2)
    if kinds is TABLES and find_spec("pyarrow") is None:
        return False
    if path.is_dir():
        zarr = name.endswith(".zarr")
        return zarr if kinds is MATRICES else not zarr and any(f.suffix.lower() == ".parquet" for f in path.rglob("*"))
    return name.endswith(kinds) and path.is_file() and _size(path) > limit and not _is_stream(path)


def _is_stream(path: Path) -> bool:
    """Arrow's other kind of file, whose batches can only be had in their order."""
    if not path.name.lower().endswith((".arrow", ".feather")):
        return False
    with path.open("rb") as file:
        return file.read(6) != b"ARROW1"


def _size(path: Path) -> float:
    """Bytes of its numbers, or about: of a text, or of what is packed in ways that only reading it would tell."""
    if path.name.lower().endswith(".parquet"):
        try:
            import pyarrow.parquet as pq

            known = pq.read_metadata(path)
        except (ImportError, OSError, ValueError):  # Arrow's are among them
            return 0.0
        return 8.0 * known.num_rows * known.num_columns
    return float(path.stat().st_size) * (UNPACKED if path.name.lower().endswith(".gz") else 1)


def allowed(options: dict[str, Any], decimal: str, method: str = "auto") -> bool:
    """May columns be as they are, and X elsewhere? Else all of it is read, whatever its size."""
    plain = not any(value for name, value in options.items() if name not in IN_CHUNKS)
    return plain and decimal == "." and method in METHODS


def names_of(source: Path, numbers: bool = False) -> dict[str, str]:
    """The columns of a table, or those of `numbers`: what they are called when it is read as a whole, and in the file.

    Columns of text files without a name get one, and an index that has a name is a column.
    """
    import pyarrow.types as types

    from ..files.table import unnamed
    from ..places.tables import files_of, schema_of

    first = files_of([source])[0]
    text = first.name.lower().endswith(tuple(one for one in TABLES if one[1] in "ct"))
    found, kinds = {}, (types.is_integer, types.is_floating, types.is_boolean)
    for j, field in enumerate(schema_of(first)):
        shown = f"Unnamed: {j}" if text and not field.name else field.name
        if not (shown.startswith("__index_level_") or (numbers and not any(kind(field.type) for kind in kinds))):
            found[shown] = field.name
    for one in unnamed(found):
        note("note", one)
    return found


def table_in_chunks(source: Path, target: str, options: dict[str, Any]) -> Any:
    """X, y and names of columns, in chunks."""
    from ..files.columns import wanted
    from ..files.table import Table
    from ..places.opening import chunks

    names = names_of(source)
    held = Table(tuple(names), np.empty((0, len(names))), {}, source.resolve().name)
    chosen = wanted(held, target, *(listed(options[one]) for one in IN_CHUNKS))
    with _by_options():
        X, y, _ = chunks(source, columns=[names[one] for one in chosen], target=names[target])
    _noted(source)
    return X, y, tuple(chosen)


def matrix_in_chunks(source: Path) -> Any:
    """X in chunks."""
    from ..places.opening import chunks

    found = chunks(source).X
    _noted(source)
    return found


def tables_in_chunks(source: Path, names: tuple[str, ...]) -> Iterator[Any]:
    """Tables of these columns of numbers, one for each chunk."""
    from ..files.table import Table
    from ..places.opening import chunks

    have = names_of(source)
    with _by_options():
        place = chunks(source, columns=[have.get(one, one) for one in names]).X
    _noted(source)
    for k, part in place.parts():
        yield Table(names, part, {}, place.told(k))


@contextmanager
def _by_options() -> Iterator[None]:
    """What to do about a table, in the words of the command line."""
    try:
        yield
    except (TypeError, ValueError) as wrong:
        raise type(wrong)(str(wrong).replace("by columns=, or encode it", "(--drop)")) from wrong


def _noted(source: Path) -> None:
    note("note", f"{source.resolve().name} is read in chunks, and is never in memory as a whole")
