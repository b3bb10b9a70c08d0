"""What an adversarial reading of the routes found: each was a false claim, a crash or a misleading word once."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import rowcol
from oracle import close
from rowcol import Status


@pytest.fixture
def wide(rng):
    X, y = rng.standard_normal((5, 12)), rng.standard_normal(5)
    return X, y, np.linalg.pinv(X)


def quiet(*args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rowcol.solve(*args, **kwargs)


def test_an_operator_may_reuse_its_memory(rng):
    B = rng.standard_normal((20, 4))
    one, two = np.zeros(20), np.zeros(4)
    X = LinearOperator(
        (20, 4), lambda v: np.dot(B, v.ravel(), out=one), lambda u: np.dot(B.T, u.ravel(), out=two), dtype=float
    )
    Y = np.stack([rng.standard_normal(20), B @ np.ones(4)], axis=1)
    close(rowcol.solve(X, Y).x, np.linalg.pinv(B) @ Y, 1e-5)


def test_an_operator_with_nothing_to_find_certifies_no_start():
    X = np.array([[1.0, 0], [0, 1], [0, 0]])
    result = rowcol.solve(aslinearoperator(X), [0, 0, 1.0], x0=[1.0, 1.0])
    assert np.linalg.norm(result.x) < 1e-5


def test_an_operators_columns_are_not_vouched_for(rng):
    X, y = rng.standard_normal((50, 5)) * [1, 1, 1, 1, 1e-8], rng.standard_normal(50)
    assert rowcol.solve(aslinearoperator(X), y).solution.endswith("(columns of an operator taken as alike)")


def test_a_start_that_stays_is_not_called_the_shortest(wide, rng):
    X, y, P = wide
    far = P @ y + (np.eye(12) - P @ X) @ rng.standard_normal(12)
    ready = rowcol.prepare(X)
    ready.solve(y)
    for solve in (ready.solve, lambda y, x0: rowcol.solve(X, y, x0=x0)):
        with pytest.warns(rowcol.StartWarning):
            result = solve(y, x0=far)
        assert not result.solution.startswith("minimum norm") or np.allclose(result.x, P @ y)
    two = np.column_stack([far, np.ones(12)])
    assert not quiet(X, np.column_stack([y, y]), x0=two).solution.startswith("minimum norm")


@pytest.mark.parametrize("method", ["auto", "direct", "cg", "sketch", "rk", "sgs-cg"])
def test_an_earlier_result_of_another_x_is_only_a_start(method, wide, rng):
    X, y, _ = wide
    B = rng.standard_normal((5, 12))
    result = rowcol.solve(B, y, method=method, x0=rowcol.solve(X, y, method="rk", random_state=0), random_state=0)
    assert result.solution.startswith("minimum norm")
    close(result.x, np.linalg.pinv(B) @ y, 1e-4)
    close(B.T @ result.dual, result.x, 1e-9)


def test_a_dual_belongs_to_the_answer_or_is_not_there(rng):
    A = sp.random_array((3000, 300), density=0.05, format="csr", rng=rng)
    result = rowcol.solve(A, rng.standard_normal(3000), memory="1 MB", random_state=0)
    assert "→" in result.method
    assert result.dual is None


def test_the_dual_of_a_start_that_was_the_ridge_solution(wide):
    X, y, _ = wide
    exact = X.T @ np.linalg.solve(X @ X.T + 0.5 * np.eye(5), y)
    close(rowcol.solve(X, y, alpha=0.5, x0=exact, method="direct").dual, (y - X @ exact) / 0.5, 1e-9)


@pytest.mark.parametrize("method", ["cg", "sketch", "sgs-cg"])
def test_rows_that_run_away_say_plateau_and_give_nothing_wild(method, wide):
    X, y, _ = wide
    X[4] = X[3]
    result = quiet(X, y, method=method, random_state=0)
    assert result.status is Status.PLATEAU
    assert result.residual_norm <= 1.01 * np.linalg.norm(y)


def test_a_prepared_sketch_does_not_keep_the_start_of_another_y(rng):
    X = rng.standard_normal((400, 5))
    ready, Y = rowcol.prepare(X, method="sketch", random_state=0), rng.standard_normal((400, 2))
    ready.solve(Y[:, 0], x0=np.ones(5))
    close(ready.solve(Y).x, np.linalg.pinv(X) @ Y, 1e-4)


PRECONDITIONERS = {
    "NaN": (lambda v: v * np.nan, ValueError, "preconditioner gave a NaN"),
    "complex": (lambda v: v * 1j, TypeError, "preconditioner is complex"),
    "indefinite": (lambda v: -v, ValueError, "not positive definite"),
}


@pytest.mark.parametrize("name", PRECONDITIONERS)
def test_a_bad_preconditioner_is_named(name, rng):
    given, kind, words = PRECONDITIONERS[name]
    with pytest.raises(kind, match=words):
        rowcol.solve(rng.standard_normal((30, 6)), rng.standard_normal(30), preconditioner=given)


def test_preconditioners_sparse_or_in_place(rng):
    X, y = rng.standard_normal((60, 6)) * np.geomspace(1, 100, 6), rng.standard_normal(60)
    share = 1 / (X**2).sum(axis=0)

    def in_place(v):
        v *= share
        return v

    for given in (sp.diags_array(share), in_place):
        close(rowcol.solve(X, y, preconditioner=given, tol=1e-9).x, np.linalg.pinv(X) @ y, 1e-6)


@pytest.mark.parametrize("method", ["sketch", "direct", "cg", "blocks", "subset"])
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
def test_bad_values_are_named_on_every_route(method, value, rng):
    X = rng.standard_normal((300, 30))
    X[17, 2] = value
    with pytest.raises(ValueError, match=r"row 17, column 2|1e\+200"):
        rowcol.solve(X, rng.standard_normal(300), method=method, random_state=0)


def test_seconds_and_passes_go_on_in_a_hand_over(rng):
    A = sp.random_array((3000, 300), density=0.05, format="csr", rng=rng)
    seen = []
    rowcol.solve(A, rng.standard_normal(3000), memory="1 MB", random_state=0, callback=seen.append)
    assert [p.passes for p in seen] == sorted(p.passes for p in seen)
    assert [p.seconds for p in seen] == sorted(p.seconds for p in seen)
    assert quiet(A, rng.standard_normal(3000), memory="1 MB", random_state=0, max_passes=3).passes <= 4


def test_copies_made_to_read_x_are_planned(rng):
    X, y = rng.integers(0, 9, (400, 20)), rng.standard_normal(400)
    assert rowcol.plan(X, y).copies == rowcol.solve(X, y).copied == 400 * 20 * 8
    with pytest.raises(ValueError, match="'rcd' needs about"):
        rowcol.solve(rng.standard_normal((400, 50)), y, method="rcd", memory=1000)
