"""An intercept: X and y without their means, held to the same truth, and nothing copied or made dense for it."""

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator
from sklearn.linear_model import LinearRegression, Ridge

import rowcol
from honest import check, fine, norm

STEPS = ("rk", "rcd", "sgs-cg", "blocks")
METHODS = ("auto", "direct", "cg", "sketch", *STEPS)
LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "float32": lambda X: X.astype(np.float32),
}


def data(rng, n, p, layout, q=None, mean=3.0):
    X = rng.standard_normal((n, p)) + (mean * rng.standard_normal(p) if layout not in ("csr", "csc") else 0.0)
    if layout in ("csr", "csc"):
        X *= rng.random((n, p)) < 0.3
    y = X @ rng.standard_normal((p, q or 1)) + 5 + rng.standard_normal((n, q or 1))
    return LAYOUTS[layout](X), y if q else y[:, 0]


def centred(X, y, w=None):
    """X and y without their weighted means, in extended precision."""
    X, y = fine(X), fine(y)
    w = np.ones(len(y), np.longdouble) if w is None else w.astype(np.longdouble)
    pi = w / w.sum()
    return X - pi @ X, y - pi @ y, pi @ X, pi @ y


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(80, 12), (12, 50)])
def test_ridge_with_an_intercept_is_ridge_on_centred_data(method, layout, shape, rng):
    n, p = shape
    X, y = data(rng, n, p, layout)
    w = rng.integers(0, 3, n).astype(float)
    for weight in (None, w):
        options = {"sampler": "shuffled"} if method in ("rk", "rcd") else {}
        result = rowcol.solve(
            X,
            y,
            alpha=2.0,
            fit_intercept=True,
            method=method,
            tol=1e-8,
            sample_weight=weight,
            random_state=0,
            **options,
        )
        assert result.success
        A, b, x_mean, y_mean = centred(X, y, weight)
        check(A, b, result, 1e-8, alpha=2.0, weight=weight)
        assert abs(result.intercept - (y_mean - x_mean @ result.x)) <= 1e-6
        dense = X.toarray() if sp.issparse(X) else np.asarray(X, float)
        truth = Ridge(alpha=2.0, solver="cholesky").fit(dense, y, weight)
        assert norm(result.x - truth.coef_) <= result.certificate.error_bound * (1 + 1e-6) + 1e-8 * norm(truth.coef_)
        assert result.intercept == pytest.approx(truth.intercept_, abs=1e-4)


@pytest.mark.parametrize("method", ["auto", "direct", "cg", "rcd", "sgs-cg", "rek", "subset"])
@pytest.mark.parametrize("layout", ["C", "F", "csr"])
def test_least_squares_with_an_intercept(method, layout, rng):
    X, y = data(rng, 90, 8, layout, q=2)
    if layout == "csr" and method in ("rcd", "sgs-cg", "rek"):
        with pytest.raises(ValueError, match="needs alpha > 0"):
            rowcol.solve(X, y, fit_intercept=True, method=method)
        return
    if method == "subset":
        y = np.asarray(X @ rng.standard_normal((8, 2))) + [3.0, -4.0]  # consistent, with an intercept
    result = rowcol.solve(X, y, fit_intercept=True, method=method, tol=1e-9, random_state=0, max_passes=20_000)
    assert result.success
    truth = LinearRegression().fit(X.toarray() if sp.issparse(X) else X, y)
    np.testing.assert_allclose(result.x.T, truth.coef_, atol=1e-7)
    np.testing.assert_allclose(result.intercept, truth.intercept_, atol=1e-6)


@pytest.mark.parametrize("method", ["auto", "rk", "direct", "cg"])
def test_the_shortest_solution_with_a_free_intercept(method, rng):
    X, y = data(rng, 15, 60, "C")
    result = rowcol.solve(X, y, fit_intercept=True, method=method, tol=1e-10, random_state=0, max_passes=20_000)
    A, b, *_ = centred(X, y)
    np.testing.assert_allclose(result.x, np.linalg.pinv(A.astype(float)) @ b.astype(float), atol=1e-7)
    assert result.solution.startswith("minimum norm")


