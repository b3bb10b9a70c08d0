"""Length-scales and alpha for some points, by the gradient of the leave-one-out error: all in closed form.

With A = K + Λ and C = A⁻¹, α = Cy, the error at a point that is left out is e_i = α_i/C_ii. For f = log Σ w_i e_i²
the derivative by the entries of A is a matrix, of which every parameter takes its share: no parameter costs another
factorization. As distances enter by (x_k − y_k)²/ℓ_k², the shares of all features are one matrix product.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.sparse as sp

from ..core.kernels import RBF, Laplacian, Matern
from ..core.recipes import Kernel

NEAR = 1e-5  # distances in length-scales: closer points count as that far in slopes, which e^−r has none of at zero
FAR = 1e-2, 1e2  # length-scales may come to this, times where they began
ALPHAS = 1e-6, 1e3  # alpha may
PULL = 1e-3  # of mean squared logarithms, back to where they began: long scales with small alphas are all alike


class Tuned(NamedTuple):
    """A kernel with its length-scales, the alpha that goes with it, and how well they do."""

    kernel: Kernel
    alpha: float
    error: float  # Σ w e² / Σ w of points left out
    looks: int  # factorizations


def tunable(kernel: Kernel) -> bool:
    """Has it length-scales?"""
    return isinstance(kernel, (RBF, Laplacian, Matern))


def with_scales(kernel: Kernel, length_scale: Any) -> Kernel:
    """The same kernel with other length-scales."""
    assert isinstance(kernel, (RBF, Laplacian, Matern))
    given = float(length_scale) if np.ndim(length_scale) == 0 else tuple(float(v) for v in length_scale)
    if isinstance(kernel, Matern):
        return replace(kernel, length_scale=given)
    return replace(kernel, gamma=None, length_scale=given)


def usual_scale(kernel: Kernel, X: Any, rng: np.random.Generator) -> np.ndarray:
    """A length-scale a feature, all the same: the median distance of the points, in the kernel's norm."""
    few = rng.permutation(X.shape[0])[:400]
    some = X[np.sort(few)]
    some = some.toarray() if sp.issparse(some) else np.asarray(some, np.float64)
    half = len(some) // 2
    apart = np.abs(some[:half] - some[half : 2 * half])
    top = float(apart.max(initial=0.0)) or 1.0  # squares of what is far from 1 leave float64
    size = top * ((apart / top).sum(axis=1) if _is_l1(kernel) else np.sqrt(((apart / top) ** 2).sum(axis=1)))
    size = size[size > 0]
    return np.full(some.shape[1], float(np.median(size)) if size.size else 1.0)


