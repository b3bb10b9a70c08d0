"""The public entries that take X and y, each beside a truth by LAPACK on plain float64 numbers.

An entry is `ask(X, y, weight)`, which gives numbers, and `truth(X, y, weight)`, which gives the same from plain arrays.
"""

from __future__ import annotations

import tempfile
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

import rowcol
from oracle import lapack
from rowcol import kernels, theory

ALPHA, GAMMA, TOL = 0.5, 0.05, 1e-10
EXACT = {"tol": TOL, "random_state": 0}


class Entry(NamedTuple):
    ask: Any
    truth: Any
    real: bool = True  # complex numbers are refused
    weighted: bool = False  # it takes sample_weight
    labels: bool = False  # y is classes
    of_y: bool = True  # it takes y at all
    places: bool = False  # X may be an operator


def linear(alpha=0.0, intercept=False):
    """Coefficients, then the intercept: LAPACK on √w (X − x̄)."""

    def truth(X, y, w=None):
        w = np.ones(len(X)) if w is None else np.asarray(w, float)
        x_mean, y_mean = (w @ X / w.sum(), w @ y / w.sum()) if intercept else (np.zeros(X.shape[1]), 0 * y[0])
        root = np.sqrt(w)
        A, b = root[:, None] * (X - x_mean), root.reshape(-1, *[1] * (y.ndim - 1)) * (y - y_mean)
        beta = lapack(A, b, alpha)
        return np.ravel(np.concatenate([beta, np.atleast_2d((y_mean - x_mean @ beta).T).reshape(-1, *y.shape[1:])]))

    return truth


def by_kernel(X, y, w=None, intercept=False, gamma=GAMMA, alpha=ALPHA):
    """Values at the points: (K + αW⁻¹)⁻¹, bordered by ones where there is an intercept."""
    w = np.ones(len(X)) if w is None else np.asarray(w, float)
    K, live = rbf_kernel(X, X, gamma), w > 0
    n = int(live.sum())
    A = np.zeros((n + intercept, n + intercept))
    A[:n, :n] = K[np.ix_(live, live)] + alpha * np.diag(1 / w[live])
    if intercept:
        A[n, :n] = A[:n, n] = 1.0
    found = np.linalg.solve(A, np.concatenate([y[live], np.zeros((int(intercept), *y.shape[1:]))]))
    return np.ravel(K[:, live] @ found[:n] + (found[n] if intercept else 0.0))


def rbf_kernel(A, B, gamma):
    """By differences: scikit-learn's dot products lose distances beside large norms."""
    return np.exp(-gamma * cdist(A, B, "sqeuclidean"))


def classes(of):
    def truth(X, y, w=None):
        named = np.unique(y)
        return of(X, np.where(y == named[-1], 1.0, -1.0), w)

    return truth


def coefficients(found):
    """Of a Result or a model."""
    x = found.x if hasattr(found, "x") else found.coef_.T
    b = found.intercept if hasattr(found, "x") else found.intercept_
    b = 0.0 if b is None else b
    return np.concatenate([np.ravel(x), np.broadcast_to(b, np.shape(x)[1:]).ravel()])


def solved(**more):
    return lambda X, y, w=None: coefficients(rowcol.solve(X, y, sample_weight=w, **EXACT | more))


def fitted(kind, **more):
    return lambda X, y, w=None: coefficients(kind(**EXACT | more).fit(X, y, w))


def at_points(kind, **more):
    """Predictions of a kernel model at its own points."""

    def ask(X, y, w=None):
        model = kind(**EXACT | more).fit(X, y, w)
        return np.ravel(model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X))

    return ask


def resumed(X, y, w=None):
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/one.checkpoint"
        settings = dict(alpha=ALPHA, method="cg", sample_weight=w, checkpoint=path, **EXACT)
        rowcol.solve(X, y, callback=lambda now: True, **settings)
        return coefficients(rowcol.resume(path, X, y))


def reported(X, y, w=None):
    """A report writes, and is asked for X and y only: its numbers are those of the Result."""
    result = rowcol.solve(PLAIN_X, PLAIN_Y, alpha=ALPHA, **EXACT)
    with tempfile.TemporaryDirectory() as folder:
        return [float(rowcol.report(result, f"{folder}/page.html", X=X, y=y).stat().st_size > 0)]


