"""Randomized Kaczmarz and randomized coordinate descent: the same descent, by rows or by columns.

With alpha > 0 they are ridge regression by rows (13)-(15) = (27)-(29) and by columns (32)-(34). With alpha = 0, rows
reach the minimum-norm solution of a consistent system (4), columns a least-squares solution of any system (6).
"""

from __future__ import annotations

import numpy as np

from ..core.problem import Problem
from ..core.sampler import Sampler, sampler
from ..core.view import State, View, image, known_diag, pieces, state
from ..engine.lines import pulls


def picks(view: View, now: State, kind: object, seed: np.random.SeedSequence, weight: np.ndarray | None) -> Sampler:
    """The sampler of a one-sided view; `norms` picks in proportion to ‖a_i‖² + λ_i."""
    m = view.b.shape[1]
    chances = None
    if isinstance(kind, str) and kind == "norms":
        chances = np.ascontiguousarray(known_diag(view, now) + view.lam)
        if weight is not None and not view.lam.any():
            chances = chances * weight  # the rows of the weighted system
        if view.skip is not None:
            chances[view.skip] = 0.0
        if not np.isfinite(chances).all():
            chances = np.ones(m)  # the first steps will say what is wrong with X
    return sampler(kind, m, seed, chances)


def start_rows(problem: Problem, view: View, beta0: np.ndarray | None, alpha0: np.ndarray | None) -> State:
    """A row state from β0 and, where known, the α0 it came from."""
    if beta0 is None:
        return state(view)
    if alpha0 is not None:  # β = Xᴴα anew: of this X, and of the rows that count
        alpha0 = np.ascontiguousarray(alpha0 if view.skip is None else np.where(view.skip, 0.0, alpha0))
        return state(view, alpha0, image(view, alpha0))
    if problem.alpha == 0:
        return state(view, None, beta0)
    # Ridge by rows lives on β = Xᴴα. Without an α the best multiple of the residual of β0 is a start that is exact
    # if β0 is the solution, where α* = Wρ/alpha, and never worse than zero.
    w = np.ones(problem.X.shape[0]) if problem.weight is None else problem.weight
    rho = w * (problem.y - _products(view, beta0))
    back = image(view, rho)
    inverse = np.divide(1.0, w, out=np.zeros_like(w), where=w > 0)
    bottom = (np.abs(back) ** 2).sum(1) + problem.alpha * (np.abs(rho) ** 2 * inverse).sum(1)
    top = (problem.y * rho.conj()).sum(1)
    best = np.divide(top.conj(), bottom, out=np.zeros_like(top), where=bottom > 0)[:, None]
    return state(view, best * rho, best * back)


def start_cols(problem: Problem, view: View, beta0: np.ndarray | None) -> State:
    """A column state from β0: s = Xβ0 − y, kept conjugated."""
    if beta0 is None:
        return state(view)
    x = np.ascontiguousarray(beta0.conj())
    return state(view, x, view.s0 + image(view, x))


def _products(view: View, beta0: np.ndarray) -> np.ndarray:
    """Xβ0, by rows."""
    m = view.b.shape[1]
    out = np.empty((len(beta0), m), beta0.dtype)
    for start, stop in pieces(m, view.cost * len(beta0)):
        pulls(view.lines, start, stop, np.ascontiguousarray(beta0), out)
    return out
