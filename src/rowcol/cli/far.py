"""Files that do not fit into memory: commands read them in chunks, where what is asked allows it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .common import listed, note

TABLES = (".parquet", ".arrow", ".feather", ".csv", ".tsv", ".csv.gz", ".tsv.gz")
MATRICES = (".npy", ".h5", ".hdf5", ".zarr")
UNPACKED = 4  # bytes of text in one that is packed, about
IN_CHUNKS = ("columns", "drop")  # what may be asked of columns then


def is_far(path: Path, memory: str | None, kinds: tuple[str, ...] = TABLES) -> bool:
    """Is there more in a file than `memory`? Unless that is said: than a quarter of what is free, as tables are copied.

    Folders of Parquet files are always read in chunks. Whatever is wrong with a file is for those to say who read it.
    """
    from ..methods.costs import budget

    name, limit = path.name.lower(), budget(memory) / (1 if memory else 2)
    if path.is_dir():
        zarr = name.endswith(".zarr")
        return zarr if kinds is MATRICES else not zarr and any(path.rglob("*.parquet"))
    return name.endswith(kinds) and path.is_file() and _size(path) > limit


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


def allowed(options: dict[str, Any], decimal: str) -> bool:
    """May columns be as they are? Else the table is read as a whole, whatever its size."""
    return decimal == "." and not any(value for name, value in options.items() if name not in IN_CHUNKS)


def names_of(source: Path) -> tuple[str, ...]:
    """All columns of a table."""
    from ..places.tables import features_of, files_of

    return features_of(files_of([source])[0], ())


def table_in_chunks(source: Path, target: str, options: dict[str, Any]) -> Any:
    """X, y and names of columns, in chunks."""
    from ..files.columns import wanted
    from ..files.table import Table
    from ..places.opening import chunks

    names = names_of(source)
    held = Table(names, np.empty((0, len(names))), {}, source.resolve().name)
    chosen = wanted(held, target, *(listed(options[one]) for one in IN_CHUNKS))
    try:
        found = chunks(source, columns=chosen, target=target)
    except (TypeError, ValueError) as wrong:
        raise type(wrong)(str(wrong).replace("by columns=, or encode it", "(--drop)")) from wrong
    _noted(found.X)
    return found


def matrix_in_chunks(source: Path) -> Any:
    """X in chunks."""
    from ..places.opening import chunks

    found = chunks(source).X
    _noted(found)
    return found


def tables_in_chunks(source: Path, names: tuple[str, ...]) -> Iterator[Any]:
    """Tables of these columns of numbers, one for each chunk."""
    from ..files.table import Table
    from ..places.opening import chunks

    place = chunks(source, columns=names).X
    _noted(place)
    for k, part in place.parts():
        yield Table(names, part, {}, place.told(k))


def _noted(place: Any) -> None:
    note("note", f"{place.name} is read in chunks, and is never in memory as a whole")
