"""Ridge regression by rows and by columns, where they cross, and kernel ridge regression by the paper's update."""

from __future__ import annotations

import math

import numpy as np

from .. import theory
from ..core.kernels import RBF
from ..show.picture import Curve, Picture, Table
from .parts import NAMES, Part
from .runs import Course, Error, course, distance2, energy2, kernel_course, walked

SHAPES = ((20, 320), (40, 160), (64, 100), (100, 64), (160, 40), (320, 20))
PENALTIES = np.logspace(-1, 4, 11)
TOL = 1e-4
MOST = 500.0  # passes


def crossing(x: np.ndarray, one: np.ndarray, two: np.ndarray) -> float:
    """Where two positive curves cross, by straight lines between points on logarithmic axes; NaN where they do not."""
    gap = np.log(one) - np.log(two)
    at = np.flatnonzero(np.sign(gap[:-1]) * np.sign(gap[1:]) < 0)
    if not at.size:
        return math.nan
    i = int(at[0])
    share = gap[i] / (gap[i] - gap[i + 1])
    return float(np.exp(np.log(x[i]) * (1 - share) + np.log(x[i + 1]) * share))


def _passes_to(on: Course, error: Error, tol: float, most: float, seeds: int, seed: int) -> float:
    """Passes until the median error is `tol` of what it was; `most`, by the bound, and MOST at most."""
    reach = min(most, MOST)
    for share in (0.8, 1.0):  # mostly it takes less than the bound
        looks = np.unique(np.linspace(0, max(round(share * reach * on.steps_a_pass), 8), 80).round().astype(int))
        trace = walked(on, looks, error, seeds, seed)
        middle = np.sqrt(np.median(trace.errors, axis=0) / trace.mean[0])
        under = np.flatnonzero(middle <= tol)
        if under.size:
            k = max(int(under[0]), 1)
            a, b = np.log(middle[k - 1]), np.log(max(middle[k], 1e-300))
            return float(np.interp(math.log(tol), [b, a], [trace.passes[k], trace.passes[k - 1]]))
    return reach


