"""Rows that lie elsewhere, part by part: minimum norm and ridge by rows (27)-(29).

Parts come in a new order, the rows of each in a new order, the next part being read meanwhile; within a part it is the
same descent as ever. β goes from part to part, and a row's α stays with it, so nothing of X is kept.
"""

from __future__ import annotations

import time
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.certify import Evidence
from ..core.passes import Products
from ..core.place import Place, in_time
from ..core.problem import Problem, some
from ..core.products import products
from ..core.sampler import sampler, take
from ..core.view import beta, dual, rows, state
from .coordinate import coordinate
from .loop import Round
from .states import held, narrowed, put
from .way import Way


@dataclass
class Streamed:
    """Randomized Kaczmarz on parts of rows. A `Mover`."""

    problem: Problem
    by: Products
    seed: np.random.SeedSequence
    jobs: int
    ids: np.ndarray
    alpha: np.ndarray  # (q, n)
    beta: np.ndarray  # (q, p)
    patience: float = 8.0
    passes: int = 0
    needs_solution: bool = True

    def advance(self, room: float, deadline: float) -> Round:
        """A pass over all parts; late in it, some are left for the next."""
        place: Place = self.problem.X
        own = np.random.default_rng([*self.seed.generate_state(4), self.passes])
        order, seeds = own.permutation(place.count), own.integers(2**63, size=place.count)
        gain, slope2, steps = np.zeros(len(self.ids)), np.zeros(len(self.ids)), 0
        for k, part in in_time(place.parts(order), place.count, left=False):
            tally, taken = self._walk(part, slice(int(place.starts[k]), int(place.starts[k + 1])), int(seeds[k]))
            gain, slope2, steps = gain + tally[:, 0], slope2 + tally[:, 1], steps + taken
            if time.perf_counter() > deadline:
                break
        self.passes += 1
        size = np.maximum(np.linalg.norm(self.problem.y[self.ids], axis=1), 1e-300)
        return Round(steps / place.shape[0], steps, gain, np.sqrt(slope2 * (place.shape[0] / max(steps, 1))) / size)

    def _walk(self, part: np.ndarray, here: slice, seed: int) -> tuple[np.ndarray, int]:
        """Every row of a part once: what that gained, and how steep it was."""
        weight = None if self.problem.weight is None else self.problem.weight[here]
        y, alpha = self.problem.y[:, here][self.ids], self.alpha[:, here]
        tally, self.alpha[:, here], self.beta = walked(
            part, self.by.pool, bare_of(self.problem, self.ids), self.beta, seed, self.jobs, y, weight, alpha
        )
        return tally, part.shape[0]

    def answers(self) -> tuple[np.ndarray, np.ndarray | None]:
        """β and α."""
        return self.beta, self.alpha

    def learn(self, place: int, evidence: Evidence, k: int) -> None:
        """β is replaced by Xᴴα as it was summed anew."""
        if evidence.image is not None:
            self.beta[place] = evidence.image[k]

    def keep(self, mask: np.ndarray) -> None:
        """Go on with some right-hand sides only."""
        self.ids, self.alpha, self.beta = self.ids[mask], self.alpha[mask], self.beta[mask]

    def state(self) -> dict[str, Any] | None:
        """α, β and how many passes: each has its own order, which comes from the seed."""
        return held(self, "ids", "alpha", "beta", "passes")

    def restore(self, told: dict[str, Any]) -> None:
        """Go on from there."""
        narrowed(self, told)
        put(self, told, "alpha", "beta", "passes")

    def column_norms(self) -> np.ndarray | None:
        """Not known: lines are rows."""
        return None


def bare_of(problem: Problem, ids: np.ndarray) -> Problem:
    """What of a problem a part has to know: nothing as long as y."""
    return some(problem._replace(X=None, y=problem.y[:, :0], weight=None), ids)._replace(y=np.empty((0, 0)))


def walked(
    part: Any,
    pool: Executor | None,
    bare: Problem,
    start: np.ndarray,
    seed: int,
    jobs: int,
    y: np.ndarray,
    weight: np.ndarray | None,
    alpha: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every row of a part once, from β: what that gained and how steep it was; α of these rows, and β, after it."""
    mine = bare._replace(X=part, y=np.ascontiguousarray(y), weight=weight)
    view = rows(mine)
    now = state(view, alpha, start)
    source = sampler("shuffled", part.shape[0], np.random.SeedSequence(seed))
    mover = coordinate(mine, view, source, now, pool, jobs)
    tally = mover.spend(take(source, part.shape[0]))
    after = dual(view, mover.now)
    assert after is not None
    return np.ascontiguousarray(tally.transpose(1, 2, 0)).sum(axis=-1), after, beta(view, mover.now)


def streamed(way: Way, problem: Problem, beta0: np.ndarray | None, alpha0: np.ndarray | None) -> Streamed:
    """From zero, or from where another left off: with a penalty that is an α, without one a β."""
    (q, n), kind = problem.y.shape, problem.y.dtype
    alpha = np.zeros((q, n), kind) if alpha0 is None else alpha0.astype(kind)
    start = beta_from(problem, beta0, alpha0)
    return Streamed(problem, products(problem.X, way.pool), way.seed, way.jobs, np.arange(q), alpha, start)


def beta_from(problem: Problem, beta0: np.ndarray | None, alpha0: np.ndarray | None) -> np.ndarray:
    """β of a start: with a penalty it is known by its α only."""
    shape, kind = (len(problem.y), problem.X.shape[1]), problem.y.dtype
    known = beta0 is not None and (alpha0 is not None or problem.alpha == 0)
    return beta0.astype(kind) if known and beta0 is not None else np.zeros(shape, kind)
