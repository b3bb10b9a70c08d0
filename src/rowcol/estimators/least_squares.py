"""`LeastSquares`: the least-squares solution, and of many the shortest; it says which it found."""

from __future__ import annotations

from typing import Any

from .linear import Ridge


class LeastSquares(Ridge):
    """Least squares: min ‖y − Xβ − b‖², and of all such β the shortest; certified.

    What was found is said: `result_.solution` is "unique", "least squares", "minimum norm", "minimum-norm least
    squares", each only where it is so.

    Parameters
    ----------
    fit_intercept, tol, max_iter, max_seconds, solver, positive, warm_start, covariance, random_state, memory, n_jobs, \
callback, progress, checkpoint
        As of `Ridge`. tol: ‖y − Xβ − b‖ ≤ tol‖y − ȳ‖ if that can be had, or else |X_j·r| ≤ tol‖X_j‖‖r‖, column by
        column.

    Attributes
    ----------
    coef_, intercept_, result_, plan_, n_iter_, solver_, covariance_, standard_errors_, n_features_in_, \
feature_names_in_
        As of `Ridge`. The covariance is s²(XᵀWX)⁻¹ with s² = ‖W^½r‖²/(Σw − p − 1).
    dual_coef_ : ndarray or None
        α with β = (X − x̄)ᵀα, where rows were stepped on.

    Examples
    --------
    >>> import numpy as np, rowcol
    >>> model = rowcol.LeastSquares(fit_intercept=False).fit(np.array([[1.0, 1.0]]), [2.0])
    >>> model.coef_.round(9).tolist(), model.result_.solution
    ([1.0, 1.0], 'minimum norm')
    """

    def __init__(
        self,
        *,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: float | None = None,
        max_seconds: float | None = None,
        solver: str = "auto",
        positive: bool = False,
        warm_start: bool = False,
        covariance: bool = False,
        random_state: Any = None,
        memory: Any = None,
        n_jobs: int | None = None,
        callback: Any = None,
        progress: bool | None = None,
        checkpoint: Any = None,
    ) -> None:
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.solver = solver
        self.positive = positive
        self.warm_start = warm_start
        self.covariance = covariance
        self.random_state = random_state
        self.memory = memory
        self.n_jobs = n_jobs
        self.callback = callback
        self.progress = progress
        self.checkpoint = checkpoint

    def _penalty(self) -> float:
        return 0.0
