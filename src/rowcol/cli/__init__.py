"""The command line: `rowcol solve`, `plan`, `fit`, `predict`, `evaluate`, `info`, `bench`, `study` and `report`."""

try:
    import rich
    import typer
except ImportError as missing:  # pragma: no cover - said in a subprocess
    raise ImportError("the command line needs typer and rich: pip install 'rowcol[cli]'") from missing

from . import solve, fit, predict, evaluate, bench, studies, info  # isort: skip  # the order of --help
from .common import app, main

__all__ = ["app", "bench", "evaluate", "fit", "info", "main", "predict", "rich", "solve", "studies", "typer"]
