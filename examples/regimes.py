"""The paper's regimes, measured: a table on the terminal and two convergence curves in docs/pictures.

Run it: make paper
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np

import rowcol
from rowcol import zoo

SYSTEMS = {
    "300 x 40, consistent": zoo.tall_consistent(),
    "300 x 40, inconsistent": zoo.tall_inconsistent(),
    "300 x 40, rank 25, inconsistent": zoo.rank_deficient_inconsistent(300, 40, 25),
    "40 x 300, consistent": zoo.wide(),
    "60 x 80, rank 30, inconsistent": zoo.rank_deficient_inconsistent(60, 80, 30),
}


def error(x: np.ndarray, answer: np.ndarray) -> float:
    return float(np.linalg.norm(x - answer) / np.linalg.norm(answer))


def table() -> str:
    """Relative error to the minimum-norm least-squares solution, and how each solve ended."""
    lines = [f"{'system':<34}{'rk (rows)':<24}{'rcd (columns)':<24}{'rek (both)':<24}"]
    for name, case in SYSTEMS.items():
        cells = []
        for method in ("rk", "rcd", "rek"):
            result = rowcol.solve(case.X, case.y, method=method, tol=1e-12, random_state=0)
            cells.append(f"{error(result.x, case.answer):.0e} {result.status.name.lower()}")
        lines.append(f"{name:<34}" + "".join(f"{cell:<24}" for cell in cells))
    return "\n".join(line.rstrip() for line in lines)


def curve(case: zoo.Case, method: str, passes: int) -> tuple[list[float], list[float]]:
    """Relative error after every pass."""
    seen: tuple[list[float], list[float]] = ([0.0], [1.0])

    def watch(progress: rowcol.Progress) -> bool:
        seen[0].append(progress.passes)
        seen[1].append(max(error(progress.x, case.answer), 1e-16))
        return progress.passes >= passes

    # the smallest tolerance there is, so that the curves run on to rounding level
    rowcol.solve(case.X, case.y, method=method, tol=1e-300, random_state=0, callback=watch)
    return seen


def picture(path: Path) -> None:
    """Rows and columns on an inconsistent and on an underdetermined system: opposite fates."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    panels = (
        ("inconsistent, 300 x 40 (Section 4)", zoo.tall_inconsistent()),
        ("many solutions, 40 x 300 (Section 5)", zoo.wide()),
    )
    for axis, (title, case) in zip(axes, panels, strict=True):
        for method, label, colour in (
            ("rk", "rows (rk)", "#c1440e"),
            ("rcd", "columns (rcd)", "#1f5a99"),
            ("rek", "both (rek)", "#5b8c3a"),
        ):
            passes, errors = curve(case, method, 80)
            axis.semilogy(passes, errors, label=label, color=colour, linewidth=1.8)
            if passes[-1] < 79:
                axis.semilogy(passes[-1], errors[-1], "o", color=colour)
            if passes[-1] < 79 and errors[-1] > 1e-3 and method == "rk":
                axis.annotate(
                    "stops by itself,\nwith advice", (passes[-1] + 2, errors[-1] * 1.5), color=colour, fontsize=9
                )
        axis.set(title=title, xlabel="passes over X", xlim=(0, 80))
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("relative error in β")
    axes[1].legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    warnings.simplefilter("ignore", rowcol.ConvergenceWarning)
    print(table())
    target = (
        Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "docs" / "pictures" / "regimes.png"
    )
    picture(target)
    print(f"picture: {target}")
