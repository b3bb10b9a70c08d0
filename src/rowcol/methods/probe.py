"""A few random rows, solved: what a plan asks, and where `subset` starts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from ..core.centre import centred_rows
from ..core.explain import explain_values
from ..core.problem import Problem
from ..core.products import products
from .factor import Factor, from_blocks, from_gram, gram


@dataclass
class Probe:
    """The solution of a few random rows, and how well it fits them: what a plan asks, and where `subset` starts."""

    rows: np.ndarray
    X: np.ndarray  # these rows, dense and in double precision
    factor: Factor
    beta: np.ndarray  # (q, p)
    misfit: np.ndarray  # (q,) ‖y − Xβ‖ / ‖y‖ on these rows

    def fits(self, tol: float) -> bool:
        """Do all these rows agree, well enough for the others to be asked?"""
        return bool((self.misfit <= 0.3 * tol).all()) and self.factor.rank == self.X.shape[1]


def probe(problem: Problem, seed: np.random.SeedSequence, count: int, known: int = 0) -> Probe:
    """Solve `count` random rows by QR; more of them where these do not determine β."""
    n, p = problem.X.shape
    rows = np.sort(np.random.default_rng(seed).choice(n, count, replace=False, shuffle=False))
    part = (problem.X.tocsr() if sp.issparse(problem.X) else problem.X)[rows]
    X = np.ascontiguousarray(part.toarray() if sp.issparse(part) else part, dtype=problem.y.dtype)
    if not np.isfinite(X).all():
        raise ValueError(explain_values(problem.X))  # whose rows have other numbers than those of the sample
    if problem.shift is not None:
        X = centred_rows(X, problem.shift._replace(ones=problem.shift.ones[rows]))
    y = np.ascontiguousarray(problem.y[:, rows])
    factor, beta = _quick(X, y) or from_blocks(X, y, 0.0, problem.y.dtype, False, False)
    factor.polish(products(X))
    beta = factor.inside(beta)
    size = np.maximum(np.linalg.norm(y, axis=1), 1e-300)
    found = Probe(rows, X, factor, beta, np.linalg.norm(y - beta @ X.T, axis=1) / size)
    if factor.rank == p or 2 * count > n or factor.rank <= known:  # more rows that add no rank: it is X that lacks it
        return found
    return probe(problem, seed, 2 * count, factor.rank)


def _quick(X: np.ndarray, y: np.ndarray) -> tuple[Factor, np.ndarray] | None:
    """Cholesky and two refinements, a third of the time of QR; None where the condition is not that of a tame X."""
    factor = from_gram(products(X), gram(X, X.dtype, False), 0.0, False, tame=1e7)
    if factor is None:
        return None
    beta = np.zeros((len(y), X.shape[1]), X.dtype)
    for _ in range(3):
        beta = beta + factor.apply(((y - beta @ X.T).conj() @ X).conj())
    return factor, beta
