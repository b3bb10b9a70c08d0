"""What the examples of the gallery share: colours, a place for pictures, and checks that speak up.

Every one of them is a script: `python examples/NAME.py [--small] [--out FOLDER]`. Run them all: make examples
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

PICTURES = Path(__file__).parent.parent / "docs" / "pictures"
BLUE, ORANGE, GREEN, RED, GREY = "#0072b2", "#d55e00", "#009e73", "#882255", "#7f7f7f"  # told apart by all eyes


def plots() -> Any:
    """Matplotlib, which draws into files."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False})
    return plt


def save(figure: Any, path: Path, dpi: int = 100) -> None:
    """Write a picture, the same bytes for the same picture, and say where."""
    figure.savefig(path, dpi=dpi, metadata={"Software": None})
    plots().close(figure)
    print(f"picture: {path}")


def agree(what: str, distance: float, limit: float) -> None:
    """Say how far from the truth we are, and stop if it is too far."""
    if not distance <= limit:  # also if it is not a number
        raise AssertionError(f"{what}: {distance:.1e}, which is above {limit:.1e}")
    print(f"check: {what}: {distance:.1e} (at most {limit:.1e})")


def command(run: Callable[[Path, bool], object], about: str | None) -> None:
    """Run an example as the command line says."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="a small size, in a second or two")
    parser.add_argument("--out", type=Path, default=PICTURES, help="where pictures go")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    run(given.out, given.small)
