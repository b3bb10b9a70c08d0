"""MATLAB's files of versions 4 to 7, .mat: our own reader, as SciPy's ends the process on some that are broken."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

SWELL = 1100  # no compression that zlib has makes more of a byte: what declares more is forged
TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
MATRIX, COMPRESSED = 14, 15
SPARSE, NUMBERS = 5, range(6, 16)  # classes of arrays; others are text, cells, structures and objects
OLD = ("f8", "f4", "i4", "i2", "u2", "u1")  # types of version 4
COMPLEX, LOGICAL = 0x0800, 0x0200  # flags


def is_hdf5(head: bytes) -> bool:
    """Is a file that begins so of MATLAB's version 7.3 or later?"""
    return 0 not in head[:4] and head[124:128] in (b"\x00\x02IM", b"\x02\x00MI")


def variables(raw: bytes) -> dict[str, Any]:
    """Arrays of numbers by name, each of the type it is stored in; sparse ones are CSC.

    Examples
    --------
    >>> import io, numpy as np, scipy.io
    >>> from rowcol.files.matlab import variables
    >>> scipy.io.savemat(file := io.BytesIO(), {"A": np.arange(4.0).reshape(2, 2), "note": "text"})
    >>> variables(file.getvalue())
    {'A': array([[0., 1.],
           [2., 3.]])}
    """
    if 0 in raw[:4]:
        return dict(_version_4(raw))
    if raw[124:128] not in (b"\x00\x01IM", b"\x01\x00MI"):
        raise ValueError("it does not begin as MATLAB's files do")
    order = "<" if raw[126:128] == b"IM" else ">"
    out = {}
    for kind, body in _elements(memoryview(raw)[128:], order):
        if kind == COMPRESSED:
            kind, body = _unpacked(body, order)
        if kind != MATRIX:
            raise ValueError(f"an element of kind {kind} stands where a variable should")
        named = _variable(body, order)
        if named is not None:
            out[named[0]] = named[1]
    return out


