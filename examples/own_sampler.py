"""Your own sampler: weights by importance, or an order that suits the problem; measured, beside the theory.

A signal, a sum of sines, is known at some times; a row of X holds the sines at one time. Rows (Kaczmarz) ask one row
after the other. Which one is next?

Left: most times fall in a short burst, and say nearly the same. `sampler=weights` picks the others more often: in
proportion to leverage, which is how little the other rows know of a row. Kaczmarz' steps do not change if a row is
scaled; so picks by weights w have the rate of `theory` for rows scaled to norms √w.

Right: times are even. In their order neighbours are nearly parallel, and each step undoes the last. Your own order is
the rows in that order, and `sampler="cyclic"`: here by golden sections, each time far from those just before.

Run it: python examples/own_sampler.py
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

import rowcol
from gallery import BLUE, GREEN, GREY, ORANGE, RED, agree, command, plots, save
from rowcol import theory


def signal(rows: int, waves: int, burst: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, y and the coefficients of a signal at random times, a share of them within a tenth of it."""
    rng = np.random.default_rng(0)
    even = (np.arange(rows) + rng.random(rows)) / rows
    t = np.sort(np.where(rng.random(rows) < burst, rng.uniform(0.1, 0.2, rows), even))
    angles = 2 * np.pi * t[:, None] * np.arange(1, waves + 1)
    X = np.hstack([np.full((rows, 1), np.sqrt(0.5)), np.cos(angles), np.sin(angles)])
    beta = rng.standard_normal(X.shape[1])
    return X, X @ beta, beta


def leverages(X: np.ndarray) -> np.ndarray:
    return (np.linalg.qr(X)[0] ** 2).sum(axis=1)


def rate_of(X: np.ndarray, weights: np.ndarray) -> theory.Rate:
    """What a step does to the error when rows are picked in proportion to weights."""
    return theory.rate(X * np.sqrt(weights / (X**2).sum(axis=1))[:, None], "rk")


def courses(
    X: np.ndarray, y: np.ndarray, beta: np.ndarray, sampler: object, passes: int, seeds: int
) -> tuple[np.ndarray, np.ndarray]:
    """Passes at which solves were looked at; and ‖β_k − β‖²/‖β‖² there, a line a seed."""
    at, lines = [0.0], []
    for seed in range(seeds):
        line = [1.0]

        def watch(progress: rowcol.Progress, line: list[float] = line) -> bool:
            if len(line) == len(at):
                at.append(progress.passes)  # rounds, after which it is called, are shorter at first
            line.append(float(np.sum((progress.x - beta) ** 2) / np.sum(beta**2)))
            return progress.passes >= passes

        with warnings.catch_warnings():  # no tolerance is met, so that all run for as many passes
            warnings.simplefilter("ignore", rowcol.ConvergenceWarning)
            rowcol.solve(X, y, method="rk", sampler=sampler, tol=1e-300, random_state=seed, callback=watch)
        lines.append(line)
    # some end early, as float64 has no more to give
    return np.array(at), np.array([line + [line[-1]] * (len(at) - len(line)) for line in lines])


def run(folder: Path, small: bool = False) -> dict[str, float]:
    rows, waves, seeds, passes = (120, 8, 20, 10) if small else (600, 30, 40, 24)

    X, y, beta = signal(rows, waves, burst=0.7)
    weights = leverages(X)
    result = rowcol.solve(X, y, method="rk", sampler=weights, tol=1e-10, random_state=0)
    print(f"{rows} times, {X.shape[1]} unknowns; picks in proportion to leverage:\n{result}\n")
    lapack = np.linalg.lstsq(X, y)[0]
    agree("distance from LAPACK, relative", np.linalg.norm(result.x - lapack) / np.linalg.norm(lapack), 1e-7)
    measured, bounds = {}, {}
    for name, own in (("norms", (X**2).sum(axis=1)), ("leverage", weights)):
        rate = rate_of(X, own)
        print(f"{name}: {rate}")
        at, squares = measured[name] = courses(X, y, beta, "norms" if name == "norms" else own, passes, seeds)
        bounds[name] = np.maximum(rate.bound(rows * at), 1e-28)  # below that there is only rounding
        worst = np.max(squares.mean(axis=0)[1:] / bounds[name][1:])
        agree(f"{name}: mean square of {seeds} runs over its bound, at worst", worst, 1)

    X, y, beta = signal(rows, 4 * waves // 3, burst=0.0)
    golden = np.argsort(np.arange(rows) * (np.sqrt(5) - 1) / 2 % 1)
    orders = {
        "in the order of time": courses(X, y, beta, "cyclic", passes // 3, 1),
        "norms (the paper's)": courses(X, y, beta, "norms", passes // 3, seeds),
        "shuffled": courses(X, y, beta, "shuffled", passes // 3, seeds),
        "golden sections": courses(X[golden], y[golden], beta, "cyclic", passes // 3, 1),
    }
    ends = {name: error(at, squares, 2.0) for name, (at, squares) in orders.items()}
    print("errors after two passes: " + ", ".join(f"{name} {end:.0e}" for name, end in ends.items()))
    picture(folder / "gallery-sampler.png", measured, bounds, orders)
    return ends | {name: error(at, squares, passes) for name, (at, squares) in measured.items()}


def error(at: np.ndarray, squares: np.ndarray, passes: float) -> float:
    """‖β_k − β‖/‖β‖ of the run in the middle, after so many passes: between two looks, on a line of its logarithm."""
    return float(np.exp(np.interp(passes, at, np.log(np.median(squares, axis=0)) / 2)))


def picture(path: Path, measured: dict, bounds: dict, orders: dict) -> None:
    plt = plots()
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained")
    for (name, (at, squares)), colour in zip(measured.items(), (GREY, BLUE)):
        low, middle, high = np.sqrt(np.quantile(squares, (0.1, 0.5, 0.9), axis=0))
        left.fill_between(at, low, high, color=colour, alpha=0.25, linewidth=0)
        left.semilogy(at, middle, color=colour, linewidth=2, label=f"{name}: median, and 8 of 10 runs")
        left.semilogy(at, np.sqrt(bounds[name]), "--", color=colour, label=f"{name}: bound of the mean")
    left.set_title("most rows say the same: weights", fontsize=11)
    left.legend(frameon=False, fontsize=9, loc="lower left")
    for (name, (at, squares)), colour, marker in zip(orders.items(), (ORANGE, GREY, GREEN, RED), "osv^"):
        right.semilogy(at, np.sqrt(np.median(squares, axis=0)), marker + "-", color=colour, label=name, markersize=5)
    right.set_title("neighbours are parallel: an order", fontsize=11)
    right.legend(frameon=False, fontsize=9, loc="upper right", bbox_to_anchor=(1, 0.93))
    for axis in (left, right):
        axis.set(xlabel="passes over X", ylabel="relative error in β", ylim=(1e-16, 3))
        axis.grid(alpha=0.3)
    left.set_ylim(1e-22, 3)  # room for the legend
    save(figure, path)


if __name__ == "__main__":
    command(run, __doc__)
