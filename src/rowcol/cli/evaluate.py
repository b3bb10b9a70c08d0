"""`rowcol evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from .common import AsJson, Decimal, Memory, Verbose, answering, app, note, say, say_json
from .predict import Model, left_out, opened
from .reading import NO_TARGET, with_target


@app.command()
def evaluate(
    model: Model,
    source: Annotated[Path, typer.Argument(help="A table with the columns of the model, and the target.")],
    target: Annotated[str | None, typer.Option(help="The target; the one it was fitted to unless said.")] = None,
    at_least: Annotated[
        float | None, typer.Option(help="Exit with 1 if R², or for classes the accuracy, is less than this.")
    ] = None,
    decimal: Decimal = ".",
    memory: Memory = None,
    as_json: AsJson = False,
    verbose: Verbose = 0,
) -> None:
    """Compare predictions with what is known.

    Examples:

        rowcol evaluate model.rowcol test.csv --target price

        rowcol evaluate model.rowcol test.csv --at-least 0.9 --json
    """
    with answering():
        from sklearn.base import is_classifier

        fitted, encoder, tables = opened(model, source, target, decimal, memory, judged=True)
        wanted = encoder.target if target is None else target
        if wanted is None:
            raise ValueError(f"{model.name} does not know its target: say --target")
        classes, came = is_classifier(fitted), list[tuple]()
        missing = encoder.missing if encoder.missing != "mean" else None
        count, aimless, left, notes = 0, 0, 0, list[str]()
        for table in tables:
            aimed, y = with_target(table, wanted, classes, missing, part=True)
            count, aimless = count + 1, aimless + len(table) - len(aimed)
            if len(aimed):
                made = encoder.encode(aimed)
                left, notes = left + len(aimed) - len(made.rows), made.notes
            if len(aimed) and len(made.rows):
                came.append((y[made.rows], *_guessed(fitted, made.X)))
        if aimless:
            note("note", NO_TARGET.format(aimless))
        left_out(count, left, notes)
        if not came:
            raise ValueError(f"{source.name} has no row with {'a target and ' * bool(aimless)}every value")
        truth, guess, *odds = (np.concatenate(one) for one in zip(*came, strict=True))
        found = _classified(fitted, truth, guess, *odds) if classes else _regressed(truth, guess)
        good = at_least is None or found["accuracy" if classes else "r2"] >= at_least
        if as_json:
            say_json({"model": type(fitted).__name__, "target": wanted, **found, "good": good})
        else:
            lines = [f"{type(fitted).__name__} on {found['rows']:,} rows of {source.name}, target {wanted}"]
            lines += [f"  {name:<15}{value:.6g}" for name, value in found.items() if name != "rows"]
            say("\n".join(lines))
        if not good:
            note("note", f"that is less than {at_least:g}")
    raise typer.Exit(0 if good else 1)


def _guessed(model: Any, X: Any) -> list[np.ndarray]:
    """Predictions, and probabilities where the model has them."""
    return [model.predict(X), *([model.predict_proba(X)] if hasattr(model, "predict_proba") else [])]


def _regressed(y: np.ndarray, found: np.ndarray) -> dict[str, float]:
    off = y - found
    spread = float(((y - y.mean()) ** 2).sum())
    return {
        "rows": len(y),
        "rmse": float(np.sqrt(np.mean(off**2))),
        "mae": float(np.abs(off).mean()),
        "bias": float(-off.mean()),
        "r2": 1.0 - float((off**2).sum()) / spread if spread > 0 else float("nan"),
    }


def _classified(model: Any, y: np.ndarray, found: np.ndarray, odds: np.ndarray | None = None) -> dict[str, float]:
    from sklearn.metrics import balanced_accuracy_score, log_loss

    known = model.classes_
    if known.dtype.kind != y.dtype.kind:  # numbers in one file, text in the other
        y = y.astype(str) if known.dtype.kind in "UO" else np.array([_whole(one) for one in y])
    out = {"rows": len(y), "accuracy": float(np.mean(found == y))}
    out["balanced"] = float(balanced_accuracy_score(y, found))
    if odds is not None and np.isin(y, known).all():
        out["log_loss"] = float(log_loss(y, odds, labels=known))
    return out


def _whole(value: Any) -> Any:
    try:
        return int(value)
    except ValueError:
        raise ValueError(f"the target has {str(value)[:40]!r}, and the model's classes are whole numbers") from None
