"""Arrow, Feather and Parquet files: what they declare is held against their size, and what they hold against itself."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

from .arrays import needed
from .matlab import SWELL

FREE = 256_000_000  # bytes that a table may take whatever its file has: many equal numbers are written in a few bytes


def arrow_frame(path: Path) -> Any:
    """A table of pandas. Readers trust the offsets and lengths of a file: these are looked at before."""
    needed("pandas", f"{path.name}, a table,")
    arrow = needed("pyarrow", f"{path.name}, an Arrow table,")
    if path.name.lower().endswith(".parquet"):
        with needed("pyarrow.parquet", path.name).ParquetFile(path) as file:
            _bounded(path, 8 * file.metadata.num_rows * file.metadata.num_columns)
            found = file.read()
    else:
        found = _arrow(path, arrow)
    found.validate(full=True)
    return found.to_pandas()


def _bounded(path: Path, declared: int) -> None:
    if declared > FREE + SWELL * path.stat().st_size or declared < 0:
        raise ValueError(f"it declares {declared:,} bytes, more than the file can hold")


def _arrow(path: Path, arrow: Any) -> Any:
    """Arrow's stream format, or its file format, which is a stream between a word and a table of contents."""
    ipc = needed("pyarrow.ipc", path.name)
    with open(path, "rb") as file:
        begin = file.read(8)
    if begin.startswith(b"FEA1"):  # whose reader ends the process on broken files
        raise ValueError("it is Feather of version 1, as written before 2020: write it anew by a newer pyarrow")
    start = 8 if begin.startswith(b"ARROW1") else 0
    with arrow.memory_map(str(path)) as mapped:
        mapped.seek(start)
        try:
            _bounded(path, sum(map(_declared, ipc.MessageReader.open_stream(mapped))))
        except struct.error as wrong:
            raise ValueError("a message was cut") from wrong
    with arrow.OSFile(str(path)) as file:
        file.seek(start)
        with ipc.open_stream(file) as stream:
            return stream.read_all()


def _declared(message: Any) -> int:
    """Bytes that a batch takes by its own words: eight for each value, or what its buffers are when unpacked."""
    held = message.metadata.to_pybytes()  # a flatbuffer, which Arrow has verified
    batch = _child(held, struct.unpack_from("<I", held)[0], 2)
    if message.type == "dictionary" and batch:
        batch = _child(held, batch, 1)
    if message.type not in ("record batch", "dictionary") or not batch:
        return 0
    values = sum(length for length, _ in _pairs(held, batch, 1))
    unpacked = 0
    if _field(held, batch, 3):  # compressed: each buffer begins with its size
        for offset, length in _pairs(held, batch, 2):
            if length >= 8 and 0 <= offset <= message.body.size - 8:
                unpacked += max(struct.unpack("<q", message.body.slice(offset, 8).to_pybytes())[0], 0)
    return max(8 * values, unpacked)


def _field(held: bytes, table: int, which: int) -> int:
    """Where a field of a flatbuffer's table lies, or 0 if it has none."""
    kinds = table - struct.unpack_from("<i", held, table)[0]
    at = 4 + 2 * which
    near = struct.unpack_from("<H", held, kinds + at)[0] if at < struct.unpack_from("<H", held, kinds)[0] else 0
    return table + near if near else 0


def _child(held: bytes, table: int, which: int) -> int:
    """Where what a field points at lies."""
    at = _field(held, table, which)
    return at + struct.unpack_from("<I", held, at)[0] if at else 0


def _pairs(held: bytes, table: int, which: int) -> list[tuple[int, int]]:
    """A field that is a list of pairs of numbers."""
    at = _child(held, table, which)
    count = struct.unpack_from("<I", held, at)[0] if at else 0
    return list(struct.iter_unpack("<qq", held[at + 4 : at + 4 + 16 * count])) if at else []
