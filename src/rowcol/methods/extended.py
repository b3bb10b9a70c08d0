"""Randomized extended Kaczmarz (Zouzias and Freris): rows and columns woven, right in every setting.

Columns drive s to −z, the part of −y that no β can reach; rows solve Xβ = y − z. Step by step as published: one
column pick, one row pick, and so on. By sweep: a pass of columns, a pass of rows.
"""

from __future__ import annotations

import numpy as np

from ..core.problem import Problem
from ..core.sampler import Weave, sampler
from ..core.view import State, View, image, known_diag, state


def picks(problem: Problem, view: View, now: State, kind: object, seed: np.random.SeedSequence) -> Weave:
    """Woven samplers: independent kinds alternate step by step, the others sweep by sweep."""
    n, p = problem.X.shape
    diag = np.ascontiguousarray(known_diag(view, now)) if kind == "norms" else np.empty(0)
    if not np.isfinite(diag).all():
        diag = np.ones(n + p)  # the first steps will say what is wrong with X
    one, two = seed.spawn(2)
    return Weave(
        sampler(kind, p, one, np.ascontiguousarray(diag[:p])),
        sampler(kind, n, two, np.ascontiguousarray(diag[p:])),
        sweep=kind not in ("norms", "uniform"),
    )


def start(problem: Problem, view: View, beta0: np.ndarray | None, alpha0: np.ndarray | None) -> State:
    """Both halves from β0: the columns' s = Xβ0 − y (kept conjugated), the rows' β = β0."""
    if beta0 is None:
        return state(view)
    n, p = problem.X.shape
    x = np.zeros(view.b.shape, view.b.dtype)
    if alpha0 is not None:  # β = Xᴴα anew, of this X
        x[:, p:] = alpha0
        beta0 = image(view, x)[:, n:]
    x[:, :p] = beta0.conj()
    s = view.s0 + image(view, x)
    s[:, n:] = beta0
    return state(view, x, s)
