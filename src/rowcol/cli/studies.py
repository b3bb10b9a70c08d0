"""`rowcol study` and `rowcol report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from .common import Verbose, answering, app, one_line, reportable, say, say_json


@app.command()
def study(
    matrix: Annotated[
        Path | None, typer.Option(help="Your own X: .mtx, .npy, .npz, .csv, .tsv or .txt. Without it: the paper's.")
    ] = None,
    target: Annotated[Path | None, typer.Option(help="Your own y. Without it, one that fits is made.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="12 seeds instead of 100: less than half a minute.")] = False,
    seeds: Annotated[int | None, typer.Option(help="How many seeds each curve is taken over.")] = None,
    parts: Annotated[str | None, typer.Option(help="Some chapters only, such as `consistent,kernel`.")] = None,
    random_state: Annotated[int, typer.Option(help="Of the systems and of all picks.")] = 0,
    out: Annotated[Path, typer.Option(help="Where to write the report: .html, or .png or .svg for pictures.")] = Path(
        "study.html"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON; write no report.")] = False,
    verbose: Verbose = 0,
) -> None:
    """Run the paper: every setting over many seeds, each measured curve beside its bound.

    Examples:

        rowcol study --quick

        rowcol study --parts ridge,kernel --seeds 200 --out ridge.html

        rowcol study --matrix A.mtx --target b.mtx

    The exit code is 0 if every claim held, 1 if one did not, 2 if something could not be read.
    """
    from ..files.matrices import matrix_from, vector_from
    from ..show.reporting import report
    from ..studies.studying import study as run

    told = Console(stderr=True)
    with answering():
        if not as_json:
            reportable(out)  # before minutes are spent
        if target is not None and matrix is None:
            raise ValueError("--target needs --matrix")
        X = None if matrix is None else matrix_from(matrix)
        y = None if target is None else vector_from(target)
        chosen = None if parts is None else [part.strip() for part in parts.split(",")]
        name = "X" if matrix is None else matrix.name.encode("utf-8", "replace").decode("utf-8")
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        with Progress(*columns, console=told, transient=True, disable=not told.is_terminal) as bar:
            task = bar.add_task("study", total=1)
            found = run(
                X,
                y,
                quick=quick,
                seeds=seeds,
                parts=chosen,
                random_state=random_state,
                name=name,
                progress=lambda done, all_, title: bar.update(
                    task, completed=done, total=all_, description=escape(one_line(title))
                ),
            )
        if as_json:
            say_json(found.to_dict())
        else:
            _show(found)
            written = report(found, out)
            say(f"Look at {one_line(written)}")
    raise typer.Exit(0 if found.ok else 1)


def _show(found: Any) -> None:
    """The claims, chapter by chapter."""
    table = Table(title=_plain(found.title), title_justify="left", show_lines=False, expand=False)
    for head in ("", "claim", "predicted", "measured"):
        table.add_column(head, overflow="fold")
    for part in found.parts:
        table.add_section()
        table.add_row("", _plain(part.title), "", "", style="bold")
        for claim in part.claims:
            mark = "✓" if claim.holds else "✗"
            row = [_plain(cell) for cell in (claim.says, claim.predicted, claim.measured)]
            table.add_row(mark, *row, style=None if claim.holds else "red")
    console = Console()
    console.print(table)
    held = sum(claim.holds for claim in found.claims)
    console.print(f"{held} of {len(found.claims)} claims held, over {found.seeds} seeds, in {found.seconds:.0f} s.")


def _plain(text: str) -> Any:
    from rich.text import Text

    return Text(one_line(text))  # never markup: names come from files


@app.command()
def report(
    source: Annotated[Path, typer.Argument(help="What `make bench` or another benchmark wrote, as .json.")],
    out: Annotated[Path, typer.Option(help="Where to write it.")] = Path("report.html"),
) -> None:
    """Write the report of a benchmark as one HTML file that opens offline; `solve`, `fit` have `--html` for theirs.

    Example:

        rowcol report bench/bench.json --out bench.html
    """
    from ..show.reporting import report as write

    with answering():
        if source.suffix != ".json":
            raise ValueError(f"{source.name} is no benchmark's .json; a solve or a fit is reported by its own --html")
        written = write(source, out)
    say(f"Look at {one_line(written)}")
