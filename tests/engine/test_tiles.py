"""Tiles on a few points, compiled or as plain Python: every base and shape against its formula, both ways to use it."""

import numpy as np
import pytest
from numba import njit

from rowcol.engine import tiles

LOG2 = np.log(2.0)
SHAPES = [
    (tiles.Identity, (0.0,), lambda t: t),
    (tiles.Decay, (0.0,), lambda t: np.exp2(-t)),
    (tiles.RootDecay, (0.0,), lambda t: np.exp2(-np.sqrt(t))),
    (tiles.Matern3, (0.0, 1.0, LOG2), lambda t: (1 + LOG2 * np.sqrt(t)) * np.exp(-LOG2 * np.sqrt(t))),
    (
        tiles.Matern5,
        (0.0, 1.0, LOG2, 1 / 3),
        lambda t: (1 + LOG2 * np.sqrt(t) + (LOG2 * np.sqrt(t)) ** 2 / 3) * np.exp(-LOG2 * np.sqrt(t)),
    ),
    (tiles.Power, (0.5, 1), lambda t: t + 0.5),
    (tiles.Power, (0.5, 2), lambda t: (t + 0.5) ** 2),
    (tiles.Power, (0.5, 3), lambda t: (t + 0.5) ** 3),
    (tiles.Power, (0.5, 4), lambda t: (t + 0.5) ** 4),
    (tiles.Tanh, (0.1, 1.0, 2.0, 2 / LOG2, 126.0), lambda t: np.tanh(t + 0.1)),
]
BASES = [
    (tiles.Dot, lambda x, y: (x[:, None] * y).sum(axis=-1)),
    (tiles.Square, lambda x, y: ((x[:, None] - y) ** 2).sum(axis=-1)),
    (tiles.Absolute, lambda x, y: np.abs(x[:, None] - y).sum(axis=-1)),
    (tiles.Ratio, lambda x, y: ((x[:, None] - y) ** 2 / (x[:, None] + y)).sum(axis=-1)),
]


