"""Named problems with known answers.

The answers come from the way the problem is made, never from a solver of this package: a solution is chosen first, in
the row space where it must be of minimum norm, and the right-hand side follows; an inconsistent part is made
orthogonal to the range; a ridge problem starts from its dual, β = Xᵀα and y = Xβ + λα.

Examples
--------
>>> from rowcol import zoo
>>> case = zoo.tall_inconsistent(n=200, p=10, seed=0)
>>> case.X.shape, case.answer.shape, case.alpha
((200, 10), (10,), 0.0)
>>> bool(abs(case.X.T @ (case.y - case.X @ case.answer)).max() < 1e-10)
True
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

__all__ = [
    "CASES",
    "Case",
    "correlated",
    "flat_tail",
    "ill_conditioned",
    "phantom",
    "rank_deficient",
    "rank_deficient_inconsistent",
    "sparse_consistent",
    "tall_consistent",
    "tall_inconsistent",
    "text",
    "tomography",
    "wide",
    "zero_lines",
]


class Case(NamedTuple):
    """A problem and its answer.

    Attributes
    ----------
    X, y, alpha
        What to solve.
    answer : ndarray
        The minimum-norm least-squares (or ridge) solution.
    kind : str
        Which solution that is, in words.
    good : tuple of str
        The methods that converge to it, given passes enough (`flat_tail`, `ill_conditioned` and `tomography` take more
        than the usual 1000 at their usual sizes); the others converge to something else, or not at all.
    """

    name: str
    X: Any
    y: np.ndarray
    alpha: float
    answer: np.ndarray
    kind: str
    good: tuple[str, ...]

    def __repr__(self) -> str:
        n, p = self.X.shape
        store = f"sparse, {self.X.nnz:,} entries" if sp.issparse(self.X) else "dense"
        by = ", ".join(self.good)
        return f"Case({self.name}: {n:,} x {p:,} {store}, alpha={self.alpha:g}, answer: {self.kind}, by {by})"


def tall_consistent(n: int = 300, p: int = 40, seed: int = 0) -> Case:
    """Gaussian, more equations than unknowns, all of them true: Section 3 of the paper."""
    rng = np.random.default_rng(seed)
    X, beta = rng.standard_normal((n, p)), rng.standard_normal(p)
    return Case("tall_consistent", X, X @ beta, 0.0, beta, "unique", ("rk", "rcd", "rek"))


def tall_inconsistent(n: int = 300, p: int = 40, noise: float = 1.0, seed: int = 0) -> Case:
    """Gaussian, with a residual of size `noise` an equation that no β removes: Section 4."""
    rng = np.random.default_rng(seed)
    X, beta = rng.standard_normal((n, p)), rng.standard_normal(p)
    y = X @ beta + _unreachable(X, noise, rng)
    return Case("tall_inconsistent", X, y, 0.0, beta, "least squares", ("rcd", "rek"))


def wide(n: int = 40, p: int = 300, seed: int = 0) -> Case:
    """Gaussian, fewer equations than unknowns, so many solutions: Section 5."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    beta = X.T @ rng.standard_normal(n) / p
    return Case("wide", X, X @ beta, 0.0, beta, "minimum norm", ("rk", "rek"))


def rank_deficient(n: int = 300, p: int = 40, rank: int = 25, seed: int = 0) -> Case:
    """Consistent, but of low rank: many solutions."""
    rng = np.random.default_rng(seed)
    X = _low_rank(n, p, rank, rng)
    beta = X.T @ rng.standard_normal(n) / n
    return Case("rank_deficient", X, X @ beta, 0.0, beta, "minimum norm", ("rk", "rek"))


def rank_deficient_inconsistent(n: int = 60, p: int = 80, rank: int = 30, noise: float = 1.0, seed: int = 0) -> Case:
    """No solution and many least-squares solutions: only extended Kaczmarz finds the shortest."""
    rng = np.random.default_rng(seed)
    X = _low_rank(n, p, rank, rng)
    beta = X.T @ rng.standard_normal(n) / n
    y = X @ beta + _unreachable(X, noise, rng, rank)
    return Case("rank_deficient_inconsistent", X, y, 0.0, beta, "minimum-norm least squares", ("rek",))


def flat_tail(n: int = 512, outliers: int = 20, scale: float = 100.0, seed: int = 0) -> Case:
    """Square; a few singular values of size `scale`, the rest near one."""
    rng = np.random.default_rng(seed)
    values = np.concatenate([np.full(outliers, scale), rng.uniform(0.9, 1.1, n - outliers)])
    X, beta = _with_values(n, n, values, rng), rng.standard_normal(n)
    return Case("flat_tail", X, X @ beta, 0.0, beta, "unique", ("rk", "rcd", "rek"))


