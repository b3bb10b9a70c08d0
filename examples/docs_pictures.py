"""The pictures of docs/first-solve.md, docs/certificates.md and docs/choosing.md. Run it: make pictures

What they show is returned as plain numbers too: tests/test_site.py draws on the same functions.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

import rowcol
from gallery import BLUE, GREEN, GREY, ORANGE, RED, plots

METHODS = {"rk": BLUE, "rcd": ORANGE, "cg": GREEN, "direct": RED}
TOLS = np.array([0.3, 0.1, 0.03, 1e-2, 3e-3, 1e-3, 1e-4, 1e-5, 1e-6])


def exactly(X: np.ndarray, y: np.ndarray, alpha: float) -> np.ndarray:
    """Ridge regression by a factor, refined in extended precision: right to more digits than double precision has."""
    factor = cho_factor(X.T @ X + alpha * np.eye(X.shape[1]))
    beta = np.zeros(X.shape[1], np.longdouble)
    wide, target = X.astype(np.longdouble), y.astype(np.longdouble)
    for _ in range(8):
        beta += cho_solve(factor, (wide.T @ (target - wide @ beta) - alpha * beta).astype(float))
    return beta


def ridges(solves: int = 400, seed: int = 0) -> list[tuple[str, float, float]]:
    """Ridge problems of all kinds, some stopped long before the end: method, true error and bound, over ‖β*‖."""
    rng = np.random.default_rng(seed)
    found = []
    for k in range(solves):
        n, p = (round(10 ** rng.uniform(1, 2.5)) for _ in range(2))
        X = rng.standard_normal((n, p)) * np.geomspace(1, 10 ** rng.uniform(-2, 0), p)
        y = X @ rng.standard_normal(p) + 10 ** rng.uniform(-2, 1) * rng.standard_normal(n)
        alpha = float(10 ** rng.uniform(-2, 2))
        method = list(METHODS)[k % len(METHODS)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rowcol.ConvergenceWarning)
            result = rowcol.solve(
                X,
                y,
                alpha=alpha,
                method=method,
                tol=float(10 ** rng.uniform(-12, -1)),
                max_passes=float(10 ** rng.uniform(0, 2.5)),
                random_state=k,
            )
        exact = exactly(X, y, alpha)
        size = float(np.linalg.norm(exact))
        found.append((method, float(np.linalg.norm(result.x - exact)) / size, result.error_bound / size))
    return found


def kernels(seed: int = 0) -> list[tuple[float, np.ndarray, np.ndarray]]:
    """Kernel ridge to several tolerances: tol, true distance from the exact values at new points, bound there."""
    rng = np.random.default_rng(seed)
    X, new = rng.standard_normal((1500, 3)), rng.standard_normal((60, 3))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(1500)
    kernel, alpha = rowcol.kernels.RBF(length_scale=1.0), 0.1
    exact = kernel(new, X) @ cho_solve(cho_factor(kernel(X) + alpha * np.eye(1500)), y)
    found = []
    for tol in (1e-1, 1e-2, 1e-3, 1e-4):
        fit = rowcol.solve(X, y, kernel=kernel, alpha=alpha, method="cg", tol=tol)
        values, bound = fit.function(new, return_bound=True)
        found.append((tol, np.abs(values - exact), bound))
    return found


def certificates(path: Path) -> None:
    """True errors against their bounds: none is below the line."""
    plt = plots()
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.4), layout="constrained")
    points = ridges()
    for method, colour in METHODS.items():
        mine = np.array([(error, bound) for name, error, bound in points if name == method])
        left.loglog(mine[:, 0], mine[:, 1], ".", color=colour, label=method, markersize=5)
    left.set_title("ridge: 400 solves", fontsize=11)
    left.set(xlabel="true error ‖β − β*‖ / ‖β*‖", ylabel="its certified bound")
    for (tol, error, bound), colour in zip(kernels(), (BLUE, ORANGE, GREEN, RED)):
        right.loglog(error, bound, ".", color=colour, label=f"tol {tol:.0e}", markersize=5)
    right.set_title("kernel ridge: predictions at 60 new points", fontsize=11)
    right.set(xlabel="true distance from the exact value", ylabel="its certified bound")
    for axis in (left, right):
        ends = np.array([min(axis.get_xlim()[0], axis.get_ylim()[0]), max(axis.get_xlim()[1], axis.get_ylim()[1])])
        axis.plot(ends, ends, color="black", linewidth=1)
        axis.fill_between(ends, ends * 1e-30, ends, color=GREY, alpha=0.15, linewidth=0)
        axis.set(xlim=ends, ylim=ends)
        axis.annotate("never", (0.72, 0.3), xycoords="axes fraction", color="black", ha="center")
        axis.legend(frameon=False, loc="upper left")
    figure.savefig(path, dpi=100, metadata={"Software": None})


def tolerances(seed: int = 0) -> dict[str, np.ndarray]:
    """A kernel fit to each of TOLS: passes, error at new points, distance from the exact values, median bound."""
    rng = np.random.default_rng(seed)
    X, new = rng.uniform(-2, 2, (3000, 3)), rng.uniform(-2, 2, (500, 3))

    def truth(points: np.ndarray) -> np.ndarray:
        return np.sin(2 * points[:, 0]) * points[:, 1] + points[:, 2]

    y = truth(X) + 0.3 * rng.standard_normal(3000)
    kernel, alpha = rowcol.kernels.Matern(nu=2.5, length_scale=1.0), 0.1
    exact = kernel(new, X) @ cho_solve(cho_factor(kernel(X) + alpha * np.eye(3000)), y)
    rows = []
    for tol in TOLS:
        options = {"alpha": alpha, "tol": float(tol), "method": "pcg", "memory": "20 MB", "random_state": 0}
        fit = rowcol.solve(X, y, kernel=kernel, **options)
        values, bound = fit.function(new, return_bound=True)
        error, distance = (np.sqrt(np.mean((values - other) ** 2)) for other in (truth(new), exact))
        rows.append((fit.passes, error, distance, np.median(bound)))
    return dict(zip(("passes", "error", "distance", "bound"), np.array(rows).T))


def tol(path: Path) -> None:
    """What a digit of tol buys."""
    plt = plots()
    found = tolerances()
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.9), layout="constrained", width_ratios=[1.5, 1])
    left.loglog(TOLS, found["bound"], "o--", color=GREY, label="bound of that distance, median")
    left.loglog(TOLS, found["error"], "o-", color=ORANGE, label="error at new points")
    left.loglog(TOLS, found["distance"], "o-", color=BLUE, label="distance from the exact values")
    left.legend(frameon=False, loc="upper right")
    left.set(xlabel="tol", ylabel="root mean square")
    right.semilogx(TOLS, found["passes"], "o-", color=BLUE)
    right.set(xlabel="tol", ylabel="passes over the kernel matrix", ylim=(0, None))
    for axis in (left, right):
        axis.invert_xaxis()
        axis.grid(alpha=0.3)
    figure.savefig(path, dpi=100, metadata={"Software": None})


def steps(seed: int = 1) -> tuple[np.ndarray, np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """80 noisy points on a line: a wave, and a jump at 6."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0, 10, 80))

    def truth(t: np.ndarray) -> np.ndarray:
        return np.sin(t) + 1.5 * (t > 6)

    return x[:, None], truth(x) + 0.2 * rng.standard_normal(80), truth


