"""`rowcol info`."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from .. import __version__
from .common import AsJson, answering, app, say, say_json

EXTRAS = {
    "cli": ("typer", "rich"),
    "files": ("pandas", "pyarrow", "h5py"),
    "cluster": ("dask", "distributed"),
    "plot": ("matplotlib",),
    "report": ("vl-convert-python",),
}


@app.command()
def info(as_json: AsJson = False) -> None:
    """Say which versions, threads, caches and extras there are: what to put into a bug report.

    Example:

        rowcol info
    """
    with answering():
        from .. import engine
        from ..core.threads import count

        assert engine.__file__ is not None
        cache = os.environ.get("NUMBA_CACHE_DIR") or str(Path(engine.__file__).parent / "__pycache__")
        found = {
            "rowcol": __version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
            **{name: _version(name) for name in ("numpy", "scipy", "numba", "scikit-learn")},
            "threads": count(None),
            "cache": cache,
        }
        extras = {extra: {name: _version(name) for name in names} for extra, names in EXTRAS.items()}
        if as_json:
            say_json(found | {"extras": extras})
            return
        lines = [f"{name:<15}{value}" for name, value in found.items()]
        for extra, names in extras.items():
            held = ", ".join(f"{name} {one or 'missing'}" for name, one in names.items())
            lines.append(f"{'[' + extra + ']':<15}{held}")
        say("\n".join(lines))


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
