"""Kernel tiles: products with a kernel matrix of which no more exists at a time than a few lines of a tile.

A kernel is a *base*, summed feature by feature, and a *shape* of it: each is one line of mathematics here.

| base | t_ij = c_i + c_j + ... | kernels |
|---|---|---|
| `Dot(factor)` | factor Σ x_k y_k | dot products; with factor −2 and c = ‖x‖², squared distances |
| `Square()` | Σ (x_k − y_k)² | squared distances where the dot form would lose digits, or is no quicker |
| `Absolute()` | Σ abs(x_k − y_k) | Laplacian in the 1-norm |
| `Ratio()` | Σ (x_k − y_k)² / (x_k + y_k) | chi-squared |

Points lie in tiles: tiles[b, k, j] is feature k of point b·w + j, so that the loops over j run along memory. The number
of features is even (a feature of zeros changes no base). Distances come in units in which the kernel is a power of two.

What is fast, and why it is written this way (figures: `make speed`):

- four points on the left at a time, two or four features a pass: the t of four lines stay in the first cache, and every
  number read from the right tile is used four times;
- 2^−t is a polynomial and a shift of the exponent, which vectorise; it needs its own, stricter, fast-math flags, as
  reassociation would remove the rounding to an integer by adding and subtracting a large number;
- sums within a tile are in the precision of the tile, those over tiles in float64;
- tiles are no multiple of 512 points wide (core/memory.py): features would lie 2,048 bytes apart, or a multiple, in the
  same few sets of the cache;
- remainders: the last three lines may be copies of the last point, which count zero times.

This file must not call compiled code of another file: Numba's disk cache would go stale silently.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, overload

FAST = {"reassoc", "contract", "nsz", "nnan", "ninf"}  # points are finite: that is checked at the door
JIT = {"cache": True, "nogil": True, "fastmath": FAST}
EXACT = {"contract", "nnan", "ninf", "nsz"}


# --- bases and shapes ----------------------------------------------------------------------------------------------


class Dot(NamedTuple):
    """factor Σ x_k y_k."""

    factor: Any


class Square(NamedTuple):
    """Σ (x_k − y_k)²; factor is one."""

    factor: Any


class Absolute(NamedTuple):
    """Σ |x_k − y_k|; factor is one."""

    factor: Any


class Ratio(NamedTuple):
    """Σ (x_k − y_k)² / (x_k + y_k); factor is one."""

    factor: Any


class Identity(NamedTuple):
    """t: linear and cosine."""

    zero: Any


class Decay(NamedTuple):
    """2^−t: Gaussian, Laplacian in the 1-norm, chi-squared."""

    zero: Any


class RootDecay(NamedTuple):
    """2^−√t: Laplacian in the 2-norm, which is Matern 1/2."""

    zero: Any


class Matern3(NamedTuple):
    """(1 + u) e^−u, u = √t log 2."""

    zero: Any
    one: Any
    log2: Any


class Matern5(NamedTuple):
    """(1 + u + u²/3) e^−u, u = √t log 2."""

    zero: Any
    one: Any
    log2: Any
    third: Any


class Power(NamedTuple):
    """(t + shift)^degree: polynomial."""

    shift: Any
    degree: Any


class Tanh(NamedTuple):
    """tanh(t + shift): sigmoid. `twice` is 2 / log 2; beyond `high` it is one."""

    shift: Any
    one: Any
    two: Any
    twice: Any
    high: Any


def _dot_add(base, t, x, y):
    return t + x * y


def _square_add(base, t, x, y):
    return t + (x - y) * (x - y)


def _absolute_add(base, t, x, y):
    return t + abs(x - y)


def _ratio_add(base, t, x, y):
    total = x + y
    return t + (x - y) * (x - y) / (total if total > 0 else base.factor)


def _identity_of(shape, t):
    return t


def _decay_of(shape, t):
    return exp2(min(-t, shape.zero))


def _rootdecay_of(shape, t):
    return exp2(-np.sqrt(max(t, shape.zero)))


def _matern3_of(shape, t):
    s = np.sqrt(max(t, shape.zero))
    return (shape.one + shape.log2 * s) * exp2(-s)


def _matern5_of(shape, t):
    s = np.sqrt(max(t, shape.zero))
    u = shape.log2 * s
    return (shape.one + u + shape.third * u * u) * exp2(-s)


def _power_of(shape, t):
    b = t + shape.shift
    if shape.degree == 2:
        return b * b
    if shape.degree == 3:
        return b * b * b
    return b**shape.degree


def _tanh_of(shape, t):
    return shape.one - shape.two / (exp2(min(shape.twice * (t + shape.shift), shape.high)) + shape.one)


BASES = (Dot, Square, Absolute, Ratio)
SHAPES = (Identity, Decay, RootDecay, Matern3, Matern5, Power, Tanh)


def _body(kind: Any, name: str) -> Any:
    return globals()[f"_{kind.__name__.lower()}_{name}"] if kind in BASES + SHAPES else None


def add(base, t, x, y):
    """t and one feature more."""
    return _body(type(base), "add")(base, t, x, y)


def of(shape, t):
    """The kernel, from its base."""
    return _body(type(shape), "of")(shape, t)


def exp2(x):
    """2^x to a relative 6e-8 (float32) or 6e-16 (float64), for x from −126 or −1022 (where it stays) to 127."""
    return type(x)(np.exp2(max(x, -126 if isinstance(x, np.float32) else -1022)))


@intrinsic
def _bits(typing_context, x):
    """The bits of a float as an integer of its size, or those of an integer as a float."""
    to = {types.float32: types.int32, types.float64: types.int64, types.int32: types.float32}.get(x, types.float64)
    kind = {types.float32: ir.FloatType(), types.float64: ir.DoubleType()}

    def generate(context, builder, signature, args):
        return builder.bitcast(args[0], kind.get(to, ir.IntType(to.bitwidth)))

    return to(x), generate


SINGLE, DOUBLE = np.float32, np.float64
LOW32, LOW64, MAGIC32, MAGIC64 = SINGLE(-126.0), -1022.0, SINGLE(1.5 * 2**23), 1.5 * 2**52
SHIFT32 = np.int32(23)
# 2^r on [−½, ½] as 1 + A1 r + A2 r² + ..., each set fitted to the least relative error (2e-9 and 2e-16)
A1, A2, A3 = SINGLE(0.6931472028559704), SINGLE(0.24022647913498998), SINGLE(0.055503324696938736)
A4, A5, A6 = SINGLE(0.009618437366418901), SINGLE(0.001339887486660208), SINGLE(0.00015353360629281968)
ONE32 = SINGLE(1.0)


def _exp2_single(x):
    x = max(x, LOW32)
    t = x + MAGIC32  # its last bits are x rounded to an integer
    r = x - (t - MAGIC32)
    p = ((((A6 * r + A5) * r + A4) * r + A3) * r + A2) * r + A1
    p = p * r + ONE32
    return _bits(np.int32(_bits(p) + (_bits(t) << SHIFT32)))


def _exp2_double(x):
    x = max(x, LOW64)
    t = x + MAGIC64
    r = x - (t - MAGIC64)
    p = (7.0381857817214e-09 * r + 1.0208323072109335e-07) * r + 1.321565356503789e-06
    p = ((p * r + 1.5252659427834288e-05) * r + 0.00015403529994305605) * r + 0.0013333558225799096
    p = ((p * r + 0.00961812910798306) * r + 0.05550410866448183) * r + 0.240226506959091
    p = (p * r + 0.6931471805599492) * r + 1.0
    return _bits(_bits(p) + (_bits(t) << 52))


def _kind(value: Any) -> Any:
    return getattr(value, "instance_class", None)


_FLAGS = {"jit_options": {"fastmath": FAST, "forceinline": True}}
_EXACT = {"jit_options": {"fastmath": EXACT, "forceinline": True}}
overload(exp2, **_EXACT)(lambda x: _exp2_single if x == types.float32 else _exp2_double)
overload(add, **_FLAGS)(lambda base, t, x, y: _body(_kind(base), "add"))
overload(of, **_FLAGS)(lambda shape, t: _body(_kind(shape), "of"))


# --- one tile --------------------------------------------------------------------------------------------------------


@njit(**JIT, forceinline=True)
def bases(base, left, c_left, i, last, right, c_right, w, t):
    """t[r, j] of the points i, ..., i+3 on the left (none beyond `last`) and 0, ..., w-1 on the right."""
    i1, i2, i3 = min(i + 1, last), min(i + 2, last), min(i + 3, last)
    t0, t1, t2, t3 = t[0, :w], t[1, :w], t[2, :w], t[3, :w]
    a0, a1, a2, a3, c = c_left[i], c_left[i1], c_left[i2], c_left[i3], c_right[:w]
    f, d = base.factor, left.shape[0]
    ya, yb = right[0, :w], right[1, :w]
    xa0, xa1, xa2, xa3 = f * left[0, i], f * left[0, i1], f * left[0, i2], f * left[0, i3]
    xb0, xb1, xb2, xb3 = f * left[1, i], f * left[1, i1], f * left[1, i2], f * left[1, i3]
    first = 2
    if d % 4 == 0:  # four features begin, or two: then it goes on by fours
        first = 4
        yc, yd = right[2, :w], right[3, :w]
        xc0, xc1, xc2, xc3 = f * left[2, i], f * left[2, i1], f * left[2, i2], f * left[2, i3]
        xd0, xd1, xd2, xd3 = f * left[3, i], f * left[3, i1], f * left[3, i2], f * left[3, i3]
        for j in range(w):
            a, b, e, g, o = ya[j], yb[j], yc[j], yd[j], c[j]
            t0[j] = add(base, add(base, add(base, add(base, a0 + o, xa0, a), xb0, b), xc0, e), xd0, g)
            t1[j] = add(base, add(base, add(base, add(base, a1 + o, xa1, a), xb1, b), xc1, e), xd1, g)
            t2[j] = add(base, add(base, add(base, add(base, a2 + o, xa2, a), xb2, b), xc2, e), xd2, g)
            t3[j] = add(base, add(base, add(base, add(base, a3 + o, xa3, a), xb3, b), xc3, e), xd3, g)
    else:
        for j in range(w):
            a, b, o = ya[j], yb[j], c[j]
            t0[j] = add(base, add(base, a0 + o, xa0, a), xb0, b)
            t1[j] = add(base, add(base, a1 + o, xa1, a), xb1, b)
            t2[j] = add(base, add(base, a2 + o, xa2, a), xb2, b)
            t3[j] = add(base, add(base, a3 + o, xa3, a), xb3, b)
    for k in range(first, d, 4):
        ya, yb, yc, yd = right[k, :w], right[k + 1, :w], right[k + 2, :w], right[k + 3, :w]
        xa0, xa1, xa2, xa3 = f * left[k, i], f * left[k, i1], f * left[k, i2], f * left[k, i3]
        xb0, xb1, xb2, xb3 = f * left[k + 1, i], f * left[k + 1, i1], f * left[k + 1, i2], f * left[k + 1, i3]
        xc0, xc1, xc2, xc3 = f * left[k + 2, i], f * left[k + 2, i1], f * left[k + 2, i2], f * left[k + 2, i3]
        xd0, xd1, xd2, xd3 = f * left[k + 3, i], f * left[k + 3, i1], f * left[k + 3, i2], f * left[k + 3, i3]
        for j in range(w):
            a, b, e, g = ya[j], yb[j], yc[j], yd[j]
            t0[j] = add(base, add(base, add(base, add(base, t0[j], xa0, a), xb0, b), xc0, e), xd0, g)
            t1[j] = add(base, add(base, add(base, add(base, t1[j], xa1, a), xb1, b), xc1, e), xd1, g)
            t2[j] = add(base, add(base, add(base, add(base, t2[j], xa2, a), xb2, b), xc2, e), xd2, g)
            t3[j] = add(base, add(base, add(base, add(base, t3[j], xa3, a), xb3, b), xc3, e), xd3, g)


@njit(**JIT)
def fill(base, shape, left, c_left, start, stop, right, c_right, w, out):
    """out[i - start, j] = k(x_i, y_j) for the points start, ..., stop-1 of a tile and 0, ..., w-1 of another."""
    t = np.empty((4, w), out.dtype)
    for i in range(start, stop, 4):
        bases(base, left, c_left, i, stop - 1, right, c_right, w, t)
        for r in range(min(4, stop - i)):
            tr, o = t[r, :w], out[i - start + r, :w]
            for j in range(w):
                o[j] = of(shape, tr[j])


@njit(**JIT)
def bend(shape, c_left, c_right, t):
    """t becomes the kernel of c_i + c_j + t: for bases made by BLAS."""
    for i in range(t.shape[0]):
        line, a = t[i], c_left[i]
        for j in range(line.size):
            line[j] = of(shape, a + c_right[j] + line[j])


@njit(**JIT, forceinline=True)
def four(t0, t1, t2, t3, i, m, v_left, v, at, mine, back, both):
    """Spend four lines of kernel values on every column c: mine[c, i + r] += Σ_j t_r[j] v[c, at + j], lines below m
    only; and, if `both`, back[c, j] += Σ_r t_r[j] v_left[c, i + r]."""
    nothing = t0.dtype.type(0)
    for c in range(v.shape[0]):
        u, gathered = v[c, at : at + t0.size], back[c, : t0.size]
        s0, s1, s2, s3 = nothing, nothing, nothing, nothing
        if both:
            a0 = v_left[c, i]
            a1 = v_left[c, i + 1] if i + 1 < m else nothing
            a2 = v_left[c, i + 2] if i + 2 < m else nothing
            a3 = v_left[c, i + 3] if i + 3 < m else nothing
            for j in range(t0.size):
                s0 += t0[j] * u[j]
                s1 += t1[j] * u[j]
                s2 += t2[j] * u[j]
                s3 += t3[j] * u[j]
                gathered[j] += a0 * t0[j] + a1 * t1[j] + a2 * t2[j] + a3 * t3[j]
        else:
            for j in range(t0.size):
                s0 += t0[j] * u[j]
                s1 += t1[j] * u[j]
                s2 += t2[j] * u[j]
                s3 += t3[j] * u[j]
        mine[c, i] += s0
        if i + 1 < m:
            mine[c, i + 1] += s1
        if i + 2 < m:
            mine[c, i + 2] += s2
        if i + 3 < m:
            mine[c, i + 3] += s3


@njit(**JIT)
def spend(tile, v_left, v, at, out, image):
    """A tile that was written out: out[c, i] += Σ_j tile_ij v[c, at + j]; if `image` is not empty, image[c, j] += Σ_i
    tile_ij v_left[c, i] as well."""
    m, w = tile.shape
    mine, back = np.zeros((v.shape[0], m), tile.dtype), np.zeros((v.shape[0], w), tile.dtype)
    for i in range(0, m, 4):
        last = m - 1
        t0, t1, t2, t3 = tile[i], tile[min(i + 1, last)], tile[min(i + 2, last)], tile[min(i + 3, last)]
        four(t0, t1, t2, t3, i, m, v_left, v, at, mine, back, image.size > 0)
    out += mine
    if image.size:
        image += back


@njit(**JIT)
def band(base, shape, left, c_left, m, tiles, offsets, n, first, last, v_left, v, out, image, room):
    """out[c, i] += Σ_j k(x_i, y_j) v[c, j] for the m points of a tile and all points of the tiles first, ..., last-1.

    Where `image` is not empty, every entry is used twice: image[c, j] += Σ_i k(x_i, y_j) v_left[c, i] as well, with j
    counted from the start of tile `first`. `room`, (4 + columns of v, width), is memory to be used. It should begin
    where a line of the cache does: what is allocated here does so every other time, and else costs up to a fifth.
    """
    width, q = tiles.shape[2], v.shape[0]
    t, mine, back = room[:4], np.empty((q, m), left.dtype), room[4:]
    for b in range(first, last):
        w = min(width, n - b * width)
        right, c_right, u = tiles[b], offsets[b], v[0, b * width : b * width + w]
        t0, t1, t2, t3, gathered = t[0, :w], t[1, :w], t[2, :w], t[3, :w], back[0, :w]
        mine[:] = 0
        back[:] = 0
        for i in range(0, m, 4):
            bases(base, left, c_left, i, m - 1, right, c_right, w, t)
            if q > 1:
                for r in range(4):
                    line = t[r, :w]
                    for j in range(w):
                        line[j] = of(shape, line[j])
                four(t0, t1, t2, t3, i, m, v_left, v, b * width, mine, back, image.size > 0)
                continue
            # one column: kernel values are spent as they are made
            nothing = left.dtype.type(0)
            s0, s1, s2, s3 = nothing, nothing, nothing, nothing
            if image.size:
                a0 = v_left[0, i]
                a1 = v_left[0, i + 1] if i + 1 < m else nothing
                a2 = v_left[0, i + 2] if i + 2 < m else nothing
                a3 = v_left[0, i + 3] if i + 3 < m else nothing
                for j in range(w):
                    k0, k1, k2, k3 = of(shape, t0[j]), of(shape, t1[j]), of(shape, t2[j]), of(shape, t3[j])
                    s0 += k0 * u[j]
                    s1 += k1 * u[j]
                    s2 += k2 * u[j]
                    s3 += k3 * u[j]
                    gathered[j] += a0 * k0 + a1 * k1 + a2 * k2 + a3 * k3
            else:
                for j in range(w):
                    s0 += of(shape, t0[j]) * u[j]
                    s1 += of(shape, t1[j]) * u[j]
                    s2 += of(shape, t2[j]) * u[j]
                    s3 += of(shape, t3[j]) * u[j]
            mine[0, i] = s0
            if i + 1 < m:
                mine[0, i + 1] = s1
            if i + 2 < m:
                mine[0, i + 2] = s2
            if i + 3 < m:
                mine[0, i + 3] = s3
        for c in range(q):
            for i in range(m):
                out[c, i] += mine[c, i]
            if image.size:
                at = image[c, (b - first) * width : (b - first) * width + w]
                for j in range(w):
                    at[j] += back[c, j]
