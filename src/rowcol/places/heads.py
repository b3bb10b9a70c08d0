"""The first line of .csv and .tsv: the names of columns, and what separates them."""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

NO_NAMES = "its first line has numbers, where the names should be"


class PlainError(ValueError):
    """An error that says all there is to say."""


class Head(NamedTuple):
    """The first line, and how the file is to be read."""

    names: list[str]
    separator: str
    packed: bool  # by gzip, whatever the file is called


@contextmanager
def opened(path: Path, packed: bool) -> Iterator[IO[str]]:
    """The file as text; a mark at its beginning, as spreadsheets write, is passed over."""
    with (gzip.open if packed else open)(path, "rt", encoding="utf-8-sig", newline="") as text:
        try:
            yield text
        except UnicodeDecodeError:
            raise PlainError(f"{path.name} is not text in UTF-8: is it a table?") from None


def head_of(path: Path, separator: str) -> Head:
    """What the first line says; columns may also be separated by semicolons or tabs, if no comma is there.

    Parameters
    ----------
    path : Path
    separator : str
        That the name of the file promises.

    Returns
    -------
    Head

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rowcol.places.heads import head_of
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "homes.csv"
    ...     _ = path.write_text("size;price\\n50;200\\n")
    ...     head_of(path, ",")
    Head(names=['size', 'price'], separator=';', packed=False)
    """
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    with (gzip.open if packed else open)(path, "rb") as file:
        if b"\0" in file.read(4096):
            raise PlainError(f"{path.name} is not text in UTF-8: is it a table?")
    with opened(path, packed) as text:
        names = next(csv.reader(text, delimiter=separator), [])
    for other in (";", "\t", ","):
        if len(names) == 1 and other in names[0] and other != separator:
            return _checked(path, Head(next(csv.reader(names, delimiter=other)), other, packed))
    return _checked(path, Head(names, separator, packed))


def are_numbers(names: Sequence[str]) -> bool:
    """Are these numbers, and so data where names should be?"""
    try:
        return bool(names) and all(isinstance(float(one), float) for one in names)
    except ValueError:
        return False


def _checked(path: Path, head: Head) -> Head:
    if are_numbers(head.names) and len(set(head.names)) < len(head.names):
        raise PlainError(f"{path.name}: {NO_NAMES}")
    if len(set(head.names)) < len(head.names):
        twice = next(one for one, count in Counter(head.names).items() if count > 1)
        what = f"columns {twice!r}: rename one" if twice else "columns without a name: name them"
        raise PlainError(f"{path.name} has two {what}")
    return head
