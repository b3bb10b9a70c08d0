"""The problems: each is X, y and alpha with the truth known, so that an answer's error is a fact and not an estimate.

The truth is chosen first and y made from it: noise is put orthogonal to the range of X, so that the least-squares
solution is the β we chose, to rounding. Only files from a folder (`from_files`) leave the truth to LAPACK.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.fft
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg as sla

from rowcol import zoo
from rowcol.racing.problems import Dataset, own

# --- pieces --------------------------------------------------------------------------------------------------------


def _project_out(X: np.ndarray, z: np.ndarray) -> np.ndarray:
    """z without its part in the range of X, for well-conditioned X: normal equations, repeated until only rounding is
    left. A QR would do the same for twice the flops and another copy of X."""
    factor = scipy.linalg.cho_factor(X.T @ X)
    for _ in range(4):
        z = z - X @ scipy.linalg.cho_solve(factor, X.T @ z)
    return z


def _noise(X: np.ndarray, rng: np.random.Generator, columns: tuple[int, ...] = (), basis: Any = None) -> np.ndarray:
    """Noise of about one an equation, orthogonal to the range of X: to `basis`, if an orthonormal one is at hand."""
    z = rng.standard_normal((X.shape[0], *columns))
    if basis is None:
        return _project_out(X, z)
    for _ in range(3):
        z = z - basis @ (basis.T @ z)
    return z


def _spectrum(n: int, values: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """An n x p matrix with these singular values, and an orthonormal basis of its range."""
    U, V = (scipy.linalg.qr(rng.standard_normal((k, len(values))), mode="economic")[0] for k in (n, len(values)))
    return np.ascontiguousarray((U * values) @ V.T), U


# --- dense, no penalty ---------------------------------------------------------------------------------------------


def tall_consistent(n: int, p: int, dtype: str = "float64", targets: tuple[float, ...] = (1e-8,)) -> Dataset:
    """In float32 y is rounded, so the system is consistent to 6e-8 only: as such data come."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p), dtype=np.dtype(dtype).type)
    beta = rng.standard_normal(p)
    y = (X @ beta).astype(dtype)
    return Dataset("", X, y, 0.0, beta, targets, "tall consistent", True)


def tall_consistent_ill(n: int, p: int, condition: float) -> Dataset:
    rng = np.random.default_rng(1)
    X, _ = _spectrum(n, np.geomspace(1.0, 1.0 / condition, p), rng)
    beta = rng.standard_normal(p)
    return Dataset("", X, X @ beta, 0.0, beta, (1e-8,), "tall consistent", True)


def tall_inconsistent(
    n: int,
    p: int,
    order: str = "C",
    dtype: str = "float64",
    columns: tuple[int, ...] = (),
    targets: tuple[float, ...] = (1e-8,),
) -> Dataset:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((n, p), dtype=np.dtype(dtype).type)
    beta = rng.standard_normal((p, *columns))
    exact = X.astype(np.float64, copy=False)
    y = (exact @ beta + _noise(exact, rng, columns)).astype(dtype)
    del exact
    X = np.asfortranarray(X) if order == "F" else X
    return Dataset("", X, y, 0.0, beta, targets, "tall inconsistent")


def badly_scaled(n: int, p: int, smallest: float = 1e-6) -> Dataset:
    """Units that differ: every column matters as much to y, but their norms run from 1 down to `smallest`."""
    rng = np.random.default_rng(3)
    X, beta, units = rng.standard_normal((n, p)), rng.standard_normal(p), np.geomspace(1.0, smallest, p)
    y = X @ beta + _noise(X, rng)
    X *= units
    return Dataset("", X, y, 0.0, beta / units, (1e-8,), "tall inconsistent")


