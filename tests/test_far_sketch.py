"""The large directions of an X that lies elsewhere, found in a few readings: answers are LAPACK's, steps few."""

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from distributed import Client
from scipy.sparse.linalg import LinearOperator
from sklearn.linear_model import Ridge

import rowcol
from oracle import lapack
from rowcol.methods.sketch import DIRECTIONS, low_rank
from test_cluster import workers

LARGE = 40  # directions: fewer than a sketch finds
TAIL = 3.0  # the condition of what is left


def outliers(n, p, kind=float, seed=0):
    """A few large singular values over a flat tail."""
    rng = np.random.default_rng(seed)
    m = min(n, p)

    def basis(length):
        a = rng.standard_normal((length, m))
        return np.linalg.qr(a + 1j * rng.standard_normal((length, m)) if kind is complex else a)[0]

    s = np.concatenate([np.geomspace(1e3, 1e2, LARGE), np.geomspace(TAIL, 1.0, m - LARGE)])
    X = (basis(n) * s) @ basis(p).conj().T
    y = rng.standard_normal(n)
    return X, y + 1j * rng.standard_normal(n) if kind is complex else y


def place_of(X, rows=170, sparse=False):
    form = sp.csr_array if sparse else np.asarray
    return rowcol.chunks(lambda: (form(X[i : i + rows]) for i in range(0, len(X), rows))).X


@pytest.mark.parametrize("kind", [float, complex])
@pytest.mark.parametrize(("n", "p"), [(900, 300), (300, 900)])
@pytest.mark.parametrize("sparse", [False, True])
def test_answers_are_those_of_lapack_in_few_steps(kind, n, p, sparse):
    X, y = outliers(n, p, kind)
    # the bound of conjugate gradients for the tail's condition, 9 of XᴴX: (√9 − 1)/(√9 + 1) = 1/2 a step, for 1e-6 and
    # what the size of the large ones adds, 1e3; two passes a step by rows, and some that find directions and look
    bound = np.log2(2 * 1e6 * 1e3) * (1 if n >= p else 2) + 10
    for alpha in (0.0, 0.5):
        place, asked = place_of(X, sparse=sparse), {"alpha": alpha, "tol": 1e-6, "random_state": 0}
        result = rowcol.solve(place, y, method="sketch", **asked)
        assert result.success
        assert result.method == "sketch"
        assert result.passes <= bound
        truth = lapack(X, y, alpha)
        np.testing.assert_allclose(result.x, truth, atol=1e-5 * np.linalg.norm(truth))
        with pytest.warns(rowcol.ConvergenceWarning):
            rowcol.solve(place, y, method="cg", max_passes=bound, **asked)


@pytest.mark.parametrize("weighted", [False, True])
def test_an_intercept_and_weights_are_those_of_scikit_learn(weighted):
    X, y = outliers(900, 300)
    X += 5.0
    Y = np.column_stack([y, 3.0 - 2 * y])
    w = np.random.default_rng(1).uniform(0, 3, len(y)) if weighted else None
    mine = rowcol.Ridge(0.5, solver="sketch", tol=1e-6, random_state=0).fit(place_of(X), Y, w)
    theirs = Ridge(0.5, solver="svd" if w is None else "cholesky").fit(X, Y, w)
    assert mine.result_.method == "sketch"
    np.testing.assert_allclose(mine.coef_, theirs.coef_, atol=1e-6 * np.abs(theirs.coef_).max())
    np.testing.assert_allclose(mine.intercept_, theirs.intercept_, rtol=1e-6)


def test_columns_of_any_size_and_numbers_of_single_precision():
    X, y = outliers(900, 300)
    X *= np.geomspace(1e-4, 1e4, 300)
    result = rowcol.solve(place_of(X), y, method="sketch", tol=1e-8, random_state=0)
    assert result.success
    sizes = np.linalg.norm(X, axis=0)
    truth = np.linalg.lstsq(X / sizes, y, rcond=None)[0]
    np.testing.assert_allclose(result.x * sizes, truth, atol=1e-5 * np.linalg.norm(truth))
    few = outliers(900, 300)[0].astype(np.float32)
    result = rowcol.solve(place_of(few), y, alpha=1.0, method="sketch", tol=1e-5, random_state=0)
    assert result.x.dtype == np.float32
    assert result.success
    truth = lapack(few.astype(float), y, 1.0)
    np.testing.assert_allclose(result.x, truth, atol=1e-3 * np.linalg.norm(truth))


@pytest.mark.parametrize(("n", "p"), [(900, 300), (300, 900)])
def test_what_is_left_to_solve_has_the_condition_of_the_tail(n, p):
    X, y = outliers(n, p)
    s = np.linalg.svd(X, compute_uv=False)
    for alpha in (0.0, 2.0):
        asked, by, seed = _asked(place_of(X), y, alpha)
        found = low_rank(asked, by, "cols" if n >= p else "rows", seed)
        assert found.U.shape[1] == DIRECTIONS
        A = (X.T @ X if n >= p else X @ X.T) + alpha * np.eye(len(s))
        left = np.linalg.eigvals(found(np.eye(len(s))) @ A).real
        # of the tail's (9 + λ)/(1 + λ), and of the large ones, which are at one: as are those of the tail's largest
        assert left.max() / left.min() <= 1.05 * (TAIL**2 + alpha) / (1 + alpha)
        assert (s[0] ** 2 + alpha) / (s[-1] ** 2 + alpha) > 1e4 * left.max() / left.min()


