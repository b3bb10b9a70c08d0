"""Why arithmetic went wrong: where X holds what is no number, or numbers whose squares leave float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from .place import Place


def explain_values(X: Any) -> str:
    """Why arithmetic on X went wrong: where it holds NaN or infinity, or numbers whose squares leave float64."""
    if hasattr(X, "kernel"):
        return "kernel values, or sums of them, leave float64: rescale X, the kernel, y or alpha"
    if isinstance(X, Place):
        told = (f"{X.told(k)} {why}" for k, why in enumerate(X.map(_explain_part)) if why)
        return next(told, "the numbers met on the way leave float64: rescale X, y or alpha")
    if isinstance(X, LinearOperator):
        return "products with the operator X leave float64, or give NaN or infinity: rescale it, or mend it"
    top = 0.0
    for i in range(0, X.shape[0], X.shape[0] if sp.issparse(X) else 4096):
        part = X.tocsr() if sp.issparse(X) else X[i : i + 4096]
        bad = _bad(part)
        if bad is not None:
            return f"X has a NaN or infinity at row {i + bad[0]}, column {bad[1]}: drop or fill such rows first"
        top = max(top, _tallest(part))
    if 1e-140 < top < 1e140:
        return "the numbers met on the way leave float64: rescale X, y, alpha, x0 or sample_weight"
    return f"X has values near {top:.0e}, whose squares leave float64: rescale its rows or columns"


def _explain_part(part: Any, pool: Any) -> str | None:
    bad, top = _bad(part), _tallest(part)
    if bad is not None:
        return f"has a NaN or infinity in its row {bad[0]}, column {bad[1]}: drop or fill such rows first"
    return f"has values near {top:.0e}, whose squares leave float64: rescale X" if top > 1e140 else None


def _bad(part: Any) -> tuple[int, int] | None:
    """Where an array, or a CSR array, has the first number that is none."""
    bad = ~np.isfinite(part.data if sp.issparse(part) else part)
    if not bad.any():
        return None
    at = int(np.argmax(bad))
    if sp.issparse(part):
        return int(np.searchsorted(part.indptr, at, side="right")) - 1, int(part.indices[at])
    return divmod(at, part.shape[1])


def _tallest(part: Any) -> float:
    return float(np.abs(part.data if sp.issparse(part) else part).max(initial=0.0))


def tallest_of(X: Any, columns: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """The largest entry of each of these columns, in rows that count: some rows at a time, as columns may be many."""
    found = np.zeros(len(columns))
    for i in range(0, X.shape[0], X.shape[0] if sp.issparse(X) else 4096):
        part = X[:, columns] if sp.issparse(X) else X[i : i + 4096, columns]
        part = part if weight is None else part[weight[i : i + part.shape[0]] > 0]
        if part.shape[0]:
            tallest = abs(part).max(axis=0)
            found = np.maximum(found, tallest.toarray().ravel() if sp.issparse(tallest) else tallest)
    return found
