"""Tables of text, .csv and .tsv: very wide ones, and numbers with commas."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np

from ..places.heads import Head, PlainError, opened

WIDE = 20_000  # columns: from here on a library of tables spends its time on columns, not on numbers
NO_VALUE = "#N/A,#N/A N/A,#NA,-1.#IND,-1.#QNAN,-NaN,-nan,1.#IND,1.#QNAN,<NA>,N/A,NA,NULL,NaN,None,n/a,nan,null"
MISSING = {"", *next(csv.reader([NO_VALUE]))}  # as pandas has them
TRUTHS = {"True": 1.0, "TRUE": 1.0, "true": 1.0, "False": 0.0, "FALSE": 0.0, "false": 0.0}
COMMAS = re.compile(r"\s*[-+]?\d+(,\d+)?([eE][-+]?\d+)?\s*")
THOUSANDS = re.compile(r"\s*[-+]?\d{1,3}(,\d{3})+(\.\d+)?\s*")
PLAIN = re.compile(r"\s*[-+]?\d+(\.\d+)?\s*")


def wide_columns(path: Path, head: Head, decimal: str) -> tuple[list[str], np.ndarray, dict[str, np.ndarray]]:
    """The numbers of a very wide table with their names, and its columns of text, row by row."""
    count = len(head.names)
    rows: list[np.ndarray] = []
    words: dict[int, dict[int, str]] = {}  # column -> row -> what is there and is no number
    with opened(path, head.packed) as text:
        lines = csv.reader(text, delimiter=head.separator)
        next(lines)
        for cells in lines:
            if not cells:
                continue
            if len(cells) > count:
                raise PlainError(f"{path.name} has more values in a row than names in its first line")
            cells = cells + [""] * (count - len(cells))
            rows.append(_numbers(cells, decimal, len(rows), words))
    values = np.array(rows).reshape(-1, count)
    for j in list(words):
        if all(one in TRUTHS for one in words[j].values()) and np.isnan(np.delete(values[:, j], list(words[j]))).all():
            held = words.pop(j)
            values[list(held), j] = [TRUTHS[one] for one in held.values()]
    texts = {}
    for j, held in sorted(words.items()):
        column: Any = np.array([None if np.isnan(v) else repr(float(v)) for v in values[:, j]], object)
        for row, one in held.items():
            column[row] = one
        texts[head.names[j]] = column
    kept = [j for j in range(count) if j not in words]
    names = [head.names[j] or f"Unnamed: {j}" for j in kept]
    return names, np.ascontiguousarray(values[:, kept]) if words else values, texts


def _numbers(cells: list[str], decimal: str, row: int, words: dict[int, dict[int, str]]) -> np.ndarray:
    """A row as numbers; what is none goes to `words`."""
    odd = any("_" in one for one in cells)  # Python's numbers may have them, and files' do not
    plain = [one.replace(decimal, ".") for one in cells] if decimal != "." else cells
    if not odd:
        try:
            return np.array(plain, dtype=np.float64)
        except ValueError:
            pass
    out = np.full(len(cells), np.nan)
    for j, one in enumerate(plain):
        try:
            out[j] = float(one) if "_" not in one else _none(one)
        except ValueError:
            if cells[j] not in MISSING:
                words.setdefault(j, {})[row] = cells[j]
    return out


def _none(text: str) -> float:
    raise ValueError(text)


def check_commas(path: Path, head: str, values: np.ndarray) -> None:
    """Numbers that have commas, for decimals or for thousands, are not text: say so."""
    held = [one for one in values[:100] if one is not None]
    first = next((one for one in held if "," in one), "").strip()
    if not first:
        return
    thousands = all(THOUSANDS.fullmatch(one) or PLAIN.fullmatch(one) for one in held)
    if thousands and any("." in one for one in held):
        raise PlainError(f"{path.name}: column {head!r} has commas for thousands ({first}): write it without them")
    if thousands:
        raise PlainError(
            f"{path.name}: column {head!r} has numbers with commas ({first}): if these are decimals, say --decimal , "
            "(decimal=','); if thousands, write it without them"
        )
    if all(COMMAS.fullmatch(one) for one in held):
        raise PlainError(
            f"{path.name}: column {head!r} has decimal commas ({first}): read them by --decimal , (decimal=','), or "
            "write decimal points"
        )