@pytest.mark.parametrize("alpha", [1.0, 100.0, 1e4])
@pytest.mark.parametrize("place", [False, True])
def test_factors_in_any_units_leave_noise_alone(alpha, place):
    """Neither scaling columns nor large directions do by themselves: 30 factors, noise, and units."""
    rng = np.random.default_rng(0)
    n, p, k = 1_500, 500, 30
    factors = rng.standard_normal((n, k)) @ rng.standard_normal((k, p)) + 0.05 * rng.standard_normal((n, p))
    X, y = factors * rng.lognormal(0, 1, p), rng.standard_normal(n)
    given = place_of(X, rows=300) if place else X
    result = rowcol.solve(given, y, alpha=alpha, method="sketch", tol=1e-6, random_state=0)
    assert result.success
    gap = lapack(X, y, alpha) - result.x  # ½ of its square in the norm of the problem is the gap to the optimum
    assert np.sqrt(np.linalg.norm(X @ gap) ** 2 + alpha * gap @ gap) <= 1e-6 * np.linalg.norm(y)
    # noise alone has the condition ((1 + √(p/n))/(1 − √(p/n)))² = 14, for which conjugate gradients gain
    # (√14 − 1)/(√14 + 1) = 0.58 a step: 26 steps for 1e-6, and some for what weights the error at the start
    assert result.passes <= np.log(2 * 1e6) / -np.log(0.58) + 12
    with pytest.warns(rowcol.ConvergenceWarning):
        rowcol.solve(given, y, alpha=alpha, method="cg", tol=1e-6, max_passes=2 * result.passes, random_state=0)


def _asked(place, y, alpha):
    from rowcol.core.problem import problem
    from rowcol.core.products import products
    from rowcol.core.threads import lent

    asked = problem(place, y, alpha)
    with lent(1) as pool:
        return asked, products(asked.X, pool, asked.shift), np.random.SeedSequence(0)


def test_where_no_gram_matrix_fits_and_steps_are_many_it_goes_on_by_a_sketch():
    X, y = outliers(2_000, 700)
    place, memory = place_of(X, rows=100), 20e6
    plan = rowcol.plan(place, y, memory=memory)
    assert (plan.route, plan.then) == ("cg", ("sketch",))
    assert plan.bytes <= memory
    result = rowcol.solve(place, y, memory=memory, tol=1e-8, random_state=0)
    assert result.success
    assert result.method == "cg → sketch"
    truth = lapack(X, y)
    np.testing.assert_allclose(result.x, truth, atol=1e-6 * np.linalg.norm(truth))
    assert rowcol.plan(place, y).then == ()  # a Gram matrix fits, and nothing is better
    # of a wide X by rows, too, where a penalty leaves one answer only
    wide = place_of(X.T.copy(), rows=100)
    assert rowcol.plan(wide, y[:700], alpha=1.0).then == ("sketch",)


def test_it_goes_on_to_the_same_bits_from_a_checkpoint(tmp_path):
    X, y = outliers(900, 300)
    place, asked = place_of(X), {"alpha": 0.5, "method": "sketch", "tol": 1e-6, "random_state": 0}
    whole = rowcol.solve(place, y, **asked)
    path = str(tmp_path / "sketch.checkpoint")
    cut = rowcol.solve(place, y, **asked, checkpoint=path, callback=lambda now: now.passes >= 6)
    assert cut.status is rowcol.Status.CALLBACK
    on = rowcol.resume(path, place, y)
    assert on.success
    assert (on.x == whole.x).all()


def test_on_a_cluster_a_few_readings_bring_as_many_numbers_as_there_are_directions():
    X, y = outliers(1_200, 300)
    with workers(2) as cluster, Client(cluster):
        place = rowcol.chunks(da.from_array(X, chunks=(200, -1))).X
        result = rowcol.solve(place, y, alpha=0.5, method="sketch", tol=1e-6, random_state=0)
        sent, received = place.sent, place.received
        wide = rowcol.chunks(da.from_array(X.T.copy(), chunks=(50, -1))).X
        by_rows = rowcol.solve(wide, y[:300], method="sketch", tol=1e-8, random_state=0)
    assert result.success
    truth = lapack(X, y, 0.5)
    np.testing.assert_allclose(result.x, truth, atol=1e-6 * np.linalg.norm(truth))
    assert by_rows.success
    shortest = lapack(X.T, y[:300])
    np.testing.assert_allclose(by_rows.x, shortest, atol=1e-6 * np.linalg.norm(shortest))
    one = 8 * DIRECTIONS * 300  # bytes of the directions: twice to each of two workers, and back from each of six parts
    assert 2 * 2 * one <= sent <= 2 * 2 * one * 1.5
    assert 2 * 6 * one <= received <= 2 * 6 * one * 1.5


def test_an_operator_of_whole_numbers_has_a_sketch_too():
    A = np.random.default_rng(0).integers(-5, 5, (60, 40))
    kind = {"matvec": lambda v: A @ v, "rmatvec": lambda v: A.T @ v, "dtype": np.int64}
    y = np.arange(60.0)
    result = rowcol.solve(LinearOperator(A.shape, **kind), y, alpha=1.0, method="sketch", random_state=0)
    assert result.success
    np.testing.assert_allclose(result.x, lapack(A.astype(float), y, 1.0), atol=1e-5)
