"""How ridge regression predicts what it has not seen, for many alphas, from one Gram matrix: folds and leave-one-out.

Tall X: each fold's share is taken off the p x p sums of all rows; the eigenvalues of what is left serve every alpha.
Wide X: the n x n matrix XXᵀ is formed once; a fold uses the part of it that belongs to its rows. Leaving one out takes
no fold at all: the residual becomes r_i/(1 − h_i), with h_i the leverage, from the same eigenvalues.

Means are taken off before rows are multiplied, where they are large; weights are repetitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp

from .costs import gram_passes, size
from .factor import BLOCK_BYTES, eigen

Folds = Sequence[tuple[np.ndarray, np.ndarray]]
LOST = 1e3  # times the rest: means that are larger are taken off before multiplying
TINY = 1e-12  # 1 − h is above 0 but for rounding: a row that fits itself alone is predicted by nothing
EXACT = 1e9  # numbers n²p up to which all singular vectors are taken: a second or so
MOST = 0.99  # of the sums of all rows: a fold that has more is not subtracted from them
SMALL = 1e11  # numbers touched: seconds, whatever the layout
SOLVED = 60.0  # passes: what iterating for all alphas of a fold is taken to cost


def cheap(X: Any, folds: int, memory: int) -> bool:
    """Do Gram matrices fit, and cost less than iterating fold by fold would?"""
    m = min(X.shape)
    fits = 6 * 8 * m * m + 3 * BLOCK_BYTES <= memory
    eigenvalues = 0.15 * m**3 / size(X)
    if size(X) * m + (folds + 1) * 10 * m**3 <= SMALL:
        return fits
    return fits and gram_passes(X) + (folds + 1) * eigenvalues <= (folds + 1) * SOLVED


def predictions(X: Any, Y: np.ndarray, w: np.ndarray, alphas: np.ndarray, intercept: bool, folds: Folds) -> list:
    """For every fold, what is predicted for its test rows by its train rows: (k alphas, rows, q)."""
    if X.shape[0] >= X.shape[1]:
        return _tall(X, Y, w, alphas, intercept, folds)
    K = _kernel(X, w, intercept)
    out = []
    for train, test in folds:
        values, V, pi, centre = _spectrum(K, Y, w, train, intercept)
        root = np.sqrt(w[train])[:, None]
        dual = V.T @ (root * (Y[train] - centre))
        each = []
        for a in alphas:
            alpha = root * (V @ (dual / (values + a)[:, None]))
            lift = pi @ (K[np.ix_(train, train)] @ alpha) if intercept else 0.0
            each.append(K[np.ix_(test, train)] @ alpha - lift + centre)
        out.append(np.stack(each))
    return out


def left_out(X: Any, Y: np.ndarray, w: np.ndarray, alphas: np.ndarray, intercept: bool) -> np.ndarray:
    """For every row, what is predicted for it by all the others: (k alphas, n, q). Weights are above 0."""
    n, p = X.shape
    if n == 1:
        raise ValueError("leaving one out of n_samples = 1 leaves nothing: it takes 2 rows or more")
    if n < p or n * n * p <= EXACT:
        root = np.sqrt(w)[:, None]
        if n * n * p <= EXACT:  # singular values, which squares would cost half their digits
            values, V, centre = _singular(X, Y, w, intercept)
        else:
            values, V, _, centre = _spectrum(_kernel(X, w, intercept), Y, w, np.arange(n), intercept)
            if intercept:  # its own direction, of which nothing is left
                V = np.delete(V, at := int(np.argmax(np.abs(V.T @ root[:, 0]))), axis=1)
                values = np.delete(values, at)
        dual = V.T @ (root * (Y - centre))
        # r and 1 − h as they are, not as what is left of y and of one: for small alpha both are small
        share = alphas / (values[:, None] + alphas)
        rest = np.maximum((V**2) @ share, TINY)
        left = (V @ (share[:, :, None] * dual[:, None]).reshape(len(values), -1)).reshape(n, len(alphas), -1)
        return (Y[:, None] - left / root[:, :, None] / rest[:, :, None]).transpose(1, 0, 2)
    out, total = np.empty((len(alphas), *Y.shape)), w.sum()
    mean, sums = _mean(X, w, intercept), None
    for rows, part in _blocks(X, mean):
        sums = _add(sums, _moments(part, Y[rows], w[rows]))
    assert sums is not None
    values, V, offset, centre, pulled = _factor(sums, intercept)
    if _lost(values, alphas):
        values, V, offset, centre, pulled = _safe_factor(X, Y, w, mean, np.arange(n), intercept)
    for rows, part in _blocks(X, mean):
        U = (part - offset) @ V
        for k, a in enumerate(alphas):
            h = w[rows] * ((U**2) @ (1 / (values + a)) + (1 / total if intercept else 0.0))
            left = Y[rows] - centre - U @ (pulled / (values + a)[:, None])
            out[k, rows] = Y[rows] - left / np.maximum(1.0 - h, TINY)[:, None]
    return out


def _singular(X: Any, Y: np.ndarray, w: np.ndarray, intercept: bool) -> tuple[np.ndarray, np.ndarray, Any]:
    """Squared singular values of W^½X, centred, and zeros; a basis of what the intercept leaves; the mean of Y."""
    pi, root = w / w.sum(), np.sqrt(w)[:, None]
    A = X.toarray().astype(np.float64) if sp.issparse(X) else np.asarray(X, np.float64)
    for _ in range(2 if intercept else 0):  # the second time, what the first mean lost
        A = A - pi @ A
    U, s, _ = sl.svd(root * A, full_matrices=False, check_finite=False)
    first = [root / np.linalg.norm(root)] if intercept else []
    count = min(len(s), len(A) - len(first))
    basis = np.linalg.qr(np.hstack([*first, U[:, :count]]), mode="complete")[0][:, len(first) :]
    values = np.zeros(basis.shape[1])
    values[:count] = s[:count] ** 2
    return values, basis, pi @ Y if intercept else 0.0


# --- wide: the n x n matrix ----------------------------------------------------------------------------------------


def _kernel(X: Any, w: np.ndarray, intercept: bool) -> np.ndarray:
    """XXᵀ without the mean of all rows."""
    mean = _mean(X, w, intercept)
    n, p = X.shape
    if sp.issparse(X):
        Z = X.astype(np.float64)
        cross = np.asarray(Z @ mean)
        K = (Z @ Z.T).toarray() - cross[:, None] - cross + mean @ mean
        if mean @ mean <= LOST * np.median(np.diagonal(K)):  # otherwise means are most of it, and cancel
            return K
    K = np.zeros((n, n))
    step = max(BLOCK_BYTES // (8 * n), 1)
    for j in range(0, p, step):
        part = X[:, j : j + step]
        part = (part.toarray() if sp.issparse(part) else part) - mean[j : j + step]
        K += part @ part.T
    return K


def _spectrum(
    K: np.ndarray, Y: np.ndarray, w: np.ndarray, train: np.ndarray, intercept: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, Any]:
    """Eigenvalues of the train rows' own W^½KW^½, centred; the weights π of their mean, and that of Y."""
    part, root = K[np.ix_(train, train)], np.sqrt(w[train])
    pi, centre = w[train] / w[train].sum(), 0.0
    if intercept:
        centre = pi @ Y[train]
        seen = part @ pi
        part = part - seen[:, None] - seen + pi @ seen
    part = part * np.multiply.outer(root, root)
    values, V = eigen(part, overwrite=True)
    return np.maximum(values, 0.0), V, pi, centre