@pytest.mark.parametrize("ratio", [1e3, 1e6, 1e9])
@pytest.mark.parametrize("method", ["direct", "cg", "auto"])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_large_means_spoil_neither_answer_nor_certificate(ratio, method, alpha, rng):
    """Timestamps and years: the spread of a column is a small part of its mean."""
    X = rng.standard_normal((200, 6)) + ratio * rng.uniform(0.5, 2.0, 6)
    y = rng.standard_normal(200) + 100 * ratio
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as far as float64 can; what it says must hold
        result = rowcol.solve(X, y, alpha=alpha, fit_intercept=True, method=method, tol=1e-8, random_state=0)
    A, b, *_ = centred(X, y)
    rho = b - A @ result.x
    slope = A.T @ rho - alpha * result.x
    if alpha:
        truth = np.linalg.solve((A.T @ A).astype(float) + alpha * np.eye(6), (A.T @ b).astype(float))
        assert norm(slope) / norm(b) <= result.certificate.value * (1 + 1e-6) + 1e-13 * ratio
        assert norm(result.x - truth) <= result.certificate.error_bound * (1 + 1e-6) + 1e-13
    else:
        angle = np.max(np.abs(slope) / norm(A)) / norm(rho)
        assert min(angle, norm(rho) / norm(b)) <= result.certificate.value * (1 + 1e-6)
    if ratio <= 1e6:
        assert result.certificate.value <= 1e-6


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_constant_column_gets_nothing(layout, rng):
    X, y = data(rng, 60, 6, "C")
    X[:, 2] = 0.1
    X[:, 4] = 0.0
    w = np.ones(60)
    w[:5] = 0.0
    X[:5, 2] = 7.0  # constant where it counts
    A = LAYOUTS[layout](X)
    dense = A.toarray() if sp.issparse(A) else np.asarray(A, float)
    keep = [0, 1, 3, 5]
    for method in ("auto", "direct", "cg", "sketch", "rcd"):
        for alpha in (0.0, 1.0) if method != "rcd" or layout not in ("csr", "csc") else (1.0,):
            result = rowcol.solve(
                A, y, alpha=alpha, fit_intercept=True, sample_weight=w, method=method, tol=1e-9, random_state=0
            )
            assert not result.x[[2, 4]].any()
            model = Ridge(alpha=alpha, solver="cholesky") if alpha else LinearRegression()
            truth = model.fit(dense[5:][:, keep], y[5:])
            np.testing.assert_allclose(result.x[keep], truth.coef_, atol=1e-6)


def test_a_constant_y_is_its_own_intercept(rng):
    X = rng.standard_normal((30, 4))
    for method in ("auto", "rk", "cg"):
        result = rowcol.solve(X, np.full(30, 0.1), alpha=1.0, fit_intercept=True, method=method)
        assert not result.x.any()
        assert result.intercept == pytest.approx(0.1)


def test_an_operator_has_an_intercept_too(rng):
    X, y = data(rng, 80, 10, "C")
    result = rowcol.solve(aslinearoperator(X), y, alpha=1.0, fit_intercept=True, tol=1e-9)
    np.testing.assert_allclose(result.x, Ridge(alpha=1.0, solver="svd").fit(X, y).coef_, atol=1e-7)


def test_complex_data(rng):
    X = rng.standard_normal((50, 5)) + 1j * rng.standard_normal((50, 5)) + 2 - 1j
    y = X @ np.arange(5) + 3j + rng.standard_normal(50)
    ones = np.hstack([X, np.ones((50, 1))])
    truth = np.linalg.solve(ones.conj().T @ ones + np.diag([1, 1, 1, 1, 1, 0]), ones.conj().T @ y)
    for method in ("auto", "direct", "cg", "rk", "rcd"):
        for A in (X, np.asfortranarray(X), sp.csr_array(X)):
            result = rowcol.solve(
                A, y, alpha=1.0, fit_intercept=True, method=method, tol=1e-9, random_state=0, max_passes=20_000
            )
            np.testing.assert_allclose(result.x, truth[:5], atol=1e-6)
            assert result.intercept == pytest.approx(truth[5], abs=1e-5)


@pytest.mark.parametrize("method", ["auto", "rk", "rcd", "cg"])
@pytest.mark.parametrize("layout", ["C", "csr"])
def test_starts_callbacks_and_seeds(method, layout, rng):
    X, y = data(rng, 60, 9, layout, q=2)
    options = {"alpha": 0.5, "fit_intercept": True, "method": method, "tol": 1e-7, "random_state": 3}
    seen = []
    first = rowcol.solve(X, y, **options, callback=seen.append)
    again = rowcol.solve(X, y, **options)
    assert np.array_equal(first.x, again.x)
    assert seen
    assert all(p.x.shape == (9, 2) for p in seen)
    warm = rowcol.solve(X, y, **options, x0=first)
    assert warm.passes <= first.passes
    np.testing.assert_allclose(warm.x, first.x, atol=1e-5)
    assert rowcol.solve(X, y, **options, x0=first.x).success
    if method != "auto":  # which is direct here, and done in a round
        assert not rowcol.solve(X, y, **(options | {"random_state": 4}), callback=lambda p: True).success


