"""Kernel ridge regression in 400 digits, and whether a Result holds to its word beside it."""

from __future__ import annotations

import mpmath as mp
import numpy as np
from judging import outcome

from rowcol import ConvergenceWarning, kernels
from rowcol.core.recipes import Product, Scaled, Sum

DIGITS = 400
TINY = mp.mpf(2) ** -1000  # where float64 ends, bounds do too
SLACK = mp.mpf("1.000000001")  # for norms and quotients of float64


def dot(a, b):
    return mp.fsum(x * y for x, y in zip(a, b, strict=True))


def entry(kernel, a, b):
    """k(a, b), as docs have it; points are lists of exact numbers."""
    if isinstance(kernel, Sum):
        return entry(kernel.a, a, b) + entry(kernel.b, a, b)
    if isinstance(kernel, Product):
        return entry(kernel.a, a, b) * entry(kernel.b, a, b)
    if isinstance(kernel, Scaled):
        return mp.mpf(kernel.c) * entry(kernel.a, a, b)
    gamma = getattr(kernel, "gamma", None)
    gamma = mp.mpf(1) / len(a) if gamma is None else mp.mpf(gamma)
    apart = [x - y for x, y in zip(a, b, strict=True)]
    match kernel:
        case kernels.RBF(length_scale=None):
            return mp.exp(-gamma * dot(apart, apart))
        case kernels.RBF():
            u = [x / mp.mpf(kernel.length_scale) for x in apart]
            return mp.exp(-dot(u, u) / 2)
        case kernels.Laplacian(norm="l1"):
            return mp.exp(-gamma * mp.fsum(abs(x) for x in apart))
        case kernels.Laplacian():
            return mp.exp(-gamma * mp.sqrt(dot(apart, apart)))
        case kernels.Matern():
            u = mp.sqrt(2 * mp.mpf(kernel.nu) * dot(apart, apart)) / mp.mpf(kernel.length_scale)
            return mp.exp(-u) * {0.5: 1, 1.5: 1 + u, 2.5: 1 + u + u * u / 3}[kernel.nu]
        case kernels.Polynomial():
            return (gamma * dot(a, b) + mp.mpf(kernel.coef0)) ** int(kernel.degree)
        case kernels.Sigmoid():
            return mp.tanh(gamma * dot(a, b) + mp.mpf(kernel.coef0))
        case kernels.Linear():
            return dot(a, b)
        case kernels.Cosine():
            sizes = mp.sqrt(dot(a, a) * dot(b, b))
            return dot(a, b) / sizes if sizes else mp.mpf(0)
        case kernels.Chi2():
            return mp.exp(-gamma * mp.fsum(x * x / (p + q) for x, p, q in zip(apart, a, b, strict=True) if p + q))
        case kernels.Function():
            return mp.mpf(float(np.asarray(kernel.f(*(np.array([[float(v) for v in p]]) for p in (a, b))))[0, 0]))
    raise NotImplementedError(kernel)


def exact_points(X):
    return [[mp.mpf(float(v)) for v in row] for row in (X.toarray() if hasattr(X, "toarray") else np.asarray(X))]


def matrix_of(kernel, A, B):
    """Lists of rows of k(a, b), of exact points; a given matrix is its own."""
    if isinstance(kernel, kernels.Precomputed):
        return A
    return [[entry(kernel, a, b) for b in B] for a in A]


def times(K, v):
    return [dot(row, v) for row in K]


def norm(v):
    return mp.sqrt(dot(v, v))


def exact_fit(K, y, ridge, intercept):
    """(K + Λ)⁻¹y, bordered by ones if there is an intercept: coefficients, and b."""
    n = len(K)
    A = mp.matrix(n + intercept, n + intercept)
    for i in range(n):
        for j in range(n):
            A[i, j] = K[i][j] + (ridge[i] if i == j else 0)
        if intercept:
            A[i, n] = A[n, i] = 1
    found = mp.lu_solve(A, mp.matrix([*y, *[0] * intercept]))
    return list(found)[:n], found[n] if intercept else mp.mpf(0)


def check_kernel(X, y, kernel, alpha, weight, result, tol, Z=None, intercept=False, caught=()):
    """Hold a Result to its word; what was checked, in words."""
    mp.mp.dps = DIGITS
    assert result.success == (ConvergenceWarning not in caught), f"{result.status}, but warned {caught}"
    x = np.asarray(result.x)
    assert np.isfinite(x).all(), "no number"
    w = np.ones(len(y)) if weight is None else np.asarray(weight, float)
    assert not x[w == 0].any(), "a point of weight zero has a coefficient"
    live = np.flatnonzero(w)
    points = exact_points(X)
    given = isinstance(kernel, kernels.Precomputed)
    kept = [[points[i][j] for j in live] for i in live] if given else [points[i] for i in live]
    K = kept if given else matrix_of(kernel, kept, kept)
    root, b = [mp.sqrt(mp.mpf(float(w[i]))) for i in live], [mp.mpf(float(y[i])) for i in live]
    ridge = [mp.mpf(float(alpha)) / mp.mpf(float(w[i])) for i in live]
    a = [mp.mpf(float(x[i])) for i in live]
    image, done = times(K, a), {result.status.name}
    if not intercept:
        left = norm([s * (t - f - m * c) for s, t, f, m, c in zip(root, b, image, ridge, a, strict=True)])
        whole = norm([s * t for s, t in zip(root, b, strict=True)])
        value, c = (left / whole if whole else left), result.certificate
        assert value <= c.value * SLACK, f"√(2 gap)/‖y‖ is {mp.nstr(value, 5)}, certificate {c.value:.3e}"
        assert not result.success or value <= tol * SLACK, f"√(2 gap)/‖y‖ is {mp.nstr(value, 5)}, tol {tol}"
        done.add("kernel_gap")
    if not kernel.definite or result.function.bound[0] == np.inf:
        return done
    best, best_b = exact_fit(K, b, ridge, intercept)
    doubt = TINY + mp.mpf(10) ** -60 * norm(b) * (1 + 1 / mp.sqrt(min(ridge)))  # of the exact solution itself
    apart = [p - q for p, q in zip(a, best, strict=True)]
    error, bound = mp.sqrt(abs(dot(apart, times(K, apart)))), float(result.function.bound[0])
    assert error <= bound * SLACK + doubt, f"‖f − f*‖ is {mp.nstr(error, 5)}, bound {bound:.3e}"
    done.add("kernel_norm")
    if Z is not None and not given:
        found = outcome(lambda: result.function(Z, return_bound=True), (Z,), ("kernel", "points"))
        if found.refused:
            return done
        values, bounds = found.value
        C = matrix_of(kernel, exact_points(Z), kept)
        for value, most, row in zip(values, bounds, C, strict=True):
            gap = abs(mp.mpf(float(value)) - dot(row, best) - best_b)
            assert gap <= mp.mpf(float(most)) * SLACK + doubt, f"|f(x) − f*(x)| is {mp.nstr(gap, 5)}, bound {most:.3e}"
        done.add("kernel_values")
    return done