def chunked(X, y, w=None):
    return coefficients(rowcol.solve(rowcol.chunks(X, rows=5), y, sample_weight=w, alpha=ALPHA, **EXACT))


def squares(X, y=None, w=None):
    """Largest and smallest singular value."""
    s = np.linalg.svd(X, compute_uv=False)
    return np.array([s[0], s[-1]])


def horizon_of(X, y, w=None):
    beta, s = lapack(X, y), np.linalg.svd(X, compute_uv=False)
    live = np.abs(X).max(axis=1) > 0
    return [float(np.linalg.norm((y - X @ beta)[live]) ** 2 / s[-1] ** 2)]


def rate_of(X, y=None, w=None):
    s = np.linalg.svd(X, compute_uv=False)
    return [1 - s[-1] ** 2 / (s**2).sum()]


def partial(X, y, w=None):
    model = rowcol.Ridge(ALPHA, **EXACT)
    half = PLAIN_X.shape[0] // 2
    model.partial_fit(PLAIN_X[:half], PLAIN_Y[:half])
    return coefficients(model.partial_fit(X, y, w))


def partial_truth(X, y, w=None):
    half = PLAIN_X.shape[0] // 2
    both = np.concatenate([np.ones(half), np.ones(len(X)) if w is None else w])
    return linear(ALPHA, True)(np.vstack([PLAIN_X[:half], X]), np.concatenate([PLAIN_Y[:half], y]), both)


def later(kind, method, **more):
    """What a model fitted to plain numbers says of another X."""
    model = []

    def ask(X, y, w=None):
        if not model:
            model.append(kind(**EXACT | more).fit(PLAIN_X, LABELS if "Classifier" in kind.__name__ else PLAIN_Y))
        found = getattr(model[0], method)
        return np.ravel(found(X, y) if method == "score" else found(X))

    return ask


def later_truth(of, kernel=False, score=False):
    def truth(X, y, w=None):
        if kernel:
            K = rbf_kernel(PLAIN_X, PLAIN_X, GAMMA) + ALPHA * np.eye(len(PLAIN_X))
            values = rbf_kernel(X, PLAIN_X, GAMMA) @ np.linalg.solve(K, PLAIN_Y)
        else:
            beta = of(PLAIN_X, PLAIN_Y)
            values = X @ beta[:-1] + beta[-1]
        if not score:
            return values
        return [1 - ((y - values) ** 2).sum() / ((y - y.mean()) ** 2).sum()]

    return truth


def classes_later(X, y=None, w=None):
    beta = linear(ALPHA, True)(PLAIN_X, np.where(LABELS == 2, 1.0, -1.0))
    return np.where(X @ beta[:-1] + beta[-1] > 0, 2, 1)


_rng = np.random.default_rng(10)
PLAIN_X = _rng.integers(0, 6, (12, 3)).astype(float)
PLAIN_Y = _rng.integers(0, 9, 12).astype(float)
LABELS = np.array([1, 2] * 6)
WEIGHTS = _rng.integers(1, 5, 12).astype(float)

