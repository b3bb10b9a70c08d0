"""Every sum of a look is within the bound its chains give, term by term, whoever multiplies."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

from rowcol.core.products import products
from rowcol.core.sums import sums
from rowcol.engine.across import ROWS

UNIT = 2.0**-53
SHAPES = [(700, 40), (5000, 30), (40, 9000), (2 * ROWS + 7, 900), (30, 20_000), (60, 60)]


def fine(a):
    return a.astype(np.clongdouble if np.iscomplexobj(a) else np.longdouble)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("layout", ["C", "F", "csr", "csc"])
@pytest.mark.parametrize("q", [1, 5])
@pytest.mark.parametrize("blas", [True, False])
@pytest.mark.parametrize("kind", [float, complex])
def test_sums_are_as_exact_as_they_say(shape, layout, q, blas, kind, rng):
    n, p = shape
    draw = lambda *k: rng.standard_normal(k) * (1 + 1j if kind is complex else 1)  # noqa: E731
    A = draw(n, p) * 10.0 ** rng.uniform(-3, 3, p)
    y, beta, alpha = draw(q, n), draw(q, p), draw(q, n)
    X = {"C": np.ascontiguousarray, "F": np.asfortranarray, "csr": sp.csr_array, "csc": sp.csc_array}[layout](A)
    got = sums(products(X)._replace(blas=blas), y, beta, None, alpha, True)
    size, more = np.abs(A), 8 if kind is complex else 3  # a complex product is two of each
    d_rho, d_sum = (UNIT * (k + more) * (4 if kind is complex else 1) for k in got.terms)
    assert (abs(got.rho - (fine(y) - fine(beta) @ fine(A).T)) <= d_rho * (abs(y) + abs(beta) @ size.T)).all()
    exact = (fine(got.rho).conj() @ fine(A)).conj()
    assert (abs(got.slope - exact) <= d_sum * (abs(got.rho) @ size)).all()
    exact = (fine(alpha).conj() @ fine(A)).conj()
    assert (abs(got.image - exact) <= d_sum * (abs(alpha) @ size)).all()
    np.testing.assert_allclose(got.squares, (size**2).sum(axis=0), rtol=1e-12)
    assert max(got.terms) <= max(4200, n + 5 if layout == "csc" else 0, p + 5 if layout == "csr" else 0)


def test_an_operator_has_no_squares(rng):
    from scipy.sparse.linalg import aslinearoperator

    A, y, beta = rng.standard_normal((9, 4)), rng.standard_normal((1, 9)), rng.standard_normal((1, 4))
    got = sums(products(aslinearoperator(A)), y, beta, None, y, True)
    assert got.squares is None
    np.testing.assert_allclose(got.image, y @ A)
    np.testing.assert_allclose(got.slope, (y - beta @ A.T) @ A)


@pytest.mark.parametrize("shape", [(40, 9000), (2 * ROWS + 7, 900), (30, 20_000)])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_residual_that_was_expected_is_looked_at_in_one_pass(shape, threads, rng):
    n, p = shape
    A, y, beta, alpha = (rng.standard_normal(k) for k in ((n, p), (1, n), (1, p), (1, n)))
    rho = y - beta @ A.T
    with ThreadPoolExecutor(threads) as pool:
        by = products(A, pool if threads > 1 else None)
        got = sums(by, y, beta, None, alpha, True, rho)
        assert got.of is rho
        np.testing.assert_allclose(got.rho, rho, atol=1e-10)
        np.testing.assert_allclose(got.slope, rho @ A, atol=1e-9 * abs(rho).max())
        np.testing.assert_allclose(got.image, alpha @ A, atol=1e-10)
        np.testing.assert_allclose(got.squares, (A**2).sum(axis=0))
        again = sums(by, y, beta, None, alpha, True, rho)
        assert all((a == b).all() for a, b in zip(got[:5], again[:5], strict=True))
        wrong = sums(by, y, beta, None, alpha, True, rho + 1e-9 * abs(rho).max())
        assert wrong.of is wrong.rho
        np.testing.assert_allclose(wrong.slope, rho @ A, atol=1e-9 * abs(rho).max())


@pytest.mark.parametrize("shape", [(5000, 30), (3000, 512), (3000, 513), (1024, 7), (40, 40)])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_tall_x_in_columns_is_as_exact_as_it_says(shape, threads, rng):
    A = np.asfortranarray(rng.standard_normal(shape) * 10.0 ** rng.uniform(-3, 3, shape[1]))
    y, beta = rng.standard_normal((1, shape[0])), rng.standard_normal((1, shape[1]))
    with ThreadPoolExecutor(threads) as pool:
        got = sums(products(A, pool if threads > 1 else None), y, beta, None, None, True)
    d_rho, d_sum = (UNIT * (k + 3) for k in got.terms)
    assert (abs(got.rho - (fine(y) - fine(beta) @ fine(A).T)) <= d_rho * (abs(y) + abs(beta) @ abs(A).T)).all()
    assert (abs(got.slope - fine(got.rho) @ fine(A)) <= d_sum * (abs(got.rho) @ abs(A))).all()
    np.testing.assert_allclose(got.squares, (A**2).sum(axis=0), rtol=1e-12)
    alone = sums(products(A), y, beta, None, None, True)
    if shape[1] <= 512:  # threads that share tiles change no bit
        assert (got.slope == alone.slope).all()
    assert (got.rho == alone.rho).all()