def tuned(
    kernel: Kernel,
    X: Any,
    Y: np.ndarray,
    weight: np.ndarray,
    start: tuple[np.ndarray, float],
    each: bool,
    most: int = 50,
    late: Callable[[], bool] = lambda: False,
) -> Tuned:
    """Length-scales (one a feature if `each`, otherwise all times one number) and alpha of least leave-one-out error.

    Y is (n, q), weight (n,); `start` holds length-scales, one a feature, and alpha. Once it is `late`, the best so far.
    """
    X = X.toarray() if sp.issparse(X) else np.asarray(X, np.float64)
    scales, alpha = start
    Z, d = X / scales, X.shape[1]
    begin = np.append(np.zeros(d if each else 1), math.log(alpha))
    looks, best = 0, (math.inf, begin)

    def error(theta: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal looks, best
        looks += 1
        value, slopes = _error(kernel, Z * np.exp(-theta[:-1]), Y, weight, math.exp(theta[-1]))
        if not each:
            slopes = np.array([slopes[:-1].sum(), slopes[-1]])
        away = theta - begin
        value, slopes = value + PULL * float(away @ away) / away.size, slopes + 2 * PULL / away.size * away
        if value < best[0]:
            best = value, theta.copy()
        if late():
            raise _LateError
        return value, slopes

    low, high = math.log(FAR[0]), math.log(FAR[1])
    bounds = [(low, high)] * (len(begin) - 1) + [(math.log(ALPHAS[0]), math.log(ALPHAS[1]))]
    try:
        options = {"maxiter": most, "maxfun": 2 * most}
        scipy.optimize.minimize(error, begin, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    except _LateError:
        pass
    _, theta = best
    value = _error(kernel, Z * np.exp(-theta[:-1]), Y, weight, math.exp(theta[-1]))[0]
    found = scales * np.exp(theta[:-1])
    one = not each and bool((scales == scales[0]).all())
    return Tuned(
        with_scales(kernel, found[0] if one else found), math.exp(theta[-1]), math.exp(min(value, 700.0)), looks
    )


class _LateError(Exception):
    pass


def _is_l1(kernel: Kernel) -> bool:
    return isinstance(kernel, Laplacian) and kernel.norm == "l1"


def _shape(kernel: Kernel, base: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """k and its derivative by the base: ‖z − z'‖², or ‖z − z'‖₁."""
    if isinstance(kernel, RBF):
        k = np.exp(-0.5 * base)
        return k, -0.5 * k
    if _is_l1(kernel):
        k = np.exp(-base)
        return k, -k
    r = np.sqrt(base)
    nu = kernel.nu if isinstance(kernel, Matern) else 0.5
    u = math.sqrt(2 * nu) * r
    e = np.exp(-u)
    if nu == 0.5:
        return e, -e / (2 * np.maximum(r, NEAR))
    if nu == 1.5:
        return (1 + u) * e, -1.5 * e
    return (1 + u + u * u / 3) * e, -(5 / 6) * (1 + u) * e


def _base(kernel: Kernel, Z: np.ndarray) -> np.ndarray:
    if _is_l1(kernel):
        return sum((np.abs(z[:, None] - z) for z in Z.T), np.zeros((len(Z), len(Z))))
    size = np.einsum("ij,ij->i", Z, Z)
    base = np.maximum(size[:, None] + size - 2 * (Z @ Z.T), 0.0)
    np.fill_diagonal(base, 0.0)
    return base


def _error(kernel: Kernel, Z: np.ndarray, Y: np.ndarray, weight: np.ndarray, alpha: float) -> tuple[float, np.ndarray]:
    """log Σ w e² / Σ w, and its derivatives by log ℓ_1, ..., log ℓ_d and log alpha."""
    n = len(Z)
    K, slope = _shape(kernel, _base(kernel, Z))
    K[np.diag_indices(n)] += alpha / weight
    factor, failed = scipy.linalg.lapack.dpotrf(K, lower=1, clean=1, overwrite_a=1)
    if failed:
        return 1e10, np.zeros(Z.shape[1] + 1)
    a = scipy.linalg.cho_solve((factor, True), Y, check_finite=False)
    C, _ = scipy.linalg.lapack.dpotri(factor, lower=1, overwrite_c=1)
    C += np.tril(C, -1).T
    c = np.diagonal(C).copy()
    e = a / c[:, None]
    share = weight[:, None] * e**2
    total = float(share.sum())
    if not total > 0:  # y is zero, and so is f, whatever the parameters
        return math.log(1e-300), np.zeros(Z.shape[1] + 1)
    # dα = −C dA α and dC = −C dA C, so that Σ w e de = ⟨S, dA⟩ with
    S = (C * (share.sum(axis=1) / c)) @ C - C @ (weight[:, None] * e / c[:, None]) @ a.T
    S *= 2.0 / total
    G = S * slope
    np.fill_diagonal(G, 0.0)
    if _is_l1(kernel):
        slopes = np.array([-(G * np.abs(z[:, None] - z)).sum() for z in Z.T])
    else:
        G += G.T.copy()  # Σ G_ij (z_i − z_j)² = Σ_i g_i z_i² − zᵀGz, G being symmetric now
        slopes = -2 * (G.sum(axis=1) @ Z**2 - np.einsum("ij,ij->j", Z, G @ Z))
    return math.log(max(total, 1e-300) / weight.sum()), np.append(slopes, alpha * float(np.diagonal(S) @ (1 / weight)))
