"""The pictures of docs/ridge.md: coefficients over alpha, and how well each alpha predicts, on the diabetes data.

Run it: make ridge
"""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

import rowcol

ALPHAS = np.logspace(-2, 4, 61)
BLUE, ORANGE, GREEN, RED, GREY = "#0072b2", "#d55e00", "#009e73", "#882255", "#7f7f7f"  # told apart by all eyes
SHUFFLES = 10


def data() -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Ten measurements of 442 patients, with mean 0 and variance 1; and how far diabetes had gone a year later."""
    bunch = load_diabetes(scaled=False)
    return StandardScaler().fit_transform(bunch.data), bunch.target, list(bunch.feature_names)


def plots() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False})
    return plt


def apart(wanted: np.ndarray, gap: float) -> np.ndarray:
    """Places for labels: near those wanted, in their order, and at least a gap apart."""
    order, places = np.argsort(wanted), wanted.astype(float).copy()
    for _ in range(200):
        for low, high in pairwise(order):
            short = gap - (places[high] - places[low])
            if short > 0:
                places[low] -= short / 2
                places[high] += short / 2
    return places


def paths(path: Path) -> None:
    """Coefficients over alpha, each labelled where its line begins."""
    plt = plots()
    X, y, names = data()
    found = rowcol.ridge_path(X, y, ALPHAS, fit_intercept=True)
    chosen = rowcol.RidgeCV(ALPHAS).fit(X, y).alpha_
    figure, axis = plt.subplots(figsize=(8.2, 4.4), layout="constrained")
    looks = [(colour, style) for style in ("-", (0, (4, 1.6))) for colour in (BLUE, ORANGE, GREEN, RED, GREY)]
    places = apart(found.coef[0], 3.6)
    for j, name in enumerate(names):
        colour, style = looks[j]
        axis.semilogx(ALPHAS, found.coef[:, j], color=colour, linestyle=style, linewidth=1.8)
        axis.annotate(
            name, (ALPHAS[0], found.coef[0, j]), (ALPHAS[0] / 1.35, places[j]), color=colour, ha="right", va="center"
        )
    axis.axvline(chosen, color="black", linewidth=1, linestyle=":")
    axis.annotate(f"chosen by RidgeCV: {chosen:.2g}", (chosen * 1.15, 33), fontsize=10)
    axis.axhline(0, color="black", linewidth=0.6)
    axis.set(xlabel="alpha", xlim=(ALPHAS[0], ALPHAS[-1]))
    axis.set_ylabel("coefficient (standardised features)")
    axis.yaxis.set_label_position("right")
    axis.yaxis.tick_right()
    axis.spines[["left"]].set_visible(False)
    axis.spines[["right"]].set_visible(True)
    figure.savefig(path, dpi=110, metadata={"Software": None})


def errors(path: Path) -> None:
    """The mean squared error of what was left out: one row at a time, and a fifth of them at a time."""
    plt = plots()
    X, y, _ = data()
    alphas = ALPHAS[ALPHAS <= 300]
    one = rowcol.RidgeCV(alphas).fit(X, y)
    figure, axis = plt.subplots(figsize=(8.2, 4.0), layout="constrained")
    for seed in range(SHUFFLES):
        folds = KFold(5, shuffle=True, random_state=seed)
        five = rowcol.RidgeCV(alphas, cv=folds, scoring="neg_mean_squared_error").fit(X, y)
        label = f"5 folds, {SHUFFLES} shuffles" if seed == 0 else None
        axis.semilogx(alphas, -five.scores_, color=ORANGE, linewidth=1, alpha=0.7, label=label)
        axis.plot(five.alpha_, -five.best_score_, "o", color=ORANGE, markersize=5)
    axis.semilogx(alphas, -one.scores_, color=BLUE, linewidth=2.6, label="leaving one out")
    axis.plot(one.alpha_, -one.best_score_, "o", color=BLUE, markersize=8)
    axis.set(xlabel="alpha", ylabel="mean squared error of rows left out", xlim=(alphas[0], alphas[-1]))
    axis.grid(alpha=0.3)
    axis.legend(frameon=False, loc="upper left", title="dots: the alpha each would choose", alignment="left")
    figure.savefig(path, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "docs" / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in (("ridge-path.png", paths), ("ridge-cv.png", errors)):
        draw(folder / name)
        print(f"picture: {folder / name}")
