"""`direct` and `subset`: solve by a factor, look, refine by what the look found."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..core.certify import Evidence
from ..core.passes import Products
from ..core.place import Place
from ..core.problem import Problem, ridge_of
from ..core.products import back, lowered
from .factor import (
    SMALL,
    Factor,
    from_blocks,
    from_gram,
    gram,
    gram_and_slope,
    less_mean,
    quick_gram,
    small_means,
    spectrum,
)
from .gathered import Gathered, gathered
from .loop import Round
from .probe import Probe


@dataclass
class Direct:
    """Solve, look, refine: a `Mover`. With a `Probe`, on its rows only."""

    problem: Problem
    by: Products
    ids: np.ndarray
    beta: np.ndarray
    alpha: np.ndarray | None  # of wide X
    factor: Factor | None = None
    probe: Probe | None = None
    started: bool = False
    slope: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))  # what the next correction removes
    last: np.ndarray = field(default_factory=lambda: np.empty(0))  # (q,) certificates of the look before
    value: np.ndarray = field(default_factory=lambda: np.empty(0))  # and of the last look
    patience: float = np.inf
    columns: np.ndarray | None = None  # ‖X_j‖², from the Gram matrix
    loose: float = 0.0  # the tolerance, where a factor that is just good enough for it will do
    gathered: Gathered | None = None  # sums over an X that lies elsewhere, where they came by the way
    rough: bool = False  # is the factor of such sums in single precision?

    def __post_init__(self) -> None:
        self.value, self.last = np.full(self.ids.size, np.inf), np.full(self.ids.size, np.inf)  # never one array
        self.slope = np.zeros((self.ids.size, min(self.by.shape)), self.beta.dtype)

    @property
    def needs_solution(self) -> bool:
        """A sample of rows says nothing of what no β fits."""
        return self.probe is not None

    @property
    def wide(self) -> bool:
        """Is the small Gram matrix that of the rows?"""
        return self.by.shape[0] < self.by.shape[1]

    def advance(self, room: float, deadline: float) -> Round:
        """Solve at first; then refine by what the look found; then, if that does not help, factor more safely."""
        q = self.ids.size
        stuck, passes = np.zeros(q, bool), 0.0
        if not self.started:
            passes, self.started = self._solve(safely=False), True
        else:
            stuck = ~(self.value < 0.5 * self.last)
            self.last, self.value = self.value, np.full(q, np.inf)
            if not stuck.all():
                passes = self._correct()
            elif self.probe is None and self.factor is not None and self.factor.kind not in ("qr", "svd"):
                # in double precision, where it was not; or else by QR
                safely, self.rough, self.loose, self.factor = not self.rough, False, 0.0, None
                passes, stuck = self._solve(safely), np.zeros(q, bool)
                self.last = np.full(q, np.inf)
        self.slope = np.zeros((q, min(self.by.shape)), self.beta.dtype)
        return Round(passes, 1, np.zeros(q), np.zeros(q), stuck)

    def _solve(self, safely: bool) -> float:
        problem, X, y = self.problem, self.problem.X, self.problem.y
        y = y if len(y) == self.ids.size else y[self.ids]
        n, p = X.shape
        if self.probe is not None:
            self.factor, self.beta = self.probe.factor, self.probe.beta[self.ids].copy()
            return float(len(self.probe.rows)) / n
        small, passes, shift, slope = is_small(X), 0.0, problem.shift, None
        if safely:
            self.factor = None
        if self.factor is None and problem.each is not None:
            self.factor, norms = spectrum(X, y.dtype, self.wide, shift, safely)
            self.columns, passes = None if self.wide else norms, 2.0 if safely else 1.0
        # with an intercept, as many rows as unknowns are one too few: QR knows the rank
        safely = safely or (shift is not None and problem.alpha == 0 and n <= p + 1)
        if self.factor is None and not (safely or small):
            slope, passes = self._by_gram(X, y)
        if self.factor is None:
            self.factor, self.beta = from_blocks(X, y, problem.alpha, y.dtype, self.wide, small, shift)
            passes += 2.0
            if not self.wide:
                self.factor.polish(self.by)
                self.beta = self.factor.inside(self.beta)
                return passes
        # from zero: what is there is the solution's right-hand side
        first = y if self.wide else back(self.by, y) if slope is None else slope
        self.slope, self.beta = first, np.zeros((len(y), p), y.dtype)
        self.alpha = np.zeros_like(y) if self.wide else None
        return passes + float(slope is None) + self._correct()

    def _by_gram(self, X: Any, y: np.ndarray) -> tuple[np.ndarray | None, float]:
        """Factor the Gram matrix, if that is safe; yX, where it came by the way, and the passes it took."""
        problem, shift, slope = self.problem, self.problem.shift, None
        real = not (self.wide or np.iscomplexobj(y))
        if real and isinstance(X, Place) and (shift is None or self.gathered is not None):
            return self._by_parts(X, y)
        real = real and isinstance(X, np.ndarray)
        plain = real and shift is None
        # column norms are then known from above: enough for a gap, not for the angle that counts without a penalty
        if plain and problem.alpha > 0 and X.dtype == np.float64:
            quick = quick_gram(self.by, X, y, problem.alpha, self.loose)
            if quick is not None:
                self.factor, slope, self.columns = quick
                return slope, 1.0
        if real and (shift is None or small_means(shift)):
            G, slope = gram_and_slope(X, y, self.by.pool)
            if shift is not None:
                G, slope = less_mean(X, G, False, shift), lowered(self.by, y, slope)
        else:
            G = gram(X, y.dtype, self.wide, shift, self.by.pool)
        self.columns = None if self.wide else np.real(np.diagonal(G)).copy()
        self.factor = from_gram(self.by, G, problem.alpha, self.wide)
        return slope, 1.0

    def _by_parts(self, X: Place, y: np.ndarray) -> tuple[np.ndarray | None, float]:
        """The same from sums over parts; anew in double precision, where single was not enough after all."""
        alpha, pool = self.problem.alpha, self.by.pool
        found, self.gathered = self.gathered or gathered(X, y, alpha, self.loose, pool), None
        assert found is not None
        self.columns, self.rough = found.column2, found.tame > 0
        self.factor = found.factor(self.by, alpha)
        if self.factor is not None or not self.rough:
            return found.slope, 1.0
        self.rough, self.loose = False, 0.0
        slope, passes = self._by_gram(X, y)
        return slope, 1.0 + passes

    def _correct(self) -> float:
        assert self.factor is not None
        lam = 0.0 if self.problem.each is None else ridge_of(self.problem, self.ids)
        if not self.wide:
            self.beta = self.factor.inside(self.beta + self.factor.apply(self.slope, lam))
            return 0.0
        assert self.alpha is not None
        self.alpha = self.alpha + self.factor.apply(self.slope, lam)
        self.beta = back(self.by, self.alpha)
        return 1.0

    def answers(self) -> tuple[np.ndarray, np.ndarray | None]:
        """β, and α where X is wide."""
        return self.beta, self.alpha

    def learn(self, place: int, evidence: Evidence, k: int) -> None:
        """What is left to correct."""
        if not self.started:  # a look at the user's x0, which is not used further
            return
        self.value[place] = evidence.certificates[k].value
        lam = self.problem.alpha if self.problem.each is None else self.problem.each[self.ids[place]]
        if self.probe is not None:
            left = evidence.residual[k][self.probe.rows]
            self.slope[place] = (left.conj() @ self.probe.X).conj()
        elif self.wide:
            assert self.alpha is not None
            self.slope[place] = evidence.residual[k] - lam * self.alpha[place]
        else:
            self.slope[place] = evidence.slope[k] - lam * self.beta[place]

    def keep(self, mask: np.ndarray) -> None:
        """Go on with some right-hand sides only."""
        for name in ("ids", "beta", "slope", "last", "value"):
            setattr(self, name, getattr(self, name)[mask])
        self.alpha = None if self.alpha is None else self.alpha[mask]

    def column_norms(self) -> np.ndarray | None:
        """The diagonal of the Gram matrix, where it was formed."""
        return self.columns

    def state(self) -> dict[str, Any] | None:
        """It is a factor that takes the time, and that is made anew."""
        return None

    def restore(self, told: dict[str, Any]) -> None:
        """There is nothing to go on from."""
        raise ValueError("a factor has no state")


def is_small(X: Any) -> bool:
    """Do QR and SVD cost less than asking whether they are needed?"""
    n, p = X.shape
    return n * p * min(n, p) <= SMALL


def gathered_for(problem: Problem, tol: float, pool: Executor | None) -> Gathered | None:
    """Sums about the means of an X that lies elsewhere, if a factor is going to need them; y is without its own."""
    X, (n, p) = problem.X, problem.X.shape
    plain = isinstance(X, Place) and not (np.iscomplexobj(problem.y) or np.issubdtype(X.dtype, np.complexfloating))
    if not plain or is_small(X) or n <= p + 1 or problem.weight is not None or problem.each is not None:
        return None
    return gathered(X, problem.y, problem.alpha, tol, pool, centre=True)


def direct(
    problem: Problem,
    by: Products,
    factor: Factor | None = None,
    start: Probe | None = None,
    beta0: np.ndarray | None = None,
    loose: float = 0.0,
    known: Gathered | None = None,
) -> Direct:
    """A mover that factors the small Gram matrix, or starts from the solution of a few rows."""
    (q, n), p = problem.y.shape, problem.X.shape[1]
    alpha = np.zeros((q, n), problem.y.dtype) if n < p else None
    beta = np.zeros((q, p), problem.y.dtype) if beta0 is None else beta0.copy()
    return Direct(problem, by, np.arange(q), beta, alpha, factor, start, loose=loose, gathered=known)
