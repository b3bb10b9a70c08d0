"""Tables on disk as places: columns of Parquet, Arrow and CSV, by row groups where these are short, or as a stream.

Every file is asked for columns by their names, and must have each of them once, of numbers. Its reader gives batches of
whatever length; parts are filled from these, so that what is stored together may be longer than a part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..core.place import PIECE, Place
from ..core.words import first_line
from .chunks import CHUNK, LEAST, Flowing, starts_of
from .footers import BUFFER, Footers, held_by, length_of
from .heads import NO_NAMES, Head, are_numbers, head_of

TEXT = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
KINDS = (".parquet", ".arrow", ".feather", *TEXT)
BLOCK = 1 << 20  # bytes of text that are read at a time

Names = tuple[str, ...]
Group = tuple[Path, int, int]  # a row group: its file, its number, its rows


class Streamed(Flowing):
    """Tables that are read from beginning to end, in parts of any length."""

    names: Names

    def __init__(
        self,
        files: list[Path],
        names: Names,
        n: int,
        rows: int | None,
        name: str,
        unpacked: int,
        stored: str,
        footers: Footers | None = None,
    ) -> None:
        super().__init__(self._filled, name, np.float64, starts_of(n, len(names), 8, rows, 1), len(names))
        self.files, self.names, self.unpacked, self.shorter = files, names, unpacked, rows is None
        self.stored, self.footers = stored, footers or Footers()

    def _filled(self) -> Iterator[np.ndarray]:
        batches = (one for path in self.files for one in batches_of(path, self.names, self.footers))
        return filled(batches, self.starts, self.names)

    def shortened(self, rows: int) -> Place:
        """The same rows in parts of no more than these."""
        told = self.name, self.unpacked, self.stored, self.footers
        made = Streamed(self.files, self.names, self.shape[0], rows, *told)
        made.shorter, made.kept = True, self.kept
        return made


class Grouped(Place):
    """Parquet files by their row groups, as many together as make a part, in any order."""

    def __init__(self, streamed: Streamed, groups: list[Group], size: int) -> None:
        self.parted: list[list[Group]] = []
        for one in groups:
            last = self.parted[-1] if self.parted else []
            if not last or last[0][0] != one[0] or sum(rows for *_, rows in last) + one[2] > size:
                self.parted.append([])
            self.parted[-1].append(one)
        lengths = [sum(rows for *_, rows in part) for part in self.parted]
        super().__init__(np.float64, np.cumsum([0, *lengths]), streamed.shape[1], streamed.name)
        self.streamed, self.groups, self.shorter = streamed, groups, streamed.shorter
        self.unpacked, self.stored, self.names = streamed.unpacked, streamed.stored, streamed.names
        self.kept, self.footers = streamed.kept, streamed.footers

    def part(self, k: int) -> np.ndarray:
        """The numbers of some row groups."""
        path, names = self.parted[k][0][0], self.streamed.names
        batches = batches_of(path, names, self.footers, [g for _, g, _ in self.parted[k]])
        found = next(filled(batches, self.starts[k : k + 2] - self.starts[k], names), None)
        if found is None:
            raise ValueError(f"{path.name} has fewer rows than before")
        return found

    def shortened(self, rows: int) -> Place:
        """The same rows in parts of no more than these: as a stream, where row groups are longer."""
        if max(length for *_, length in self.groups) > rows:
            return self.streamed.shortened(rows)
        made = Grouped(self.streamed, self.groups, rows)
        made.alone = self.alone
        return made


def tables(
    paths: list[Path], columns: Any, target: str | None, rows: int | None
) -> tuple[Place, np.ndarray | None, Names]:
    """X, y and the names of the columns of X, of tables in files."""
    try:
        import pyarrow as pa
    except ImportError as missing:
        raise ImportError("tables on disk need pyarrow: pip install 'rowcol[files]'") from missing
    files = files_of(paths)
    kinds, told = {_kind(path) for path in files}, files[0].name
    files = [f for f in files if not _is_empty(f)]
    if not files:
        raise ValueError(f"{told} has names but no rows")
    aims: Names = (target,) if target else ()
    names = tuple(columns) if columns is not None else features_of(files[0], aims)
    if not names:
        raise ValueError(f"{files[0].name} has no columns left for X")
    for path in files:
        check(path, (*names, *aims), columns is not None or bool(target))
    name = paths[0].name if len(paths) == 1 else "the data set"
    size = rows or max(CHUNK // (8 * len(names)), LEAST)
    if kinds == {".parquet"}:
        place = _parquet(files, names, rows, size, name)
        return place, _whole(files, aims, place.shape[0], place.footers) if aims else None, names
    n, unpacked, most, targets = 0, 0, 0, []
    for path in files:
        before = n
        try:
            for batch in batches_of(path, (*names, *aims), Footers()):
                n, unpacked, most = n + batch.num_rows, max(unpacked, 2 * batch.nbytes), max(most, batch.num_rows)
                targets += [numbers(batch, one) for one in aims]
        except (pa.ArrowException, OSError) as wrong:
            raise ValueError(_said(path, wrong, before, size)) from wrong
    if not n:
        raise ValueError(f"{files[0].name} has names but no rows")
    place = Streamed(files, names, n, rows, name, unpacked, f"batches of {most:,} rows")
    return place, np.concatenate(targets) if aims else None, names


def files_of(paths: list[Path]) -> list[Path]:
    """Files, and the Parquet files of folders, but for what others keep there (_delta_log, _temporary)."""
    files = []
    for path in paths:
        found = sorted(f for f in path.rglob("*") if _is_parquet(f)) if path.is_dir() else [path]
        hidden = [any(part.startswith(("_", ".")) for part in f.relative_to(path).parts) for f in found]
        files += [f for f, out in zip(found, hidden, strict=True) if not out]
    if not files:
        raise ValueError(f"{paths[0].name} has no .parquet files")
    return files


def _is_parquet(path: Path) -> bool:
    return path.name.lower().endswith(".parquet") and path.is_file()


def _kind(path: Path) -> str:
    kind = next((one for one in KINDS if path.name.lower().endswith(one)), None)
    if kind is None:
        raise ValueError(f"{path.name}: chunks of tables are read from {', '.join(KINDS)}")
    return kind


def _parquet(files: list[Path], names: Names, rows: int | None, size: int, name: str) -> Place:
    """By row groups where these are no longer than a part should be, or little so; else as a stream."""
    groups: list[Group] = []
    most, unpacked, kept, footers = 0, 0, 0, Footers()
    for path in files:
        footer = footers.of(path)
        kept = max(kept, length_of(footer, len(files)))
        held = [footer.row_group(g) for g in range(footer.num_row_groups)]
        groups += [(path, g, one.num_rows) for g, one in enumerate(held) if one.num_rows]
        longest = max(held, key=lambda one: one.num_rows, default=None)
        if longest is not None and longest.num_rows > most:
            most, wanted = longest.num_rows, set(names)
            found = (longest.column(j) for j in range(longest.num_columns))
            with open(path, "rb") as raw:
                batch = min(8 * len(names) * most, PIECE)
                unpacked = 2 * batch + sum(held_by(raw, one) for one in found if one.path_in_schema in wanted)
    if not groups:
        raise ValueError(f"{files[0].name} has names but no rows")
    stored = f"row groups of {most:,} rows"
    streamed = Streamed(files, names, sum(length for *_, length in groups), rows, name, unpacked, stored, footers)
    streamed.kept = kept
    return streamed if most > (size if rows else 4 * size) else Grouped(streamed, groups, size)


def _whole(files: list[Path], aims: Names, n: int, footers: Footers) -> np.ndarray:
    """A column of all files."""
    try:
        batches = (one for path in files for one in batches_of(path, aims, footers))
        return next(filled(batches, np.array([0, n]), aims)).ravel()
    except (ValueError, OSError) as wrong:  # Arrow's are among them
        raise ValueError(f"column {aims[0]!r} cannot be read: {first_line(wrong)}") from wrong


# --- columns ---------------------------------------------------------------------------------------------------------


def features_of(path: Path, aims: Names) -> Names:
    """All columns but y, and but an index that pandas stored."""
    schema = schema_of(path)
    try:
        stored = (schema.pandas_metadata or {}).get("index_columns", [])
    except ValueError:  # which is JSON, or should be
        stored = []
    return tuple(one for one in schema.names if one not in aims and one not in stored)


def check(path: Path, names: Names, said: bool) -> None:
    """Has a file these columns, each once, and of numbers? Where some were `said`, its first line may have numbers."""
    import pyarrow.types as types

    schema = schema_of(path)
    have = schema.names
    nameless = path.name.lower().endswith(TEXT) and are_numbers(have)
    if nameless and not said:
        raise ValueError(f"{path.name}: {NO_NAMES}: add a line of names, or say columns= if they are")
    for one in names:
        count = have.count(one)
        if count > 1:
            raise ValueError(f"{path.name} has {count} columns {one!r}: rename all but one")
        folder = next((part for part in path.parts[:-1] if part.startswith(f"{one}=")), None)
        if not count and folder:
            raise ValueError(
                f"column {one!r} is not stored in {path.name}, but in the name of its folder {folder}: write it into "
                "the files, or leave it out"
            )
        if not count:
            instead = f"it has {', '.join(have[:8])}{', ...' * (len(have) > 8)}" if not nameless else NO_NAMES
            raise ValueError(f"{path.name} has no column {one!r}: {instead}")
        kind = schema.field(one).type
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
            raise TypeError(
                f"{path.name}: column {one!r} is of {kind}, not of numbers: leave it out by columns=, or encode it"
            )


def schema_of(path: Path) -> Any:
    """The columns of a file, with their types."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if path.name.lower().endswith(".parquet"):
            return pq.read_schema(path)
        if path.name.lower().endswith(TEXT):
            return _typed(path, _head(path))
        with pa.OSFile(str(path)) as file, pa.ipc.open_file(file) as held:
            return held.schema
    except (pa.ArrowException, OSError) as wrong:
        raise ValueError(_said(path, wrong)) from wrong


