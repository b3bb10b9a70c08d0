"""What was asked of kernel ridge regression, validated: points, penalties, a start; and the kernel's two Grams."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from .asking import How, start_array
from .core.certify import UNIT
from .core.far import grams_of
from .core.gram import Gram, gram
from .core.kernels import Function, Precomputed, kernel_of
from .core.place import Place
from .core.problem import Problem, flag, numbers_of, posed, right_hand_sides, weights
from .core.recipes import Kernel
from .core.sides import leaves_of, points
from .core.sizes import fits_single
from .core.words import shown
from .methods.landmarks import Memo
from .methods.result import Result

SINGLE_LOSES = 1e-3  # of an entry, for certain kernels on hostile data: then steps are taken in double precision


@dataclass
class Posed:
    """A question, validated."""

    X: Any  # the points that count
    kernel: Kernel
    asked: Problem  # its X is yet to come
    live: np.ndarray  # positions of these points in the user's X
    out: np.ndarray  # and of those that every column leaves out, though they have weight
    count: int  # of the user's points
    mean: np.ndarray  # (q,) of y, taken off where there is an intercept
    ones: np.ndarray  # which column of ones, after those of y, goes with each of them; one for all where they are alike
    single: bool  # y came as one dimension


class _Shape:
    """Stands for a Gram that is not made yet."""

    def __init__(self, n: int) -> None:
        self.shape, self.dtype = (n, n), np.dtype(np.float64)


def pose(X: Any, y: Any, kernel: Any, alpha: Any, how: How, sample_weight: Any, fit_intercept: Any) -> Posed:
    """A question as a Problem of the points that count, and what leads back to the user's."""
    kernel = kernel_of(kernel)
    if how.method != "rk" and not (isinstance(how.sampler, str) and how.sampler == "auto"):
        raise ValueError(f"with a kernel only method='rk' picks single points: leave out sampler for {how.method!r}")
    flag(fit_intercept, "fit_intercept")
    X = X if isinstance(X, Place) else points(X)
    if X.dtype.kind == "c":
        raise TypeError("kernels are of real points, X is complex")
    n = X.shape[0]
    b, single = right_hand_sides(y, n)
    if np.iscomplexobj(b):
        raise TypeError("kernel ridge regression is for real y")
    w = np.ones(n) if sample_weight is None else weights(sample_weight, n)
    lam, inverse = _ridge(alpha, n, b.shape[1])
    total = w if inverse is None else w * inverse  # (n,), or (q, n)
    live = np.flatnonzero(total.reshape(-1, n).any(axis=0))
    out = np.setdiff1d(np.flatnonzero(w), live)
    total = total[..., live]
    if not total.reshape(-1, live.size).any(axis=1).all():
        raise ValueError("no point counts for one of the columns: alpha is infinite, or sample_weight zero, at all")
    counts: Any = 1.0 if total.ndim == 1 else (total > 0).T
    b, mean = b[live] * counts, np.zeros(b.shape[1])
    first, ones = np.zeros(1, int), np.zeros(1, int)
    if fit_intercept and total.ndim == 2:  # a column of ones for each Λ, not for each column
        rows = [row.tobytes() for row in total]
        kinds = list(dict.fromkeys(rows))
        first, ones = (np.array([a.index(one) for one in b]) for a, b in ((rows, kinds), (kinds, rows)))
    if fit_intercept:
        mean = ((total @ b if total.ndim == 1 else np.einsum("qi,iq->q", total, b)).T / total.sum(axis=-1)).T
        tallest, b = np.abs(b).max(axis=0), (b - mean) * counts
        b = np.where(np.abs(b).max(axis=0) <= 8 * UNIT * tallest, 0.0, b)  # a constant, but for rounding
        b = np.hstack([b, np.ones((live.size, 1)) * (counts if total.ndim == 1 else counts[:, first])])
    given = None if sample_weight is None and inverse is None else total
    if live.size < n and isinstance(X, Place):
        raise ValueError(
            "sample_weight and alpha must let every point count where X lies elsewhere: leave out the other points, or "
            "allow more memory"
        )
    if live.size < n:
        X = X[live][:, live] if is_given(kernel) else X[live]
    asked = posed(_Shape(live.size), 0, b, lam, given if total.ndim == 1 else None)
    if total.ndim == 2:
        total = np.vstack([total, total[first]]) if fit_intercept else total
        asked = asked._replace(weight=total)
    return Posed(X, kernel, asked, live, out, n, mean, ones, single)


