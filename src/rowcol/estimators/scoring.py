"""Scores of predictions, by the scorers of scikit-learn, which want a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import check_scoring, r2_score
from sklearn.metrics._scorer import _BaseScorer as Scorer

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
