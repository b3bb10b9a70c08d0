"""A hundred million steps of the engine with nothing summed anew, and how far the image s is from s0 + Bᴴx then."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from oracle import as_given, scattered
from rowcol import kernels
from rowcol.core.sampler import sampler, take
from rowcol.core.view import both, cols, known_diag, rows, state
from rowcol.engine.lines import Lookup, descend

UNIT = 2.0**-53  # s, x and all sums are in double precision, whatever X is stored in
PIECE = 1 << 18  # picks drawn at a time


class Drift(NamedTuple):
    """What was found after so many steps."""

    steps: int
    drift: float  # ‖s − (s0 + Bᴴx)‖, the sum in extended precision
    size: float  # ‖s‖
    scale: float  # what a step rounds, at most so far: ‖s‖ + max ‖a_i‖ max |x_i|
    moves: bool  # steps are longer than the last bit of x: if not, s moves, and x cannot

    @property
    def walk(self):
        """Over what errors of either sign add up to, of which each is as large as the next: √steps of them."""
        return self.drift / (UNIT * np.sqrt(self.steps) * self.scale)

    @property
    def worst(self):
        """Over what errors of one sign would add up to. A step rounds s twice, x once: so this is never above two."""
        return self.drift / (UNIT * self.steps * self.scale)


class Case(NamedTuple):
    """Lines, what is kept beside them, and B and s0 as they are."""

    lines: Any
    table: Any
    s: np.ndarray
    B: np.ndarray
    s0: np.ndarray
    source: Any


def system(n, p, kind=np.float64, density=1.0, noise=1.0, spread=1.0):
    rng = np.random.default_rng(0)
    X = scattered(rng, n, p, density) if density < 1 else rng.standard_normal((n, p)) * np.geomspace(1, 1 / spread, p)
    X = X.astype(kind)
    return X, X @ np.ones(p, kind) + noise * rng.standard_normal(n)


def by(side, X, y, alpha):
    """Rows, columns or both of X."""
    X = X.tocsc() if side == "cols" and sp.issparse(X) else X
    view = {"rows": rows, "cols": cols, "both": both}[side](as_given(X, y, alpha))
    now, m = state(view), view.b.shape[1]
    chances = np.ascontiguousarray(known_diag(view, now) + view.lam)
    A = (X.toarray() if sp.issparse(X) else X).astype(np.longdouble)
    n, p = A.shape
    B = {"rows": A, "cols": A.T}.get(side)
    if B is None:  # the columns see the first n of s, the rows the rest
        B = np.block([[A.T, np.zeros((p, p), A.dtype)], [np.zeros((n, n), A.dtype), A]])
    return Case(view.lines, now.table, now.s, B, view.s0[0].copy(), sampler("norms", m, SEED, chances))


def by_points(n, alpha):
    """Columns of a kernel matrix: s holds Kα."""
    rng = np.random.default_rng(0)
    points = rng.standard_normal((n, 2))
    K = kernels.RBF()(points)
    table = np.zeros(n, [("diag", "f8"), ("lam", "f8"), ("b", "f8", (1,)), ("x", "f8", (1,))])
    table["diag"], table["lam"], table["b"][:, 0] = np.diag(K), alpha, np.sin(points[:, 0]) + rng.standard_normal(n)
    chances = np.ones(n) + alpha
    source, s = sampler("norms", n, SEED, chances), np.zeros((1, n))
    return Case(Lookup(K, np.arange(n)), table, s, K.astype(np.longdouble), np.zeros(n), source)


SEED = np.random.SeedSequence(3)
SINGLE = np.float32
# Some settle, where steps are lost in the last bits of x. The others never do, or not within so many steps: rows that
# no β fits, or a penalty too small for the range of singular values.
CASES = {
    "rows, which settle": lambda: by("rows", *system(200, 8), 1.0),
    "rows": lambda: by("rows", *system(200, 8), 0.0),
    "rows, X in single precision": lambda: by("rows", *system(200, 8, SINGLE), 0.0),
    "rows, little penalty": lambda: by("rows", *system(200, 8, spread=1e3), 1e-4),
    "rows, sparse": lambda: by("rows", *system(400, 40, density=0.1), 0.0),
    "rows, sparse, X in single precision": lambda: by("rows", *system(400, 40, SINGLE, 0.1), 0.0),
    "columns, which settle": lambda: by("cols", *system(16, 8), 0.0),
    "columns": lambda: by("cols", *system(16, 8, spread=1e4), 0.0),
    "columns, X in single precision": lambda: by("cols", *system(16, 8, SINGLE, spread=1e4), 0.0),
    "columns, sparse": lambda: by("cols", *system(60, 100, density=0.1), 1e-7),
    "columns, sparse, X in single precision": lambda: by("cols", *system(60, 100, SINGLE, 0.1), 1e-7),
    "columns and rows": lambda: by("both", *system(16, 8, spread=1e4), 0.0),
    "columns and rows, which settle": lambda: by("both", *system(16, 8), 0.0),
    "points of a kernel": lambda: by_points(60, 1e-6),
}


def fresh(case):
    """s0 + Bᴴx, in extended precision."""
    return case.s0.astype(np.longdouble) + case.B.T @ case.table["x"][: len(case.B), 0].astype(np.longdouble)


def away(s, case):
    """‖s − (s0 + Bᴴx)‖."""
    return float(np.linalg.norm((s - fresh(case)).astype(float)))


def walked(case, total):
    """Descend, and measure after 1,000, 10,000, ... steps."""
    t, done, scale, found = case.table, 0, 0.0, []
    longest = float(np.sqrt((case.B**2).sum(axis=1).max()))
    for mark in (10**k for k in range(3, 10) if 10**k <= total):
        while done < mark:
            picks = take(case.source, min(mark - done, PIECE))
            gains = descend(case.lines, t["diag"], t["lam"], t["b"], t["x"], case.s, picks)[..., 0].sum()
            done += picks.size
            scale = max(scale, float(np.linalg.norm(case.s[0]) + longest * np.abs(t["x"]).max()))
        step = np.sqrt(gains / picks.size / (t["diag"] + t["lam"]).max())
        moves = bool(step > 4 * UNIT * np.abs(t["x"]).max())
        found.append(Drift(done, away(case.s[0], case), float(np.linalg.norm(case.s[0])), scale, moves))
    return found


def power(found):
    """How the drift, in units of what a step rounds, grows with the steps: its logarithm against theirs."""
    late = [one for one in found if one.steps >= 10_000]
    errors = [max(one.drift / one.scale, UNIT) for one in late]
    return float(np.polyfit(np.log([one.steps for one in late]), np.log(errors), 1)[0])
