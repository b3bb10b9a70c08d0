"""CT reconstruction: an image from noisy projections, with and without saying that no density is negative.

A scanner sends rays through a head; a row of X has the length of one ray in every pixel, y is what each ray lost. There
are fewer rays than pixels, and y is noisy, so a penalty is needed. By rows (the algebraic reconstruction technique of
CT is Kaczmarz' method) nothing keeps a pixel from going below zero. By columns a step stops at its bound.

Run it: python examples/tomography.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import rowcol
from gallery import BLUE, GREY, ORANGE, agree, command, plots, save
from rowcol import zoo

NOISE = 0.5  # a ray loses up to 17
ALPHA = 3.0


def distance(x: np.ndarray, truth: np.ndarray) -> float:
    return float(np.linalg.norm(x - truth) / np.linalg.norm(truth))


def by_lapack(X: np.ndarray, y: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Ridge on some of the pixels, zero elsewhere."""
    F = X[:, free]
    x = np.zeros(X.shape[1])
    x[free] = np.linalg.solve(F.T @ F + ALPHA * np.eye(free.sum()), F.T @ y)
    return x


def run(folder: Path, small: bool = False) -> dict[str, float]:
    pixels, angles = (20, 10) if small else (64, 32)
    case = zoo.tomography(pixels, angles)  # X is sparse, in CSR
    y = case.y + NOISE * np.random.default_rng(0).standard_normal(case.y.size)
    options = {"alpha": ALPHA, "tol": 1e-8, "random_state": 0, "max_passes": 5000}

    by_rows = rowcol.solve(case.X, y, method="rk", sampler="shuffled", **options)
    held = rowcol.solve(case.X, y, bounds=(0, np.inf), **options)
    print(f"{case.X.shape[0]:,} rays, {pixels} x {pixels} pixels\n\nridge, by rows:\n{by_rows}\n")
    print(f"not negative, by columns ({held.at_bound:,} pixels end at zero):\n{held}\n")

    dense = case.X.toarray()
    exact = by_lapack(dense, y, np.ones(pixels**2, bool))
    agree("ridge, distance from LAPACK, over its bound", np.linalg.norm(by_rows.x - exact) / by_rows.error_bound, 1)
    # Optimal within bounds: LAPACK's answer on the pixels that are not at zero is not negative there, and every other
    # pixel would go below zero if it could. This proves that it is the only optimum.
    exact = by_lapack(dense, y, held.x > 0)
    slope = dense.T @ (y - dense @ exact) - ALPHA * exact
    agree("not negative, LAPACK's least pixel, below zero", -exact.min(), 0)
    agree("not negative, steepest way up from zero", slope[held.x == 0].max(), 1e-9)
    agree("not negative, distance from LAPACK, over its bound", np.linalg.norm(held.x - exact) / held.error_bound, 1)

    off = {"ridge": distance(by_rows.x, case.answer), "held": distance(held.x, case.answer)}
    print(f"distance from the phantom: ridge {off['ridge']:.1%}, not negative {off['held']:.1%}")
    picture(folder / "gallery-tomography.png", case.answer, by_rows.x, held.x, off)
    return off


def picture(path: Path, truth: np.ndarray, ridge: np.ndarray, held: np.ndarray, off: dict[str, float]) -> None:
    plt = plots()
    side = int(np.sqrt(truth.size))
    figure, axes = plt.subplots(2, 3, figsize=(9.6, 6.4), layout="constrained")
    titles = ("phantom", f"ridge: {off['ridge']:.0%} off", f"not negative: {off['held']:.0%} off")
    for axis, x, title in zip(axes[0], (truth, ridge, held), titles):
        shown = axis.imshow(x.reshape(side, side), cmap="gray", vmin=-0.2, vmax=1)
        axis.set_title(title, fontsize=11)
    figure.colorbar(shown, ax=axes[0], label="density")
    for axis, x in zip(axes[1, 1:], (ridge, held)):
        shown = axis.imshow((x - truth).reshape(side, side), cmap="PuOr", vmin=-0.5, vmax=0.5)
        axis.set_title("what is wrong with it", fontsize=11)
    figure.colorbar(shown, ax=axes[1], label="error")
    for axis in (*axes[0], *axes[1, 1:]):
        axis.set(xticks=[], yticks=[])
    line, middle = axes[1, 0], side // 2
    line.axhline(0, color="black", linewidth=0.6)
    for x, colour, label in ((ridge, ORANGE, "ridge"), (held, BLUE, "not negative"), (truth, GREY, "phantom")):
        style = "--" if label == "phantom" else "-"
        line.plot(x.reshape(side, side)[middle], style, color=colour, label=label, linewidth=1.5)
    line.set(xlabel="pixel of the middle row", ylabel="density", ylim=(-0.35, 1.45))
    line.legend(frameon=False, fontsize=9, loc="upper center", ncols=2)
    save(figure, path)


if __name__ == "__main__":
    command(run, __doc__)
