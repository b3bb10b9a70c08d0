"""`KernelRidgeClassifier`: kernel ridge regression on ±1, all classes on the same tiles; probabilities on request."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..core.place import Place
from ..core.problem import numbers_of, weights
from ..core.words import shown
from ..methods.costs import budget
from ..methods.progress import Progress
from ..places.opening import gathered
from .calibration import Calibration, calibrated, folds_of, in_folds, left_out
from .classes import Classes
from .going_on import checkpoints_of
from .kernel_model import KINDS, KernelModel
from .validating import check_parameters, names_of, validated

A_COLUMN = 160  # bytes a point: a solve keeps twenty vectors for it
LOOSE = 1e-3  # folds are solved to this at the most: probabilities are not known to more


def _with_probability(model: Any) -> bool:
    if not model.probability:
        raise AttributeError("predict_proba needs probability=True, said before fit")
    return True


class KernelRidgeClassifier(Classes, KernelModel):
    """Classes by kernel ridge regression on targets of ±1: the largest of the regressions wins.

    Parameters
    ----------
    alpha : float or array, (n_classes,)
        The penalty, above 0: one, or one a class (one label).
    kernel, gamma, degree, coef0, length_scale, nu, kernel_params
        As of `KernelRidge`.
    fit_intercept : bool
        Fit an intercept, which is not penalised. Then the regressions of several classes sum to a constant, and far
        from all points they tend to the shares of the classes; without one, to a draw.
    solver, tol, max_iter, max_seconds, memory, warm_start, n_jobs, random_state
        As of `KernelRidge`, for the regression of every class. Folds are random too.
    class_weight : dict or "balanced", optional
        Weights of the classes, as in scikit-learn.
    probability : bool
        Fit `predict_proba` too, to the values of five regressions a class at the fifth of the points that each left
        out: five times as many columns, on the same tiles. Probabilities are those of the points as they are weighted.
    callback : callable, optional
        Called after every round with a `Progress`, of the folds first where there are any; what is being solved stops
        if it returns something true.
    progress : bool, optional
        A line on stderr; by default on a terminal only.

    Attributes
    ----------
    classes_ : ndarray
    dual_coef_ : ndarray, (n_samples, 1) for two classes, or (n_samples, n_classes)
    intercept_ : ndarray, (1,) or (n_classes,); 0.0 without one
    calibration_ : list of Calibration
        How values become probabilities: one for all classes, or one a label. With `probability` only.
    X_fit_, result_, plan_, n_iter_, n_features_in_, feature_names_in_
        As of `KernelRidge`; of the regressions on all points.

    Examples
    --------
    >>> import numpy as np, rowcol
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 2))
    >>> y = np.where((X**2).sum(axis=1) < 1.4, "inside", "outside")
    >>> model = rowcol.KernelRidgeClassifier(alpha=0.1, probability=True, random_state=0).fit(X, y)
    >>> model.predict([[0.1, 0.2], [2.0, -1.0]]).tolist()
    ['inside', 'outside']
    >>> bool(model.predict_proba([[0.1, 0.2]])[0, 0] > 0.9), model.result_.success
    (True, True)
    """

    calibration_: list[Calibration]

    def __init__(
        self,
        alpha: Any = 1.0,
        *,
        kernel: Any = "rbf",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        length_scale: Any = None,
        nu: float = 1.5,
        kernel_params: dict | None = None,
        fit_intercept: bool = True,
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: float | None = None,
        max_seconds: float | None = None,
        class_weight: Any = None,
        probability: bool = False,
        memory: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        callback: Callable[[Progress], object] | None = None,
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
        self.class_weight = class_weight
        self.probability = probability
        self.memory = memory
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback
        self.progress = progress

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRidgeClassifier:
        """Fit to points X and classes y.

        Parameters
        ----------
        X : array or sparse array, (n_samples, n_features); (n_samples, n_samples) if the kernel is precomputed
        y : array, (n_samples,), or (n_samples, n_labels) of 0 and 1 for several labels at once
        sample_weight : float or array, (n_samples,), optional
            A weight of 2 is the same as having the point twice.

        Returns
        -------
        self
        """
        self._kernel()  # parameters first
        check_parameters(self, kernel=True)
        columns, X = names_of(X), gathered(X, budget(self.memory))
        X, y = validated(self, X, y, names=columns, multi_output=True, **KINDS)
        labels, targets, sample_weight = self._posed(y, sample_weight)
        alpha = _penalty(self.alpha, targets)
        if not self.probability:
            self._fit_to(X, targets, alpha, sample_weight, **self._warmly(targets.shape))
            self._labels = labels
            self.__dict__.pop("calibration_", None)  # of an earlier fit
            return self
        began, left = time.perf_counter(), self.max_seconds
        one_by_one = labels.y_type_.startswith("multilabel")
        found = self._calibrated(X, targets, alpha, sample_weight, one_by_one)
        if left is not None:  # the folds have taken no more than half of it
            left = max(left - (time.perf_counter() - began), left / 2)
        self._fit_to(X, targets, alpha, sample_weight, **self._warmly(targets.shape), max_seconds=left)
        self._labels, self.calibration_ = labels, found
        return self

    def _warmly(self, shape: tuple[int, ...]) -> dict[str, Any]:
        """The start of a fit, and what it goes on from."""
        return {"x0": self._start(shape), "checkpoint": checkpoints_of(self)[0]}

    def _calibrated(self, X: Any, targets: np.ndarray, alpha: Any, sample_weight: Any, labels: bool) -> list:
        """How values become probabilities, by folds that are columns of one solve; of a few, where memory is short."""
        n, many = targets.shape
        w = np.ones(n) if sample_weight is None else weights(sample_weight, n)
        fold = folds_of(X, targets, w, self.random_state)
        count = int(fold.max()) + 1
        room = budget(self.memory) // (2 * A_COLUMN * n * (many + 1))  # in folds; half of it is for other things
        groups = np.array_split(np.arange(count), -(-count // max(min(room, count), 1)))
        less: dict[str, Any] = {"tol": max(self.tol, LOOSE)}
        less |= {} if self.max_seconds is None else {"max_seconds": self.max_seconds / 2 / len(groups)}
        scores = np.zeros_like(targets)
        for some in groups:
            result = self._solved(X, *in_folds(targets, alpha, fold, some), sample_weight, **less)
            scores += left_out(result, fold, some)
        at, own = fold >= 0, np.split(np.arange(many), many) if labels else [np.arange(many)]
        return [calibrated(scores[at][:, columns], targets[at][:, columns], w[at]) for columns in own]

    def _decide(self, X: Any) -> np.ndarray:
        X = self._points(X)
        if isinstance(X, Place):
            points = (self._points(part, X.names) for _, part in X.parts())
            return np.concatenate([self.result_.function(part) for part in points])
        return self.result_.function(X)

    @available_if(_with_probability)
    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of every class, calibrated at points left out; of several labels, of each that it is 1.

        Parameters
        ----------
        X : array or sparse array, (n_samples, n_features)

        Returns
        -------
        ndarray, (n_samples, n_classes), with rows that sum to one; or (n_samples, n_labels)
        """
        check_is_fitted(self, "calibration_")
        scores = self._decide(X)
        if self._multilabel:
            return np.hstack([c(scores[:, [k]])[:, 1:] for k, c in enumerate(self.calibration_)])
        return self.calibration_[0](scores)


def _penalty(alpha: Any, targets: np.ndarray) -> Any:
    """One alpha, or one a class, as `solve` takes them."""
    value = numbers_of(alpha, "alpha", "a number above 0, or one a class")
    if not ((value > 0) & np.isfinite(value)).all():
        raise ValueError(f"alpha must be above 0 and finite, for every class, got {shown(alpha)}")
    if value.size == 1:
        return alpha if value.ndim == 0 else value.ravel()[0]
    if value.shape != targets.shape[1:]:
        raise ValueError(
            f"alpha must be a number above 0, or one a class: there are {targets.shape[1]} regressions, got shape "
            f"{value.shape}"
        )
    return np.broadcast_to(value, targets.shape)
