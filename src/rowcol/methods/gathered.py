"""XᵀX, yX and means of a tall X that lies elsewhere, gathered in one pass over its parts.

With an intercept sums are taken about the mean of a first few rows, which is near that of all of them: little is left
to cancel, and the means take no pass of their own. Where these rows foretell that it will do, products are summed in
single precision, piece by piece, and added up in double: half the work. What that leaves to correct the next look
finds, which is exact as ever.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Executor
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..core.centre import CANCELS, Moments
from ..core.passes import Products
from ..core.place import Place, by_pieces, pieces_of
from ..core.rowsums import RowSums, row_sums
from ..core.threads import SHARED, spread
from .factor import SINGLE, Factor, cholesky, from_gram, gram, in_single, scaled

FEW = 8  # times as many rows as columns foretell
SHORT = 32, 160  # unknowns from which on single precision is quicker: by one look, and by two
NEAR = 10  # times their variance: means whose squares are smaller cost a digit, which is less than taking them off
NOISE = 1e2  # ‖y‖/‖ρ‖ up to which two looks at least squares should do
ERROR = 48  # of an answer by sums in single precision, in units of SINGLE·√n: columns of noise had about 30


class First(NamedTuple):
    """A first few rows."""

    rows: int  # how many
    about: np.ndarray | None  # (p,) their mean, where that is not near zero
    gram: np.ndarray  # (p, p) about their mean, if means are asked for


class Gathered(NamedTuple):
    """Sums over all rows, about their mean if that was asked for."""

    gram: np.ndarray  # (p, p)
    slope: np.ndarray  # (q, p)
    column2: np.ndarray  # (p,) ‖X_j‖² about the mean, in double precision
    mean: np.ndarray | None  # (p,)
    tame: float  # the condition up to which sums in single precision will do; 0 of those in double

    @property
    def moments(self) -> Moments:
        """x̄ and Σ_i (x_ij − x̄_j)²."""
        assert self.mean is not None
        return self.mean, self.column2

    def factor(self, by: Products, alpha: float) -> Factor | None:
        """Of XᵀX + alpha; None where it is not safe."""
        if self.tame and not np.isfinite(self.gram).all():  # too large for single precision, or not numbers
            return None
        return from_gram(by, self.gram.copy(), alpha, False, tame=self.tame)


def gathered(
    X: Place, y: np.ndarray, alpha: float, tol: float, pool: Executor | None, centre: bool = False
) -> Gathered | None:
    """All of it; `tol`: what single precision has to do for, 0 for none. None where too much would cancel."""
    n, about, tame = X.shape[0], None, 0.0
    if centre or tol:
        first = next(iter(X.map(_first, (centre,), (), which=[0])))
        if first is not None:
            about, tame = first.about, _tame(first, n, alpha, tol)
        elif centre:
            return None
    G, slope, column2, off = _added(X.map(_sums, (about, tame > 0), (y,), pool))
    if not centre:
        return Gathered(G, slope, column2, None, tame)
    left = column2 - off**2 / n
    if not ((left > CANCELS * column2) | (column2 == 0)).all():  # the first rows were no guide, or there are no numbers
        return None
    G -= np.multiply.outer(off, off / n)
    slope -= np.multiply.outer(y.sum(axis=1), off / n)
    return Gathered(G, slope, left, off / n if about is None else about + off / n, tame)


@by_pieces
def _first(part: Any, pool: Executor | None, centre: bool) -> First | None:
    """What the first few rows say; nothing, where they are sparse."""
    if sp.issparse(part):
        return None
    p = part.shape[1]
    piece = next(pieces_of(part, FEW * p))[1][: FEW * p].astype(np.float64)
    mean = piece.mean(axis=0) if centre else np.zeros(p)
    piece -= mean
    G = piece.T @ piece
    near = (len(piece) * mean**2 <= NEAR * np.diagonal(G)).all()
    return First(len(piece), None if near else mean, G)


def _tame(first: First, n: int, alpha: float, tol: float) -> float:
    """The condition up to which single precision will do, by two looks; 0 where it will not, or is not quicker.

    Errors of sums are random, so that they matter less where there are many rows. A gap divides by alpha what a slope
    is off by; without a penalty, an angle does by ‖ρ‖.
    """
    rows, G = first.rows, first.gram
    seen = np.sqrt(1 + float(np.diagonal(G).max()) / rows * n / alpha) if alpha > 0 else NOISE
    once = ERROR * SINGLE * seen <= tol * np.sqrt(n)
    if tol < 2 * SINGLE or len(G) < SHORT[not once] or rows < FEW * len(G) or not in_single(np.diagonal(G) / rows):
        return 0.0
    tame = float(np.sqrt(tol / seen)) / SINGLE
    return tame if cholesky(G, scaled(G, alpha * rows / n)[1], tame) is not None else 0.0


@by_pieces
def _sums(part: Any, pool: Executor | None, about: Any, single: bool, y: np.ndarray) -> RowSums:
    """Of a part: XᵀX, yX, ‖X_j‖² and Σ_i x_i, about a point or about zero; the first in single precision."""
    p = part.shape[1]
    if sp.issparse(part):  # about zero: no means are asked for
        G = gram(part, y.dtype, False)
        return RowSums(G, np.asarray(part.T @ y.T).T, np.diagonal(G), np.zeros(p))
    if p > SHARED:  # BLAS has threads of its own, and long lines
        return _added(_product(piece, y[:, rows], about, single) for rows, piece in pieces_of(part, 2 * p))
    if pool is None:
        return row_sums(pieces_of(part), p, y, about, single)
    return _added(spread(pool, lambda one: row_sums([one], p, y, about, single), list(pieces_of(part)), 8 * p * p))


def _product(piece: np.ndarray, y: np.ndarray, about: Any, single: bool) -> RowSums:
    """The same by BLAS."""
    piece = piece.astype(np.float64, copy=False) if about is None else piece - about
    few: np.ndarray = piece.astype(np.float32 if single else np.float64, copy=False)
    G = few.T @ few
    column2 = np.einsum("ij,ij->j", piece, piece) if single else np.diagonal(G)
    return RowSums(G, y @ piece, column2, np.ones(len(piece)) @ piece)


def _added(parts: Iterable[RowSums]) -> RowSums:
    """All rows' sums, from those of some."""
    total = None
    for part in parts:
        if total is None:
            total = RowSums(*(np.array(a, np.float64) for a in part))
            continue
        for a, b in zip(total, part, strict=True):
            a += b
    assert total is not None
    return total
