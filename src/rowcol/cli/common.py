"""What commands share: the app, options, one line for what went wrong, and output that is whole or not there."""

from __future__ import annotations

import csv
import difflib
import io
import json
import logging
import math
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from typer.core import TyperGroup

from .. import __version__


class Commands(TyperGroup):
    """Wrong usage is one line on stderr and exit code 2, as everything else that is wrong."""

    def main(self, *args: Any, standalone_mode: bool = True, **more: Any) -> Any:
        """Run a command."""
        more["standalone_mode"] = False
        try:
            code = super().main(*args, **more)
        except Exception as wrong:
            if not standalone_mode or not hasattr(wrong, "format_message"):
                raise
            code = 2
            if "NoArgs" not in type(wrong).__name__:  # that is the help, which has been shown
                note("error", _usage(wrong))
        if not standalone_mode:
            return code
        sys.exit(code if isinstance(code, int) else 0)


def _usage(wrong: Any) -> str:
    """What was wrong in how a command was called, and where to read how it is."""
    ctx = getattr(wrong, "ctx", None)
    told = one_line(wrong.format_message()).replace("Value error, ", "").rstrip(".")
    told = told[:1].lower() + told[1:]
    given = re.search(r"'([^']*)' is not one of (.*)", told)
    if given:
        near = difflib.get_close_matches(given[1], re.findall(r"'([^']*)'", given[2]), 1)
        told += f"; did you mean {near[0]!r}?" if near else ""
    command = "rowcol" if ctx is None else " ".join(["rowcol", *ctx.command_path.split()[1:]]).replace("-m rowcol", "")
    return f"{told} (see {' '.join(command.split())} --help)"


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="Solve X β = y by rows or by columns, and see how good the answer is.",
)

# --- options ---------------------------------------------------------------------------------------------------------