def in_tiles(X, width, dtype):
    n, d = X.shape
    out = np.zeros((-(-n // width), d + d % 2, width), dtype)
    for i, x in enumerate(X):
        out[i // width, :d, i % width] = x
    return out, np.zeros((len(out), width), dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 2, 3, 4, 6, 8, 9])
@pytest.mark.parametrize(("base", "truth"), BASES, ids=lambda v: getattr(v, "__name__", "truth"))
def test_bases(base, truth, d, dtype):
    rng = np.random.default_rng(0)
    X, Y = rng.random((7, d)) + 0.1, rng.random((10, d)) + 0.1
    (left, c), (right, e) = in_tiles(X, 8, dtype), in_tiles(Y, 12, dtype)
    c[:], e[:] = 0.25, 0.5
    out = np.empty((5, 10), dtype)
    tiles.fill(base(dtype(1)), tiles.Identity(dtype(0)), left[0], c[0], 2, 7, right[0], e[0], 10, out)
    assert np.allclose(out, truth(X, Y)[2:] + 0.75, rtol=20 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("shape", "constants", "truth"), SHAPES, ids=lambda v: getattr(v, "__name__", str(v)[:12]))
def test_shapes_and_bands(shape, constants, truth, dtype):
    """Written out, made of given bases, and multiplied on the way: to one side and to both."""
    made = shape(*(dtype(v) if isinstance(v, float) else v for v in constants))
    rng = np.random.default_rng(0)
    X = rng.random((11, 3))
    T, c = in_tiles(X, 4, dtype)
    t = ((X[:, None] - X) ** 2).sum(axis=-1)
    K, tol = truth(t), 50 * np.finfo(dtype).eps
    bent = t.astype(dtype)
    tiles.bend(made, np.zeros(11, dtype), np.zeros(11, dtype), bent)
    assert np.allclose(bent, K, rtol=tol, atol=tol)
    base = tiles.Square(dtype(1))
    for columns in (1, 3):
        v, out = rng.standard_normal((columns, 11)), np.zeros((columns, 11))
        other = np.zeros((columns, 11))
        w, nothing, room = v.astype(dtype), np.empty((columns, 0)), np.full((4 + columns, 4), np.nan, dtype)
        for b in range(3):
            at = slice(4 * b, min(4 * b + 4, 11))
            mine, image = w[:, at], np.zeros((columns, 11 - at.stop))
            common = base, made, T[b], c[b], mine.shape[1], T, c, 11
            tiles.band(*common, b, b + 1, mine, w, out[:, at], nothing, room)
            tiles.spend(bent[at, at].copy(), mine, w, 4 * b, other[:, at], nothing)
            if image.size:
                tiles.band(*common, b + 1, 3, mine, w, out[:, at], image, room)
                out[:, at.stop :] += image
                tiles.spend(bent[at, at.stop :].copy(), mine, w, at.stop, other[:, at], other[:, at.stop :])
        assert np.allclose(out, v @ K, rtol=tol, atol=tol * 11)
        assert np.allclose(other, v @ K, rtol=tol, atol=tol * 11)


@njit
def compiled_exp2(x):
    return tiles.exp2(x)


def bits(x):
    """The twin of `_bits`: the same bits, read as a float or as an integer."""
    x = x if hasattr(x, "view") else np.float64(x)
    return x.view({"f4": np.int32, "f8": np.int64, "i4": np.float32, "i8": np.float64}[x.dtype.str[1:]])


@pytest.mark.parametrize(("dtype", "low", "tol"), [(np.float32, -126, 1.3e-7), (np.float64, -1022, 7e-16)])
def test_powers_of_two(dtype, low, tol, monkeypatch):
    """Compiled, as Python, and what is compiled run as Python: all in long double's last places, down to the limit."""
    x = np.concatenate([np.linspace(low, 127, 1001), np.linspace(-1, 1, 201), [0.5, -0.5, 1.5, low + 0.5]]).astype(
        dtype
    )
    truth = np.exp2(x.astype(np.longdouble))
    body = tiles._exp2_single if dtype is np.float32 else tiles._exp2_double
    for f in (compiled_exp2, tiles.exp2, body):
        if f is body:
            monkeypatch.setattr(tiles, "_bits", bits)
        found = [f(v) for v in x]
        assert type(found[0]) in (dtype, float)
        assert (abs(np.array(found, dtype) - truth) <= tol * truth).all()
        for v in (low - 0.5, 2 * low, 100 * low):
            assert f(dtype(v)) == 2.0**low
        assert [f(dtype(k)) for k in (-3, 0, 1, 10)] == [0.125, 1, 2, 1024]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("shape", "constants", "truth"), SHAPES, ids=lambda v: getattr(v, "__name__", str(v)[:12]))
def test_distances_that_rounding_took_below_zero_are_zero(shape, constants, truth, dtype):
    made = shape(*(dtype(v) if isinstance(v, float) else v for v in constants))
    bent = np.array([[-0.3, -1e-9, 0.0]]).astype(dtype)
    t = bent if shape in (tiles.Identity, tiles.Power, tiles.Tanh) else np.zeros((1, 3))
    expected = truth(t.astype(float))
    tiles.bend(made, np.zeros(1, dtype), np.zeros(3, dtype), bent)
    np.testing.assert_allclose(bent, expected, rtol=20 * np.finfo(dtype).eps, atol=5 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tanh_is_one_far_out(dtype):
    made = tiles.Tanh(*(dtype(v) for v in (0.1, 1.0, 2.0, 2 / LOG2, 126.0)))
    bent = np.array([[1e4, 60.0, -1e4]]).astype(dtype)
    tiles.bend(made, np.zeros(1, dtype), np.zeros(3, dtype), bent)
    assert bent.tolist() == [[1, 1, -1]]


def test_a_ratio_of_nothing_is_nothing():
    base, zeros = tiles.Ratio(1.0), np.zeros((2, 4))
    out = np.full((4, 4), np.nan)
    tiles.fill(base, tiles.Identity(0.0), zeros, np.zeros(4), 0, 4, zeros, np.zeros(4), 4, out)
    assert not out.any()


@pytest.mark.parametrize("width", range(1, 11))
def test_every_remainder(width):
    """Tiles of any width, the last one full or not, for one vector and for several: the same as the matrix."""
    fill, band, spend = (getattr(f, "py_func", f) for f in (tiles.fill, tiles.band, tiles.spend))
    rng = np.random.default_rng(width)
    base, shape = tiles.Square(1.0), tiles.Decay(0.0)
    for n in (2 * width, 2 * width + 1, max(3 * width - 1, 2 * width)):
        X = rng.random((n, 2))
        T, _ = in_tiles(X, width, np.float64)
        c = 0.1 * rng.random((len(T), width))
        offset = c.ravel()[:n]
        K = np.exp2(-((X[:, None] - X) ** 2).sum(axis=-1) - offset[:, None] - offset)
        m = min(width, n)
        for start in range(m):
            out = np.full((m - start, width), np.nan)
            fill(base, shape, T[0], c[0], start, m, T[1], c[1], width, out)
            np.testing.assert_allclose(out, K[start:m, width : 2 * width], rtol=1e-14)
        for q in (1, 2, 3):
            v = rng.standard_normal((q, n))
            out, image = rng.standard_normal((q, m)), rng.standard_normal((q, n - width))
            wanted = out + v[:, width:] @ K[width:, :m], image + v[:, :m] @ K[:m, width:]
            alone = out.copy()
            args = base, shape, T[0], c[0], m, T, c, n, 1, len(T), v[:, :m].copy(), v
            room = np.full((4 + q, width), np.nan)  # whatever was there before
            band(*args, alone, np.empty((q, 0)), room)
            np.testing.assert_allclose(alone, wanted[0], rtol=1e-13, atol=1e-13)
            band(*args, out, image, room)
            np.testing.assert_allclose(out, wanted[0], rtol=1e-13, atol=1e-13)
            np.testing.assert_allclose(image, wanted[1], rtol=1e-13, atol=1e-13)
            for w in {1, n - width}:
                tile = np.ascontiguousarray(K[:m, width : width + w])
                out, image = rng.standard_normal((q, m)), rng.standard_normal((q, w))
                wanted = out + v[:, width : width + w] @ tile.T, image + v[:, :m] @ tile
                alone = out.copy()
                spend(tile, v[:, :m].copy(), v, width, alone, np.empty((q, 0)))
                np.testing.assert_allclose(alone, wanted[0], rtol=1e-13, atol=1e-13)
                spend(tile, v[:, :m].copy(), v, width, out, image)
                np.testing.assert_allclose(out, wanted[0], rtol=1e-13, atol=1e-13)
                np.testing.assert_allclose(image, wanted[1], rtol=1e-13, atol=1e-13)


def test_bases_of_others_are_bent_with_what_each_point_adds(rng):
    t, a, b = rng.random((3, 5)), rng.random(3), rng.random(5)
    bent = t.copy()
    tiles.bend(tiles.Identity(0.0), a, b, bent)
    np.testing.assert_allclose(bent, t + a[:, None] + b, rtol=1e-15)
