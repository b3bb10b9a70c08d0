"""How X multiplies vectors: in place, by its own rows or columns, in float64 whatever it is stored in.

Products are of (q, k) arrays, one vector a row: by passes of our own, or by BLAS on blocks, which threads share. A
SciPy `LinearOperator` multiplies too, but has no lines to look at.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from ..engine.across import across, down
from ..engine.lines import Dense, Sparse, Woven, extent, norms, pulls, pushes, residuals
from .passes import Products, few_lines, pull_all, push_all, residual_pass, there_and_back, workers
from .place import Place, Unread, by_pieces, pieces_of
from .problem import Shift
from .rowsums import looked
from .threads import AHEAD, by_threads
from .view import View, col_lines, row_lines

CACHED = 4_000_000  # bytes of X that are still in cache when they are multiplied with again
ACROSS = 6_000_000  # the same, of blocks of columns: short pieces of rows cost more than what they miss of the cache
SEVERAL = 4  # vectors from which on products of matrices are quicker than ours
MANY = 8  # vectors from which on two products of matrices are quicker than one pass of ours
LONG = 10_000_000  # bytes of X that a thread multiplies with at a time
PAIRED = 2**20  # numbers that are multiplied before they are summed in pairs: more would be memory
SHORT_ROW = 64_000  # bytes: a row this short is still in the first caches when `residuals` pushes what it pulled


def products(X: Any, pool: Executor | None = None, shift: Shift | None = None) -> Products:
    """Products in the layout X has: nothing is transposed, and nothing large copied."""
    if isinstance(X, LinearOperator):
        return Products(X, "place" if isinstance(X, Place) else "operator", None, pool, {}, shift)
    by_rows = X.format == "csr" if hasattr(X, "format") else X.flags.c_contiguous
    lines, _ = row_lines(X) if by_rows else col_lines(X)
    return Products(X, "rows" if by_rows else "cols", lines, pool, {}, shift, True)


def compile_for(by: Products) -> float:
    """Call what products and looks will call, on no lines at all; the seconds that took, which are not a solve's."""
    before = time.perf_counter()
    if by.lines is not None:
        kind = np.complex128 if np.iscomplexobj(by.X) else np.float64
        none, w = np.zeros((1, 1), kind), np.ones(1)
        norms(by.lines, 0, 0, w)
        pulls(by.lines, 0, 0, none, none)
        pushes(by.lines, 0, 0, none, none)
        if by.side == "rows":
            residuals(by.lines, 0, 0, none, none, w, none, none, w)
        if isinstance(by.lines, Dense) and by.X.dtype == np.float64:
            long = np.zeros(by.shape[0])
            across(by.lines.a, 0, 0, long, long, w, long, w, w, w)
            down(by.lines.a, 0, 0, w, w, w)
    return time.perf_counter() - before


def of_view(X: Any, view: View, pool: Executor | None = None) -> Products:
    """Products by the very lines a view walks, which may be a copy made for it."""
    lines = view.lines.rows if isinstance(view.lines, Woven) else view.lines
    return Products(X, "cols" if view.side == "cols" else "rows", lines, pool, {})


def lifted(by: Products, v: np.ndarray) -> np.ndarray | float:
    """u x̄ᵀv: what the shift takes from Xv, so that y − (X − u x̄ᵀ)v = (y + this) − Xv."""
    # summed in pairs, as below: what the shift takes is large beside what it leaves
    return 0.0 if by.shift is None else np.multiply.outer((v * by.shift.mean).sum(axis=1), by.shift.ones)


def raised(by: Products, y: np.ndarray, v: np.ndarray) -> np.ndarray:
    """y + u x̄ᵀv, by one array of that length: new memory takes longer than the sum."""
    out = np.asarray(lifted(by, v))
    return np.add(y, out, out=out if out.dtype == np.result_type(y, out) else None)


def in_pairs(u: np.ndarray, ones: np.ndarray) -> np.ndarray:
    """Σ_i u_i 1_i, summed in pairs, some of them at a time."""
    cuts = range(0, u.shape[1], PAIRED)
    return np.stack([(u[:, i : i + PAIRED] * ones[i : i + PAIRED]).sum(axis=1) for i in cuts], axis=1).sum(axis=1)


