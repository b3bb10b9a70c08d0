"""`report`: whatever there is to tell, as a page or as pictures in files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ..core.words import shown
from ..files.writing import path_of, written
from ..methods.result import Result
from .benching import of_benchmark
from .charts import chart
from .models import of_model
from .page import converter, page
from .picture import Book
from .telling import told

SUFFIXES = (".html", ".svg", ".png")


def report(what: Any, path: str | os.PathLike, X: Any = None, y: Any = None) -> Path:
    """Write a report: one page that needs no network, or its pictures.

    Parameters
    ----------
    what : Result, fitted estimator, study, Book, dict, list, or path of a JSON file
        What to tell of; anything with a method ``book()``; or what a benchmark wrote.
    path : str or path
        "name.html" is the page, with everything. "name.svg" and "name.png" are the pictures only: one goes by that
        name, several are numbered, name-1.png and so on. The folder must be there. Files are replaced, whole or not
        at all.
    X, y : optional
        What a Result or an estimator is of, for singular values and residuals. A Result of `solve` knows them as long
        as someone keeps them.

    Returns
    -------
    Path
        Of the file; of several, the first.

    Raises
    ------
    ImportError
        If vl-convert-python is missing: ``pip install 'rowcol[report]'``.

    Examples
    --------
    >>> import numpy as np, rowcol, tempfile
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.standard_normal((200, 5)), rng.standard_normal(200)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = rowcol.report(rowcol.solve(X, y), f"{folder}/solve.html")
    ...     page.name, page.stat().st_size < 3_000_000
    ('solve.html', True)
    """
    target = target_of(path)
    book = book_of(what, X, y)
    if target.suffix.lower() == ".html":
        return _write(target, page(book).encode("utf-8"))
    pictures = book.pictures
    if not pictures:
        raise ValueError(f"what: there is no picture in it, so nothing to write to {target.name}")
    paths = [target] if len(pictures) == 1 else [_numbered(target, i) for i in range(1, len(pictures) + 1)]
    drawn = [_drawn(chart(picture), target.suffix.lower()) for picture in pictures]
    for place, image in zip(paths, drawn):
        _write(place, image)
    return paths[0]


def book_of(what: Any, X: Any = None, y: Any = None) -> Book:
    """Whatever there is to tell, as a Book."""
    own = isinstance(what, (Book, dict, list, str, os.PathLike)) or (not isinstance(what, Result) and _tells(what))
    if own and not (X is None and y is None):
        raise ValueError("X and y are for a Result or an estimator: leave them out")
    if isinstance(what, Book):
        return what
    if isinstance(what, Result):
        return told(what, X, y)
    if own and _tells(what):
        book = what.book()
        if not isinstance(book, Book):
            raise TypeError(f"what: its book() must give a Book, got {type(book).__name__}")
        return book
    if isinstance(what, (dict, list)):
        return of_benchmark(what)
    if isinstance(what, (str, os.PathLike)):
        return of_benchmark(_read(Path(what)))
    if isinstance(getattr(what, "result_", None), (Result, tuple)):
        return of_model(what, X, y)
    if hasattr(what, "fit"):
        raise ValueError(f"what: this {type(what).__name__} is not fitted, or is not of rowcol: fit it first")
    raise TypeError(
        "what must be a Result, a fitted estimator of rowcol, a Book, something with a method book(), or the JSON of a "
        f"benchmark; got {type(what).__name__}"
    )


def _tells(what: Any) -> bool:
    return callable(getattr(what, "book", None))


def target_of(path: Any) -> Path:
    """A path that a report can be written to, or an error."""
    target = path_of(path)
    if target.suffix.lower() not in SUFFIXES:
        raise ValueError(f"path must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}, got {shown(target.name)}")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"path: there is no folder {str(target.parent)!r}: make it first")
    if target.is_dir():
        raise IsADirectoryError(f"path: {target.name!r} is a folder")
    return target


def _numbered(target: Path, i: int) -> Path:
    return target.with_name(f"{target.stem}-{i}{target.suffix}")


def _drawn(spec: dict[str, Any], suffix: str) -> bytes:
    if suffix == ".svg":
        return converter().vegalite_to_svg(spec).encode("utf-8")
    return converter().vegalite_to_png(spec, scale=2)


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"what: there is no file {str(path)!r}") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"what: {path.name!r} is not JSON: {error}") from None


def _write(target: Path, data: bytes) -> Path:
    """Whole or not at all."""
    with written(target) as file:
        file.write(data)
    return target