Target = Annotated[str | None, typer.Option(help="The column to explain, by name.")]
Columns = Annotated[list[str] | None, typer.Option(help="Columns to use, such as `a,b`; all unless said.")]
Drop = Annotated[list[str] | None, typer.Option(help="Columns to leave out, such as `id,date`.")]
OneHot = Annotated[
    list[str] | None, typer.Option(help="Columns of text to give a feature for each text; `all`: every one.")
]
TargetEncode = Annotated[
    list[str] | None,
    typer.Option(help="Columns of text to replace by the target's mean of such rows; `all`: every one."),
]
Missing = Annotated[
    str | None, typer.Option(help="Missing values: `mean` fills in, `drop` leaves out the row. An error unless said.")
]
Decimal = Annotated[str, typer.Option(help="Of numbers in .csv and .tsv: `,` where they are such as 1,5.")]
Standardize = Annotated[bool, typer.Option("--standardize", help="Give every feature mean 0 and deviation 1.")]
Tol = Annotated[float | None, typer.Option(help="The tolerance that the certificate is to meet.")]
MaxSeconds = Annotated[float | None, typer.Option(help="Stop after so long, with the best answer so far.")]
Memory = Annotated[
    str | None, typer.Option(help="How much to use beside X and y, such as `2GB`; a larger X is read in chunks.")
]
Threads = Annotated[int | None, typer.Option(help="Threads; the environment decides unless said.")]
RandomState = Annotated[int | None, typer.Option(help="A seed: the same seed, the same bits.")]
Checkpoint = Annotated[
    Path | None, typer.Option(help="Write down here what was done so far; if the file is there, go on from it.")
]
Html = Annotated[Path | None, typer.Option(help="Write a report here, as a page (.html) that opens offline.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]


def _version(asked: bool) -> None:
    if asked:
        say(__version__)
        raise typer.Exit(0)


@app.callback()
def _app(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which.")] = False,
) -> None:
    pass


class _Lines(logging.Handler):
    """The log of rowcol as notes on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        note(record.levelname.lower(), record.getMessage())


def _log(context: typer.Context, often: int) -> int:
    """Show the log while the command runs."""
    root = logging.getLogger("rowcol")
    if often and not any(isinstance(one, _Lines) for one in root.handlers):
        handler, before = _Lines(), root.level
        root.addHandler(handler)
        root.setLevel(logging.INFO if often == 1 else logging.DEBUG)
        context.call_on_close(lambda: root.removeHandler(handler))
        context.call_on_close(lambda: root.setLevel(before))
    return often


Verbose = Annotated[
    int,
    typer.Option(
        "--verbose",
        "-v",
        count=True,
        callback=_log,
        show_default=False,
        metavar="",
        help="Say on stderr what is decided; `-vv`: also every look.",
    ),
]


def listed(given: list[str] | None) -> list[str] | None:
    """Names from options that may be given several times and may each hold several, by commas."""
    return None if given is None else [name.strip() for row in csv.reader(given) for name in row if name.strip()]


# --- what is said ----------------------------------------------------------------------------------------------------


def one_line(text: Any) -> str:
    """A message without line ends and control characters, which names in files may have."""
    plain = "".join(one if one.isprintable() else " " for one in str(text))
    return " ".join(plain.split())


def shortened(name: str, most: int = 60) -> str:
    """A name from a file as a person can read it: on one line, and not too long."""
    plain = one_line(name)
    return plain if len(plain) <= most else plain[: most - 3] + "..."


def note(kind: str, text: Any) -> None:
    """A line on stderr."""
    style = {"error": "red", "warning": "yellow"}.get(kind)
    Console(stderr=True).print(f"{kind}: {one_line(text)}", style=style, markup=False, highlight=False, soft_wrap=True)


def say(text: str) -> None:
    """Text on stdout, at once, so that a pipe that is closed is noticed here; nothing in it commands a terminal."""
    if not text.replace("\n", "").isprintable():
        text = "".join(one if one.isprintable() or one in "\n\t" else " " for one in text)
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def say_json(value: Any) -> None:
    """JSON on stdout: no NaN, which JSON has not."""
    told = json.dumps(jsonable(value), ensure_ascii=False, allow_nan=False)
    say(told if told.isprintable() else json.dumps(jsonable(value), allow_nan=False))


def jsonable(value: Any) -> Any:
    """A value as JSON can say it; numbers that are not finite are null."""
    if isinstance(value, dict):
        return {str(key): jsonable(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(one) for one in value]
    if isinstance(value, np.ndarray):
        return jsonable(value.tolist())
    if isinstance(value, np.generic):
        return jsonable(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


STOPPED = 130  # exit code, as shells have it
# what bad input can make libraries say
WRONG = (ValueError, TypeError, OSError, ImportError, MemoryError, ArithmeticError, LookupError, RecursionError)


@contextmanager
def answering() -> Iterator[None]:
    """Bad input is one line and exit code 2; a pipe that is closed is no one's fault; warnings are lines too."""
    from ..methods.result import CheckpointWarning, ConvergenceWarning, StartWarning

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        note("warning", message)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of libraries are for programmers
        for kind in (CheckpointWarning, ConvergenceWarning, StartWarning):
            warnings.simplefilter("always", kind)
        warnings.showwarning = show
        try:
            with _noticing() as stopped:
                yield
        except BrokenPipeError:
            _forget_stdout()
            raise typer.Exit(0) from None
        except (KeyboardInterrupt, *WRONG) as wrong:
            if stopped or isinstance(wrong, KeyboardInterrupt):
                note("error", "stopped")
                raise typer.Exit(STOPPED) from None
            note("error", str(wrong) or type(wrong).__name__)
            if isinstance(wrong, OSError):
                _forget_stdout()
            raise typer.Exit(2) from None


@contextmanager
def _noticing() -> Iterator[list[int]]:
    """Was there a Ctrl-C? One that comes while a library is being imported may turn into an error of another kind."""
    seen: list[int] = []

    def told(number: int, _: Any) -> None:
        seen.append(number)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield seen
        return
    before = signal.signal(signal.SIGINT, told)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, before)


def _forget_stdout() -> None:
    """Nothing more can be written there, so that Python does not try when it ends."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except (OSError, ValueError, io.UnsupportedOperation):  # it is no file, as in tests
            return


class Interrupt:
    """A callback that stops a solve, with the best so far, after Ctrl-C. The second one interrupts as usual."""

    def __init__(self) -> None:
        self.asked = False

    def __enter__(self) -> Interrupt:
        self._mine = threading.current_thread() is threading.main_thread()
        if self._mine:
            self._before = signal.signal(signal.SIGINT, self._told)
        return self

    def _told(self, *_: Any) -> None:
        if self.asked:
            signal.signal(signal.SIGINT, self._before)
            raise KeyboardInterrupt
        self.asked = True
        note("note", "stopping, with the best so far; Ctrl-C again stops at once")

    def __call__(self, progress: Any) -> bool:
        """Stop?"""
        return self.asked

    def __exit__(self, *_: Any) -> None:
        if self._mine:
            signal.signal(signal.SIGINT, self._before)


def reportable(path: Path | None) -> None:
    """Can a report be written there? Asked before any work."""
    from ..show.page import converter
    from ..show.reporting import target_of

    if path is not None:
        target_of(path)
        converter()


def write_rows(path: Path | None, head: list[str], rows: Iterator[list[Any]]) -> None:
    """Rows as .csv or .tsv, whole or not at all; on stdout without a path, or if it is `-`.

    A file or a pipe has texts as they are; a terminal is not told to do what they say.
    """
    from ..files.writing import written

    if path is None or str(path) == "-":
        shown: Any = chain([head], rows)
        if sys.stdout.isatty():
            shown = ([one_line(one) if isinstance(one, str) else one for one in row] for row in shown)
        csv.writer(sys.stdout, lineterminator="\n").writerows(shown)
        sys.stdout.flush()
        return
    separator = "\t" if path.suffix == ".tsv" else ","
    with written(path) as file:
        text = io.TextIOWrapper(file, "utf-8", newline="")
        csv.writer(text, delimiter=separator, lineterminator="\n").writerows(chain([head], rows))
        text.flush()
        text.detach()  # the file is closed by the one who opened it


def main() -> None:
    """Run it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # where a terminal has no β, a question mark has to do
            stream.reconfigure(errors="replace")
    app(prog_name="rowcol")