def wide(n: int, p: int, factors: int = 0, columns: tuple[int, ...] = ()) -> Dataset:
    """Minimum norm; with common `factors` the columns are alike and a few singular values stand out."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((n, p))
    if factors:
        X += rng.standard_normal((n, factors)) @ rng.standard_normal((factors, p))
    beta = X.T @ rng.standard_normal((n, *columns)) / p
    return Dataset("", X, X @ beta, 0.0, beta, (1e-8,), "wide", True)


def ill_conditioned(n: int, p: int, condition: float) -> Dataset:
    """Singular values spread evenly, in logarithm, from 1 down to 1/condition; the residual is as large as X β."""
    rng = np.random.default_rng(5)
    X, U = _spectrum(n, np.geomspace(1.0, 1.0 / condition, p), rng)
    beta = rng.standard_normal(p)
    z, fit = _noise(X, rng, basis=U), X @ beta
    y = fit + z * (np.linalg.norm(fit) / np.linalg.norm(z))
    return Dataset("", X, y, 0.0, beta, (1e-8,), "ill-conditioned")


def rank_deficient(n: int, p: int, rank: int) -> Dataset:
    """Neither a solution nor only one least-squares solution: the truth is the shortest of them."""
    rng = np.random.default_rng(6)
    left, right = rng.standard_normal((n, rank)), rng.standard_normal((rank, p)) / np.sqrt(rank)
    X = left @ right
    beta = right.T @ rng.standard_normal(rank)
    return Dataset("", X, X @ beta + _noise(left, rng), 0.0, beta, (1e-8,), "rank-deficient")


def flat_tail(n: int, outliers: int = 50, tallest: float = 1000.0) -> Dataset:
    """Square; a few singular values from 10 up to `tallest`, the rest in [0.9, 1.1].

    The singular vectors are two rounds of random signs and a cosine transform: as good as random ones, in n² log n.
    """
    rng = np.random.default_rng(7)
    values = np.concatenate([np.geomspace(10.0, tallest, outliers), rng.uniform(0.9, 1.1, n - outliers)])
    X = np.diag(rng.permutation(values))
    for axis in (0, 0, 1, 1):
        X = scipy.fft.dct(X, axis=axis, norm="ortho", overwrite_x=True)
        X *= rng.choice((-1.0, 1.0), (n, 1) if axis == 0 else (1, n))
    X, beta = np.ascontiguousarray(X), rng.standard_normal(n)
    return Dataset("", X, X @ beta, 0.0, beta, (1e-4, 1e-8), "flat tail", True)


# --- sparse --------------------------------------------------------------------------------------------------------


def sparse_rows(n: int, p: int, per_row: int = 10, noise: bool = False) -> Dataset:
    case = zoo.sparse_consistent(n, p, per_row, seed=8)
    if not noise:
        return Dataset("", case.X, case.y, 0.0, case.answer, (1e-4, 1e-8), "sparse consistent", True)
    z = np.random.default_rng(9).standard_normal(n)
    for _ in range(3):  # each time the rest shrinks by the accuracy of lsqr
        z = z - case.X @ sla.lsqr(case.X, z, atol=1e-14, btol=1e-14, conlim=0, iter_lim=1000)[0]
    return Dataset("", case.X, case.y + z, 0.0, case.answer, (1e-8,), "sparse inconsistent")


def ct(pixels: int, angles: int, noise: float = 0.0) -> Dataset:
    """With noise the phantom is passed on the way to the least-squares image (semi-convergence): an early stop wins."""
    case = zoo.tomography(pixels, angles)
    if not noise:
        return Dataset("", case.X, case.y, 0.0, case.answer, (0.2, 0.1, 0.03, 0.01), "CT", True)
    rng = np.random.default_rng(10)
    y = case.y + noise * np.linalg.norm(case.y) / np.sqrt(case.y.size) * rng.standard_normal(case.y.size)
    return Dataset("", case.X, y, 0.0, case.answer, (0.2, 0.1), "CT with noise")


def text(n: int, p: int, words: int = 60) -> Dataset:
    case = zoo.text(n, p, words, alpha=1.0)
    return Dataset("", case.X, case.y, case.alpha, case.answer, (1e-2, 1e-4), "text ridge")


# --- ridge ---------------------------------------------------------------------------------------------------------


def ridge_tall(n: int, p: int, penalty: float, order: str, targets: tuple[float, ...]) -> Dataset:
    """y = Xβ + r with Xᵀr = alpha β: the part of r in the range of X is fixed by that, the rest is noise."""
    rng = np.random.default_rng(11)
    X, beta, alpha = rng.standard_normal((n, p)), rng.standard_normal(p), penalty * n
    y = X @ (beta + alpha * scipy.linalg.cho_solve(scipy.linalg.cho_factor(X.T @ X), beta)) + _noise(X, rng)
    return Dataset("", np.asarray(X, order=order), y, alpha, beta, targets, "ridge")


def ridge_wide(n: int, p: int, penalty: float) -> Dataset:
    """The dual first: β = Xᵀd and y = Xβ + alpha d."""
    rng = np.random.default_rng(12)
    X, alpha = rng.standard_normal((n, p)), penalty * n
    dual = rng.standard_normal(n) / np.sqrt(p)
    beta = X.T @ dual
    return Dataset("", X, X @ beta + alpha * dual, alpha, beta, (1e-4, 1e-8), "ridge")


def with_intercept(base: Callable[..., Dataset], **sizes: Any) -> Dataset:
    """The same X, off its origin where it is dense: a dual that sums to zero is the intercept's own condition."""
    plain = base(**sizes)
    rng = np.random.default_rng(13)
    X = plain.X if sp.issparse(plain.X) else plain.X + rng.uniform(-2, 2, plain.X.shape[1])
    dual = rng.standard_normal(X.shape[0])
    dual -= dual.mean()
    beta = X.T @ dual / np.linalg.norm(X.T @ dual)
    dual = dual / np.linalg.norm(X.T @ dual)
    y = X @ beta + plain.alpha * dual + 3.0
    return Dataset("", X, y, plain.alpha, beta, plain.targets, "ridge, intercept", intercept=True)


