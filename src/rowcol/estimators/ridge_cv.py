"""`RidgeCV`: ridge regression that chooses its alpha, by leave-one-out or by folds that share their work."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin

from ..core.problem import numbers_of, weights
from ..core.words import shown
from ..methods.costs import budget
from ..methods.validate import cheap, left_out, predictions
from ..pathing import ridge_path
from ..places.opening import gathered
from .linear import KINDS, Linear
from .scoring import folds_of, scorer_of
from .validating import Regressor, check_parameters, names_of, validated, weighed

log = logging.getLogger(__name__)

ROUGH = 1e-4  # tolerance of the fits that are only compared


class RidgeCV(MultiOutputMixin, Regressor, Linear, BaseEstimator):
    """Ridge regression with alpha chosen by how well it predicts what it has not seen; then fitted, certified, to all.

    Parameters
    ----------
    alphas : array, (k,)
        The choice, all above 0.
    fit_intercept : bool
        Fit an intercept, which is not penalised.
    scoring : str or callable, optional
        As in scikit-learn: the mean squared error if cv is None, R² otherwise, unless said. A function of your own is
        called with a model whose `predict` gives back what it gets, predictions in place of X, and y.
    cv : None, int, splitter or iterable
        None leaves out one row at a time, exactly, from one factorization; where that would be dear (both n and p in
        the thousands) it is 5 folds instead, which `cv_` tells. Otherwise folds as in scikit-learn. All folds and
        alphas share one Gram matrix of the smaller side where that is cheap; or else every fold is one `ridge_path`.
    store_cv_results : bool
        With cv=None: keep the squared errors times their weights (or predictions, with scoring) as `cv_results_`.
    alpha_per_target : bool
        With cv=None: an alpha for every target.
    tol, max_iter, max_seconds, solver, random_state, memory, n_jobs, callback, progress
        Of the final fit: as of `Ridge`. Where the callback has an attribute `asked` that becomes true, no more folds
        are begun.

    Attributes
    ----------
    alpha_ : float or ndarray, (n_targets,)
    best_score_ : float or ndarray, (n_targets,)
    scores_ : ndarray, (k,), (k, n_targets) with alpha_per_target
        The mean score of every alpha.
    cv_results_ : ndarray, (n_samples, k) or (n_samples, n_targets, k)
        On request.
    cv_ : str
        What was done: "leave-one-out" or "5 folds", and how.
    coef_, intercept_, dual_coef_, result_, plan_, n_iter_, solver_, n_features_in_, feature_names_in_
        As of `Ridge`.

    Examples
    --------
    >>> import numpy as np, rowcol
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 30))
    >>> model = rowcol.RidgeCV(np.logspace(-3, 3, 7)).fit(X, X[:, 0] + rng.standard_normal(100))
    >>> float(model.alpha_), model.cv_
    (10.0, 'leave-one-out, from one factorization')
    """

    def __init__(
        self,
        alphas: Any = (0.1, 1.0, 10.0),
        *,
        fit_intercept: bool = True,
        scoring: Any = None,
        cv: Any = None,
        store_cv_results: bool = False,
        alpha_per_target: bool = False,
        tol: float = 1e-6,
        max_iter: float | None = None,
        max_seconds: float | None = None,
        solver: str = "auto",
        random_state: Any = None,
        memory: Any = None,
        n_jobs: int | None = None,
        callback: Any = None,
        progress: bool | None = None,
    ) -> None:
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.scoring = scoring
        self.cv = cv
        self.store_cv_results = store_cv_results
        self.alpha_per_target = alpha_per_target
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.solver = solver
        self.random_state = random_state
        self.memory = memory
        self.n_jobs = n_jobs
        self.callback = callback
        self.progress = progress

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RidgeCV:
        """Choose alpha, and fit.

        Parameters
        ----------
        X : array or sparse array, (n_samples, n_features)
        y : array, (n_samples,) or (n_samples, n_targets)
        sample_weight : float or array, (n_samples,), optional

        Returns
        -------
        self
        """
        check_parameters(self)
        alphas = np.atleast_1d(numbers_of(self.alphas, "alphas"))
        names, X = names_of(X), gathered(X, budget(self.memory), 0)
        X, y = validated(self, X, y, names=names, multi_output=True, y_numeric=True, **KINDS)
        y = np.asarray(y)
        if alphas.ndim != 1 or not alphas.size or not (np.isfinite(alphas).all() and (alphas > 0).all()):
            raise ValueError(f"alphas must be numbers above 0, got {shown(self.alphas)}")
        if self.cv is not None and (self.store_cv_results or self.alpha_per_target):
            raise ValueError("store_cv_results and alpha_per_target are for leave-one-out: cv=None")
        w = None if sample_weight is None else weights(weighed(sample_weight, X.shape[0]), X.shape[0])
        memory = budget(self.memory)
        if self.cv is None and cheap(X, 0, memory):
            self._leave_one_out(X, y, w, alphas)
        elif self.store_cv_results or self.alpha_per_target:
            raise ValueError(f"leave-one-out on {X.shape[0]} x {X.shape[1]} is too dear: say cv=5")
        else:
            self._folds(X, y, w, alphas, memory)
        log.info("%s: alpha %s of %d, score %s", self.cv_, self.alpha_, len(alphas), self.best_score_)
        self._solve(X, y, self.alpha_, w)
        return self

    def _leave_one_out(self, X: Any, y: np.ndarray, w: np.ndarray | None, alphas: np.ndarray) -> None:
        self.cv_ = "leave-one-out, from one factorization"
        live = np.arange(len(y)) if w is None else np.flatnonzero(w)
        Y, weight = y.reshape(len(y), -1).astype(float)[live], np.ones(len(live)) if w is None else w[live]
        found = left_out(X if live.size == len(y) else X[live], Y, weight, alphas, self.fit_intercept)
        if self.scoring is None:
            squared = (found - Y) ** 2
            by_target = -np.einsum("n,knq->kq", weight / weight.sum(), squared)
            kept = squared * weight[:, None]
        else:
            kept = found
            parts = [[j] for j in range(Y.shape[1])] if self.alpha_per_target else [list(range(Y.shape[1]))]
            score = scorer_of(self.scoring, len(parts[0]) == 1, w is not None)
            by_target = np.array([[score(Y[:, j], one[:, j], weight) for j in parts] for one in found])
        if self.alpha_per_target and y.ndim == 2:
            best = by_target.argmax(axis=0)
            self.scores_, self.alpha_ = by_target, alphas[best]
            self.best_score_ = by_target[best, np.arange(len(best))]
        else:
            self._choose(alphas, by_target.mean(axis=1))
        if self.store_cv_results:
            full = np.full((len(alphas), len(y), Y.shape[1]), np.nan)
            full[:, live] = kept
            self.cv_results_ = full.transpose(1, 2, 0) if y.ndim == 2 else full[:, :, 0].T

    def _folds(self, X: Any, y: np.ndarray, w: np.ndarray | None, alphas: np.ndarray, memory: int) -> None:
        folds = folds_of(5 if self.cv is None else self.cv, X, y, np.ones(len(y)) if w is None else w)
        Y = y.reshape(len(y), -1).astype(float)
        if cheap(X, len(folds), memory):
            found = predictions(X, Y, np.ones(len(y)) if w is None else w, alphas, self.fit_intercept, folds)
            how = "one Gram matrix"
        else:
            found, how = [], "a path each"
            for fold in folds:
                if found and getattr(self.callback, "asked", False):  # a person would rather have what there is
                    break
                found.append(self._fold(X, Y, w, alphas, *fold))
            folds = folds[: len(found)]
        dear = ", as leaving one out would be dear" if self.cv is None else ""
        self.cv_ = f"{len(folds)} folds, by {how}{dear}"
        score = scorer_of(self.scoring, y.ndim == 1, w is not None)
        scores = np.empty((len(alphas), len(folds)))
        for f, ((_, test), fold) in enumerate(zip(folds, found, strict=True)):
            weight = np.ones(len(test)) if w is None else w[test]
            for k, one in enumerate(fold):
                scores[k, f] = score(Y[test], one, weight)
        self._choose(alphas, scores.mean(axis=1))

    def _fold(self, X: Any, Y: np.ndarray, w: Any, alphas: np.ndarray, train: np.ndarray, test: np.ndarray) -> Any:
        rows = X.tocsr() if hasattr(X, "tocsr") else X
        path = ridge_path(
            rows[train],
            Y[train],
            alphas,
            fit_intercept=self.fit_intercept,
            tol=max(self.tol, ROUGH),
            sample_weight=None if w is None else w[train],
            memory=self.memory,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
            progress=self.progress,
        )
        k, q, p = path.coef.shape
        flat = path.coef.reshape(k * q, p)
        return np.asarray(rows[test] @ flat.T).T.reshape(k, q, -1).transpose(0, 2, 1) + path.intercept[:, None, :]

    def _choose(self, alphas: np.ndarray, scores: np.ndarray) -> None:
        if np.isnan(scores).all():
            raise ValueError(
                "no score is a number: R² needs two rows in every fold; say scoring='neg_mean_squared_error'"
            )
        best = int(np.nanargmax(scores))
        self.scores_, self.alpha_, self.best_score_ = scores, float(alphas[best]), float(scores[best])
