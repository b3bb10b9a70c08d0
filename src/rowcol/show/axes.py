"""`plot`: pictures on the axes of matplotlib."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..core.words import shown
from ..methods.result import Result
from .drawing import FEW, LIGHT, base, by_words, sides, strokes
from .picture import Book, Picture
from .telling import convergence

ACROSS = 2  # pictures side by side


def plot(what: Any, ax: Any = None, picture: int | str | None = None) -> Any:
    """Draw on matplotlib's axes.

    Parameters
    ----------
    what : Result, Picture, Book, or anything with a method ``book()``
        Of a Result, how it converged.
    ax : matplotlib axes, optional
        Where to draw one picture. Without, new axes are made; for a Book, a figure with all its pictures.
    picture : int or str, optional
        Which one of a Book: its number, from 0, or its title. On given `ax`, the first unless said.

    Returns
    -------
    matplotlib axes, or an array of them for all pictures of a Book

    Raises
    ------
    ImportError
        If matplotlib is missing: ``pip install 'rowcol[plot]'``.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> import numpy as np, rowcol
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 5))
    >>> ax = rowcol.plot(rowcol.solve(X, X @ np.ones(5), method="rk", random_state=0))
    >>> ax.get_xlabel(), ax.get_yscale()
    ('passes', 'log')
    """
    found = _pictures(what)
    if picture is not None:
        found = [_chosen(found, picture)]
    plt = _matplotlib()
    if ax is not None:
        return _draw(found[0], ax)
    if len(found) == 1 or not (isinstance(what, Book) or hasattr(what, "book")):
        return _draw(found[0], plt.subplots(figsize=(6.4, 4.4), layout="constrained")[1])
    down = math.ceil(len(found) / ACROSS)
    size = 6.0 * ACROSS, 4.2 * down
    grid = plt.subplots(down, ACROSS, figsize=size, layout="constrained", squeeze=False)[1]
    for one, place in zip(found, grid.flat):
        _draw(one, place)
    for place in grid.flat[len(found) :]:
        place.remove()
    return np.array(grid.flat[: len(found)], dtype=object)


def _pictures(what: Any) -> list[Picture]:
    if isinstance(what, Picture):
        return [what]
    if isinstance(what, Result):
        one = convergence(what)
        if one is None:
            raise ValueError("what: this Result had no rounds and no looks, so there is nothing to draw")
        return [one]
    book = what.book() if callable(getattr(what, "book", None)) else what
    if not isinstance(book, Book):
        raise TypeError(f"what must be a Result, a Picture, a Book or a study, got {type(what).__name__}")
    if not book.pictures:
        raise ValueError("what: there is no picture in it")
    return book.pictures


def _chosen(found: list[Picture], picture: int | str) -> Picture:
    if isinstance(picture, str):
        named = [one for one in found if one.title == picture]
        if not named:
            raise ValueError(
                f"picture must be one of {', '.join(repr(one.title) for one in found)}, got {shown(picture)}"
            )
        return named[0]
    if not isinstance(picture, (int, np.integer)) or not -len(found) <= picture < len(found):
        raise ValueError(f"picture must be a title, or a number below {len(found)}, got {shown(picture)}")
    return found[picture]


def _matplotlib() -> Any:
    try:
        import matplotlib.pyplot as plt  # only those who look need it
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'rowcol[plot]'") from None
    return plt


def _draw(picture: Picture, ax: Any) -> Any:
    """One picture; text is text: a dollar sign in a name is a dollar sign."""
    found, words = strokes(picture), by_words(picture)
    names = list(dict.fromkeys(v for one in found for v in one.x)) if words else []
    columns = [one for one in found if one.curve.style == "bars"]
    for one in found:
        x = np.array([names.index(v) for v in one.x], float) if words else one.x
        look: dict[str, Any] = {"color": LIGHT[one.colour], "label": _text(one.curve.name)}
        if one.low is not None and one.high is not None:
            ax.fill_between(x, one.low, one.high, color=look["color"], alpha=0.16, lw=0)
        there = one.points
        if one.curve.style == "points":
            ax.plot(x[there], one.y[there], "o", ms=3 if there.sum() > 200 else 5, alpha=0.6, mew=0, **look)
        elif one.curve.style == "bars":
            low = base(picture, found)
            if words:
                wide = 0.8 / len(columns)
                left = x - 0.4 + wide * columns.index(one)
                right = left + wide
            else:
                left, right = sides(picture, x)
            bars = (left[there], (one.y - low)[there], (right - left)[there])
            ax.bar(bars[0], bars[1], bars[2], bottom=low, align="edge", alpha=0.8, **look)
        else:
            marker = "o" if one.curve.style == "line" and there.sum() <= FEW else None
            dash = (0, tuple(v / 2 for v in one.dash)) if one.dash else "-"
            ax.plot(x, one.y, ls=dash, lw=2, marker=marker, ms=4, **look)
    if words:
        ax.set_xticks(range(len(names)), [_text(name) for name in names], rotation=30 if len(names) > 5 else 0)
    scale = {"xscale": "log"} if picture.log_x and not words else {}
    scale |= {"yscale": "log"} if picture.log_y else {}
    ax.set(**scale, xlabel=_text(picture.x_label), ylabel=_text(picture.y_label), title=_text(picture.title))
    ax.grid(axis="y", color="0.9", lw=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    if len(found) > 1:
        ax.legend(fontsize="small", frameon=False)
    return ax


def _text(text: str) -> str:
    """Text without mathematics in it; a label that begins with an underscore would be left out of the legend."""
    plain = str(text).replace("$", r"\$")
    return f"\u200b{plain}" if plain.startswith("_") else plain