def _elements(held: memoryview, order: str) -> Iterator[tuple[int, memoryview]]:
    """What a run of elements has: kind and content."""
    at = 0
    for _ in range(len(held) // 8):
        if at == len(held):
            return
        if at + 8 > len(held):
            raise ValueError("it was cut")
        kind, size = struct.unpack_from(order + "II", held, at)
        if kind >> 16:  # up to four bytes are written in the place of their own size
            kind, size, start, after = kind & 0xFFFF, kind >> 16, at + 4, at + 8
            if size > 4:
                raise ValueError("a small element is not small")
        else:
            start = at + 8
            after = start + size + (-size % 8 if kind != COMPRESSED else 0)
        if start + size > len(held):
            raise ValueError(f"an element declares {size:,} bytes, more than there are")
        yield kind, held[start : start + size]
        at = min(after, len(held))
    if at < len(held):
        raise ValueError("it was cut")


def _unpacked(body: memoryview, order: str) -> tuple[int, memoryview]:
    """One element out of its compression, no larger than it says itself."""
    squeezed = zlib.decompressobj()
    head = squeezed.decompress(body, 8)
    if len(head) < 8:
        raise ValueError("a compressed variable is empty")
    kind, size = struct.unpack(order + "II", head)
    if size > SWELL * len(body):
        raise ValueError(f"a compressed variable declares {size:,} bytes, more than the file can hold")
    content = squeezed.decompress(squeezed.unconsumed_tail, size) if size else b""
    more = squeezed.decompress(squeezed.unconsumed_tail, 1)  # looks at the checksum, too
    if len(content) < size or more or not squeezed.eof:
        raise ValueError(f"a compressed variable declares {size:,} bytes, and does not have them")
    return kind, memoryview(content)


def _variable(body: memoryview, order: str) -> tuple[str, Any] | None:
    """Name and array of a variable; None where it is not of numbers."""
    parts = _elements(body, order)
    flags = _numbers(next(parts, (0, body[:0])), order)
    if flags.size != 2:
        raise ValueError("a variable has no flags")
    told = int(flags[0]) & 0xFFFFFFFF
    kind = told & 0xFF
    if kind != SPARSE and kind not in NUMBERS:
        return None
    shape = tuple(int(one) for one in _numbers(next(parts, (0, body[:0])), order))
    name = bytes(next(parts, (0, body[:0]))[1]).decode("latin1")
    if name.startswith("__") or not name:  # workspaces of functions
        return None
    if len(shape) < 2 or min(shape) < 0 or len(shape) > 32:
        raise ValueError(f"{name} has no shape")
    wanted = (3 if kind == SPARSE else 1) + bool(told & COMPLEX)
    rest = list(parts)
    if len(rest) != wanted:
        raise ValueError(f"{name} has {len(rest)} parts, and not {wanted}")
    if kind == SPARSE and told & LOGICAL and len(rest[2][1]) % 8:  # bytes, whatever they are said to be
        rest[2] = (2, rest[2][1])
    held = [_numbers(one, order) for one in rest]
    if told & COMPLEX:
        if held[-2].size != held[-1].size:
            raise ValueError(f"{name} has {held[-2].size:,} real and {held[-1].size:,} imaginary parts")
        held[-2:] = [held[-2] + 1j * held[-1]]
    return name, _sparse(name, shape, *held) if kind == SPARSE else _dense(name, shape, held[0])


def _numbers(part: tuple[int, memoryview], order: str) -> np.ndarray:
    kind, held = part
    if kind not in TYPES:
        raise ValueError(f"an element of kind {kind} stands where numbers should")
    dtype = np.dtype(order + TYPES[kind])
    if len(held) % dtype.itemsize:
        raise ValueError(f"{len(held):,} bytes are no numbers of {dtype.itemsize}")
    return np.frombuffer(held, dtype).astype(dtype.newbyteorder("="))


def _dense(name: str, shape: tuple[int, ...], values: np.ndarray) -> np.ndarray:
    if math.prod(shape) != values.size:
        raise ValueError(f"{name} declares {math.prod(shape):,} numbers, and has {values.size:,}")
    return values.reshape(shape, order="F")


def _sparse(
    name: str, shape: tuple[int, ...], rows: np.ndarray, starts: np.ndarray, values: np.ndarray
) -> sp.csc_array:
    """Room to spare at the end is MATLAB's way, and left out. Whether places lie within the shape is for others."""
    if len(shape) != 2 or starts.dtype.kind not in "iu" or rows.dtype.kind not in "iu" or starts.size < shape[1] + 1:
        raise ValueError(f"{name} is no sparse matrix of {' x '.join(map(str, shape))}")
    starts = starts[: shape[1] + 1]
    count = int(starts[-1])
    if not 0 <= count <= min(rows.size, values.size):
        raise ValueError(f"{name} declares {count:,} values, and has {min(rows.size, values.size):,}")
    return sp.csc_array((values[:count], rows[:count].astype(np.int64), starts.astype(np.int64)), shape=shape)


def _version_4(raw: bytes) -> Iterator[tuple[str, Any]]:
    """Variables one after the other, each with a header of five numbers: how it is stored, its shape, and its name."""
    at = 0
    for _ in range(len(raw) // 20):
        if at == len(raw):
            return
        order = "<" if struct.unpack_from("<i", raw, at)[0] in range(5000) else ">"
        if at + 20 > len(raw):
            raise ValueError("it was cut")
        told, rows, cols, imaginary, length = struct.unpack_from(order + "5i", raw, at)
        machine, zero, kind, sort = (told // 1000 % 10, told // 100 % 10, told // 10 % 10, told % 10)
        if machine > 1 or zero or kind >= len(OLD) or sort > 2 or told < 0 or min(rows, cols, length - 1) < 0:
            raise ValueError("it does not begin as MATLAB's files do")
        dtype, start = np.dtype(order + OLD[kind]), at + 20 + length
        size = rows * cols * dtype.itemsize * (2 if imaginary == 1 else 1)
        at = start + size
        if at > len(raw):
            raise ValueError(f"a variable of {rows:,} x {cols:,} is more than there is")
        name = raw[start - length : start].rstrip(b"\0").decode("latin1")
        held = np.frombuffer(raw, dtype, size // dtype.itemsize, start).astype(dtype.newbyteorder("="))
        if sort == 0:
            real, unreal = held[: rows * cols], held[rows * cols :]
            yield name, (real if imaginary != 1 else real + 1j * unreal).reshape((rows, cols), order="F")
        elif sort == 2:
            yield name, _old_sparse(name, held.reshape((rows, cols), order="F") if imaginary != 1 else held[:0, None])


def _old_sparse(name: str, told: np.ndarray) -> sp.coo_array:
    """Rows, columns and values; last of all the shape."""
    if not len(told) or told.shape[1] not in (3, 4) or not np.isfinite(told[:, :2]).all():
        raise ValueError(f"{name} is no sparse matrix")
    shape, at = told[-1, :2], told[:-1, :2]
    if (shape < 0).any() or (shape > 2**62).any() or (at < 1).any() or (at > shape).any():
        raise ValueError(f"{name} has a value outside of its shape")
    values = told[:-1, 2] if told.shape[1] == 3 else told[:-1, 2] + 1j * told[:-1, 3]
    return sp.coo_array((values, tuple(at.astype(np.int64).T - 1)), shape=tuple(int(one) for one in shape))
