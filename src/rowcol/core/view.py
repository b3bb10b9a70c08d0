"""How we look at a Problem: by rows, by columns, or both woven. A side is a constructor, not a flag.

| view | lines | b | s0 | x | s |
|---|---|---|---|---|---|
| rows: RK, ridge by rows | rows Xⁱ | y | 0 | α | β |
| cols: RCD, ridge by columns | columns X_j | 0 | −y | β | Xβ − y |
| both: extended Kaczmarz | columns, then rows | 0, y | −y, 0 | (·, α) | (Xβ' − y, β) |

Complex columns need no loop of their own: the conjugates of x and s obey the row rule, so that is what a column
view keeps (`conjugate`), and real data do not notice.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..engine.lines import RUN, Dense, Lines, Sparse, Woven, extent, norms, pushes
from .memory import zeros
from .problem import Problem, scaled_bounds
from .rowsums import readonly

PIECE = 64_000_000  # numbers touched by one compiled call: about 0.1 s, 0.5 s where the memory is slow
PACKED_LINE = 400  # bytes: longer lines gain nothing
PACKED_FROM = 64_000_000  # bytes: fewer lie in the cache anyway
ENTRY = 32  # what a pick costs beside its line, in numbers


class View(NamedTuple):
    """The psd system (B Bᴴ + Λ) x = b − B s0 that stands for a Problem."""

    side: str  # "rows", "cols" or "both"
    lines: Lines
    lam: np.ndarray  # (m,) λ of each line
    b: np.ndarray  # (q, m)
    s0: np.ndarray  # (q, k)
    skip: np.ndarray | None  # (m,) lines that count for nothing: rows of sample weight zero
    cost: float  # numbers in a mean line, by which compiled calls are kept short
    copied: int  # bytes of transposed or converted copies
    bounds: np.ndarray | None = None  # (2, q, m) low and high of x, where there are any


class State(NamedTuple):
    """Where we are: x beside its image s, the tables the loop reads with them, and which right-hand sides these are."""

    table: np.ndarray  # records (diag, lam, b, x), and (low, high) within bounds: one cache line serves a step
    s: np.ndarray  # (q, k)
    ids: np.ndarray  # (q,) positions in the Problem's y


def rows(problem: Problem) -> View:
    """Kaczmarz: (X Xᴴ + Λ) α = y, β = Xᴴα, with Λ = alpha/w for sample weights w."""
    lines, copied = row_lines(problem.X)
    n, p = problem.X.shape
    lam, skip = np.full(n, problem.alpha), None
    if problem.weight is not None:
        skip = problem.weight == 0
        lam = np.divide(problem.alpha, problem.weight, out=np.zeros(n), where=~skip)
    s0 = np.zeros((len(problem.y), p), problem.y.dtype)
    return View("rows", lines, lam, problem.y, s0, skip, _cost(lines), copied)


def cols(problem: Problem) -> View:
    """Coordinate descent: (XᴴX + alpha) β = Xᴴy, carrying s = Xβ − y."""
    lines, copied = col_lines(problem.X)
    p = problem.X.shape[1]
    b = np.zeros((len(problem.y), p), problem.y.dtype)
    bounds = scaled_bounds(problem)
    return View("cols", lines, np.full(p, problem.alpha), b, -problem.y.conj(), None, _cost(lines), copied, bounds)


def both(problem: Problem) -> View:
    """Extended Kaczmarz: columns drive s to the part of −y no β can reach; rows solve for the rest."""
    col, row = cols(problem), rows(problem)
    lines = Woven(col.lines, row.lines)  # type: ignore[arg-type]
    b, s0 = np.hstack([col.b, row.b]), np.hstack([col.s0, row.s0])
    cost = col.cost + row.cost  # at least that of either
    return View("both", lines, np.concatenate([col.lam, row.lam]), b, s0, None, cost, col.copied + row.copied)


def row_lines(X: Any) -> tuple[Dense | Sparse, int]:
    """The rows of X as lines, and the bytes copied for it."""
    if sp.issparse(X):
        return _compressed(X, X.tocsr())
    a = X if X.flags.c_contiguous else _transposed(X.T)
    return Dense(readonly(a)), 0 if np.may_share_memory(a, X) else a.nbytes


def col_lines(X: Any) -> tuple[Dense | Sparse, int]:
    """The columns of X as lines, and the bytes copied for it."""
    if sp.issparse(X):
        return _compressed(X, X.tocsc())
    a = X.T if X.flags.f_contiguous else _transposed(X)
    return Dense(readonly(a)), 0 if np.may_share_memory(a, X) else a.nbytes


def _compressed(X: Any, Z: Any) -> tuple[Sparse, int]:
    # Index widths are settled here, so that there are few versions to compile: 32 bits where they suffice.
    width = np.int32 if max(X.shape) < 2**31 else np.int64
    indptr, indices = Z.indptr.astype(np.int64, copy=False), Z.indices.astype(width, copy=False)
    made = [a for a, b in ((indices, X.indices), (Z.data, X.data)) if not np.may_share_memory(a, b)]
    return Sparse(readonly(indptr), readonly(indices), readonly(Z.data)), sum(a.nbytes for a in made)


def _transposed(X: np.ndarray) -> np.ndarray:
    """Xᵀ in C order, copied by square blocks that fit the cache."""
    out = np.empty(X.shape[::-1], X.dtype)
    for i in range(0, X.shape[0], 256):
        for j in range(0, X.shape[1], 256):
            out[j : j + 256, i : i + 256] = X[i : i + 256, j : j + 256].T
    return out


def size(X: Any) -> int:
    """Numbers stored in X, or that an operator stands for."""
    return max(int(X.nnz), 1) if sp.issparse(X) else int(X.shape[0] * X.shape[1])


def _cost(lines: Lines) -> float:
    return max(lines.a.shape[1] if isinstance(lines, Dense) else lines.data.size / extent(lines), 1.0)  # type: ignore


# --- states --------------------------------------------------------------------------------------------------


def state(view: View, x: np.ndarray | None = None, s: np.ndarray | None = None) -> State:
    """The state x = 0, s = s0, or a given one (which is copied)."""
    q, m = view.b.shape
    table = _table(m, q, view.b.dtype, view.bounds is not None)
    table["diag"][:m] = -1.0  # not known yet
    table["lam"][:m] = view.lam
    table["b"][:m] = view.b.T
    if view.skip is not None:
        table["diag"][:m][view.skip] = 0.0
    if view.bounds is not None:
        table["low"][:m], table["high"][:m] = view.bounds[0].T, view.bounds[1].T
    if x is not None:
        table["x"][:m] = x.T
    return State(table, np.array(view.s0 if s is None else s, order="C", copy=True), np.arange(q))


def narrow(now: State, keep: np.ndarray) -> State:
    """The state of some right-hand sides only: the others are done."""
    names = now.table.dtype.names or ()
    table = _table(len(now.table), int(keep.sum()), now.s.dtype, "low" in names)
    for field in ("diag", "lam"):
        table[field][: len(now.table)] = now.table[field]
    for field in ("b", "x", "low", "high")[: 4 if "low" in names else 2]:
        table[field][: len(now.table)] = now.table[field][:, keep]
    return State(table[: len(now.table)], now.s[keep], now.ids[keep])


def with_another(now: State, name: int, b: float, x: np.ndarray, s: np.ndarray) -> State:
    """The state with one more right-hand side, called `name`: b of every line, its unknowns and their image."""
    table, q = _table(len(now.table), now.ids.size + 1, now.s.dtype), now.ids.size
    for field in ("diag", "lam"):
        table[field][: len(now.table)] = now.table[field]
    for field, more in (("b", b), ("x", x)):
        table[field][: len(now.table), :q] = now.table[field]
        table[field][: len(x), q] = more
    return State(table[: len(now.table)], np.vstack([now.s, s]), np.append(now.ids, name))


def box(now: State, start: int, stop: int) -> tuple[Any, ...]:
    """What `descend` needs to know beside the rest to keep right-hand sides start, ..., stop-1 within their bounds."""
    if "low" not in (now.table.dtype.names or ()):
        return ()
    return ((now.table["low"][:, start:stop], now.table["high"][:, start:stop]),)


def _table(
    m: int, q: int, dtype: np.dtype, bounded: bool = False, line: tuple[np.dtype, int] | None = None
) -> np.ndarray:
    # Aligned, because a record across two cache lines costs a third of the speed of a short step; and of at least
    # two records, because NumPy calls a single one contiguous, which would be another type to compile.
    fields: list[Any] = [("diag", "f8"), ("lam", "f8"), ("b", dtype, (q,)), ("x", dtype, (q,))]
    fields += [("low", dtype, (q,)), ("high", dtype, (q,))] if bounded else []
    kind = np.dtype(fields if line is None else [*fields, ("line", line[0], (line[1],))])
    return zeros(max(m, 2), kind)


def packing_pays(view: View) -> bool:
    """Are the lines dense, short, and too many for the cache? Then a record that holds its line is read at once."""
    if not isinstance(view.lines, Dense) or len(view.b) > 1:
        return False
    a = view.lines.a
    return bool(a.shape[1] * a.itemsize <= PACKED_LINE and a.nbytes >= PACKED_FROM)


def pack(view: View, now: State) -> tuple[View, State]:
    """Copy the lines into the table, each into its record: worth a copy of X once a solve has taken a few passes."""
    assert isinstance(view.lines, Dense)
    a, m = view.lines.a, view.b.shape[1]
    names = now.table.dtype.names or ()
    table = _table(m, now.ids.size, view.b.dtype, "low" in names, (a.dtype, a.shape[1]))
    for name in names:
        table[name][:m] = now.table[name][:m]
    table["line"][:m] = a
    lines = Dense(readonly(table["line"]))
    return view._replace(lines=lines, copied=view.copied + a.nbytes), State(table, now.s, now.ids)


def unknowns(view: View, now: State) -> np.ndarray:
    """x as (q, m)."""
    return np.ascontiguousarray(now.table["x"][: view.b.shape[1]].T)


def beta(view: View, now: State) -> np.ndarray:
    """The solution β as (q, p)."""
    if view.side == "cols":
        return unknowns(view, now).conj()
    return now.s[:, -_width(view) :].copy()


def dual(view: View, now: State) -> np.ndarray | None:
    """α as (q, n) where the view keeps it."""
    if view.side == "cols":
        return None
    return unknowns(view, now)[:, -_count(view) :]


def _width(view: View) -> int:
    return view.s0.shape[1] - (extent(view.lines.rows) if isinstance(view.lines, Woven) else 0)


def _count(view: View) -> int:
    return extent(view.lines.rows) if isinstance(view.lines, Woven) else view.b.shape[1]


def known_diag(view: View, now: State) -> np.ndarray:
    """‖a_i‖² of every line; fills in those not met yet, with the very bits they would have got on the way."""
    m = view.b.shape[1]
    diag = now.table["diag"]
    if (diag[:m] < 0).any():
        full = np.empty(m)
        for start, stop in pieces(m, view.cost):
            norms(view.lines, start, stop, full)
        diag[:m] = np.where(diag[:m] < 0, full, diag[:m])
    return diag[:m]


def pieces(count: int, cost: float) -> list[tuple[int, int]]:
    """0, ..., count-1 cut so that no compiled call is long: Ctrl-C and time limits are obeyed between pieces.

    Cuts are at multiples of RUN, where they change no bit: so several right-hand sides may take shorter pieces.
    """
    step = max(int(PIECE / (cost + ENTRY)) // RUN, 1) * RUN
    return [(i, min(i + step, count)) for i in range(0, count, step)]


def image(view: View, x: np.ndarray) -> np.ndarray:
    """Bᴴx, summed anew in float64."""
    out = np.zeros((len(x), view.s0.shape[1]), x.dtype)
    for start, stop in pieces(view.b.shape[1], view.cost * len(x)):
        pushes(view.lines, start, stop, x, out)
    return out
