"""Where the paper errs, with numbers."""

from __future__ import annotations

import numpy as np

from .. import theory, zoo
from .parts import Part
from .runs import course, distance2, energy2, walked


def slips(seeds: int, seed: int) -> Part:
    """Each slip as it is printed, and what holds instead."""
    part = Part(
        "Where the paper errs",
        [
            "The paper's theorems are right, and some of its lines are not. Each is shown here with a number; none "
            "is copied in this library.",
        ],
        seeds,
        seed,
    )
    case = zoo.tall_inconsistent(n=400, p=10, noise=0.5, seed=seed)
    X, y, star = case.X, case.y, case.answer
    end = theory.horizon(X, y)
    far = walked(course(X, y, "rk"), np.arange(800, 2400, 100), distance2(star), seeds, seed)
    mean = float(far.errors.mean())
    part.claim(
        "Section 4, printed: RK ends within ‖w‖²/σ_min(Σ)²; it does not",
        f"{end.printed:.3g}",
        f"{mean:.3g}",
        mean > end.printed,
    )
    part.claim("corrected: within ‖w‖²/σ_min(Σ)", f"{end.limit:.3g}", f"{mean:.3g}", mean <= end.limit)
    projector = np.linalg.pinv(X) @ X
    off = float(np.linalg.norm(star - projector @ star) / np.linalg.norm(star))
    part.claim(
        "Section 4: “β_LS is not in the row span”; with full column rank it always is",
        "distance 0",
        f"{off:.0e}",
        off < 1e-10,
    )
    wide = zoo.wide(seed=seed)
    size, misfit = np.linalg.norm(wide.X @ wide.answer), np.linalg.norm(wide.X @ wide.answer - wide.y)
    part.claim(
        "Section 5: “Xβ* = Xβ*_MN = 0” must end in y",
        f"‖y‖ = {np.linalg.norm(wide.y):.3g}",
        f"‖Xβ_MN‖ = {size:.3g}, ‖Xβ_MN − y‖ = {misfit:.0e}",
        misfit < 1e-9 * size,
    )
    lam, n = 1.0, 40
    square = np.random.default_rng(seed).standard_normal((n, 60))
    values = np.linalg.svd(square, compute_uv=False) ** 2
    A = square @ square.T + lam * np.eye(n)
    target = np.random.default_rng(seed + 1).standard_normal(n)
    dual = np.linalg.solve(A, target)
    trace = walked(
        course(square, target, "rk", lam),
        np.array([0, 20, 40, 80]),
        energy2(A, dual),
        seeds,
        seed,
    )
    for which, value in (("largest, as σ_1 reads", values[0]), ("smallest", values[-1])):
        step = 1 - (value + lam) / (values.sum() + n * lam)
        bound = trace.mean[0] * step**80
        holds = bool(trace.mean[-1] <= bound + 3 * trace.spread[-1])
        part.claim(
            f"(36) with σ_1 the {which}: {'holds' if which == 'smallest' else 'is violated'}",
            f"{bound:.3g}",
            f"{trace.mean[-1]:.3g} after 80 steps",
            holds if which == "smallest" else trace.mean[-1] > bound,
        )
    K = np.array([[1.0, 0.5], [0.5, 1.0]])
    y2 = np.array([1.0, -1.0])
    exact = np.linalg.solve(K + np.eye(2), y2)
    a = np.zeros(2)
    for i in (0, 1) * 40:  # (18) with y_i
        a[i] += (y2[i] - K[i] @ a - a[i]) / (K[i, i] + 1)
    apart = float(np.linalg.norm(a - exact))
    part.claim(
        "(18) prints y for y_i; with y_i it solves (K + λ)α = y",
        "0",
        f"{apart:.0e}",
        apart < 1e-12,
    )
    return part
