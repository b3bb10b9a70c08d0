"""The contenders: each a function from a dataset and one setting to an answer, with its settings from loose to tight.

Every contender is given its best setting: the loosest that reaches the target, found by `contest.search`. `limit` is
a number of seconds after which a contender that can stop itself does; `refuse` says why one is not run at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg as sla
from sklearn.kernel_ridge import KernelRidge as SklearnKernelRidge
from sklearn.linear_model import LinearRegression, ridge_regression
from sklearn.linear_model import Ridge as SklearnRidge

from ..estimators.kernel_ridge import KernelRidge
from ..estimators.linear import Ridge
from ..solving import solve
from .problems import Dataset

OURS = "rowcol"
LSTSQ = ("lstsq gelsd", "lstsq gelsy")
# 3e-1, 1e-1, 3e-2, ... 1e-13
TOLERANCES = tuple(float(f"{digit}e-{power}") for power in range(1, 14) for digit in (3, 1))
FLOPS = 4e10  # a second, at best, in LAPACK: to predict, never to report
STREAM = 16e9  # bytes a second, at best
MEMORY = 4e9  # bytes a rival may need beside X


class Answer(NamedTuple):
    """β, and for rowcol how it was found."""

    beta: np.ndarray
    route: str | None = None
    passes: float | None = None


class Solver(NamedTuple):
    """A contender. `settings(dataset)` are its settings, loosest first; (None,) if it has none."""

    name: str
    run: Callable[[Dataset, Any, float], Answer]
    settings: Callable[[Dataset], tuple]
    refuse: Callable[[Dataset, float], str]


def _dims(data: Dataset) -> tuple[int, int]:
    return max(data.X.shape), min(data.X.shape)


def too_long(seconds: float, limit: float) -> str:
    """Why not, where it would take longer than there is."""
    return f"predicted {seconds:,.0f} s" if seconds > limit else ""


def never(data: Dataset, limit: float) -> str:
    """No reason not to run."""
    return ""


def _no_intercept(data: Dataset, limit: float) -> str:
    return "no intercept" if data.intercept else ""


def _direct(data: Dataset) -> tuple:
    return (None,)


def _tolerances(data: Dataset) -> tuple:
    return TOLERANCES


# --- rowcol --------------------------------------------------------------------------------------------------------


def route_of(result: Any) -> str:
    """The routes taken, handed over from one to the next."""
    return str(result.method)


def run_rowcol(data: Dataset, setting: float, limit: float) -> Answer:
    """Whatever `rowcol.solve` chooses, or its estimators where there is an intercept or a kernel."""
    if data.gamma is not None:
        return run_kernel(data, setting, limit)
    if data.intercept:
        model = Ridge(data.alpha, tol=setting, max_seconds=limit, random_state=0).fit(data.X, data.y)
        return Answer(model.coef_.T, model.solver_, float(model.result_.passes))
    result = solve(data.X, data.y, alpha=data.alpha, tol=setting, max_seconds=limit, random_state=0)
    return Answer(result.x, route_of(result), float(result.passes))


# --- LAPACK --------------------------------------------------------------------------------------------------------


def _lstsq(driver: str) -> Callable[[Dataset, Any, float], Answer]:
    def run(data: Dataset, setting: float | None, limit: float) -> Answer:
        return Answer(scipy.linalg.lstsq(data.X, data.y, cond=setting, lapack_driver=driver)[0])

    return run


def _ranks(data: Dataset) -> tuple:
    """scipy's own cut-off for small singular values, then NumPy's, which finds the rank where scipy's does not."""
    return (None, max(data.X.shape) * float(np.finfo(data.X.dtype).eps))


def _refuse_lstsq(driver: str) -> Callable[[Dataset, float], str]:
    def refuse(data: Dataset, limit: float) -> str:
        if data.alpha:
            return "no ridge"
        if sp.issparse(data.X):
            return "dense only"
        long, short = _dims(data)
        return too_long((4 * long * short**2 + (20 * short**3 if driver == "gelsd" else 0)) / FLOPS, limit)

    return refuse


def run_lu(data: Dataset, setting: None, limit: float) -> Answer:
    """LU of a square system."""
    return Answer(scipy.linalg.solve(data.X, data.y))


def _refuse_lu(data: Dataset, limit: float) -> str:
    if data.alpha or sp.issparse(data.X) or data.X.shape[0] != data.X.shape[1]:
        return "dense square systems only"
    return too_long(data.X.shape[0] ** 3 / FLOPS, limit)


# --- Krylov --------------------------------------------------------------------------------------------------------


def _iterations(data: Dataset, limit: float) -> int:
    """Generous, but ending: 20·min(n, p), and no more than fit the limit."""
    entries = data.X.nnz * 12 if sp.issparse(data.X) else data.X.nbytes
    return int(min(20 * min(data.X.shape), limit / (2 * entries / STREAM + 3e-5))) + 1


def _krylov(solve: Callable) -> Callable[[Dataset, float, float], Answer]:
    limit_name = "iter_lim" if solve is sla.lsqr else "maxiter"

    def run(data: Dataset, setting: float, limit: float) -> Answer:
        options = {"atol": setting, "btol": setting, "conlim": 0, limit_name: _iterations(data, limit)}
        options["damp"] = float(np.sqrt(data.alpha))
        if data.y.ndim == 1:
            return Answer(solve(data.X, data.y, **options)[0])
        each = [solve(data.X, np.ascontiguousarray(column), **options)[0] for column in data.y.T]
        return Answer(np.column_stack(each))

    return run


# --- scikit-learn --------------------------------------------------------------------------------------------------


