"""`chunks`: an X that is read in parts, from arrays on disk or from whatever gives rows in pieces."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core.place import Place, Unread, type_for
from ..core.problem import array_of, precision
from ..core.words import first_line

CHUNK = 16_000_000  # bytes of a part, unless said: long enough to be read at the disk's pace, short enough for a cache
LEAST = 64  # rows of a part


class Sliced(Place):
    """An array that gives rows by slicing: a memory map, an HDF5 or a Zarr array, a sparse array."""

    def __init__(self, source: Any, rows: int | None, name: str) -> None:
        self.shorter = rows is None  # parts may be cut to fit the memory, unless their length was said
        n, p = source.shape
        kind = precision(source.dtype, name)
        super().__init__(kind, starts_of(n, p, kind.itemsize, rows, stored_rows(source)), p, name)
        self.source = source

    def part(self, k: int) -> Any:
        """Those rows, copied: what is read is read here, on the reader's thread."""
        found = self.source[int(self.starts[k]) : int(self.starts[k + 1])]
        return found if sp.issparse(found) else np.array(found, order="C")

    def asked(self, which: Sequence[int] | None) -> Iterator[tuple]:
        """By their numbers, for threads to read; of what may not bear that, read by one, as they come."""
        kind = type(self.source).__module__.split(".")[0]
        return super().asked(which) if kind in ("numpy", "scipy", "h5py", "zarr") else self.parts(which)


class Filed(Place):
    """A C-ordered .npy file, or a memory map of one, read by offsets: no page of it is mapped."""

    def __init__(self, path: str, offset: int, kind: np.dtype, shape: tuple[int, int], rows: int | None) -> None:
        name, self.shorter = Path(path).name, rows is None
        super().__init__(precision(kind, name), starts_of(*shape, kind.itemsize, rows, 1), shape[1], name)
        self.path, self.offset, self.kind = path, offset, kind

    def part(self, k: int) -> np.ndarray:
        """Those rows, read from the file."""
        length, p = int(self.starts[k + 1] - self.starts[k]), self.shape[1]
        where = self.offset + int(self.starts[k]) * p * self.kind.itemsize
        found = np.fromfile(self.path, self.kind, length * p, offset=where)
        if found.size < length * p:
            raise ValueError(f"the file ends early: {found.size:,} of {length * p:,} numbers are there")
        return found.reshape(length, p)

    def unread(self, k: int) -> Unread:
        """Those rows, yet to be read."""
        return Unread(self, k, partial(self._pieces, k))

    def _pieces(self, k: int, rows: int) -> Iterator[np.ndarray]:
        """A part, so many rows at a time, all read into the same memory."""
        length, p = int(self.starts[k + 1] - self.starts[k]), self.shape[1]
        room = np.empty((min(rows, length), p), self.kind)
        try:
            with open(self.path, "rb") as file:  # it goes on where the system gives less than it was asked for
                file.seek(self.offset + int(self.starts[k]) * p * self.kind.itemsize)
                for i in range(0, length, rows):
                    piece = room[: length - i]
                    if file.readinto(piece.data.cast("B")) != piece.nbytes:
                        raise ValueError(f"{self.told(k)} cannot be read: the file ends early")
                    with np.errstate(over="ignore"):
                        yield np.ascontiguousarray(piece, dtype=self.dtype)
        except OSError as wrong:
            raise OSError(f"{self.told(k)} cannot be read: {first_line(wrong)}") from wrong

    def some(self, which: np.ndarray) -> np.ndarray:
        """Some rows: no others are read."""
        line = self.shape[1] * self.kind.itemsize
        if which.size * 8 > self.shape[0] or line < 512:  # so near to each other that the parts are quicker
            return super().some(which)
        out = np.empty((which.size, self.shape[1]), self.kind)
        try:
            with open(self.path, "rb", buffering=0) as file:
                for row, i in zip(out, which, strict=True):
                    file.seek(self.offset + int(i) * line)
                    if file.readinto(memoryview(row).cast("B")) != line:
                        raise ValueError(f"{self.name} ends before row {i:,}: it was cut or changed")
        except OSError as wrong:
            raise OSError(f"{self.name} cannot be read: {first_line(wrong)}") from wrong
        return np.ascontiguousarray(out, dtype=self.dtype)


