"""The command `rowcol`, which `python -m rowcol` is too: it says what is missing where its extra is."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any


def _stopped(*_: Any) -> None:
    os.write(2, b"error: stopped\n")
    os._exit(130)


def main() -> None:
    """Run it; without typer and rich, one line and exit code 2. A Ctrl-C before and after is no traceback."""
    signal.signal(signal.SIGINT, _stopped)  # no file is open yet; in between, commands see to it themselves
    try:
        from .cli import main as run
    except ImportError as missing:
        if "rowcol[cli]" not in str(missing):
            raise  # something else is broken
        sys.stderr.write(f"error: {missing}\n")
        raise SystemExit(2) from None
    run()


if __name__ == "__main__":
    main()