# --- tall: sums over rows ------------------------------------------------------------------------------------------


def _tall(X: Any, Y: np.ndarray, w: np.ndarray, alphas: np.ndarray, intercept: bool, folds: Folds) -> list:
    n = X.shape[0]
    mean = _mean(X, w, intercept)
    everyone = np.arange(n)
    # is every row of a fold either trained on, once, or tested?
    split = [bool((np.bincount(np.concatenate(fold), minlength=n) == 1).all()) for fold in folds]
    total = _sums(X, Y, w, mean, everyone) if any(split) else None
    out = []
    for (train, test), apart in zip(folds, split, strict=True):
        sums = None
        if apart and total is not None:
            own = _sums(X, Y, w, mean, test)
            if (np.diagonal(own[0]) <= MOST * np.diagonal(total[0])).all():  # else what is left would be rounding
                sums = tuple(a - b for a, b in zip(total, own, strict=True))
        sums = _sums(X, Y, w, mean, train) if sums is None else sums
        values, V, offset, centre, pulled = _factor(sums, intercept)
        if _lost(values, alphas):
            values, V, offset, centre, pulled = _safe_factor(X, Y, w, mean, train, intercept)
        B = np.concatenate([V @ (pulled / (values + a)[:, None]) for a in alphas], axis=1)
        found = np.empty((len(test), B.shape[1]))
        for rows, part in _blocks(X, mean, test):
            found[rows] = (part - offset) @ B
        out.append(found.reshape(len(test), len(alphas), -1).transpose(1, 0, 2) + centre)
    return out


