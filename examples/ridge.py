"""The pictures of docs/ridge.md: coefficients over alpha, and how well each alpha predicts, on the diabetes data.

Run it: make ridge
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
from sklearn import linear_model
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

import rowcol
from gallery import BLUE, GREEN, GREY, ORANGE, RED, agree, command, plots, save

ALPHAS = np.logspace(-2, 4, 61)
SHUFFLES = 10


def data() -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Ten measurements of 442 patients, with mean 0 and variance 1; and how far diabetes had gone a year later."""
    bunch = load_diabetes(scaled=False)
    return StandardScaler().fit_transform(bunch.data), bunch.target, list(bunch.feature_names)


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
    save(figure, path, dpi=110)


def errors(path: Path, shuffles: int = SHUFFLES) -> None:
    """The mean squared error of what was left out: one row at a time, and a fifth of them at a time."""
    plt = plots()
    X, y, _ = data()
    alphas = ALPHAS[ALPHAS <= 300]
    one = rowcol.RidgeCV(alphas).fit(X, y)
    figure, axis = plt.subplots(figsize=(8.2, 4.0), layout="constrained")
    for seed in range(shuffles):
        folds = KFold(5, shuffle=True, random_state=seed)
        five = rowcol.RidgeCV(alphas, cv=folds, scoring="neg_mean_squared_error").fit(X, y)
        label = f"5 folds, {shuffles} shuffles" if seed == 0 else None
        axis.semilogx(alphas, -five.scores_, color=ORANGE, linewidth=1, alpha=0.7, label=label)
        axis.plot(five.alpha_, -five.best_score_, "o", color=ORANGE, markersize=5)
    axis.semilogx(alphas, -one.scores_, color=BLUE, linewidth=2.6, label="leaving one out")
    axis.plot(one.alpha_, -one.best_score_, "o", color=BLUE, markersize=8)
    axis.set(xlabel="alpha", ylabel="mean squared error of rows left out", xlim=(alphas[0], alphas[-1]))
    axis.grid(alpha=0.3)
    axis.legend(frameon=False, loc="upper left", title="dots: the alpha each would choose", alignment="left")
    save(figure, path, dpi=110)


def run(folder: Path, small: bool = False) -> dict[str, float]:
    """All alphas from one factorization, each with its certificate; two of them as scikit-learn has them."""
    X, y, _ = data()
    found = rowcol.ridge_path(X, y, ALPHAS, fit_intercept=True)
    bounds = [certificate.error_bound or np.inf for certificate in found.certificates]
    print(f"{len(ALPHAS)} alphas in {found.passes:.0f} passes over X; ‖β − β*‖ is at most {max(bounds):.0e}")
    for k in (0, 40):
        theirs = linear_model.Ridge(ALPHAS[k]).fit(X, y)
        agree(f"alpha {ALPHAS[k]:g}: distance from scikit-learn", np.abs(found.coef[k] - theirs.coef_).max(), 1e-9)
    one, theirs = rowcol.RidgeCV(ALPHAS).fit(X, y), linear_model.RidgeCV(ALPHAS).fit(X, y)
    agree("alpha chosen by leaving one out, over scikit-learn's, less one", abs(one.alpha_ / theirs.alpha_ - 1), 1e-12)
    print(f"chosen: {one.alpha_:.2g}\n{one.result_}")
    paths(folder / "ridge-path.png")
    errors(folder / "ridge-cv.png", 2 if small else SHUFFLES)
    return {"alpha": float(one.alpha_)}


if __name__ == "__main__":
    command(run, __doc__)
