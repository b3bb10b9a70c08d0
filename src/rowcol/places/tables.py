"""Tables on disk as places: Parquet by row groups, Arrow and CSV batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..core.place import Place
from .chunks import CHUNK, Flowing

KINDS = (".parquet", ".arrow", ".feather", ".csv", ".tsv", ".csv.gz", ".tsv.gz")


class Grouped(Place):
    """Parquet files by their row groups, some of them together."""

    def __init__(self, names: tuple[str, ...], groups: list[tuple[str, list[int]]], lengths: list[int]) -> None:
        told = Path(groups[0][0]).name if len({path for path, _ in groups}) == 1 else "the data set"
        super().__init__(np.float64, np.cumsum([0, *lengths]), len(names), told)
        self.names, self.groups = names, groups

    def part(self, k: int) -> np.ndarray:
        """The numbers of some row groups."""
        import pyarrow.parquet as pq

        path, some = self.groups[k]
        with pq.ParquetFile(path) as file:
            return numbers(file.read_row_groups(some, columns=list(self.names)), self.names)


def tables(
    paths: list[Path], columns: Any, target: str | None, rows: int | None
) -> tuple[Place, np.ndarray | None, tuple[str, ...]]:
    """X, y and the names of the columns of X, of tables in files."""
    try:
        import pyarrow as pa
        import pyarrow.dataset as ds
        import pyarrow.parquet as pq
    except ImportError as missing:
        raise ImportError("tables on disk need pyarrow: pip install 'rowcol[files]'") from missing
    files = [f for path in paths for f in (sorted(path.rglob("*.parquet")) if path.is_dir() else [path])]
    if not files:
        raise ValueError(f"{paths[0].name} has no .parquet files")
    kind = next((one for one in KINDS if files[0].name.lower().endswith(one)), None)
    if kind is None:
        raise ValueError(f"{files[0].name}: chunks of tables are read from {', '.join(KINDS)}")
    try:
        source = ds.dataset([str(f) for f in files], format=_format(kind))
        schema = source.schema
    except (pa.ArrowInvalid, OSError) as wrong:
        raise ValueError(f"{files[0].name} cannot be read as a table: {str(wrong).splitlines()[0]}") from wrong
    names = _chosen(schema, columns, target, files[0].name)
    wanted = [*names, *([target] if target else [])]
    if kind == ".parquet":
        groups, lengths = _row_groups(files, len(names), rows, pq)
        place: Place = Grouped(names, groups, lengths)
        parts = (source.to_table(columns=[target]).column(0),) if target else ()
        y = np.concatenate([_column(one, target or "") for one in parts]) if parts else None
        return place, y, names
    size = rows or max(CHUNK // (8 * len(names)), 64)

    def begin() -> Iterator[np.ndarray]:
        for batch in source.to_batches(columns=list(names), batch_size=size, batch_readahead=2, fragment_readahead=1):
            if batch.num_rows:
                yield numbers(batch, names)

    lengths, targets = [], []
    for batch in source.to_batches(columns=wanted, batch_size=size, batch_readahead=2, fragment_readahead=1):
        if batch.num_rows:
            lengths.append(batch.num_rows)
            if target:
                targets.append(_column(batch.column(batch.schema.get_field_index(target)), target))
    if not lengths:
        raise ValueError(f"{files[0].name} has names but no rows")
    flow = Flowing(begin, files[0].name, np.float64, np.cumsum([0, *lengths]), len(names))
    return flow, np.concatenate(targets) if target else None, names


def _format(kind: str) -> Any:
    import pyarrow.csv as pc
    import pyarrow.dataset as ds

    if kind in (".parquet", ".feather"):
        return kind[1:]
    if kind == ".arrow":
        return "ipc"
    return ds.CsvFileFormat(parse_options=pc.ParseOptions(delimiter="\t" if kind.startswith(".tsv") else ","))


def _chosen(schema: Any, columns: Any, target: str | None, name: str) -> tuple[str, ...]:
    """The columns of X, each of numbers."""
    import pyarrow as pa

    have = list(schema.names)
    chosen = tuple(columns) if columns is not None else tuple(c for c in have if c != target)
    missing = [c for c in (*chosen, *([target] if target else [])) if c not in have]
    if missing:
        raise ValueError(
            f"{name} has no column {missing[0]!r}: it has {', '.join(have[:8])}{', ...' * (len(have) > 8)}"
        )
    if not chosen:
        raise ValueError(f"{name} has no columns left for X")
    for c in (*chosen, *([target] if target else [])):
        kind = schema.field(c).type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
            raise TypeError(
                f"{name}: column {c!r} is of {kind}, not of numbers: leave it out by columns=, or encode it"
            )
    return chosen


def _row_groups(files: list[Path], p: int, rows: int | None, pq: Any) -> tuple[list[tuple[str, list[int]]], list[int]]:
    """Row groups of each file, as many together as make a chunk."""
    size = rows or max(CHUNK // (8 * p), 64)
    groups: list[tuple[str, list[int]]] = []
    lengths: list[int] = []
    for path in files:
        with pq.ParquetFile(path) as file:
            fresh = True
            for g in range(file.metadata.num_row_groups):
                more = file.metadata.row_group(g).num_rows
                if fresh or lengths[-1] + more > size:
                    groups.append((str(path), []))
                    lengths.append(0)
                groups[-1][1].append(g)
                lengths[-1], fresh = lengths[-1] + more, False
    if not sum(lengths):
        raise ValueError(f"{files[0].name} has names but no rows")
    return groups, lengths


def numbers(table: Any, names: tuple[str, ...]) -> np.ndarray:
    """Columns of an Arrow table as an array: what is missing is NaN, which is found and named."""
    table.validate()  # numbers lie within their buffers: Arrow trusts the file
    out = np.empty((table.num_rows, len(names)))
    for j, name in enumerate(names):
        out[:, j] = _column(table.column(table.schema.get_field_index(name)), name)
    return out


def _column(column: Any, name: str) -> np.ndarray:
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64).ravel()
