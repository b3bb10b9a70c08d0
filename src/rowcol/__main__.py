"""`rowcol ...` and `python -m rowcol ...`: the command line."""

import os
import signal
from typing import Any


def _stopped(*_: Any) -> None:
    os.write(2, b"error: stopped\n")
    os._exit(130)


def main() -> None:
    """Run it. A Ctrl-C before and after is no traceback; in between, commands see to it themselves."""
    signal.signal(signal.SIGINT, _stopped)  # no file is open yet, so nothing is left half done
    from .cli import main as run

    run()


if __name__ == "__main__":
    main()