RBF = {"kernel": kernels.RBF(gamma=GAMMA), "alpha": ALPHA}
ENTRIES = {
    "solve": Entry(solved(), linear(), False, True, places=True),
    "solve ridge": Entry(solved(alpha=ALPHA), linear(ALPHA), False, True, places=True),
    "solve intercept": Entry(solved(alpha=ALPHA, fit_intercept=True), linear(ALPHA, True), False, True, places=True),
    "solve rk": Entry(solved(alpha=50.0, method="rk"), linear(50.0), False, True),
    "solve rcd": Entry(solved(method="rcd"), linear(), False, True),
    "solve rek": Entry(solved(method="rek"), linear(), False, True),
    "solve direct": Entry(solved(method="direct"), linear(), False, True),
    "solve cg": Entry(solved(method="cg"), linear(), False, True, places=True),
    "solve sgs-cg": Entry(solved(method="sgs-cg", alpha=ALPHA), linear(ALPHA), False, True),
    "solve blocks": Entry(solved(method="blocks", alpha=ALPHA), linear(ALPHA), False, True),
    "solve kernel": Entry(
        lambda X, y, w=None: np.ravel(rowcol.solve(X, y, sample_weight=w, **RBF, **EXACT).function(X)),
        by_kernel,
        True,
        True,
    ),
    "plan": Entry(
        lambda X, y, w=None: list(rowcol.plan(X, y, sample_weight=w, alpha=ALPHA).shape),
        lambda X, y, w=None: list(X.shape),
        False,
        True,
        places=True,
    ),
    "prepare": Entry(
        lambda X, y, w=None: coefficients(rowcol.prepare(X, alpha=ALPHA, sample_weight=w).solve(y, tol=TOL)),
        linear(ALPHA),
        False,
        True,
        places=True,
    ),
    "ridge_path": Entry(
        lambda X, y, w=None: np.ravel(rowcol.ridge_path(X, y, [3.0, ALPHA], sample_weight=w, tol=TOL).coef[1].T),
        lambda X, y, w=None: linear(ALPHA)(X, y, w)[: -1 if y.ndim == 1 else -y.shape[1]],
        False,
        True,
        places=True,
    ),
    "chunks": Entry(chunked, linear(ALPHA), False, True),
    "resume": Entry(resumed, linear(ALPHA), False, True, places=True),
    "report": Entry(reported, lambda X, y, w=None: [1.0], False),
    "rate": Entry(lambda X, y=None, w=None: [theory.rate(X, "rk").step], rate_of, False, of_y=False),
    "passes": Entry(
        lambda X, y=None, w=None: [theory.passes(X, "rk", 1e-3) > 0], lambda X, y=None, w=None: [1.0], False, of_y=False
    ),
    "extremes": Entry(
        lambda X, y=None, w=None: [theory.extremes(X).largest, theory.extremes(X).smallest],
        squares,
        False,
        of_y=False,
    ),
    "horizon": Entry(lambda X, y, w=None: [theory.horizon(X, y).limit], horizon_of, False),
    "kernels.RBF": Entry(
        lambda X, y=None, w=None: np.ravel(kernels.RBF(gamma=GAMMA)(X)),
        lambda X, y=None, w=None: np.ravel(rbf_kernel(X, X, GAMMA)),
        of_y=False,
    ),
    "Ridge": Entry(fitted(rowcol.Ridge, alpha=ALPHA), linear(ALPHA, True), weighted=True),
    "Ridge.partial_fit": Entry(partial, partial_truth, weighted=True),
    "Ridge.predict": Entry(later(rowcol.Ridge, "predict", alpha=ALPHA), later_truth(linear(ALPHA, True)), of_y=False),
    "Ridge.score": Entry(later(rowcol.Ridge, "score", alpha=ALPHA), later_truth(linear(ALPHA, True), score=True)),
    "LeastSquares": Entry(fitted(rowcol.LeastSquares), linear(0.0, True), weighted=True),
    "RidgeCV": Entry(fitted(rowcol.RidgeCV, alphas=[ALPHA]), linear(ALPHA, True), weighted=True),
    "RidgeClassifier": Entry(
        fitted(rowcol.RidgeClassifier, alpha=ALPHA), classes(linear(ALPHA, True)), weighted=True, labels=True
    ),
    "RidgeClassifier.predict": Entry(
        later(rowcol.RidgeClassifier, "predict", alpha=ALPHA), classes_later, of_y=False, labels=True
    ),
    "KernelRidge": Entry(at_points(rowcol.KernelRidge, **RBF), by_kernel, weighted=True),
    "KernelRidge.predict": Entry(
        later(rowcol.KernelRidge, "predict", **RBF), later_truth(None, kernel=True), of_y=False
    ),
    "KernelRidge.score": Entry(later(rowcol.KernelRidge, "score", **RBF), later_truth(None, kernel=True, score=True)),
    "KernelRidgeCV": Entry(
        at_points(rowcol.KernelRidgeCV, kernel=kernels.RBF(gamma=GAMMA), alphas=[ALPHA], cv=2),
        lambda X, y, w=None: by_kernel(X, y, w, True),
        weighted=True,
    ),
    "KernelRidgeClassifier": Entry(
        at_points(rowcol.KernelRidgeClassifier, **RBF),
        classes(lambda X, y, w=None: by_kernel(X, y, w, True)),
        weighted=True,
        labels=True,
    ),
}
