"""What a Parquet file tells of itself: where its row groups lie, and what reading one takes."""

from __future__ import annotations

import re
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO

from ..core.place import ABREAST

BUFFER = 1 << 16  # bytes of a Parquet file that are read at a time, of each column
PEEK = 1 << 14  # bytes that Arrow looks ahead for the head of a page: where pages are shorter, its buffer never empties
FOOTER = 1_200  # bytes that a column of a row group takes in memory, of what the end of a file tells about it
MORE = 50_000  # bytes that reading a column of Parquet takes beside its pages, as measured


class Footers:
    """Where row groups lie, of the Parquet files read last: to parse that takes longer than to read a short one."""

    def __init__(self) -> None:
        self._last: dict[tuple[Path, int, int], Any] = {}
        self._alone = Lock()

    def __reduce__(self) -> tuple[type[Footers], tuple[()]]:
        return Footers, ()  # what is known here is found out there

    def of(self, path: Path) -> Any:
        """What the end of a file tells, as it is now."""
        import pyarrow.parquet as pq

        with self._alone:
            now = path.stat()
            key = (path, now.st_mtime_ns, now.st_size)
            footer = self._last.pop(key, None)
            for old in [*self._last][: max(len(self._last) - ABREAST + 1, 0)]:
                del self._last[old]  # before there is one more
            self._last[key] = footer or pq.read_metadata(path)
            return self._last[key]


def length_of(footer: Any, files: int) -> int:
    """Bytes that such footers of so many files take in memory: where some are given up for others, twice as much."""
    return FOOTER * int(footer.num_row_groups) * int(footer.num_columns) * (files if files <= ABREAST else 2 * ABREAST)


def held_by(file: BinaryIO, column: Any) -> int:
    """Bytes that Arrow holds while it reads a column of a row group, from the heads of its first pages.

    The dictionary, once more unpacked or the page that is read, and what is read ahead; nearly half for what
    the allocator leaves between them. Pages are of a length, more or less.
    """
    whole = column.total_uncompressed_size
    dictionary = _page(file, column.dictionary_page_offset, whole) if column.has_dictionary_page else 0
    page = _page(file, column.data_page_offset, whole)
    buffer = BUFFER if page >= PEEK else 3 * column.total_compressed_size // 2
    return int(1.45 * (dictionary + max(dictionary, page) + buffer + min(MORE, whole)))


def _page(file: BinaryIO, where: int, whole: int) -> int:
    """Bytes of a page, unpacked: the second number of its head, in as many bytes as it takes. All, where unclear."""
    file.seek(max(where, 0))
    head = file.read(24)
    kind, size = re.match(rb"\x15.\x15([\x80-\xff]{0,4}[\x00-\x7f])", head, re.S), 0
    for byte in reversed(kind[1] if kind else b""):
        size = size << 7 | byte & 127
    return min(size >> 1, whole) or whole
