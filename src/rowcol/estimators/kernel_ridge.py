"""`KernelRidge`: scikit-learn's, without its Gram matrix, and with a certificate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.base import MultiOutputMixin

from ..core.place import Place
from ..methods.landmarks import Memo
from ..methods.progress import Progress
from ..places.opening import with_team
from .going_on import checkpoints_of, room_of
from .kernel_life import KernelLife
from .validating import Regressor, check_parameters, names_of, validated, weighed


class KernelRidge(MultiOutputMixin, Regressor, KernelLife):
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
    n_centers : int, optional
        Let f be a combination of k(c, ·) of so many points c only: for more points than the exact solution can reach.
        As `n_centers` of `rowcol.solve`.
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
        Start from the coefficients of the last fit, if the points are as many; with `n_centers`, from its function. A
        fit that was cut short goes on, to the same bits, as of `Ridge`.
    dtype : {None, "float32", "float64"}
        Points are kept, and values given, in this precision; None keeps the points in theirs and gives values in
        double. Coefficients and certificates are in double precision always.
    n_jobs : int, optional
        Threads. None obeys the environment variables.
    random_state : None, int or generator
        Of the pivots and blocks.
    callback : callable, optional
        Called after every round with a `Progress`; the fit stops if it returns something true.
    progress : bool, optional
        A line on stderr; by default on a terminal only.
    checkpoint : str, Path or Checkpoint, optional
        A file to write to what `fit` has done so far; if it is there, `fit` goes on from it. As of `rowcol.solve`;
        rows that come and go are not written down.

    Attributes
    ----------
    dual_coef_ : ndarray, (n_samples,) or (n_samples, n_targets)
        With `n_centers`, one a centre: (m,) or (m, n_targets), m being `n_centers` or less.
    intercept_ : float or ndarray
    X_fit_ : array
        The points; with `n_centers`, the centres.
    y_fit_, sample_weight_fit_ : ndarray, and ndarray or None
        What `add_rows` and `remove_rows` go on from: 8 bytes a number. For the same purpose up to 256 MB of
        preconditioner are kept, about 42 MB at 12,000 points; pickles go without.
    result_ : Result
        The certificate, the plan and the history.
    plan_ : Plan
        What was done, and why.
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
    >>> mean, std = model.predict([[1.0], [9.0]], return_std=True)
    >>> bool(std[0] < 0.02), bool(std[1] > 0.9)
    (True, True)
    >>> model.add_rows([[9.0]], [np.sin(9.0)]).X_fit_.shape
    (201, 1)
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
        n_centers: int | None = None,
        fit_intercept: bool = False,
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: float | None = None,
        max_seconds: float | None = None,
        memory: Any = None,
        warm_start: bool = False,
        dtype: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        callback: Callable[[Progress], object] | None = None,
        progress: bool | None = None,
        checkpoint: Any = None,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.length_scale = length_scale
        self.nu = nu
        self.kernel_params = kernel_params
        self.n_centers = n_centers
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.memory = memory
        self.warm_start = warm_start
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback
        self.progress = progress
        self.checkpoint = checkpoint

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
        self._kernel()  # parameters first
        check_parameters(self, kernel=True)
        self._kinds()
        names, (X, team) = names_of(X), with_team(X, room_of(self), self.n_centers is not None)
        if isinstance(X, Place):
            y = self._elsewhere(X, y)
        else:
            X, y = validated(self, X, y, names=names, multi_output=True, y_numeric=True, **self._kinds())
        start = self._start(y.shape)
        if self.n_centers is not None:  # the centres may be others: f itself is the start
            last = getattr(self, "dual_coef_", None)
            alike = last is not None and last.shape[1:] == y.shape[1:] and self.X_fit_.shape[1] == X.shape[1]
            start = self.result_ if self.warm_start and alike else None
        weight = weighed(sample_weight, X.shape[0])
        self._fit_all(X, y, self.alpha, weight, start, Memo(), checkpoint=checkpoints_of(self)[0], team=team)
        return self
