"""A regression in a kernel's space: values with their bounds and their spread, and points left out in turn."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..asking import How, how_to
from ..core.gram import cross
from ..core.kernels import Precomputed
from ..core.place import Place
from ..core.problem import numbers_of
from ..core.sides import leaves_of, points
from ..methods.inverse import at_once, inverses, left_out, misfit, noise, spread
from ..methods.landmarks import Kept, Memo
from ..methods.result import ConvergenceWarning, warn
from .kernel_model import KernelModel

SHARE = 0.01  # of the noise's variance: what a variance may be too large by
FEW = 10_000  # points that are all left out in turn, unless said which


class LeftOut(NamedTuple):
    """Leave-one-out residuals, and how far the exact ones can be from them.

    Attributes
    ----------
    residuals, errors : ndarray, (n,) or (n, n_targets)

    Examples
    --------
    >>> import numpy as np, rowcol
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> residuals, errors = rowcol.KernelRidge(alpha=0.1, kernel="rbf").fit(X, np.sin(X[:, 0])).loo_residuals()
    >>> bool((errors < 1e-6).all())
    True
    """

    residuals: np.ndarray
    errors: np.ndarray


class KernelRegression(KernelModel):
    """What regressions share; `KernelRidge` and `KernelRidgeCV` say how alpha and the kernel come about."""

    y_fit_: np.ndarray
    sample_weight_fit_: np.ndarray | None
    _kept: Kept | None
    _ones: Any

    def _how(self) -> How:
        limits = self.tol, None, None
        return how_to("auto", *limits, "auto", None, False, self.memory, self.n_jobs, self.random_state, kernel=True)

    def _fit_all(
        self, X: Any, y: Any, alpha: Any, weight: np.ndarray | None, start: Any, memo: Memo, **changes: Any
    ) -> None:
        """Fit to all rows; attributes change only when all is well."""
        alpha = numbers_of(alpha, "alpha", "a number above 0, or one a target, or one a point")
        alpha = float(alpha.ravel()[0]) if alpha.size == 1 else alpha
        if np.ndim(alpha) == 1 and y.ndim == 2 and len(alpha) == y.shape[1]:  # as in scikit-learn: one a target
            alpha = np.broadcast_to(alpha, y.shape)
        self._fit_to(X, y, alpha, weight, x0=start, memo=memo, **changes)
        self.y_fit_, self.sample_weight_fit_ = np.array(y, np.float64), weight
        self._kept, self._ones = memo.kept, memo.ones

    def predict(self, X: Any, return_bound: bool = False, return_std: bool = False) -> Any:
        """Values at the points X, in chunks; how far the exact solution's are, at most; and their standard deviation.

        Parameters
        ----------
        X : array or sparse array, (n, n_features); (n, n_samples) if the kernel is precomputed
        return_bound : bool
            |prediction − that of the exact solution| ≤ bound, point by point: safe, and often far too large.
        return_std : bool
            Of the Gaussian process whose covariance is the kernel and whose noise has variance alpha (over the weight):
            √(k(x, x) − k_xᵀ(K + alpha)⁻¹k_x). With an intercept, its uncertainty is included (universal kriging). The
            variance is an upper bound, within a hundredth of alpha (or 100 tol of it, if that is less), or a warning
            says otherwise: so an interval for a new observation is at most half a percent too wide. Each point is a
            right-hand side of its own, 64 at a time, which share every tile: these take as long as eight fits or so.
            Where n² numbers fit in memory and there is a point for every hundred fitted, or n ≤ 2,500, K + alpha is
            factored, and a point takes 6 n² operations.

        Returns
        -------
        ndarray, (n,) or (n, n_targets); or a tuple (values, bound), (values, std) or (values, bound, std), all alike
        """
        X = self._points(X)
        if isinstance(X, Place):
            points = (self._points(part, X.names) for _, part in X.parts())
            parts = [self._predicted(part, return_bound, return_std) for part in points]
            together = zip(*parts, strict=True) if return_bound or return_std else [parts]
            found = tuple(np.concatenate(one) for one in together)
            return found if return_bound or return_std else found[0]
        return self._predicted(X, return_bound, return_std)

    def _predicted(self, X: Any, return_bound: bool, return_std: bool) -> Any:
        values = self.result_.function(X, return_bound=return_bound)
        out = [*values] if return_bound else [values]
        if return_std:
            out.append(self._std(X))
        dtype = getattr(self, "dtype", None)
        if dtype is not None and np.dtype(dtype) == np.float32:
            narrow = [one.astype(np.float32) for one in out]
            if return_bound:  # rounding values to single precision is part of their error
                lost = np.abs(narrow[0].astype(np.float64) - out[0])
                narrow[1] = np.nextafter((out[1] + lost).astype(np.float32), np.float32(np.inf))
            out = narrow
        return out[0] if len(out) == 1 else tuple(out)

    def loo_residuals(self, which: Any = None) -> LeftOut:
        """y_i − f(x_i) of the model fitted without point i, and bounds of the errors, without fitting it anew.

        It is α_i/(A⁻¹)_ii, with A = K + alpha/w, or its bordered inverse if there is an intercept. Up to 10,000 points
        A is factored, if 16 n² bytes fit the memory: 5 n³ operations for all points. Beyond, each of the points `which`
        is a right-hand side of a solve, 64 at a time, which share every tile: these take as long as six fits.

        Parameters
        ----------
        which : array of int, or of bool, (n_samples,), optional
            Points to leave out, each by itself; all unless said.

        Returns
        -------
        LeftOut
            A pair (residuals, errors): the exact ones are no further from `residuals` than `errors`. What the fit
            itself was short of the exact solution is taken into account, and mostly taken off.
        """
        check_is_fitted(self)
        self._all_points("leave-one-out residuals are")
        function, (n, how) = self.result_.function, (self.X_fit_.shape[0], self._how())
        if which is None and (n > FEW or 8 * n * n * 2.3 > how.memory):
            raise ValueError(
                f"leaving out each of {n:,} points takes as many right-hand sides, or {n / 10:,.0f} fits: "
                "name some points by `which`; a few hundred drawn at random tell the error well"
            )
        at = np.arange(n) if which is None else positions_of(which, n)
        y = self.y_fit_.reshape(n, -1)
        residuals, errors = np.zeros((at.size, y.shape[1])), np.zeros((at.size, y.shape[1]))
        short = y[function.places].T - np.reshape(self.intercept_, (-1, 1))
        made = None if self._kept is None else self._kept.made
        with inverses(function, self.X_fit_, at.size, how.memory, how.seed, made) as each:
            for inverse in each:
                place = np.full(n, -1)  # of the user's points, among those that count
                place[function.places[inverse.live]] = np.arange(inverse.live.size)
                if function.centre is not None and inverse.live.size < 2:
                    raise ValueError("with an intercept there is nothing left when the only point is left out")
                t = inverse.targets
                start = misfit(inverse, function.coefficients[t][:, inverse.live], short[t][:, inverse.live])
                counts, step = np.flatnonzero(place[at] >= 0), at_once(inverse, how.memory)
                for i in range(0, counts.size, step):
                    some = counts[i : i + step]
                    found = left_out(inverse, start, place[at[some]], min(self.tol, 1e-3))
                    residuals[np.ix_(some, t)], errors[np.ix_(some, t)] = found
                absent = np.flatnonzero(place[at] < 0)  # they are left out as it is
                if absent.size:
                    values, bounds = self._bounded(self.X_fit_[at[absent]])
                    residuals[np.ix_(absent, t)] = y[np.ix_(at[absent], t)] - values[:, t]
                    errors[np.ix_(absent, t)] = bounds[:, t]
        single = self.y_fit_.ndim == 1
        return LeftOut(residuals[:, 0], errors[:, 0]) if single else LeftOut(residuals, errors)

    def _bounded(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Values and bounds, (m, q); a given matrix does not tell bounds."""
        function, m = self.result_.function, X.shape[0]
        if self._is_given():
            values = function(X).reshape(m, -1)
            return values, np.full_like(values, np.inf)
        values, bounds = function(X, return_bound=True)
        return values.reshape(m, -1), bounds.reshape(m, -1)

    def _std(self, X: Any) -> np.ndarray:
        """Standard deviations at validated points, in the shape of the values."""
        self._all_points("standard deviations are")
        function, how, m = self.result_.function, self._how(), X.shape[0]
        if self._is_given():
            raise ValueError("a precomputed kernel does not say k(x, x) of new points: leave out return_std")
        variance, worst = np.zeros((m, len(function.coefficients))), 0.0
        share, X = min(SHARE, 100 * self.tol), points(X)
        made = None if self._kept is None else self._kept.made
        with inverses(function, self.X_fit_, m, how.memory, how.seed, made) as each:
            for inverse in each:
                step = at_once(inverse, how.memory)
                for i in range(0, m, step):
                    some = cross(function.exact, X[i : i + step])
                    found = spread(inverse, some, share)
                    variance[i : i + step, inverse.targets] = found.variance[:, None]
                    worst = max(worst, found.excess / noise(inverse, share))
        if worst > 1.01:
            warn(
                f"variances may be too large by {worst * share:.1e} of alpha, where {share:.0e} was meant: that is as "
                "far as float64 goes; raise alpha",
                ConvergenceWarning,
            )
        std = np.sqrt(variance)
        return std[:, 0] if function.single else std

    def _all_points(self, what: str) -> None:
        if self.result_.function.centers is not None:
            raise ValueError(f"{what} of the model of all points, not of centres: leave out n_centers")
        if isinstance(self.X_fit_, Place):
            raise ValueError(f"{what} of points in memory, and these lie elsewhere: allow more memory, or load X")

    def _is_given(self) -> bool:
        return any(isinstance(leaf, Precomputed) for leaf in leaves_of(self.result_.function.exact.kernel))

    def __getstate__(self) -> Any:
        """Without the preconditioner, which is large and can be drawn anew."""
        state = dict(super().__getstate__())
        if "_kept" in state:
            state["_kept"] = None
        return state


def positions_of(which: Any, n: int) -> np.ndarray:
    """Positions from 0 to n − 1, of integers or of a mask."""
    given = np.asarray(which)
    if given.dtype == bool:
        if given.shape != (n,):
            raise ValueError(f"which must be a mask of {n}, one a row fitted, or positions; got shape {given.shape}")
        return np.flatnonzero(given)
    given = given.astype(np.int64) if given.size == 0 else given
    if given.ndim > 1 or given.dtype.kind not in "iu":
        raise ValueError(f"which must be positions of rows, or a mask of {n}; got {given.dtype} of shape {given.shape}")
    given = np.atleast_1d(given)
    if given.size and not (given.min() >= -n and given.max() < n):
        raise ValueError(f"which names row {int(given[np.argmax(np.abs(given))])}, but there are {n} rows, from 0 on")
    return np.where(given < 0, given + n, given)