def _is_empty(path: Path) -> bool:
    """Has a file no rows? Then its columns may be of anything."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if path.name.lower().endswith(".parquet"):
            return bool(pq.read_metadata(path).num_rows == 0)
        if path.name.lower().endswith(TEXT):
            return False
        with pa.OSFile(str(path)) as file, pa.ipc.open_file(file) as held:
            return bool(held.num_record_batches == 0)
    except (pa.ArrowException, OSError) as wrong:
        raise ValueError(_said(path, wrong)) from wrong


def _said(path: Path, wrong: Exception, before: int = 0, size: int = 1) -> str:
    """What a reader said of a file; of text that is no number, where it is."""
    found = re.search(r"CSV column #(\d+): Row #(\d+): .*(invalid value .*)", first_line(wrong))
    if not found:
        return f"{path.name} cannot be read as a table: {first_line(wrong)}"
    row = int(found[2]) - 2 + before  # the first line is one
    return (
        f"{path.name}: column {_head(path).names[int(found[1])]!r} is not of numbers in row {row:,}, chunk "
        f"{row // size + 1} ({found[3]}): leave it out by columns=, or encode it"
    )


# --- batches ---------------------------------------------------------------------------------------------------------


def batches_of(path: Path, names: Names, footers: Footers, groups: list[int] | None = None) -> Iterator[Any]:
    """Columns of a file, some rows at a time; of Parquet, of some row groups."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.name.lower().endswith(".parquet"):
        # pages are read as they are needed: ahead, or by threads, a row group would be in memory as a whole
        size, footer = max(PIECE // (8 * len(names)), LEAST), footers.of(path)
        try:
            with pq.ParquetFile(path, metadata=footer, buffer_size=BUFFER, pre_buffer=False) as file:
                yield from file.iter_batches(size, row_groups=groups, columns=list(names), use_threads=False)
        finally:
            pa.default_memory_pool().release_unused()  # or it is kept for this thread, and threads come and go
    elif path.name.lower().endswith(TEXT):
        head = _head(path)
        kinds = {one: kind for one, kind in zip(head.names, _typed(path, head).types, strict=True) if one in names}
        with _text(path, head, {"column_types": kinds, "include_columns": list(names)}) as reader:
            yield from reader
    else:
        with pa.OSFile(str(path)) as file:
            with pa.ipc.open_file(file) as held:
                fields = [held.schema.get_field_index(one) for one in names]
            options = pa.ipc.IpcReadOptions(included_fields=fields, use_threads=False)
            with pa.ipc.open_file(file, options=options) as held:
                yield from (held.get_batch(k) for k in range(held.num_record_batches))


def _head(path: Path) -> Head:
    return head_of(path, "\t" if ".tsv" in path.name.lower() else ",")


def _text(path: Path, head: Head, how: dict[str, Any]) -> Any:
    """A reader of text, a block at a time; a line must fit into one."""
    import pyarrow as pa
    import pyarrow.csv as pc

    return pc.open_csv(
        pa.input_stream(str(path), compression="gzip" if head.packed else None),
        read_options=pc.ReadOptions(block_size=max(BLOCK, 128 * len(head.names)), use_threads=False),
        parse_options=pc.ParseOptions(delimiter=head.separator),
        convert_options=pc.ConvertOptions(**how),
    )


def _typed(path: Path, head: Head) -> Any:
    """The columns of a text: as the first rows look, but what is whole or missing there may have fractions later."""
    import pyarrow as pa

    with _text(path, head, {}) as reader:
        schema = reader.schema
    for j, field in enumerate(schema):
        if pa.types.is_integer(field.type) or pa.types.is_null(field.type):
            schema = schema.set(j, field.with_type(pa.float64()))
    return schema


def filled(batches: Iterator[Any], starts: np.ndarray, names: Names) -> Iterator[np.ndarray]:
    """Arrays of rows that begin and end there, from batches of any length."""
    k, at, out = 0, 0, None
    for batch in batches:
        batch.validate()  # numbers lie within their buffers: Arrow trusts the file
        end = at + batch.num_rows
        if end > starts[-1]:
            raise ValueError("there are more rows than before: the file was changed")
        columns = [numbers(batch, one) for one in names]
        inside = starts[np.searchsorted(starts, at, "right") : np.searchsorted(starts, end, "left")]
        for a, b in pairwise([at, *inside.tolist(), end] if end > at else []):
            if out is None:
                out = np.empty((int(starts[k + 1] - starts[k]), len(names)))
            for j, column in enumerate(columns):
                out[a - starts[k] : b - starts[k], j] = column[a - at : b - at]
            if b == starts[k + 1]:
                full, out, k = out, None, k + 1
                yield full
                del full  # or it would be held while the next one is filled
        at = end


def numbers(batch: Any, name: str) -> np.ndarray:
    """A column: what is missing is NaN, which is found and named."""
    (at,) = batch.schema.get_all_field_indices(name)
    return np.asarray(batch.column(at).to_numpy(zero_copy_only=False), dtype=np.float64)
