"""What a route is given: X scaled by weights, its bytes, and rows of zeros that ask for something."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from ..core.place import Place, Scaled, times_rows
from ..core.problem import Problem
from .loop import Outcome


def scaled(X: Any, weight: np.ndarray) -> Any:
    """√w X: columns need it, rows take weights as they are."""
    root = np.sqrt(weight)
    if isinstance(X, Place):
        return Scaled(X, root)
    return _scaled_operator(X, root) if isinstance(X, LinearOperator) else times_rows(X, root)


def _scaled_operator(X: LinearOperator, root: np.ndarray) -> LinearOperator:
    return LinearOperator(
        X.shape,
        matvec=lambda v: root * np.asarray(X.matvec(v)).reshape(-1),
        rmatvec=lambda u: X.rmatvec(root * np.asarray(u).reshape(-1)),
        dtype=X.dtype,
    )


def held_by(X: Any) -> int:
    """Bytes of an array, dense or sparse; none of an operator."""
    if isinstance(X, LinearOperator):
        return 0
    return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else X.nbytes


def zero_rows(given: Problem, out: Outcome, tol: float) -> dict[int, int]:
    """For each right-hand side that has one, a row of zeros that asks for more than tol‖y‖."""
    found: dict[int, int] = {}
    counts = None
    if isinstance(given.X, LinearOperator):
        return found
    assert out.residual is not None
    for i, (y, r) in enumerate(zip(given.y, out.residual, strict=True)):
        if out.certificates[i].value <= tol and out.certificates[i].kind == "residual":
            continue
        # a row of zeros leaves y_i exactly as it is
        untouched = np.flatnonzero(r == y)
        if not untouched.size:
            continue
        untouched = untouched[np.abs(y[untouched]) > tol * np.linalg.norm(y)]
        if given.weight is not None:
            untouched = untouched[given.weight[untouched] > 0]
        if untouched.size and sp.issparse(given.X):
            if counts is None:
                kept = given.X.tocoo()
                counts = np.bincount(kept.row[kept.data != 0], minlength=given.X.shape[0])
            untouched = untouched[counts[untouched] == 0]
        elif untouched.size:
            parts = (untouched[k : k + 4096] for k in range(0, untouched.size, 4096))
            untouched = next((z for z in (u[~given.X[u].any(axis=1)] for u in parts) if z.size), untouched[:0])
        if untouched.size:
            found[i] = int(untouched[0])
    return found
