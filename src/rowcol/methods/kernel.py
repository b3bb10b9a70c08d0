"""Kernel ridge regression (K + Λ) α = y, Λ = λ/w, by steps on points, by blocks of them, or by a factor.

- `Points`: the paper's update, one coordinate a step: α_i += (y_i − (Kα)_i − λ_i α_i)/(k_ii + λ_i), (18) = (30)-(31).
  It is the same `descend`: s holds Kα, and lines are columns of K, made a batch of picks at a time.
- `FreshBlocks`: the same step for a random block of points at once, with momentum. The whole residual is carried, so
  that every step knows its certificate.
- `Whole`: Cholesky, where K fits in memory.

Conjugate gradients are those of `conjugate.py`, preconditioned by `pivots.py`.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg

from ..core.carried import NAMES, Here, Pace, Sums, begun
from ..core.certify import Evidence
from ..core.gram import Gram, picked, product, written
from ..core.problem import Problem
from ..core.sampler import Sampler, take
from ..core.sizes import diagonal
from ..core.threads import lent
from ..engine.lines import Lookup, descend
from ..places.carrying import There
from ..places.grounds import ground_of
from .loop import Round
from .states import held, like, narrowed, pick_on, picks_so_far, places, put

BATCH = 64  # columns of K made at a time, for single steps


def ridge_of(problem: Problem) -> np.ndarray:
    """Λ, one a point: (n,), or (q, n) with zeros at points that do not count for a column."""
    n, w = problem.X.shape[0], problem.weight
    return np.full(n, problem.alpha) if w is None else np.divide(problem.alpha, w, out=np.zeros_like(w), where=w > 0)


@dataclass
class Points:
    """The paper's steps on single points: a `Mover`."""

    problem: Problem
    by: Any  # the exact Gram
    source: Sampler
    diag: np.ndarray
    lam: np.ndarray
    x: np.ndarray  # (q, n) α
    s: np.ndarray  # (q, n) Kα
    ids: np.ndarray
    patience: float = math.inf
    needs_solution: bool = False
    shortened: bool = False  # the last round, by the limit of passes

    def advance(self, room: float, deadline: float) -> Round:
        """At most a quarter of a pass, batch by batch."""
        n, y = self.by.shape[0], self.problem.y[self.ids]
        length = max(min(n // 4, math.ceil(room * n - 1e-9)), 1)
        self.shortened = length < n // 4
        tally, spent = np.zeros((self.ids.size, 2)), 0
        for start in range(0, length, BATCH):
            picks = take(self.source, min(BATCH, length - start))
            which, places = np.unique(picks, return_inverse=True)
            lines = Lookup(written(picked(self.by, which)), which)
            b, x = np.ascontiguousarray(y[:, which].T), np.ascontiguousarray(self.x[:, which].T)
            tally += descend(lines, self.diag[which], self.lam[which], b, x, self.s, places).sum(axis=0)
            self.x[:, which] = x.T
            spent += picks.size
            if time.perf_counter() > deadline:
                break
        gain, slope2 = tally.T / spent
        # picks in proportion to d_i = k_ii + λ_i meet |g_i|²/d_i with mean Σ|g_i|²/Σd_i; even picks, Σ|g_i|²/n
        slopes2 = gain * self.source.total if self.source.kind == "norms" else slope2 * n
        size = np.maximum(np.linalg.norm(y, axis=1), 1e-300)
        return Round(spent / n, spent, tally[:, 0], np.sqrt(slopes2) / size)

    def answers(self) -> tuple[np.ndarray, np.ndarray | None]:
        """α, which is the answer."""
        return self.x, None

    def learn(self, place: int, evidence: Evidence, k: int) -> None:
        """The carried values are replaced by those just summed anew."""
        self.s[place] = self.problem.y[self.ids[place]] - evidence.residual[k]

    def keep(self, mask: np.ndarray) -> None:
        """Go on with some right-hand sides only."""
        self.x, self.s, self.ids = self.x[mask], self.s[mask], self.ids[mask]

    def column_norms(self) -> np.ndarray | None:
        """k(x_i, x_i)."""
        return None

    def state(self) -> dict[str, Any] | None:
        """α, Kα and the picks."""
        return held(self, "ids", "x", "s") | {"picks": picks_so_far(self.source)}

    def restore(self, told: dict[str, Any]) -> None:
        """Go on from there."""
        narrowed(self, told)
        put(self, told, "x", "s")
        pick_on(self.source, told["picks"])


@dataclass
class FreshBlocks:
    """Steps on random blocks of points with Nesterov's momentum, begun anew when the energy rises: a `Mover`.

    α, its companions and their residuals are carried here, or on the workers of a cluster.
    """

    problem: Problem
    by: Any  # the exact Gram
    quick: Gram
    lam: np.ndarray
    size: int
    rng: np.random.Generator
    carried: Here | There
    ids: np.ndarray
    mu: float
    energy: np.ndarray = field(init=False)
    order: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    best: np.ndarray = field(init=False)  # certificates of the last look
    indefinite: list[int] = field(default_factory=list)
    patience: float = math.inf
    needs_solution: bool = False

    def __post_init__(self) -> None:
        self.energy = _energy(self.carried.sums())
        self.best = np.full(self.ids.size, np.inf)

    def _next(self) -> np.ndarray:
        """The points of the block to come."""
        if self.order.size < self.size:
            self.order = np.concatenate([self.order, self.rng.permutation(self.by.shape[0])])
        return np.unique(self.order[: self.size])

    def advance(self, room: float, deadline: float) -> Round:
        """One block."""
        n, at = self.by.shape[0], self._next()
        self.order = self.order[self.size :]
        small, left = self.carried.meet(self.quick, at)
        small[np.diag_indices(at.size)] += self.lam[at]
        factor = _cholesky(small)
        if factor is None:
            self.carried.restart(np.ones(self.ids.size, bool))
            return self._give_way(0.0, indefinite=True)
        d = scipy.linalg.cho_solve(factor, left.T).T  # what the block adds to α
        nu = n / self.size
        beta, gamma = 1 - math.sqrt(self.mu / nu), 1 / math.sqrt(self.mu * nu)
        pace = Pace(beta, gamma, 1 / (1 + gamma * nu))
        sums = self.carried.go(self.quick, at, d, pace, self._next())
        energy = _energy(sums)
        if not np.isfinite(energy).all() or (energy > self.energy + 10 * np.abs(self.energy) + 1e-300).any():
            self.carried.back()  # single precision, or too much momentum, led away
            return self._give_way(at.size / n, indefinite=False)
        gain = 2 * (self.energy - energy)
        if (energy > self.energy).any():
            self.carried.restart(energy > self.energy)
        self.energy = energy
        return Round(at.size / n, 1, gain, self._measure(sums))

    def _measure(self, sums: Sums) -> np.ndarray:
        """‖W^½r‖ / ‖W^½y‖."""
        root = 1.0 if self.problem.weight is None else np.sqrt(self.problem.weight)
        size = np.maximum(np.linalg.norm(root * self.problem.y[self.ids], axis=1), 1e-300)
        return np.sqrt(sums.left2) / size

    def _give_way(self, passes: float, indefinite: bool) -> Round:
        """Single precision may be to blame: begin anew in double. If it was double already, there is no going on."""
        none, last = np.zeros(self.ids.size), self.quick is self.by
        self.quick, self.indefinite = self.by, [int(i) for i in self.ids] if last and indefinite else []
        estimate = none if last else self._measure(self.carried.sums())
        return Round(passes, 1, none, estimate, np.full(self.ids.size, last))

    def answers(self) -> tuple[np.ndarray, np.ndarray | None]:
        """α."""
        return self.carried.w, None

    def learn(self, place: int, evidence: Evidence, k: int) -> None:
        """The carried residual drifts by the single precision of tiles: begin anew from the true one."""
        self.carried.fresh(place, evidence.residual[k] - self.lam * self.carried.w[place])
        value = evidence.certificates[k].value
        if value > 0.7 * self.best[place]:
            self.quick = self.by  # single precision is exhausted
        self.best[place] = min(value, self.best[place])
        self.energy = _energy(self.carried.sums())

    def keep(self, mask: np.ndarray) -> None:
        """Go on with some right-hand sides only."""
        self.carried.keep(mask)
        self.energy, self.ids, self.best = self.energy[mask], self.ids[mask], self.best[mask]

    def column_norms(self) -> np.ndarray | None:
        """Not needed."""
        return None

    def state(self) -> dict[str, Any] | None:
        """α, its companions and the blocks to come."""
        told = held(self, "ids", "order", "indefinite", "energy", "best") | self.carried.told()
        return told | {"exact": self.quick is self.by, "random": dict(self.rng.bit_generator.state)}

    def restore(self, told: dict[str, Any]) -> None:
        """Go on from there."""
        narrowed(self, told)
        put(self, told, "indefinite", "energy", "best")
        self.carried.put({name: like(told[name], self.carried.w.shape) for name in NAMES})
        self.order = places(told["order"], self.by.shape[0], 2 * self.by.shape[0])
        self.quick = self.by if told["exact"] else self.quick
        self.rng.bit_generator.state = told["random"]


def _energy(sums: Sums) -> np.ndarray:
    """½αᵀAα − yᵀα = −½αᵀ(y + r)."""
    return -0.5 * sums.energy


@dataclass
class Whole:
    """Cholesky of K + Λ, refined by looks: a `Mover`."""

    problem: Problem
    by: Any  # the exact Gram
    lam: np.ndarray
    x: np.ndarray
    ids: np.ndarray
    factor: Any = None
    slope: np.ndarray = field(init=False)  # what the next correction removes; a start is looked at first
    best: np.ndarray = field(init=False)
    stuck: np.ndarray = field(init=False)
    indefinite: list[int] = field(default_factory=list)
    patience: float = math.inf
    needs_solution: bool = False

    def __post_init__(self) -> None:
        self.best, self.slope = np.full(self.ids.size, np.inf), self.problem.y[self.ids].copy()
        self.stuck = np.zeros(self.ids.size, bool)

    def advance(self, room: float, deadline: float) -> Round:
        """Factor, the first time; then correct."""
        passes = 0.0
        if self.factor is None:
            K = written(self.by)
            K[np.diag_indices(len(K))] += self.lam
            with lent(len(K)):
                self.factor, passes = _cholesky(K.T), 1.0  # in Fortran order, so in place
        if self.factor is None:
            self.indefinite, none = [int(i) for i in self.ids], np.zeros(self.ids.size)
            return Round(passes, 1, none, none, np.ones(self.ids.size, bool))
        step = scipy.linalg.cho_solve(self.factor, self.slope.T, check_finite=False).T
        self.x = self.x + step
        gain = np.einsum("qi,qi->q", step, self.slope)
        return Round(passes, 1, gain, np.zeros(self.ids.size), self.stuck)

    def answers(self) -> tuple[np.ndarray, np.ndarray | None]:
        """α."""
        return self.x, None

    def learn(self, place: int, evidence: Evidence, k: int) -> None:
        """What is left is the next right-hand side; no correction helps twice in vain."""
        self.slope[place] = evidence.residual[k] - self.lam * self.x[place]
        value = evidence.certificates[k].value
        self.stuck[place] = not value < 0.7 * self.best[place]
        self.best[place] = min(value, self.best[place])

    def keep(self, mask: np.ndarray) -> None:
        """Go on with some right-hand sides only."""
        for name in ("x", "ids", "best", "stuck", "slope"):
            setattr(self, name, getattr(self, name)[mask])

    def column_norms(self) -> np.ndarray | None:
        """Not needed."""
        return None

    def state(self) -> dict[str, Any] | None:
        """It is the factor that takes the time, and that is made anew."""
        return None

    def restore(self, told: dict[str, Any]) -> None:
        """There is nothing to go on from."""
        raise ValueError("a factor has no state")


def _cholesky(A: np.ndarray) -> tuple[np.ndarray, bool] | None:
    """A factor, or None where A is not positive definite."""
    try:
        return scipy.linalg.cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        return None


def points(problem: Problem, g: Gram, source_of: Any, alpha0: np.ndarray | None) -> Points:
    """A mover of single steps; `source_of` makes the sampler from k_ii + λ_i."""
    lam, diag = ridge_of(problem), diagonal(g)
    x = np.zeros_like(problem.y) if alpha0 is None else alpha0.copy()
    s = np.zeros_like(x) if alpha0 is None else product(g, x)
    return Points(problem, g, source_of(diag + lam), diag, lam, x, s, np.arange(len(x)))


def fresh_blocks(
    problem: Problem, g: Gram, quick: Gram, alpha0: np.ndarray | None, seed: np.random.SeedSequence
) -> FreshBlocks:
    """A mover of blocks."""
    lam, n = ridge_of(problem), g.shape[0]
    x = np.zeros_like(problem.y) if alpha0 is None else alpha0.copy()
    r = problem.y - lam * x - (product(g, x) if alpha0 is not None else 0.0)
    size = block_size(n)
    # scale-free: λ against the mean of the diagonal
    mu = min(float(lam.mean() / max(diagonal(g).mean(), 1e-300)), size / n)
    y, root, ground = problem.y, None if problem.weight is None else np.sqrt(problem.weight), ground_of(g)
    carried = Here(begun(x), begun(r), y, lam, root) if ground is None else There(ground, g, lam, x, r, y, root)
    return FreshBlocks(problem, g, quick, lam, size, np.random.default_rng(seed), carried, np.arange(len(x)), mu)


def block_size(n: int) -> int:
    """Points in a block."""
    return int(min(max(n // 32, min(n, 64)), 2048))


def whole(problem: Problem, g: Gram, alpha0: np.ndarray | None) -> Whole:
    """A mover by a factor."""
    x = np.zeros_like(problem.y) if alpha0 is None else alpha0.copy()
    return Whole(problem, g, ridge_of(problem), x, np.arange(len(x)))
