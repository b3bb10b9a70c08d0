"""The command `rowcol`, which `python -m rowcol` is too: it says what is missing where its extra is."""

from __future__ import annotations

import sys


def main() -> None:
    """Run it; without typer and rich, one line and exit code 2, as for all that cannot be done."""
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
