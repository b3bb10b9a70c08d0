"""What classifiers share: classes as targets of ±1, weights of classes, and the largest regression wins."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from ..core.words import shown
from .validating import weighed, worded


class Classes(ClassifierMixin):
    """Classes by regressions on ±1. Those who inherit have class_weight, and `_decide`: a column a class."""

    _labels: LabelBinarizer

    def _posed(self, y: Any, sample_weight: Any) -> tuple[LabelBinarizer, np.ndarray, Any]:
        """Targets of ±1, one column of them for two classes, and the weights of points and classes together."""
        with worded("y"):
            check_classification_targets(y)
            y = column_or_1d(y, warn=True) if y.ndim == 2 and y.shape[1] == 1 else y
            labels = LabelBinarizer(pos_label=1, neg_label=-1)
            targets = np.asarray(labels.fit_transform(y), dtype=np.float64)
        if targets.shape[1] == 1 and len(labels.classes_) < 2:
            raise ValueError(f"y has one class only, {shown(labels.classes_.tolist()[0])}: it takes at least 2")
        sample_weight = weighed(sample_weight, len(targets))
        if self.class_weight is not None:
            if not isinstance(self.class_weight, (dict, str)):
                raise ValueError(f"class_weight must be a dict, 'balanced' or None, got {shown(self.class_weight)}")
            with worded("class_weight"):
                own = compute_sample_weight(self.class_weight, y)
            sample_weight = own if sample_weight is None else own * sample_weight
        return labels, targets, sample_weight

    @property
    def classes_(self) -> np.ndarray:
        """The classes, in order."""
        check_is_fitted(self, "_labels")
        return self._labels.classes_

    @property
    def _multilabel(self) -> bool:
        return self._labels.y_type_.startswith("multilabel")

    def decision_function(self, X: Any) -> np.ndarray:
        """The regressions at X: of two classes, that of the second.

        Parameters
        ----------
        X : array or sparse array, (n_samples, n_features)

        Returns
        -------
        ndarray, (n_samples,) or (n_samples, n_classes)
        """
        scores = self._decide(X)
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """The class of every row of X; of several labels, 0 or 1 for each.

        Parameters
        ----------
        X : array or sparse array, (n_samples, n_features)

        Returns
        -------
        ndarray, (n_samples,) or (n_samples, n_labels)
        """
        scores = self.decision_function(X)
        if self._multilabel:
            return (scores > 0).astype(int)
        where = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[where]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows whose class is found, as in scikit-learn.

        Parameters
        ----------
        X : array or sparse array, (n_samples, n_features)
        y : array, (n_samples,) or (n_samples, n_labels)
        sample_weight : array, (n_samples,), optional

        Returns
        -------
        float
        """
        found = self.predict(X)
        with worded("y" if sample_weight is None else "y or sample_weight"):
            return float(accuracy_score(y, found, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