def run_linear_regression(data: Dataset, setting: float | None, limit: float) -> Answer:
    """scikit-learn's LinearRegression."""
    model = LinearRegression(fit_intercept=False, **({} if setting is None else {"tol": setting}))
    return Answer(model.fit(data.X, data.y).coef_.T)


def _linear_regression_settings(data: Dataset) -> tuple:
    return TOLERANCES if sp.issparse(data.X) else (None,)  # a tolerance is for its lsqr, which is for sparse X


def _refuse_linear_regression(data: Dataset, limit: float) -> str:
    if data.alpha:
        return "no ridge"
    return "" if sp.issparse(data.X) else _refuse_lstsq("gelsd")(data, limit)


def _ridge(solver: str) -> Callable[[Dataset, float | None, float], Answer]:
    def run(data: Dataset, setting: float | None, limit: float) -> Answer:
        if setting is not None and solver == "sag" and data.intercept and sp.issparse(data.X):
            return run_sag_on_sparse(data, setting, limit)
        options = {} if setting is None else {"tol": setting, "max_iter": _iterations(data, limit)}
        model = SklearnRidge(alpha=data.alpha, fit_intercept=data.intercept, solver=solver, random_state=0, **options)
        return Answer(model.fit(data.X, data.y).coef_.T)

    return run


def run_sag_on_sparse(data: Dataset, setting: float, limit: float) -> Answer:
    """sag with an intercept on a sparse X: by Ridge(solver="sag") with a number of iterations it is sparse_cg."""
    options = {"tol": setting, "max_iter": _iterations(data, limit), "random_state": 0}
    y = data.y - data.y.mean()
    return Answer(ridge_regression(data.X, y, data.alpha, solver="sag", return_intercept=True, **options)[0])


def _ridge_settings(solver: str) -> Callable[[Dataset], tuple]:
    iterates = solver in ("lsqr", "sparse_cg", "sag", "saga")
    return lambda data: TOLERANCES if iterates or (solver == "auto" and sp.issparse(data.X)) else (None,)


def _refuse_ridge(solver: str) -> Callable[[Dataset, float], str]:
    def refuse(data: Dataset, limit: float) -> str:
        if not data.alpha:
            return "ridge only"
        if sp.issparse(data.X) and (solver == "svd" or (data.intercept and solver in ("cholesky", "saga"))):
            return "dense only" if solver == "svd" else "no sparse X with an intercept"
        if solver == "svd":
            long, short = _dims(data)
            return too_long(4 * long * short**2 / FLOPS, limit)
        if solver == "cholesky":
            if not sp.issparse(data.X):
                return "is its default"
            short = min(data.X.shape)
            if 16 * short**2 > MEMORY:
                return "memory"
            return too_long(short**3 / FLOPS, limit)
        return ""

    return refuse


# --- kernel ridge --------------------------------------------------------------------------------------------------


def run_kernel(data: Dataset, setting: float, limit: float) -> Answer:
    """`rowcol.KernelRidge`; the answer is its dual coefficients."""
    model = KernelRidge(
        alpha=data.alpha, kernel="rbf", gamma=data.gamma, fit_intercept=False, tol=setting, max_seconds=limit
    ).fit(data.X, data.y)
    return Answer(model.dual_coef_, str(model.result_.method), float(model.result_.passes))


def run_sklearn_kernel(data: Dataset, setting: None, limit: float) -> Answer:
    """scikit-learn's KernelRidge, which is a Cholesky factor of K + λI."""
    model = SklearnKernelRidge(alpha=data.alpha, kernel="rbf", gamma=data.gamma)
    return Answer(model.fit(data.X, data.y).dual_coef_)


def _refuse_kernel(data: Dataset, limit: float) -> str:
    return "" if data.gamma is not None else "kernel ridge only"


def _linear(refuse: Callable[[Dataset, float], str]) -> Callable[[Dataset, float], str]:
    return lambda data, limit: "linear only" if data.gamma is not None else refuse(data, limit)


SOLVERS: tuple[Solver, ...] = (
    Solver(OURS, run_rowcol, _tolerances, never),
    Solver("lsqr", _krylov(sla.lsqr), _tolerances, _linear(_no_intercept)),
    Solver("lsmr", _krylov(sla.lsmr), _tolerances, _linear(_no_intercept)),
    Solver(LSTSQ[0], _lstsq("gelsd"), _ranks, _linear(_refuse_lstsq("gelsd"))),
    Solver(LSTSQ[1], _lstsq("gelsy"), _ranks, _linear(_refuse_lstsq("gelsy"))),
    Solver("LU", run_lu, _direct, _linear(_refuse_lu)),
    Solver("LinearRegression", run_linear_regression, _linear_regression_settings, _linear(_refuse_linear_regression)),
    Solver("Ridge", _ridge("auto"), _ridge_settings("auto"), _linear(_refuse_ridge("auto"))),
    Solver("Ridge cholesky", _ridge("cholesky"), _ridge_settings("cholesky"), _linear(_refuse_ridge("cholesky"))),
    Solver("Ridge lsqr", _ridge("lsqr"), _ridge_settings("lsqr"), _linear(_refuse_ridge("lsqr"))),
    Solver("Ridge sparse_cg", _ridge("sparse_cg"), _ridge_settings("sparse_cg"), _linear(_refuse_ridge("sparse_cg"))),
    Solver("Ridge svd", _ridge("svd"), _ridge_settings("svd"), _linear(_refuse_ridge("svd"))),
    Solver("Ridge sag", _ridge("sag"), _ridge_settings("sag"), _linear(_refuse_ridge("sag"))),
    Solver("Ridge saga", _ridge("saga"), _ridge_settings("saga"), _linear(_refuse_ridge("saga"))),
    Solver("KernelRidge", run_sklearn_kernel, _direct, _refuse_kernel),
)
