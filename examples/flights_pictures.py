"""The pictures of docs/kernel-ridge-at-scale.md, from what examples/flights.py measured.

Run it: make flights, or python examples/flights_pictures.py FOLDER to draw again what FOLDER/kernel-scale.json holds
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from gallery import BLUE, GREEN, GREY, ORANGE, RED, plots


def learning(found: list[dict[str, Any]], path: Path) -> None:
    """Error on flights not seen, against rows learned from."""
    plt = plots()
    figure, axis = plt.subplots(figsize=(8.2, 4.2), layout="constrained")
    rows = [one["rows"] for one in found]
    looks = {
        "trees": ("HistGradientBoosting", ORANGE, "s"),
        "centers": (f"kernel ridge on {found[0]['asked']['centers']:,} centres", GREEN, "^"),
        "exact": ("kernel ridge, exact", BLUE, "o"),
    }
    for name, (label, colour, marker) in looks.items():
        axis.plot(rows, [one[name] for one in found], marker=marker, color=colour, linewidth=2, label=label)
    axis.set(xscale="log", xlabel="flights learned from", ylabel="error on flights not seen (RMSE, minutes)")
    axis.set_xticks(rows, [f"{n:,}" for n in rows])
    axis.minorticks_off()
    axis.grid(alpha=0.3)
    axis.legend(frameon=False)
    figure.savefig(path, dpi=110, metadata={"Software": None})


def certificates(found: list[dict[str, Any]], path: Path) -> None:
    """What exact looks found on the way, against passes over the kernel matrix."""
    plt = plots()
    figure, axis = plt.subplots(figsize=(8.2, 3.8), layout="constrained")
    tol = found[0]["asked"]["tol"]
    shown = [one for one in found if one["method"] == "pcg"]
    for one, colour in zip(shown, (GREY, GREEN, ORANGE, BLUE, RED)):
        axis.semilogy(*np.array([(0, 1), *one["rounds"]]).T, "--", color=colour, label=f"{one['rows']:,} flights")
        axis.semilogy(*np.array(one["looks"]).T, "o", color=colour, markersize=8)
    axis.axhline(tol, color="black", linewidth=1, linestyle=":")
    axis.annotate(f"tol = {tol:g}", (0, tol), (0, tol * 1.1), fontsize=10)
    axis.set(xlabel="passes over the kernel matrix, which is never formed", ylabel="certificate, ‖r‖ / ‖y‖")
    axis.grid(alpha=0.3)
    axis.legend(frameon=False)
    figure.savefig(path, dpi=110, metadata={"Software": None})


def memory(found: list[dict[str, Any]], path: Path) -> None:
    """Memory of the fit, as measured and as planned, against what the matrix would take."""
    plt = plots()
    figure, axis = plt.subplots(figsize=(8.2, 4.2), layout="constrained")
    rows = np.array([one["rows"] for one in found])
    axis.loglog(rows, 8 * rows.astype(float) ** 2 / 1e9, "--", color=GREY, label="an n x n matrix, not formed")
    axis.loglog(rows, [one["process"] / 1e9 for one in found], "s-", color=ORANGE, label="the process, peak")
    axis.loglog(rows, [one["planned"] / 1e9 for one in found], "^-", color=GREEN, label="the fit, as planned")
    axis.loglog(rows, [one["fit"] / 1e9 for one in found], "o-", color=BLUE, label="the fit, peak")
    for size, colour, place in ((8 * float(rows[-1]) ** 2, GREY, 1.3), (found[-1]["fit"], BLUE, 0.25)):
        axis.text(rows[-1], place * size / 1e9, f"{size / 1e9:.3g} GB", color=colour, ha="right")
    axis.set(xlabel="flights", ylabel="memory", ylim=(0.01, 2e-8 * float(rows[-1]) ** 2))
    axis.set_xticks(rows, [f"{n:,}" for n in rows])
    ticks = [tick for tick in (0.01, 0.1, 1, 10, 100, 1000) if tick <= axis.get_ylim()[1]]
    axis.set_yticks(ticks, [f"{1000 * tick:g} MB" if tick < 1 else f"{tick:,} GB" for tick in ticks])
    axis.minorticks_off()
    axis.grid(alpha=0.3)
    axis.legend(frameon=False)
    figure.savefig(path, dpi=110, metadata={"Software": None})


def draw(folder: Path) -> None:
    """All of them, into the folder of the figures."""
    found = json.loads((folder / "kernel-scale.json").read_text())
    for name, picture in (("learning", learning), ("certificate", certificates), ("memory", memory)):
        path = folder / f"kernel-scale-{name}.png"
        picture(found, path)
        print(f"picture: {path}")


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "docs" / "pictures")
