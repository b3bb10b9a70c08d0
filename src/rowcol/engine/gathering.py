"""Sums over rows that are in cache, every number read once.

`gather`: XᵀX about a point, yX, Σ x_i and ‖X_j‖². A few rows at a time are copied, less the point, to where they stay
in the first caches, in single precision if that will do. Then XᵀX goes by tiles, which are summed over these rows
without leaving the registers and added up in double precision; no pair of columns is multiplied twice. BLAS lays its
operands out anew, is made for larger matrices, and may not know the machine: of 100 columns the products alone took
OpenBLAS 102 ns a row in single precision, and 223 in double; all of it takes this 73 and 106.

`look`: y − Xβ, what that pulls back, and ‖X_j‖², four rows at a time, which are in the first cache when they come
again: 13 ns a row of 100, or 18 with the squares, where BLAS takes 16 and 40.

This file must not call compiled code of another file: Numba's disk cache would go stale silently.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, overload, register_jitable
from numba.np.arrayobj import make_array

ROWS = 64  # copied at a time, and in a chain of sums in single precision
CHAIN = 256  # rows in a chain of a look's sums: a certificate's rounding term grows with the longest
REGISTER = 64 if binding.get_host_cpu_features().get("avx512f") else 32  # bytes of a vector
SUMS = REGISTER // 4  # vectors of a tile, which stay in registers: half of those that there are
ACROSS = REGISTER // 4  # columns of a tile: one vector in single precision, two in double


def lines_of(few):
    """Rows of a tile."""
    return SUMS if few.itemsize == 4 else SUMS // 2


def tile(few, m, i, j, G):
    """G[i:, j:] += few[:m, i:]ᵀ few[:m, j:], of one tile; m is at least one."""
    down = lines_of(few)
    G[i : i + down, j : j + ACROSS] += few[:m, i : i + down].T @ few[:m, j : j + ACROSS]


def half_tile(few, m, i, j, G):
    """The same of half as many rows."""
    down = lines_of(few) // 2
    G[i : i + down, j : j + ACROSS] += few[:m, i : i + down].T @ few[:m, j : j + ACROSS]


@register_jitable
def even(p):
    """Columns that go by whole tiles: a few that are left go by rows, or else most of a tile would be empty."""
    return p - p % ACROSS if p % ACROSS <= ACROSS // 2 else p


@intrinsic
def _tile(typing_context, few, m, i, j, G):
    return _tile_of(few, G, 1)


@intrinsic
def _half_tile(typing_context, few, m, i, j, G):
    return _tile_of(few, G, 2)


def _tile_of(few: Any, G: Any, share: int) -> tuple[Any, Any]:
    size = few.dtype.bitwidth // 8
    down, width = (SUMS if size == 4 else SUMS // 2) // share, REGISTER // size
    across = range(ACROSS // width)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        i64, i32 = ir.IntType(64), ir.IntType(32)
        number = ir.FloatType() if size == 4 else ir.DoubleType()
        vector, wide = ir.VectorType(number, width), ir.VectorType(ir.DoubleType(), width)
        nothing = ir.Constant(vector, ir.Undefined)
        everywhere = ir.Constant(ir.VectorType(i32, width), [0] * width)
        (from_, step), (to, onward) = (_where(context, builder, signature, args, k) for k in (0, 4))

        def at(address: Any, offset: int, kind: Any) -> Any:
            return builder.inttoptr(builder.add(address, i64(offset)), kind.as_pointer())

        before = builder.block
        rows, done = builder.append_basic_block("rows"), builder.append_basic_block("done")
        builder.branch(rows)
        builder.position_at_end(rows)
        k, here = builder.phi(i64), builder.phi(i64)
        sums = [[builder.phi(vector) for _ in across] for _ in range(down)]
        left, right = (builder.add(here, builder.mul(one, i64(size))) for one in (args[2], args[3]))
        those = [builder.load(at(right, c * REGISTER, vector), align=size) for c in across]
        after = []
        for r in range(down):
            one = builder.insert_element(nothing, builder.load(at(left, r * size, number), align=size), i32(0))
            one = builder.shuffle_vector(one, nothing, everywhere)
            fused = {"flags": ("contract",)}
            after.append([builder.fadd(sums[r][c], builder.fmul(one, those[c], **fused), **fused) for c in across])
        next_k = builder.add(k, i64(1))
        for phi, first, then in (
            (k, i64(0), next_k),
            (here, from_, builder.add(here, step)),
            *((sums[r][c], ir.Constant(vector, [0.0] * width), after[r][c]) for r in range(down) for c in across),
        ):
            phi.add_incoming(first, before)
            phi.add_incoming(then, rows)
        builder.cbranch(builder.icmp_signed("<", next_k, args[1]), rows, done)
        builder.position_at_end(done)
        place = builder.add(to, builder.add(builder.mul(args[2], onward), builder.mul(args[3], i64(8))))
        for r in range(down):
            for c in across:
                target = at(builder.add(place, builder.mul(i64(r), onward)), c * width * 8, wide)
                more = builder.fpext(after[r][c], wide) if size == 4 else after[r][c]
                builder.store(builder.fadd(builder.load(target, align=8), more), target, align=8)
        return context.get_dummy_value()

    return types.void(few, types.int64, types.int64, types.int64, G), generate


def _where(context: Any, builder: Any, signature: Any, args: Any, k: int) -> tuple[Any, Any]:
    """The address of a matrix, and the bytes from a row to the next."""
    a = make_array(signature.args[k])(context, builder, args[k])
    stride = cgutils.unpack_tuple(builder, a.strides)[0]
    return builder.ptrtoint(a.data, stride.type), stride


overload(tile, inline="always")(lambda few, m, i, j, G: lambda few, m, i, j, G: _tile(few, m, i, j, G))
overload(half_tile, inline="always")(lambda few, m, i, j, G: lambda few, m, i, j, G: _half_tile(few, m, i, j, G))
overload(lines_of, inline="always")(
    lambda few: (lambda few: SUMS) if few.dtype.bitwidth == 32 else (lambda few: SUMS // 2)
)


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def gather(X, about, y, few, G, slope, square, total):
    """Add to G, as far as `whole` needs it, (X − 1cᵀ)ᵀ(X − 1cᵀ); to the others y(X − 1cᵀ), and its squares and sums.

    Parameters
    ----------
    X : (n, p)
    about : (p,) c
    y : (q, n)
    few : (ROWS, P) float32 or float64
        Memory to be used, with zeros from column p on; P is a multiple of ACROSS.
    G : (P, P)
    slope : (q, p)
    square, total : (p,)
    """
    n, p = X.shape
    for first in range(0, n, ROWS):
        m = min(ROWS, n - first)
        fours = m - m % 4
        for i in range(0, m - 3, 4):  # up to `fours`; but said so, it is compiled to run in half the time
            k = first + i
            x0, x1, x2, x3 = X[k], X[k + 1], X[k + 2], X[k + 3]
            f0, f1, f2, f3 = few[i], few[i + 1], few[i + 2], few[i + 3]
            for j in range(p):
                c = about[j]
                v0, v1, v2, v3 = x0[j] - c, x1[j] - c, x2[j] - c, x3[j] - c
                f0[j] = v0
                f1[j] = v1
                f2[j] = v2
                f3[j] = v3
                square[j] += (v0 * v0 + v1 * v1) + (v2 * v2 + v3 * v3)
                total[j] += (v0 + v1) + (v2 + v3)
        for i in range(fours, m):
            x0, f0 = X[first + i], few[i]
            for j in range(p):
                v0 = x0[j] - about[j]
                f0[j] = v0
                square[j] += v0 * v0
                total[j] += v0
        for q in range(len(y)):
            s, b = slope[q], y[q]
            for k in range(first, first + m - 3, 4):
                x0, x1, x2, x3 = X[k], X[k + 1], X[k + 2], X[k + 3]
                y0, y1, y2, y3 = b[k], b[k + 1], b[k + 2], b[k + 3]
                for j in range(p):
                    c = about[j]
                    s[j] += (y0 * (x0[j] - c) + y1 * (x1[j] - c)) + (y2 * (x2[j] - c) + y3 * (x3[j] - c))
            for k in range(first + fours, first + m):
                for j in range(p):
                    s[j] += b[k] * (X[k, j] - about[j])
        end = even(p)
        for j in range(0, end, ACROSS):
            for i in range(0, min(j + ACROSS, end), lines_of(few)):
                tile(few, m, i, j, G)
        for i in range(end, p, lines_of(few) // 2):
            for j in range(0, p, ACROSS):
                half_tile(few, m, i, j, G)


def whole(G, p):
    """The symmetric matrix of which `gather` has summed what lies on and above the diagonal, or in the last rows."""
    end = even(p)
    G[:end, end:p] = G[end:p, :end].T
    upper = np.triu(G[:p, :p])
    upper += np.triu(upper, 1).T
    return upper


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def look(X, y, beta, weight, alpha, r, slope, image, square):
    """r = y − Xβ; XᵀWr is added to slope, Xᵀα to image and Σ_i w_i x_ij² to square, unless these are empty.

    Parameters
    ----------
    X : (n, p)
    y, weight, r : (n,)
    alpha : (n,) or (0,)
    beta, slope : (p,)
    image, square : (p,) or (0,)
    """
    n, p = X.shape
    for first in range(0, n, CHAIN):
        last = min(first + CHAIN, n)
        sl, im, sq = np.zeros(p), np.zeros(image.size), np.zeros(square.size)
        for i in range(first, last - 3, 4):
            x0, x1, x2, x3 = X[i], X[i + 1], X[i + 2], X[i + 3]
            t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
            for j in range(p):
                b = beta[j]
                t0 += x0[j] * b
                t1 += x1[j] * b
                t2 += x2[j] * b
                t3 += x3[j] * b
            w0, w1, w2, w3 = weight[i], weight[i + 1], weight[i + 2], weight[i + 3]
            t0, t1, t2, t3 = y[i] - t0, y[i + 1] - t1, y[i + 2] - t2, y[i + 3] - t3
            r[i], r[i + 1], r[i + 2], r[i + 3] = t0, t1, t2, t3
            t0, t1, t2, t3 = w0 * t0, w1 * t1, w2 * t2, w3 * t3
            for j in range(p):
                sl[j] += (t0 * x0[j] + t1 * x1[j]) + (t2 * x2[j] + t3 * x3[j])
            if im.size:
                a0, a1, a2, a3 = alpha[i], alpha[i + 1], alpha[i + 2], alpha[i + 3]
                for j in range(p):
                    im[j] += (a0 * x0[j] + a1 * x1[j]) + (a2 * x2[j] + a3 * x3[j])
            if sq.size:
                for j in range(p):
                    v0, v1, v2, v3 = np.float64(x0[j]), np.float64(x1[j]), np.float64(x2[j]), np.float64(x3[j])
                    sq[j] += (w0 * (v0 * v0) + w1 * (v1 * v1)) + (w2 * (v2 * v2) + w3 * (v3 * v3))
        for i in range(last - (last - first) % 4, last):
            x0, t0 = X[i], 0.0
            for j in range(p):
                t0 += x0[j] * beta[j]
            r[i] = y[i] - t0
            for j in range(p):
                sl[j] += weight[i] * r[i] * x0[j]
            for j in range(im.size):
                im[j] += alpha[i] * x0[j]
            for j in range(sq.size):
                sq[j] += weight[i] * (np.float64(x0[j]) * x0[j])
        slope += sl
        image += im
        square += sq
