"""An intercept that is not penalised: X and y without their means, X in place.

min over β and b of ½‖W^½(y − Xβ − b)‖² + ½λ‖β‖² has b = ȳ − x̄ᵀβ with weighted means; what is left is the same problem
without b in X − 1x̄ᵀ and y − ȳ. `centred` says so, products and factors subtract as they go, `intercepts` puts b back;
`centred_copy` makes what single steps on dense lines need.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Executor
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from .explain import explain_values
from .passes import norms_of, pull_all, residual_pass
from .place import Place
from .problem import Problem, Shift
from .products import products, tiled
from .sums import tiles

PART = 250_000  # numbers looked at together
CANCELS = 1e-4  # of Σw x²: what is less after the mean is taken off is summed again


Moments = tuple[np.ndarray, np.ndarray | None]  # x̄, and Σ_i w_i |x_ij − x̄_j|²


def centred(problem: Problem, pool: Executor | None = None) -> tuple[Problem, np.ndarray]:
    """The Problem without its intercept, and the means of y."""
    asked, offset = centred_y(problem)
    return centred_x(asked, pool), offset


def centred_x(problem: Problem, pool: Executor | None = None, moments: Moments | None = None) -> Problem:
    """With the means of X to be taken off it, and those of y gone; moments, where they are known."""
    n = problem.X.shape[0]
    # beside an X that lies elsewhere, every vector of this length counts
    ones = np.broadcast_to(1.0, n) if isinstance(problem.X, Place) else np.ones(n)
    w = ones if problem.weight is None else problem.weight
    with np.errstate(over="ignore", invalid="ignore"):
        mean, column2 = _moments(problem.X, w, pool) if moments is None else moments
    if not np.isfinite(mean).all() or (column2 is not None and not np.isfinite(column2).all()):
        raise ValueError(explain_values(problem.X))
    live = None
    if column2 is not None:
        constant = _constant(problem.X, mean, column2, w)
        if constant.size:
            first = int(np.argmax(w > 0))
            mean[constant] = _row(problem.X, first)[constant]
            column2[constant], live = 0.0, np.ones(len(mean))
            live[constant] = 0.0
    return problem._replace(shift=Shift(mean, ones, column2, live))


def centred_y(problem: Problem, own: bool = False) -> tuple[Problem, np.ndarray]:
    """Without the means of y, and those; in place, if nobody else needs this y."""
    y, w = problem.y, problem.weight
    share = None if w is None else w / w.sum()
    offset = _mean(y, share)
    even = y if w is None else y[:, w > 0]
    constant = (even == even[:, :1]).all(axis=1)
    y = np.subtract(y, offset[:, None], out=y if own else None)
    for _ in range(2):  # what the sum lost; and what that was rounded by
        off = _mean(y, share)
        y -= off[:, None]
        offset = offset + off
    y[constant] = 0.0  # a constant y leaves rounding errors, which are not to be fitted
    return problem._replace(y=y), offset


def _mean(y: np.ndarray, share: np.ndarray | None) -> np.ndarray:
    return y.mean(axis=1) if share is None else y @ share


def _constant(X: Any, mean: np.ndarray, column2: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Columns whose rows that count are all equal: nothing is left of them, and rounding is not to be scaled up."""
    nothing = (column2 == 0) & (mean == 0)
    near = np.flatnonzero((column2 <= w.sum() * np.abs(mean) ** 2 * (64 * np.finfo(float).eps) ** 2) & ~nothing)
    found = []
    if isinstance(X, Place) and near.size:
        alike = list(X.map(_alike, (near, _row(X, int(np.argmax(w > 0)))[near]), (w,)))
        found, near = near[np.all(alike, axis=0)].tolist(), near[:0]
    for j in near:  # few are so near to it that it takes a look
        column = X[:, [j]].toarray()[:, 0] if sp.issparse(X) else X[:, j]
        column = column[w > 0]
        if (column == column[0]).all():
            found.append(j)
    return np.union1d(np.flatnonzero(nothing), np.array(found, dtype=int)).astype(int)


def _alike(part: Any, pool: Executor | None, columns: np.ndarray, value: np.ndarray, w: np.ndarray) -> np.ndarray:
    some = part[w > 0][:, columns]
    return ((some.toarray() if sp.issparse(some) else some) == value).all(axis=0)


def _row(X: Any, i: int) -> np.ndarray:
    """A row of X, dense."""
    if isinstance(X, Place):
        k = int(np.searchsorted(X.starts, i, side="right")) - 1
        X, i = X.checked(k), i - int(X.starts[k])
    row = X[[i]]
    return np.asarray(row.toarray() if sp.issparse(row) else row).ravel()


