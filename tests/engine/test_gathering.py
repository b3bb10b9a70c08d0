"""Sums over rows in cache against NumPy in long double, compiled and as plain Python."""

from itertools import pairwise

import numpy as np
import pytest

from rowcol.core.rowsums import looked, row_sums
from rowcol.engine.gathering import ACROSS, CHAIN, ROWS, gather, look, whole

# plain Python is slow
SIZES = [
    (n, p, True)
    for n in (1, 3, 4, ROWS - 1, ROWS, 2 * ROWS + 5)
    for p in (1, 7, 8, ACROSS - 1, ACROSS, ACROSS + 1, ACROSS + 5, 3 * 17)
]
SIZES += [(1, 1, False), (6, ACROSS + 1, False), (ROWS + 1, 3, False)]


def plain(f, compiled):
    return f if compiled else getattr(f, "py_func", f)


@pytest.mark.parametrize("stored", [np.float64, np.float32])
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize(("n", "p", "compiled"), SIZES)
def test_gather_adds_every_sum(n, p, compiled, single, stored, rng):
    X, about, y = rng.standard_normal((n, p)).astype(stored), rng.standard_normal(p), rng.standard_normal((2, n))
    wide = -(-p // ACROSS) * ACROSS
    few = np.zeros((ROWS, wide), np.float32 if single else np.float64)
    G, slope, square, total = np.zeros((wide, wide)), *(rng.standard_normal(k) for k in ((2, p), p, p))
    D = X.astype(np.longdouble) - about
    wanted = [a + b for a, b in zip((slope, square, total), (y @ D, (D**2).sum(axis=0), D.sum(axis=0)), strict=True)]
    kept = X.copy()
    X.flags.writeable = False
    plain(gather, compiled)(X, about, y, few, G, slope, square, total)
    for got, want in zip((slope, square, total), wanted, strict=True):
        np.testing.assert_allclose(got, want.astype(float), rtol=1e-13, atol=1e-13 * n)
    size = np.sqrt(np.multiply.outer((D**2).sum(axis=0), (D**2).sum(axis=0))).astype(float)
    off = np.abs(whole(G, p) - (D.T @ D).astype(float)) / size
    assert off.max() <= (2e-6 if single else 1e-14)
    np.testing.assert_array_equal(X, kept)


@pytest.mark.parametrize("single", [False, True])
def test_what_is_no_number_reaches_the_column_it_is_in(single, rng):
    X = rng.standard_normal((ROWS + 9, 20))
    X[-1, 3] = np.nan
    found = row_sums([(slice(0, len(X)), X)], 20, np.ones((1, len(X))), None, single)
    assert np.isnan(np.diagonal(found.gram)).nonzero()[0].tolist() == [3]
    assert np.isnan(found.column2).nonzero()[0].tolist() == [3]


@pytest.mark.parametrize("q", [1, 3, 4, 6])
@pytest.mark.parametrize("about", [False, True])
def test_row_sums_of_pieces_are_those_of_all_rows(q, about, rng):
    """Few right-hand sides go by our own loop, several by BLAS; a piece may be of one row."""
    X, y = rng.standard_normal((700, 37)) + 5.0, rng.standard_normal((q, 700))
    cuts = [0, 1, 300, 301, 640, 700]
    pieces = [(slice(a, b), X[a:b]) for a, b in pairwise(cuts)]
    c = X[:50].mean(axis=0) if about else None
    found = row_sums(iter(pieces), 37, y, c, False)
    D = X - (0.0 if c is None else c)
    for got, want in zip(found, (D.T @ D, y @ D, (D**2).sum(axis=0), D.sum(axis=0)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-9)
    np.testing.assert_array_equal(found.gram, found.gram.T)


@pytest.mark.parametrize("stored", [np.float64, np.float32])
@pytest.mark.parametrize("asked", [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize(
    ("n", "compiled"), [(1, True), (3, True), (4, True), (1, False), (7, False), (CHAIN, True), (2 * CHAIN + 7, True)]
)
def test_look_adds_every_sum(n, compiled, asked, stored, rng):
    p, (dual, squares) = 29, asked
    X, y, beta, w = (rng.standard_normal(k) for k in ((n, p), n, p, n))
    X, w = X.astype(stored), w**2
    slope, image, square = (rng.standard_normal(k) for k in (p, p * dual, p * squares))
    alpha, r = rng.standard_normal(n * dual), np.empty(n)
    Z = X.astype(np.longdouble)
    rho = y - Z @ beta
    wanted = [rho, slope + Z.T @ (w * rho), image + Z.T @ alpha if dual else image]
    wanted.append(square + w @ Z**2 if squares else square)
    plain(look, compiled)(X, y, beta, w, alpha, r, slope, image, square)
    for got, want in zip((r, slope, image, square), wanted, strict=True):
        np.testing.assert_allclose(got, np.asarray(want, float), rtol=1e-13, atol=1e-14 * (n + p))


@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.complex128])
def test_looked_is_a_look_at_all_rows_within_its_rounding_term(q, weighted, kind, rng):
    n, p = 501, 12
    X = (rng.standard_normal((n, p)) + (1j * rng.standard_normal((n, p)) if kind == np.complex128 else 0)).astype(kind)
    wide = np.complex128 if kind == np.complex128 else np.float64
    y, beta = rng.standard_normal((q, n)).astype(wide), rng.standard_normal((q, p)).astype(wide)
    w, alpha = rng.random(n) if weighted else None, rng.standard_normal((q, n)).astype(wide)
    pieces = [(slice(a, a + 100), X[a : a + 100]) for a in range(0, n, 100)]
    found = looked(iter(pieces), y.copy(), beta, w, True, alpha)
    Z, weight = X.astype(np.clongdouble), np.ones(n) if w is None else w
    rho = y - beta @ Z.T
    unit = 2.0**-53 * max(found.terms) * 10 * n
    wanted = rho, (weight * rho) @ Z.conj(), alpha @ Z.conj(), weight @ np.abs(Z) ** 2
    for got, want in zip(found[:4], wanted, strict=True):
        assert np.abs(got - want).max() <= unit
    assert found.terms[0] >= p
    assert found.terms[1] >= 100
    one = looked(iter([(slice(0, n), X)]), y, beta, w, False)
    assert (one.terms[1] < n) == (q == 1 and kind != np.complex128)  # by our own loop in chains, by BLAS in blocks
    bare = looked(iter(pieces), y, beta, w, False)
    assert bare.image is None
    assert bare.squares is None
