"""What lines can do, as Python and on a few numbers: what compiled tests are too coarse to see, or slow to compile."""

import numpy as np
import pytest
import scipy.sparse as sp

from oracle import close, double, make_lines, vectors
from rowcol.core.view import col_lines
from rowcol.engine import lines as engine
from rowcol.engine.lines import RUN, Dense, Lookup, Woven

KINDS = ["dense", "sparse"]
descend, misfits, norms, pulls, pushes, residuals = (
    getattr(f, "py_func", f)
    for f in (engine.descend, engine.misfits, engine.norms, engine.pulls, engine.pushes, engine.residuals)
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_bodies_against_numpy_in_double_precision(kind, dtype, rng):
    """Each in float64 whatever the lines are stored in: to the last places of that."""
    X, lines = make_lines(kind, dtype, (5, 11), rng)
    A, D = X.astype(double(dtype)), double(dtype)
    s, size = vectors(1, 11, D, rng)[0], rng.random(11)
    for i in range(5):
        close(engine.norm2(lines, i), (abs(A[i].astype(np.clongdouble)) ** 2).sum().astype(float), 1e-15)
        close(engine.pull(lines, i, s), A[i] @ s, 1e-14)
        pulled, reached = engine.reach(lines, i, s, size)
        close(pulled, A[i] @ s, 1e-14)
        close(reached, abs(A[i]) @ size, 1e-7 if dtype in (np.float32, np.complex64) else 1e-14)
        out = np.full(11, 0.5)
        engine.add_squares(lines, i, 3.0, out)
        np.testing.assert_allclose(out, 0.5 + 3 * abs(A[i]) ** 2, rtol=1e-15)
        here, step = s.copy(), np.float64(0.3)
        engine.push(lines, i, step, here)
        close(here, s + step * A[i].conj(), 1e-15)
        for after in range(5):
            for f in (engine.push_pull, engine.push_then_pull):
                here = s.copy()
                close(f(lines, i, step, after, here), A[after] @ (s + step * A[i].conj()), 1e-13)
                close(here, s + step * A[i].conj(), 1e-15)


@pytest.mark.parametrize("p", [engine.BLOCK - 1, engine.BLOCK, engine.BLOCK + 1, 2 * engine.BLOCK + 3])
def test_long_lines_are_summed_whole(p, rng):
    a, s = rng.standard_normal((1, p)), rng.standard_normal(p)
    close(engine.pull(Dense(a), 0, s), a[0] @ s, 1e-11)
    pulled, reached = engine.reach(Dense(a), 0, s, abs(s))
    close(pulled, a[0] @ s, 1e-11)
    close(reached, abs(a[0]) @ abs(s), 1e-12)


def test_columns_of_a_kernel_matrix_are_looked_up(rng):
    """(18), (30): s holds Kx, so that a pull is a number of it; the lines are some columns, in any order."""
    A = rng.standard_normal((7, 9))
    K, at = A @ A.T, np.array([4, 0, 6])
    lines, lam, y = Lookup(K[at], at), 0.5, rng.standard_normal(7)
    picks = rng.integers(0, 3, 150)
    x, s = np.zeros((3, 1)), np.zeros((1, 7))
    args = np.full(3, -1.0), np.full(3, lam), y[at][:, None].copy()
    tally = descend(lines, *args, x, s, picks)
    close(args[0], np.diag(K)[at])
    expected, gain, slopes = np.zeros(7), 0.0, 0.0
    for i in at[picks]:
        slope = y[i] - K[i] @ expected - lam * expected[i]
        gain, slopes = gain + slope**2 / (K[i, i] + lam), slopes + slope**2
        expected[i] += slope / (K[i, i] + lam)
    close(x[:, 0], expected[at])
    close(s[0], K @ expected, 1e-11)
    close(tally[:, 0].sum(axis=0), [gain, slopes], 1e-11)
    assert engine.extent(lines) == 3


@pytest.mark.parametrize("kind", [float, complex])
def test_what_steps_gain_is_what_the_objective_falls_by(kind, rng):
    """½⟨x, (AAᴴ + Λ)x⟩ − Re⟨b, x⟩ falls by half the first sum of the tally, in every run; the second is of slopes."""
    dtype = np.complex128 if kind is complex else np.float64
    X, lines = make_lines("dense", dtype, (6, 4), rng)
    lam, b = np.array([0.1, 0.2, 0.0, 0.4, 0.5, 0.6]), vectors(6, 2, dtype, rng)
    x, s = np.zeros((6, 2), dtype), np.zeros((2, 4), dtype)
    G = X @ X.conj().T + np.diag(lam)

    def objective():
        # the engine keeps the row rule: (XXᴴ + Λ) x = b
        return np.array([((x[:, q].conj() @ G @ x[:, q]) / 2 - b[:, q].conj() @ x[:, q]).real for q in range(2)])

    picks = rng.integers(0, 6, 2 * RUN + 5)
    tallies, fell = [], []
    for start in range(0, picks.size, RUN):
        before = objective()
        tallies.append(descend(lines, np.full(6, -1.0), lam, b, x, s, picks[start : start + RUN])[0])
        fell.append(before - objective())
    close(np.array(tallies)[:, :, 0], 2 * np.array(fell), 1e-8)
    x, s = np.zeros((6, 2), dtype), np.zeros((2, 4), dtype)
    whole = descend(lines, np.full(6, -1.0), lam, b, x, s, picks)
    assert whole.shape == (3, 2, 2)
    np.testing.assert_array_equal(whole, np.array(tallies))
    z, expected = np.zeros((6, 2), dtype), np.zeros((3, 2))
    for t, i in enumerate(picks):
        slope = b[i] - G[i] @ z
        z[i] += slope / G[i, i].real
        expected[t // RUN] += abs(slope) ** 2
    close(whole[:, :, 1], expected, 1e-10)
    close(x, z, 1e-11)


def test_no_picks_and_lines_that_count_for_nothing(rng):
    _, lines = make_lines("dense", np.float64, (3, 4), rng)
    x, s = np.zeros((3, 1)), rng.standard_normal((1, 4))
    before = s.copy()
    assert descend(lines, np.full(3, -1.0), np.zeros(3), np.ones((3, 1)), x, s, np.empty(0, np.int64)).shape == (
        0,
        1,
        2,
    )
    diag = np.array([0.0, 0.0, -1.0])  # rows of weight zero are known to be nothing
    tally = descend(lines, diag, np.zeros(3), np.ones((3, 1)), x, s, np.array([0, 1, 1]))
    assert not x.any()
    np.testing.assert_array_equal(s, before)
    assert tally[0, 0, 0] == 0
    assert diag.tolist() == [0, 0, -1]


def test_passes_keep_to_their_lines(rng):
    X, lines = make_lines("dense", np.float64, (6, 4), rng)
    s, w = rng.standard_normal((2, 4)), rng.random(6)
    y = rng.standard_normal((2, 6))
    for start, stop in ((0, 6), (2, 5), (3, 3)):
        part = slice(start, stop)
        out, length, r = np.full((2, 6), 7.0), np.full(6, 7.0), np.full((2, 6), 7.0)
        pulls(lines, start, stop, s, out)
        norms(lines, start, stop, length)
        image, square = np.zeros((2, 4)), np.zeros(4)
        residuals(lines, start, stop, y, s, w, r, image, square)
        rho = y - s @ X.T
        for got, full in ((out, s @ X.T), (length, (X**2).sum(axis=1)), (r, rho)):
            expected = np.full_like(got, 7.0)
            expected[..., part] = full[..., part]
            np.testing.assert_allclose(got, expected)
        np.testing.assert_allclose(image, (w * rho)[:, part] @ X[part], atol=1e-14)
        np.testing.assert_allclose(square, w[part] @ X[part] ** 2, atol=1e-14)
        residuals(lines, start, stop, y, s, w, r, image, square[:0])
        pushed = np.zeros((2, 4))
        pushes(lines, start, stop, y, pushed)
        np.testing.assert_allclose(pushed, y[:, part] @ X[part], atol=1e-14)
        r[:] = 7.0
        total = misfits(lines, start, stop, y, s, abs(s), r)
        np.testing.assert_allclose(r[:, part], rho[:, part])
        assert (np.delete(r, np.r_[part], axis=1) == 7).all()
        np.testing.assert_allclose(total, ((abs(s) @ abs(X[part]).T) ** 2).sum(axis=1), atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_woven_lines_are_columns_then_rows_that_chase_what_is_left(kind, dtype, rng):
    """Columns see s[:n]; rows see s[n:], and their pull is less by conj(s_i): they chase y_i + s_i."""
    n, p = 4, 3
    X, row = make_lines(kind, dtype, (n, p), rng, 0.9)
    Z = sp.csr_array(X) if kind == "sparse" else X
    lines, s = Woven(col_lines(Z)[0], row), vectors(1, n + p, dtype, rng)[0]
    step = vectors(1, 1, dtype, rng)[0, 0]
    assert engine.extent(lines) == n + p

    def pulled(i, s):
        return X[:, i] @ s[:n] if i < p else X[i - p] @ s[n:] - s[i - p].conj()

    def pushed(i, s):
        along = np.concatenate([X[:, i].conj(), np.zeros(p)] if i < p else [np.zeros(n), X[i - p].conj()])
        return s + step * along

    for i in range(n + p):
        close(engine.norm2(lines, i), (abs(X[:, i] if i < p else X[i - p]) ** 2).sum())
        close(engine.pull(lines, i, s), pulled(i, s))
        here = s.copy()
        engine.push(lines, i, step, here)
        close(here, pushed(i, s))
        for after in range(n + p):
            here = s.copy()
            close(engine.push_pull(lines, i, step, after, here), pulled(after, pushed(i, s)))
            close(here, pushed(i, s))
