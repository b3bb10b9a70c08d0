"""Conjugate gradients: by products (`cg`, `sketch`, a user's preconditioner) and by sweeps (`sgs-cg`).

Both solve the psd system of one side. Columns: (XᴴX + λ)β = Xᴴy. Rows:
(XXᴴ + λ)α = y, carrying β = Xᴴα. As β starts in the row space and every direction is in it, so is the answer, unless a
preconditioner leads out of it.

`Conjugate` takes XᴴXd in one pass over rows that are short or sparse, where lsqr takes two. The gradient comes from a
recurrence, so it drifts; every exact look replaces it, which is iterative refinement.

`Sweeps` is preconditioned by one sweep forward and one back of the same `descend` that rows and columns run on (Björck
and Elfving's symmetric Gauss-Seidel). A sweep moves x and its image s together, so the preconditioned gradient comes
with its image, and no product with X is needed beside the sweeps. γ is what the forward sweep gained: taken from the
gradient instead, the recurrence stalls near 1e-8.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..core.certify import Evidence
from ..core.passes import Products
from ..core.problem import Problem, ridge_of
from ..core.products import back, conormal, less_tilt, normal, times
from ..core.sums import stays, sums_there
from ..core.threads import spread
from ..core.view import State, View, known_diag, narrow, pieces, unknowns
from ..engine.lines import descend
from .coordinate import from_slopes, refresh
from .loop import Round
from .states import held, narrowed, optional, put

RUNAWAY = 1e8  # times the first estimate: hopeless

SWEPT = ("x", "gamma", "direction", "value", "strikes", "travel")
MOVING = (*SWEPT, "s", "g", "spent", "typical", "rho2", "indefinite")  # of Conjugate; SWEPT is of Sweeps, too
Precondition = Callable[[np.ndarray], np.ndarray]
Multiply = Callable[[np.ndarray], tuple[np.ndarray, float]]  # the product, and the passes it took


@dataclass
class Conjugate:
    """Conjugate gradients by products with X: a `Mover`."""

    problem: Problem
    by: Any  # Products, or a Gram
    side: str  # "rows", "cols" or "kernel"
    ids: np.ndarray
    x: np.ndarray  # (q, m) α or β
    s: np.ndarray | None  # (q, k) β, on the side of rows
    g: np.ndarray  # (q, m) the residual of the psd system
    precondition: Precondition | None
    multiply: list[Multiply] = field(default_factory=list)  # Kv: quick first, then as exact as looks are
    spent: float = 0.0  # passes taken to get ready, not yet told
    patience: float = 30.0
    aim: float = 0.5  # of tol, before a look: nearer to one where the recurrence knows the certificate itself
    column: np.ndarray | None = None  # ‖X_j‖, from the first look
    typical: float = 0.0  # their size before that, from the first step
    first: np.ndarray | None = None  # estimate
    gamma: np.ndarray = field(default_factory=lambda: np.empty(0))
    size: np.ndarray = field(default_factory=lambda: np.empty(0))  # ‖y‖
    rho2: np.ndarray = field(default_factory=lambda: np.empty(0))  # ‖ρ‖², on the side of columns
    direction: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    value: np.ndarray = field(default_factory=lambda: np.empty(0))  # (q,) certificates of the last look
    strikes: np.ndarray = field(default_factory=lambda: np.empty(0))  # looks that found no better
    indefinite: list[int] = field(default_factory=list)  # columns that met a direction of negative curvature
    root: np.ndarray | None = None  # √w, on the side of kernels: (n,), or (q, n)
    travel: np.ndarray = field(default_factory=lambda: np.empty(0))  # (all q,) the way x has come

    def __post_init__(self) -> None:
        q = self.ids.size
        self.travel = np.zeros(q)
        self.gamma, self.direction = np.full(q, np.inf), np.zeros_like(self.x)
        weight = self.problem.weight
        self.root = None if weight is None or self.side != "kernel" else np.sqrt(weight)
        if self.root is not None and self.root.ndim == 2:
            self.root = self.root[self.ids]
        y = self.problem.y[self.ids]
        self.size = np.maximum(np.linalg.norm(y if self.root is None else self.root * y, axis=1), 1e-300)
        self.value, self.strikes, self.rho2 = np.full(q, np.inf), np.zeros(q), np.full(q, np.inf)

    @property
    def needs_solution(self) -> bool:
        """By rows, nothing is reached that no β fits."""
        return self.side == "rows"

    @property
    def lam(self) -> Any:
        """λ, one a right-hand side, or one a point: only kernels come with weights, as others are scaled beforehand."""
        if self.root is None:
            return ridge_of(self.problem, self.ids)
        return np.divide(self.problem.alpha, self.root**2, out=np.zeros_like(self.root), where=self.root > 0)

    def advance(self, room: float, deadline: float) -> Round:
        """One step of conjugate gradients for every right-hand side."""
        lam = self.lam
        z = self.g if self.precondition is None else self.precondition(self.g)
        gamma = dot(self.g, z)
        self.direction = z + (gamma / self.gamma)[:, None] * self.direction
        if self.multiply:
            pulled, passes = self.multiply[0](self.direction)
        elif self.s is None:
            pulled, passes = normal(self.by, self.direction)
        else:
            moved, pulled, passes = conormal(self.by, self.direction)
        curvature = dot(self.direction, pulled) + dot(self.direction, lam * self.direction)
        going = (gamma > 0) & (curvature > 0)
        if self.multiply and bool(((curvature < 0) | (gamma < 0)).any()):
            return self._doubt(passes, (curvature < 0) | (gamma < 0))
        if self.typical == 0.0 and going.any():
            self.typical = float(np.sqrt(np.max(curvature[going] / dot(self.direction, self.direction)[going])))
        step = np.divide(gamma, curvature, out=np.zeros_like(gamma), where=going)[:, None]
        self.x += step * self.direction
        if self.s is not None:
            self.s += step * moved
            self.travel[self.ids] += np.abs(step[:, 0]) * np.linalg.norm(self.direction, axis=1)
        self.g -= step * (pulled + lam * self.direction)
        if self.root is not None:
            self.g *= self.root > 0  # points that do not count for a column
        self.gamma, self.rho2 = np.where(going, gamma, np.inf), self.rho2 - step[:, 0] * gamma
        passes, self.spent = passes + self.spent, 0.0
        estimate = self._estimate()
        self.first = estimate if self.first is None else self.first
        away = estimate > RUNAWAY * np.maximum(self.first, 1.0)  # by rows, where no β fits
        return Round(passes, 1, step[:, 0] * gamma, estimate, ~going | away | (self.strikes >= 2))

    def _doubt(self, passes: float, bad: np.ndarray) -> Round:
        """A direction of negative curvature: only if products are exact, and nothing preconditions, is K to blame."""
        none, stuck = np.zeros(self.ids.size), np.zeros(self.ids.size, bool)
        if len(self.multiply) > 1:
            self.multiply = self.multiply[1:]
        elif self.precondition is not None:
            self.precondition = None
        else:
            self.indefinite += [int(i) for i in self.ids[bad]]
            stuck = bad
        self.gamma[:] = np.inf
        return Round(passes, 1, none, np.where(stuck, 0.0, 1.0), stuck)

    def _estimate(self) -> np.ndarray:
        size = self.size
        if self.side != "cols":
            return np.linalg.norm(self.g if self.root is None else self.root * self.g, axis=1) / size
        if self.problem.alpha > 0:
            return np.linalg.norm(self.g, axis=1) / np.sqrt(np.ravel(self.lam)) / size
        # What the steps gained was taken off ‖ρ‖², until rounding is left of it: then ρ is in the range, near ‖g‖/‖X‖.
        left = np.sqrt(np.maximum(self.rho2, 1e-300))
        inside = np.linalg.norm(self.g, axis=1) / max(self.typical, 1e-300)
        left = np.where(self.rho2 < 1e-13 * size**2, np.maximum(inside, 1e-300), left)
        column = np.full(1, self.typical) if self.column is None else self.column
        steepest = np.abs(self.g / np.where(column > 0, column, np.inf)).max(axis=1)
        return np.minimum(left / size, steepest / left)

    def answers(self) -> tuple[np.ndarray, np.ndarray | None]:
        """β, and α on the side of rows."""
        return (self.x, None) if self.s is None else (self.s, self.x)

    def expected(self) -> np.ndarray | None:
        """ρ, on the side of rows, as the recurrence has it."""
        return self.g + self.lam * self.x if self.side == "rows" else None

    def learn(self, place: int, evidence: Evidence, k: int) -> None:
        """Replace what drifted; begin anew where it had drifted far."""
        lam = self.lam
        if self.side != "cols":
            true = evidence.residual[k] - (lam if np.ndim(lam) < 2 else lam[place]) * self.x[place]
            if self.root is not None and self.root.ndim == 2:
                true = true * (self.root[place] > 0)
            if self.s is not None and evidence.image is not None:
                self.s[place] = evidence.image[k]
        else:
            true = evidence.slope[k] - (lam if np.ndim(lam) < 2 else lam[place]) * self.x[place]
            self.rho2[place] = evidence.left[k] ** 2
        if np.linalg.norm(true - self.g[place]) > 0.1 * np.linalg.norm(true):
            self.gamma[place] = np.inf
        self.g[place] = true
        self.column = np.sqrt(evidence.column2)
        value = evidence.certificates[k].value
        self.strikes[place] = 0 if value < 0.7 * self.value[place] else self.strikes[place] + 1
        if self.strikes[place] and len(self.multiply) > 1:  # what the quick product cannot see, the exact one can
            self.multiply = self.multiply[1:]
            self.strikes[:], self.gamma[:] = 0, np.inf
        self.value[place] = min(value, self.value[place])

    def keep(self, mask: np.ndarray) -> None:
        """Go on with some right-hand sides only."""
        for name in ("ids", "x", "g", "gamma", "size", "rho2", "direction", "value", "strikes"):
            setattr(self, name, getattr(self, name)[mask])
        self.s = None if self.s is None else self.s[mask]
        self.first = None if self.first is None else self.first[mask]
        if self.root is not None and self.root.ndim == 2:
            self.root = self.root[mask]
        some = getattr(self.precondition, "some", None)
        self.precondition = self.precondition if some is None else some(mask)

    def column_norms(self) -> np.ndarray | None:
        """Those of the first look are kept by the loop."""
        return None

    def state(self) -> dict[str, Any] | None:
        """The recurrence; what it is preconditioned by is made anew."""
        doubted = {"plain": self.precondition is None, "products": len(self.multiply)}
        return held(self, "ids", "column", "first", *MOVING) | doubted

    def restore(self, told: dict[str, Any]) -> None:
        """Go on from there."""
        narrowed(self, told)
        put(self, told, *MOVING)
        for name, size in (("column", self.by.shape[1]), ("first", len(self.x))):
            setattr(self, name, optional(told[name], (size,)))
        self.precondition = None if told["plain"] else self.precondition
        self.multiply = self.multiply[len(self.multiply) - told["products"] :]


class Seen(NamedTuple):
    """What the last look saw at a warm start."""

    slope: np.ndarray  # (q, p) XᴴWρ
    rho2: np.ndarray  # (q,) ‖W^½ρ‖²


def conjugate(
    problem: Problem,
    by: Products,
    side: str,
    beta0: np.ndarray | None,
    alpha0: np.ndarray | None,
    precondition: Precondition | None = None,
    seen: Seen | None = None,
) -> Conjugate:
    """A mover from a start, of which the last look may have `seen` something."""
    (q, n), p = problem.y.shape, problem.X.shape[1]
    kind, y, ids = problem.y.dtype, problem.y, np.arange(q)
    lam = ridge_of(problem, ids)
    beta = np.zeros((q, p), kind) if beta0 is None else beta0.copy()
    if side == "rows":
        alpha = np.zeros((q, n), kind) if alpha0 is None else alpha0.copy()
        g = y.copy() if beta0 is None else y - times(by, beta) - lam * alpha
        return Conjugate(problem, by, side, ids, alpha, beta, g, precondition)
    if seen is None and beta0 is not None and stays(by):
        found = sums_there(by, y, ids, beta, None, None, np.zeros(q), False)
        slope = found.slope if found.tilt is None else less_tilt(by, found.tilt, found.slope)
        assert found.lengths is not None
        seen = Seen(slope, found.lengths.rho**2)
    if seen is None:
        rho = y if beta0 is None else y - times(by, beta)
        seen = Seen(back(by, rho), np.linalg.norm(rho, axis=1) ** 2)
    made = Conjugate(problem, by, side, ids, beta, None, seen.slope - lam * beta, precondition)
    made.rho2 = seen.rho2
    return made


@dataclass
class Sweeps:
    """Conjugate gradients preconditioned by a sweep forward and a sweep back: a `Mover`."""

    problem: Problem
    view: View
    now: State  # the table the sweeps work on
    by: Products
    order: np.ndarray  # of the lines, the same for every sweep
    x: np.ndarray  # (q, m)
    s: np.ndarray  # (q, k)
    jobs: int = 1
    patience: float = 30.0
    gamma: np.ndarray = field(default_factory=lambda: np.empty(0))
    direction: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    moved: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    blur: np.ndarray = field(default_factory=lambda: np.empty(0))  # (q,) what `moved` has been rounded at the size of
    drift: np.ndarray = field(default_factory=lambda: np.empty(0))  # (q,) what s may have come away from x by that
    value: np.ndarray = field(default_factory=lambda: np.empty(0))
    strikes: np.ndarray = field(default_factory=lambda: np.empty(0))
    travel: np.ndarray = field(default_factory=lambda: np.empty(0))  # (all q,) the way x has come

    def __post_init__(self) -> None:
        q = self.ids.size
        self.travel, self.drift = np.zeros(q), np.zeros(q)
        self.gamma, self.value, self.strikes = np.full(q, np.inf), np.full(q, np.inf), np.zeros(q)
        self.direction, self.moved, self.blur = np.zeros_like(self.x), np.zeros_like(self.s), np.zeros(q)
        self.height = max(float(np.sqrt(np.sum(known_diag(self.view, self.now)))), 1e-300)  # ‖X‖, in the Frobenius norm

    @property
    def needs_solution(self) -> bool:
        """Rows alone cannot fit what no β fits."""
        return self.view.side == "rows"

    @property
    def ids(self) -> np.ndarray:
        """The right-hand sides still moving."""
        return self.now.ids

    def advance(self, room: float, deadline: float) -> Round:
        """A sweep forward, a sweep back, a step along what they make of it."""
        m, q = self.view.b.shape[1], self.ids.size
        self.now.table["x"][:m] = self.x.T
        s = self.now.s
        s[:] = self.s
        gamma, slopes2 = self._sweep(self.order).T
        self._sweep(self.order[-2::-1])
        nudge = unknowns(self.view, self.now)
        nudge -= self.x
        s -= self.s
        turn = (gamma / self.gamma)[:, None]
        self.direction *= turn
        self.direction += nudge
        self.moved *= turn
        self.moved += s  # a difference of long vectors, which a long step scales up
        self.blur = np.abs(turn[:, 0]) * self.blur + np.linalg.norm(self.s, axis=1)
        curvature = dot(self.moved, self.moved) + (self.view.lam * np.abs(self.direction) ** 2).sum(axis=1)
        going = (gamma > 0) & (curvature > 0)
        step = np.divide(gamma, curvature, out=np.zeros(q), where=going)[:, None]
        self.x += step * self.direction
        self.s += step * self.moved
        way = np.linalg.norm(self.direction, axis=1) + self.blur / self.height
        self.travel[self.ids] += np.abs(step[:, 0]) * way
        self.drift += np.abs(step[:, 0]) * self.blur * np.finfo(float).eps
        self.gamma = np.where(going, gamma, np.inf)
        estimates = from_slopes(self.problem, self.view, self.ids, self.s, gamma / m, slopes2)
        return Round(2.0, 2 * m - 1, step[:, 0] * gamma, estimates, ~going | (self.strikes >= 2))

    def _sweep(self, order: np.ndarray) -> np.ndarray:
        t, s, q = self.now.table, self.now.s, self.ids.size
        pool, lines = self.by.pool, self.view.lines

        def part(ends: tuple[int, int]) -> np.ndarray:
            a, b = ends
            total = np.zeros((b - a, 2))
            for start, end in pieces(order.size, self.view.cost * (b - a)):
                picks = np.ascontiguousarray(order[start:end])
                t_b, t_x = t["b"][:, a:b], t["x"][:, a:b]
                total += descend(lines, t["diag"], t["lam"], t_b, t_x, s[a:b], picks).sum(axis=0)
            return total

        if pool is None or q == 1:
            return part((0, q))
        cuts = np.linspace(0, q, min(self.jobs, q) + 1).astype(int)
        return np.concatenate(list(spread(pool, part, list(pairwise(cuts)))))

    def answers(self) -> tuple[np.ndarray, np.ndarray | None]:
        """β, and α where rows keep it.

        β is summed anew where it may have come away from Xᴴα a little. By much it does so where X is all but singular:
        there it solves what Xᴴα no longer does, and `travel` tells that it is not the shortest.
        """
        if self.view.side != "rows":
            return self.x.conj(), None
        size = np.linalg.norm(self.s, axis=1)
        away = (self.drift > 1e-14 * size) & (self.drift < 1e-7 * size)
        s = self.s.copy() if away.any() else self.s  # who asks for an answer changes nothing
        if away.any():
            s[away] = back(self.by, np.ascontiguousarray(self.x[away]))
        return s, self.x

    def learn(self, place: int, evidence: Evidence, k: int) -> None:
        """The carried image is replaced by the one just summed anew; where that does not help, begin anew."""
        refresh(self.view, self.s, place, evidence, k)
        value = evidence.certificates[k].value
        worse = not value < 0.7 * self.value[place]
        self.strikes[place] = self.strikes[place] + 1 if worse else 0
        if worse:
            self.gamma[place] = np.inf
        self.value[place] = min(value, self.value[place])

    def keep(self, mask: np.ndarray) -> None:
        """Go on with some right-hand sides only."""
        self.now = narrow(self.now, mask)
        for name in ("x", "s", "gamma", "direction", "moved", "blur", "drift", "value", "strikes"):
            setattr(self, name, getattr(self, name)[mask])

    def column_norms(self) -> np.ndarray | None:
        """Those of the lines, where lines are columns."""
        return known_diag(self.view, self.now) if self.view.side == "cols" else None

    def state(self) -> dict[str, Any] | None:
        """The recurrence: sweeps begin from it."""
        return held(self, "ids", "s", "moved", "blur", "drift", *SWEPT)

    def restore(self, told: dict[str, Any]) -> None:
        """Go on from there."""
        narrowed(self, told)
        put(self, told, "s", "moved", "blur", "drift", *SWEPT)


def sweeps(problem: Problem, view: View, now: State, by: Products, order: np.ndarray, jobs: int) -> Sweeps:
    """A mover from the state of rows or of columns."""
    return Sweeps(problem, view, now, by, order, unknowns(view, now), now.s.copy(), jobs)


def dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """⟨a_q, b_q⟩ of every right-hand side."""
    return np.einsum("qi,qi->q", a.conj(), b).real
