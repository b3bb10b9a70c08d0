"""The same questions asked of a person's own system: what is promised, what is measured, and which side to take."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import theory
from ..core.explain import explain_values
from ..core.problem import matrix, right_hand_sides
from ..core.view import size
from ..show.picture import Curve, Picture, Table
from ..solving import plan, solve
from .parts import NAMES, Part, curve
from .runs import course, distance2, image2, looks_at, walked

WORK = 4e9  # numbers touched by all seeds of one curve
TOL = 1e-6


def own(X: Any, y: Any, seeds: int, seed: int, name: str = "X") -> list[Part]:
    """Two parts: what the theory says of X, and what rows, columns and both do on it."""
    X, _ = matrix(X)
    n, p = X.shape
    made = y is None
    if not np.isfinite(X.data if sp.issparse(X) else X).all():
        raise ValueError(explain_values(X))
    if made:
        y = X @ np.random.default_rng(seed).standard_normal(p)
    targets, _ = right_hand_sides(y, n)
    if np.iscomplexobj(X) or np.iscomplexobj(targets):
        raise TypeError("a study is of real X and y")
    X, y = X.astype(np.float64, copy=False), np.ascontiguousarray(targets[:, 0], np.float64)
    if not y.any():
        raise ValueError("y is zero, and so is the answer: there is nothing to study")
    y = np.ldexp(y, -math.frexp(float(np.abs(y).max()))[1])  # errors are relative, and squares are taken
    known = theory.extremes(X, seed)
    first = _promised(X, y, known, seeds, seed, name, made)
    return [first, _measured(X, y, known, seeds, seed)]


def _promised(X: Any, y: np.ndarray, known: theory.Extremes, seeds: int, seed: int, name: str, made: bool) -> Part:
    n, p = X.shape
    store = f"sparse, {X.nnz:,} entries" if sp.issparse(X) else "dense"
    how = "y was not given: it is X times random unknowns." if made else "y was given."
    low, high = known.smallest_range
    condition = known.largest / known.smallest if known.smallest else np.inf
    words = [
        f"{name} is {n:,} x {p:,}, {store}. {how} Singular values lie between {known.smallest:.4g} (known within "
        f"{low:.4g} and {high:.4g}) and {known.largest:.4g}: a condition of {condition:.3g}. How: {known.words}.",
        "What rowcol itself would do, and why: " + "; ".join(plan(X, y, random_state=seed).reasons) + ".",
    ]
    part = Part("What the theory says of it", words, seeds, seed)
    rows, scale = [], known.largest**2
    for method, alpha in [(m, 0.0) for m in ("rk", "rcd", "rek", "cg")] + [
        (m, a * scale) for a in (1e-4, 1e-2) for m in ("rk", "rcd", "cg")
    ]:
        rate = theory.rate(X, method, alpha=alpha, extremes=known)
        passes = rate.passes(TOL)
        rows.append(
            [
                NAMES.get(method, "conjugate gradients"),
                f"{alpha:.3g}",
                rate.theorem,
                f"{1 - rate.step:.3g}",
                f"{rate.per_pass:.4g}",
                f"{passes:,.0f}" if np.isfinite(passes) else "no bound",
                rate.norm,
            ]
        )
    head = ["method", "λ", "theorem", "1 − factor a step", "factor a pass", f"passes to {TOL:g}", "of"]
    part.tables.append(Table("Rates, at most", head, rows))
    return part


def _measured(X: Any, y: np.ndarray, known: theory.Extremes, seeds: int, seed: int) -> Part:
    exact = solve(X, y, tol=1e-10, random_state=seed)
    star, w2 = exact.x.astype(float), float(exact.residual_norm) ** 2
    fits = w2 <= 1e-14 * float(y @ y)
    words = [
        (
            "Some β fits: rows and columns should both find one."
            if fits
            else "No β fits: columns should reach least squares, rows stop at their horizon."
        ),
        f"Errors are measured from what solve found by {exact.method.split(':')[0]} ({exact.status.name.lower()}, "
        f"certificate {exact.certificate.value:.0e}), {exact.solution}.",
    ]
    if known.smallest_range[0] == 0:
        words.append(f"No bounds are drawn, as the smallest singular value is not known: {known.words}.")
    part = Part("What rows, columns and both do on it", words, seeds, seed)
    curves: list[Curve] = []
    for method in ("rk", "rcd", "rek"):
        rate = theory.rate(X, method, extremes=known)
        on = course(X, y, method)
        passes = float(np.clip(rate.passes(1e-8), 3.0, 60.0))
        few = int(np.clip(WORK / (passes * 2 * size(X)), 2, seeds))
        error = image2(X, star) if method == "rcd" else distance2(star)
        trace = walked(on, looks_at(passes, on, 32), error, max(few, 2), seed)
        if known.smallest_range[0] == 0:  # no bound to hold it against
            curves.append(curve(trace, NAMES[method], method))
            continue
        if method == "rk" and not fits:
            end = theory.horizon(X, y, extremes=known)
            curves.append(curve(trace, NAMES[method], method))
            edge = np.sqrt(rate.bound(trace.steps) + end.limit / trace.mean[0])
            curves.append(Curve("its bound and horizon", trace.passes, edge, style="dashed", family=method))
            part.claim(
                "rows end within their horizon",
                f"{end.limit:.3g} at most",
                f"{trace.mean[-1]:.3g}",
                trace.mean[-1] <= end.limit + rate.bound(trace.steps)[-1] * trace.mean[0] + 3 * trace.spread[-1],
            )
            continue
        curves += part.beside(trace, rate, NAMES[method], method)
    told = "Error against passes by rows, by columns (in ‖X(β − β*)‖) and by both, beside their bounds."
    part.pictures.append(
        Picture("Rows, columns and both", told, "passes over X", "error, relative to the start", curves, log_y=True)
    )
    return part
