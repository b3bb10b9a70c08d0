"""Files that are there whole, or not at all."""

from __future__ import annotations

import errno
import glob
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from ..core.words import shown

log = logging.getLogger(__name__)

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # the disk, a quota, or what a process may write
ZEROS = 1 << 20  # bytes written at a time


def path_of(path: Any) -> Path:
    """A path as it was given, or an error that names it."""
    if not isinstance(path, (str, os.PathLike)) or not isinstance(os.fspath(path), str):
        raise TypeError(f"path must be the name of a file, got {shown(path)}")
    return Path(path)


@contextmanager
def written(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write to, which takes its name only once all of it is on the disk.

    What was there before stays until then, and nothing is left where writing fails. Devices and pipes are written to as
    they are.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rowcol.files.writing import written
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with written(Path(folder) / "out.txt") as file:
    ...         _ = file.write(b"all of it")
    ...     [one.name for one in Path(folder).iterdir()]
    ['out.txt']
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a file in it")
    if path.exists() and not path.is_file():
        with open(path, "wb") as file:
            yield file
        return
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: there is no folder {path.parent}")
    path = path.resolve()  # a link stays, and what it leads to is written
    beside = _beside(path)
    try:
        with _nameless(path.parent) or open(beside, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if not beside.exists():  # all of it is there: now it gets a name
                _name(file, beside)
        os.replace(beside, path)
        log.info("wrote %s", path)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise


def _name(file: BinaryIO, path: Path) -> None:
    """Give a file without a name one."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:  # the folder is told by its number: only so does Python follow the link to the file
        os.link(f"/proc/self/fd/{file.fileno()}", path.name, dst_dir_fd=folder)
    finally:
        os.close(folder)


def _nameless(folder: Path) -> BinaryIO | None:
    """A file without a name, which is gone if the process is killed; None where there is no such thing."""
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir("/proc/self/fd"):
        return None
    try:
        return open(os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o666), "wb")
    except OSError as wrong:
        if wrong.errno in (errno.EACCES, errno.EROFS, errno.ENOSPC, errno.EDQUOT):
            raise
        return None  # not every file system has them


def writable(path: Path, size: int = 0) -> None:
    """An error, before any work, if a file of so many bytes could not be written there."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"checkpoint: {path} cannot be written, as there is no folder {path.parent}")
    beside = _beside(path.resolve())
    try:
        try:
            with open(beside, "wb") as file:
                _reserve(file, size)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as wrong:
        full = wrong.errno in FULL
        needs = f"about {max(size // 1_000_000, 1):,} MB are needed: make room, or " if full else ""
        raise type(wrong)(
            f"checkpoint: {path} cannot be written, {wrong.strerror or wrong}: {needs}name another file"
        ) from wrong


def _reserve(file: BinaryIO, size: int) -> None:
    """Have the disk set so many bytes aside; nothing is written where it can."""
    if size and hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file.fileno(), 0, size)
            return
        except OSError as wrong:
            if wrong.errno in FULL:
                raise  # other errors: not every file system can
    for start in range(0, size, ZEROS):
        file.write(bytes(min(ZEROS, size - start)))


def swept(path: Path) -> None:
    """Take away what processes left that were killed while they wrote there."""
    path = path.resolve()
    for part in path.parent.glob(f".{glob.escape(path.name[:200])}.*.part"):
        number = part.name.split(".")[-2]
        if number.isdecimal() and int(number) != os.getpid() and not _alive(int(number)):
            with suppress(OSError):
                part.unlink()


def _alive(process: int) -> bool:
    if os.name != "posix":  # elsewhere asking may end it
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name[:200]}.{os.getpid()}.part")
