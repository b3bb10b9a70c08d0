"""What stops a look, by an error that names it; and whether there is anything to look for."""

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import rowcol
from certificates import LAYOUTS, norm
from rowcol.core.centre import centred
from rowcol.core.certify import certify, hopeless
from rowcol.core.problem import problem
from rowcol.core.products import products


def looked(X, y=None, weight=None, column2=None, shift=False):
    asked = problem(X, np.ones(X.shape[0]) if y is None else y, 0.0, weight)
    asked = centred(asked)[0] if shift else asked
    column2 = np.full(X.shape[1], -1.0) if column2 is None else column2
    by = products(asked.X, None, asked.shift)
    return certify(asked, by, np.zeros((1, X.shape[1])), None, np.arange(1), column2)


@pytest.mark.parametrize("layout", ["C", "F", "csr", "csc"])
def test_columns_too_small_to_square_are_named_and_columns_of_zeros_are_not(layout):
    X = np.ones((4, 3))
    X[:, 1] = [0, 1e-141, 0, 0]
    with pytest.raises(ValueError, match="column 1 of X is so small"):
        looked(LAYOUTS[layout](X))
    X[:, 1] = [0, -1e-141, 0, 0]
    with pytest.raises(ValueError, match="column 1 of X is so small"):
        looked(LAYOUTS[layout](X))
    X[:, 1] = [0, 1e-138, 0, 0]
    looked(LAYOUTS[layout](X))
    X[:, 1] = 0
    looked(LAYOUTS[layout](X))
    X[:, 2] = 1e-150
    with pytest.raises(ValueError, match="column 2 of X is so small"):
        looked(LAYOUTS[layout](X))
    looked(aslinearoperator(X))


@pytest.mark.parametrize("layout", ["C", "csr"])
def test_rows_that_do_not_count_name_no_column(layout):
    X = np.ones((4, 3))
    X[:, 1] = [0, 1e-150, 0, 0]
    w = np.ones(4)
    with pytest.raises(ValueError, match="column 1 of X is so small"):
        looked(LAYOUTS[layout](X), weight=w)
    w[1] = 0
    looked(LAYOUTS[layout](X), weight=w)


def test_columns_that_weights_make_too_small_are_named():
    X, w = np.ones((4, 3)), np.array([1e-290, 1.0, 1.0, 1.0])
    X[1:, 1] = 0
    for layout in ("C", "csr"):
        with pytest.raises(ValueError, match="column 1 of X is so small"):
            looked(LAYOUTS[layout](X), weight=w)


def test_constant_columns_are_known_to_be_nothing():
    X = np.arange(12.0).reshape(4, 3) ** 2
    X[:, 1] = 5.0
    looked(X, y=np.arange(4.0), shift=True)
    X[:, 2] = [1e-150, 2e-150, 0, 0]
    with pytest.raises(ValueError, match="column 2 of X is so small"):
        looked(X, y=np.arange(4.0), shift=True)
    X[:, 1:] = np.array([[5.0, 5.0, 5.0, 5.0 + 1e-9]] * 2).T
    looked(X, y=np.arange(4.0), shift=True)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("layout", ["C", "F", "csr"])
def test_a_number_that_is_none_is_found_where_it_is(bad, layout):
    X = np.ones((4, 3))
    X[2, 1] = bad
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match="row 2, column 1"):
        looked(LAYOUTS[layout](X))
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match="row 2, column 1"):
        looked(LAYOUTS[layout](X), column2=np.ones(3))


def test_norms_that_leave_float64_are_an_error():
    with np.errstate(over="ignore", invalid="ignore"), pytest.raises(ValueError, match="values near 1e\\+200"):
        looked(np.full((4, 3), 1e200))
    X = np.ones((4, 3))
    X[:, 1] = [1e200, -1e200, 1e200, -1e200]  # of no slope, so that its norm alone tells
    with np.errstate(over="ignore", invalid="ignore"), pytest.raises(ValueError, match="values near 1e\\+200"):
        looked(X)


def test_the_size_of_an_operator_is_seen_whatever_y_is():
    """‖X‖₂ from below, by a few products: also where y shows nothing of it, or the wrong direction only."""
    X = np.diag([1e4, 1e6])
    for y in ([1.0, 0.0], [0.0, 0.0], [1.0, 1.0]):
        found = looked(aslinearoperator(X), np.array(y)).column2
        assert 0.9 * 1e12 / 2 <= found[0] <= 1e12 / 2 * (1 + 1e-12)


def test_an_operator_of_zeros_and_one_that_overflows():
    found = looked(aslinearoperator(np.zeros((4, 3))))
    assert found.column2.tolist() == [0, 0, 0]
    big = LinearOperator((2, 2), matvec=lambda v: np.full(2, np.inf), rmatvec=lambda v: np.full(2, np.inf), dtype=float)
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match="operator"):
        looked(big)


