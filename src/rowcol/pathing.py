"""`ridge_path`: many alphas for little more than one, each with its certificate."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from .asking import How, how_to
from .core.certify import Certificate
from .core.problem import flag, numbers_of, posed, problem
from .methods.choose import Plan
from .methods.costs import BY_LINES
from .methods.result import Result, Status
from .methods.way import Kept
from .solving import result_for

VECTORS = 24  # of n + p numbers, that every right-hand side takes while it is solved


@dataclass(frozen=True, repr=False)
class RidgePath:
    """Ridge regression for many alphas: see `ridge_path`.

    Attributes
    ----------
    alphas : ndarray, (k,)
        As given.
    coef : ndarray, (k, p) or (k, q, p)
    intercept : ndarray, (k,) or (k, q)
        Zeros without an intercept.
    certificates, statuses : list of k; with several targets, of lists
    passes, seconds : float
        What it took, in all.
    plan : Plan
        What was done, and why.
    """

    alphas: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    certificates: list
    statuses: list
    passes: float
    seconds: float
    plan: Plan

    @property
    def success(self) -> bool:
        """Did every alpha reach the tolerance?"""
        return all(s is Status.CONVERGED for s in np.ravel(np.array(self.statuses, dtype=object)))

    def __repr__(self) -> str:
        worst = max(np.ravel(np.array([[c.value for c in _listed(row)] for row in self.certificates])))
        low, high, k = self.alphas.min(), self.alphas.max(), len(self.alphas)
        done = "all certified" if self.success else "NOT ALL CONVERGED"
        return (
            f"rowcol.RidgePath({k} alphas from {low:.3g} to {high:.3g}, {done}: worst certificate {worst:.1e}; "
            f"{self.passes:.3g} passes, {self.seconds:.2g} s)"
        )


def ridge_path(
    X: Any,
    y: Any,
    alphas: Any,
    *,
    fit_intercept: bool = False,
    method: str = "auto",
    tol: float = 1e-6,
    max_passes: float | None = None,
    max_seconds: float | None = None,
    sample_weight: Any = None,
    memory: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    progress: bool | None = None,
) -> RidgePath:
    """Solve min ‖y − Xβ‖² + alpha ‖β‖² for every one of `alphas`, each certified.

    All alphas share the passes over X: they are right-hand sides of one solve (by conjugate gradients, or by one
    spectrum of the smaller side's Gram matrix, which serves them all), as many at once as the memory allows, the next
    ones started from there. Single steps ("rk", "rcd", ...) go from the largest alpha to the smallest, each started at
    the last one's (α, β).

    Parameters
    ----------
    X : array, sparse array or LinearOperator, (n, p)
    y : array, (n,) or (n, q)
    alphas : array, (k,)
        Above 0, in any order.
    fit_intercept, method, tol, max_passes, max_seconds, sample_weight, memory, n_jobs, random_state, progress
        As of `solve`; the limits are for each batch of alphas.

    Returns
    -------
    RidgePath

    Examples
    --------
    >>> import numpy as np, rowcol
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.standard_normal((400, 30)), rng.standard_normal(400)
    >>> path = rowcol.ridge_path(X, y, np.logspace(-2, 4, 20))
    >>> path.coef.shape, path.success
    ((20, 30), True)
    """
    began = time.perf_counter()
    alphas = numbers_of(alphas, "alphas")
    flag(fit_intercept, "fit_intercept")
    if alphas.ndim != 1 or not alphas.size or not (np.isfinite(alphas).all() and (alphas > 0).all()):
        raise ValueError("alphas must be one or more numbers above 0")
    how = how_to(method, tol, max_passes, max_seconds, "auto", None, progress, memory, n_jobs, random_state)
    given = problem(X, y, float(alphas.max()), sample_weight)
    (q, n), p = given.y.shape, given.X.shape[1]
    Y = (given.y * given.scale[:, None]).T
    room = int(how.memory / 2 / (VECTORS * 8 * (n + p) * q))
    batch = 1 if method in (*BY_LINES, "subset") else max(min(room, len(alphas)), 1)
    order, kept, passes = np.argsort(-alphas, kind="stable"), Kept(), 0.0
    coef, offsets = np.empty((len(alphas), q, p), given.dtype), np.zeros((len(alphas), q), given.y.dtype)
    certificates: list = [None] * len(alphas)
    statuses: list = [None] * len(alphas)
    last: Result | None = None
    plan: Plan | None = None
    for start in range(0, len(alphas), batch):
        some = order[start : start + batch]
        if kept.factor is not None and kept.factor.kind != "spectrum":
            kept.factor = None  # made for another alpha
        last = _batch(given, Y, alphas[some], sample_weight, how, kept, last, fit_intercept)
        plan, passes = plan or last.plan, passes + last.passes
        for k, i in enumerate(some):  # the rest of a Result, as long as y, is not kept
            part = slice(k * q, (k + 1) * q)
            coef[i], certificates[i], statuses[i] = last.x[:, part].T, last.certificates[part], last.statuses[part]
            offsets[i] = 0.0 if last.intercept is None else last.intercept[part]
    if given.single:
        coef, offsets = coef[:, 0], offsets[:, 0]
        certificates, statuses = [c[0] for c in certificates], [s[0] for s in statuses]
    assert plan is not None
    return RidgePath(alphas, coef, offsets, certificates, statuses, passes, time.perf_counter() - began, plan)


def _batch(
    given: Any,
    Y: np.ndarray,
    alphas: np.ndarray,
    sample_weight: Any,
    how: How,
    kept: Kept,
    last: Result | None,
    fit_intercept: bool,
) -> Result:
    """Some alphas, as right-hand sides of one solve, started where the last one ended."""
    q, k = Y.shape[1], len(alphas)
    each = np.repeat(alphas, q)
    asked = posed(given.X, given.copied, np.tile(Y, k), each, sample_weight)
    x0: Any = None
    if last is not None and last.x.shape[1] == q == len(each):  # (α, β), so that rows start from both
        x0 = last
    elif last is not None:
        x0 = np.tile(last.x[:, -q:], k)
    return result_for(asked, how, x0, kept, time.perf_counter(), fit_intercept=fit_intercept)


def _listed(row: Certificate | list[Certificate]) -> list[Certificate]:
    return row if isinstance(row, list) else [row]
