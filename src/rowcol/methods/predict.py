"""How fast a route should be: the paper's rates, from the singular values of a sample of X."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from ..core.problem import Problem
from ..core.rates import conjugate_rate, ridge_step_rate, steps_to
from .choose import Choice
from .costs import gram_passes

LARGEST = 600  # unknowns of which singular values are taken


def predict(
    asked: Problem, choice: Choice, tol: float, seed: np.random.SeedSequence
) -> tuple[float | None, float | None]:
    """What the error is multiplied by in a pass, and how many passes the tolerance takes; None where that is not cheap.

    Singular values of a sample of four rows an unknown stand for those of X: good enough where rows are alike.
    """
    X = asked.X
    n, p = X.shape
    if choice.route == "subset":
        return None, 1.0 + len(choice.sample.rows) / n if choice.sample is not None else None
    if choice.route == "direct":
        return None, gram_passes(X, len(asked.y))
    if isinstance(X, LinearOperator) or min(n, p) > LARGEST:
        return None, None
    m, long = min(n, p), max(n, p)
    where = np.sort(np.random.default_rng(seed).choice(long, min(4 * m, long), replace=False))
    part = X.tocsc()[:, where] if sp.issparse(X) and n < p else X.tocsr()[where] if sp.issparse(X) else None
    if part is None:
        part = X[:, where] if n < p else X[where]
    part = part.toarray() if sp.issparse(part) else part
    if asked.shift is not None:
        rows, columns = (slice(None), where) if n < p else (where, slice(None))
        part = part - np.multiply.outer(asked.shift.ones[rows], asked.shift.mean[columns])
    values = np.linalg.svd(np.asarray(part, asked.y.dtype), compute_uv=False) ** 2 * (long / len(where))
    # A sample spreads the values by (1 ± √(m/k))², as random matrices do; all of X by (1 ± √(m/N))² only.
    few, all_ = math.sqrt(m / len(where)), math.sqrt(m / long)
    if few < 1:
        values[-1] = min(values[-1] * ((1 - all_) / (1 - few)) ** 2, values.mean())
        values[0] = max(values[0] * ((1 + all_) / (1 + few)) ** 2, values.mean())
    trace, low, high, lam = float(values.sum()), float(values[-1]), float(values[0]), asked.alpha
    if choice.route in ("cg", "sgs-cg", "sketch", "blocks"):
        rate = conjugate_rate(low + lam, high + lam)  # of the energy norm of the error, an iteration
    else:
        # (25), (26), (36), (38): E‖error‖² falls by 1 − (σ_min + λ)/(Tr + mλ) a step
        lines = {"rk": n, "rcd": p}.get(choice.route, n + p)
        smallest = (low if lines <= m or lam == 0 else 0.0) + lam
        rate = ridge_step_rate(smallest - lam, trace, lines, lam) ** (lines / 2)
    passes = steps_to(rate, tol) if 0 < rate < 1 - 1e-9 else None
    return rate, passes
