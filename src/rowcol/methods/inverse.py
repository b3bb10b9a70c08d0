"""Columns of (K + Λ)⁻¹, each with a bound of its error: what variances and leave-one-out residuals are made of.

A = K + Λ, and c is about A⁻¹b, with R = b − Ac. Then 2cᵀb − cᵀAc never exceeds bᵀA⁻¹b, and falls short of it by
RᵀA⁻¹R ≤ RᵀΛ⁻¹R: a duality gap, and of second order. So the variance k(x, x) − bᵀA⁻¹b is known from above, and
(A⁻¹)_ii from below, and how far from below and from above too.

With an intercept, c must sum to t (1 for a variance, as the weights of an unbiased prediction do; 0 for leave-one-out):
from u = A⁻¹b and v = A⁻¹1, c = u − μv, R = b − Ac − μ1, and the same holds for the bordered system.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from ..core.certify import UNIT
from ..core.function import KernelFunction
from ..core.gram import Gram, among, product, written
from ..core.problem import posed
from ..core.sizes import diagonal, sizes2
from ..core.threads import pooled
from .kernel_routes import SMALL, Way, choose, follow, rank_for
from .pivots import Pivots
from .stop import Stop

FINEST, COARSEST = 1e-11, 0.3  # tolerances of a solve
MANY = 64  # columns at once
PAYS = 100  # points: a factor pays once there is a column for as many


@dataclass(eq=False)
class Inverse:
    """(K + Λ)⁻¹ of the points that count for some of the targets: by a stored factor, or by solves."""

    targets: np.ndarray  # that share this Λ
    live: np.ndarray  # the points that count, among those of the function
    exact: Gram
    lam: np.ndarray
    sizes: np.ndarray  # √k(x_i, x_i)
    unit: float  # an entry's error, and a sum's, relatively
    stored: tuple[np.ndarray, Any] | None  # K and the factor of A
    way: Way | None
    X: Any  # of which only the size is asked
    ones: tuple[np.ndarray, np.ndarray] | None = None  # v and Av, with an intercept


class Columns(NamedTuple):
    """What is known of bᵀA⁻¹b, b by b."""

    c: np.ndarray  # (q, n)
    value: np.ndarray  # (q,) bᵀA⁻¹b from below, but for rounding
    gap: np.ndarray  # (q,) that it may fall short by
    rounding: np.ndarray  # (q,)
    left: np.ndarray  # (q,) ‖Λ^−½R‖, rounding included


@contextmanager
def inverses(
    function: KernelFunction, X: Any, count: int, memory: int, seed: np.random.SeedSequence, made: Pivots | None = None
) -> Iterator[Iterator[Inverse]]:
    """One Inverse for every Λ there is; `count` says how many columns will be asked for."""
    if not function.exact.kernel.definite:
        raise ValueError("there is no variance, nor leave-one-out, where the kernel is not positive definite")
    with pooled(function.jobs) as pool, np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        exact = replace(function.exact, pool=pool)
        quick = exact if function.quick.dtype is exact.dtype else replace(function.quick, pool=pool)
        yield _each(function, exact, quick, X, count, memory, seed, made)


def _each(
    function: KernelFunction,
    exact: Gram,
    quick: Gram,
    X: Any,
    count: int,
    memory: int,
    seed: np.random.SeedSequence,
    made: Pivots | None,
) -> Iterator[Inverse]:
    every, n = np.arange(len(function.coefficients)), exact.shape[0]
    distinct, which = np.unique(function.ridge, axis=0, return_inverse=True)
    for k, lam in enumerate(distinct):
        targets = every if len(function.ridge) == 1 else np.flatnonzero(np.ravel(which) == k)
        live = np.flatnonzero(lam)
        g = exact if live.size == n else among(exact, live)
        fast = g if quick is exact else quick if live.size == n else among(quick, live)
        fits = 8 * n * n * 2.3 <= memory and (count * PAYS >= n or n <= SMALL)
        stored = _stored(g, lam[live]) if fits else None
        way = None
        if stored is None:
            asked = posed(g, 0, np.ones(live.size), 1.0, None)
            way = Way(asked, fast, Stop(1e-3, 1000.0, math.inf), seed, memory, "auto", None, None, True)
            way.preconditioner = made if made is not None and len(distinct) == 1 and live.size == n else None
        width = g.shape[0] if stored is not None else g.chain
        unit = g.error + UNIT * (width + 3)
        one = Inverse(targets, live, g, lam[live], np.sqrt(sizes2(g)), unit, stored, way, X)
        if function.centre is not None:
            # 1ᵀA⁻¹1 ≥ 1/(max k + max λ/n): to a thousandth of its root, a millionth in what follows
            least = 1 / (one.sizes.max() ** 2 + one.lam.max() / live.size)
            v, Av = _solved(one, np.ones((1, live.size)), 1e-3 * math.sqrt(least / float((1 / one.lam).sum())))
            one.ones = v[0], Av[0]
        yield one


def _stored(g: Gram, lam: np.ndarray) -> tuple[np.ndarray, Any] | None:
    K = written(g)
    A = K.copy()
    A[np.diag_indices(len(A))] += lam
    try:
        return K, scipy.linalg.cho_factor(A.T, lower=True, overwrite_a=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        return None


def at_once(inverse: Inverse, memory: int) -> int:
    """How many columns fit in memory, and are worth sharing tiles."""
    return int(min(max(memory / 2 / (8 * 30 * inverse.exact.shape[0]), 1), MANY))


def columns(inverse: Inverse, B: np.ndarray, aim: np.ndarray, total: float) -> Columns:
    """A⁻¹b of every row b of B, with a gap of `aim` where rounding allows; with an intercept, summing to `total`."""
    n, root = len(inverse.lam), 1 / np.sqrt(inverse.lam)
    size = np.linalg.norm(B * root, axis=1)
    wish = np.sqrt(aim) / np.maximum(size, 1e-300)
    U, AU = _solved(inverse, B, float(wish.min()) / (1 if inverse.ones is None else 2))
    mu = np.zeros(len(B))
    if inverse.ones is not None:
        v, Av = inverse.ones
        mu = (U.sum(axis=1) - total) / v.sum()
        U, AU = U - mu[:, None] * v, AU - mu[:, None] * Av
    reach, absolute = np.abs(U) @ inverse.sizes, np.abs(U)
    left = np.linalg.norm((B - AU - mu[:, None]) * root, axis=1)
    left += inverse.unit * reach * np.linalg.norm(root * inverse.sizes)
    left += 4 * UNIT * (size + np.linalg.norm(AU * root, axis=1) + np.abs(mu) * np.linalg.norm(root))
    value = 2 * np.einsum("qi,qi->q", U, B) - np.einsum("qi,qi->q", U, AU)
    sums = 2 * np.einsum("qi,qi->q", absolute, np.abs(B)) + np.einsum("qi,qi->q", absolute, np.abs(AU))
    rounding = inverse.unit * reach**2 + (n + 4) * UNIT * (sums + np.abs(mu) * absolute.sum(axis=1))
    return Columns(U, value, left**2, rounding, left)


def _solved(inverse: Inverse, B: np.ndarray, tol: float) -> tuple[np.ndarray, np.ndarray]:
    """U with AU = B to a tolerance, each row by itself; and AU, summed in double precision."""
    lam = inverse.lam
    if inverse.stored is not None:
        K, factor = inverse.stored
        U = scipy.linalg.cho_solve(factor, B.T, check_finite=False).T
        AU = U @ K + lam * U
        U = U + scipy.linalg.cho_solve(factor, (B - AU).T, check_finite=False).T  # refined, once
        return U, U @ K + lam * U
    assert inverse.way is not None
    alike = bool((lam == lam[0]).all())
    asked = posed(inverse.exact, 0, B.T, float(lam[0]) if alike else 1.0, None if alike else 1 / lam)
    stop = Stop(min(max(tol, FINEST), COARSEST), 1000.0, math.inf)
    way = replace(inverse.way, asked=asked, stop=stop, taken=[], learned=[])
    leaves = len(inverse.exact.leaves)
    rank, _ = rank_for(inverse.X, len(B), leaves, way.memory, 1)
    method = "pcg" if rank >= 32 else "auto"  # no factor for each chunk
    out = follow(way, choose(asked, inverse.X, leaves, method, way.memory, stop), None)
    inverse.way.preconditioner = way.preconditioner  # for the next ones
    scale = asked.scale[:, None]
    return out.beta * scale, B - (out.residual - lam * out.beta) * scale


class Spread(NamedTuple):
    """Variances at new points."""

    variance: np.ndarray  # (m, q) from above
    excess: float  # by how much any of them may be too large


def spread(inverse: Inverse, some: Gram, share: float) -> Spread:
    """k(x, x) − bᵀA⁻¹b of the rows b of `some`, to a share of the noise; with an intercept, what its mean adds too."""
    B = written(some)[:, inverse.live]
    top = diagonal(some)
    found = columns(inverse, B, np.full(len(B), share * float(np.median(inverse.lam))), 1.0)
    most = top if inverse.ones is None else np.inf
    excess = np.minimum(found.gap + found.rounding, top) if inverse.ones is None else found.gap + found.rounding
    return Spread(np.clip(top - found.value, 0.0, most), float(excess.max()))


def noise(inverse: Inverse, share: float) -> float:
    """A share of the typical variance of the noise."""
    return share * float(np.median(inverse.lam))


class Misfit(NamedTuple):
    """y − Aa of the coefficients a at hand: what they are short of the exact ones."""

    a: np.ndarray  # (q, n)
    rho: np.ndarray  # (q, n)
    blur: np.ndarray  # (q,) ‖Λ^−½δ‖ of the rounding errors δ in rho


def misfit(inverse: Inverse, a: np.ndarray, y: np.ndarray) -> Misfit:
    """In double precision, for y (q, n) without its intercept."""
    lam, root = inverse.lam, 1 / np.sqrt(inverse.lam)
    found = product(inverse.exact, a)
    unit = inverse.exact.error + UNIT * (inverse.exact.width + len(lam) / inverse.exact.width + 3)
    blur = unit * (np.abs(a) @ inverse.sizes) * np.linalg.norm(root * inverse.sizes)
    blur = blur + 8 * UNIT * np.linalg.norm(root * (np.abs(y) + np.abs(found) + lam * np.abs(a)), axis=1)
    return Misfit(a, y - found - lam * a, blur)


def left_out(inverse: Inverse, short: Misfit, at: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
    """α_i/(A⁻¹)_ii at the points `at`, (m, q), and bounds of the errors.

    α_i of the exact solution is a_i + cᵀrho + RᵀA⁻¹rho: the last term, of second order, is all the error there is.
    """
    a, rho, blur = short
    lam, B = inverse.lam, np.zeros((at.size, len(inverse.lam)))
    B[np.arange(at.size), at] = 1.0
    found = columns(inverse, B, share / (inverse.sizes[at] ** 2 + lam[at]), 0.0)
    size = np.linalg.norm(rho / np.sqrt(lam), axis=1) + blur
    mine = a[:, at] + rho @ found.c.T
    high = np.sqrt(np.maximum(found.value + found.gap + found.rounding, 0.0))  # ‖e_i‖ in the norm of A⁻¹, at most
    off = found.left * size[:, None] + high * blur[:, None]
    off += (len(lam) + 4) * UNIT * (np.abs(a[:, at]) + np.abs(rho) @ np.abs(found.c).T)
    low, half = found.value - found.rounding, found.gap / 2 + found.rounding
    residuals = mine / (found.value + found.gap / 2)
    errors = np.where(low > 0, (off + np.abs(residuals) * half) / np.where(low > 0, low, 1.0), np.inf)
    return residuals.T, (errors + 4 * UNIT * np.abs(residuals)).T
