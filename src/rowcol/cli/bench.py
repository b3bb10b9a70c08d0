"""`rowcol bench`."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from .common import (
    AsJson,
    Columns,
    Decimal,
    Drop,
    Html,
    Interrupt,
    Missing,
    OneHot,
    Standardize,
    Target,
    Threads,
    answering,
    app,
    jsonable,
    note,
    one_line,
    reportable,
    say,
    say_json,
)
from .reading import system_from

STANDS_FOR = {"lstsq gelsd": "LAPACK, singular values", "lstsq gelsy": "LAPACK, QR", "LU": "LAPACK, LU"}
LESS = ("only", "no ridge", "its default")  # why a contender is not meant for a problem: not worth a line


@app.command()
def bench(
    source: Annotated[Path | None, typer.Argument(help="Your own table, or X. Without it: problems of rowcol.")] = None,
    right: Annotated[Path | None, typer.Argument(help="y, where X is by itself.")] = None,
    target: Target = None,
    alpha: Annotated[float, typer.Option(help="Ridge penalty, on your own data.")] = 0.0,
    only: Annotated[str | None, typer.Option(help="Some of rowcol's problems, by parts of their names.")] = None,
    rounds: Annotated[
        int, typer.Option(min=1, help="Turns each contender is given, if they are not long; the fastest counts.")
    ] = 5,
    threads: Threads = None,
    columns: Columns = None,
    drop: Drop = None,
    one_hot: OneHot = None,
    missing: Missing = None,
    decimal: Decimal = ".",
    standardize: Standardize = False,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the results here, as .json.")] = None,
    html: Html = None,
    as_json: AsJson = False,
) -> None:
    """Race rowcol against SciPy, LAPACK and scikit-learn on this machine: seconds to a verified error.

    Each contender runs at its loosest setting whose answer is within the error; they take turns, and the fastest turn
    counts, from X and y to the answer. Errors are measured against an answer that is known, or, on your own data,
    LAPACK's. Without a file it takes less than a minute or so, and on a slow machine more.

    Examples:

        rowcol bench

        rowcol bench data.csv --target y --alpha 0.1 --html race.html

        rowcol bench A.mtx b.mtx --threads 1 --rounds 9 -o race.json
    """
    with answering():
        from ..racing.contest import BUDGETS, compare
        from ..racing.machine import limited, machine
        from ..racing.problems import SMALL, own, small

        for path, kind in ((out, ".json"), (html, ".html")):  # before any work
            if path is not None and (path.suffix != kind or not path.parent.is_dir()):
                raise ValueError(f"{path} cannot be written: name a {kind} file in a folder that is there")
        reportable(html)
        if source is None:
            names = [name for name in SMALL if only is None or any(part.strip() in name for part in only.split(","))]
            if not names:
                raise ValueError(f"no problem is called {only}: there are {', '.join(SMALL)}")
            problems: list[Any] = [lambda name=name: small(name) for name in names]
            if not as_json:
                note("note", f"{len(names)} problems, some seconds each; Ctrl-C stops with those that are done")
        else:
            options: dict[str, Any] = {"columns": columns or None, "drop": drop or None, "one_hot": one_hot or None}
            options |= {"missing": missing, "standardize": standardize}
            X, y, _ = system_from(source, right, target, options, decimal)
            problems = [lambda: own(source.stem, X, y, alpha)]
        budget = BUDGETS["small"]._replace(turns=rounds, race=BUDGETS["small"].race * rounds / 5)
        runs, bar = [], _bar()
        with limited(threads) as many, bar, Interrupt() as interrupt:
            task = bar.add_task("")
            for make in problems:
                began, data = time.perf_counter(), make()
                bar.update(task, description=one_line(data.name))
                records = compare(data, budget=budget, watch=interrupt)
                if not records:
                    break
                runs.append({"threads": many, "facts": data.facts, "records": records})
                runs[-1]["seconds"] = time.perf_counter() - began
                if interrupt.asked:
                    break
            whole = {"machine": machine(), "size": "small", "rounds": rounds, "runs": runs}
        if not runs:
            raise ValueError("it was stopped before the first problem was done")
        if out is not None or html is not None:
            _write(whole, out, html)
        if as_json:
            say_json(whole)
        else:
            say(_shown(whole, out, html))
    raise typer.Exit(1 if interrupt.asked else 0)


def _bar() -> Progress:
    told = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    return Progress(*columns, console=told, transient=True, disable=not told.is_terminal)


def _write(whole: dict[str, Any], out: Path | None, html: Path | None) -> None:
    from ..files.writing import written
    from ..show.reporting import report

    if out is not None:
        with written(out) as file:
            file.write(json.dumps(jsonable(whole), indent=1, ensure_ascii=False, allow_nan=False).encode() + b"\n")
    if html is not None:
        report(whole, html)


def _shown(whole: dict[str, Any], out: Path | None, html: Path | None) -> str:
    from ..show.benching import ranked, shape, tally

    facts = ", ".join(f"{name} {value}" for name, value in whole["machine"].items())
    threads = whole["runs"][0]["threads"]
    lines = [f"{threads} thread{'s' * (threads > 1)}; {facts}", ""]
    for run in whole["runs"]:
        lines.append(f"{run['facts']['dataset']}: {shape(run['facts'])}")
        for target in dict.fromkeys(record["target"] for record in run["records"]):
            timed, rest = ranked(run, target)
            ours = next((r["seconds"] for r in timed if r["contender"] == "rowcol"), None)
            lines.append(f"  error ≤ {target:g}{'':<14}seconds  times rowcol  error found")
            for r in timed:
                times = "" if ours is None else f"{r['seconds'] / ours:.3g}"
                how = r.get("route") or STANDS_FOR.get(r["contender"], "")
                row = f"    {r['contender']:<20}{r['seconds']:>9.3g}  {times:>12}  {r['error']:>11.1e}  {how}"
                lines.append(row.rstrip())
            lines += [f"    {r['contender']:<20}{r['note']}" for r in rest if not r["note"].endswith(LESS)]
        lines.append("")
    lines += tally(whole)
    lines += [f"Written as {path}" for path in (out, html) if path is not None]
    return "\n".join(lines)
