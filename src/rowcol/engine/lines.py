"""The one loop: coordinate descent on (B Bᴴ + Λ) x = b − B s0, keeping the image s = s0 + Bᴴ x.

The rows of B are *lines*: rows of X, columns of X, or both woven together. One step on line i is

    step = (b_i − ⟨a_i, s⟩ − λ_i x_i) / (‖a_i‖² + λ_i)      x_i += step      s += step · conj(a_i)

`descend` spends a list of such picks; everything else here is a pass over the lines in order.

Lines are plain named tuples, told apart at compile time:
- `Dense(a)`: line i is a[i], which is contiguous.
- `Sparse(indptr, indices, data)`: compressed lines, as the rows of a CSR or the columns of a CSC matrix.
- `Lookup(a, at)`: columns of a kernel matrix K. Line i is a[i] = K[:, at[i]]; as s holds Kx, its pull is s[at[i]].
- `Woven(cols, rows)`: extended Kaczmarz. Lines 0..p-1 are columns, which see s[:n]; lines p..p+n-1 are rows,
  which see s[n:] and chase y_i + s_i, the right-hand side with its inconsistent part projected out.

What is fast, and why it is written this way (figures: `make speed`):
- the picks are known in advance, so the lines to come are prefetched (`ahead`);
- the push of one step and the pull of the next share one pass over `s` (`push_pull`);
- diag, lam, b and x are strided views of one record array, so a step touches one cache line for all four; short dense
  lines may be part of the record too (`pack` in core/view.py), as `row` takes any stride between lines;
- s, x and all sums are float64 whatever the lines are stored in;
- a diag below zero means "not known yet": the norm is taken when the line is first visited, in cache.

This file must not call compiled code of another file: Numba's disk cache would go stale silently.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, overload
from numba.np.arrayobj import make_array, populate_array

# Sums may be reordered (so that they vectorise), but NaN stays NaN.
FAST = {"reassoc", "contract", "nsz"}
KEPT = ("nsz",)  # no freedom to order or round: what has no flag would be given the caller's
JIT = {"cache": True, "nogil": True, "fastmath": FAST}
CACHE_LINE = 64  # bytes
AHEAD = 8  # steps from a prefetch to its use: 4 is too late, 16 too many in flight
BLOCK = 4096  # longest plain sum of a dense pull
RUN = 64  # picks in a run: pieces cut at multiples of it leave every bit as it was


class Dense(NamedTuple):
    """Lines stored one after the other: line i is a[i]."""

    a: np.ndarray


class Sparse(NamedTuple):
    """Compressed lines (the rows of a CSR matrix, or the columns of a CSC matrix)."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray


class Lookup(NamedTuple):
    """Columns of a kernel matrix, and the points they are of."""

    a: np.ndarray
    at: np.ndarray


class Woven(NamedTuple):
    """The columns of X, then its rows: extended Kaczmarz is descent on both."""

    cols: Dense | Sparse
    rows: Dense | Sparse


Lines = Dense | Sparse | Woven


# --- intrinsics, each with a Python twin (used without JIT, and tested against) ---------------------------------


def fetch(array, i, offset):
    """Ask for the memory at array[i], `offset` bytes on, to be in cache soon. The twin does nothing."""


def row(a, i):
    """a[i] of a 2-D array with contiguous rows, borrowed: counting references would cost more than a short line."""
    return a[i]


def span(a, start, stop):
    """a[start:stop] of a 1-D C array, borrowed."""
    return a[start:stop]


@intrinsic
def _prefetch(typing_context, array, i, offset):
    def generate(context, builder, signature, args):
        address = _address(context, builder, signature.args[0], args[0], args[1])
        pointer = builder.inttoptr(builder.add(address, args[2]), ir.IntType(8).as_pointer())
        i32 = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, i32, i32, i32])
        # llvmlite spells the intrinsic's name as its own LLVM version wants it
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", (pointer.type,), kind)
        builder.call(prefetch, [pointer, i32(0), i32(3), i32(1)])  # to read, into all caches, data
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), generate


@intrinsic
def _row(typing_context, a, i):
    def generate(context, builder, signature, args):
        length = cgutils.unpack_tuple(builder, make_array(signature.args[0])(context, builder, args[0]).shape)[1]
        return _borrow(context, builder, signature, args, length)

    return _line_of(a)(a, types.int64), generate


@intrinsic
def _span(typing_context, a, start, stop):
    def generate(context, builder, signature, args):
        return _borrow(context, builder, signature, args, builder.sub(args[2], args[1]))

    return _line_of(a)(a, types.int64, types.int64), generate


