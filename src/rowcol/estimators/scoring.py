"""Scores of predictions, by the scorers of scikit-learn, which want a model; and folds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import check_scoring, r2_score
from sklearn.metrics._scorer import _BaseScorer as Scorer
from sklearn.model_selection import check_cv

from ..core.words import shown
from .validating import worded

Score = Callable[[np.ndarray, np.ndarray, np.ndarray], float]  # truth, guess, weight


class Given(RegressorMixin, BaseEstimator):
    """Predictions, where a scorer wants a model."""

    def fit(self, X: Any, y: Any) -> Given:
        """Nothing to do."""
        return self

    def predict(self, X: Any) -> Any:
        """What it gets."""
        return X


def scorer_of(scoring: Any, single: bool, weighted: bool) -> Score:
    """The score of some predictions, (n, q): R² unless said; weights go to scorers that take them."""
    if scoring is not None and not isinstance(scoring, str) and not callable(scoring):
        raise TypeError(f"scoring must be a name of scikit-learn's, a function or None, got {shown(scoring)}")
    with worded("scoring"):
        score = None if scoring is None else check_scoring(Given(), scoring=scoring, allow_none=False)
    takes_weights = weighted and (score is None or isinstance(score, Scorer))

    def call(truth: np.ndarray, guess: np.ndarray, weight: np.ndarray) -> float:
        truth, guess = (truth[:, 0], guess[:, 0]) if single else (truth, guess)
        more = {"sample_weight": weight} if takes_weights else {}
        if score is not None:
            return float(score(Given(), guess, truth, **more))
        unit = -np.frexp(np.abs(truth).max(axis=0))[1]  # R² has no unit, and squares may leave float64
        return float(r2_score(np.ldexp(truth, unit), np.ldexp(guess, unit), **more))

    return call


def folds_of(cv: Any, X: Any, y: Any, weight: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Positions to fit and to predict, fold by fold; a row that is named twice to fit is there twice."""
    n = len(weight)
    with worded("cv"):
        folds = [
            (train, test)
            for train, test in (
                tuple(np.flatnonzero(a) if np.asarray(a).dtype == bool else np.asarray(a) for a in fold)
                for fold in check_cv(cv, y, classifier=False).split(X, y)
            )
        ]
    if not folds:
        raise ValueError("cv gives no folds")
    for side in (side for fold in folds for side in fold):
        if not side.size:
            raise ValueError("cv gives a fold with nothing to fit, or nothing to predict")
        if side.ndim != 1 or side.dtype.kind not in "iu" or side.min() < -n or side.max() >= n:
            raise ValueError(f"cv must give positions of rows, from 0 to {n - 1}, or masks of {n}; got {shown(side)}")
    if not all(weight[train].any() for train, _ in folds):
        raise ValueError(
            "cv gives a fold in which all rows to fit have sample_weight 0: they are as if they were not there"
        )
    return [(train % n, test % n) for train, test in folds]
