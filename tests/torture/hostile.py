"""Systems that mean harm: X, y, weights and penalties by number, the same for every run."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

STORES = {"C": np.ascontiguousarray, "F": np.asfortranarray, "csr": sp.csr_array, "csc": sp.csc_array}
DTYPES = ("float64", "float64", "float64", "float32", "complex128", "complex64")
ENDS = 1e-100, 1e100  # products of three, as conjugate gradients take them, stay within float64
SINGLE = 1e-30, 1e30  # where answers in single precision stay numbers


def normal(rng, n, p):
    return rng.standard_normal((n, p))


def spoiled(*values):
    """Some entries are not numbers."""

    def make(rng, n, p):
        X = normal(rng, n, p)
        for value in values:
            X[rng.integers(n), rng.integers(p)] = value
        return X

    return make


def sized(power, one=False, spread=0.0):
    """All entries, or one of them, of a size of 10 to some power."""

    def make(rng, n, p):
        X = normal(rng, n, p)
        where = (rng.integers(n), rng.integers(p)) if one else np.s_[:, :]
        X[where] *= 10.0 ** (power + spread * rng.uniform(-1, 1, np.shape(X[where])))
        return X

    return make


def graded(rows=0.0, cols=0.0):
    """Rows and columns over so many orders of magnitude, in any order."""

    def make(rng, n, p):
        grade = [10.0 ** rng.permutation(np.linspace(-k / 2, k / 2, m)) for k, m in ((rows, n), (cols, p))]
        return normal(rng, n, p) * grade[0][:, None] * grade[1]

    return make


def changed(change):
    """Ordinary numbers, then this done to them in place."""

    def make(rng, n, p):
        X = normal(rng, n, p)
        change(X, rng, n, p)
        return X

    return make


def copied_rows(size=0.0):
    def change(X, rng, n, p):
        X[n // 2 :] = X[: n - n // 2] * (1 + size * rng.standard_normal((n - n // 2, p)))

    return changed(change)


def copied_cols(size=0.0):
    def change(X, rng, n, p):
        X[:, p // 2 :] = X[:, : p - p // 2] * (1 + size * rng.standard_normal((n, p - p // 2)))

    return changed(change)


def constant(value, size=0.0, which=1):
    def change(X, rng, n, p):
        X[:, rng.integers(p, size=which)] = value * (1 + size * rng.standard_normal((n, which)))

    return changed(change)


def zeros(rows=0, cols=0, negative=False):
    def change(X, rng, n, p):
        X[rng.integers(n, size=rows)] = -0.0 if negative else 0.0
        X[:, rng.integers(p, size=cols)] = -0.0 if negative else 0.0

    return changed(change)


def of_rank(rank, far=0.0):
    def make(rng, n, p):
        return normal(rng, n, rank) * 10.0 ** (far * rng.uniform(-1, 1, (n, 1))) @ normal(rng, rank, p)

    return make


def hilbert(rng, n, p):
    return 1.0 / (np.arange(n)[:, None] + np.arange(p) + 1)


def vandermonde(rng, n, p):
    return np.linspace(-1, 1, n)[:, None] ** np.arange(p)


def far_vandermonde(rng, n, p):
    """Years, to the powers that polynomial fits take."""
    return np.linspace(1990, 2020, n)[:, None] ** np.arange(p)


def kahan(rng, n, p, angle=0.3):
    s, c = np.sin(angle), np.cos(angle)
    R = np.triu(np.full((n, p), -c), 1)
    R[np.arange(min(n, p)), np.arange(min(n, p))] = 1.0
    return s ** np.arange(n)[:, None] * R


def lauchli(size):
    def make(rng, n, p):
        X = np.zeros((n, p))
        X[0] = 1.0
        k = min(n - 1, p)
        X[np.arange(1, k + 1), np.arange(k)] = size
        return X

    return make


def across(make):
    return lambda rng, n, p: make(rng, p, n).T


def denormal(rng, n, p):
    return rng.integers(-9, 10, (n, p)) * 5e-324


def denormal_column(X, rng, n, p):
    X[:, rng.integers(p)] = 1e-310 * rng.standard_normal(n)


def denormal_entries(X, rng, n, p):
    X[rng.random((n, p)) < 0.5] = 1e-320


MATRICES = {
    "normal": normal,
    "integers": lambda rng, n, p: rng.integers(-3, 4, (n, p)).astype(float),
    "NaN": spoiled(np.nan),
    "+inf": spoiled(np.inf),
    "-inf": spoiled(-np.inf),
    "infs and NaNs": spoiled(np.inf, -np.inf, np.nan),
    "nothing but NaN": lambda rng, n, p: np.full((n, p), np.nan),
    "denormal": denormal,
    "denormal column": changed(denormal_column),
    "denormal entries": changed(denormal_entries),
    "1e300": sized(300),
    "1e-300": sized(-300),
    "largest": lambda rng, n, p: np.full((n, p), np.finfo(float).max) * rng.choice([-1, 1], (n, p)),
    "one 1e300": sized(300, one=True),
    "one 1e-300": sized(-300, one=True),
    "1e153": sized(153, spread=2),
    "1e-153": sized(-153, spread=2),
    "1e137": sized(137, spread=2),
    "1e-137": sized(-137, spread=2),
    "1e60": sized(60, spread=3),
    "1e-60": sized(-60, spread=3),
    "one 1e100": sized(100, one=True),
    "rows over 16": graded(rows=16),
    "columns over 16": graded(cols=16),
    "both over 16": graded(rows=16, cols=16),
    "rows over 60": graded(rows=60),
    "columns over 60": graded(cols=60),
    "both over 200": graded(rows=200, cols=200),
    "nothing but zeros": lambda rng, n, p: np.zeros((n, p)),
    "negative zeros": lambda rng, n, p: np.full((n, p), -0.0),
    "a row of zeros": zeros(rows=1),
    "a column of zeros": zeros(cols=1),
    "rows and columns of negative zeros": zeros(rows=2, cols=2, negative=True),
    "rows twice": copied_rows(),
    "columns twice": copied_cols(),
    "rows nearly twice": copied_rows(1e-15),
    "columns nearly twice": copied_cols(1e-15),
    "columns alike to 1e-8": copied_cols(1e-8),
    "rows alike to 1e-8": copied_rows(1e-8),
    "a constant column": constant(0.1),
    "large constant columns": constant(1e10, which=2),
    "nearly constant columns": constant(1e10, 1e-13, which=2),
    "far from zero": lambda rng, n, p: normal(rng, n, p) + 1e6 * rng.uniform(0.5, 2, p),
    "rank 1": of_rank(1),
    "rank 1 over 16": of_rank(1, far=8.0),
    "rank 2": of_rank(2),
    "Hilbert": hilbert,
    "Vandermonde": vandermonde,
    "far Vandermonde": far_vandermonde,
    "Kahan": kahan,
    "Kahan, tall": across(kahan),
    "Läuchli 1e-8": lauchli(1e-8),
    "Läuchli 1e-160": lauchli(1e-160),
    "Läuchli, wide": across(lauchli(1e-8)),
    "identity": lambda rng, n, p: np.eye(n, p),
    "mostly zeros": lambda rng, n, p: normal(rng, n, p) * (rng.random((n, p)) < 0.3),
}
NAMES = tuple(MATRICES)

SIDES = ("inside", "outside", "both", "both", "nearly inside", "zero", "negative zero", "constant", "one", "far mean")
SCALES = (0, 0, 0, 0, 0, 300, -300, 140, -140, 307, -320)
WRONG = (np.nan, np.inf, -np.inf)


def right_hand_side(rng, X, side, scale, wrong):
    """A y that X reaches, cannot reach, or any, of a size of 10 to some power."""
    n, p = X.shape
    X = np.where(np.isfinite(X), X, 1.0).astype(complex if np.iscomplexobj(X) else float)
    X /= max(np.abs(X).max(), 1e-300)
    y = X @ rng.standard_normal(p)
    y /= np.linalg.norm(y) or 1.0
    noise = rng.standard_normal(n) / np.sqrt(n)
    if side == "outside":
        Q = np.linalg.svd(X, full_matrices=True)[0]
        y = Q[:, min(n, p) :] @ rng.standard_normal(max(n - p, 0)) if n > p else noise
    elif side in ("both", "nearly inside"):
        y = y + noise * (1.0 if side == "both" else 1e-13)
    elif side in ("zero", "negative zero", "constant"):
        y = np.full(n, {"zero": 0.0, "negative zero": -0.0, "constant": 0.1}[side])
    elif side == "one":
        y = np.eye(n)[rng.integers(n)]
    elif side == "far mean":
        y = noise + 1e9
    y = (y if np.iscomplexobj(X) else y.real) * 10.0**scale
    if wrong is not None:
        y[rng.integers(n)] = wrong
    return y


def weights(rng, n, kind):
    w = {
        "ones": np.ones(n),
        "any": 10.0 ** rng.uniform(-2, 2, n),
        "zeros": rng.integers(0, 2, n).astype(float),
        "one": np.zeros(n),
        "over 16": 10.0 ** rng.uniform(-8, 8, n),
        "huge": 1e300 * rng.uniform(1, 2, n),
        "tiny": 1e-300 * rng.uniform(1, 2, n),
        "denormal": np.full(n, 5e-324),
    }[kind]
    w[rng.integers(n)] = w.max() or 1.0
    return w


ALPHAS = (1.0, 1.0, 1e-3, 1e-8, 1e-14, 1e3, 1e14, 1e-300, 1e300, 5e-324)


class Case(NamedTuple):
    """A system, and what is asked of it."""

    name: str
    X: Any
    y: np.ndarray
    alpha: float
    weight: np.ndarray | None
    intercept: bool
    tol: float
    passes: int
    label: str  # what failed, for a person

    @property
    def dense(self):
        return self.X.toarray() if sp.issparse(self.X) else self.X


def case(name, number, method="auto"):
    """The case of this number of this matrix, the same in every run."""
    rng = np.random.default_rng([number, NAMES.index(name), sum(map(ord, method))])
    n, p = (int(k) for k in rng.integers(1, 10, 2))
    if method == "subset" or rng.random() < 0.3:
        n = n + 2 * p
    store, dtype = str(rng.choice(list(STORES))), str(rng.choice(DTYPES))
    alpha = 0.0 if rng.random() < (0.9 if method in ("rek", "subset") else 0.5) else float(rng.choice(ALPHAS))
    kind = str(rng.choice(["ones", "any", "zeros", "one", "over 16", "huge", "tiny", "denormal"]))
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        X = MATRICES[name](rng, n, p)
        if dtype.startswith("complex"):
            X = X * np.exp(1j * rng.uniform(0, 7, (n, 1))) * np.exp(1j * rng.uniform(0, 7, p))
        X = X.astype(dtype)
        top = float(np.abs(X[np.isfinite(X)]).max(initial=0.0))
        if alpha and rng.random() < 0.5 and 0 < top < 1e150:
            alpha = float(np.clip(alpha * top * top, 5e-324, 1e307))
        sides = [
            (str(rng.choice(SIDES)), int(rng.choice(SCALES)), rng.choice(WRONG) if rng.random() < 0.04 else None)
            for _ in range(3 if rng.random() < 0.25 else 1)
        ]
        y = np.stack([right_hand_side(rng, X, *side) for side in sides], axis=1)
    weight = weights(rng, n, kind) if rng.random() < 0.35 else None
    intercept = bool(rng.random() < 0.25)
    single = len(sides) == 1 and rng.random() < 0.8
    told = f"case({name!r}, {number}, {method!r}): {n} x {p} {dtype} {store}, alpha {alpha:g}, y {sides}"
    told += ("" if weight is None else f", weights {kind}") + (", intercept" if intercept else "")
    tol, passes = float(rng.choice([1e-3, 1e-6, 1e-6, 1e-10])), int(rng.choice([30, 30, 30, 200]))
    return Case(name, STORES[store](X), y[:, 0] if single else y, alpha, weight, intercept, tol, passes, told)


def ordinary(one):
    """Are all numbers such that nothing leaves float64, or the answer's precision, on the way?"""
    low, high = SINGLE if one.dense.dtype in (np.float32, np.complex64) else ENDS
    parts = [np.abs(one.dense).ravel(), np.abs(one.y).ravel(), np.array([one.alpha])]
    parts += [] if one.weight is None else [one.weight]
    sizes = np.concatenate([np.asarray(a, float) for a in parts])
    return bool(((sizes == 0) | ((sizes > low) & (sizes < high))).all())