def ridge_scaled(n: int, p: int) -> Dataset:
    """Columns from 1 to 1e-3 in size."""
    rng = np.random.default_rng(14)
    X, alpha, beta = rng.standard_normal((n, p)) * np.geomspace(1, 1e-3, p), 1e-4, rng.standard_normal(p)
    y = X @ (beta + alpha * scipy.linalg.cho_solve(scipy.linalg.cho_factor(X.T @ X), beta)) + _noise(X, rng)
    return Dataset("", X, y, alpha, beta, (1e-4,), "ridge")


# --- the list ------------------------------------------------------------------------------------------------------


class Spec(NamedTuple):
    """How to make a dataset, at its full size and at one about twenty times smaller."""

    make: Callable[..., Dataset]
    full: dict[str, Any]
    quick: dict[str, Any]


def _spec(make: Callable[..., Dataset], full: tuple, quick: tuple, names: tuple = ("n", "p"), **common: Any) -> Spec:
    return Spec(make, dict(zip(names, full)) | common, dict(zip(names, quick)) | common)


# (full, quick) sizes that several problems share
LONG = (1_000_000, 50), (50_000, 50)
MIDDLE = (100_000, 500), (5_000, 500)
MANY = (100_000, 200), (5_000, 200)
SHORT = (50_000, 300), (2_500, 300)
WIDE = (500, 100_000), (500, 5_000)
RIDGE = (100_000, 100), (5_000, 100)
SPARSE = (200_000, 20_000), (10_000, 1_000)
IMAGE = (128, 192), (32, 48)