def ridge(seeds: int, seed: int) -> Part:
    """(e) Ridge by rows and by columns over a range of penalties and shapes, and where they cross."""
    part = Part(
        "Ridge regression: by rows, by columns, and where they cross",
        [
            "Ridge regression can be solved by rows, with O(p) a step, or by columns, with O(n) a step. (36) and (38) "
            "bound both: of the longer side σ_min is 0, and λ carries it alone. So for small λ the shorter side is "
            "ahead, by far: rows and columns cross where X is square.",
            "For large λ the bounds change sides once more, as the longer side has more steps a pass. The methods do "
            "not follow: measured, the shorter side stays ahead at every λ, if by less and less. Bounds are not "
            "equalities, and a choice between two methods by their bounds can be wrong.",
        ],
        seeds,
        seed,
    )
    few = max(seeds // 4, 16)
    part.tables.append(Table("Where rows and columns cross", ["along", "at", "bounds", "measured"], [], []))
    for n, p in ((160, 40), (40, 160)):
        swept = [_race(n, p, lam, few, seed) for lam in PENALTIES]
        told, found = _drawn(part, swept, PENALTIES, f"Ridge, {n} x {p}, against λ", "penalty λ")
        name = f"{n} x {p}: small λ, the shorter side is ahead"
        short = "rows" if n < p else "columns"
        by = "rows" if swept[0]["rk"][0] < swept[0]["rcd"][0] else "columns"
        part.claim(name, short, by, by == short)
        part.claim(
            f"{n} x {p}: the bounds cross again at a large λ, the methods do not",
            f"λ = {told:.3g}",
            "no crossing" if np.isnan(found) else f"λ = {found:.3g}",
            np.isfinite(told) and np.isnan(found),
        )
        part.tables[0].rows.append(["λ, from 0.1 to 10,000", f"{n} x {p}", f"{told:.3g}", _or_none(found)])
    ratios = np.array([n / p for n, p in SHAPES])
    for lam in (1.0, 10.0):
        swept = [_race(n, p, lam, few, seed) for n, p in SHAPES]
        told, found = _drawn(part, swept, ratios, f"Ridge, λ = {lam:g}, against the shape", "n / p, at n p = 6,400")
        at = f"λ = {lam:g}: rows and columns cross where X is square"
        part.claim(at, f"n/p = 1; bounds {told:.2f}", f"n/p = {found:.2f}", 0.6 < found < 1.6)
        part.tables[0].rows.append(["n/p, from 1/16 to 16", f"λ = {lam:g}", f"{told:.3g}", _or_none(found)])
    _energies(part)
    return part


def _race(n: int, p: int, lam: float, seeds: int, seed: int) -> dict[str, tuple[float, float]]:
    """Passes of rows and of columns to the tolerance: measured (at most MOST), and by their bounds."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((n, p)), rng.standard_normal(n)
    star, known = X.T @ np.linalg.solve(X @ X.T + lam * np.eye(n), y), theory.extremes(X)
    raced = {}
    for method in ("rk", "rcd"):
        most = theory.rate(X, method, alpha=lam, extremes=known).passes(TOL)
        raced[method] = (_passes_to(course(X, y, method, lam), distance2(star), TOL, most, seeds, seed), most)
    return raced


def _drawn(part: Part, swept: list[dict], along: np.ndarray, title: str, label: str) -> tuple[float, float]:
    """A picture of what was raced, the claim that no bound was exceeded; and where bounds, and methods, cross."""
    took = {m: np.array([each[m][0] for each in swept]) for m in ("rk", "rcd")}
    most = {m: np.array([each[m][1] for each in swept]) for m in ("rk", "rcd")}
    curves = []
    for m in ("rk", "rcd"):
        curves.append(Curve(NAMES[m], along, np.where(took[m] < MOST, took[m], np.nan), family=m))
        curves.append(Curve(f"{NAMES[m]}, bound", along, most[m], style="dashed", family=m))
    words = f"Passes that rows and columns take to {TOL:g}, measured and by their bounds. {title}."
    part.pictures.append(Picture(title, words, label, f"passes to {TOL:g}", curves, log_x=True, log_y=True))
    share = max(float((took[m] / most[m]).max()) for m in took)
    part.claim(f"{title}: no more passes than the bounds allow", "at most 1", f"{share:.2f} of them", share <= 1)
    return crossing(along, most["rk"], most["rcd"]), crossing(along, took["rk"], took["rcd"])


def _or_none(value: float) -> str:
    return "none" if np.isnan(value) else f"{value:.3g}"


def _energies(part: Part) -> None:
    """Curves of the error itself, in the norms of (36) and (38), for one penalty."""
    rng = np.random.default_rng(part.seed + 1)
    n, p, lam = 160, 40, 10.0
    curves: list[Curve] = []
    X, y = rng.standard_normal((n, p)), rng.standard_normal(n)
    dual = np.linalg.solve(X @ X.T + lam * np.eye(n), y)
    star = X.T @ dual
    energies = {
        "rk": energy2(X @ X.T + lam * np.eye(n), dual),
        "rcd": energy2(X.T @ X + lam * np.eye(p), star),
    }
    known = theory.extremes(X)
    for method, energy in energies.items():
        rate = theory.rate(X, method, alpha=lam, extremes=known)
        trace = part.run(course(X, y, method, lam), energy, 30)
        curves += part.beside(trace, rate, NAMES[method], method)
        wrong = 1 - (known.largest**2 + lam) / (known.total + rate.lines * lam)
        if method == "rcd":
            over = bool((trace.mean[1:] > trace.mean[0] * wrong ** trace.steps[1:]).any())
            part.claim(
                "(38) with σ_1 as the largest singular value, as it reads, is violated",
                f"{wrong:.5f} a step",
                part.rates[-1][3],
                over,
            )
    words = f"Error in the energy norm against passes, ridge with λ = {lam:g} on {n} x {p}, each below its bound."
    part.pictures.append(
        Picture(
            f"Ridge, {n} x {p}, λ = {lam:g}", words, "passes over X", "error in the energy norm", curves, log_y=True
        )
    )


def kernel(seeds: int, seed: int) -> Part:
    """(f) Kernel ridge regression by the paper's coordinate update, which never needs K but one column at a time."""
    part = Part(
        "Kernel ridge regression, one point at a time",
        [
            "The paper's update (18) changes one coefficient a step and the values of f at all points, O(n) work and "
            "memory; points are picked in proportion to k(x_i, x_i) + λ. The rate (35) is that of ridge by rows with "
            "K for XXᵀ: with a smooth kernel σ_min(K) is nearly zero, and λ carries it alone.",
        ],
        seeds,
        seed,
    )
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (150, 2))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(150)
    K, curves = RBF(gamma=2.0)(X), []
    for lam in (0.1, 1.0, 10.0):
        A = K + lam * np.eye(150)
        star = np.linalg.solve(A, y)
        rate = theory.rate(X, "rk", alpha=lam, kernel=RBF(gamma=2.0))
        trace = part.run(
            kernel_course(K, y, lam),
            energy2(A, star),
            min(rate.passes(1e-8), 60.0),
        )
        curves += part.beside(trace, rate, f"{NAMES['kernel']}, λ = {lam:g}", f"{lam:g}")
        end = float(np.sqrt(np.median(trace.errors[:, -1]) / trace.mean[0]))
        part.claim(
            f"single steps reach (K + λ)⁻¹y, λ = {lam:g}", "error → 0", f"{end:.0e}", end < (1e-6 if lam > 0.5 else 0.1)
        )
    words = (
        "Error in the energy norm against passes of single-point steps, for three penalties, each below its bound (35)."
    )
    part.pictures.append(
        Picture("Kernel ridge, RBF, 150 points", words, "passes over K", "error in the energy norm", curves, log_y=True)
    )
    return part
