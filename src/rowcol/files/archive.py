"""A tree of JSON and its arrays, in one file: a zip, stored and not compressed, so that sizes cannot lie.

What a file declares is held against what it has before anything is allocated for it.
"""

from __future__ import annotations

import json
import math
import os
import re
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from .writing import written

TREE = "model.json"
MOST = 10_000  # members
LONGEST = 256_000_000  # bytes of JSON
PART = 1 << 24  # bytes read at a time
# Numbers or text: no objects, no records. NumPy reads a header as Python, whose stack it can overrun: here it is spelt
# as NumPy writes it, or refused.
HEADER = re.compile(
    r"\{'descr': '([<>|][biufcU]\d{1,9})', 'fortran_order': (True|False), "
    r"'shape': \(((?:\d{1,18}, )*(?:\d{1,18},?)?)\),? *\} *\n"
)


def write(path: str | Path, tree: dict[str, Any], arrays: list[np.ndarray], name: str = TREE) -> None:
    """Write a tree, by this name, and its arrays, all or nothing; the same ones make the same bytes."""
    with written(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as held:
        with held.open(zipfile.ZipInfo(name), "w") as member:
            member.write(json.dumps(tree, ensure_ascii=False, allow_nan=False, indent=1).encode())
        for k, array in enumerate(arrays):
            with held.open(zipfile.ZipInfo(f"{k}.npy"), "w", force_zip64=True) as member:
                npy.write_array(member, array, allow_pickle=False)


def read(path: str | Path, name: str = TREE, what: str = "model") -> tuple[dict[str, Any], list[np.ndarray]]:
    """The tree and its arrays; a ValueError that names the file if it is none, or has been damaged."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a file in it")
    try:
        with open(path, "rb") as file, zipfile.ZipFile(file) as held:
            return _read(held, os.fstat(file.fileno()).st_size, name)
    except (PermissionError, MemoryError):
        raise
    except Exception as wrong:  # whatever forged or cut bytes make a reader say
        told = (str(wrong).splitlines() or [type(wrong).__name__])[0][:200]
        raise ValueError(f"{path.name} is no {what} of rowcol, or it is damaged: {told}") from wrong


def _read(held: zipfile.ZipFile, size: int, name: str) -> tuple[dict[str, Any], list[np.ndarray]]:
    members = held.infolist()
    if len(members) > MOST:
        raise ValueError(f"it has {len(members):,} parts")
    names = [one.filename for one in members]
    if sorted(names) != sorted([name, *(f"{k}.npy" for k in range(len(names) - 1))]):
        raise ValueError(f"its parts are not {name} and numbered .npy files")
    if any(one.compress_type != zipfile.ZIP_STORED or one.file_size != one.compress_size for one in members):
        raise ValueError("its parts are not stored as they are")
    if sum(one.file_size for one in members) > size:
        raise ValueError("its parts are larger than the file")
    if held.getinfo(name).file_size > LONGEST:
        raise ValueError(f"{name} is too large")
    tree = json.loads(held.read(name).decode())
    if not isinstance(tree, dict):
        raise ValueError(f"{name} holds no model")
    return tree, [_array(held, held.getinfo(f"{k}.npy")) for k in range(len(names) - 1)]


def _array(held: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    with held.open(member) as file:
        shape, fortran, dtype = _header(file, member.filename)
        room = member.file_size - file.tell()
        if math.prod(shape) * dtype.itemsize != room:
            raise ValueError(f"{member.filename} declares shape {shape}, and has {room} bytes")
        flat = np.empty(math.prod(shape), dtype)
        raw = flat.view(np.uint8) if flat.size else np.empty(0, np.uint8)
        for start in range(0, room, PART):
            part = file.read(min(PART, room - start))
            raw[start : start + len(part)] = np.frombuffer(part, np.uint8)
        file.read()  # to the end, where the checksum is
    return flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape)


def _header(file: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, order and type of an .npy."""
    if file.read(6) != b"\x93NUMPY":
        raise ValueError(f"{name} has not the magic of an array")
    wide = {b"\x01\x00": 2, b"\x02\x00": 4}.get(file.read(2))
    if wide is None:
        raise ValueError(f"{name} has an unknown header")
    told = HEADER.fullmatch(file.read(min(int.from_bytes(file.read(wide), "little"), 1 << 16)).decode("latin1"))
    shape = () if told is None else tuple(int(one) for one in told[3].split(",") if one.strip())
    if told is None or len(shape) > 3 or not np.dtype(told[1]).itemsize:
        raise ValueError(f"{name} declares no shape of numbers or text")
    return shape, told[2] == "True", np.dtype(told[1])
