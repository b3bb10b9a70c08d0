"""Rows on the workers of a cluster, all parts at once: minimum norm and ridge by rows (27)-(29), by many hands.

Every part is walked from the same β, and the best combination of all their moves and of those of the two rounds before
is taken. The objective is a quadratic of as many numbers, known without touching X, so it never rises; where parts do
not know of each other (as their rows are orthogonal), that is plain descent, and where they are all alike, their mean.

α and what it moved by stay with the parts, each beside its own rows (`Keeping`). What comes here of a part is its move
of β and a few sums over its rows; the combination travels with the next round. So α of a part is made of its start, of
the β of every round, the seeds and the combinations: all short, kept here, and enough to make it again, to the same
bits, where a worker was lost. Once that is as long as α and its moves, these come here, and it is forgotten: p numbers
a round either way.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from ..core.certify import Evidence
from ..core.passes import Products
from ..core.problem import Problem
from ..core.products import products
from ..places.keeping import Keeping
from .bounded import MOVES, best_combination
from .loop import Round
from .states import held, like, narrowed, put
from .streamed import bare_of, beta_from
from .streamed import walked as walk
from .way import Way

SPAN = 8  # rounds, at least, before α comes here: where rows are few, more often would be every round


class Combined(NamedTuple):
    """The end of a round: which combination of its moves, and of those before, is taken."""

    walk: int
    beta: np.ndarray | None  # (q, p) where it began; None for those who remember their move
    seed: int
    best: np.ndarray  # (q, parts + MOVES)


class Move(NamedTuple):
    """What is known of a part's move, of each right-hand side."""

    tally: np.ndarray  # (q, 2) what it gained, and how steep it was
    beta: np.ndarray  # (q, p) what β moved by
    own: np.ndarray  # (q,) ‖d‖² in the norm of Λ, of what α moved by
    across: np.ndarray  # (MOVES, q) ⟨d, a move before⟩
    among: np.ndarray  # (MOVES, MOVES, q) of these with each other


@dataclass
class Rows:
    """The rows of a part: their α, and what it moved by in the rounds before. None of it is changed in place."""

    k: int
    bare: Problem
    y: np.ndarray  # (q, rows)
    weight: np.ndarray | None
    alpha: np.ndarray  # (q, rows)
    moves: list[np.ndarray]  # MOVES of (q, rows)
    ahead: tuple[int, np.ndarray, Move] | None = None  # of the last walk: its number, what α would move by


class Afar:
    """α of some right-hand sides, which stays with the parts; as an array it comes here."""

    def __init__(self, kept: Keeping, which: np.ndarray, dtype: np.dtype) -> None:
        self.kept, self.which, self.dtype = kept, which, dtype

    def __getitem__(self, which: np.ndarray) -> Afar:
        return Afar(self.kept, self.which[which], self.dtype)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        found = np.concatenate(self.kept.map(_alpha, (self.which,)), axis=1)
        return found if dtype is None else found.astype(dtype, copy=False)

    def map(self, f: Any, shared: tuple) -> list[Any]:
        """f(part, pool, *shared, y, weights, α) of every part, where they are."""
        return self.kept.map(_beside, (self.which, f, *shared))


