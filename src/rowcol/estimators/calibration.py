"""Probabilities of classes from regressions on ±1, fitted to values at points that were left out.

A regression on ±1 estimates 2p − 1, so (1 + f)/2 is its own idea of p: too timid where alpha shrinks f, too bold where
f overfits, below zero at times. It is bent to stay above zero; a slope of its logarithm, and an offset a class where
the points ask for them, by maximum likelihood, do the rest: for two classes, Platt's sigmoid (1999) of that logarithm.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import log_softmax, softmax

from ..core.sampler import seeds
from ..methods.result import Result

FOLDS = 5
SHARP = 10.0  # how sharply (1 + f)/2 is bent at zero: 5 to 20 differ by less than a tenth in log loss
OFTEN = 10  # times the same point comes, on average: then it is not left out as a whole


# --- folds -----------------------------------------------------------------------------------------------------------


def folds_of(X: Any, targets: np.ndarray, weight: np.ndarray, random_state: Any) -> np.ndarray:
    """The fold of every point, with its share of every class in each; −1 where the weight is zero.

    Points that are equal share a fold, so that none is predicted from its double, and weights are repetitions here too.
    Where points come again and again they are spread instead: to leave one out would be to ask what was never seen.
    """
    live = np.flatnonzero(weight > 0)
    if live.size < 2:
        raise ValueError("probability=True needs two points or more of sample_weight above 0: one is left out in turn")
    marks = _marks(X[live], seeds(random_state))
    kinds = np.unique(targets[live], axis=0, return_inverse=True)[1].ravel()
    different, which = np.unique(marks, return_inverse=True)
    if len(different) < 2 or len(different) * OFTEN < live.size:
        different, which = marks, np.arange(live.size)
    kind = np.full(len(different), len(kinds))
    np.minimum.at(kind, which, kinds)
    share = np.empty(len(different), np.int64)
    share[np.lexsort((different, kind))] = np.arange(len(different)) % FOLDS
    fold = np.full(len(weight), -1)
    fold[live] = share[which]
    return fold


def _marks(X: Any, seed: np.random.SeedSequence) -> np.ndarray:
    """A random number for every point, that depends on the point only and not on where it stands."""
    key = seed.generate_state(4).tobytes()
    if sp.issparse(X):
        X = sp.csr_array(X, copy=True)
        X.sum_duplicates()
        X.eliminate_zeros()
        rows = (X.indices[a:b].tobytes() + X.data[a:b].tobytes() for a, b in pairwise(X.indptr))
    else:
        rows = ((row + 0.0).tobytes() for row in X)  # −0 is 0
    return np.array([int.from_bytes(blake2b(row, key=key, digest_size=8).digest(), "big") for row in rows], np.uint64)


def in_folds(targets: np.ndarray, alpha: Any, fold: np.ndarray, some: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Targets and alphas of one solve for some folds, side by side: an infinite alpha leaves a point out."""
    alphas = [np.where((fold == k)[:, None], np.inf, np.broadcast_to(alpha, targets.shape)) for k in some]
    return np.tile(targets, len(some)), np.hstack(alphas)


def left_out(result: Result, fold: np.ndarray, some: np.ndarray) -> np.ndarray:
    """The values of a solve `in_folds` at the points that each column left out; zeros elsewhere."""
    q = result.fitted.shape[1] // len(some)
    values = np.zeros((len(fold), q))
    for i, k in enumerate(some):
        at = fold == k
        values[at] = result.fitted[at, i * q : (i + 1) * q]
    return values


# --- probabilities ---------------------------------------------------------------------------------------------------


@dataclass
class Calibration:
    """p_k in proportion to exp(offset_k) ((1 + f_k)/2)^slope, where (1 + f)/2 is bent to stay above zero.

    Attributes
    ----------
    slope : float
        At least 0; 1 would be the regressions' own idea.
    offsets : ndarray, (n_classes,)
        Zeros, unless they are worth it.
    """

    slope: float
    offsets: np.ndarray

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Probabilities, (n, n_classes), of the regressions' values; one column is that of the second of two."""
        return softmax(self.slope * _positive(_pair(scores)) + self.offsets, axis=1)


def calibrated(scores: np.ndarray, targets: np.ndarray, weight: np.ndarray) -> Calibration:
    """The most likely slope and offsets, by Newton's steps; `targets` are the ±1 that the scores are after.

    As with Platt, a class of N points is taken to be right N + 1 times in N + 2, so that no fit is infinitely sure.
    """
    g, own, total = _positive(_pair(scores)), _pair(targets) > 0, float(weight.sum())
    count = own.shape[1]
    missed = 1.0 / (own * (weight @ own + 2.0)).sum(axis=1, keepdims=True)
    wanted = np.where(own, 1.0 - missed, missed / (count - 1))
    w = (weight / total)[:, None]
    plain, without = _newton(np.append(1.0, np.zeros(count)), 1, g, wanted, w)
    at, value = _newton(plain, count + 1, g, wanted, w)
    # without offsets the likeliest class is the one predicted: they must be worth it (Schwarz 1978)
    if 2 * total * (without - value) <= (count - 1) * np.log1p(total):
        at = plain
    if at[0] < 0:  # the values say less than nothing; the problem is convex, so the best slope allowed is none
        return Calibration(0.0, np.log((w * wanted).sum(axis=0)))
    return Calibration(float(at[0]), at[1:])


def _newton(at: np.ndarray, free: int, g: np.ndarray, wanted: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, float]:
    """The best of the first `free` of slope and offsets, and −log likelihood there."""
    for _ in range(100):
        value, slope, bend = _likelihood(at, g, wanted, w)
        step = np.zeros(len(at))
        step[:free] = np.linalg.solve(bend[:free, :free], slope[:free])
        gain, length = float(slope @ step), 1.0
        if gain > 1e-8:  # far off, steps may be too long; near by, the value no longer tells
            for length in 0.5 ** np.arange(30):
                if _likelihood(at - length * step, g, wanted, w)[0] <= value - 1e-4 * length * gain:
                    break
        at = at - length * step
        if gain < 1e-16:  # and this step squared it
            break
    return at, value


def _likelihood(at: np.ndarray, g: np.ndarray, wanted: np.ndarray, w: np.ndarray) -> tuple[float, Any, Any]:
    """−log likelihood of slope and offsets, its gradient and its Hessian."""
    logs = log_softmax(at[0] * g + at[1:], axis=1)
    p = np.exp(logs)
    off, spread = w * (p - wanted), w * p * (g - (p * g).sum(axis=1, keepdims=True))
    bend = np.empty((len(at), len(at)))
    bend[0, 0] = (spread * g).sum()
    bend[0, 1:] = bend[1:, 0] = spread.sum(axis=0)
    bend[1:, 1:] = np.diag((w * p).sum(axis=0)) - p.T @ (w * p)
    bend[np.diag_indices(len(at))] += 1e-12  # adding one number to all offsets changes nothing
    return -float((w * wanted * logs).sum()), np.append((off * g).sum(), off.sum(axis=0)), bend


def _pair(scores: np.ndarray) -> np.ndarray:
    return np.hstack([-scores, scores]) if scores.shape[1] == 1 else scores


def _positive(scores: np.ndarray) -> np.ndarray:
    """log of (1 + f)/2, bent to stay above zero."""
    t = SHARP * (1.0 + scores) / 2
    return np.where(t > -30.0, np.log(np.logaddexp(0.0, np.maximum(t, -30.0)) / SHARP), t - np.log(SHARP))
