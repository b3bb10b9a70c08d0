"""`RidgeClassifier`: ridge regression on ±1, one column a class, all of them in one solve."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator

from ..methods.costs import budget
from ..places.opening import gathered
from .classes import Classes
from .linear import KINDS, Linear
from .validating import check_parameters, names_of, validated


class RidgeClassifier(Classes, Linear, BaseEstimator):
    """Classes by ridge regression on targets of ±1: the largest of the regressions wins.

    Parameters
    ----------
    alpha : float or array, (n_classes,)
        The penalty, at least 0: one, or one a class (one label).
    fit_intercept : bool
        Fit an intercept, which is not penalised.
    tol : float
        √(2·duality gap) ≤ tol‖y − ȳ‖ for the regression of every class.
    max_iter : float, optional
        Passes over X before giving up.
    max_seconds : float, optional
        Seconds before giving up, with the best so far.
    class_weight : dict or "balanced", optional
        Weights of the classes, as in scikit-learn.
    solver : str
        "auto", or any `method` of `rowcol.solve`.
    positive : bool
        Keep every coefficient at 0 or above.
    warm_start : bool
        Start from the last fit.
    random_state, memory, n_jobs, callback, progress
        As of `Ridge`.

    Attributes
    ----------
    coef_ : ndarray, (1, n_features) for two classes, or (n_classes, n_features)
    intercept_ : ndarray, (1,) or (n_classes,)
    classes_ : ndarray
    dual_coef_, result_, plan_, n_iter_, solver_, n_features_in_, feature_names_in_
        As of `Ridge`.

    Examples
    --------
    >>> import numpy as np, rowcol
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> rowcol.RidgeClassifier().fit(X, ["no", "no", "yes", "yes"]).predict([[0.5], [-3.0]]).tolist()
    ['yes', 'no']
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: float | None = None,
        max_seconds: float | None = None,
        class_weight: Any = None,
        solver: str = "auto",
        positive: bool = False,
        warm_start: bool = False,
        random_state: Any = None,
        memory: Any = None,
        n_jobs: int | None = None,
        callback: Any = None,
        progress: bool | None = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.class_weight = class_weight
        self.solver = solver
        self.positive = positive
        self.warm_start = warm_start
        self.random_state = random_state
        self.memory = memory
        self.n_jobs = n_jobs
        self.callback = callback
        self.progress = progress

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RidgeClassifier:
        """Fit to X and classes y.

        Parameters
        ----------
        X : array or sparse array, (n_samples, n_features)
        y : array, (n_samples,), or (n_samples, n_labels) of 0 and 1 for several labels at once
        sample_weight : float or array, (n_samples,), optional

        Returns
        -------
        self
        """
        check_parameters(self)
        names, X = names_of(X), gathered(X, budget(self.memory), 0)
        X, y = validated(self, X, y, names=names, multi_output=True, ensure_all_finite=False, **KINDS)
        self._labels, targets, sample_weight = self._posed(y, sample_weight)
        self._solve(X, targets, self.alpha, sample_weight)
        return self
