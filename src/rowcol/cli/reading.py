"""X and y from what a command was given: two files of numbers, or a table and the name of its target."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from .common import listed, note
from .far import MATRICES, allowed, is_far, matrix_in_chunks, table_in_chunks

MAGIC = {b"PAR1": ".parquet", b"ARRO": ".arrow", b"\x93NUM": ".npy"}  # what stdin begins with; text otherwise

NO_TARGET = "{:,} rows have no target and are left out"


def table_of(source: Path, needs: tuple[str, ...] = (), decimal: str = ".") -> Any:
    """A table from a file, or from stdin if it is `-`; what a person should know is noted on stderr."""
    from ..files.table import table_from

    if str(source) != "-":
        table = table_from(source, needs, decimal)
    else:
        with tempfile.TemporaryDirectory() as folder:
            spool = Path(folder) / "stdin"
            with open(spool, "wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file)
            with open(spool, "rb") as file:
                kind = MAGIC.get(file.read(4), ".csv")
            table = table_from(spool.rename(spool.with_suffix(kind)), needs, decimal)
    for one in table.notes:
        note("note", one)
    return table


def system_from(
    source: Path,
    right: Path | None,
    target: str | None,
    options: dict[str, Any],
    decimal: str = ".",
    memory: str | None = None,
    method: str = "auto",
) -> tuple[Any, Any, Any]:
    """X, y and the names of X's columns, or None where they have none; X in chunks, where it is larger than memory."""
    from ..files.matrices import matrix_from, vector_from

    if right is not None:
        if target is not None or any(options.values()):
            raise ValueError("columns are named in a table; a second file is y itself: leave out one of them")
        far = allowed(options, decimal, method) and is_far(source, memory, MATRICES)
        return matrix_in_chunks(source) if far else matrix_from(source, decimal), vector_from(right, decimal), None
    if target is None:
        if str(source) != "-" and not source.exists():
            raise FileNotFoundError(f"there is no file {source}")
        raise ValueError("say which column is y by --target, or name a second file with y")
    if allowed(options, decimal, method) and is_far(source, memory):
        return table_in_chunks(source, target, options)
    encoder, X, y = encoded(source, target, options, decimal=decimal)
    return X, y, encoder.features


def encoded(
    source: Path, target: str, options: dict[str, Any], classes: bool = False, decimal: str = "."
) -> tuple[Any, Any, Any]:
    """The Encoder for a table, X and y; what a person should know is noted on stderr."""
    from ..files.encoder import learned

    options = {name: listed(value) if isinstance(value, list) else value for name, value in options.items()}
    table, y = with_target(table_of(source, (target,), decimal), target, classes, options["missing"])
    numbers = _as_numbers(y) if options.get("target_encode") else None
    try:
        encoder, made = learned(table, target=target, y=numbers, **options)
    except ValueError as wrong:
        raise ValueError(_by_options(str(wrong), "target_encode" in options)) from wrong
    for one in made.notes:
        note("note", one)
    return encoder, made.X, y[made.rows]


def with_target(
    table: Any, target: str, classes: bool, missing: str | None, part: bool = False
) -> tuple[Any, np.ndarray]:
    """The rows that have a target, and the target: numbers, or classes. A `part` of a table may have none of these."""
    y = table.column(target)
    text = target in table.text
    gone = np.array([one is None for one in y]) if text else np.isnan(y)
    if gone.any():
        if missing != "drop":
            row, more = int(np.argmax(gone)) + 1, int(gone.sum()) - 1
            others = f", nor have {more:,} more" if more else ""
            raise ValueError(
                f"{table.name}: row {row} has no target {target!r}{others}: leave out such rows (--missing drop)"
            )
        if not part:
            note("note", NO_TARGET.format(int(gone.sum())))
        table, y = table.rows(~gone), y[~gone]
    if not len(y) and not part:
        raise ValueError(f"{table.name} has no row with a target")
    if text and not classes and len(y):
        raise ValueError(f"the target {target!r} is text, such as {y[0][:40]!r}: a classifier would take it as classes")
    if not text and not np.isfinite(y).all():
        raise ValueError(f"{table.name}: row {int(np.argmax(np.isinf(y))) + 1}, column {target!r} is infinite")
    if not classes:
        return table, y
    if text:
        return table, np.array([str(one) for one in y])
    if not (y == np.round(y)).all():
        raise ValueError(f"the target {target!r} has fractions, so it is no class: use a regression")
    return table, y.astype(np.int64)


def _by_options(told: str, means: bool) -> str:
    """What to do about a table, in the words of the command line."""
    told = told.replace("one-hot, or by target means", "--one-hot, or --target-encode" if means else "--one-hot")
    if told.endswith("drop it"):
        told = told.removesuffix("drop it") + "leave it out (--drop)"
    return re.sub("missing='(mean|drop)'", r"--missing \1", told)


def _as_numbers(y: np.ndarray) -> np.ndarray:
    """Of two classes, 1 for the second; regressions have numbers as it is."""
    if y.dtype.kind == "f":
        return y
    found = np.unique(y)
    if len(found) > 2:
        raise ValueError(f"target means are of numbers or of two classes, and there are {len(found)}: use one-hot")
    return (y == found[-1]).astype(float)
