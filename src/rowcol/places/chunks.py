"""`chunks`: an X that is read in parts, from arrays on disk or from whatever gives rows in pieces."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core.place import Place, Unread, type_for
from ..core.problem import array_of, precision
from ..core.words import first_line

CHUNK = 16_000_000  # bytes of a part, unless said: long enough to be read at the disk's pace, short enough for a cache
LEAST = 64  # rows of a part


class Even(Place):
    """Parts of equal length, which may be cut to fit the memory, unless that length was said."""

    def __init__(self, kind: np.dtype, shape: tuple[int, int], item: int, rows: int | None, name: str, whole: int = 1):
        self.shorter, self.whole = rows is None, whole
        super().__init__(kind, starts_of(*shape, item, rows, whole), shape[1], name)

    def shortened(self, rows: int) -> Place:
        """The same rows in parts of no more than these."""
        made = copy.copy(self)
        made.starts = cut_at(self.shape[0], rows, self.whole)
        return made


class Sliced(Even):
    """An array that gives rows by slicing: a memory map, an HDF5 or a Zarr array, a sparse array."""

    def __init__(self, source: Any, rows: int | None, name: str) -> None:
        kind = precision(source.dtype, name)
        super().__init__(kind, source.shape, kind.itemsize, rows, name, stored_rows(source))
        self.source, self.kind = source, type(source).__module__.split(".")[0]
        self.alone = self.kind not in ("numpy", "scipy", "h5py", "zarr")  # others may not bear several threads
        self.unpacked = unpacked_by(source, self.kind)
        self.stored = "chunks of " + " x ".join(f"{one:,}" for one in source.chunks) if self.unpacked else ""

    def part(self, k: int) -> Any:
        """Those rows, copied: what is read is read here, on the reader's thread."""
        found = self.source[int(self.starts[k]) : int(self.starts[k + 1])]
        return found if sp.issparse(found) or self.kind in ("h5py", "zarr") else np.array(found, order="C")


class Filed(Even):
    """A C-ordered .npy file, or a memory map of one, read by offsets: no page of it is mapped."""

    def __init__(self, path: str, offset: int, kind: np.dtype, shape: tuple[int, int], rows: int | None) -> None:
        name = Path(path).name
        super().__init__(precision(kind, name), shape, kind.itemsize, rows, name)
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
        length = int(self.starts[k + 1] - self.starts[k])
        return Unread((length, self.shape[1]), self.dtype, partial(self._pieces, k), partial(self.checked, k))

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

    alone = True
    remedy = "let it give shorter chunks"

    def __init__(self, begin: Callable[[], Any], name: str, kind: Any, starts: np.ndarray, p: int) -> None:
        super().__init__(kind, starts, p, name)
        self.begin = begin

    def parts(self, order: Any = None) -> Iterator[tuple[int, Any]]:
        """k and its part, of all of them; the next one is read while this one is used."""
        with ThreadPoolExecutor(1) as reader:
            source = numbered(self.begin, self.name)
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
        found = next(filter(_filled, source), None)
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


def numbered(begin: Callable[[], Any], name: str) -> Iterator[Any]:
    """What a function gives, begun anew; what goes wrong there is named by its chunk."""

    def unreadable(k: int, wrong: Exception) -> Exception:
        return type_for(wrong)(f"{name}: chunk {k} cannot be read: {first_line(wrong)}")

    try:
        given = begin()
    except Exception as wrong:
        raise unreadable(1, wrong) from wrong
    if not hasattr(given, "__iter__") and not hasattr(given, "__getitem__"):
        raise TypeError(f"{name} must be a function that returns an iterator of chunks each time it is called")
    source = iter(given)
    for k in count(1):
        try:
            found = next(source)
        except StopIteration:
            return
        except Exception as wrong:
            raise unreadable(k, wrong) from wrong
        yield found
        del found  # or it would be held while the next one is read


def _filled(found: Any) -> bool:
    """Has a chunk any rows?"""
    part = found[0] if isinstance(found, tuple) else found
    return np.shape(part)[:1] != (0,)