@dataclass
class Joined:
    """Randomized Kaczmarz by all parts at once, and the best combination of their moves. A `Mover`."""

    problem: Problem
    by: Products
    seed: np.random.SeedSequence
    ids: np.ndarray
    beta: np.ndarray  # (q, p)
    kept: Keeping
    moved: np.ndarray = field(init=False)  # (MOVES, q, p) what β moved by in the rounds before
    size: np.ndarray = field(init=False)  # (q,) ‖y‖
    patience: float = 8.0
    passes: int = 0
    needs_solution: bool = True

    def __post_init__(self) -> None:
        self.moved = np.zeros((MOVES, *self.beta.shape), self.beta.dtype)
        self.size = np.maximum(np.linalg.norm(self.problem.y, axis=1), 1e-300)

    def advance(self, room: float, deadline: float) -> Round:
        """A pass over all parts at once, and the best combination."""
        # one order for parts of the same length: they do not see each other
        seed = int(np.random.default_rng([*self.seed.generate_state(4), self.passes]).integers(2**63))
        found: list[Move] = self.kept.map(walked, (self.passes, self.beta, seed))
        gain = self._combine(found, seed)
        self.passes += 1
        steep = np.sum([one.tally[:, 1] for one in found], axis=0)
        return Round(1.0, self.by.shape[0], gain, np.sqrt(steep) / self.size)

    def _combine(self, found: list[Move], seed: int) -> np.ndarray:
        """Take the best combination of the moves: twice what is gained."""
        many, before = len(found), slice(len(found), None)
        D = np.concatenate([[one.beta for one in found], self.moved])
        gram = np.real(np.einsum("aqi,bqi->qab", D.conj(), D))
        gram[:, range(many), range(many)] += np.array([one.own for one in found]).T
        across = np.array([one.across for one in found]).transpose(2, 0, 1)
        gram[:, :many, before] += across
        gram[:, before, :many] += across.transpose(0, 2, 1)
        gram[:, before, before] += np.sum([one.among for one in found], axis=0).transpose(2, 0, 1)
        # From what a part gained by itself: ⟨D, β⟩ − ⟨d, y⟩ would be rounded as β and y are. Along the moves before it
        # is level, as they were among those combined.
        slope = np.zeros(gram.shape[:2])
        slope[:, :many] = -0.5 * (np.array([one.tally[:, 0] for one in found]).T + gram[:, range(many), range(many)])
        if not (np.isfinite(gram).all() and np.isfinite(slope).all()):
            return np.full(len(gram), np.nan)  # the loop finds out why
        best = best_combination(gram, slope)
        gain = -2 * np.einsum("qa,qa->q", best, slope) - np.einsum("qa,qab,qb->q", best, gram, best)
        best[~(gain > 0)] = 0.0
        whole = Combined(self.passes, self.beta, seed, best)
        self.kept.tell(whole, whole._replace(beta=None))
        ahead = np.einsum("qa,aqi->qi", best, D)
        self.beta = self.beta + ahead
        self.moved = np.concatenate([ahead[None], self.moved[:-1]])
        all_here = (1 + MOVES) * self.beta.itemsize * self.ids.size * self.by.shape[0]
        if len(self.kept.changes) >= SPAN and self.kept.spent > all_here:
            self._here()
        return np.maximum(gain, 0.0)

    def answers(self) -> tuple[np.ndarray, Any]:
        """β, and α, which is not here."""
        return self.beta, Afar(self.kept, np.arange(self.ids.size), self.beta.dtype)

    def learn(self, place: int, evidence: Evidence, k: int) -> None:
        """β is replaced by Xᴴα as it was summed anew."""
        if evidence.image is not None:
            self.beta[place] = evidence.image[k]

    def keep(self, mask: np.ndarray) -> None:
        """Go on with some right-hand sides only."""
        self.ids, self.beta, self.size = self.ids[mask], self.beta[mask], self.size[mask]
        self.moved = self.moved[:, mask]
        self.kept.tell(mask)

    def column_norms(self) -> np.ndarray | None:
        """Not known: lines are rows."""
        return None

    def state(self) -> dict[str, Any] | None:
        """α, β, what they moved by, and how many passes: each has its own order, which comes from the seed."""
        alpha, *moves = self._here()
        return held(self, "ids", "beta", "passes", "moved") | {"alpha": alpha, "moves": np.array(moves)}

    def restore(self, told: dict[str, Any]) -> None:
        """Go on from there."""
        narrowed(self, told)
        put(self, told, "beta", "passes", "moved")
        shape, kind = (self.ids.size, self.by.shape[0]), self.beta.dtype
        self._begin(like(told["alpha"], shape, kind), like(told["moves"], (MOVES, *shape), kind))

    def _begin(self, alpha: np.ndarray | None, moves: np.ndarray | None) -> None:
        """All parts begin from there, or from zero."""
        self.kept.begin(*_start(self.problem, self.ids, alpha, moves))

    def _here(self) -> np.ndarray:
        """(1 + MOVES, q, n) α and what it moved by, brought here."""
        found = np.concatenate(self.kept.map(_all), axis=2)
        self.kept.here(*_start(self.problem, self.ids, found[0], found[1:]))
        return found


