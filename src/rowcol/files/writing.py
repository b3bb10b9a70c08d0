"""Files that are there whole, or not at all."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

log = logging.getLogger(__name__)


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
    beside = path.with_name(f".{path.name[:200]}.{os.getpid()}.part")
    try:
        with open(beside, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
        log.info("wrote %s", path)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise
