"""`rowcol solve` and `rowcol plan`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from .common import (
    AsJson,
    Checkpoint,
    Columns,
    Decimal,
    Drop,
    Html,
    Interrupt,
    MaxSeconds,
    Memory,
    Missing,
    OneHot,
    RandomState,
    Standardize,
    Target,
    Threads,
    Tol,
    Verbose,
    answering,
    app,
    reportable,
    say,
    say_json,
    shortened,
    write_rows,
)
from .reading import system_from

Source = Annotated[Path, typer.Argument(help="A table, whose target --target names; or X, by itself.")]
Right = Annotated[Path | None, typer.Argument(help="y, where X is by itself.")]
Alpha = Annotated[float, typer.Option(help="Ridge penalty.")]
Method = Annotated[str, typer.Option(help="`auto`, `rk`, `rcd`, `rek`, `cg`, `sgs-cg`, `sketch`, `direct`, ...")]
Intercept = Annotated[bool, typer.Option("--intercept", help="Add an intercept that is not penalised.")]
SHOWN = 20  # coefficients


@app.command()
def solve(
    source: Source,
    right: Right = None,
    target: Target = None,
    alpha: Alpha = 0.0,
    intercept: Intercept = False,
    method: Method = "auto",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write x here: .csv, .tsv or .npy.")] = None,
    html: Html = None,
    columns: Columns = None,
    drop: Drop = None,
    one_hot: OneHot = None,
    missing: Missing = None,
    decimal: Decimal = ".",
    standardize: Standardize = False,
    tol: Tol = 1e-6,
    max_passes: Annotated[float | None, typer.Option(help="Passes over X before giving up.")] = None,
    max_seconds: MaxSeconds = None,
    memory: Memory = None,
    threads: Threads = None,
    random_state: RandomState = None,
    checkpoint: Checkpoint = None,
    as_json: AsJson = False,
    verbose: Verbose = 0,
) -> None:
    """Solve X β = y, and say how good the answer is.

    Examples:

        rowcol solve data.csv --target y

        rowcol solve A.mtx b.mtx --alpha 0.1 -o x.npy --html report.html

        rowcol solve homes.parquet --target price --intercept --one-hot town --json

    Ctrl-C stops with the best answer so far; twice, at once. With --checkpoint the same command goes on from there. The
    exit code is 0 if the tolerance was met, 1 if it was not, 2 if something could not be read or written.
    """
    with answering():
        if out is not None and out.suffix not in (".csv", ".tsv", ".npy") and str(out) != "-":
            raise ValueError(f"{out.name}: x is written as .csv, .tsv or .npy")
        reportable(html)
        options = _options(columns, drop, one_hot, missing, standardize)
        X, y, names = system_from(source, right, target, options, decimal, memory, method)
        from ..solving import solve as run

        with Interrupt() as interrupt:
            result = run(
                X,
                y,
                alpha=alpha,
                fit_intercept=intercept,
                method=method,
                tol=1e-6 if tol is None else tol,
                max_passes=max_passes,
                max_seconds=max_seconds,
                memory=memory,
                n_jobs=threads,
                random_state=random_state,
                callback=interrupt,
                checkpoint=checkpoint,
            )
        names = [f"x{j}" for j in range(len(result.x))] if names is None else list(names)
        if out is not None:
            _write(out, names, result)
        if html is not None:
            from ..show.reporting import report
            from ..show.telling import told as chapters

            report(chapters(result, X, y, names=names), html)
        if as_json:
            say_json(told(result) | {"names": names, "x": result.x})
        elif out is None or str(out) != "-":
            say(_shown(result, names, out, html))
    raise typer.Exit(0 if result.success else 1)


def _options(columns: Any, drop: Any, one_hot: Any, missing: str | None, standardize: bool) -> dict[str, Any]:
    return {
        "columns": columns or None,
        "drop": drop or None,
        "one_hot": one_hot or None,
        "missing": missing,
        "standardize": standardize,
    }


def told(result: Any) -> dict[str, Any]:
    """A Result as plain data."""
    return {
        "status": result.status.name,
        "success": result.success,
        "message": result.message,
        "solution": result.solution,
        "method": result.method,
        "passes": result.passes,
        "steps": result.steps,
        "seconds": result.seconds,
        "tol": result.tol,
        "certificate": result.certificate._asdict(),
        "intercept": result.intercept,
    }


def _write(out: Path, names: list[str], result: Any) -> None:
    from ..files.writing import written

    if out.suffix == ".npy":
        with written(out) as file:
            np.save(file, result.x, allow_pickle=False)
        return
    rows = [[name, repr(one.item())] for name, one in zip(names, result.x, strict=True)]
    if result.intercept is not None:
        rows.insert(0, ["(intercept)", repr(float(result.intercept))])
    write_rows(out, ["name", "value"], iter(rows))


def _shown(result: Any, names: list[str], out: Path | None, html: Path | None) -> str:
    lines = [str(result)]
    if result.intercept is not None:
        lines.append(f"  {'intercept':<15}{result.intercept:.8g}")
    for name, value in zip(names[:SHOWN], result.x[:SHOWN]):
        lines.append(f"  {shortened(name):<15}{value:.8g}")
    if len(names) > SHOWN:
        lines.append(f"  and {len(names) - SHOWN:,} more" + ("" if out else ", which -o x.csv would write"))
    lines += [f"Look at {html}"] if html is not None else []
    return "\n".join(lines)


@app.command()
def plan(
    source: Source,
    right: Right = None,
    target: Target = None,
    alpha: Alpha = 0.0,
    intercept: Intercept = False,
    method: Method = "auto",
    columns: Columns = None,
    drop: Drop = None,
    one_hot: OneHot = None,
    missing: Missing = None,
    decimal: Decimal = ".",
    standardize: Standardize = False,
    tol: Tol = 1e-6,
    memory: Memory = None,
    threads: Threads = None,
    random_state: RandomState = None,
    as_json: AsJson = False,
    verbose: Verbose = 0,
) -> None:
    """Say what `solve` would do, why, and what it would take, without doing it.

    Examples:

        rowcol plan data.csv --target y

        rowcol plan A.mtx b.mtx --alpha 1 --memory 200MB
    """
    with answering():
        options = _options(columns, drop, one_hot, missing, standardize)
        X, y, _ = system_from(source, right, target, options, decimal, memory, method)
        from ..solving import plan as ask

        found = ask(
            X,
            y,
            alpha=alpha,
            fit_intercept=intercept,
            tol=1e-6 if tol is None else tol,
            memory=memory,
            method=method,
            n_jobs=threads,
            random_state=random_state,
        )
        if as_json:
            say_json(asdict(found))
        else:
            say(str(found))