def ill_conditioned(n: int = 300, p: int = 30, condition: float = 100.0, noise: float = 1.0, seed: int = 0) -> Case:
    """Singular values spread evenly, in logarithm, from 1 down to 1/condition; inconsistent if noise > 0."""
    rng = np.random.default_rng(seed)
    X, beta = _with_values(n, p, np.geomspace(1.0, 1.0 / condition, p), rng), rng.standard_normal(p)
    y = X @ beta + (_unreachable(X, noise / np.sqrt(n), rng) if noise else 0.0)
    return Case("ill_conditioned", X, y, 0.0, beta, "least squares", ("rcd", "rek") if noise else ("rk", "rcd", "rek"))


def sparse_consistent(n: int = 2000, p: int = 200, per_row: int = 10, seed: int = 0) -> Case:
    """CSR with `per_row` Gaussian entries a row; consistent."""
    rng = np.random.default_rng(seed)
    X = _sparse_rows(rng.integers(0, p, (n, per_row)), rng.standard_normal((n, per_row)), p)
    beta = rng.standard_normal(p)
    return Case("sparse_consistent", X, X @ beta, 0.0, beta, "unique", ("rk", "rcd", "rek"))


def tomography(pixels: int = 16, angles: int = 24, seed: int = 0) -> Case:
    """Parallel-beam CT: an image of pixels x pixels from rays at `angles` directions; the answer is the phantom.

    An entry is the length of a ray in a pixel. With about 1.5 angles a pixel of width, X has full column rank.
    """
    rng = np.random.default_rng(seed)
    rays = int(np.ceil(pixels * 1.5)) + 1
    offsets = np.linspace(-0.72, 0.72, rays) * pixels
    blocks = []
    for theta in (np.arange(angles) + rng.uniform(0.1, 0.9)) * np.pi / angles:
        blocks += [_ray(pixels, theta, offset) for offset in offsets]
    blocks = [(index, length) for index, length in blocks if index.size]
    indptr = np.cumsum([0] + [index.size for index, _ in blocks])
    index = np.concatenate([index for index, _ in blocks]).astype(np.int32)
    parts = np.concatenate([length for _, length in blocks]), index, indptr.astype(np.int32)
    X = sp.csr_array(parts, shape=(len(blocks), pixels**2))
    X.sum_duplicates()
    beta = phantom(pixels).ravel()
    return Case("tomography", X, X @ beta, 0.0, beta, "unique", ("rk", "rcd", "rek"))


def text(n: int = 1000, p: int = 2000, words: int = 30, alpha: float = 1.0, seed: int = 0) -> Case:
    """Bag of words: Zipf's law over p words, documents of about `words`, rows of length one; ridge."""
    rng = np.random.default_rng(seed)
    zipf = 1.0 / np.arange(1, p + 1)
    counts = rng.poisson(words, n) + 1
    index = np.searchsorted(np.cumsum(zipf) / zipf.sum(), rng.random(counts.sum())).clip(max=p - 1)
    X = sp.csr_array((np.ones(index.size), (np.repeat(np.arange(n), counts), index)), shape=(n, p))
    X = sp.csr_array(sp.diags_array(1.0 / np.sqrt((X**2).sum(axis=1))) @ X)
    X.sort_indices()  # as those who count words leave them, and as narrow
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    dual = rng.standard_normal(n)
    beta = X.T @ dual
    return Case("text", X, X @ beta + alpha * dual, alpha, beta, "ridge", ("rk", "rcd"))


def zero_lines(n: int = 200, p: int = 30, zeros: int = 5, seed: int = 0) -> Case:
    """Consistent, with rows and columns of zeros among the others."""
    rng = np.random.default_rng(seed)
    X, beta = rng.standard_normal((n, p)), rng.standard_normal(p)
    gone = rng.choice(p, zeros, replace=False)
    X[rng.choice(n, zeros, replace=False)], X[:, gone], beta[gone] = 0.0, 0.0, 0.0
    return Case("zero_lines", X, X @ beta, 0.0, beta, "minimum norm", ("rk", "rcd", "rek"))