def intercepts(problem: Problem, offset: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """b = ȳ − x̄ᵀβ, in the user's units; one a right-hand side."""
    assert problem.shift is not None
    return (offset - beta @ problem.shift.mean) * problem.scale


def scaled_shift(shift: Shift | None, root: np.ndarray) -> Shift | None:
    """That of √w X."""
    return None if shift is None else shift._replace(ones=shift.ones * root)


def centred_copy(X: np.ndarray, shift: Shift, root: np.ndarray | None, weight: np.ndarray | None) -> np.ndarray:
    """√w(X − 1x̄ᵀ) as an array, in double precision also where X is not: rounding X would change the problem.

    Centred first: √w times a large mean would leave rounding errors that no later subtraction takes away. And centred
    twice, as x̄ is rounded, too: where it is large beside what is left, that would be another problem.
    """
    out = centred_rows(X, shift)
    w = np.ones(len(out)) if weight is None else weight
    out -= (w / w.sum()) @ out
    if root is not None:
        out *= root[:, None]
    return out


def centred_rows(X: np.ndarray, shift: Shift) -> np.ndarray:
    """X − 1x̄ᵀ as an array in double precision, of all rows or of some."""
    out = np.array(X, dtype=np.result_type(X.dtype, np.float64), order="K")
    for rows, columns in _parts(out):
        out[rows, columns] -= np.multiply.outer(shift.ones[rows], shift.mean[columns])
        out[rows, columns] *= 1.0 if shift.live is None else shift.live[columns]
    return out


def _moments(X: Any, w: np.ndarray, pool: Executor | None = None) -> Moments:
    """x̄ and Σ_i w_i |x_ij − x̄_j|²: by one compiled pass, and anew where that cancels; no squares of an operator."""
    total = w.sum()
    if isinstance(X, Place):
        return _merged(X.map(_part_moments, (), (w,), pool), X.shape[1])
    if isinstance(X, LinearOperator):
        return np.asarray(X.rmatvec(w.astype(X.dtype))).reshape(-1).conj() / total, None
    by, n = products(X, pool), X.shape[0]
    kind = np.complex128 if np.iscomplexobj(X) else np.float64
    even = bool((w == w[0]).all())
    nothing = np.zeros((1, X.shape[1]), kind)
    if tiled(by) and even:
        _, sums, squares, _, _ = tiles(by, np.zeros((1, n)), nothing, w[None])
        assert sums is not None
        assert squares is not None
        mean, squares = sums[0] / total, w[0] * squares
    elif by.side == "rows":
        _, sums, squares = residual_pass(by, np.ones((1, n), kind), nothing, w, True)
        mean = sums[0].conj() / total
    else:
        mean = pull_all(by, w[None].astype(kind))[0] / total
        squares = w[0] * norms_of(by) if even else np.full(len(mean), np.inf)
    column2 = squares - total * np.abs(mean) ** 2
    far = np.flatnonzero(~(column2 > CANCELS * squares) & ~((squares == 0) & (mean == 0)))  # NaN too
    if far.size and (by.side == "rows" or sp.issparse(X)):
        # all of them, piece by piece: some columns of long rows would be a copy
        exact, off = _squares(X, mean, w)
        mean, column2 = mean + off / total, np.maximum(exact - np.abs(off) ** 2 / total, 0.0)
    elif far.size:
        for j in far:
            exact, off = _squares(X[:, j : j + 1], mean[j : j + 1], w)
            mean[j] += off[0] / total
            column2[j] = max(float(exact[0] - np.abs(off[0]) ** 2 / total), 0.0)
    return mean, column2


def _part_moments(part: Any, pool: Executor | None, w: np.ndarray) -> tuple[float, Any, Any]:
    total = float(w.sum())
    return (total, *_moments(part, np.ascontiguousarray(w), pool)) if total > 0 else (0.0, 0.0, 0.0)


def _merged(parts: Iterable[tuple[float, Any, Any]], p: int) -> tuple[np.ndarray, np.ndarray]:
    """Means and sums of squares about them, of parts, as those of the whole: nothing cancels."""
    total, mean, column2 = 0.0, np.zeros(p), np.zeros(p)
    for more, middle, squares in parts:
        if more > 0:
            off = middle - mean
            column2 = column2 + squares + np.abs(off) ** 2 * (total * more / (total + more))
            mean = mean + off * (more / (total + more))
            total += more
    return mean, column2


def _squares(X: Any, mean: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Σ_i w_i |x_ij − x̄_j|², without the cancellation of Σ w x² − x̄²; and Σ_i w_i (x_ij − x̄_j), which x̄ is off by."""
    out, off = np.zeros(X.shape[1]), np.zeros_like(mean)
    if sp.issparse(X):
        met = np.zeros(X.shape[1])  # weight of the entries stored
        by_rows = X.format == "csr"
        cuts = np.searchsorted(X.indptr, np.arange(0, X.data.size + PART, PART), side="left").clip(
            max=len(X.indptr) - 1
        )
        for first, last in pairwise(np.unique(cuts)):  # whole lines, about PART entries of them
            part = slice(X.indptr[first], X.indptr[last])
            lines = np.repeat(np.arange(first, last), np.diff(X.indptr[first : last + 1]))
            column, row = (X.indices[part], lines) if by_rows else (lines, X.indices[part])
            out += np.bincount(column, w[row] * np.abs(X.data[part] - mean[column]) ** 2, X.shape[1])
            met += np.bincount(column, w[row], X.shape[1])
            off += _bins(column, w[row] * (X.data[part] - mean[column]), X.shape[1])
        rest = np.maximum(w.sum() - met, 0.0)  # weight of the zeros that are not stored
        rest[rest <= 1e-12 * w.sum()] = 0.0
        return out + rest * np.abs(mean) ** 2, off - rest * mean
    for rows, columns in _parts(X):
        part = X[rows, columns] - mean[columns]
        off[columns] += w[rows] @ part
        out[columns] += w[rows] @ np.abs(part) ** 2
    return out, off


def _bins(where: np.ndarray, values: np.ndarray, count: int) -> Any:
    if np.iscomplexobj(values):
        return np.bincount(where, values.real, count) + 1j * np.bincount(where, values.imag, count)
    return np.bincount(where, values, count)


def _parts(X: np.ndarray) -> list[tuple[slice, slice]]:
    """X in pieces that stay in cache, as they lie in memory."""
    (n, p), every = X.shape, slice(None)
    if X.flags.c_contiguous:
        step = max(PART // 2 // p, 1)
        return [(slice(i, i + step), every) for i in range(0, n, step)]
    step = max(PART // 2 // n, 1)
    return [(every, slice(j, j + step)) for j in range(0, p, step)]
