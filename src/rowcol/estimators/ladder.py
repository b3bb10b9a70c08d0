"""The ladder of `KernelRidgeCV`: many candidates on few points, few on many, one on all."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..core.gram import gram
from ..core.kernels import RBF, Matern, Precomputed
from ..core.recipes import Kernel
from ..core.sides import leaves_of
from ..core.sizes import diagonal
from ..core.threads import blas_limit
from ..folding import Folded, folded
from ..methods.scales import tunable, tuned, usual_scale, with_scales
from .scoring import Score

log = logging.getLogger(__name__)

FEWEST = 500  # points on a rung
LEVEL = 200  # points of which k(x, x) is taken
START = 1e-2  # of k(x, x): alpha, before anything is known
KEPT = 2  # shapes of kernels that go on the ladder
COARSE = 10.0 ** np.array([-1.0, -0.5, 0.0, 0.5, 1.0])  # alphas, times the best so far
FINE = 10.0 ** np.array([-0.5, -0.25, 0.0, 0.25, 0.5])  # on the last rung
FURTHER = 10.0 ** np.array([0.25, 0.5])  # beyond an end: the smaller alpha, the more steps, so no further than needed
NUMBERS = 20_000_000  # of points that gradients are taken on
NOISE = 0.1  # of what folds differ by: alphas that differ by less are alike
TRIALS = (
    np.array([0.5, 1.0, 2.0]),
    np.array([0.5, 1.0, 2.0]) ** 0.5,
    np.ones(1),
)  # length-scales, times the best so far

Some = tuple[np.ndarray, np.ndarray, np.ndarray]  # points, targets, weights


@dataclass
class Ladder:
    """What is to be chosen from, and by what."""

    X: Any
    Y: np.ndarray  # (n, q)
    weight: np.ndarray
    folds: list[tuple[np.ndarray, np.ndarray]]
    score: Score
    alphas: np.ndarray | None
    length_scales: list | None
    ard: bool
    tune_points: int
    centre: bool
    deadline: float
    say: Callable[[str], None]
    how: dict[str, Any]
    rng: np.random.Generator
    asked: Callable[[], bool] = lambda: False  # did a person ask to stop?
    kept: list[int] | None = None  # which folds these are, where few points have not all of them

    def late(self) -> bool:
        """Is it time to be content with the best so far?"""
        return self.asked() or time.perf_counter() > self.deadline


class Candidate(NamedTuple):
    """A kernel, its best alpha so far, and how they did."""

    kernel: Kernel
    alpha: float
    score: float
    free: bool  # may its length-scales be changed?
    reached: bool = True
    start: np.ndarray | None = None  # (n, q) coefficients to begin the final fit with


class Rung(NamedTuple):
    """What was found on a rung for one kernel."""

    rung: int
    points: int
    kernel: Kernel
    alphas: np.ndarray
    scores: np.ndarray  # (alphas, folds)
    seconds: float


def climbed(ladder: Ladder, named: list[tuple[Kernel, bool]]) -> tuple[Candidate, list[Rung], list[dict]]:
    """The best candidate, everything tried, and what each stage cost."""
    stages: list[dict] = []
    order = ladder.rng.permutation(len(ladder.Y))
    candidates = _first(ladder, named, order, stages)
    n, given = len(ladder.Y), any(isinstance(leaf, Precomputed) for k, _ in named for leaf in leaves_of(k))
    sizes = [m for m in (n // 16, n // 4) if m >= FEWEST] if not given else []
    trials = TRIALS if len(sizes) == 2 else TRIALS[:1] + TRIALS[2:] if sizes else TRIALS[:1]
    fixed = ladder.length_scales is not None
    rungs: list[Rung] = []
    for rung, (m, factors) in enumerate(zip([*sizes, n], trials, strict=True)):
        chosen = _around(candidates, np.ones(1) if fixed else factors)
        if rung and ladder.late():
            break
        found: list[Candidate] = []
        began, entries, fits = time.perf_counter(), 0.0, 0
        ladder.say(f"{m:,} points: {len(chosen)} kernel{'s'[: len(chosen) > 1]}, {len(ladder.folds)} folds")
        part = ladder if m == n else _part(ladder, np.sort(order[:m]))
        for one in chosen:
            if found and ladder.late():
                break
            better, tried, cost = _tried(part, one, rung, last=m == n)
            if rungs and ladder.asked():  # its fits were cut short: those before were not
                break
            found.append(better)
            rungs += tried
            entries, fits = entries + cost, fits + sum(r.scores.size for r in tried)
        if not found:
            break
        cost_of = {"kernel_entries": entries, "seconds": time.perf_counter() - began}
        stages.append({"stage": "folds", "n_samples": m, "candidates": len(found), "fits": fits, **cost_of})
        found.sort(key=lambda c: -np.nan_to_num(c.score, nan=-np.inf))
        if all(np.isnan(c.score) for c in found):
            raise ValueError(
                "no score is a number: R² needs two rows in every fold; say scoring='neg_mean_squared_error', or "
                "see what your own scoring gives"
            )
        best = found[0]
        log.info("%s points: the best is %s, alpha %.3g, score %.4g", f"{m:,}", best.kernel, best.alpha, best.score)
        # all sorts of length-scales around the best; or, where they are given, the better third of them
        candidates = found[: -(-len(found) // 3)] if fixed else found[:1]
        if fixed and rung + 2 == len(trials):
            candidates = candidates[:1]
    best = candidates[0]  # where time ran out it knows coefficients of some points only
    return best if rungs[-1].points == n else best._replace(start=None), rungs, stages


def _first(ladder: Ladder, named: list[tuple[Kernel, bool]], order: np.ndarray, stages: list[dict]) -> list[Candidate]:
    """Candidates to begin with: length-scales as given, or found by gradients on some points; or kernels as given."""
    middle = None if ladder.alphas is None else float(np.exp(np.log(ladder.alphas).mean()))

    def alpha(k: Kernel) -> float:
        return START * _level(k, ladder.X, order) if middle is None else middle

    out = [
        Candidate(k, alpha(k), np.nan, False)
        for k, free in named
        if not (tunable(k) and (free or ladder.length_scales is not None))
    ]
    shapes = [k for k, free in named if tunable(k) and (free or ladder.length_scales is not None)]
    if ladder.length_scales is not None:
        return out + [
            Candidate(with_scales(k, one), alpha(k), np.nan, False) for k in shapes for one in ladder.length_scales
        ]
    if not shapes:
        return out
    m = min(ladder.tune_points, len(ladder.Y))
    ladder.say(f"{m:,} points: length-scales of {len(shapes)} kernel{'s'[: len(shapes) > 1]} by gradients")
    few, many = _few(ladder, order[:m]), _few(ladder, order[: 2 * m])
    with blas_limit(1):  # matrices are small: threads gain little, and lose tenfold if a core is taken
        out += _gradients(ladder, shapes, few, many, alpha(shapes[0]), stages)
    return out


def _level(kernel: Kernel, X: Any, order: np.ndarray) -> float:
    """The mean of k(x, x) over some points: alpha is measured against it."""
    some = np.sort(order[:LEVEL])
    given = any(isinstance(leaf, Precomputed) for leaf in leaves_of(kernel))
    try:
        found = float(diagonal(gram(kernel, X[some][:, some] if given else X[some])).mean())
    except ValueError:  # length-scales to be found are not yet in the units of X; or the fit will say what is wrong
        return 1.0
    return found if 0 < found < np.inf else 1.0


def _gradients(
    ladder: Ladder, shapes: list[Kernel], few: Some, many: Some, alpha: float, stages: list[dict]
) -> list[Candidate]:
    """The best of some shapes, with length-scales found on few points; on many where each feature has its own."""
    began, m = time.perf_counter(), len(few[1])
    alone = [
        tuned(k, *few, (usual_scale(k, few[0], np.random.default_rng(0)), alpha), False, 30, ladder.late)
        for k in shapes
    ]
    looks = sum(found.looks for found in alone)
    entries, d = float(looks) * m * m, few[0].shape[1]
    alone = sorted(alone, key=lambda found: found.error)[:KEPT]
    out = [Candidate(found.kernel, found.alpha, np.nan, True) for found in alone]
    for found in alone if ladder.ard else ():
        one = tuned(found.kernel, *few, (_scales(found.kernel, d), found.alpha), True, 60, ladder.late)
        two = tuned(one.kernel, *many, (_scales(one.kernel, d), one.alpha), True, 30, ladder.late)
        looks, entries = looks + one.looks + two.looks, entries + one.looks * m**2 + two.looks * len(many[1]) ** 2
        out.append(Candidate(two.kernel, two.alpha, np.nan, True))
    counts = {"n_samples": len(many[1]) if ladder.ard else m, "candidates": len(shapes), "fits": looks}
    cost = {"kernel_entries": entries, "seconds": time.perf_counter() - began}
    stages.append({"stage": "gradients", **counts, **cost})
    return out


def _scales(kernel: Kernel, d: int) -> np.ndarray:
    return np.array(np.broadcast_to(kernel.length_scale, d), float)  # type: ignore[attr-defined]


def _few(ladder: Ladder, which: np.ndarray) -> Some:
    """Some points, dense, each once: a weight of 2 is the same as having a point twice, also when it is left out."""
    which = which[ladder.weight[which] > 0]
    which = np.sort(which[: max(NUMBERS // ladder.X.shape[1], 50)])
    X = ladder.X[which]
    X = X.toarray() if sp.issparse(X) else np.asarray(X, np.float64)
    rows, place = np.unique(np.hstack([X, ladder.Y[which]]), axis=0, return_inverse=True)
    w = np.bincount(place.ravel(), ladder.weight[which])
    X, Y = rows[:, : X.shape[1]], rows[:, X.shape[1] :]
    Y = np.ldexp(Y, -np.frexp(np.abs(Y).max())[1])  # errors are compared only, and squares leave float64 otherwise
    return X, Y - (w @ Y / w.sum() if ladder.centre else 0.0), w


def _around(candidates: list[Candidate], factors: np.ndarray) -> list[Candidate]:
    """The candidates, those whose length-scales are free with others near them.

    A Matern kernel of longer scale is smoother and rougher noise looks larger beside it: with alpha ℓ^2ν kept, the
    functions it prefers are about as wiggly. For RBF, all of whose functions are smooth, as for the smoothest of these.
    """
    out = []
    for one in candidates:
        out.append(one)
        for factor in factors[factors != 1.0] if one.free else ():
            k = one.kernel
            nu = 2.5 if isinstance(k, RBF) else k.nu if isinstance(k, Matern) else 0.5
            longer = with_scales(k, factor * np.array(k.length_scale))  # type: ignore[attr-defined]
            out.append(one._replace(kernel=longer, alpha=one.alpha * factor ** (-2 * nu)))
    return out


def _part(ladder: Ladder, which: np.ndarray) -> Ladder:
    """The same on some points."""
    place = np.full(len(ladder.Y), -1)
    place[which] = np.arange(which.size)
    folds = [tuple(place[side][place[side] >= 0] for side in fold) for fold in ladder.folds]
    w, fewest = ladder.weight[which], min(2, *(test.size for _, test in ladder.folds))  # R² needs two, others one
    kept = [f for f, (a, b) in enumerate(folds) if np.count_nonzero(w[a]) > 1 and b.size >= fewest]
    return replace(ladder, X=ladder.X[which], Y=ladder.Y[which], weight=w, folds=[folds[f] for f in kept], kept=kept)


def _tried(ladder: Ladder, one: Candidate, rung: int, last: bool) -> tuple[Candidate, list[Rung], float]:
    """One kernel with all alphas on all folds; on the last rung, with more of them while the best is at an end."""
    alphas = one.alpha * (FINE if last and rung else COARSE) if ladder.alphas is None else ladder.alphas
    found, scores = _scored(ladder, one.kernel, alphas)
    out, entries = [Rung(rung, len(ladder.Y), one.kernel, alphas, scores, found.seconds)], found.entries
    best = _best(alphas, scores, found, one)
    for _ in range(4 if last and ladder.alphas is None else 0):
        ends, mean = (min(alphas), max(alphas)), _mean(scores)
        flat = not mean.max() - mean.min() >= NOISE * np.nanstd(scores, axis=1).mean()
        if best.alpha not in ends or flat or ladder.late():
            break
        alphas = ends[0] / FURTHER[::-1] if best.alpha == ends[0] else ends[1] * FURTHER
        found, scores = _scored(ladder, one.kernel, alphas)
        out.append(Rung(rung, len(ladder.Y), one.kernel, alphas, scores, found.seconds))
        entries += found.entries
        more = _best(alphas, scores, found, one)
        if not more.score > best.score:
            break
        best = more
    return best, out, entries


def _scored(ladder: Ladder, kernel: Kernel, alphas: np.ndarray) -> tuple[Folded, np.ndarray]:
    left = max(ladder.deadline - time.perf_counter(), 1.0)
    how = {**ladder.how, "max_seconds": None if np.isinf(left) else left, "callback": lambda _: ladder.asked()}
    w = None if (ladder.weight == 1.0).all() else ladder.weight
    trains = [train for train, _ in ladder.folds]
    found = folded(ladder.X, ladder.Y, kernel, alphas, trains, w, centre=ladder.centre, **how)
    kept = list(range(len(ladder.folds))) if ladder.kept is None else ladder.kept
    scores = np.full((len(alphas), max(kept) + 1), np.nan)
    for f, (_, test) in enumerate(ladder.folds):
        test = test[ladder.weight[test] > 0]
        for k in range(len(alphas) if test.size else 0):
            scores[k, kept[f]] = ladder.score(ladder.Y[test], found.values[k, f, test], ladder.weight[test])
    return found, scores


def _best(alphas: np.ndarray, scores: np.ndarray, found: Folded, one: Candidate) -> Candidate:
    mean = _mean(scores)
    k = int(np.nanargmax(mean)) if not np.isnan(mean).all() else 0
    fitted = (found.coefficients[k] != 0).any(axis=2).sum(axis=0)  # in how many folds a point was fitted
    start = found.coefficients[k].sum(axis=0) / np.maximum(fitted, 1)[:, None]
    return Candidate(one.kernel, float(alphas[k]), float(mean[k]), one.free, bool(found.reached[k].all()), start)


def _mean(scores: np.ndarray) -> np.ndarray:
    """Of the folds that have a score: where all that is left out has weight zero, there is none."""
    known = ~np.isnan(scores)
    return np.divide(
        np.where(known, scores, 0.0).sum(axis=1),
        known.sum(axis=1),
        out=np.full(len(scores), np.nan),
        where=known.any(axis=1),
    )


def results(rungs: list[Rung]) -> dict[str, Any]:
    """In the form of scikit-learn's `cv_results_`, with the rungs as its halving searches tell them."""
    rows = [(r, k) for r in rungs for k in range(len(r.alphas))]
    folds = max(r.scores.shape[1] for r in rungs)
    params = [{"kernel": r.kernel, "alpha": float(r.alphas[k])} for r, k in rows]
    scores = np.full((len(rows), folds), np.nan)
    for i, (r, k) in enumerate(rows):
        scores[i, : r.scores.shape[1]] = r.scores[k]
    mean = np.array([_mean(r.scores[k : k + 1])[0] for r, k in rows])
    rung = np.array([r.rung for r, _ in rows])
    order = np.lexsort((-np.nan_to_num(mean, nan=-np.inf), -rung))  # the last rung first, the best of it first
    rank = np.empty(len(rows), np.int64)
    rank[order] = np.arange(1, len(rows) + 1)
    kernels = np.empty(len(rows), object)
    kernels[:] = [p["kernel"] for p in params]
    return {
        "iter": rung,
        "n_resources": np.array([r.points for r, _ in rows]),
        "mean_fit_time": np.array([r.seconds / r.scores.size for r, _ in rows]),
        "param_kernel": np.ma.MaskedArray(kernels, mask=False),
        "param_alpha": np.ma.MaskedArray([p["alpha"] for p in params], mask=False),
        "params": params,
        **{f"split{f}_test_score": scores[:, f] for f in range(folds)},
        "mean_test_score": mean,
        "std_test_score": np.array(
            [np.nanstd(r.scores[k]) if not np.isnan(mean[i]) else np.nan for i, (r, k) in enumerate(rows)]
        ),
        "rank_test_score": rank,
    }