def lowered(by: Products, u: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Xᴴu as `out`, less what the shift takes from it; in place."""
    if by.shift is not None:
        # summed in pairs: the sum is near zero, and its rounding is to stay small
        out = less_tilt(by, in_pairs(u, by.shift.ones), out)
    return out


def less_tilt(by: Products, tilt: np.ndarray, out: np.ndarray) -> np.ndarray:
    """The same, of the sums Σ_i u_i 1_i."""
    assert by.shift is not None
    out -= np.multiply.outer(tilt, by.shift.mean.conj())
    if by.shift.live is not None:
        out *= by.shift.live  # exactly nothing is left of a constant column
    return out


def times(by: Products, v: np.ndarray) -> np.ndarray:
    """X v."""
    if by.side == "operator":
        out = _operate(by.X.matvec, v)
    elif by.side == "place":
        out = np.concatenate(list(by.X.map(_times_part, (v,), (), by.pool)), axis=1)
    elif by_blas(by, v):
        out = _by_blas(by, by.X, v)
    elif by.side == "rows":
        out = pull_all(by, v)
    else:
        out = push_all(by, v.conj()).conj()
    return out if by.shift is None else out - lifted(by, v)


def back(by: Products, u: np.ndarray) -> np.ndarray:
    """Xᴴ u."""
    if by.side == "operator":
        out = _operate(by.X.rmatvec, u)
    elif by.side == "place":
        out = sum(by.X.map(_back_part, (), (u,), by.pool))
    elif by_blas(by, u):
        out = _by_blas(by, by.X.T, u.conj()).conj()
    elif by.side == "rows":
        out = push_all(by, u)
    else:
        out = pull_all(by, u.conj()).conj()
    return lowered(by, u, out)


def normal(by: Products, v: np.ndarray) -> tuple[np.ndarray, float]:
    """XᴴX v, as precise as X is stored, and the passes it took: one where blocks of X stay in cache."""
    n, p = by.shape
    if by.side == "place":
        return sum(by.X.map(_normal_part, (v,), (by.shift,), by.pool)), 1.0
    if len(v) == 1 and isinstance(by.lines, Dense) and by.X.dtype == v.dtype and one_pass(by):
        return _by_rows(by, v), 1.0  # a tenth to a third less than BLAS takes on blocks; of more vectors, BLAS is ahead
    if few_lines(by, "cols", v) and (by.shift is None or by.shift.live is None):
        r = np.zeros(n) if by.shift is None else np.asarray(lifted(by, v))[0]
        out = -there_and_back(by, v[0], r)[None]
        return lowered(by, -r[None], out), 1.0
    if _by_blocks(by, v) and p <= n:
        out, w = np.zeros_like(v), v.astype(by.X.dtype, copy=False)

        def down(i: int) -> np.ndarray:
            part = by.X[i : i + step]
            if by.shift is None:
                return ((w @ part.T).conj() @ part).conj()
            ones = by.shift.ones[i : i + step]
            there = w @ part.T - np.multiply.outer(v @ by.shift.mean, ones)
            pulled = (there.astype(w.dtype, copy=False).conj() @ part).conj()
            return pulled - np.multiply.outer(there @ ones, by.shift.mean.conj())

        for part in by_threads(workers(by), down, range(0, n, step := max(CACHED // (p * w.itemsize), 1)), out.nbytes):
            out += part
        return out if by.shift is None or by.shift.live is None else out * by.shift.live, 1.0
    if by.pool is None and isinstance(by.lines, Sparse) and by.X.dtype == v.dtype:
        # one thread: SciPy's two loops, each simpler than ours, take two thirds of the time of our one
        u = np.ascontiguousarray((by.X @ v.T).T)
        u = u if by.shift is None else u - lifted(by, v)
        return lowered(by, u, np.ascontiguousarray((by.X.T @ u.T.conj()).T.conj())), 1.0
    if one_pass(by) and not (len(v) > MANY and by_blas(by, v)):
        return _by_rows(by, v), 1.0
    return back(by, times(by, v)), 2.0


def conormal(by: Products, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Xᴴ v and XXᴴ v, as precise as X is stored; and how many passes over X they took."""
    n, p = by.shape
    if few_lines(by, "rows", v) and (by.shift is None or by.shift.live is None):
        r = -lowered(by, v, np.zeros((1, p)))[0]
        out = -there_and_back(by, v[0], r)[None]
        return -r[None], out if by.shift is None else out + lifted(by, r[None]), 1.0
    if _by_blocks(by, v) and n <= p:
        w = v.astype(by.X.dtype, copy=False)
        u, out = np.empty((len(v), p), w.dtype), np.zeros_like(v)

        def wide(j: int) -> np.ndarray:
            part, some = by.X[:, j : j + step], slice(j, j + step)
            u[:, some] = (w.conj() @ part).conj()
            if by.shift is not None:
                u[:, some] -= np.multiply.outer(v @ by.shift.ones, by.shift.mean[some].conj())
                u[:, some] *= 1.0 if by.shift.live is None else by.shift.live[some]
            return u[:, some] @ part.T

        for part in by_threads(workers(by), wide, range(0, p, step := max(ACROSS // (n * w.itemsize), 1)), out.nbytes):
            out += part
        return u, out if by.shift is None else out - lifted(by, u), 1.0
    u = back(by, v)
    return u, times(by, u), 2.0


def one_pass(by: Products) -> bool:
    """Do rows of X stay in cache, so that what is pulled from one can be pushed along it at once?"""
    if by.side != "rows" or by.lines is None:
        return False
    return isinstance(by.lines, Sparse) or by.lines.a.shape[1] * by.lines.a.itemsize <= SHORT_ROW


def _by_blocks(by: Products, v: np.ndarray) -> bool:
    """By BLAS, in the precision of X: conjugate gradients are refined by exact looks, so single precision will do."""
    return isinstance(by.lines, Dense) and np.iscomplexobj(by.X) == np.iscomplexobj(v)


def tiled(by: Products) -> bool:
    """Is X wide, with long rows in double precision one after the other? Then a look goes by tiles of its columns."""
    return by.side == "rows" and isinstance(by.lines, Dense) and by.shape[0] < by.shape[1] and by.X.dtype == np.float64


def by_blas(by: Products, v: np.ndarray) -> bool:
    """Is X dense, and in double precision already? BLAS is at the memory's speed, and brings its own threads."""
    return isinstance(by.lines, Dense) and by.X.dtype == v.dtype


def _operate(f: Callable[[np.ndarray], np.ndarray], v: np.ndarray) -> np.ndarray:
    # copies both ways: an operator may write into its argument, or give the same memory every time
    out = np.stack([np.array(f(one.copy())).reshape(-1) for one in v])
    if np.iscomplexobj(out) and not np.iscomplexobj(v):
        raise TypeError("X is an operator of real dtype whose products are complex: give it dtype=complex")
    return np.ascontiguousarray(out, dtype=np.result_type(out.dtype, v.dtype, np.float64))


def _by_rows(by: Products, v: np.ndarray) -> np.ndarray:
    assert by.lines is not None
    count = extent(by.lines)
    key = (len(v), v.dtype)
    if key not in by.scratch:  # fresh memory for every product would cost a tenth of it
        by.scratch[key] = np.zeros((len(v), count), v.dtype), np.empty((len(v), count), v.dtype), np.ones(count)
    nothing, r, ones = by.scratch[key]
    r, image, _ = residual_pass(by, nothing if by.shift is None else np.asarray(lifted(by, v)), v, ones, False, r)
    return -lowered(by, r, image)


def _times_part(part: Any, pool: Executor | None, v: np.ndarray) -> np.ndarray:
    return times(products(part, pool), v)


@by_pieces
def _back_part(part: Any, pool: Executor | None, u: np.ndarray) -> np.ndarray:
    if isinstance(part, Unread):
        return sum(((u[:, rows].conj() @ piece).conj() for rows, piece in pieces_of(part)), np.zeros(1))
    return back(products(part, pool), np.ascontiguousarray(u))


@by_pieces
def _normal_part(part: Any, pool: Executor | None, v: np.ndarray, shift: Shift | None) -> np.ndarray:
    if isinstance(part, Unread):
        by = Products(part, "rows", None, None, {}, shift)
        nothing = np.zeros((len(v), part.shape[0]), v.dtype) if shift is None else np.asarray(lifted(by, v))
        found = looked(pieces_of(part), nothing, v, None, False)
        return -lowered(by, found.rho, found.slope)
    return normal(products(part, pool, shift), v)[0]


def _by_blas(by: Products, A: np.ndarray, v: np.ndarray) -> np.ndarray:
    """v Aᵀ, where A is X or its transpose; threads share its longer side."""
    rows, cols = A.shape
    if workers(by) is None:
        return np.ascontiguousarray(v @ A.T)
    long = max(rows, cols)
    cuts = range(0, long, step := -(-long // (AHEAD * -(-A.nbytes // (AHEAD * LONG)))))
    if rows < cols:
        return sum(by_threads(by.pool, lambda i: v[:, i : i + step] @ A[:, i : i + step].T, cuts, 8 * rows * len(v)))
    out = np.empty((len(v), rows), np.result_type(v, A))

    def fill(i: int) -> None:
        out[:, i : i + step] = v @ A[i : i + step].T

    deque(by_threads(by.pool, fill, cuts, 0), maxlen=0)
    return out