SPECS: dict[str, Spec] = {
    "tall-consistent-p50": _spec(tall_consistent, *LONG),
    "tall-consistent-p500": _spec(tall_consistent, *MIDDLE),
    "tall-consistent-kappa1e4": _spec(tall_consistent_ill, *SHORT, condition=1e4),
    "tall-consistent-float32": _spec(tall_consistent, *LONG, dtype="float32", targets=(1e-4,)),
    "tall-inconsistent-p50-C": _spec(tall_inconsistent, *LONG, order="C"),
    "tall-inconsistent-p50-F": _spec(tall_inconsistent, *LONG, order="F"),
    "tall-inconsistent-p500-C": _spec(tall_inconsistent, *MIDDLE, order="C"),
    "tall-inconsistent-p500-F": _spec(tall_inconsistent, *MIDDLE, order="F"),
    "tall-inconsistent-p4000": _spec(tall_inconsistent, (20_000, 4_000), (4_000, 1_000)),
    "tall-inconsistent-float32": _spec(tall_inconsistent, *LONG, dtype="float32", targets=(1e-4,)),
    "tall-inconsistent-16": _spec(tall_inconsistent, *MANY, columns=(16,)),
    "tall-inconsistent-badly-scaled": _spec(badly_scaled, *MANY),
    "wide": _spec(wide, *WIDE),
    "wide-factors": _spec(wide, *WIDE, factors=20),
    "wide-16": _spec(wide, (500, 50_000), (500, 2_500), columns=(16,)),
    "ill-conditioned-kappa1e2": _spec(ill_conditioned, *SHORT, condition=1e2),
    "ill-conditioned-kappa1e4": _spec(ill_conditioned, *SHORT, condition=1e4),
    "rank-deficient": _spec(rank_deficient, *SHORT, rank=200),
    "flat-tail": _spec(flat_tail, (8192,), (1500,), names=("n",)),
    "sparse-consistent": _spec(sparse_rows, *SPARSE),
    "sparse-inconsistent": _spec(sparse_rows, *SPARSE, noise=True),
    "ct": _spec(ct, *IMAGE, names=("pixels", "angles")),
    "ct-noise": _spec(ct, *IMAGE, names=("pixels", "angles"), noise=0.01),
    "text-ridge": _spec(text, (20_000, 50_000), (1_000, 2_500)),
    "ridge-tall-F": _spec(ridge_tall, *RIDGE, penalty=1e-6, order="F", targets=(1e-8,)),
    "ridge-tall-C": _spec(ridge_tall, *RIDGE, penalty=0.1, order="C", targets=(1e-4,)),
    "ridge-wide": _spec(ridge_wide, (500, 50_000), (500, 2_500), penalty=1e-6),
    "ridge-scaled": _spec(ridge_scaled, (20_000, 200), (1_000, 40)),
    "intercept-text": _spec(with_intercept, (20_000, 50_000), (1_000, 2_500), base=text),
    "intercept-tall": _spec(with_intercept, *RIDGE, base=ridge_tall, penalty=1e-6, order="C", targets=(1e-8,)),
    "intercept-wide": _spec(with_intercept, (500, 50_000), (500, 2_500), base=ridge_wide, penalty=1e-6),
}


def chosen(only: str = "") -> list[str]:
    """The names that contain one of the comma-separated words; all of them if there are none."""
    words = [word for word in only.split(",") if word]
    exact = [word for word in words if word in SPECS]
    loose = [word for word in words if word not in SPECS]
    return [name for name in SPECS if not words or name in exact or any(word in name for word in loose)]


def make(name: str, size: str = "full") -> Dataset:
    """One dataset, made anew: nothing is kept on disk."""
    spec = SPECS[name]
    found = spec.make(**(spec.quick if size == "quick" else spec.full))
    return Dataset(**{**vars(found), "name": name, "size": size})


def from_files(folder: str | Path) -> Iterator[Dataset]:
    """Least squares on every .npy and .csv of a folder, the last column being the target; the truth is LAPACK's."""
    for path in sorted(Path(folder).iterdir()):
        if path.suffix not in (".npy", ".csv"):
            continue
        table = np.load(path) if path.suffix == ".npy" else np.genfromtxt(path, delimiter=",")
        table = np.asarray(table, dtype=np.float64)
        table = table[:, ~np.isnan(table).all(axis=0)]  # columns of words
        table = table[~np.isnan(table).any(axis=1)]  # a header, gaps
        X, y = np.ascontiguousarray(table[:, :-1]), table[:, -1].copy()
        yield own(path.stem, X, y, 0.0, "full")
