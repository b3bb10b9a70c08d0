"""Folds x alphas of kernel ridge regression, as the right-hand sides of one solve: they share every tile of K.

A point that a fold leaves out has an infinite alpha there, so its coefficient is zero; and as the residual is carried
at all points, the values found at those left out are the predictions that validate: they cost nothing.

Of few points, C = (K + Λ)⁻¹ is known: what L leaves out is predicted by y_L − C_LL⁻¹(Cy)_L, whatever the fold.
"""

from __future__ import annotations

import math
import time
import warnings
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from .core.gram import gram, written
from .core.recipes import Kernel
from .core.sides import points
from .methods.costs import budget
from .methods.result import ConvergenceWarning, Status
from .solving import solve

FEW = 2500  # points: up to here inverses cost less than iterating
TOGETHER = 64  # right-hand sides in one solve: more gain little, and take memory


class Folded(NamedTuple):
    """What the folds found, alpha by alpha."""

    values: np.ndarray  # (alphas, folds, n, targets) of f, at all points; predictions where a fold left them out
    coefficients: np.ndarray  # (alphas, folds, n, targets)
    reached: np.ndarray  # (alphas, folds) did all certificates meet the tolerance?
    entries: float  # of K that were computed
    seconds: float
    methods: tuple[str, ...]


def folded(
    X: Any,
    Y: np.ndarray,
    kernel: Kernel,
    alphas: np.ndarray,
    trains: list[np.ndarray],
    sample_weight: np.ndarray | None = None,
    centre: bool = False,
    **how: Any,
) -> Folded:
    """Fit Y, (n, q), on each of some sets of points with each of some alphas.

    With `centre`, the mean of what a fold fits is taken off first. `how` are parameters of `solve`.
    """
    began = time.perf_counter()
    n, q = Y.shape
    shape = len(alphas), len(trains), n, q
    room = 16 * math.prod(shape)
    if room > budget(how.get("memory")):
        raise ValueError(
            f"{shape[1]:,} folds of {shape[0]} alphas take {room / 1e6:,.0f} MB for what they find, more than memory "
            "allows: say fewer folds or alphas, or allow more memory"
        )
    out = np.empty(shape), np.empty(shape), np.ones(shape[:2], bool)
    w = np.ones(n) if sample_weight is None else sample_weight
    means = np.array([w[at] @ Y[at] / w[at].sum() if centre else np.zeros(q) for at in trains])
    counts = [np.bincount(at, minlength=n) for at in trains]  # a point that is named twice is there twice
    once = all(count.max() <= 1 for count in counts)
    if once and n <= FEW and (w > 0).all() and 4 * 8 * n * n <= budget(how.get("memory")):
        known = _inverted(points(X), Y, kernel, alphas, trains, w, means)
        if known is not None:
            return Folded(*known, out[2], float(n) * n, time.perf_counter() - began, ("inverse",))
    pairs = list(product(range(shape[0]), range(shape[1])))
    at_once = max(TOGETHER // q, 1)
    passes, methods = 0.0, []
    left = how.pop("max_seconds", None)
    for first in range(0, len(pairs), at_once):
        some = pairs[first : first + at_once]
        penalties = np.full((n, len(some), q), np.inf)
        for c, (k, f) in enumerate(some):
            penalties[trains[f], c] = (alphas[k] / counts[f][trains[f]])[:, None]
        limit = None if left is None else max(left - (time.perf_counter() - began), 1e-3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # `reached` tells, and the caller
            result = solve(
                X,
                np.concatenate([Y - means[f] for _, f in some], axis=1),
                kernel=kernel,
                alpha=penalties.reshape(n, -1),
                sample_weight=sample_weight,
                max_seconds=limit,
                **how,
            )
        if Status.INTERRUPTED in result.statuses:
            raise KeyboardInterrupt  # the rest would take as long again
        for c, pair in enumerate(some):
            mine = slice(c * q, (c + 1) * q)
            out[0][pair], out[1][pair] = result.fitted[:, mine] + means[pair[1]], result.x[:, mine]
            out[2][pair] = all(status is Status.CONVERGED for status in result.statuses[mine])
        passes += result.passes
        methods.append(result.method)
    return Folded(*out, passes * n * n, time.perf_counter() - began, tuple(dict.fromkeys(methods)))


def _inverted(
    X: Any, Y: np.ndarray, kernel: Kernel, alphas: np.ndarray, trains: list, w: np.ndarray, means: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Values and coefficients of all folds, alpha by alpha, from (K + alpha/w)⁻¹; None where that is not definite."""
    K = written(gram(kernel, X))
    n = len(K)
    values, coefficients = np.empty((2, len(alphas), len(trains), *Y.shape))
    for k, alpha in enumerate(alphas):
        C = K.copy()
        C[np.diag_indices(n)] += alpha / w
        C, failed = scipy.linalg.lapack.dpotrf(C.T, lower=1, clean=1, overwrite_a=1)
        if failed:
            return None
        C, _ = scipy.linalg.lapack.dpotri(C, lower=1, overwrite_c=1)
        C += np.tril(C, -1).T
        for f, (train, mean) in enumerate(zip(trains, means, strict=True)):
            left = np.ones(n, bool)
            left[train] = False
            solved = C @ (Y - mean)
            rest = scipy.linalg.solve(C[np.ix_(left, left)], solved[left], assume_a="pos", check_finite=False)
            alpha_f = solved - C[:, left] @ rest
            alpha_f[left] = 0.0
            coefficients[k, f], values[k, f] = alpha_f, K @ alpha_f + mean
    return values, coefficients