class Flowing(Place):
    """Rows from a function that begins anew each time it is called; they come in their own order only."""

    def __init__(self, begin: Callable[[], Any], name: str, kind: Any, starts: np.ndarray, p: int) -> None:
        super().__init__(kind, starts, p, name)
        self.begin = begin

    def parts(self, order: Any = None) -> Iterator[tuple[int, Any]]:
        """k and its part, of all of them; the next one is read while this one is used."""
        with ThreadPoolExecutor(1) as reader:
            source = iter(self.begin())
            waiting = reader.submit(self._next, source, 0)
            for k in range(self.count):
                now = waiting.result()
                waiting = reader.submit(self._next, source, k + 1)
                yield k, now
                del now
            if waiting.result() is not None:
                raise ValueError(
                    f"{self.name} gave more than {self.count} chunks this time: it must give the same rows"
                )

    def asked(self, which: Sequence[int] | None) -> Iterator[tuple]:
        """Parts with their numbers, as they come."""
        return ((k, part) for k, part in self.parts() if which is None or k in which)

    def _next(self, source: Iterator[Any], k: int) -> Any:
        try:
            found = next(filter(_filled, source), None)
        except Exception as wrong:
            raise type_for(wrong)(f"{self.name}: chunk {k + 1} cannot be read: {first_line(wrong)}") from wrong
        if k == self.count:
            return found
        if found is None:
            raise ValueError(
                f"{self.name} ended after {k} of {self.count} chunks: it must give the same rows each time"
            )
        return self.fitting(k, found[0] if isinstance(found, tuple) else found)

    def part(self, k: int) -> Any:
        """One of them, by going through those before."""
        return next(part for at, part in self.parts() if at == k)


def _filled(found: Any) -> bool:
    """Has a chunk any rows?"""
    part = found[0] if isinstance(found, tuple) else found
    return len(np.shape(part)) != 2 or np.shape(part)[0] > 0


def within(place: Place, memory: int) -> Place:
    """The same rows in shorter parts, where those held at a time would take more than a third of `memory`."""
    most = int(np.diff(place.starts).max())
    if place.held <= memory / 3 or not getattr(place, "shorter", False) or most <= LEAST:
        return place
    made = copy.copy(place)
    n = place.shape[0]
    made.starts = starts_of(n, place.shape[1], place.dtype.itemsize, max(int(most * memory / 3 / place.held), LEAST), 1)
    return made


def flowing(begin: Callable[[], Any], name: str) -> tuple[Flowing, np.ndarray | None]:
    """Rows, and y where they come in pairs, of a function that gives them in pieces: one pass to see what there is."""
    lengths, targets, kinds, p = [], [], set(), None
    try:
        for k, found in enumerate(begin()):
            part, y = found if isinstance(found, tuple) else (found, None)
            part = part if sp.issparse(part) else array_of(part, f"{name}: chunk {k + 1}")
            if part.ndim != 2 or (p is not None and part.shape[1] != p):
                want = "it must have 2 dimensions" if part.ndim != 2 else f"those before had {p} columns"
                raise ValueError(f"{name}: chunk {k + 1} of X has shape {part.shape}, {want}")
            if y is not None and len(y) != part.shape[0]:
                raise ValueError(f"chunk {k + 1} has {part.shape[0]} rows, but {len(y)} of y")
            p = part.shape[1]
            if not part.shape[0]:  # nor does it count when it comes again
                continue
            lengths.append(part.shape[0])
            targets.append(y)
            kinds.add(precision(part.dtype, f"{name}: chunk {k + 1}"))
    except TypeError as wrong:
        if not callable(begin) or "iterable" in str(wrong):
            raise TypeError(
                f"{name} must be a function that returns an iterator of chunks each time it is called"
            ) from wrong
        raise
    if p is None or not sum(lengths):
        raise ValueError(f"{name} gave no rows")
    y = None if targets[0] is None else np.concatenate([np.asarray(one) for one in targets])
    return Flowing(begin, name, np.result_type(*kinds), np.cumsum([0, *lengths]), p), y


def starts_of(n: int, p: int, item: int, rows: int | None, whole: int) -> np.ndarray:
    """Where parts begin: of so many rows, or of about CHUNK bytes, in multiples of what is stored together."""
    if n == 0 or p == 0:
        raise ValueError(f"X is empty (shape {(n, p)}): it needs at least one row and one column")
    if rows is None:
        rows = max(CHUNK // (p * item), LEAST)
        rows = max(rows // whole, 1) * whole if whole > 1 and rows * 4 >= whole else rows
    return np.append(np.arange(0, n, rows), n)


def stored_rows(source: Any) -> int:
    """Rows that an HDF5 or a Zarr array stores together."""
    stored = getattr(source, "chunks", None)
    return int(stored[0]) if isinstance(stored, tuple) and stored and isinstance(stored[0], (int, np.integer)) else 1
