"""`rowcol predict`, and what it shares with `rowcol evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from .common import AsJson, Decimal, Verbose, answering, app, note, say_json, write_rows
from .reading import table_of

Model = Annotated[Path, typer.Argument(help="What `rowcol fit` or `rowcol.save` wrote.")]


def opened(path: Path, table: Any, target: str | None = None) -> tuple[Any, Any]:
    """A model and its Encoder; one that was saved without takes columns by the names it was fitted to, or all."""
    from ..files.encoder import Encoder
    from ..saving.models import load

    model, encoder = load(path, encoder=True)
    if encoder is None:
        names = getattr(model, "feature_names_in_", None)
        found = tuple(map(str, names)) if names is not None else tuple(n for n in table.numeric if n != target)
        if len(found) != model.n_features_in_:
            raise ValueError(
                f"{path.name} knows no columns and takes {model.n_features_in_}, and {table.name} has {len(found)}"
            )
        encoder = Encoder(found, target=target)
    return model, encoder


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
    as_json: AsJson = False,
    verbose: Verbose = 0,
) -> None:
    """Predict, row by row; probabilities too, if the model has them.

    A row that is left out, as a value is missing, has an empty prediction.

    Examples:

        rowcol predict model.rowcol new.csv -o predictions.csv

        rowcol predict model.rowcol new.parquet | head
    """
    with answering():
        if out is not None and str(out) != "-" and out.suffix not in (".csv", ".tsv"):
            raise ValueError(f"{out.name}: predictions are written as .csv or .tsv")
        table = table_of(source, decimal=decimal)
        fitted, encoder = opened(model, table)
        made = encoder.encode(table)
        for one in made.notes:
            note("note", one)
        names, values = _predicted(fitted, made.X, bound, std)
        place = np.full(len(table), -1)
        place[made.rows] = np.arange(len(made.rows))
        if as_json:
            every: dict[str, list] = {
                name: [None if k < 0 else column[k] for k in place] for name, column in zip(names, values)
            }
            say_json(every)
        else:
            rows = (["" if k < 0 else _cell(column[k]) for column in values] for k in place)
            write_rows(out, names, rows)


def _cell(value: Any) -> Any:
    return repr(value.item()) if isinstance(value, np.floating) else value


def _predicted(model: Any, X: Any, bound: bool, std: bool) -> tuple[list[str], list[Any]]:
    if not X.shape[0]:
        raise ValueError("there is no row without a missing value")
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
