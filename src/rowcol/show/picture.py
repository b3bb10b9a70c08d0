"""What there is to look at, as plain data: a `Book` of `Chapter`s with `Picture`s and `Table`s. Others draw it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(eq=False)
class Curve:
    """One curve of a picture, and a band around it.

    Attributes
    ----------
    name : str
        As the legend says it. Curves of one picture that have the same `family` share a colour.
    x, y : ndarray
        Points of the curve; where `y` is NaN there is none.
    low, high : ndarray, optional
        The band, such as quantiles over seeds.
    style : str
        "line"; "dashed", for what is predicted; "points"; "bars".
    """

    name: str
    x: np.ndarray
    y: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    style: str = "line"
    family: str = ""


@dataclass(eq=False)
class Picture:
    """A chart: what is drawn, along what, and in words what it shows (its alternative text)."""

    title: str
    words: str
    x_label: str
    y_label: str
    curves: list[Curve]
    log_x: bool = False
    log_y: bool = False


@dataclass(eq=False)
class Table:
    """Cells as text. `marks` has, for each row, True (confirmed), False (not) or None (nothing to confirm)."""

    title: str
    head: list[str]
    rows: list[list[str]]
    marks: list[bool | None] = field(default_factory=list)


@dataclass(eq=False)
class Chapter:
    """A heading, paragraphs, and what belongs to them."""

    title: str
    words: list[str]
    pictures: list[Picture] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)


@dataclass(eq=False)
class Book:
    """All there is to tell: a title, a summary in words, chapters, and a last line of how it was made."""

    title: str
    summary: list[str]
    chapters: list[Chapter]
    made: str = ""

    @property
    def pictures(self) -> list[Picture]:
        """All pictures, in order."""
        return [picture for chapter in self.chapters for picture in chapter.pictures]
