"""Kernel ridge regression on m centres: f = Σ_j a_j k(c_j, ·), as ridge regression on features that are never stored.

With T K_mm Tᵀ = 1 and a = Tᵀβ, ‖f‖ = ‖β‖ and f(X) = Φβ, Φ = K_nm Tᵀ: min ½‖W^½(y − Φβ)‖² + ½λ‖β‖², by columns, in the
one loop. An intercept takes the means of Φ off: W^½(K_nm − 1k̄ᵀ)Tᵀ is what multiplies.

- Centres: pivots of randomly pivoted Cholesky, drawn among a few times as many random points. T comes from a Cholesky
  factor of K_mm with pivots, without jitter: centres that those before them know, to `KNOWN` of k(c, c), are dropped.
- Products: K_nm is made line by line for every product anew, and each line is used both ways: ΦᵀΦv is one pass. It is
  in double precision: single saves a third of a pass, and T then makes so much of its errors that steps double.
- Preconditioner: ΦᵀWΦ of the centres and of a sample of rows. Falkon's, from the centres alone, would need them to be
  drawn alike, and pivots are not.

The certificate is that of f among the functions of these centres. With a as it is stored, ρ = y − K_nm a and
g = K_mnWρ − λK_mm a, the gap is at most gᵀK_mm⁻¹g/(2λ), and ‖f − f*‖ ≤ √(gᵀK_mm⁻¹g)/λ; K_mm⁻¹ is at most TᵀT/(1 − ε),
where ε = ‖TK_mmTᵀ − 1‖ is measured. The norm is that of K_mm as double precision has it.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg

from ..core.certify import UNIT, Certificate, Evidence
from ..core.function import summed
from ..core.gram import LINES, Gram, among, cross, gram, product, shared, there_and_back, written
from ..core.problem import Problem, ridge_of
from ..core.recipes import Kernel
from ..core.sizes import diagonal, fits_single
from .pivots import pivots

CHUNK = 2048  # points that a thread takes at a time
DRAWN = 5  # candidates, over centres
KNOWN = 1e-8  # of k(c, c): a centre of which the others leave no more is dropped
MULTIPLES = (4, 6, 10, 20, 40, 100)  # of the number of centres: rows that precondition
SINGLE_LOSES = 1e-3  # of an entry, as in fitting.py


@dataclass(eq=False)
class Centers:
    """W^½(K_nm − 1k̄ᵀ)Tᵀ as a matrix (n, m): the X of a Problem, and what multiplies with it."""

    points: Any  # (n, d)
    which: np.ndarray  # (m,) positions of the centres
    exact: Gram  # of the centres, in double precision
    quick: Gram  # in single precision, where that is safe: for pivots and predictions
    T: np.ndarray  # (m, m)
    stretch: float  # 1/√(1 − ε)
    blow: float  # ‖ |T| s ‖, s_j² = k(c_j, c_j): what rounding errors of K_mn times something grow by
    root: np.ndarray  # (n,) W^½
    sizes: np.ndarray  # (n,) √k(x_i, x_i)
    mean: np.ndarray | None = None  # (m,) k̄, where there is an intercept
    dropped: int = 0

    @property
    def shape(self) -> tuple[int, int]:
        """(n, m)."""
        return self.points.shape[0], len(self.which)

    @property
    def dtype(self) -> np.dtype:
        """That of the answer."""
        return np.dtype(np.float64)

    @property
    def kernel(self) -> Kernel:
        """Whose features these are."""
        return self.exact.kernel

    def pulled(self, a: np.ndarray, y: np.ndarray | None) -> tuple[np.ndarray | None, np.ndarray]:
        """r = y − W^½(K_nm − 1k̄ᵀ)a and (K_mn − k̄1ᵀ)W^½r, in one pass. No y is zero, and r is then not kept.

        Threads take chunks of points, and what they find is added in order.
        """
        n, q, g = self.shape[0], len(a), self.exact
        lift = (np.zeros(q) if self.mean is None else (a * self.mean).sum(axis=1))[:, None]
        r = None if y is None else np.empty((q, n))

        def chunk(start: int) -> tuple[np.ndarray, np.ndarray]:
            stop, sums = min(start + CHUNK, n), np.zeros(q)

            def between(lines: slice, moved: np.ndarray) -> np.ndarray:
                here = slice(start + lines.start, start + lines.stop)
                left = self.root[here] * (lift - moved)
                if y is not None and r is not None:
                    left += y[:, here]
                    r[:, here] = left
                left = left * self.root[here]
                sums[:] += left.sum(axis=1)
                return left

            some = cross(g, self.points[start:stop])
            return there_and_back(replace(some, pool=None), a, between), sums

        image, total = np.zeros((q, self.shape[1])), np.zeros(q)
        for part, sums in shared(g, chunk, list(range(0, n, CHUNK))):
            image += part
            total += sums
        if self.mean is not None:
            image -= np.multiply.outer(total, self.mean)
        return r, image

    def normal(self, v: np.ndarray) -> tuple[np.ndarray, float]:
        """ΦᵀWΦv, and the pass that took."""
        return -(self.pulled(v @ self.T, None)[1] @ self.T.T), 1.0

    def certify(
        self, problem: Problem, y: np.ndarray, beta: np.ndarray, ids: np.ndarray, column2: np.ndarray
    ) -> Evidence:
        """One pass in double precision: the certificates of β, whose coefficients are a = Tᵀβ."""
        a, g = beta @ self.T, self.exact
        rho, image = self.pulled(a, y)
        assert rho is not None
        column2[:] = 0.0  # nobody asks for them
        s = np.sqrt(diagonal(g))
        reach, m = float(np.linalg.norm(self.root * self.sizes)), len(s)
        # a sum over centres; one over points: fours of a band of lines, bands of a chunk, chunks
        unit, unit_back = summed(g), g.error + UNIT * (LINES / 4 + CHUNK / LINES + self.shape[0] / CHUNK + 7)
        twice = 1.0 if self.mean is None else 3.0  # the mean has errors of its own, and is taken off
        norm, certificates, slope = product(g, a), [], np.empty_like(beta)
        for k, i in enumerate(ids):
            lam, size = float(np.ravel(ridge_of(problem, np.array([i])))[0]), float(np.linalg.norm(y[k]))
            gradient = image[k] - lam * norm[k]
            seen = self.T @ gradient
            slope[k] = seen + lam * beta[k]
            spread_a, spread_r = float(np.abs(a[k]) @ s), float(self.root * self.sizes @ np.abs(rho[k]))
            d_rho = twice * unit * reach * spread_a + 3 * UNIT * size
            tall = float(np.max(np.abs(gradient) / s, initial=0.0))
            lost = twice * unit_back * spread_r + lam * unit * spread_a + (m + 2) * UNIT * tall
            # ρ as computed, over λ, is a dual like any other: that it is off counts once, as ½‖ρ − λα‖² of the gap
            soft, d_left = math.sqrt(lam), self.stretch * self.blow * lost
            left = math.hypot(self.stretch * float(np.linalg.norm(seen)) + d_left, soft * d_rho)
            d_left = math.hypot(d_left, soft * d_rho)
            if not math.isfinite(left):
                raise ValueError("kernel values, or sums of them, leave float64: rescale X, the kernel, y or alpha")
            whole = soft * max(size, 1e-300)
            value, rounding, bound = left / whole, d_left / whole, left / lam
            if not (y[k].any() or beta[k].any()):
                value, rounding, bound = 0.0, 0.0, 0.0
            certificates.append(
                Certificate(
                    "gap",
                    value,
                    rounding,
                    0.0,
                    float(np.linalg.norm(rho[k])),
                    float(np.linalg.norm(seen)),
                    bound,
                    left <= 4 * d_left,
                )
            )
        return Evidence(certificates, rho, slope, None, column2, np.linalg.norm(rho, axis=1))


def drawn(
    kernel: Kernel,
    X: Any,
    count: int,
    root: np.ndarray,
    centred: bool,
    by_pivots: bool,
    seed: np.random.SeedSequence,
    pool: Executor | None,
) -> Centers:
    """At most `count` centres among the points X, and all that products with their features need."""
    n, (one, two) = X.shape[0], seed.spawn(2)
    some = np.arange(n)
    if count < n:
        few = min(DRAWN * count, n) if by_pivots else count
        some = np.sort(np.random.default_rng(one).choice(n, few, replace=False))
    exact = quick = gram(kernel, X, np.float64, pool, some)
    if all(leaf.recipe is not None for leaf in exact.leaves) and fits_single(exact):
        single = gram(kernel, X, np.float32, pool, some)
        quick = single if single.error <= SINGLE_LOSES else exact
    if count < n and by_pivots:
        typical = np.full(some.size, max(float(diagonal(exact).mean()), 1e-290))
        found = pivots(quick, typical, count, two, floor=0.0).which  # no clock: it would change what is asked
        some, exact, quick = some[found], among(exact, found), _alike(exact, quick, found)
    T, kept, stretch = _basis(written(exact))
    asked, some = some.size, some[kept]
    exact, quick = among(exact, kept), _alike(exact, quick, kept)
    blow = float(np.linalg.norm(np.abs(T) @ np.sqrt(diagonal(exact))))
    sizes = np.empty(n)
    for i in range(0, n, CHUNK):
        sizes[i : i + CHUNK] = np.sqrt(np.maximum(diagonal(cross(exact, X[i : i + CHUNK])), 0.0))
    made = Centers(X, some, exact, quick, T, stretch, blow, root, sizes, None, asked - kept.size)
    if centred:  # K_mn W 1 over the sum of weights: in one pass of nothing but ones
        made.mean = made.pulled(np.zeros((1, kept.size)), root[None])[1][0] / float(root @ root)
    return made


def _alike(exact: Gram, quick: Gram, which: np.ndarray) -> Gram:
    return among(exact, which) if quick is exact else among(quick, which)


def _basis(K: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """T with T K_mm Tᵀ = 1 for the centres kept; which they are; and 1/√(1 − ‖TK_mmTᵀ − 1‖)."""
    own = np.diagonal(K).copy()
    if not np.isfinite(K).all():
        raise ValueError("kernel values leave float64: rescale X or the kernel")
    if (own < 0).any() or not own.any():
        raise ValueError("k(x, x) is negative, or zero at every centre: centres need a positive definite kernel")
    s = np.sqrt(np.where(own > 0, own, np.inf))
    factor, order, rank, _ = scipy.linalg.lapack.dpstrf(K / s / s[:, None], tol=KNOWN, lower=1)
    kept, rest = order[:rank] - 1, order[rank:] - 1
    T, _ = scipy.linalg.lapack.dtrtri(np.tril(factor[:rank, :rank]), lower=1)
    T = np.ascontiguousarray(T / s[kept])
    left = own[rest] - ((T @ K[np.ix_(kept, rest)]) ** 2).sum(axis=0)
    if (left < -1e-5 * own.max()).any():
        raise ValueError("the kernel is not positive definite at the centres: solve without n_centers")
    off = float(np.linalg.norm(T @ K[np.ix_(kept, kept)] @ T.T - np.eye(rank)))
    if not off < 0.1:
        raise ValueError("the kernel matrix of the centres is not positive definite: solve without n_centers")
    return T, kept, 1 / math.sqrt(1 - off)


@dataclass(eq=False)
class Sampled:
    """(Σ φ_i w_i φ_iᵀ n/s + λ)⁻¹ from s of the n rows, for one λ or for several."""

    cores: list[np.ndarray]  # Cholesky factors

    def __call__(self, v: np.ndarray) -> np.ndarray:
        """P⁻¹v of every row of v."""
        if len(self.cores) == 1:
            return scipy.linalg.cho_solve((self.cores[0], True), v.T).T
        return np.stack([scipy.linalg.cho_solve((core, True), one) for core, one in zip(self.cores, v, strict=True)])

    def some(self, mask: np.ndarray) -> Sampled:
        """The same for some of the right-hand sides."""
        return self if len(self.cores) == 1 else Sampled([c for c, kept in zip(self.cores, mask, strict=True) if kept])


def sampled(x: Centers, problem: Problem, count: int, seed: np.random.SeedSequence) -> Sampled:
    """A preconditioner made of so many rows.

    The centres are among them, and count once: one that is far from all else is a feature that only its own row has.
    """
    n, m = x.shape
    others = np.setdiff1d(np.arange(n), x.which)
    others = np.sort(np.random.default_rng(seed).choice(others, count - m, replace=False))
    inner = np.zeros((m, m), order="F")
    for rows, times in ((np.sort(x.which), 1.0), (others, (n - m) / max(count - m, 1))):
        for i in range(0, rows.size, CHUNK):
            some = rows[i : i + CHUNK]
            K = written(cross(x.exact, x.points[some]))
            K = (K if x.mean is None else K - x.mean) * x.root[some, None]
            inner = scipy.linalg.blas.dsyrk(times, (K @ x.T.T).T, beta=1.0, c=inner, lower=1, overwrite_c=1)
    lam = np.ravel(ridge_of(problem, np.arange(len(problem.y))))
    made = {one: _cholesky(inner, one) for one in np.unique(lam)}
    return Sampled([made[one] for one in lam])


def _cholesky(inner: np.ndarray, lam: float) -> np.ndarray:
    return scipy.linalg.cholesky(inner + np.diag(np.full(len(inner), lam)), lower=True, overwrite_a=True)


def rows_for(n: int, m: int, tol: float) -> tuple[int, float]:
    """Rows of the sample, and the steps these leave: of a few multiples of m, or all rows, what is cheapest in all.

    As measured: the error falls by (2.5 m/rows)^½ a step, and a row of the sample costs what m/11 rows do in a pass.
    """
    options = {n: 2.0}
    for times in MULTIPLES:
        if times * m < n:
            options[times * m] = 2.0 + math.log(1e2 / tol) / (0.5 * math.log(times / 2.5))
    return min(options.items(), key=lambda one: one[0] * m / 11 + n * one[1])


def bytes_of(n: int, X: Any, q: int, m: int) -> int:
    """Memory beside X and y, at its peak, where centres are drawn by pivots; none of it grows with n times m."""
    candidates = 8 * (min(DRAWN * m, n) * (m + 400) // 2 + min(DRAWN * m, n) * X.shape[1] * 3)
    return int(8 * (4 * m * m + 3 * CHUNK * m) + candidates + 8 * n * (6 * q + 4) + 10_000_000)
