"""`KernelRidgeCV`: kernel ridge regression that chooses its kernel, its length-scales and its alpha."""

from __future__ import annotations

import logging
import math
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin
from sklearn.utils.validation import check_is_fitted

from ..core.kernels import Matern, kernel_of
from ..core.problem import numbers_of, real_number, weights
from ..core.recipes import Kernel
from ..core.words import shown
from ..methods.costs import budget
from ..methods.landmarks import Memo
from ..methods.progress import Progress
from ..methods.result import ConvergenceWarning, warn
from ..methods.scales import tunable
from ..places.opening import gathered
from .kernel_regression import KernelRegression
from .ladder import Candidate, Ladder, Rung, climbed, results
from .scoring import folds_of, scorer_of
from .validating import Regressor, check_parameters, names_of, validated, weighed

log = logging.getLogger(__name__)


class KernelRidgeCV(MultiOutputMixin, Regressor, KernelRegression):
    """Kernel ridge regression, exact and certified, with kernel, length-scales and alpha chosen by what they predict.

    Length-scales and alpha are found by the gradient of the leave-one-out error on some points, then tried, with others
    near them, by folds on n/16, n/4 and n points; only the best goes on. Folds and alphas share every tile of the
    kernel matrix. Then the model is fitted to all points.

    Parameters
    ----------
    alphas : array, optional
        The choice, all above 0. Unless said, five a rung around the best so far, on the last rung a quarter of a decade
        apart, and more where the best is at an end.
    kernel : "auto", str, rowcol kernel, or list of them
        "auto" tries "rbf" and "matern" of ν = 5/2, 3/2 and 1/2. Length-scales of a kernel given by name ("rbf",
        "matern", "laplacian") are found; a kernel of `rowcol.kernels` is taken as it is, unless length_scales are
        given.
    length_scales : list, optional
        Length-scales to try, each a number or one a feature, instead of finding them.
    ard : bool
        Also try a length-scale a feature, found by gradients, which tell features that matter from others.
    cv : int, splitter or iterable
        Folds, as in scikit-learn.
    scoring : str or callable, optional
        As in scikit-learn: R² unless said. A function of your own is called with a model whose `predict` gives back
        what it gets, predictions in place of X, and y.
    fit_intercept : bool
        Add an intercept that is not penalised. In folds it is the mean of what is fitted.
    gamma, degree, coef0, nu, kernel_params
        Of the kernels given by name, as of `KernelRidge`.
    tune_points : int
        On how many points gradients are taken; with ard, on twice as many.
    solver, tol, max_iter, max_seconds, memory, n_jobs, random_state, callback, progress
        As of `KernelRidge`; the first three and callback are of the final fit. max_seconds is for all: where time runs
        out, the best so far is fitted. So it is where the callback has an attribute `asked` that becomes true.
    cv_tol : float
        Tolerance of the fits that are only compared.

    Attributes
    ----------
    kernel_, alpha_
        The kernel with its length-scales, and alpha.
    best_params_, best_score_, best_index_
        As in scikit-learn's searches.
    cv_results_ : dict of arrays
        As in scikit-learn's searches: a row for every kernel and alpha that was tried; "iter" and "n_resources" tell
        the rung and its number of points.
    stages_ : list of dict
        What each stage cost: points, candidates, fits, entries of the kernel matrix and seconds.
    dual_coef_, intercept_, X_fit_, y_fit_, sample_weight_fit_, result_, plan_, n_iter_
        As of `KernelRidge`.

    Examples
    --------
    >>> import numpy as np, rowcol
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (400, 2))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(400)
    >>> model = rowcol.KernelRidgeCV(kernel="rbf", ard=True, random_state=0).fit(X, y)
    >>> bool(model.best_score_ > 0.97), bool(model.kernel_.length_scale[1] > 5 * model.kernel_.length_scale[0])
    (True, True)
    """

    def __init__(
        self,
        alphas: Any = None,
        *,
        kernel: Any = "auto",
        length_scales: Any = None,
        ard: bool = False,
        cv: Any = 5,
        scoring: Any = None,
        fit_intercept: bool = True,
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        nu: float = 1.5,
        kernel_params: dict | None = None,
        tune_points: int = 1000,
        solver: str = "auto",
        tol: float = 1e-4,
        cv_tol: float = 1e-2,
        max_iter: float | None = None,
        max_seconds: float | None = None,
        memory: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        callback: Callable[[Progress], object] | None = None,
        progress: bool | None = None,
    ) -> None:
        self.alphas = alphas
        self.kernel = kernel
        self.length_scales = length_scales
        self.ard = ard
        self.cv = cv
        self.scoring = scoring
        self.fit_intercept = fit_intercept
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.nu = nu
        self.kernel_params = kernel_params
        self.tune_points = tune_points
        self.solver = solver
        self.tol = tol
        self.cv_tol = cv_tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback
        self.progress = progress

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRidgeCV:
        """Choose kernel, length-scales and alpha, and fit.

        Parameters
        ----------
        X : array or sparse array, (n_samples, n_features); (n_samples, n_samples) if the kernel is precomputed
        y : array, (n_samples,) or (n_samples, n_targets)
        sample_weight : float or array, (n_samples,), optional

        Returns
        -------
        self
        """
        began = time.perf_counter()
        named, alphas = self._named(), self._alphas()
        check_parameters(self, kernel=True)
        real_number(self.cv_tol, "cv_tol", above=0.0, below=1.0)
        number = isinstance(self.tune_points, (int, np.integer)) and not isinstance(self.tune_points, bool)
        if not number or self.tune_points < 2:
            raise ValueError(f"tune_points must be a whole number of 2 or more, got {shown(self.tune_points)}")
        scales = self._scales(named)
        limit = math.inf if self.max_seconds is None else real_number(self.max_seconds, "max_seconds", above=0.0)
        columns, X = names_of(X), gathered(X, budget(self.memory))
        X, y = validated(self, X, y, names=columns, multi_output=True, y_numeric=True, **self._kinds())
        n = X.shape[0]
        given = weighed(sample_weight, n)
        w = np.ones(n) if given is None else weights(given, n)
        folds = folds_of(self.cv, X, y, w)
        ladder = Ladder(
            X,
            np.asarray(y, np.float64).reshape(n, -1),
            w,
            folds,
            scorer_of(self.scoring, single=y.ndim == 1, weighted=given is not None),
            alphas,
            scales,
            bool(self.ard),
            int(self.tune_points),
            bool(self.fit_intercept),
            began + 0.7 * limit,
            self._say,
            {
                "tol": self.cv_tol,
                "memory": self.memory,
                "n_jobs": self.n_jobs,
                "random_state": self.random_state,
                "progress": self.progress,
            },
            np.random.default_rng(0 if self.random_state is None else _seed(self.random_state)),
            lambda: bool(getattr(self.callback, "asked", False)),
        )
        best, rungs, stages = climbed(ladder, named)
        self._say(f"{best.kernel}, alpha {best.alpha:.3g}: the fit to all {n:,} points")
        final = time.perf_counter()
        left = None if math.isinf(limit) else max(limit - (final - began), 1e-3)
        x0 = None if best.start is None else (best.start if y.ndim == 2 else best.start[:, 0])
        before, self.kernel_ = dict(vars(self)), best.kernel
        try:
            self._fit_all(X, y, best.alpha, given, x0, Memo(), max_seconds=left)
        except BaseException:
            self.__dict__ = before  # attributes change only when all is well
            raise
        self._choose(best, rungs)
        self.stages_ = stages
        cost = {"kernel_entries": float(self.result_.passes) * n * n, "seconds": time.perf_counter() - final}
        self.stages_.append({"stage": "fit", "n_samples": n, "candidates": 1, "fits": 1, **cost})
        if not best.reached:
            warn(
                f"the fits that were compared did not all reach cv_tol={self.cv_tol:g} for the alpha chosen: allow "
                "more seconds, or give larger alphas",
                ConvergenceWarning,
            )
        return self

    def plot(self, ax: Any = None) -> Any:
        """Draw the validation curves: score against alpha, a line for every kernel and rung, and what was chosen.

        Parameters
        ----------
        ax : matplotlib axes, optional

        Returns
        -------
        matplotlib axes
        """
        check_is_fitted(self)
        ax = _axes() if ax is None else ax
        found = self.cv_results_
        groups = dict.fromkeys(zip(found["iter"], map(str, found["param_kernel"]), strict=True))
        last = max(found["iter"])
        for rung, kernel in groups:
            mine = (found["iter"] == rung) & (np.array([str(k) for k in found["param_kernel"]]) == kernel)
            order = np.argsort(found["param_alpha"][mine].astype(float))
            x = found["param_alpha"][mine].astype(float)[order]
            mean, spread = (found[name][mine][order] for name in ("mean_test_score", "std_test_score"))
            points = int(found["n_resources"][mine][0])
            if rung < last:
                ax.plot(x, mean, color="0.7", lw=1, zorder=1)
            else:
                label = f"{_short(found['param_kernel'][mine][0])}, {points:,} points"
                (line,) = ax.plot(x, mean, "o-", label=label, zorder=2)
                ax.fill_between(x, mean - spread, mean + spread, color=line.get_color(), alpha=0.15, lw=0)
        ax.axvline(self.alpha_, color="k", ls=":", label=f"alpha = {self.alpha_:.3g}")
        if last:
            ax.plot([], [], color="0.7", lw=1, label="fewer points")
        ax.set(xscale="log", xlabel="alpha", ylabel="score: mean ± std of the folds")
        ax.legend(fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
        return ax

    def _kernel(self) -> Kernel:
        return self.kernel_

    def _named(self) -> list[tuple[Kernel, bool]]:
        """The kernels, and which of them are to have their length-scales found."""
        given = [self.kernel] if not isinstance(self.kernel, (list, tuple)) else list(self.kernel)
        if not given:
            raise ValueError("kernel must name one kernel or more, got none")
        out: list[tuple[Kernel, bool]] = []
        for one in given:
            if isinstance(one, str) and one == "auto":
                out += [(kernel_of("rbf"), True), *((Matern(nu=nu), True) for nu in (2.5, 1.5, 0.5))]
            else:
                free = isinstance(one, str) and (self.gamma is None or one == "matern")
                out.append((self._kernel_named(one), free))
        return out

    def _scales(self, named: list[tuple[Kernel, bool]]) -> list | None:
        """Length-scales to try."""
        given = self.length_scales
        if given is None:
            return None
        several = isinstance(given, (list, tuple, Iterator)) or (isinstance(given, np.ndarray) and given.ndim > 0)
        out = [numbers_of(length, "length_scales") for length in (given if several else [given])]
        if not all((np.isfinite(length) & (length > 0)).all() for length in out):
            raise ValueError(f"length_scales: each length_scale must be finite and above 0, got {shown(given)}")
        if not out:
            raise ValueError("length_scales must hold one or more, got none")
        if not any(tunable(kernel) for kernel, _ in named):
            raise ValueError(
                "length_scales are for 'rbf', 'matern' and 'laplacian', and no other kernel is named: leave them out"
            )
        return out

    def _alphas(self) -> np.ndarray | None:
        if self.alphas is None:
            return None
        alphas = np.atleast_1d(numbers_of(self.alphas, "alphas"))
        if alphas.ndim != 1 or not alphas.size or not (np.isfinite(alphas).all() and (alphas > 0).all()):
            raise ValueError(f"alphas must be numbers above 0, got {shown(self.alphas)}")
        return alphas

    def _choose(self, best: Candidate, rungs: list[Rung]) -> None:
        self.kernel_, self.alpha_ = best.kernel, best.alpha
        self.cv_results_ = results(rungs)
        self.best_index_ = int(np.flatnonzero(self.cv_results_["rank_test_score"] == 1)[0])
        self.best_params_ = self.cv_results_["params"][self.best_index_]
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])

    def _say(self, text: str) -> None:
        """A line in the log, and on stderr where there is a progress bar."""
        log.info("%s", text)
        if self.progress or (self.progress is None and sys.stderr.isatty()):
            sys.stderr.write(f"rowcol  {text}\n")
            sys.stderr.flush()


def _axes() -> Any:
    try:
        import matplotlib.pyplot as plt  # only those who look need it
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'rowcol[plot]'") from None
    return plt.subplots(layout="constrained")[1]


def _short(kernel: Kernel) -> str:
    """A kernel in a few words, for a legend."""
    scale, nu = getattr(kernel, "length_scale", None), getattr(kernel, "nu", None)
    if scale is None:
        told = str(kernel)
        return told if len(told) <= 60 else told[:57] + "..."
    scales = f"length-scale {scale:.3g}" if np.ndim(scale) == 0 else "a length-scale a feature"
    return f"{type(kernel).__name__}{'' if nu is None else f' {nu:g}'}, {scales}"


def _seed(state: Any) -> Any:
    if isinstance(state, np.random.RandomState):
        return int(state.randint(2**31))
    return state
