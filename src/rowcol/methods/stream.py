"""Rows that come and go: what least squares and ridge need of them, in a triangle.

[W^½(X − 1x̄ᵀ)  W^½(y − ȳ)] = Q R with R of p + q columns. QR of R over the next rows is R of them all; and where means
are taken off, one more row joins the two parts: √(W₁W₂/(W₁+W₂)) times the difference of their means. As Q changes no
norm, the system that R holds has the same solution, the same gap and the same certificate as all rows have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core.explain import explain_values
from ..core.problem import matrix, right_hand_sides, weights
from .costs import budget


@dataclass(frozen=True)
class Stream:
    """What is kept of rows seen."""

    p: int
    single: bool  # y has one dimension
    fit_intercept: bool
    R: np.ndarray  # (at most p + q, p + q)
    mean: np.ndarray  # (p + q,) of X and y
    weight: float  # Σw
    rows: int
    low: np.ndarray  # (p + q,) the least of every column, and the largest: where they are one, it is constant
    high: np.ndarray

    def system(self) -> tuple[np.ndarray, np.ndarray]:
        """(X, y) with the solution of all rows."""
        R = self.R
        if self.fit_intercept:  # of what is constant, means leave nothing but rounding errors
            R = R * (self.low < self.high)
        return np.ascontiguousarray(R[:, : self.p]), np.ascontiguousarray(R[:, self.p :])

    def intercept(self, beta: np.ndarray, k: Any) -> Any:
        """b = ȳ − x̄ᵀβ."""
        b = self.mean[self.p :][k] - self.mean[: self.p] @ beta
        return float(b) if np.ndim(b) == 0 else b


def stream(p: int, y: np.ndarray, fit_intercept: bool, memory: Any = None) -> Stream:
    """Nothing yet, of rows with p features and targets like y."""
    q = y.shape[1] if y.ndim == 2 else 1
    need = 18 * 8 * (p + q) ** 2  # of the triangle's bytes, while rows are absorbed
    if need > budget(memory):
        raise ValueError(
            f"rows of {p:,} features need a triangle of about {need / 1e6:,.1f} MB, more than memory allows: allow "
            "more, fit all rows together, or leave features out"
        )
    none = np.full(p + q, np.inf)
    return Stream(p, y.ndim == 1, fit_intercept, np.zeros((0, p + q)), np.zeros(p + q), 0.0, 0, none, -none)


def absorb(so_far: Stream, X: Any, y: Any, sample_weight: Any = None) -> Stream:
    """With these rows too; what was there is not changed."""
    X, _ = matrix(X)
    if X.shape[1] != so_far.p:
        raise ValueError(f"X has {X.shape[1]} features, but earlier rows had {so_far.p}")
    Y, single = right_hand_sides(y, X.shape[0])
    if Y.shape[1] != len(so_far.mean) - so_far.p or single != so_far.single:
        raise ValueError(f"y has shape {np.shape(y)}, which is not that of earlier rows")
    w = np.ones(X.shape[0])
    if sample_weight is not None:
        w = weights(sample_weight, X.shape[0], some=False)  # none of these rows may count: others will
    step = max(2 * len(so_far.mean), 1024)
    for i in range(0, X.shape[0], step):
        part = X[i : i + step]
        rows = np.hstack([part.toarray() if sp.issparse(part) else part, Y[i : i + step]]).astype(np.float64)
        if not np.isfinite(rows).all():
            raise ValueError(explain_values(X))
        so_far = _join(so_far, rows, w[i : i + step])
    return so_far


def _join(so_far: Stream, rows: np.ndarray, w: np.ndarray) -> Stream:
    total, mean, parts = float(w.sum()), np.zeros(rows.shape[1]), [so_far.R]
    if total == 0.0:
        return replace(so_far, rows=so_far.rows + len(rows))
    whole, counts = so_far.weight + total, rows[w > 0]
    low, high = np.minimum(so_far.low, counts.min(axis=0)), np.maximum(so_far.high, counts.max(axis=0))
    if so_far.fit_intercept:
        mean = w @ rows / total
        rows = rows - mean
        apart = mean - so_far.mean
        parts.append((np.sqrt(so_far.weight / whole * total) * apart)[None])
        mean = so_far.mean + (total / whole) * apart
    parts.append(np.sqrt(w)[:, None] * rows)
    R = np.asarray(np.linalg.qr(np.vstack(parts), mode="r"))
    return replace(so_far, R=R, mean=mean, weight=whole, rows=so_far.rows + len(rows), low=low, high=high)
