"""Columns of a table as they are wanted: which, of which rows; and what is said where they cannot be had."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import scipy.sparse as sp

from .table import Table


def wanted(table: Table, target: str | None, columns: list[str] | None, drop: list[str] | None) -> list[str]:
    """The columns to use, in the order of the table or as they were named."""
    table.check(*(columns or ()), *(drop or ()), *(() if target is None else (target,)))
    if target is not None and target in (columns or ()):
        raise ValueError(f"column {target!r} is the target: it cannot be among the columns to fit to")
    out = set(drop or ()) | {target}
    return [name for name in dict.fromkeys(columns or table.names) if name not in out]


def texts_named(table: Table, texts: list[str], given: list[str] | None) -> list[str]:
    """Columns of text by name; "all" are all of them, unless a column is called so."""
    if given is None:
        return []
    if given == ["all"] and "all" not in table.names:
        return texts
    table.check(*given)
    for name in given:
        if name not in texts:
            raise ValueError(f"column {name!r} is not text, or not among the columns: it needs no encoding")
    return list(dict.fromkeys(given))


def refusal(table: Table, name: str) -> str:
    """Text where numbers are wanted: a few words in a column of numbers are mistakes, others want an encoding."""
    held = [(i, one) for i, one in enumerate(table.text[name]) if one is not None]
    odd = [(i, one) for i, one in held if not _is_number(one)]
    if len(odd) <= len(held) / 2 and odd:
        row, value = odd[0]
        more = f" and {len(odd) - 1} more" if len(odd) > 1 else ""
        return f"column {name!r} has numbers but for {value[:40]!r} in row {row + 1}{more}: mend the file"
    for pattern, said in LOOKS.items():
        if held and all(re.fullmatch(pattern, one.strip()) for _, one in held):
            return f"column {name!r} has {said}, such as {held[0][1][:40]!r}: mend the file, or drop it"
    many = len({one for _, one in held})
    return (
        f"column {name!r} is text ({many:,} different): encode it (one-hot, or by target means) or drop it"
        if odd
        else f"column {name!r} has numbers that are written as text: mend the file"
    )


LOOKS = {  # what is no text to a person, and no number to a table
    r"[-+]?[\d.]+ ?%": "percentages",
    r"[-+]?0[xX][0-9a-fA-F]+": "hexadecimal numbers",
    r"[-+]?[\d_]+(\.[\d_]+)?": "numbers with underscores",
    r"[-+]?[$€£¥] ?[-+]?[\d.,]+|[-+]?[\d.,]+ ?[$€£¥]": "amounts with a currency",
    r"\d{4}-\d\d?-\d\d?([T ][\d:.,+Z-]+)?|\d\d?[./]\d\d?[./]\d{2,4}": "dates, which are no numbers",
    r"\d\d?:\d\d(:\d\d(\.\d+)?)?": "times, which are no numbers",
}


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def read(
    table: Table, numeric: tuple[str, ...], texts: tuple[str, ...], missing: str | None
) -> tuple[Any, dict[str, np.ndarray], np.ndarray, list[str]]:
    """Columns as they are, of the rows that stay."""
    table.check(*numeric, *texts)
    for name in numeric:
        if name in table.text:
            raise ValueError(f"{table.name} is to have numbers there: " + refusal(table, name).split(": encode")[0])
    raw = table.some(numeric)
    held = {
        name: table.text[name] if name in table.text else np.array([_as_text(v) for v in table.column(name)], object)
        for name in texts
    }
    endless = _where(raw, np.isinf)
    if endless is not None:
        raise ValueError(f"{table.name}: row {endless[0] + 1}, column {numeric[endless[1]]!r} is infinite")
    gone = _rows_with_nan(raw)
    for column in held.values():
        gone = gone | np.array([one is None for one in column], bool)
    notes = []
    if gone.any() and missing is None:
        row = int(np.argmax(gone))
        at = _where(raw[[row]], np.isnan)
        name = numeric[at[1]] if at is not None else next(k for k, v in held.items() if v[row] is None)
        more = f" ({int(gone.sum()):,} rows have missing values)" if gone.sum() > 1 else ""
        raise ValueError(
            f"{table.name}: row {row + 1}, column {name!r} is missing{more}: fill in means (missing='mean') or leave "
            "out such rows (missing='drop')"
        )
    rows = np.arange(len(table))
    if gone.any() and missing == "drop":
        rows = np.flatnonzero(~gone)
        raw, held = raw[rows], {name: column[rows] for name, column in held.items()}
        notes.append(f"{int(gone.sum()):,} of {len(table):,} rows have missing values and are left out")
    return raw, held, rows, notes


def _as_text(value: float) -> str | None:
    """A number where a text is known by: whole numbers as they were written."""
    return None if math.isnan(value) else f"{value:.0f}" if value == round(value) else repr(float(value))


def _where(X: Any, what: Any) -> tuple[int, int] | None:
    if sp.issparse(X):
        X = X.tocoo()
        held = np.flatnonzero(what(X.data))
        return (int(X.row[held[0]]), int(X.col[held[0]])) if held.size else None
    at = np.argwhere(what(X))
    return (int(at[0, 0]), int(at[0, 1])) if at.size else None


def _rows_with_nan(X: Any) -> np.ndarray:
    if not sp.issparse(X):
        return np.isnan(X).any(axis=1)
    out = np.zeros(X.shape[0], bool)
    held = X.tocoo()
    out[held.row[np.isnan(held.data)]] = True
    return out
