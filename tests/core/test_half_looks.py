"""Looks at the residual alone: what they measure, and what they leave to a whole one."""

import math

import numpy as np
import pytest

from certificates import UNIT, measured, norm, system
from rowcol.core.centre import centred
from rowcol.core.certify import certify, certify_residual
from rowcol.core.problem import problem
from rowcol.core.products import products


def test_half_a_look_is_the_residual_alone():
    X, Y = system((9, 4), float, 2)
    beta = np.array([[1.0, -2.0, 0.5, 3.0], [0.0, 1.0, 1.0, -0.3]])
    Y = X @ beta.T * [3.0, 0.01] + 1e-9 * Y
    asked = problem(X, Y)
    beta = beta * np.array([3.0, 0.01])[:, None] / asked.scale[:, None]
    for ids in (np.array([0, 1]), np.array([1])):
        found = certify_residual(asked, products(X), beta[ids], ids, 1e-3)
        assert found is not None
        assert found.image is None
        assert (found.slope.shape, found.column2.size) == ((len(ids), 0), 0)
        for k, i in enumerate(ids):
            one, scale = found.certificates[k], asked.scale[i]
            rho, _ = measured(X, Y[:, i], beta[i] * scale)
            size, reach = norm(Y[:, i]) / scale, norm(abs(X) @ abs(beta[i]))
            off = UNIT * (4 + 3) * (size + reach)
            assert one.kind == "residual"
            assert one.residual_norm == pytest.approx(norm(rho), rel=1e-6)
            assert one.rounding == pytest.approx(off / size, rel=1e-9, abs=0)
            assert one.value == pytest.approx((norm(found.residual[k]) + off) / size, rel=1e-12, abs=0)
            assert (one.storing, one.error_bound, one.exhausted) == (0.0, None, False)
            assert math.isnan(one.gradient_norm)
            assert type(one.value) is float
        value = max(c.value for c in found.certificates)
        assert certify_residual(asked, products(X), beta[ids], ids, value) is not None
        assert certify_residual(asked, products(X), beta[ids], ids, value * (1 - 1e-9)) is None
        assert certify_residual(asked, products(X), beta[ids] * np.nan, ids, 1e300) is None


def test_half_a_look_is_for_plain_rows_only():
    X, Y = system((9, 4), float, 1)
    one, beta = np.array([0]), np.zeros((1, 4))
    beta[0, 0] = 1.0
    assert certify_residual(problem(X, Y), products(X), beta, one, 1e9) is not None
    assert certify_residual(problem(X, Y, 1e-9), products(X), beta, one, 1e9) is None
    assert certify_residual(problem(X, Y, 0.0, np.ones(9)), products(X), beta, one, 1e9) is None
    F = np.asfortranarray(X)
    assert certify_residual(problem(F, Y), products(F), beta, one, 1e9) is None
    asked, _ = centred(problem(X, Y))
    assert certify_residual(asked, products(X, None, asked.shift), beta, one, 1e9) is None


@pytest.mark.parametrize("size", [1.0, 3e8, 1e-8])
def test_half_a_look_knows_when_rounding_is_all_that_is_left(size):
    """Whatever the size of y: it was held against a residual in another unit."""
    X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    beta = np.array([[1.0, 1.0]])
    for off, exhausted in ((0.0, True), (2.5, True), (3.5, False), (40.0, False)):
        y = X @ beta[0]
        y[0] += off * UNIT * (2 + 3) * (2 * norm(y))
        asked = problem(X, y * size)
        found = certify_residual(asked, products(X), beta * size / asked.scale[0], np.arange(1), 1.0)
        assert found is not None
        left = norm(found.residual[0]) * asked.scale[0]
        assert found.certificates[0].residual_norm == left
        assert found.certificates[0].exhausted == exhausted, (left, off)


def test_half_a_look_at_nothing():
    """y = 0 and β = 0: no rounding, where it was NaN."""
    X, Y = system((9, 4), float, 2)
    Y[:, 1] = 0
    beta = np.zeros((2, 4))
    beta[0, 1] = 1.0
    found = certify_residual(problem(X, Y), products(X), beta, np.arange(2), 1e9)
    assert found is not None
    assert found.certificates[1][:5] == ("residual", 0.0, 0.0, 0.0, 0.0)
    assert found.certificates[1].exhausted
    beta[1, 1] = 1e-200  # no y, but an answer
    assert certify_residual(problem(X, Y), products(X), beta, np.arange(2), 1e9) is None


def test_half_a_look_counts_what_storing_in_single_precision_does():
    X = system((9, 4), float, 1)[0].astype(np.float32)
    beta = np.array([[1.0, -2.0, 0.5, 3.0]])
    asked = problem(X, X.astype(float) @ beta[0])
    at = beta / asked.scale[0]
    found = certify_residual(asked, products(X), at, np.arange(1), 1.0)
    assert found is not None
    storing = 2.0**-24 * norm(abs(X).astype(float) @ abs(at[0])) / norm(asked.y)
    assert found.certificates[0].storing == pytest.approx(storing, rel=1e-6)
    both = found.certificates[0].value + found.certificates[0].storing
    assert certify_residual(asked, products(X), at, np.arange(1), both) is not None
    assert certify_residual(asked, products(X), at, np.arange(1), both * (1 - 1e-9)) is None


def test_half_a_look_counts_what_storing_nearly_subnormal_numbers_does():
    X = system((9, 4), float, 1)[0]
    beta = np.array([[1.0, -2.0, 0.25, 3.0]]) * 1e-300
    asked = problem(X, X @ beta[0])
    at = beta / asked.scale[0]
    found = certify_residual(asked, products(X), at, np.arange(1), 1.0)
    assert found is not None
    storing = 4 * (5e-324 / 0.25e-300) * norm(abs(X) @ abs(at[0])) / norm(asked.y)
    assert found.certificates[0].storing == pytest.approx(storing, rel=1e-6, abs=0)


def test_half_a_look_leaves_answers_in_subnormal_numbers_to_a_whole_one():
    """In single precision these are stored to three digits: the half look said ten."""
    X = system((9, 4), float, 1)[0].astype(np.float32)
    for size, fine in ((1e-43, False), (1e-20, True)):
        beta = np.array([[1.0, -2.0, 0.5, 3.0]]) * size
        asked = problem(X, X.astype(float) @ beta[0])
        at = beta / asked.scale[0]
        assert (certify_residual(asked, products(X), at, np.arange(1), 1.0) is not None) == fine
        whole = certify(asked, products(X), at, None, np.arange(1), np.full(4, -1.0)).certificates[0]
        kept = beta[0].astype(np.float32).astype(float)
        lost = norm(X.astype(float) @ (kept - beta[0]) / asked.scale[0]) / norm(asked.y)
        assert lost <= whole.value + whole.storing
        assert (lost > 1e-5) != fine
