"""`rowcol predict`, and what it shares with `rowcol evaluate`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from .common import AsJson, Decimal, Memory, Verbose, answering, app, note, say_json, write_rows
from .far import is_far, names_of, tables_in_chunks
from .reading import table_of

Model = Annotated[Path, typer.Argument(help="What `rowcol fit` or `rowcol.save` wrote.")]


def opened(
    path: Path, source: Path, target: str | None, decimal: str, memory: str | None, judged: bool = False
) -> tuple[Any, Any, Iterator[Any]]:
    """A model, its Encoder, and the table; in pieces, where it is larger than memory and its columns are numbers.

    A model that was saved without an Encoder takes columns by the names it was fitted to, or all but the target. Tables
    that it is `judged` by have the target, too.
    """
    from ..files.encoder import Encoder
    from ..saving.models import load

    model, encoder = load(path, encoder=True)
    words = encoder is not None and bool(encoder.one_hot or encoder.means_of)
    words = words or (judged and getattr(model, "classes_", np.empty(0)).dtype.kind in "OUS")
    table = None if decimal == "." and not words and is_far(source, memory) else table_of(source, decimal=decimal)
    if encoder is None:
        names = getattr(model, "feature_names_in_", None)
        have = names_of(source, numbers=True) if table is None else table.numeric
        found = tuple(map(str, names)) if names is not None else tuple(name for name in have if name != target)
        if len(found) != model.n_features_in_:
            raise ValueError(
                f"{path.name} knows no columns and takes {model.n_features_in_}, and {source.name} has {len(found)}"
            )
        encoder = Encoder(found, target=target)
    if table is not None:
        return model, encoder, iter([table])
    aim = (encoder.target if target is None else target) if judged else None
    return model, encoder, tables_in_chunks(source, (*encoder.numeric, *(() if aim is None else (aim,))))


@app.command()
def predict(
    model: Model,
    source: Annotated[Path, typer.Argument(help="A table with the columns that the model was fitted to.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write here: .csv or .tsv; stdout unless said.")
    ] = None,
    bound: Annotated[bool, typer.Option("--bound", help="For kernel-ridge: how far the exact solution's are.")] = False,
    std: Annotated[bool, typer.Option("--std", help="For kernel-ridge: standard deviations.")] = False,
    decimal: Decimal = ".",
    memory: Memory = None,
    as_json: AsJson = False,
    verbose: Verbose = 0,
) -> None:
    """Predict, row by row; probabilities too, if the model has them.

    A row that is left out, as a value is missing, has an empty prediction. A table that is larger than memory is read
    in chunks, if its columns are numbers.

    Examples:

        rowcol predict model.rowcol new.csv -o predictions.csv

        rowcol predict model.rowcol new.parquet | head
    """
    with answering():
        if out is not None and str(out) != "-" and out.suffix not in (".csv", ".tsv"):
            raise ValueError(f"{out.name}: predictions are written as .csv or .tsv")
        fitted, encoder, tables = opened(model, source, None, decimal, memory)
        pieces = _pieces(fitted, encoder, tables, bound, std)
        names, first = next(pieces)
        rows = chain(first, chain.from_iterable(more for _, more in pieces))
        if as_json:
            say_json(dict(zip(names, zip(*rows, strict=True), strict=True)))
        else:
            write_rows(out, names, (["" if one is None else _cell(one) for one in row] for row in rows))


def _pieces(
    fitted: Any, encoder: Any, tables: Iterator[Any], bound: bool, std: bool
) -> Iterator[tuple[list[str], list[list]]]:
    """The names of what is predicted, and the rows of a piece: of None, where a row is left out."""
    names, count, left, notes = list[str](), 0, 0, list[str]()
    before = list[list]()  # rows of the pieces in which all are left out, until one tells what is predicted
    for table in tables:
        made = encoder.encode(table)
        count, left, notes = count + 1, left + len(table) - len(made.rows), made.notes
        if not len(made.rows):
            before += [[None] * len(names)] * len(table)
            if names:
                yield names, before
                before = []
            continue
        names, values = _predicted(fitted, made.X, bound, std)
        place = np.full(len(table), -1)
        place[made.rows] = np.arange(len(made.rows))
        yield names, [[None] * len(names)] * len(before) + [[None if k < 0 else v[k] for v in values] for k in place]
        before = []
    if not names:
        raise ValueError("there is no row without a missing value")
    left_out(count, left, notes)


def left_out(count: int, left: int, notes: list[str]) -> None:
    """Note what an Encoder left out: of a table, in its words; of several, in all."""
    for one in notes if count == 1 else [f"{left:,} rows have missing values and are left out"] * (left > 0):
        note("note", one)


def _cell(value: Any) -> Any:
    return repr(value.item()) if isinstance(value, np.floating) else value


def _predicted(model: Any, X: Any, bound: bool, std: bool) -> tuple[list[str], list[Any]]:
    asked = {name: True for name, wanted in (("return_bound", bound), ("return_std", std)) if wanted}
    if asked and not hasattr(model, "y_fit_"):
        raise ValueError(f"--bound and --std are of kernel-ridge, and this is {type(model).__name__}")
    found = model.predict(X, **asked) if asked else model.predict(X)
    names = ["prediction", *(["bound"] if bound else []), *(["std"] if std else [])]
    values = list(found) if asked else [found]
    if values[0].ndim == 2:  # several targets
        names = [f"{name}{j}" for name in names for j in range(values[0].shape[1])]
        values = [column for one in values for column in one.T]
    if hasattr(model, "predict_proba"):
        names += [f"p({one})" for one in model.classes_]
        values += list(model.predict_proba(X).T)
    return names, values