def test_nothing_large_is_copied_or_made_dense(rng):
    """A centred copy would take 40 MB, and a dense one 400 MB."""
    dense = rng.standard_normal((50_000, 100)) + 1
    sparse = sp.random_array((50_000, 1_000), density=0.005, format="csr", rng=rng)
    far = dense + 300  # where sums of squares cancel, and are taken again
    for X, most in (
        (dense, 14e6),
        (np.asfortranarray(dense), 14e6),
        (far, 14e6),
        (np.asfortranarray(far), 14e6),
        (sparse, 60e6),
    ):
        y = rng.standard_normal(50_000)
        for method in ("direct", "cg"):
            rowcol.solve(X[:200], y[:200], alpha=1.0, fit_intercept=True, method=method)
            plan = rowcol.plan(X, y, alpha=1.0, fit_intercept=True, method=method)
            tracemalloc.start()
            result = rowcol.solve(X, y, alpha=1.0, fit_intercept=True, method=method, n_jobs=1)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert result.success
            assert result.copied == 0 or sp.issparse(X)
            assert peak <= 1.2 * plan.bytes, (method, peak, plan.bytes)
            if method == "cg":
                assert peak <= most


def test_the_plan_speaks_of_the_centred_problem(rng):
    X = rng.standard_normal((20_000, 40)) + 5
    y = X @ rng.standard_normal(40) + 100
    assert rowcol.plan(X, y, fit_intercept=True).route == "subset"
    assert rowcol.solve(X, y, fit_intercept=True).solution == "unique"
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN or infinity at row 3"):
        rowcol.solve(X, y, fit_intercept=True)


def test_what_single_steps_cannot_do_is_refused(rng):
    X, y = data(rng, 20, 50, "csr")
    with pytest.raises(ValueError, match="needs alpha > 0"):
        rowcol.solve(X, y, fit_intercept=True, method="rk")


@pytest.mark.parametrize("layout", ["csr", "csc"])
@pytest.mark.parametrize("q", [None, 3])
def test_single_steps_on_text_take_about_the_passes_they_take_without_an_intercept(layout, q, rng):
    case = rowcol.zoo.text(2000, 5000, alpha=1.0) if layout == "csr" else rowcol.zoo.text(5000, 2000, alpha=1.0)
    X = LAYOUTS[layout](case.X)
    y = 3 + (case.y if q is None else np.stack([case.y, -2 * case.y, rng.standard_normal(len(case.y))], axis=1))
    alike = {"alpha": 1.0, "tol": 1e-9, "sampler": "shuffled", "random_state": 0}
    method = "rk" if layout == "csr" else "rcd"
    plain = rowcol.solve(X, y, method=method, **alike)
    result = rowcol.solve(X, y, method=method, fit_intercept=True, **alike)
    assert result.success
    assert result.passes <= 1.3 * plain.passes + 4
    truth = Ridge(1.0, solver="cholesky").fit(X.toarray(), y)
    assert np.linalg.norm(result.x.T - truth.coef_) <= 1e-7 * np.linalg.norm(truth.coef_)
    np.testing.assert_allclose(result.intercept, truth.intercept_, rtol=1e-6, atol=1e-8)
    if layout == "csr":  # its α is feasible for a free intercept
        assert (abs(result.dual.sum(axis=0)) <= 1e-9 * abs(result.dual).sum(axis=0)).all()


def test_ones_ride_along_for_the_first_passes_only(monkeypatch):
    from rowcol.methods.level import Level

    riding, advance = [], Level.advance
    monkeypatch.setattr(Level, "advance", lambda self, *a: (riding.append(self.ones is None), advance(self, *a))[1])
    case = rowcol.zoo.text(2000, 5000, alpha=1.0)
    alike = {"alpha": 1.0, "tol": 1e-9, "sampler": "shuffled", "random_state": 0}
    result = rowcol.solve(case.X, case.y + 3, method="rk", fit_intercept=True, **alike)
    assert result.success
    assert sum(riding) <= len(riding) / 2