def correlated(n: int = 300, p: int = 30, correlation: float = 0.9, alpha: float = 10.0, seed: int = 0) -> Case:
    """Neighbouring columns are alike (an AR(1) process); ridge."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = correlation * X[:, j - 1] + np.sqrt(1 - correlation**2) * X[:, j]
    dual = rng.standard_normal(n)
    beta = X.T @ dual
    return Case("correlated", X, X @ beta + alpha * dual, alpha, beta, "ridge", ("rk", "rcd"))


CASES: dict[str, Callable[..., Case]] = {
    make.__name__: make
    for make in (
        tall_consistent,
        tall_inconsistent,
        wide,
        rank_deficient,
        rank_deficient_inconsistent,
        flat_tail,
        ill_conditioned,
        sparse_consistent,
        tomography,
        text,
        zero_lines,
        correlated,
    )
}

# Centre, half axes, angle and brightness of the ellipses of the Shepp-Logan phantom, in the gentler contrast of Toft.
ELLIPSES = (
    (0.0, 0.0, 0.69, 0.92, 0, 1.0),
    (0.0, -0.0184, 0.6624, 0.874, 0, -0.8),
    (0.22, 0.0, 0.11, 0.31, -18, -0.2),
    (-0.22, 0.0, 0.16, 0.41, 18, -0.2),
    (0.0, 0.35, 0.21, 0.25, 0, 0.1),
    (0.0, 0.1, 0.046, 0.046, 0, 0.1),
    (0.0, -0.1, 0.046, 0.046, 0, 0.1),
    (-0.08, -0.605, 0.046, 0.023, 0, 0.1),
    (0.0, -0.605, 0.023, 0.023, 0, 0.1),
    (0.06, -0.605, 0.023, 0.046, 0, 0.1),
)


def phantom(pixels: int) -> np.ndarray:
    """The Shepp-Logan head phantom as a square image, top row first.

    Examples
    --------
    >>> from rowcol import zoo
    >>> zoo.phantom(32).shape
    (32, 32)
    """
    grid = (2 * np.arange(pixels) + 1) / pixels - 1
    x, y = np.meshgrid(grid, -grid)
    image = np.zeros((pixels, pixels))
    for cx, cy, a, b, degrees, brightness in ELLIPSES:
        t = np.deg2rad(degrees)
        u, v = (x - cx) * np.cos(t) + (y - cy) * np.sin(t), (y - cy) * np.cos(t) - (x - cx) * np.sin(t)
        image[(u / a) ** 2 + (v / b) ** 2 <= 1] += brightness
    return image


def _ray(pixels: int, theta: float, offset: float) -> tuple[np.ndarray, np.ndarray]:
    """The pixels one ray crosses, and how long it is in each: cut it at every grid line (Siddon)."""
    half = pixels / 2
    direction, foot = np.array([-np.sin(theta), np.cos(theta)]), offset * np.array([np.cos(theta), np.sin(theta)])
    edges = np.arange(pixels + 1) - half
    with np.errstate(divide="ignore"):
        cuts = np.concatenate([(edges - foot[k]) / direction[k] for k in (0, 1) if abs(direction[k]) > 1e-12])
    cuts = np.unique(cuts[np.abs(cuts) < 2 * pixels])
    middle = foot + (cuts[:-1, None] + cuts[1:, None]) / 2 * direction
    column, line = np.floor(middle[:, 0] + half).astype(int), np.floor(half - middle[:, 1]).astype(int)
    inside = (column >= 0) & (column < pixels) & (line >= 0) & (line < pixels)
    return (line * pixels + column)[inside], np.diff(cuts)[inside]


def _unreachable(X: np.ndarray, noise: float, rng: np.random.Generator, rank: int | None = None) -> np.ndarray:
    """A vector of size noise·√n orthogonal to the range of X."""
    U = np.linalg.svd(X, full_matrices=False)[0][:, : rank or X.shape[1]]
    z: Any = rng.standard_normal(X.shape[0])
    for _ in range(2):  # twice is enough
        z = z - U @ (U.T @ z)
    return noise * np.sqrt(X.shape[0]) * z / np.linalg.norm(z)


def _low_rank(n: int, p: int, rank: int, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal((n, rank)) @ rng.standard_normal((rank, p)) / np.sqrt(rank)


def _with_values(n: int, p: int, values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """An n x p matrix with these singular values and random singular vectors."""
    U, V = (np.linalg.qr(rng.standard_normal((k, len(values))))[0] for k in (n, p))
    return (U * values) @ V.T


def _sparse_rows(index: np.ndarray, data: np.ndarray, p: int) -> sp.csr_array:
    X = sp.csr_array((data.ravel(), index.ravel(), np.arange(0, data.size + 1, data.shape[1])), shape=(len(data), p))
    X.sum_duplicates()
    return X
