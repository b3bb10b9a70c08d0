"""Rows that come in pieces: least squares by partial_fit, exact after every piece, and no row is kept.

Every hour 500 rows of 20 measurements come in. What is kept is a triangle of 21 x 21 numbers, however many rows came
before; coefficients, standard errors and the certificate are those of all rows so far.

Run it: python examples/streaming.py
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import rowcol
from gallery import BLUE, GREEN, GREY, ORANGE, agree, command, plots, save

FEATURES, PIECE = 20, 500
TRUTH = np.linspace(-1, 1, FEATURES)
SHOWN = ((3, BLUE), (12, GREEN), (19, ORANGE))


def pieces(count: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows as they arrive: correlated measurements, and a response with noise."""
    rng = np.random.default_rng(0)
    mix = np.eye(FEATURES) + 0.3 * rng.standard_normal((FEATURES, FEATURES))
    for _ in range(count):
        X = rng.standard_normal((PIECE, FEATURES)) @ mix + 10
        yield X, X @ TRUTH + 5 + 3 * rng.standard_normal(PIECE)


def textbook(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and standard errors of all rows at once, by LAPACK."""
    ones = np.column_stack([np.ones(len(y)), X])
    beta, (rss,) = np.linalg.lstsq(ones, y)[:2]
    errors = np.sqrt(rss / (len(y) - FEATURES - 1) * np.diag(np.linalg.inv(ones.T @ ones)))
    return beta[1:], errors[1:]


def run(folder: Path, small: bool = False) -> dict[str, float]:
    count = 20 if small else 1000
    model = rowcol.LeastSquares(covariance=True)
    seen, coef, errors, kept = [], [], [], []
    for k, (X, y) in enumerate(pieces(count), 1):
        model.partial_fit(X, y)
        seen.append(k * PIECE)
        coef.append(model.coef_)
        errors.append(model.standard_errors_)
        kept.append(len(pickle.dumps(model)))  # all that it remembers
    print(f"{seen[-1]:,} rows in {count:,} pieces\n\n{model.result_}\n")

    X, y = (np.concatenate(part) for part in zip(*pieces(count)))  # all rows at once, for once
    beta, spread = textbook(X, y)
    distance = np.max(np.abs(model.coef_ - beta) / spread)
    agree("coefficients, distance from LAPACK on all rows, in standard errors", distance, 1e-6)
    agree("standard errors, relative distance from the textbook's", np.max(np.abs(errors[-1] / spread - 1)), 1e-8)
    bytes_of_all = X.nbytes + y.nbytes
    print(f"kept: {kept[-1] / 1e3:.1f} kB after {seen[-1]:,} rows, {kept[0] / 1e3:.1f} kB after {PIECE};", end=" ")
    print(f"all rows are {bytes_of_all / 1e6:,.1f} MB")
    off = np.abs(np.array(coef) - TRUTH) / np.array(errors)
    print(f"over all features and pieces, the truth was within two standard errors {np.mean(off < 2):.0%} of the time")
    picture(folder / "gallery-streaming.png", *(np.array(part) for part in (seen, coef, errors, kept)))
    return {"first": kept[0], "last": kept[-1], "all": bytes_of_all}


def picture(path: Path, seen: np.ndarray, coef: np.ndarray, errors: np.ndarray, kept: np.ndarray) -> None:
    plt = plots()
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.0), layout="constrained", width_ratios=[1.5, 1])
    for j, colour in SHOWN:
        low, high = coef[:, j] - 2 * errors[:, j], coef[:, j] + 2 * errors[:, j]
        left.fill_between(seen, low, high, color=colour, alpha=0.25, linewidth=0)
        left.semilogx(seen, coef[:, j], color=colour, linewidth=1.5, label=f"feature {j}")
        left.axhline(TRUTH[j], color="black", linewidth=1, linestyle=":")
    left.set(xlabel="rows so far", ylabel="coefficient, ± 2 standard errors", xlim=(seen[0], seen[-1]))
    left.set_title("dotted: the truth", fontsize=11)
    left.legend(frameon=False, loc="lower right", fontsize=9)
    right.loglog(seen, 8.0 * seen * (FEATURES + 1) / 1e3, "--", color=GREY, label="all rows so far")
    right.loglog(seen, kept / 1e3, color=BLUE, linewidth=2, label="the model")
    right.set(xlabel="rows so far", ylabel="memory, kB", xlim=(seen[0], seen[-1]), ylim=(1, None))
    for axis in (left, right):
        axis.grid(alpha=0.3)
    right.legend(frameon=False)
    save(figure, path)


if __name__ == "__main__":
    command(run, __doc__)