def joined(way: Way, problem: Problem, beta0: np.ndarray | None, alpha0: np.ndarray | None) -> Joined:
    """From zero, or from where another left off: with a penalty that is an α, without one a β."""
    by, ids = products(problem.X, way.pool), np.arange(len(problem.y))
    kept = Keeping(problem.X, begun, changed)
    made = Joined(problem, by, way.seed, ids, beta_from(problem, beta0, alpha0), kept)
    made._begin(None if alpha0 is None else alpha0.astype(problem.y.dtype), None)
    return made


def _start(problem: Problem, ids: np.ndarray, alpha: Any, moves: Any) -> tuple[tuple, tuple]:
    """What all parts are given of a start, and what each has of its own: y as it was sent before, if it was."""
    return (bare_of(problem, ids), ids), (problem.y, problem.weight, alpha, moves)


# --- beside a part ---------------------------------------------------------------------------------------------------


def begun(part: Any, k: int, bare: Problem, ids: np.ndarray, y: Any, weight: Any, alpha: Any, moves: Any) -> Rows:
    """The rows of a part, at the beginning."""
    y = y if np.array_equal(ids, np.arange(len(y))) else y[ids]
    alpha = np.zeros(y.shape, y.dtype) if alpha is None else alpha
    moves = np.zeros((MOVES, *y.shape), y.dtype) if moves is None else moves
    return Rows(k, bare, np.ascontiguousarray(y), weight, alpha, list(moves))


def changed(part: Any, rows: Rows, change: Combined | np.ndarray) -> Rows | None:
    """After a combination, or with some right-hand sides only; None if the move is not known, nor how it was made."""
    if not isinstance(change, Combined):
        some = bare_of(rows.bare._replace(y=rows.y), np.flatnonzero(change))
        alpha, moves = rows.alpha[change], [one[change] for one in rows.moves]
        return replace(rows, bare=some, y=rows.y[change], alpha=alpha, moves=moves, ahead=None)
    if rows.ahead is None or rows.ahead[0] != change.walk:
        if change.beta is None:
            return None
        walked(part, None, change.walk, change.beta, change.seed, rows)
        assert rows.ahead is not None
    best = change.best[:, :, None]
    onward = best[:, rows.k] * rows.ahead[1]
    for i, move in enumerate(rows.moves):
        onward += best[:, i - MOVES] * move
    return replace(rows, alpha=rows.alpha + onward, moves=[onward, *rows.moves[:-1]], ahead=None)


def walked(part: Any, pool: Any, number: int, beta: np.ndarray, seed: int, rows: Rows) -> Move:
    """Every row of a part once, from β; asked again, it is the same move."""
    if rows.ahead is None or rows.ahead[0] != number:
        tally, alpha, after = walk(part, pool, rows.bare, beta, seed, 1, rows.y, rows.weight, rows.alpha)
        d, w = alpha - rows.alpha, rows.weight
        lam = np.array(rows.bare.alpha)
        lam = lam if w is None else np.divide(lam, w, out=np.zeros_like(w), where=w > 0)
        across = np.array([_dot(d, one, lam) for one in rows.moves])
        among = np.array([[_dot(a, b, lam) for b in rows.moves] for a in rows.moves])
        rows.ahead = number, d, Move(tally, after - beta, _dot(d, d, lam), across, among)
    return rows.ahead[2]


def _dot(a: np.ndarray, b: np.ndarray, lam: np.ndarray) -> np.ndarray:
    """Re⟨a, Λb⟩ of every right-hand side. Not by BLAS, whose sums may depend on its threads."""
    if not lam.any():  # nothing, however far α has gone, as it does where no β fits
        return np.zeros(len(a))
    if lam.ndim:
        return np.einsum("qi,qi,i->q", a.conj(), b, lam).real
    return float(lam) * np.einsum("qi,qi->q", a.conj(), b).real


def _alpha(part: Any, pool: Any, which: np.ndarray, rows: Rows) -> np.ndarray:
    return rows.alpha[which]


def _all(part: Any, pool: Any, rows: Rows) -> np.ndarray:
    return np.stack([rows.alpha, *rows.moves])


def _beside(part: Any, pool: Any, which: np.ndarray, f: Any, *rest: Any) -> Any:
    *shared, rows = rest
    return f(part, pool, *shared, rows.y[which], rows.weight, rows.alpha[which])
