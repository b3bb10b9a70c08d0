"""A Gram matrix in single precision is taken where it is good enough, and nowhere else."""

import numpy as np
import pytest

import rowcol
from rowcol.core.products import products
from rowcol.methods import direct
from rowcol.methods.direct import Direct
from rowcol.methods.factor import Factor, quick_gram

SHAPE = (20_000, 60)


@pytest.fixture
def taken(monkeypatch):
    found = []

    def spy(*a):
        made = quick_gram(*a)
        found.append(made is not None)
        return made

    monkeypatch.setattr(direct, "quick_gram", spy)
    return found


def exact(X, y, alpha):
    s = np.linalg.svd(np.vstack([X, np.sqrt(alpha) * np.eye(X.shape[1])]), full_matrices=False)
    rhs = np.concatenate([y, np.zeros(X.shape[1])])
    return s[2].T @ ((s[0].T @ rhs) / s[1])


def holds(X, y, alpha, result):
    """The certificate, its bound on the error, and the gap itself, in extended precision."""
    assert result.success
    beta, fine = result.x, np.longdouble
    gradient = X.astype(fine).T @ (y.astype(fine) - X.astype(fine) @ beta.astype(fine)) - alpha * beta
    gap = float(np.linalg.norm(gradient.astype(float)) / np.sqrt(alpha) / np.linalg.norm(y))
    assert gap <= result.certificate.value * (1 + 1e-9)
    assert np.linalg.norm(beta - exact(X, y, alpha)) <= result.certificate.error_bound + 1e-12 * np.linalg.norm(beta)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("q", [1, 3])
def test_it_is_taken_for_loose_tolerances(order, q, taken, rng):
    X, alpha = np.asarray(rng.standard_normal(SHAPE) * 2.0 ** rng.integers(-9, 9, SHAPE[1]), order=order), 1e6
    Y = X @ rng.standard_normal((SHAPE[1], q)) + rng.standard_normal((SHAPE[0], q))
    result = rowcol.solve(X, Y, alpha=alpha, method="direct", tol=1e-4)
    assert taken == [order == "C"]  # columns gain nothing
    for k in range(q):
        assert np.linalg.norm(result.x[:, k] - exact(X, Y[:, k], alpha)) <= 1e-4 * np.linalg.norm(result.x[:, k])
    if q == 1:
        result = rowcol.solve(X, Y[:, 0], alpha=alpha, method="direct", tol=1e-4)
        holds(X, Y[:, 0], alpha, result)
        assert len(result.history.certificate) == 1


def test_column_norms_are_bounds_from_above_and_near(rng):
    X, y = rng.standard_normal(SHAPE) * np.geomspace(1e-3, 1e3, SHAPE[1]), rng.standard_normal((1, SHAPE[0]))
    _, slope, columns = quick_gram(products(X), X, y, 1e9, 1e-3)
    true = (X**2).sum(axis=0)
    assert ((columns >= true) & (columns <= 1.001 * true)).all()
    np.testing.assert_allclose(slope, y @ X, atol=1e-9 * abs(X).max())


def ill(rng):
    X = rng.standard_normal(SHAPE)
    X[:, 1] = X[:, 0] + 1e-5 * X[:, 1]
    return X


def late(rng):
    """Nothing of it shows in the first rows."""
    X = rng.standard_normal(SHAPE)
    X[15_000:, 1] = 1e2 * X[15_000:, 0]
    return X


HARD = {
    "ill-conditioned": ill,
    "the same column twice": lambda rng: np.repeat(rng.standard_normal((SHAPE[0], SHAPE[1] // 2)), 2, axis=1),
    "a column of zeros": lambda rng: rng.standard_normal(SHAPE) * (np.arange(SHAPE[1]) > 0),
    "too large": lambda rng: rng.standard_normal(SHAPE) * 1e25,
    "one number too large": lambda rng: rng.standard_normal(SHAPE) + 1e45 * (np.arange(SHAPE[0]) == 15_000)[:, None],
    "too small": lambda rng: rng.standard_normal(SHAPE) * 1e-25,
    "one column too small": lambda rng: rng.standard_normal(SHAPE) * np.where(np.arange(SHAPE[1]) == 3, 1e-25, 1.0),
    "late": late,
}


@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("tol", [1e-4, 1e-6])
def test_it_is_left_where_it_would_not_do(name, tol, taken, rng):
    X = HARD[name](rng)
    alpha = 1e-3 * float(np.median((X**2).sum(axis=0))) / SHAPE[0]
    y = X @ rng.standard_normal(SHAPE[1]) + np.sqrt(np.mean(X**2)) * rng.standard_normal(SHAPE[0])
    result = rowcol.solve(X, y, alpha=alpha, method="direct", tol=tol)
    assert taken == [False]
    assert result.success
    again = rowcol.solve(X, y, alpha=alpha, method="direct", tol=tol)
    assert (again.x == result.x).all()
    if name not in ("too large", "one number too large", "too small"):
        holds(X, y, alpha, result)


def test_what_is_no_number_is_found_all_the_same(rng):
    X = rng.standard_normal(SHAPE)
    X[15_000, 7] = np.nan
    with pytest.raises(ValueError, match=r"nan|NaN|finite"):
        rowcol.solve(X, np.ones(SHAPE[0]), alpha=1e5, method="direct", tol=1e-3)


def test_a_factor_that_is_kept_is_made_in_double_precision(taken, rng):
    X, y = rng.standard_normal(SHAPE), rng.standard_normal(SHAPE[0])
    ready = rowcol.prepare(X, alpha=1e4)
    ready.solve(y, tol=1e-3)
    assert not any(taken)
    rowcol.solve(X, y, alpha=0.0, method="direct", tol=1e-3)
    assert not any(taken)


def test_what_a_factor_leaves_is_corrected_and_not_solved_anew(monkeypatch):
    """A look found it, so a correction costs nothing but the next look."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 100))
    y = X @ rng.standard_normal(100) + rng.standard_normal(20_000)
    solved, solve, apply = [], Direct._solve, Factor.apply
    monkeypatch.setattr(Direct, "_solve", lambda self, safely: solved.append(safely) or solve(self, safely))
    monkeypatch.setattr(Factor, "apply", lambda self, *args: apply(self, *args) * (1 + 1e-4))
    result = rowcol.solve(X, y, method="direct", tol=1e-7)
    assert result.success
    assert solved == [False]
    np.testing.assert_allclose(result.x, np.linalg.lstsq(X, y, rcond=None)[0], rtol=1e-6)
