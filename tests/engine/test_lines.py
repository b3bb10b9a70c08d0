"""Compiled lines against NumPy, kind by kind, and against their own Python bodies."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from oracle import as_given, close, double, jump, make_lines, vectors
from rowcol.core.view import col_lines, pack, pieces, rows, state
from rowcol.engine import lines as engine
from rowcol.engine.lines import RUN, Dense, Sparse, Woven, descend, misfits, norms, pulls, pushes, residuals

KINDS = ["dense", "sparse"]
# compiling takes most of the time of a first run: what complex64 adds to the others is left to `make slow`
DTYPES = [np.float32, np.float64, pytest.param(np.complex64, marks=pytest.mark.slow), np.complex128]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (7, 1), (5, 3), (4, 33), (3, 5000)])
def test_passes_are_matrix_products(kind, dtype, shape, rng):
    X, lines = make_lines(kind, dtype, shape, rng)
    (n, p), D = shape, double(dtype)
    Z = X.astype(D)
    s, c, y, w = vectors(2, p, D, rng), vectors(2, n, D, rng), vectors(2, n, D, rng), rng.random(n)
    out = np.empty((2, n), D)
    pulls(lines, 0, n, s, out)
    np.testing.assert_allclose(out, s @ Z.T, rtol=1e-11, atol=1e-10)
    out = s.copy()
    pushes(lines, 0, n, c, out)
    np.testing.assert_allclose(out, s + c @ Z.conj(), rtol=1e-11, atol=1e-10)
    r, image = np.empty((2, n), D), np.zeros((2, p), D)
    across = np.zeros(p)
    residuals(lines, 0, n, y, s, w, r, image, across)
    np.testing.assert_allclose(r, y - s @ Z.T, rtol=1e-11, atol=1e-10)
    np.testing.assert_allclose(image, (w * r) @ Z.conj(), rtol=1e-11, atol=1e-10)
    r2 = np.empty((2, n), D)
    total = misfits(lines, 0, n, y, s, abs(s), r2)
    np.testing.assert_allclose(r2, r, rtol=1e-11, atol=1e-10)
    np.testing.assert_allclose(total, ((abs(s) @ abs(Z).T) ** 2).sum(1), rtol=1e-6)
    length = np.empty(n)
    norms(lines, 0, n, length)
    np.testing.assert_allclose(length, (abs(Z) ** 2).sum(1), rtol=1e-12)
    np.testing.assert_allclose(across, w @ abs(Z) ** 2, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("side", ["rows", "cols", "both"])
def test_dense_and_sparse_take_the_same_steps(side, dtype, rng):
    X, _ = make_lines("sparse", dtype, (23, 9), rng)
    y = X @ vectors(1, 9, double(dtype), rng)[0]
    picks = rng.integers(0, {"rows": 23, "cols": 9, "both": 32}[side], 300)
    dense = jump(side, X, y, picks)
    for Z in (sp.csr_array(X), sp.csc_array(X)):
        for a, b in zip(jump(side, Z, y, picks), dense, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                close(a, b, 1e-9)


@given(st.integers(0, 10**6), st.sampled_from(["rows", "cols", "both"]), st.sampled_from(KINDS))
def test_each_right_hand_side_takes_the_steps_it_takes_alone_bit_for_bit(seed, side, kind):
    rng = np.random.default_rng(seed)
    n, p, q = (int(v) for v in rng.integers(1, 40, 3))
    X, _ = make_lines(kind, np.float64, (n, p), rng)
    Y = rng.standard_normal((n, q))
    Z = sp.csr_array(X) if kind == "sparse" else X
    alpha = 0.0 if side == "both" else float(rng.integers(0, 2))
    picks = rng.integers(0, {"rows": n, "cols": p, "both": n + p}[side], 150)
    block = jump(side, Z, Y, picks, alpha)
    for k in range(q):
        alone = jump(side, Z, Y[:, k], picks, alpha)
        for a, b in zip(block, alone, strict=True):
            if a is not None:
                np.testing.assert_array_equal(a[k], b[0])


def test_single_precision_lines_step_in_double(rng):
    """float32 rows with float64 s: as good as float64 arithmetic on the rounded rows."""
    X = rng.standard_normal((50, 10)).astype(np.float32)
    y = (X.astype(float) @ rng.standard_normal(10)).astype(float)
    picks = rng.integers(0, 50, 400)
    close(jump("rows", X, y, picks)[0], jump("rows", X.astype(float), y, picks)[0], 1e-13)


def test_a_norm_met_on_the_way_is_the_norm(rng):
    X = rng.standard_normal((6, 4))
    diag, lam = np.full(12, -1.0)[::2], np.zeros(12)[::2]
    b, x, s = np.ones((12, 2))[::2, :1], np.zeros((12, 2))[::2, :1], np.zeros((1, 4))
    descend(Dense(engine_view(X)), diag, lam, b, x, s, np.array([4, 1]))
    np.testing.assert_allclose(diag[[1, 4]], (X[[1, 4]] ** 2).sum(1))
    assert (diag[[0, 2, 3, 5]] == -1).all()


def engine_view(a):
    a = a.view()
    a.flags.writeable = False
    return a


def test_lines_of_zeros_change_nothing(rng):
    X = rng.standard_normal((5, 3))
    X[2] = 0
    beta, alpha, _ = jump("rows", X, np.ones(5), [2, 2, 2])
    assert not beta.any()
    assert not alpha.any()


def test_nan_stays_nan():
    X = np.ones((3, 2))
    X[1, 0] = np.nan
    assert np.isnan(jump("rows", X, np.ones(3), [0, 1, 2])[0]).any()


# --- intrinsics and their Python twins --------------------------------------------------------------------------


@njit
def compiled_row(a, i):
    return engine.row(a, i).copy()


@njit
def compiled_span(a, start, stop):
    return engine.span(a, start, stop).copy()


@njit
def compiled_fetch(a, i, offset):
    engine.fetch(a, i, offset)
    return a[i]


@njit(fastmath=engine.FAST)  # as those who call it are compiled: what they allow is not to reach its sums
def compiled_squares(a):
    return engine.sum_of_squares(a)


@pytest.mark.parametrize("dtype", DTYPES)
def test_squares_are_summed_in_one_order_whoever_sums_them(dtype, rng):
    for length in [0, 1, 3, 7, 8, 9, 15, 16, 17, 24, 25, 31, 100, 4096, 5001]:
        a = vectors(1, length, double(dtype), rng)[0].astype(dtype)
        found = compiled_squares(a)
        assert found == engine.sum_of_squares(a)  # bit for bit: in double precision, no product and sum in one
        np.testing.assert_allclose(found, (abs(a.astype(double(dtype))) ** 2).sum(), rtol=1e-14)
    assert np.isnan(compiled_squares(np.array([1.0, np.nan, 3.0] * 9, dtype)))
    assert compiled_squares(np.full(9, 1e30, dtype)) > 8e60  # of numbers whose squares single precision does not have


@pytest.mark.parametrize("dtype", DTYPES)
def test_intrinsics_equal_their_twins(dtype, rng):
    a = rng.standard_normal((5, 7)).astype(dtype)
    for i in range(5):
        np.testing.assert_array_equal(compiled_row(a, i), engine.row(a, i))
    for start, stop in [(0, 7), (2, 2), (3, 6)]:
        np.testing.assert_array_equal(compiled_span(a[1], start, stop), engine.span(a[1], start, stop))
    assert engine.fetch(a[0], 3, 0) is None
    assert compiled_fetch(a[0], 3, 0) == a[0, 3]
    strided = a[:, 2]
    assert compiled_fetch(strided, 4, 0) == a[4, 2]


@pytest.mark.parametrize("kind", [*KINDS, "woven"])
def test_bodies_run_as_python_equal_the_compiled_ones(kind, rng):
    X, rows = make_lines("dense" if kind == "woven" else kind, np.float64, (6, 5), rng)
    lines = Woven(col_lines(X)[0], rows) if kind == "woven" else rows
    k = 11 if kind == "woven" else 5
    m = engine.extent(lines)
    s = rng.standard_normal(k)
    for i in range(m):
        for after in range(m):
            mine, theirs = s.copy(), s.copy()
            pulled = engine.push_pull(lines, i, 0.7, after, mine)
            expected = compiled_push_pull(lines, i, 0.7, after, theirs)
            assert pulled == pytest.approx(expected, rel=1e-13, abs=1e-13)
            np.testing.assert_allclose(mine, theirs, rtol=1e-14, atol=1e-15)
        assert engine.norm2(lines, i) == pytest.approx(compiled_norm2(lines, i), rel=1e-14)
    picks = rng.integers(0, m, 40)
    args = [np.full(2 * m, -1.0)[::2], np.full(2 * m, 0.5)[::2], np.ones((m, 2))[:, :1]]
    results = []
    for function in (descend, getattr(descend, "py_func", descend)):  # one and the same without JIT
        x, image = np.zeros((m, 2))[:, :1], np.zeros((1, k))
        tally = function(lines, *[a.copy() if a.ndim == 2 else a for a in args], x, image, picks)
        results.append((x, image, tally))
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


@njit
def compiled_push_pull(lines, i, step, after, s):
    return engine.push_pull(lines, i, step, after, s)


@njit
def compiled_norm2(lines, i):
    return engine.norm2(lines, i)


def test_sparse_lines_of_either_index_width(rng):
    X, narrow = make_lines("sparse", np.float64, (6, 5), rng)
    wide = Sparse(narrow.indptr, engine_view(narrow.indices.astype(np.int64)), narrow.data)
    out = np.empty((2, 1, 6))
    s = rng.standard_normal((1, 5))
    for lines, o in zip((narrow, wide), out, strict=True):
        pulls(lines, 0, 6, s, o)
    np.testing.assert_array_equal(out[0], out[1])
    np.testing.assert_allclose(out[0][0], X @ s[0])


@given(st.integers(0, 10**6), st.sampled_from(["rows", "cols", "both"]), st.integers(0, 6))
def test_cutting_the_picks_between_runs_changes_no_bit(seed, side, at):
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((20, 9)), rng.standard_normal((20, 3))
    picks = rng.integers(0, {"rows": 20, "cols": 9, "both": 29}[side], 6 * RUN + 17)
    whole = jump(side, X, Y, picks)[2]
    cut = jump(side, X, Y, picks, parts=[picks[: at * RUN], picks[at * RUN :]])[2]
    np.testing.assert_array_equal(whole, cut)


def test_pieces_are_cut_between_runs_and_cover_everything():
    for count, cost in ((1, 1e12), (1000, 1e7), (100_000, 2e4), (10**7, 10.0)):
        cuts = pieces(count, cost)
        assert [a for a, _ in cuts[1:]] == [b for _, b in cuts[:-1]]
        assert (cuts[0][0], cuts[-1][1]) == (0, count)
        assert all(a % RUN == 0 for a, _ in cuts)
        assert all((b - a) * cost <= 64e6 or b - a <= RUN for a, b in cuts)


@pytest.mark.parametrize("p", [1, 3, 7, 20, 50])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_packed_lines_take_the_same_steps_bit_for_bit(dtype, p, rng):
    """One right-hand side is packed, several are not: a column of y must not notice."""
    X, y = rng.standard_normal((40, p)).astype(dtype), rng.standard_normal(40)
    view = rows(as_given(X, y, 0.5))
    plain = state(view)
    packed_view, packed = pack(view, state(view))
    picks = rng.integers(0, 40, 500)
    for v, now in ((view, plain), (packed_view, packed)):
        t = now.table
        descend(v.lines, t["diag"], t["lam"], t["b"], t["x"], now.s, picks)
    np.testing.assert_array_equal(packed.s, plain.s)
    np.testing.assert_array_equal(packed.table["x"], plain.table["x"])
    assert packed.table.ctypes.data % 64 == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("p", [1, 2, 3, 5, 20, 333])
def test_norms_have_the_same_bits_in_a_pass_and_when_first_met(kind, dtype, p, rng):
    _, lines = make_lines(kind, dtype, (30, p), rng)
    D = double(dtype)
    ahead_of_time, met = np.empty(30), np.full(60, -1.0)[::2]
    norms(lines, 0, 30, ahead_of_time)
    b, x = np.zeros((30, 2), D)[:, :1], np.zeros((30, 2), D)[:, :1]
    descend(lines, met, np.zeros(60)[::2], b, x, np.zeros((1, p), D), np.arange(30))
    np.testing.assert_array_equal(met, ahead_of_time)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_step_ends_at_the_bound_it_would_cross(kind, dtype, rng):
    """Projected coordinate descent, typed plainly; and a box that is never met changes no bit."""
    X, lines = make_lines(kind, dtype, (6, 9), rng)
    A, lam, picks = X.astype(np.float64), 0.3, rng.integers(0, 6, 200)
    s0 = rng.standard_normal((2, 9))
    low, high = -0.1 * rng.random((6, 2)), 0.1 * rng.random((6, 2))
    ends = []
    for box in ((low, high), (-1e9 + low, np.full((6, 2), np.inf)), None):
        x, s = np.zeros((6, 2)), s0.copy()
        rest = () if box is None else (box,)
        tally = descend(lines, np.full(6, -1.0), np.full(6, lam), np.zeros((6, 2)), x, s, picks, *rest)
        ends.append((x, s, tally))
    np.testing.assert_array_equal(ends[1][0], ends[2][0])
    np.testing.assert_array_equal(ends[1][1], ends[2][1])
    np.testing.assert_array_equal(ends[1][2], ends[2][2])
    x, gains = np.zeros((6, 2)), np.zeros(2)
    for i in picks:
        curvature = A[i] @ A[i] + lam
        there = np.clip(x[i] - ((s0 + x.T @ A) @ A[i] + lam * x[i]) / curvature, low[i], high[i])
        gains += curvature * (there - x[i]) ** 2
        x[i] = there
    close(ends[0][0], x)
    close(ends[0][1], s0 + x.T @ A)
    close(ends[0][2][:, :, 0].sum(axis=0), gains)
    at = (x == low) | (x == high)
    assert at.any()
    np.testing.assert_array_equal(ends[0][0][at], x[at])
    # NaN is no bound, and is to be found
    s0[0, 0] = np.nan
    tally = descend(lines, np.full(6, -1.0), np.full(6, lam), np.zeros((6, 2)), x, s0, np.arange(6), (low, high))
    assert not np.isfinite(tally[:, 0]).all()
