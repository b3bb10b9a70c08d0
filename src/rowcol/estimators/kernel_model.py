"""What kernel estimators share: the kernel their parameters name, a fit, and values at new points."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils.validation import check_is_fitted

from ..asking import how_to
from ..checkpoints import closed, opened
from ..core.kernels import Function, Precomputed, kernel_of
from ..core.place import Place
from ..core.problem import array_of
from ..core.recipes import Kernel
from ..core.sides import leaves_of
from ..core.words import shown
from ..fitting import fit
from ..methods.choose import Plan
from ..methods.costs import budget
from ..methods.result import Result
from ..places.opening import placed
from .going_on import leave
from .validating import check_columns, take_columns, validated

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
    fit_intercept, solver, tol, max_iter, max_seconds, memory, warm_start, n_jobs, random_state, callback and
    progress.
    """

    result_: Result
    dual_coef_: np.ndarray
    intercept_: Any
    X_fit_: Any
    n_iter_: float

    def _kernel(self) -> Kernel:
        return self._kernel_named(self.kernel, length_scale=self.length_scale)

    def _kernel_named(self, kernel: Any, **more: Any) -> Kernel:
        """A kernel from what was given as one, and the parameters."""
        if callable(kernel) and not isinstance(kernel, Kernel):
            return Function(_Pairs(kernel, self.kernel_params or {}))
        named = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0, "nu": self.nu}
        return kernel_of(kernel, **named, **more)

    def _elsewhere(self, X: Place, y: Any) -> np.ndarray:
        """y of points that lie elsewhere, and are judged as they are read."""
        take_columns(self, X)
        return array_of(y, "y")

    def _start(self, shape: tuple[int, ...]) -> Any:
        """The coefficients of the last fit, if they are wanted and as many."""
        last = getattr(self, "dual_coef_", None)
        return last if self.warm_start and last is not None and last.shape == shape else None

    def _kinds(self) -> dict[str, Any]:
        """What X may be, for scikit-learn's validation."""
        dtype = getattr(self, "dtype", None)
        if dtype is None:
            return KINDS
        named = isinstance(dtype, (str, type, np.dtype))
        if not named or dtype not in ("float32", "float64", np.float32, np.float64):
            raise ValueError(f"dtype must be None, 'float32' or 'float64', got {shown(dtype)}")
        return KINDS | {"dtype": np.dtype(dtype)}

    def _asked(self) -> dict[str, Any]:
        """The parameters of a fit, as `solve` calls them."""
        return {
            "method": self.solver,
            "tol": self.tol,
            "max_passes": self.max_iter,
            "max_seconds": self.max_seconds,
            "sampler": "auto",
            "memory": self.memory,
            "n_jobs": self.n_jobs,
            "random_state": self.random_state,
            "callback": self.callback,
            "progress": self.progress,
        }

    def _solved(self, X: Any, y: Any, alpha: Any, sample_weight: Any, **changes: Any) -> Result:
        """One fit, as the parameters say but for `changes`, which may hold x0, a memo, a checkpoint, a team."""
        began = time.perf_counter()
        x0, memo, team = (changes.pop(name, None) for name in ("x0", "memo", "team"))
        centers = getattr(self, "n_centers", None)  # not all who inherit have it
        checkpoint, asked = changes.pop("checkpoint", None), self._asked() | changes
        how, kernel = how_to(**asked, kernel=True, called=("solver", "max_iter")), self._kernel()
        how.team = team
        given = {"alpha": alpha, "kernel": kernel, "n_centers": centers, "fit_intercept": self.fit_intercept, "x0": x0}
        x0 = opened(checkpoint, how, X, y, asked | given | {"sample_weight": sample_weight})
        result = fit(X, y, kernel, alpha, how, x0, sample_weight, self.fit_intercept, began, memo, centers)
        return closed(how, result)

    def _fit_to(self, X: Any, y: Any, alpha: Any, sample_weight: Any, **changes: Any) -> None:
        """Fit to X and y, which are validated; attributes change only when all is well."""
        checkpoint = changes.get("checkpoint")
        result = self._solved(X, y, alpha, sample_weight, **changes)
        self.result_ = result
        self.dual_coef_ = result.x
        self.intercept_ = 0.0 if result.intercept is None else result.intercept
        self.X_fit_ = X if result.function.centers is None else X[result.function.centers]
        self.n_iter_ = result.passes
        leave(self, [checkpoint], [result])

    @property
    def plan_(self) -> Plan:
        """What was done, and why."""
        check_is_fitted(self)
        assert self.result_.plan is not None
        return self.result_.plan

    def _points(self, X: Any, names: tuple | None = None) -> Any:
        """New points, validated; those that lie elsewhere as they are, and of parts of these the names are given."""
        check_is_fitted(self)
        X = placed(X, budget(self.memory))
        if isinstance(X, Place):
            check_columns(self, X)
            return X
        return validated(self, X, reset=False, names=names, **self._kinds())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        given = isinstance(self.kernel, Kernel) and any(isinstance(k, Precomputed) for k in leaves_of(self.kernel))
        tags.input_tags.pairwise = given or (isinstance(self.kernel, str) and self.kernel == "precomputed")
        return tags