def within(place: Place, memory: int, beside: int = 0) -> Place:
    """The same rows, where more than a third of `memory` would be held at a time: read by one thread, in shorter parts.

    Less than a third, where so much has to be there `beside` them. Where that is gone for what is unpacked with them,
    parts have a twelfth.
    """
    room = min(memory / 3, 0.75 * (memory - beside))
    if place.unpacked and not place.alone and place.held > room:
        place = copy.copy(place)
        place.alone = True
    most = int(np.diff(place.starts).max())
    rows = int(max(room - place.unpacked - place.kept, memory / 12) / (3 * place.shape[1] * place.dtype.itemsize))
    if place.held <= room or not place.shorter or rows >= most:
        return place
    return place.shortened(max(rows, 1))


def flowing(begin: Callable[[], Any], name: str) -> tuple[Flowing, np.ndarray | None]:
    """Rows, and y where they come in pairs, of a function that gives them in pieces: one pass to see what there is."""
    lengths: list[int] = []
    targets: list[Any] = []
    kinds, p = set(), None
    for k, found in enumerate(numbered(begin, name), 1):
        if isinstance(found, tuple) and len(found) != 2:
            raise ValueError(f"{name}: chunk {k} is a tuple of {len(found)}: it must be an array, or a pair (X, y)")
        part, y = found if isinstance(found, tuple) else (found, None)
        part = part if sp.issparse(part) else array_of(part, f"{name}: chunk {k}")
        if y is not None and np.shape(y)[:1] != part.shape[:1]:
            raise ValueError(f"{name}: chunk {k} of X has shape {part.shape}, but that of y {np.shape(y)}")
        if part.shape[:1] == (0,):  # nor does it count when it comes again
            continue
        if part.ndim != 2 or (p is not None and part.shape[1] != p):
            want = "it must have 2 dimensions" if part.ndim != 2 else f"those before had {p} columns"
            raise ValueError(f"{name}: chunk {k} of X has shape {part.shape}, {want}")
        if lengths and (y is None) != (targets[0] is None):
            raise ValueError(f"{name}: chunk {k} comes {'without' if y is None else 'with'} a y, unlike those before")
        p = part.shape[1]
        lengths.append(part.shape[0])
        targets.append(y)
        kinds.add(precision(part.dtype, f"{name}: chunk {k}"))
    if p is None:
        raise ValueError(f"{name} gave no rows: source must have some")
    y = None if targets[0] is None else np.concatenate([np.asarray(one) for one in targets])
    return Flowing(begin, name, np.result_type(*kinds), np.cumsum([0, *lengths]), p), y


def starts_of(n: int, p: int, item: int, rows: int | None, whole: int) -> np.ndarray:
    """Where parts begin: of so many rows, or of about CHUNK bytes, in multiples of what is stored together."""
    if n == 0 or p == 0:
        raise ValueError(f"X is empty (shape {(n, p)}): it needs at least one row and one column")
    if rows is not None:
        return cut_at(n, rows, 1)
    rows = max(CHUNK // (p * item), LEAST)
    return cut_at(n, whole if rows < whole <= rows * 4 else rows, whole)


def cut_at(n: int, rows: int, whole: int) -> np.ndarray:
    """Where parts of up to so many rows begin, if none reaches across the border of what is stored together."""
    if rows >= whole:
        return np.append(np.arange(0, n, rows // whole * whole), n)
    step = -(-whole // -(-whole // rows))
    return np.append(np.concatenate([np.arange(i, min(i + whole, n), step) for i in range(0, n, whole)]), n)


def stored_rows(source: Any) -> int:
    """Rows that an HDF5 or a Zarr array stores together."""
    stored = getattr(source, "chunks", None)
    return int(stored[0]) if isinstance(stored, tuple) and stored and isinstance(stored[0], (int, np.integer)) else 1


def unpacked_by(source: Any, kind: str) -> int:
    """Bytes that reading a few rows unpacks beside them: of HDF5 a chunk at a time, of Zarr all across, up to ten.

    What is compressed is there twice.
    """
    stored = getattr(source, "chunks", None)
    if kind not in ("h5py", "zarr") or not stored:
        return 0
    one = int(np.prod(stored)) * source.dtype.itemsize
    if kind == "h5py":
        return 2 * one if source.id.get_create_plist().get_nfilters() else 0
    return one * min(-(-source.shape[1] // stored[1]), 10) * (2 if source.compressors else 1)
