"""Block projection with momentum: many rows (or columns) at once, for spectra with a few large values and a flat tail.

A step solves the small system of its block exactly, (B_τ B_τᴴ + Λ_τ) d = g_τ, which removes what the block can see of
the large directions at once; single lines meet them again and again. Momentum (Dereziński, Needell, Rebrova and Yang's
Kaczmarz++) then shortens the way over the flat tail. Four random partitions of the lines are
factored once and used in turn: neighbouring lines, which need no gathering, were alike too often
(the error fell by 0.9 a sweep, not 0.5).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp

from ..core.certify import Evidence
from ..core.passes import Products
from ..core.problem import Problem
from ..core.view import View
from ..engine.lines import Dense
from .coordinate import from_slopes, refresh
from .loop import Round
from .states import held, narrowed, put

PARTITIONS = 4
LINES = 512  # in a block, unless there are few
TINY = 1e-10  # of the largest entry of a block's diagonal, added to it: lines may be dependent

MOVING = ("x", "s", "drift_x", "drift_s", "rho", "turn", "gained")


@dataclass
class Blocks:
    """Sweeps over blocks of lines: a `Mover`."""

    problem: Problem
    view: View
    by: Products
    ids: np.ndarray
    x: np.ndarray  # (q, m)
    s: np.ndarray  # (q, k)
    cuts: list[list[np.ndarray]]  # the partitions
    patience: float = 30.0
    rho: float = 0.0  # how much of the error a step is taken to remove
    turn: int = 0
    gained: float = np.inf  # by the last sweep
    memo: dict[tuple[int, int], np.ndarray] = field(default_factory=dict)
    sparse: Any = None  # the lines as a CSR array, where they are sparse
    drift_x: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    drift_s: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))

    def __post_init__(self) -> None:
        self.drift_x, self.drift_s = np.zeros_like(self.x), np.zeros_like(self.s)
        self.rho = 0.3

    @property
    def needs_solution(self) -> bool:
        """Rows alone cannot fit what no β fits."""
        return self.view.side == "rows"

    def advance(self, room: float, deadline: float) -> Round:
        """One sweep over the blocks of one partition."""
        partition = self.cuts[self.turn % PARTITIONS]
        gain, slopes2 = np.zeros(self.ids.size), np.zeros(self.ids.size)
        share, keep = 1.0 / len(partition), (1.0 - self.rho) / (1.0 + self.rho)
        for k, lines_of in enumerate(partition):
            lines, lam = self._lines(lines_of), self.view.lam[lines_of]
            g = self.view.b[np.ix_(self.ids, lines_of)] - (lines @ self.s.T).T - lam * self.x[:, lines_of]
            factor = self._factor((self.turn % PARTITIONS, k), lines, lam)
            step = sl.cho_solve((factor, False), g.T, check_finite=False).T
            gain += np.einsum("qi,qi->q", g.conj(), step).real
            slopes2 += (np.abs(g) ** 2).sum(axis=1)
            pushed = (lines.conj().T @ step.T).T
            self.drift_x *= keep
            self.drift_x[:, lines_of] += keep * step
            self.drift_s = keep * (self.drift_s + pushed)
            self.x[:, lines_of] += step
            self.x += share * self.drift_x
            self.s += pushed + share * self.drift_s
        self.turn += 1
        self._adapt(float(gain.sum()), len(partition))
        m = self.view.b.shape[1]
        estimates = from_slopes(self.problem, self.view, self.ids, self.s, gain / m, slopes2)
        return Round(2.0, self.view.b.shape[1], gain, estimates)

    def _adapt(self, gained: float, steps: int) -> None:
        """The pace of the last sweep is the momentum of the next; where things got worse, it begins anew."""
        fall = gained / self.gained if self.gained > 0 else 0.0
        if fall > 1.0:
            self.drift_x[:], self.drift_s[:] = 0.0, 0.0
            self.rho = min(2 * self.rho, 0.5)
        elif fall > 0.0:
            # twice the pace: less than the pace, and momentum overshoots (0.1 for 0.3 cost twice the sweeps)
            self.rho = 0.5 * self.rho + 0.5 * min(max(2.0 * (1.0 - fall ** (1.0 / steps)), 1e-3), 0.5)
        self.gained = gained

    def _lines(self, which: np.ndarray) -> Any:
        lines = self.view.lines
        if isinstance(lines, Dense):
            return lines.a[which]
        if self.sparse is None:
            parts = (lines.data, lines.indices, lines.indptr)  # type: ignore[union-attr]
            self.sparse = sp.csr_array(parts, shape=(self.x.shape[1], self.s.shape[1]))
        return self.sparse[which]

    def _factor(self, key: tuple[int, int], lines: Any, lam: np.ndarray) -> np.ndarray:
        if key not in self.memo:
            a = lines.astype(self.x.dtype, copy=False)
            G = a @ a.conj().T
            G = np.array(G.toarray() if sp.issparse(G) else G)
            diagonal = np.real(np.diagonal(G)) + lam
            G.flat[:: len(G) + 1] += lam + np.where(diagonal > 0, 0.0, 1.0)
            tiny = TINY * max(float(diagonal.max()), 1e-300)
            for _ in range(12):  # dependent lines: as much as it takes
                G.flat[:: len(G) + 1] += tiny
                try:
                    self.memo[key] = sl.cholesky(G, check_finite=False)
                    break
                except sl.LinAlgError:
                    tiny *= 10
        return self.memo[key]

    def answers(self) -> tuple[np.ndarray, np.ndarray | None]:
        """β, and α where rows keep it."""
        return (self.s, self.x) if self.view.side == "rows" else (self.x.conj(), None)

    def learn(self, place: int, evidence: Evidence, k: int) -> None:
        """The carried image is replaced by the one just summed anew."""
        refresh(self.view, self.s, place, evidence, k)

    def keep(self, mask: np.ndarray) -> None:
        """Go on with some right-hand sides only."""
        for name in ("ids", "x", "s", "drift_x", "drift_s"):
            setattr(self, name, getattr(self, name)[mask])

    def column_norms(self) -> np.ndarray | None:
        """Not kept."""
        return None

    def state(self) -> dict[str, Any] | None:
        """x, s and the momentum; the blocks are factored anew."""
        return held(self, "ids", *MOVING)

    def restore(self, told: dict[str, Any]) -> None:
        """Go on from there."""
        narrowed(self, told)
        put(self, told, *MOVING)


def block_length(m: int, k: int) -> int:
    """Lines in a block: enough for the large directions, few enough for four partitions to be factored."""
    return max(min(LINES, m // 4, k), 1)


def blocks(
    problem: Problem, view: View, by: Products, x: np.ndarray, s: np.ndarray, seed: np.random.SeedSequence
) -> Blocks:
    """A mover from the unknowns and image of rows or of columns."""
    m, k = view.b.shape[1], view.s0.shape[1]
    length, draw = block_length(m, k), np.random.default_rng(seed)
    pieces = -(-m // length)
    cuts = [np.array_split(draw.permutation(m), pieces) for _ in range(PARTITIONS)]
    return Blocks(problem, view, by, np.arange(len(x)), x, s, cuts)