def _mean(X: Any, w: np.ndarray, intercept: bool) -> np.ndarray:
    if not intercept:
        return np.zeros(X.shape[1])
    return np.asarray(X.T @ w if sp.issparse(X) else w @ X, dtype=np.float64) / w.sum()


def _blocks(X: Any, mean: np.ndarray, where: np.ndarray | None = None) -> Any:
    """(positions in `where`, these rows less the mean), some at a time."""
    count = X.shape[0] if where is None else len(where)
    step = max(BLOCK_BYTES // (8 * X.shape[1]), 1)
    for i in range(0, count, step):
        rows = slice(i, min(i + step, count))
        part = X[rows] if where is None else X[where[rows]]
        yield rows, (part.toarray() if sp.issparse(part) else np.asarray(part, np.float64)) - mean


def _moments(part: np.ndarray, Y: np.ndarray, w: np.ndarray) -> tuple:
    weighted = part * w[:, None]
    return weighted.T @ part, weighted.sum(axis=0), weighted.T @ Y, w @ Y, w.sum()


def _sums(X: Any, Y: np.ndarray, w: np.ndarray, mean: np.ndarray, where: np.ndarray) -> tuple:
    """Σw xxᵀ, Σw x, Σw xyᵀ, Σw y, Σw over some rows."""
    out = None
    for rows, part in _blocks(X, mean, where):
        out = _add(out, _moments(part, Y[where[rows]], w[where[rows]]))
    assert out is not None
    return out


def _add(a: tuple | None, b: tuple) -> tuple:
    return b if a is None else tuple(x + y for x, y in zip(a, b, strict=True))


def _factor(sums: tuple, intercept: bool) -> tuple[np.ndarray, np.ndarray, Any, Any, np.ndarray]:
    """Eigenvalues and vectors of the centred Gram matrix, the means of X and Y, and VᵀXᵀWy."""
    G, s, c, t, total = sums
    offset, centre = (s / total, t / total) if intercept else (0.0, 0.0)
    if intercept:
        G = G - np.multiply.outer(s, s / total)
        c = c - np.multiply.outer(s, t / total)
    values, V = eigen(G)
    return np.maximum(values, 0.0), V, offset, centre, V.T @ c


def _lost(values: np.ndarray, alphas: np.ndarray) -> bool:
    """Are small eigenvalues, with the least alpha, within the rounding errors of large ones?"""
    return bool(2.0**-52 * len(values) * values[-1] > 1e-6 * (values[0] + alphas.min()))


def _safe_factor(
    X: Any, Y: np.ndarray, w: np.ndarray, mean: np.ndarray, where: np.ndarray, intercept: bool
) -> tuple[np.ndarray, np.ndarray, Any, Any, np.ndarray]:
    """The same as `_factor`, of these rows, from the singular values of QR's R: they are not squared."""
    p, total = X.shape[1], w[where].sum()
    offset, centre = np.zeros(p), np.zeros(Y.shape[1])
    if intercept:
        for rows, part in _blocks(X, mean, where):
            offset = offset + w[where[rows]] @ part / total
        centre = w[where] @ Y[where] / total
    R = np.zeros((0, p + Y.shape[1]))
    for rows, part in _blocks(X, mean, where):
        both = np.hstack([part - offset, Y[where[rows]] - centre]) * np.sqrt(w[where[rows]])[:, None]
        R = np.asarray(np.linalg.qr(np.vstack([R, both]), mode="r"))
    U, s, Vh = sl.svd(R[:, :p], full_matrices=False, check_finite=False)
    return s**2, Vh.T, offset, centre, s[:, None] * (U.T @ R[:, p:])
