"""Standard errors: how far coefficients would spread, were y drawn again."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.centre import centred, scaled_shift
from ..core.problem import problem
from .costs import budget
from .factor import spectrum
from .given import scaled


def covariance(
    X: Any,
    sample_weight: Any,
    alpha: float,
    fit_intercept: bool,
    rss: float,
    memory: Any = None,
    total: float | None = None,
) -> np.ndarray:
    """s²A⁻¹GA⁻¹ with G = XᵀWX (of centred X, with an intercept), A = G + alpha and s² = rss/(Σw − tr(GA⁻¹) − 1).

    From the singular values of X, which are not squared on the way. Weights are repetitions, as everywhere. With
    `total` = Σw, X is what a stream has kept of them all, centred already.
    """
    n, p = X.shape
    if 6 * p * p * 8 > budget(memory):
        raise ValueError(f"a covariance of {p:,} coefficients needs about {48 * p * p / 1e9:.1f} GB: allow more memory")
    asked = problem(X, np.zeros(n), alpha, sample_weight)
    asked = centred(asked)[0] if fit_intercept and total is None else asked
    X, shift, w = asked.X, asked.shift, np.ones(n)
    if asked.weight is not None:
        w = asked.weight * asked.gauge
        X, shift = scaled(X, w), scaled_shift(shift, np.sqrt(w))
    factor, _ = spectrum(X, np.float64, False, shift, safely=True)
    assert factor.values is not None
    values = factor.values
    if alpha == 0 and (len(values) < p or values[-1] <= (max(n, p) * 2.0**-52) ** 2 * values[0]):
        raise ValueError(
            "X has not full column rank, so its coefficients have no covariance: say alpha > 0, or leave columns out"
        )
    share = values / (values + alpha)
    free = float((w.sum() if total is None else total) - share.sum() - fit_intercept)
    if free <= 0:
        raise ValueError(f"{n} rows leave nothing to estimate the noise of {p} coefficients from")
    return (factor.upper * (share**2 / np.where(values > 0, values, 1.0))) @ factor.upper.T * (rss / free)
