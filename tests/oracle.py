"""Naive truths, typed as the paper prints them, and a way to walk the engine pick by pick beside them."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from rowcol.core.problem import problem
from rowcol.core.view import beta, both, cols, dual, row_lines, rows, state
from rowcol.engine.lines import descend


def kaczmarz(X, y, picks, beta):  # (4)
    for i in picks:
        beta = beta + (y[i] - X[i] @ beta) / np.linalg.norm(X[i]) ** 2 * X[i].conj()
        yield beta


def coordinate_descent(X, y, picks, beta):  # (6)
    for j in picks:
        e = np.zeros(X.shape[1])
        e[j] = 1
        beta = beta + X[:, j].conj() @ (y - X @ beta) / np.linalg.norm(X[:, j]) ** 2 * e
        yield beta


def ridge_rows(X, y, lam, picks):  # (13)-(15)
    alpha, beta = np.zeros(len(y)), np.zeros(X.shape[1])
    for i in picks:
        delta = (y[i] - beta @ X[i] - lam * alpha[i]) / (X[i] @ X[i] + lam)
        alpha[i] += delta
        beta = beta + delta * X[i]
        yield alpha.copy(), beta


def psd_descent(A, b, picks, x):
    """Section 6: randomized coordinate descent for A x = b."""
    for i in picks:
        x = x.copy()
        x[i] += (b[i] - A[i] @ x) / A[i, i]
        yield x


def extended_kaczmarz(X, y, picks):
    """Zouzias and Freris: a column pick, then a row pick."""
    z, beta = y.copy(), np.zeros(X.shape[1], X.dtype)
    for j, i in picks:
        z = z - X[:, j].conj() @ z / np.linalg.norm(X[:, j]) ** 2 * X[:, j]
        beta = beta + (y[i] - z[i] - X[i] @ beta) / np.linalg.norm(X[i]) ** 2 * X[i].conj()
        yield beta


def as_given(X, y, alpha=0.0):
    """The Problem with y in the user's own scale, so that steps can be compared with the paper's."""
    asked = problem(X, y, alpha)
    return asked._replace(y=asked.y * asked.scale[:, None], scale=np.ones(len(asked.y)))


def walk(side, X, y, picks, alpha=0.0, x=None, s=None):
    """The engine, one pick at a time: (β, α, s) after every step."""
    asked = as_given(X, y, alpha)
    view = {"rows": rows, "cols": cols, "both": both}[side](asked)
    now = state(view, x, s)
    t = now.table
    for pick in picks:
        descend(view.lines, t["diag"], t["lam"], t["b"], t["x"], now.s, np.array([pick]))
        a = dual(view, now)
        yield beta(view, now)[0], None if a is None else a[0], now.s[0].copy()


def jump(side, X, y, picks, alpha=0.0, parts=None):
    """The engine, all picks in one call (or in several parts): the final (β, α, s)."""
    asked = as_given(X, y, alpha)
    view = {"rows": rows, "cols": cols, "both": both}[side](asked)
    now = state(view)
    t = now.table
    for part in [picks] if parts is None else parts:
        descend(view.lines, t["diag"], t["lam"], t["b"], t["x"], now.s, np.asarray(part, np.int64))
    return beta(view, now), dual(view, now), now.s


def last(iterates):
    *_, end = iterates
    return end


def close(a, b, tol=1e-12):
    """Equal to rounding, relative to the size of b."""
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape
    assert np.linalg.norm(a - b) <= tol * max(np.linalg.norm(b), 1e-300), np.linalg.norm(a - b) / np.linalg.norm(b)


def scattered(rng, n, p, density, layout="csr"):
    """Numbers at random places; SciPy's own took its generator by another name before 1.15."""
    count = int(n * p * density)
    where = (rng.integers(0, n, count, np.int32), rng.integers(0, p, count, np.int32))
    return sp.coo_array((rng.random(count), where), shape=(n, p)).asformat(layout)


def uneven(n=3_000, p=20, seed=0, noise=1.0):
    """A tall system with means, and columns of different size."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * np.geomspace(1, 30, p) + 3.0
    return X, X @ rng.standard_normal(p) + noise * rng.standard_normal(n)


def lapack(X, y, alpha=0.0):
    """Least squares, or ridge as least squares of more rows, by LAPACK."""
    p = X.shape[1]
    A = np.vstack([X, np.sqrt(alpha) * np.eye(p)]) if alpha else X
    return np.linalg.lstsq(A, np.concatenate([y, np.zeros((p, *y.shape[1:]))]) if alpha else y, rcond=None)[0]


def make_lines(kind, dtype, shape, rng, density=0.4):
    """Random X, and its rows as lines of a kind."""
    X = rng.standard_normal(shape)
    if np.issubdtype(dtype, np.complexfloating):
        X = X + 1j * rng.standard_normal(shape)
    X = X.astype(dtype)
    if kind == "sparse":
        X[rng.random(shape) > density] = 0
        return X, row_lines(sp.csr_array(X))[0]
    return X, row_lines(X)[0]


def double(dtype):
    """What lines of a dtype are summed in."""
    return np.complex128 if np.issubdtype(dtype, np.complexfloating) else np.float64


def vectors(q, k, dtype, rng):
    """q random vectors of k numbers."""
    v = rng.standard_normal((q, k))
    return (v + 1j * rng.standard_normal((q, k)) if dtype == np.complex128 else v).astype(dtype)
