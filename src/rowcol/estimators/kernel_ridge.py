"""`KernelRidge`: scikit-learn's, without its Gram matrix, and with a certificate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils.validation import check_is_fitted, validate_data

from ..core.kernels import Function, Precomputed, kernel_of
from ..core.recipes import Kernel
from ..core.sides import leaves_of
from ..solving import solve


@dataclass
class _Pairs:
    """A function of two points, as scikit-learn takes it, on blocks of them."""

    f: Callable[..., float]
    more: dict

    def __call__(self, A: Any, B: Any) -> np.ndarray:
        return pairwise_kernels(A, B, metric=self.f, **self.more)


class KernelRidge(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Kernel ridge regression, exact, in memory that grows with the number of points and not with its square.

    Parameters
    ----------
    alpha : float or array, (n_targets,) or (n_samples,)
        The penalty, above 0: one; one a target; or one a point (the variance of its noise). Where there are as many
        targets as points, it is one a target.
    kernel : str, rowcol kernel or callable
        "linear", "rbf", "laplacian", "matern", "poly", "polynomial", "sigmoid", "cosine", "chi2", "precomputed"; a
        kernel of `rowcol.kernels`, which may be a sum or product; or, as in scikit-learn, a function of two points.
    gamma, degree, coef0
        Of the named kernels, as in scikit-learn.
    length_scale, nu
        Of "rbf", "laplacian" and "matern": a number, or one a feature; 0.5, 1.5 or 2.5.
    kernel_params : dict, optional
        More arguments of a function.
    fit_intercept : bool
        Add an intercept that is not penalised.
    solver : {"auto", "pcg", "blocks", "direct", "rk", "cg"}
        As `method` of `rowcol.solve`.
    tol : float
        √(2·duality gap) ≤ tol‖y‖.
    max_iter : float, optional
        Passes over the kernel matrix before giving up.
    max_seconds : float, optional
        Seconds before giving up, with the best so far.
    memory : int or str, optional
        How much may be used beside X and y, in bytes or as "2 GB": half of what is free unless said.
    warm_start : bool
        Start from the coefficients of the last fit, if the points are as many.
    n_jobs : int, optional
        Threads. None obeys the environment variables.
    random_state : None, int or generator
        Of the pivots and blocks.
    progress : bool, optional
        A line on stderr; by default on a terminal only.

    Attributes
    ----------
    dual_coef_ : ndarray, (n_samples,) or (n_samples, n_targets)
    intercept_ : float or ndarray
    X_fit_ : array
    result_ : Result
        The certificate, the plan and the history.
    n_iter_ : float
        Passes.

    Examples
    --------
    >>> import numpy as np, rowcol
    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> model = rowcol.KernelRidge(alpha=1e-3, kernel="rbf", gamma=1.0).fit(X, np.sin(X[:, 0]))
    >>> bool(abs(model.predict([[1.0]])[0] - np.sin(1.0)) < 1e-3)
    True
    >>> model.result_.success
    True
    """

    def __init__(
        self,
        alpha: Any = 1.0,
        *,
        kernel: Any = "linear",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        length_scale: Any = None,
        nu: float = 1.5,
        kernel_params: dict | None = None,
        fit_intercept: bool = False,
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: float | None = None,
        max_seconds: float | None = None,
        memory: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        progress: bool | None = None,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.length_scale = length_scale
        self.nu = nu
        self.kernel_params = kernel_params
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.memory = memory
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress

    def _kernel(self) -> Kernel:
        if callable(self.kernel) and not isinstance(self.kernel, Kernel):
            return Function(_Pairs(self.kernel, self.kernel_params or {}))
        named = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0, "nu": self.nu}
        return kernel_of(self.kernel, **named, length_scale=self.length_scale)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRidge:
        """Fit to points X and targets y.

        Parameters
        ----------
        X : array or sparse array, (n_samples, n_features); (n_samples, n_samples) if the kernel is precomputed
        y : array, (n_samples,) or (n_samples, n_targets)
        sample_weight : float or array, (n_samples,), optional

        Returns
        -------
        self
        """
        kernel = self._kernel()
        kinds = {"accept_sparse": ("csr", "csc"), "multi_output": True, "y_numeric": True}
        X, y = validate_data(self, X, y, dtype=(np.float64, np.float32), **kinds)
        if isinstance(sample_weight, (Real, Integral)):
            sample_weight = np.full(X.shape[0], float(sample_weight))
        last = getattr(self, "dual_coef_", None)
        alpha: Any = self.alpha if np.size(self.alpha) != 1 else float(np.ravel(self.alpha)[0])
        if np.ndim(alpha) == 1 and y.ndim == 2 and len(alpha) == y.shape[1]:  # as in scikit-learn: one a target
            alpha = np.broadcast_to(alpha, y.shape)
        x0 = last if self.warm_start and last is not None and last.shape == y.shape else None
        self.result_ = solve(
            X,
            y,
            kernel=kernel,
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
            progress=self.progress,
        )
        self.dual_coef_ = self.result_.x
        self.intercept_ = 0.0 if self.result_.intercept is None else self.result_.intercept
        self.X_fit_ = X
        self.n_iter_ = self.result_.passes
        return self

    def predict(self, X: Any, return_bound: bool = False) -> Any:
        """Values at the points X, in chunks; with `return_bound`, also how far the exact solution's are, at most.

        Parameters
        ----------
        X : array or sparse array, (n, n_features); (n, n_samples) if the kernel is precomputed
        return_bound : bool
            |prediction − that of the exact solution| ≤ bound, point by point: safe, and often far too large.

        Returns
        -------
        ndarray, (n,) or (n, n_targets); with `return_bound`, a pair of them
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse=("csr", "csc"), dtype=(np.float64, np.float32))
        return self.result_.function(X, return_bound=return_bound)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        given = isinstance(self.kernel, Kernel) and any(isinstance(k, Precomputed) for k in leaves_of(self.kernel))
        tags.input_tags.pairwise = given or (isinstance(self.kernel, str) and self.kernel == "precomputed")
        return tags
