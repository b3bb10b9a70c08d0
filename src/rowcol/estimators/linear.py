"""`Ridge`: scikit-learn's, by rows or by columns, with a certificate; and what linear estimators share."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator
from sklearn.base import BaseEstimator, MultiOutputMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..core.place import Place
from ..core.problem import array_of, numbers_of, penalties
from ..methods.costs import BY_LINES, budget
from ..methods.errors import covariance
from ..methods.result import Result, dual_here
from ..methods.stream import Stream, absorb, stream
from ..places.opening import placed
from ..solving import solve
from .going_on import checkpoints_of, leave, room_of
from .validating import Regressor, check_columns, check_parameters, take_columns, validated, weighed

KINDS = {"accept_sparse": ("csr", "csc"), "dtype": (np.float64, np.float32)}


class Linear:
    """What linear estimators share: one solve, and X @ coef_ + intercept_."""

    def _solve(self: Any, X: Any, y: np.ndarray, alpha: Any, sample_weight: Any) -> None:
        """Solve, together where the targets' alphas allow, and set what was learned."""
        if np.iscomplexobj(X) or np.iscomplexobj(y):
            raise ValueError("Complex data not supported")
        many = y.ndim == 2
        bounded = getattr(self, "positive", False)
        groups = _groups(alpha, y.shape[1] if many else 1, "rcd" if bounded else self.solver)
        x0 = self._start(X, y) if len(groups) == 1 else None
        if len(groups) > 1 and getattr(self, "checkpoint", None) is not None:
            raise ValueError(
                f"checkpoint is for one solve, and these alphas take {len(groups)}: fit targets by themselves"
            )
        results, checkpoints = [], checkpoints_of(self, len(groups))
        for (columns, one), checkpoint in zip(groups, checkpoints, strict=True):
            options = {
                "alpha": one,
                "fit_intercept": self.fit_intercept,
                "method": self.solver,
                "tol": self.tol,
                "max_passes": self.max_iter,
                "max_seconds": self.max_seconds,
                "x0": x0,
                "sample_weight": sample_weight,
                "memory": self.memory,
                "n_jobs": self.n_jobs,
                "random_state": self.random_state,
                "callback": self.callback,
                "progress": self.progress,
                "checkpoint": checkpoint,
            }
            if bounded:
                options["bounds"] = (0.0, np.inf)
            results.append(solve(X, y[:, columns] if many else y, **options))
        self._set(results, [c for c, _ in groups], many)
        self.n_iter_ = max(int(np.ceil(max(r.passes for r in results))), 1)
        self.solver_ = ", ".join(sorted({r.method for r in results}))
        self.plan_ = results[0].plan
        leave(self, checkpoints, results)

    def _elsewhere(self: Any, X: Place, y: Any) -> np.ndarray:
        """y of an X in parts, whose rows are judged as they are read."""
        take_columns(self, X)
        if getattr(self, "covariance", False):
            raise ValueError("covariance=True needs X in memory: leave it out")
        if getattr(self, "positive", False):
            raise ValueError("positive=True needs columns, and rows lie elsewhere: load X into memory")
        return array_of(y, "y")

    def _set(self: Any, results: list[Result], columns: list[Any], many: bool) -> None:
        self.result_ = results[0] if len(results) == 1 else tuple(results)
        whole = results[0]
        if len(results) == 1:
            coef, dual, intercept = whole.x, dual_here(whole), whole.intercept
        else:
            order = np.argsort(np.concatenate(columns))
            coef = np.hstack([r.x for r in results])[:, order]
            duals = [dual for dual in map(dual_here, results) if dual is not None]
            dual = np.hstack(duals)[:, order] if len(duals) == len(results) else None
            intercept = np.concatenate([r.intercept for r in results])[order] if self.fit_intercept else None
        self.coef_ = coef.T if many else coef
        self.dual_coef_ = dual
        self.intercept_ = 0.0 if intercept is None else intercept  # in double precision: it is as large as means are

    def _start(self: Any, X: Any, y: np.ndarray) -> Any:
        last = getattr(self, "result_", None)
        if not getattr(self, "warm_start", False) or not isinstance(last, Result):
            return None
        if last.x.shape != (X.shape[1], *y.shape[1:]):
            return None
        with np.errstate(over="ignore"):
            if not np.abs(last.x).max(initial=0.0) <= 1e100 * np.abs(y).max(initial=1e-200):
                return None  # of another world
        # α of other rows is no start
        dual = dual_here(last)
        return last if dual is not None and len(dual) == X.shape[0] else last.x

    def _decide(self: Any, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = placed(X, budget(getattr(self, "memory", None)))
        if isinstance(X, Place):
            check_columns(self, X)
            return np.concatenate(list(X.map(_decided, (self.coef_, self.intercept_))))
        X = validated(self, X, reset=False, **KINDS)
        return _decided(X, None, self.coef_, self.intercept_)

    def predict(self: Any, X: Any) -> np.ndarray:
        """X @ coef_ + intercept_.

        Parameters
        ----------
        X : array or sparse array, (n_samples, n_features)

        Returns
        -------
        ndarray, (n_samples,) or (n_samples, n_targets)
        """
        return self._decide(X)

    def __sklearn_tags__(self: Any) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        bounded = getattr(self, "positive", False)
        tags.input_tags.sparse = not (bounded and self.fit_intercept)
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")


def _decided(X: Any, pool: Any, coef: np.ndarray, intercept: Any) -> np.ndarray:
    return np.asarray(X @ coef.T + intercept)


def _groups(alpha: Any, q: int, solver: str) -> list[tuple[Any, Any]]:
    """Targets that can be solved together, and their alpha: those with none and those with one apart."""
    value = numbers_of(alpha, "alpha", "a number, or one a target")
    if value.size == 1:
        return [(slice(None), float(value.ravel()[0]))]
    if value.shape != (q,):
        raise ValueError(f"alpha must be a number, or one a target: there are {q} targets, got shape {value.shape}")
    zero = value == 0
    if solver in (*BY_LINES, "subset"):  # single steps take one alpha at a time
        return [(np.flatnonzero(value == a), a) for a in np.unique(value)]
    if zero.any() and not zero.all():
        return [(np.flatnonzero(zero), 0.0), (np.flatnonzero(~zero), value[~zero])]
    penalties(value, q)
    return [(slice(None), value)]


def _unbounded(model: Any) -> bool:
    if model.positive:
        raise AttributeError("partial_fit keeps no rows, without which positive=True cannot be kept: fit all together")
    return True


class Ridge(MultiOutputMixin, Regressor, Linear, BaseEstimator):
    """Ridge regression: min ‖y − Xβ − b‖² + alpha ‖β‖², certified.

    Parameters
    ----------
    alpha : float or array, (n_targets,)
        The penalty, at least 0: one, or one a target.
    fit_intercept : bool
        Fit b, which is not penalised. X is neither copied nor made dense for it.
    tol : float
        √(2·duality gap) ≤ tol‖y − ȳ‖, whatever the solver. (With alpha = 0, as `rowcol.solve` has it.)
    max_iter : float, optional
        Passes over X before giving up; 1000 unless said.
    max_seconds : float, optional
        Seconds before giving up, with the best so far.
    solver : str
        "auto", or any `method` of `rowcol.solve`: "rk" (rows), "rcd" (columns), "sgs-cg", "cg", "direct", ...
    positive : bool
        Keep every coefficient at 0 or above: by columns.
    warm_start : bool
        Start from the last fit; from its α where the rows are as many, so that on the same X the start is exact also
        when X is wide. A fit that was cut short, by `max_iter`, `max_seconds`, a callback or Ctrl-C, goes on if X, y,
        weights and parameters are the same, to the same bits as one that was not; `max_iter` may be another, and where
        it was used up it counts anew. What that takes in memory is what a checkpoint holds.
    covariance : bool
        Set `covariance_` and `standard_errors_`. Takes a factorization and memory for p x p numbers.
    random_state : None, int or generator
        Of picks and sketches.
    memory : int or str, optional
        How much may be used beside X and y, in bytes or as "2 GB": half of what is free unless said.
    n_jobs : int, optional
        Threads. None obeys the environment variables.
    callback : callable, optional
        Called after every round with a `Progress`; the fit stops if it returns something true.
    progress : bool, optional
        A line on stderr; by default on a terminal only.
    checkpoint : str, Path or Checkpoint, optional
        A file to write to what `fit` has done so far; if it is there, `fit` goes on from it. As of `rowcol.solve`.

    Attributes
    ----------
    coef_ : ndarray, (n_features,) or (n_targets, n_features)
    intercept_ : float or ndarray, (n_targets,)
    dual_coef_ : ndarray, (n_samples,) or (n_samples, n_targets), or None
        α = W(y − Xβ − b)/alpha, with β = (X − x̄)ᵀα. None after `partial_fit`, which keeps no rows.
    result_ : Result
        The certificate, the status and the history; a tuple of them where targets had to be solved apart.
    plan_ : Plan
        What was done, and why.
    n_iter_ : int
        Passes over X.
    solver_ : str
        The method taken, by name.
    covariance_, standard_errors_ : ndarray
        On request. With A = XᵀWX + alpha of centred X: s²A⁻¹XᵀWXA⁻¹, and the roots of its diagonal; s² is
        ‖W^½(y − Xβ − b)‖² / (Σw − tr(XᵀWXA⁻¹) − 1). One for each target, if there are several. For alpha > 0 it is
        the spread of the estimate, which does not speak of its bias.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    RidgeCV : chooses alpha.
    ridge_path : many alphas.

    Examples
    --------
    >>> import numpy as np, rowcol
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 5))
    >>> model = rowcol.Ridge(alpha=1e-3).fit(X, X @ [1.0, 2, 3, 4, 5] + 7)
    >>> model.coef_.round(3).tolist(), round(model.intercept_, 3)
    ([1.0, 2.0, 3.0, 4.0, 5.0], 7.0)
    >>> model.result_.certificate.error_bound < 1e-6
    True
    """

    def __init__(
        self,
        alpha: Any = 1.0,
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
        self.alpha = alpha
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit to X and y.

        Parameters
        ----------
        X : array or sparse array, (n_samples, n_features)
        y : array, (n_samples,) or (n_samples, n_targets)
        sample_weight : float or array, (n_samples,), optional
            A weight of 2 is the same as having the row twice.

        Returns
        -------
        self
        """
        check_parameters(self)
        for stale in ("covariance_", "standard_errors_"):
            if hasattr(self, stale):
                delattr(self, stale)
        X = placed(X, room_of(self))
        if isinstance(X, LinearOperator) and not isinstance(X, Place):
            raise TypeError("X is a LinearOperator, which rowcol.solve(X, y, alpha=..., fit_intercept=True) takes")
        if isinstance(X, Place):
            y = self._elsewhere(X, y)
        else:
            # NaN and infinity are found, and named, in the passes of the solve itself
            X, y = validated(self, X, y, multi_output=True, y_numeric=True, ensure_all_finite=False, **KINDS)
        sample_weight = weighed(sample_weight, X.shape[0])
        zero = numbers_of(self._penalty(), "alpha", "a number, or one a target") == 0
        if self.covariance and zero.any() and not zero.all():
            raise ValueError("covariance=True takes alphas that are all 0 or all above 0")
        self._solve(X, np.asarray(y), self._penalty(), sample_weight)
        self._stream: Stream | None = None
        if self.covariance:
            self._errors(X, sample_weight)
        return self

    @available_if(_unbounded)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit to these rows and those of earlier calls: exact, as if they had come together; no row is kept.

        What is kept is a triangle of (n_features + n_targets)² numbers, whatever the number of rows (QR, so that the
        condition of X is not squared); a call takes about eighteen times that for a moment. The certificate speaks of
        all rows. `fit` begins anew, and its rows are not among those of a later `partial_fit`.

        Parameters
        ----------
        X, y, sample_weight
            As of `fit`.

        Returns
        -------
        self
        """
        check_parameters(self)
        so_far: Stream | None = getattr(self, "_stream", None)
        X, y = validated(
            self, X, y, reset=so_far is None, multi_output=True, y_numeric=True, ensure_all_finite=False, **KINDS
        )
        y = np.asarray(y)
        if so_far is None or so_far.fit_intercept != self.fit_intercept:
            if so_far is not None:
                raise ValueError("fit_intercept was changed between calls of partial_fit: begin anew with a clone")
            so_far = stream(X.shape[1], y, self.fit_intercept, self.memory)
        sample_weight = weighed(sample_weight, X.shape[0])
        so_far = absorb(so_far, X, y, sample_weight)
        if so_far.weight == 0:
            raise ValueError("sample_weight is 0 for all rows so far: there is nothing to fit yet")
        R, c = so_far.system()
        bare = {"method": self.solver, "tol": self.tol, "random_state": self.random_state, "n_jobs": self.n_jobs}
        bare |= {"max_passes": self.max_iter, "max_seconds": self.max_seconds, "callback": self.callback}
        many, groups = y.ndim == 2, _groups(self._penalty(), y.shape[1] if y.ndim == 2 else 1, self.solver)
        results = [solve(R, c[:, k] if many else c[:, 0], alpha=a, progress=False, **bare) for k, a in groups]
        for (k, _), result in zip(groups, results, strict=True):
            result.x, result.dual = result.x.astype(X.dtype), None
            result.message = result.message.split("; the system is inconsistent")[0]  # that is about rows of R
            if self.fit_intercept:
                result.intercept = so_far.intercept(result.x, k if many else 0)
        leave(self, [], [])
        self._stream = so_far  # now that nothing can fail, so that a call that did may be made again
        self._set(results, [k for k, _ in groups], many)
        self.n_iter_ = max(int(np.ceil(max(r.passes for r in results))), 1)
        self.solver_, self.plan_ = results[0].method, results[0].plan
        if self.covariance:
            self._errors(R, None, so_far.weight)
        return self

    def _penalty(self) -> Any:
        return self.alpha

    def _errors(self, X: Any, sample_weight: Any, total: float | None = None) -> None:
        results = self.result_ if isinstance(self.result_, tuple) else (self.result_,)
        rss = np.concatenate([[c.residual_norm**2 for c in r.certificates] for r in results])
        alpha = np.broadcast_to(np.asarray(self._penalty(), float), len(rss))
        if len(results) > 1:  # back in the order of the targets
            each = np.unique(alpha)
            rss = rss[np.argsort(np.concatenate([np.flatnonzero(alpha == a) for a in each]))]
        found = [
            covariance(X, sample_weight, float(a), self.fit_intercept, float(r), self.memory, total)
            for a, r in zip(alpha, rss, strict=True)
        ]
        single = self.coef_.ndim == 1
        self.covariance_ = found[0] if single else np.stack(found)
        self.standard_errors_ = np.sqrt(np.diagonal(self.covariance_, axis1=-2, axis2=-1))