@pytest.mark.parametrize("weighted", [False, True])
def test_hopeless_tells_no_solution_from_slow_rows(weighted, rng):
    w = rng.random(30) + 0.1 if weighted else None
    X = rng.standard_normal((30, 6))
    consistent = X @ np.ones(6)
    start = np.zeros(6)
    for y, expected in ((consistent, False), (consistent + rng.standard_normal(30), True)):
        for scale in (1.0, 1e7):
            asked = problem(X, y * scale, 0.0, w)
            assert hopeless(asked, products(X), start, 0, 3) == expected
    asked = problem(X, np.column_stack([consistent, consistent + rng.standard_normal(30)]), 0.0, w)
    assert [hopeless(asked, products(X), start, i, 3) for i in range(2)] == [False, True]
    # slow for rows: conjugate gradients keep taking the residual down
    slow = rng.standard_normal((60, 60)) * np.geomspace(1, 1e-4, 60)
    assert not hopeless(problem(slow, slow @ np.ones(60)), products(slow), np.zeros(60), 0, 10)
    # at the solution of least squares already
    best = np.linalg.lstsq(X, y, rcond=None)[0]
    asked = problem(X, y)
    assert hopeless(asked, products(X), best / asked.scale[0], 0, 3)
    assert not hopeless(
        problem(X, consistent), products(X), np.ones(6) / problem(X, consistent).scale[0] * 1.0001, 0, 3
    )


def test_hopeless_from_near_the_best_there_is(rng):
    """What is left is small beside y, but not beside what was left: so it stays."""
    X = rng.standard_normal((30, 6)) * np.geomspace(1, 100, 6)
    e = rng.standard_normal(30)
    e -= X @ np.linalg.lstsq(X, e, rcond=None)[0]
    y = X @ np.ones(6)
    asked = problem(X, y + e * 5e-4 * norm(y) / norm(e))
    best = np.ones(6) / asked.scale[0]
    assert hopeless(asked, products(X), best, 0, 3)
    assert hopeless(asked, products(X), best * (1 + 1e-6), 0, 3)
    assert not hopeless(asked, products(X), 0 * best, 0, 3)  # from afar it is a thousandth, and less
    assert hopeless(problem(X, y + e * 5e-2 * norm(y) / norm(e)), products(X), 0 * best, 0, 3)


def test_hopeless_minds_the_root_of_weights(rng):
    """One row does not fit, and counts for √w: a hundredth is enough, a ten-thousandth would not be."""
    X = rng.standard_normal((12, 2))
    y, w = X @ np.ones(2), np.ones(12)
    y[0] += 5.0
    for weight, expected in ((1e-4, True), (1e-8, False)):
        w[0] = weight
        assert hopeless(problem(X, y, 0.0, w), products(X), np.zeros(2), 0, 3) == expected


def test_hopeless_where_there_is_no_slope_at_all():
    X, y = np.array([[1.0], [0.0]]), np.array([0.0, 1.0])
    assert hopeless(problem(X, y), products(X), np.zeros(1), 0, 3)
    assert not hopeless(problem(X, y[::-1].copy()), products(X), np.ones(1), 0, 3)


@pytest.mark.parametrize("alpha", [0.0, 2.0])
def test_a_look_at_parts_is_a_look_at_all_of_them(alpha, rng):
    X, y, beta = rng.standard_normal((90, 7)), rng.standard_normal(90), rng.standard_normal((1, 7))
    place = rowcol.chunks([X[:40], X[40:41], X[41:]]).X
    dual = rng.standard_normal((1, 90))
    for a in (None, dual):
        found, want = (
            certify(problem(Z, y, alpha), products(Z), beta, a, np.arange(1), np.full(7, -1.0)) for Z in (place, X)
        )
        np.testing.assert_allclose(found.slope, want.slope, rtol=1e-12)
        np.testing.assert_allclose(found.column2, (X**2).sum(axis=0), rtol=1e-12)
        for name in ("value", "residual_norm", "gradient_norm"):
            got, expected = (getattr(one.certificates[0], name) for one in (found, want))
            assert got == pytest.approx(expected, rel=1e-9)
        assert (found.residual is None) == (alpha == 0)  # duals are made of it


def test_hopeless_is_told_of_parts_too(rng):
    X = rng.standard_normal((90, 7))
    place = rowcol.chunks([X[:40], X[40:]]).X
    for y, expected in ((X @ np.ones(7), False), (rng.standard_normal(90), True)):
        assert hopeless(problem(place, y), products(place), np.zeros(7), 0, 3) == expected
