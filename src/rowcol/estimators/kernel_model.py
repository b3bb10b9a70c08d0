"""What kernel estimators share: the kernel their parameters name, a fit, and values at new points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils.validation import check_is_fitted, validate_data

from ..core.kernels import Function, Precomputed, kernel_of
from ..core.recipes import Kernel
from ..core.sides import leaves_of
from ..methods.choose import Plan
from ..methods.result import Result
from ..solving import solve

KINDS: dict[str, Any] = {"accept_sparse": ("csr", "csc"), "dtype": (np.float64, np.float32)}


@dataclass
class _Pairs:
    """A function of two points, as scikit-learn takes it, on blocks of them."""

    f: Callable[..., float]
    more: dict

    def __call__(self, A: Any, B: Any) -> np.ndarray:
        return pairwise_kernels(A, B, metric=self.f, **self.more)


class KernelModel(BaseEstimator):
    """A function of a kernel's space, found by `solve`.

    Those who inherit have the parameters kernel, gamma, degree, coef0, length_scale, nu and kernel_params; and
    fit_intercept, solver, tol, max_iter, max_seconds, memory, n_jobs, random_state, callback and progress.
    """

    result_: Result
    dual_coef_: np.ndarray
    intercept_: Any
    X_fit_: Any
    n_iter_: float

    def _kernel(self) -> Kernel:
        if callable(self.kernel) and not isinstance(self.kernel, Kernel):
            return Function(_Pairs(self.kernel, self.kernel_params or {}))
        named = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0, "nu": self.nu}
        return kernel_of(self.kernel, **named, length_scale=self.length_scale)

    def _fit_to(self, X: Any, y: Any, alpha: Any, sample_weight: Any, x0: Any = None) -> None:
        """Fit to X and y, which are validated; attributes change only when all is well."""
        result = solve(
            X,
            y,
            kernel=self._kernel(),
            n_centers=getattr(self, "n_centers", None),  # not all who inherit have it
            alpha=alpha,
            fit_intercept=self.fit_intercept,
            method=self.solver,
            tol=self.tol,
            max_passes=self.max_iter,
            max_seconds=self.max_seconds,
            x0=x0,
            sample_weight=sample_weight,
            memory=self.memory,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
            callback=self.callback,
            progress=self.progress,
        )
        self.result_ = result
        self.dual_coef_ = result.x
        self.intercept_ = 0.0 if result.intercept is None else result.intercept
        self.X_fit_ = X if result.function.centers is None else X[result.function.centers]
        self.n_iter_ = result.passes

    @property
    def plan_(self) -> Plan:
        """What was done, and why."""
        check_is_fitted(self)
        assert self.result_.plan is not None
        return self.result_.plan

    def _points(self, X: Any) -> Any:
        """New points, validated."""
        check_is_fitted(self)
        return validate_data(self, X, reset=False, **KINDS)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        given = isinstance(self.kernel, Kernel) and any(isinstance(k, Precomputed) for k in leaves_of(self.kernel))
        tags.input_tags.pairwise = given or (isinstance(self.kernel, str) and self.kernel == "precomputed")
        return tags
