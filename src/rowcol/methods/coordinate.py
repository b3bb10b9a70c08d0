"""Randomized Kaczmarz and randomized coordinate descent: the same descent, by rows or by columns.

With alpha > 0 they are ridge regression by rows (13)-(15) = (27)-(29) and by columns (32)-(34). With alpha = 0, rows
reach the minimum-norm solution of a consistent system (4), columns a least-squares solution of any system (6).
"""

from __future__ import annotations

import math
import time
from concurrent.futures import Executor
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from ..core.certify import Evidence
from ..core.passes import Products
from ..core.problem import Problem
from ..core.products import of_view, times
from ..core.sampler import Sampler, Weave, sampler, take
from ..core.threads import spread
from ..core.view import State, View, beta, box, dual, image, known_diag, narrow, pack, packing_pays, pieces, unknowns
from ..core.view import state as state_of
from ..engine.lines import Dense, Woven, descend, norms, pulls, pushes, residuals
from .loop import Round
from .states import held, like, narrowed, pick_on, picks_so_far, put


@dataclass
class Coordinate:
    """Descent on picked lines: rows, columns, or both woven. A `Mover`."""

    problem: Problem
    view: View
    source: Sampler | Weave
    now: State
    by: Products
    jobs: int
    patience: float
    length: int  # steps of the next round
    stepping: View  # the view to descend by: packed, where that pays
    least: int = 1
    passes: float = 0.0
    first: dict[int, float] = field(default_factory=dict)
    shortened: bool = False  # the last round, by the limit of passes

    @property
    def needs_solution(self) -> bool:
        """Rows alone cannot fit what no β fits."""
        return self.view.side == "rows"

    @property
    def ids(self) -> np.ndarray:
        """The right-hand sides still moving."""
        return self.now.ids

    def advance(self, room: float, deadline: float) -> Round:
        """A round of picks: short rounds first, as a tall consistent system is solved before every row was seen."""
        longest, per_step = round_of(self.view, self.source), passes_of(self.view, self.source, 1)
        length = max(min(self.length, math.ceil(min(room / per_step, longest) - 1e-9)), 1)
        self.shortened = length < min(self.length, longest)
        if self.stepping is self.view and self.passes >= 2 and packing_pays(self.view):
            self.stepping, self.now = pack(self.view, self.now)
        runs, spent = [], 0
        for start, end in pieces(length, self.view.cost * self.ids.size):
            runs.append(self.spend(take(self.source, end - start)))
            spent += end - start
            if time.perf_counter() > deadline:
                break
        # summed along contiguous memory: the order does not depend on pieces or on the other right-hand sides
        tally = np.ascontiguousarray(np.concatenate(runs).transpose(1, 2, 0)).sum(axis=-1)
        values = estimate(self.problem, self.view, self.source, self.now, tally / spent)
        if self.view.side == "both":  # only the fall of the estimate means something there
            for i, value in zip(self.ids, values, strict=True):
                self.first.setdefault(int(i), float(value) or 1.0)
            values = values / np.array([self.first[int(i)] for i in self.ids])
        # in the first passes four rounds each, at most: whether it is worth going on is to be known soon
        self.length = min(longest if self.passes >= 1.5 else max(longest // 4, self.least), 2 * self.length)
        self.passes += spent * per_step
        return Round(spent * per_step, spent, tally[:, 0], values)

    def spend(self, picks: np.ndarray) -> np.ndarray:
        """Spend the picks on every right-hand side; threads share the right-hand sides, which changes no bit."""
        t, q, s = self.now.table, self.ids.size, self.now.s
        pool, lines = self.by.pool, self.stepping.lines

        def part(ends: tuple[int, int]) -> np.ndarray:
            a, b = ends
            b_x = t["b"][:, a:b], t["x"][:, a:b]
            return descend(lines, t["diag"], t["lam"], *b_x, s[a:b], picks, *box(self.now, a, b))

        if pool is None or q == 1:
            return part((0, q))
        known_diag(self.view, self.now)  # beforehand, so that threads only read it
        cuts = np.linspace(0, q, min(self.jobs, q) + 1).astype(int)
        return np.concatenate(list(spread(pool, part, list(pairwise(cuts)))), axis=1)

    def answers(self) -> tuple[np.ndarray, np.ndarray | None]:
        """β, and α where rows keep it."""
        return beta(self.view, self.now), dual(self.view, self.now)

    def learn(self, place: int, evidence: Evidence, k: int) -> None:
        """The carried image is replaced by the one just summed anew."""
        refresh(self.view, self.now.s, place, evidence, k)

    def keep(self, mask: np.ndarray) -> None:
        """Go on with some right-hand sides only."""
        self.now = narrow(self.now, mask)

    def column_norms(self) -> np.ndarray | None:
        """Those of the lines, where lines are columns."""
        return known_diag(self.view, self.now) if self.view.side == "cols" else None

    def state(self) -> dict[str, Any] | None:
        """x, s and the picks; norms of lines are found again, with the same bits."""
        first = [[i, value] for i, value in self.first.items()]
        told = held(self, "ids", "length", "passes") | {"first": first, "packed": self.stepping is not self.view}
        return told | {"x": unknowns(self.view, self.now), "s": self.now.s, "picks": picks_so_far(self.source)}

    def restore(self, told: dict[str, Any]) -> None:
        """Go on from there."""
        narrowed(self, told)
        put(self, told, "length", "passes")
        self.first = {int(i): float(value) for i, value in told["first"]}
        if told["packed"] and packing_pays(self.view):
            self.stepping, self.now = pack(self.view, self.now)
        m, s = self.view.b.shape[1], self.now.s
        self.now.table["x"][:m] = like(told["x"], (self.ids.size, m), s.dtype).T
        s[:] = like(told["s"], s.shape, s.dtype)
        pick_on(self.source, told["picks"])

    @property
    def copied(self) -> int:
        """Bytes of copies of X made so far."""
        return self.stepping.copied


def coordinate(
    problem: Problem, view: View, source: Sampler | Weave, now: State, pool: Executor | None, jobs: int
) -> Coordinate:
    """A mover that spends the picks of `source`."""
    n, p = problem.X.shape
    length = min(round_of(view, source), max(2 * min(n, p), 512))
    patience = passes_of(view, source, 32 * min(n, p) + 4 * length)
    by = of_view(problem.X, view, pool)
    return Coordinate(problem, view, source, now, by, jobs, patience, length, view, min(length, 4 * min(n, p)))


def picks(view: View, now: State, kind: object, seed: np.random.SeedSequence, weight: np.ndarray | None) -> Sampler:
    """The sampler of a one-sided view; `norms` picks in proportion to ‖a_i‖² + λ_i."""
    m = view.b.shape[1]
    chances = None
    if isinstance(kind, str) and kind == "norms":
        chances = np.ascontiguousarray(known_diag(view, now) + view.lam)
        if weight is not None and not view.lam.any():
            chances = chances * weight  # the rows of the weighted system
        if view.skip is not None:
            chances[view.skip] = 0.0
        if not np.isfinite(chances).all():
            chances = np.ones(m)  # the first steps will say what is wrong with X
    return sampler(kind, m, seed, chances)


def start_rows(problem: Problem, view: View, beta0: np.ndarray | None, alpha0: np.ndarray | None) -> State:
    """A row state from β0 and, where known, the α0 it came from."""
    if beta0 is None:
        return state_of(view)
    if alpha0 is not None:  # β = Xᴴα anew: of this X, and of the rows that count
        alpha0 = np.ascontiguousarray(alpha0 if view.skip is None else np.where(view.skip, 0.0, alpha0))
        return state_of(view, alpha0, image(view, alpha0))
    if problem.alpha == 0:
        return state_of(view, None, beta0)
    # Ridge by rows lives on β = Xᴴα. Without an α the best multiple of the residual of β0 is a start that is exact
    # if β0 is the solution, where α* = Wρ/alpha, and never worse than zero.
    w = np.ones(problem.X.shape[0]) if problem.weight is None else problem.weight
    rho = w * (problem.y - times(of_view(problem.X, view), beta0))
    back = image(view, rho)
    inverse = np.divide(1.0, w, out=np.zeros_like(w), where=w > 0)
    bottom = (np.abs(back) ** 2).sum(1) + problem.alpha * (np.abs(rho) ** 2 * inverse).sum(1)
    top = (problem.y * rho.conj()).sum(1)
    best = np.divide(top.conj(), bottom, out=np.zeros_like(top), where=bottom > 0)[:, None]
    return state_of(view, best * rho, best * back)


def start_cols(problem: Problem, view: View, beta0: np.ndarray | None) -> State:
    """A column state from β0: s = Xβ0 − y, kept conjugated."""
    if beta0 is None:
        return state_of(view)
    x = np.ascontiguousarray(beta0.conj())
    return state_of(view, x, view.s0 + image(view, x))


def passes_of(view: View, source: Sampler | Weave, steps: float) -> float:
    """How often `steps` steps touch all of X."""
    if not isinstance(source, Weave):
        return steps / view.b.shape[1]
    p, n = source.cols.m, source.rows.m
    return 2 * steps / (n + p) if source.sweep else steps / 2 * (1 / p + 1 / n)


def round_of(view: View, source: Sampler | Weave) -> int:
    """Steps in a full round: a pass over the lines; woven by sweep, one over the columns and one over the rows."""
    if not isinstance(source, Weave) or source.sweep:
        return view.b.shape[1]
    return max(round(1 / passes_of(view, source, 1)), 1)


def compile_for(view: View, now: State, kind: str) -> None:
    """Call what the loop will call, on no lines at all: compiling, once a machine, is not solving."""
    t, w, none = now.table, np.ones(1), np.empty(0, np.int64)
    norms(view.lines, 0, 0, w)
    descend(view.lines, t["diag"], t["lam"], t["b"], t["x"], now.s, none, *box(now, 0, now.ids.size))
    lines = view.lines.rows if isinstance(view.lines, Woven) else view.lines
    if packing_pays(view):
        few = view._replace(lines=Dense(view.lines.a[:2]), b=view.b[:, :2])  # type: ignore[union-attr]
        packed, then = pack(few, State(t[:2], now.s, now.ids))
        t = then.table
        descend(packed.lines, t["diag"], t["lam"], t["b"], t["x"], now.s, none, *box(then, 0, now.ids.size))
    take(sampler(kind, 1, np.random.SeedSequence(0), w), 1)
    square = np.zeros((1, 1), view.b.dtype)
    if view.side == "cols":
        pushes(lines, 0, 0, square, square)
        pulls(lines, 0, 0, square, square)
    else:
        residuals(lines, 0, 0, square, square, w, square, square, w)


def estimate(problem: Problem, view: View, source: Sampler | Weave, now: State, mean: np.ndarray) -> np.ndarray:
    """The certificates, from a round's mean gain and mean squared slope; on both sides, up to a factor."""
    gain, slope2 = mean.T
    if isinstance(source, Weave):
        return np.sqrt(gain)
    # Picks in proportion to d_i = ‖a_i‖² + λ_i meet |g_i|²/d_i with mean Σ|g_i|²/Σd_i; even picks, Σ|g_i|²/m.
    slopes2 = gain * source.total if source.kind == "norms" else slope2 * view.b.shape[1]
    return from_slopes(problem, view, now.ids, now.s, gain, slopes2)


def from_slopes(
    problem: Problem, view: View, ids: np.ndarray, s: np.ndarray, gain: np.ndarray, slopes2: np.ndarray
) -> np.ndarray:
    """The certificates, from Σ|g_i|² over all lines and the mean gain of a line."""
    y_norm = np.maximum(np.linalg.norm(problem.y[ids], axis=1), 1e-300)
    if view.side == "rows":
        return np.sqrt(slopes2) / y_norm
    if problem.alpha > 0:
        return np.sqrt(slopes2 / problem.alpha) / y_norm
    # Least squares: the steepest of the columns, taken as three times the mean, against what is left of y.
    left = np.maximum(np.linalg.norm(s, axis=1), 1e-300)
    return np.minimum(left / y_norm, 3.0 * np.sqrt(gain) / left)


def refresh(view: View, s: np.ndarray, place: int, evidence: Evidence, k: int) -> None:
    """Replace the carried image by the one an exact look summed anew."""
    if view.side == "cols":
        s[place] = -evidence.residual[k].conj()
    elif view.side == "rows" and evidence.image is not None:
        s[place] = evidence.image[k]