def tiled(kernel: Kernel) -> int:
    """How many one-line kernels lay out the points in tiles of their own."""
    return sum(not isinstance(leaf, (Function, Precomputed)) for leaf in leaves_of(kernel))


def is_given(kernel: Kernel) -> bool:
    """Is the kernel matrix given?"""
    return any(isinstance(leaf, Precomputed) for leaf in leaves_of(kernel))


def _ridge(alpha: Any, n: int, q: int) -> tuple[float, np.ndarray | None]:
    """λ; or 1 and 1/λ_i, where there is one a point: (n,), or (q, n)."""
    value = numbers_of(alpha, "alpha", "a number above 0, or one a point")
    if value.ndim == 0:
        if not (math.isfinite(float(value)) and value > 0):
            raise ValueError(
                f"alpha must be above 0 and finite with a kernel, got {shown(alpha)}: to interpolate, take a small "
                "one, such as 1e-8 times k(x, x)"
            )
        return float(value), None
    if value.shape not in ((n,), (n, q)):
        raise ValueError(
            f"alpha must be a number above 0, or {n} of them, one a point, or {n} x {q}, one a point and column; got "
            f"shape {value.shape}"
        )
    if not (value > 0).all() or (value.ndim == 1 and not np.isfinite(value).all()):
        raise ValueError("alpha must be above 0, and finite, at every point; infinite only for some of the columns")
    return 1.0, np.ascontiguousarray((1.0 / value).T)


def grams(posed_as: Posed, pool: Executor | None, team: Any) -> tuple[Gram, Gram]:
    """That of looks, in double precision, and that of steps, in single where it bears it."""
    team = None if is_given(posed_as.kernel) else team  # a given matrix is here, and n² numbers are many to send
    make: Callable[[type], Gram] = partial(gram, posed_as.kernel, posed_as.X, pool=pool)
    if isinstance(posed_as.X, Place):
        make = grams_of(posed_as.kernel, posed_as.X, pool)
    exact = replace(make(np.float64), team=team)
    if any(leaf.recipe is None for leaf in exact.leaves):
        return exact, exact  # a function, or a given matrix, would be converted on every visit
    quick = replace(make(np.float32), team=team)
    return exact, quick if fits_single(exact) and quick.error <= SINGLE_LOSES else exact


def start_of(x0: Any, posed_as: Posed, memo: Memo | None = None) -> np.ndarray | None:
    """x0 as α of the points that count, in units of the problem."""
    if x0 is None:
        return None
    source = start_array(x0.x if isinstance(x0, Result) else x0)
    asked = posed_as.asked
    many = len(posed_as.mean)
    shape = (posed_as.count,) if posed_as.single else (posed_as.count, many)
    if source.dtype.kind not in "fiub" or source.shape != shape:
        raise ValueError(f"x0 must be real numbers of shape {shape}, or an earlier Result; got {source.shape}")
    if not np.isfinite(source).all():
        raise ValueError("x0 has a NaN or infinity")
    out = np.zeros_like(asked.y)
    scale = np.where(asked.y[:many].any(axis=1), asked.scale[:many], np.inf)  # where y is zero so is the answer
    out[:many] = source.reshape(posed_as.count, -1)[posed_as.live].T / scale[:, None]
    if memo is not None and memo.ones is not None and memo.ones.shape == (posed_as.count, len(asked.y) - many):
        # α leaves the intercept of y − ȳ, which is no part of it: (K + Λ)⁻¹ of it is known
        ones = memo.ones[posed_as.live].T
        out[many:] = ones / asked.scale[many:, None]
        out[:many] += ((np.ravel(memo.intercept) - posed_as.mean) / scale)[:, None] * ones
    if not (np.abs(out) < 1e140).all():
        raise ValueError("x0 is too large beside y: rescale it, or start from zero")
    if asked.weight is not None and asked.weight.ndim == 2:
        out *= asked.weight > 0
    return out