def shapes(path: Path) -> None:
    """Alpha too small, too large and right; a smooth and a rough kernel at a jump."""
    plt = plots()
    X, y, truth = steps()
    t = np.linspace(0, 10, 801)
    figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.9), layout="constrained", sharey=True)
    smooth, rough = rowcol.kernels.RBF(length_scale=0.8), rowcol.kernels.Matern(nu=0.5, length_scale=3.0)
    cases: list[list[tuple[str, str, Any, float]]] = [
        [
            ("alpha = 1e-6: follows the noise", GREY, smooth, 1e-6),
            ("alpha = 0.1", BLUE, smooth, 0.1),
            ("alpha = 30: flattens", ORANGE, smooth, 30.0),
        ],
        [("RBF: blurs the jump", BLUE, smooth, 0.1), ("Matern, nu = 1/2: takes it", RED, rough, 0.1)],
    ]
    for axis, title, lines in zip(axes, ("one kernel, three alphas", "one alpha, two kernels"), cases):
        axis.plot(X[:, 0], y, ".", color="black", markersize=4, alpha=0.5)
        axis.plot(t, truth(t), color="black", linewidth=0.8, linestyle=":", label="the truth")
        for label, colour, kernel, alpha in lines:
            fit = rowcol.solve(X, y, kernel=kernel, alpha=alpha, fit_intercept=True)
            axis.plot(t, fit.function(t[:, None]), color=colour, linewidth=1.6, label=label)
        axis.set_title(title, fontsize=11)
        axis.set(xlabel="x", ylim=(-2.2, 4.6))
        axis.legend(frameon=False, loc="upper left", fontsize=9)
    figure.savefig(path, dpi=100, metadata={"Software": None})


def first(path: Path) -> None:
    """How a solve converged, as `rowcol.plot` draws it."""
    plt = plots()
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 300))
    y = X @ rng.standard_normal(300) + rng.standard_normal(2000)
    result = rowcol.solve(X, y, alpha=1.0, method="rcd", random_state=0)
    figure, axis = plt.subplots(figsize=(7.2, 3.8), layout="constrained")
    rowcol.plot(result, ax=axis)
    figure.savefig(path, dpi=100, metadata={"Software": None})


PICTURES = {
    "first-solve.png": first,
    "certificates.png": certificates,
    "choosing-tol.png": tol,
    "choosing-shapes.png": shapes,
}

if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "docs" / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        draw(folder / name)
        print(f"picture: {folder / name}")
