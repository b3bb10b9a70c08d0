"""Rows that lie elsewhere; within a part, the same descent as ever: minimum norm and ridge by rows (27)-(29).

- `Streamed`, part by part: parts in a new order, the rows of each in a new order, the next part being read meanwhile. β
  goes from part to part, and a row's α stays with it, so nothing of X is kept.
- `Joined`, all parts at once, on the workers that have them, each from the same β. A part gives its moves of α and β,
  and the best combination of all these and of the two rounds before is taken. The objective is a quadratic of as many
  numbers, known without touching X, so it never rises; where parts do not know of each other (as their rows are
  orthogonal), that is plain descent, and where they are all alike, their mean.
"""

from __future__ import annotations

import time
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..core.certify import Evidence
from ..core.passes import Products
from ..core.place import Place, in_time
from ..core.problem import Problem, some
from ..core.products import products
from ..core.sampler import sampler, take
from ..core.view import beta, dual, rows, state
from .bounded import MOVES, best_combination
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
            part, self.by.pool, _bare(self.problem, self.ids), self.beta, seed, self.jobs, y, weight, alpha
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


@dataclass
class Joined(Streamed):
    """The same by all parts at once, and the best combination of their moves. A `Mover`."""

    moves: np.ndarray = field(init=False)  # (MOVES, q, n) what α moved by in the rounds before
    moved: np.ndarray = field(init=False)  # (MOVES, q, p) and β

    def __post_init__(self) -> None:
        self._begin_anew()

    def _begin_anew(self) -> None:
        self.moves = np.zeros((MOVES, *self.alpha.shape), self.alpha.dtype)
        self.moved = np.zeros((MOVES, *self.beta.shape), self.beta.dtype)

    def advance(self, room: float, deadline: float) -> Round:
        """A pass over all parts at once, and the best combination."""
        place: Place = self.problem.X
        # one order for parts of the same length: they do not see each other
        seed = int(np.random.default_rng([*self.seed.generate_state(4), self.passes]).integers(2**63))
        y, n = self.problem.y[self.ids], place.shape[0]
        asked = (_bare(self.problem, self.ids), self.beta, seed, 1), (y, self.problem.weight, self.alpha)
        found = list(place.map(walked, *asked))
        d = np.concatenate([alpha for _, alpha, _ in found], axis=1) - self.alpha
        D = np.concatenate([[beta - self.beta for _, _, beta in found], self.moved])
        tally = np.array([one for one, _, _ in found])  # (parts, q, 2)
        gain = self._combine(d, D, tally[:, :, 0].T)
        self.passes += 1
        size = np.maximum(np.linalg.norm(y, axis=1), 1e-300)
        return Round(1.0, n, gain, np.sqrt(tally[:, :, 1].sum(axis=0)) / size)

    def _combine(self, d: np.ndarray, D: np.ndarray, gains: np.ndarray) -> np.ndarray:
        """Take the best combination of the moves: twice what is gained."""
        starts, w = self.problem.X.starts, self.problem.weight
        lam: Any = self.problem.alpha
        lam = lam if w is None else np.divide(lam, w, out=np.zeros_like(w), where=w > 0)
        many = len(starts) - 1

        def each(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            """Σ over the rows of each part: (q, parts)."""
            return np.add.reduceat(np.real(a.conj() * b), starts[:-1], axis=1)

        gram = np.real(np.einsum("aqi,bqi->qab", D.conj(), D))
        gram[:, range(many), range(many)] += each(d, lam * d)
        for i, move in enumerate(self.moves):
            across = each(d, lam * move)
            gram[:, :many, many + i] += across
            gram[:, many + i, :many] += across
            for j, other in enumerate(self.moves):
                gram[:, many + i, many + j] += each(move, lam * other).sum(axis=1)
        # From what a part gained by itself: ⟨D, β⟩ − ⟨d, y⟩ would be rounded as β and y are. Along the moves before it
        # is level, as they were among those combined.
        slope = np.zeros(gram.shape[:2])
        slope[:, :many] = -0.5 * (gains + gram[:, range(many), range(many)])
        if not (np.isfinite(gram).all() and np.isfinite(slope).all()):
            return np.full(len(gains), np.nan)  # the loop finds out why
        best = best_combination(gram, slope)
        gain = -2 * np.einsum("qa,qa->q", best, slope) - np.einsum("qa,qab,qb->q", best, gram, best)
        best[~(gain > 0)] = 0.0
        onward = np.repeat(best[:, :many], np.diff(starts), axis=1) * d
        onward += np.einsum("qa,aqi->qi", best[:, many:], self.moves)
        ahead = np.einsum("qa,aqi->qi", best, D)
        self.alpha, self.beta = self.alpha + onward, self.beta + ahead
        self.moves = np.concatenate([onward[None], self.moves[:-1]])
        self.moved = np.concatenate([ahead[None], self.moved[:-1]])
        return np.maximum(gain, 0.0)

    def keep(self, mask: np.ndarray) -> None:
        """Go on with some right-hand sides only."""
        super().keep(mask)
        self.moves, self.moved = self.moves[:, mask], self.moved[:, mask]

    def state(self) -> dict[str, Any] | None:
        """The same, and the moves before."""
        return held(self, "ids", "alpha", "beta", "passes", "moves", "moved")

    def restore(self, told: dict[str, Any]) -> None:
        """Go on from there."""
        super().restore(told)
        put(self, told, "moves", "moved")


def _bare(problem: Problem, ids: np.ndarray) -> Problem:
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
    now = state(view, np.array(alpha, order="C"), start.copy())  # what was given stays as it is
    source = sampler("shuffled", part.shape[0], np.random.SeedSequence(seed))
    mover = coordinate(mine, view, source, now, pool, jobs)
    tally = mover.spend(take(source, part.shape[0]))
    after = dual(view, mover.now)
    assert after is not None
    return np.ascontiguousarray(tally.transpose(1, 2, 0)).sum(axis=-1), after, beta(view, mover.now)


def streamed(way: Way, problem: Problem, beta0: np.ndarray | None, alpha0: np.ndarray | None) -> Streamed:
    """From zero, or from where another left off: with a penalty that is an α, without one a β."""
    (q, n), p, kind = problem.y.shape, problem.X.shape[1], problem.y.dtype
    known = alpha0 is not None or (beta0 is not None and problem.alpha == 0)
    alpha = np.zeros((q, n), kind) if alpha0 is None else alpha0.astype(kind)
    start = np.zeros((q, p), kind) if beta0 is None or not known else beta0.astype(kind)
    kind_of = Joined if problem.X.together else Streamed
    return kind_of(problem, products(problem.X, way.pool), way.seed, way.jobs, np.arange(q), alpha, start)