def _line_of(a: types.Array) -> types.Array:
    return types.Array(a.dtype, 1, "C", readonly=not a.mutable, aligned=a.aligned)


def _address(context: Any, builder: Any, kind: Any, array: Any, i: Any) -> Any:
    a = make_array(kind)(context, builder, array)
    stride = cgutils.unpack_tuple(builder, a.strides)[0]
    return builder.add(builder.ptrtoint(a.data, stride.type), builder.mul(stride, i))


def _borrow(context: Any, builder: Any, signature: Any, args: Any, length: Any) -> Any:
    a = make_array(signature.args[0])(context, builder, args[0])
    address = _address(context, builder, signature.args[0], args[0], args[1])
    line = make_array(signature.return_type)(context, builder)
    populate_array(
        line,
        data=builder.inttoptr(address, a.data.type),
        shape=(length,),
        strides=(a.itemsize,),
        itemsize=a.itemsize,
        meminfo=None,
        parent=None,
    )
    return line._getvalue()


def sum_of_squares(a):
    """Σ|a_j|² in float64, by eight sums side by side and one of the rest: in one order, so a norm has one value."""
    v = np.square(np.ascontiguousarray(a).view(a.real.dtype).astype(np.float64))
    total = v[: (eights := v.size // 8 * 8)].reshape(v.size // 8, 8).sum(axis=0)
    for half in (4, 2, 1):
        total = total[:half] + total[half:]
    return total.item() + (np.cumsum(v[eights:])[-1] if v.size > eights else 0.0)


@intrinsic
def _sum_of_squares(typing_context, a):
    kind, double, i64 = getattr(a.dtype, "underlying_float", a.dtype), ir.DoubleType(), ir.IntType(64)
    number, size = (double, 8) if kind.bitwidth == 64 else (ir.FloatType(), 4)

    def generate(context, builder, signature, args):
        start = _address(context, builder, signature.args[0], args[0], i64(0))
        length = cgutils.unpack_tuple(builder, make_array(signature.args[0])(context, builder, args[0]).shape)[0]
        even = builder.and_(count := builder.mul(length, i64(1 if kind is a.dtype else 2)), i64(-8))

        def summed(first, stop, step, to, given):
            total = cgutils.alloca_once_value(builder, ir.Constant(to, None))
            with cgutils.for_range_slice(builder, first, stop, i64(step), inc=True) as (k, _):
                at = builder.inttoptr(builder.add(start, builder.mul(k, i64(size))), given.as_pointer())
                v = builder.load(at, align=size) if size == 8 else builder.fpext(builder.load(at, align=size), to)
                builder.store(builder.fadd(builder.load(total), builder.fmul(v, v, flags=KEPT), flags=KEPT), total)
            return builder.load(total)

        total = summed(i64(0), even, 8, ir.VectorType(double, 8), ir.VectorType(number, 8))
        for half in (4, 2, 1):
            sides = (ir.Constant(ir.VectorType(ir.IntType(32), half), [*range(i, i + half)]) for i in (0, half))
            total = builder.fadd(*(builder.shuffle_vector(total, total, side) for side in sides), flags=KEPT)
        return builder.fadd(builder.extract_element(total, i64(0)), summed(even, count, 1, double, number), flags=KEPT)

    return types.float64(a), generate


overload(fetch, inline="always")(lambda array, i, offset: lambda array, i, offset: _prefetch(array, i, offset))
overload(row, inline="always")(lambda a, i: lambda a, i: _row(a, i))
overload(span, inline="always")(lambda a, start, stop: lambda a, start, stop: _span(a, start, stop))
overload(sum_of_squares, inline="always")(lambda a: lambda a: _sum_of_squares(a))


# --- what a line can do: one body for each kind, compiled or run as Python ---------------------------------------


def _dense_extent(lines):
    return lines.a.shape[0]


def _dense_norm2(lines, i):
    return sum_of_squares(row(lines.a, i))


def _dense_add_squares(lines, i, w, out):
    a = row(lines.a, i)
    for j in range(a.size):
        v = a[j]
        out[j] += w * (np.float64(v.real) * v.real + np.float64(v.imag) * v.imag)


def _dense_pull(lines, i, s):
    # In blocks: a certificate's rounding term grows with the longest sum.
    total = s.dtype.type(0)
    for start in range(0, s.size, BLOCK):
        stop = min(start + BLOCK, s.size)
        a, part = span(row(lines.a, i), start, stop), s.dtype.type(0)
        v = span(s, start, stop)
        for j in range(a.size):
            part += a[j] * v[j]
        total += part
    return total


def _dense_reach(lines, i, s, size):
    a, total, reach = row(lines.a, i), s.dtype.type(0), 0.0
    for start in range(0, a.size, BLOCK):
        part = s.dtype.type(0)
        for j in range(start, min(start + BLOCK, a.size)):
            part += a[j] * s[j]
            reach += np.abs(a[j]) * size[j]
        total += part
    return total, reach


def _dense_push(lines, i, step, s):
    a = row(lines.a, i)
    for j in range(a.size):
        s[j] += step * np.conj(a[j])


def _dense_push_pull(lines, i, step, after, s):
    a = row(lines.a, i)
    b = row(lines.a, after)
    total = s.dtype.type(0)
    for j in range(a.size):
        v = s[j] + step * np.conj(a[j])
        s[j] = v
        total += b[j] * v
    return total


def _dense_ahead(lines, picks, t, s):
    # Short lines whole; of a long one the start, then the hardware's own prefetcher takes over. Bytes, because a
    # division by the item size would cost as much as the step; no branch at the end of the picks, for the same reason.
    a = lines.a
    i = picks[min(t + AHEAD, picks.size - 1)]
    reach = min(a.shape[1] * a.itemsize, 2048)
    for offset in range(0, reach, CACHE_LINE):
        fetch(a, i, offset)
    fetch(a, i, reach - 1)  # a line seldom starts where a cache line does


def _sparse_extent(lines):
    return lines.indptr.size - 1


def _sparse_norm2(lines, i):
    return sum_of_squares(span(lines.data, lines.indptr[i], lines.indptr[i + 1]))


def _sparse_add_squares(lines, i, w, out):
    for k in range(lines.indptr[i], lines.indptr[i + 1]):
        v = lines.data[k]
        out[lines.indices[k]] += w * (np.float64(v.real) * v.real + np.float64(v.imag) * v.imag)


def _sparse_pull(lines, i, s):
    start, stop = lines.indptr[i], lines.indptr[i + 1]
    indices, data = span(lines.indices, start, stop), span(lines.data, start, stop)
    total = s.dtype.type(0)
    for k in range(indices.size):
        total += data[k] * s[indices[k]]
    return total


def _sparse_reach(lines, i, s, size):
    start, stop = lines.indptr[i], lines.indptr[i + 1]
    indices, data = span(lines.indices, start, stop), span(lines.data, start, stop)
    total, reach = s.dtype.type(0), 0.0
    for k in range(indices.size):
        total += data[k] * s[indices[k]]
        reach += np.abs(data[k]) * size[indices[k]]
    return total, reach


def _sparse_push(lines, i, step, s):
    start, stop = lines.indptr[i], lines.indptr[i + 1]
    indices, data = span(lines.indices, start, stop), span(lines.data, start, stop)
    for k in range(indices.size):
        s[indices[k]] += step * np.conj(data[k])


def _sparse_push_pull(lines, i, step, after, s):
    # Push, then pull, written out: calls would cost a third more at ten entries a line.
    start, stop = lines.indptr[i], lines.indptr[i + 1]
    indices, data = span(lines.indices, start, stop), span(lines.data, start, stop)
    for k in range(indices.size):
        s[indices[k]] += step * np.conj(data[k])
    start, stop = lines.indptr[after], lines.indptr[after + 1]
    indices, data = span(lines.indices, start, stop), span(lines.data, start, stop)
    total = s.dtype.type(0)
    for k in range(indices.size):
        total += data[k] * s[indices[k]]
    return total


def _sparse_ahead(lines, picks, t, s):
    # Three levels, each some steps after the one it needs: where a line is, what is in it, what it touches.
    indptr, indices, data = lines.indptr, lines.indices, lines.data
    end = picks.size - 1
    fetch(indptr, picks[min(t + 2 * AHEAD, end)], 0)
    i = picks[min(t + AHEAD, end)]
    for k in range(indptr[i], indptr[i + 1], 8):
        fetch(data, k, 0)
        fetch(indices, k, 0)
    i = picks[min(t + AHEAD // 2, end)]
    for k in range(indptr[i], indptr[i + 1]):
        fetch(s, indices[k], 0)


_lookup_extent, _lookup_push = _dense_extent, _dense_push  # (18), (30): s += step · K[:, i]


def _lookup_norm2(lines, i):
    return np.float64(lines.a[i, lines.at[i]])  # ‖φ(x_i)‖² = k(x_i, x_i)


def _lookup_pull(lines, i, s):
    return s[lines.at[i]]


def _lookup_push_pull(lines, i, step, after, s):
    push(lines, i, step, s)
    return s[lines.at[after]]


def _lookup_ahead(lines, picks, t, s):
    pass  # a few columns, just made: they are in cache, or stream


def _woven_extent(lines):
    return extent(lines.cols) + extent(lines.rows)


def _woven_norm2(lines, i):
    p = extent(lines.cols)
    return norm2(lines.cols, i) if i < p else norm2(lines.rows, i - p)


def _woven_pull(lines, i, s):
    p, n = extent(lines.cols), extent(lines.rows)
    if i < p:
        return pull(lines.cols, i, span(s, 0, n))
    return pull(lines.rows, i - p, span(s, n, s.size)) - np.conj(s[i - p])  # the row chases y_i + s_i


def _woven_push(lines, i, step, s):
    p, n = extent(lines.cols), extent(lines.rows)
    if i < p:
        push(lines.cols, i, step, span(s, 0, n))
    else:
        push(lines.rows, i - p, step, span(s, n, s.size))


def _woven_push_pull(lines, i, step, after, s):
    p, n = extent(lines.cols), extent(lines.rows)
    if i < p and after < p:
        return push_then_pull(lines.cols, i, step, after, span(s, 0, n))
    if i >= p and after >= p:
        return push_then_pull(lines.rows, i - p, step, after - p, span(s, n, s.size)) - np.conj(s[after - p])
    push(lines, i, step, s)
    return pull(lines, after, s)


def _woven_ahead(lines, picks, t, s):
    pass  # a column step streams far more than a prefetched row could save


def _body(kind, name: str) -> Any:
    """The body of `name` for one kind of lines, a class or as Numba has it: `pull` of Dense is `_dense_pull`."""
    kind = getattr(kind, "instance_class", kind)
    return globals().get(f"_{kind.__name__.lower()}_{name}") if kind in (Dense, Sparse, Lookup, Woven) else None


def extent(lines):
    """How many lines there are."""
    return _body(type(lines), "extent")(lines)


def norm2(lines, i):
    """‖a_i‖²."""
    return _body(type(lines), "norm2")(lines, i)


def pull(lines, i, s):
    """⟨a_i, s⟩, unconjugated."""
    return _body(type(lines), "pull")(lines, i, s)


def reach(lines, i, s, size):
    """⟨a_i, s⟩, and Σ_j |a_ij| size_j: what its rounding errors grow with."""
    return _body(type(lines), "reach")(lines, i, s, size)


def push(lines, i, step, s):
    """s += step · conj(a_i)."""
    _body(type(lines), "push")(lines, i, step, s)


def push_pull(lines, i, step, after, s):
    """Push line i, then pull line `after`: in one pass over s where that is possible."""
    return _body(type(lines), "push_pull")(lines, i, step, after, s)


def ahead(lines, picks, t, s):
    """Prefetch what the picks soon after t will touch."""
    _body(type(lines), "ahead")(lines, picks, t, s)


def add_squares(lines, i, w, out):
    """out[j] += w |a_ij|²."""
    _body(type(lines), "add_squares")(lines, i, w, out)


def _again(f: Any) -> Any:
    return FunctionType(f.__code__, globals())


pull_here, push_here = _again(pull), _again(push)  # inlined: on short lines a call costs as much as the line
push_then_pull = _again(push_pull)  # as a call, for use inside one that is inlined: Numba warns of both at once


# Compiled code calls the same names; the body is chosen at compile time. By Numba inlined only where it pays.
_FLAGS = {"jit_options": {"fastmath": FAST, "forceinline": True}}
_INLINE = {"jit_options": {"fastmath": FAST}, "inline": "always"}
overload(extent, **_FLAGS)(lambda lines: _body(lines, "extent"))
overload(norm2, **_FLAGS)(lambda lines, i: _body(lines, "norm2"))
overload(pull, **_FLAGS)(lambda lines, i, s: _body(lines, "pull"))
overload(pull_here, **_INLINE)(lambda lines, i, s: _body(lines, "pull"))
overload(push_here, **_INLINE)(lambda lines, i, step, s: _body(lines, "push"))
overload(reach, **_INLINE)(lambda lines, i, s, size: _body(lines, "reach"))
overload(push, **_FLAGS)(lambda lines, i, step, s: _body(lines, "push"))
overload(push_then_pull, **_FLAGS)(lambda lines, i, step, after, s: _body(lines, "push_pull"))
overload(push_pull, **_INLINE)(lambda lines, i, step, after, s: _body(lines, "push_pull"))
overload(ahead, **_INLINE)(lambda lines, picks, t, s: _body(lines, "ahead"))
overload(add_squares, **_FLAGS)(lambda lines, i, w, out: _body(lines, "add_squares"))


# --- the loop ----------------------------------------------------------------------------------------------


@njit(**JIT)
def descend(lines, diag, lam, b, x, s, picks, box=None):
    """Take one step on each picked line, in order, for every right-hand side.

    diag, lam : (m,) float64, ‖a_i‖² (below zero: not known yet, and filled in) and λ_i; a line with diag + lam = 0 is
        passed over. b, x : (m, q), right-hand sides and unknowns; x is changed. picks : (t,) int64
    s : (q, k), images s0 + Bᴴx, one right-hand side a row; changed.
    box : two (m, q), where real unknowns must stay: a step ends at the bound it would cross, and its slope counts as
        far as that.

    Gives (runs, q, 2) float64: over each run of picks, the sums of |step|²(‖a_i‖² + λ_i), which is what the objective
    fell by, twice (in a box, or more), and of |g_i|², the squared slopes met on the way.
    """
    tally = np.empty((-(-picks.size // RUN), s.shape[0], 2))
    end = picks.size - 1
    # In runs: with several right-hand sides each takes a run in turn, while its lines are in cache; and as every run
    # starts with a pull of its own, cutting the picks between runs changes no bit.
    for first in range(0, picks.size, RUN):
        last = min(first + RUN, picks.size)
        for q in range(s.shape[0]):
            sq, gains, slopes = row(s, q), 0.0, 0.0
            g = pull(lines, picks[first], sq)
            for t in range(first, last):
                if q == 0:
                    ahead(lines, picks, t, sq)
                    fetch(diag, picks[min(t + AHEAD, end)], 0)
                i = picks[t]
                after = picks[min(t + 1, last - 1)]
                if diag[i] < 0.0:
                    diag[i] = norm2(lines, i)
                curvature = diag[i] + lam[i]
                share = 1.0 / curvature if curvature > 0.0 else 0.0  # a division that need not wait for g
                slope = b[i, q] - g - lam[i] * x[i, q]
                step = share * slope
                there = x[i, q] + step
                if box is not None and (there < box[0][i, q] or there > box[1][i, q]):  # NaN is neither, and is found
                    there = box[0][i, q] if there < box[0][i, q] else box[1][i, q]
                    step = there - x[i, q]
                    slope = step * curvature
                x[i, q] = there
                gains += slope.real * step.real + slope.imag * step.imag
                slopes += slope.real * slope.real + slope.imag * slope.imag
                g = push_pull(lines, i, step, after, sq)
            tally[first // RUN, q, 0] = gains
            tally[first // RUN, q, 1] = slopes
    return tally


# --- passes over the lines start, ..., stop-1 in order ---------------------------------------------------------


@njit(**JIT)
def norms(lines, start, stop, out):
    """out[i] = ‖a_i‖²."""
    for i in range(start, stop):
        out[i] = norm2(lines, i)


@njit(**JIT)
def pulls(lines, start, stop, s, out):
    """out[q, i] = ⟨a_i, s_q⟩."""
    for i in range(start, stop):
        for q in range(s.shape[0]):
            out[q, i] = pull_here(lines, i, row(s, q))


@njit(**JIT)
def pushes(lines, start, stop, c, s):
    """s_q += Σ_i c[q, i] conj(a_i)."""
    for i in range(start, stop):
        for q in range(s.shape[0]):
            push_here(lines, i, c[q, i], row(s, q))


@njit(**JIT)
def residuals(lines, start, stop, y, s, weight, r, image, square):
    """r = y − B s, image += Bᴴ W r and, if `square` is not empty, square[j] += w_i |a_ij|²: every line read once."""
    for i in range(start, stop):
        for q in range(s.shape[0]):
            r[q, i] = y[q, i] - pull_here(lines, i, row(s, q))
            push_here(lines, i, weight[i] * r[q, i], row(image, q))
        if square.size:
            add_squares(lines, i, weight[i], square)


@njit(**JIT)
def misfits(lines, start, stop, y, s, size, r):
    """r = y − B s, and Σ_i reach_i² of the sizes |s|, for each right-hand side."""
    total = np.zeros(s.shape[0])
    for i in range(start, stop):
        for q in range(s.shape[0]):
            pulled, size_of = reach(lines, i, row(s, q), row(size, q))
            r[q, i] = y[q, i] - pulled
            total[q] += size_of**2
    return total
