"""What messages say of values and of other people's errors: one line, whatever these are."""

from __future__ import annotations

import reprlib
from typing import Any

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80


def shown(value: Any) -> str:
    """A value as messages show it: in one line, and not a long one."""
    try:
        told = _SHORT.repr(value)
    except Exception:  # whose repr fails
        told = f"a {type(value).__name__}"
    return cut(told, 80)


def cut(text: str, most: int = 300) -> str:
    """Text in one line of so many characters: of more, its beginning and its end."""
    text = text if len(text) <= 4 * most else f"{text[: 2 * most]} ... {text[-2 * most :]}"
    line = " ".join(text.split())
    half = most // 2 - 3
    return line if len(line) <= most else f"{line[:half]} ... {line[-half:]}"


def first_line(wrong: BaseException) -> str:
    """What an error says, in one line."""
    return cut((str(wrong).strip().splitlines() or [type(wrong).__name__])[0])
