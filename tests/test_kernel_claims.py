"""What an adversarial reading of kernel ridge found, each held from now on."""

import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import cross_val_score
from threadpoolctl import threadpool_info

import rowcol
from rowcol import kernels
from rowcol.core.gram import gram, written

rng = np.random.default_rng(0)
X = rng.standard_normal((100, 6))
y = rng.standard_normal(100)


def plain(a, b):
    """A kernel that is a function of two points, at the top of a module: it can be pickled."""
    return float(np.exp(-np.sum((a - b) ** 2)))


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_sparse_and_dense_points_may_follow_each_other(kernel):
    S = sp.random_array((100, 6), density=0.5, format="csr", rng=np.random.default_rng(0))
    for fitted, asked in ((S, S.toarray()), (S.toarray(), S)):
        model = rowcol.KernelRidge(alpha=0.1, kernel=kernel).fit(fitted, y)
        assert np.allclose(model.predict(asked[:3]), model.predict(fitted[:3]), atol=1e-12)


def entries_in_extended_precision(kernel, X):
    t = (X.astype(np.longdouble) @ X.T.astype(np.longdouble)) * (kernel.gamma or 1 / X.shape[1]) + kernel.coef0
    return np.tanh(t) if isinstance(kernel, kernels.Sigmoid) else t ** np.longdouble(kernel.degree)


@pytest.mark.parametrize(
    "kernel",
    [
        kernels.Sigmoid(gamma=0.3, coef0=0.0),
        kernels.Polynomial(degree=1, gamma=1 / 3, coef0=-3.3e13),
        kernels.Polynomial(degree=30, gamma=1e-15),
        kernels.Polynomial(degree=3, gamma=1e-15, coef0=-1.0),
    ],
    ids=str,
)
def test_errors_of_dot_products_that_cancel_are_within_the_stated_one(kernel):
    r = np.random.default_rng(0)
    a, b = r.standard_normal((2, 10, 1)) * 1e7
    Z = np.vstack([np.hstack([a, b]), np.hstack([b, -a])])
    truth = entries_in_extended_precision(kernel, Z)
    g = gram(kernel, Z)
    size = np.sqrt(np.outer(np.diag(truth), np.diag(truth))) if kernel.definite else g.leaves[0].bound
    assert (np.abs(written(g) - truth) <= g.error * size * 1.0000001).all()
    z = r.standard_normal(20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rowcol.ConvergenceWarning)
        result = rowcol.solve(Z, z, kernel=kernel, alpha=float(20 * np.abs(truth).max()), tol=1e-3)
    left = z - truth @ result.x.astype(np.longdouble) - 20 * np.abs(truth).max() * result.x
    assert np.linalg.norm(left.astype(float)) <= result.certificate.value * np.linalg.norm(z) * (1 + 1e-9)


def test_no_bound_where_the_kernel_is_not_positive_definite():
    result = rowcol.solve(X, y, kernel=kernels.Sigmoid(gamma=0.05, coef0=-2.0), alpha=200.0, method="cg", tol=1e-2)
    assert result.error_bound is None
    assert "none" in repr(result)
    with pytest.raises(ValueError, match="no bound where the kernel is not positive definite"):
        result.function(X, return_bound=True)


def test_no_bound_for_new_points_of_a_given_matrix():
    K = kernels.Matern(0.5, length_scale=0.05)(X[:, :1])
    result = rowcol.solve(K[:40, :40], y[:40], kernel="precomputed", alpha=1e-2, tol=1e-6)
    assert result.function(K[40:, :40]).shape == (60,)
    with pytest.raises(ValueError, match=r"does not say k\(x, x\) of new points"):
        result.function(K[40:, :40], return_bound=True)


def test_a_slightly_asymmetric_matrix_is_taken_as_its_symmetric_part():
    r = np.random.default_rng(1)
    Z = r.standard_normal((700, 3))
    K = kernels.RBF(gamma=0.5)(Z)
    K *= 1 + 1e-6 * r.standard_normal(K.shape)
    b = r.standard_normal(700)
    for method in ("direct", "blocks"):
        result = rowcol.solve(K, b, kernel="precomputed", alpha=0.5, method=method, tol=1e-8, random_state=0)
        S = (K + K.T) / 2
        assert np.linalg.norm(b - S @ result.x - 0.5 * result.x) <= 1.01e-8 * np.linalg.norm(b)


def test_coefficients_that_leave_float64_are_an_error():
    for factor, kernel, alpha in ((1e300, 1e-30 * kernels.RBF(), 1e-29), (1e-300, 1e30 * kernels.RBF(), 1e29)):
        with pytest.raises(ValueError, match="too large or too small for float64"):
            rowcol.solve(X, y * factor, kernel=kernel, alpha=alpha)


@pytest.mark.parametrize("factor", [1.0, 1e-200, 1e200, 1e-290])
def test_an_intercept_at_any_scale_of_y(factor):
    plain_ = rowcol.solve(X, y, kernel="rbf", alpha=0.1, fit_intercept=True)
    result = rowcol.solve(X, y * factor, kernel="rbf", alpha=0.1, fit_intercept=True)
    assert result.success
    assert result.certificate.value == pytest.approx(plain_.certificate.value, rel=1e-3, abs=1e-11)
    assert np.allclose(result.x / factor, plain_.x, rtol=1e-9)


@pytest.mark.parametrize("constant", [0.1, 0.3, 1e10 / 3, 1.0])
def test_a_constant_is_all_intercept(constant):
    result = rowcol.solve(X, np.full(100, constant), kernel="rbf", alpha=0.1, fit_intercept=True)
    assert result.success
    assert result.intercept == pytest.approx(constant, rel=1e-12)
    assert not result.x.any()


@pytest.mark.parametrize("factor", [1e160, 1e-170])
def test_cosines_of_points_whose_squares_leave_float64(factor):
    for Z in (X, sp.csr_array(X)):
        assert np.allclose(kernels.Cosine()(Z * factor), kernels.Cosine()(X), atol=1e-14)


@pytest.mark.parametrize("method", ["auto", "pcg", "blocks"])
def test_a_tiny_alpha_makes_no_kernel_indefinite(method):
    r = np.random.default_rng(0)
    n = 4000 if method == "auto" else 1200
    Z = r.standard_normal((n, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rowcol.ConvergenceWarning)
        result = rowcol.solve(
            Z, np.sin(Z[:, 0]), kernel=kernels.RBF(gamma=0.05), alpha=1e-6, method=method, tol=1e-2, random_state=0
        )
    assert result.status is not rowcol.Status.INDEFINITE
    assert result.certificate.value <= 1.0 + 1e-12
    if method == "auto":
        assert result.success


def test_sizes_that_single_precision_does_not_have():
    """Scaled by powers of two far beyond it, and back: the same answers."""
    base = rowcol.solve(X, y, kernel=kernels.RBF(), alpha=0.1, tol=1e-6, method="pcg", random_state=0).x
    for power in (140, -140, 400, -400):
        c = 2.0**power
        for method in ("pcg", "blocks", "cg"):
            result = rowcol.solve(
                X, y, kernel=c * kernels.RBF(), alpha=0.1 * c, method=method, tol=1e-6, random_state=0
            )
            assert result.success
            assert np.allclose(result.x * c, base, atol=1e-4)


@pytest.mark.parametrize("method", ["pcg", "direct", "blocks"])
def test_alphas_over_many_orders(method):
    noise = 10.0 ** np.random.default_rng(0).uniform(-8, 8, 100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rowcol.ConvergenceWarning)
        result = rowcol.solve(X, y, kernel="rbf", alpha=noise, method=method, tol=1e-6, random_state=0)
    left = y - kernels.RBF()(X) @ result.x - noise * result.x
    measured = np.linalg.norm(left / np.sqrt(noise)) / np.linalg.norm(y / np.sqrt(noise))
    assert measured <= result.certificate.value * (1 + 1e-9)
    if method != "blocks":
        assert result.success


def test_callers_in_several_threads_leave_nothing_behind():
    Z = np.random.default_rng(0).standard_normal((700, 4))
    b = np.stack([np.sin(Z[:, 0]), Z[:, 1]], axis=1)

    def solve(_):
        return rowcol.solve(
            Z, b, kernel="rbf", alpha=0.1, method="blocks", n_jobs=None, tol=1e-4, random_state=1, progress=False
        ).x

    before = [one["num_threads"] for one in threadpool_info()]
    alone = solve(0)
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(solve, range(8)))
    assert [one["num_threads"] for one in threadpool_info()] == before
    assert all(np.allclose(one, alone, rtol=1e-6, atol=1e-8) for one in together)


def test_given_matrices_with_weights_in_cross_validation_and_scaled():
    K = kernels.RBF()(X)
    w = np.where(np.arange(100) % 3 == 0, 0.0, 1.0)
    for kernel in ("precomputed", kernels.Precomputed(), 2.0 * kernels.Precomputed()):
        model = rowcol.KernelRidge(kernel=kernel, alpha=0.1).fit(K, y, sample_weight=w)
        c = 2.0 if isinstance(kernel, kernels.Kernel) and not isinstance(kernel, kernels.Precomputed) else 1.0
        some = w > 0
        star = np.linalg.solve(c * K[np.ix_(some, some)] + 0.1 * np.eye(int(some.sum())), y[some])
        assert np.allclose(model.predict(K[:5]), c * K[:5][:, some] @ star, atol=1e-3)
        assert len(cross_val_score(rowcol.KernelRidge(kernel=kernel), K, y, cv=3)) == 3
        assert rowcol.plan(K, y, kernel=kernel, alpha=0.1).route == "direct"


def test_an_indefinite_kernel_with_an_intercept_says_so():
    wrong = kernels.Function(lambda A, B: -np.exp(-((A[:, None] - B) ** 2).sum(-1)))
    with pytest.warns(rowcol.ConvergenceWarning, match="not positive definite"):
        result = rowcol.solve(X, y, kernel=wrong, alpha=1e-3, fit_intercept=True, method="direct")
    assert result.status is rowcol.Status.INDEFINITE


def test_functions_of_two_points_can_be_pickled():
    model = rowcol.KernelRidge(kernel=plain, alpha=0.1).fit(X[:30], y[:30])
    assert np.allclose(pickle.loads(pickle.dumps(model)).predict(X[:3]), model.predict(X[:3]))


@pytest.mark.parametrize("method", ["direct", "pcg", "blocks", "cg", "rk"])
def test_a_start_for_a_column_of_zeros(method):
    Y = np.stack([y, np.zeros(100)], axis=1)
    tol = 1e-1 if method == "rk" else 1e-4
    result = rowcol.solve(X, Y, kernel="rbf", alpha=1.0, method=method, x0=np.ones((100, 2)), tol=tol, random_state=0)
    assert result.success
    assert not result.x[:, 1].any()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: kernels.Sigmoid(coef0=np.nan), ValueError, "coef0"),
        (lambda: kernels.Polynomial(coef0="1"), TypeError, "coef0"),
        (lambda: kernels.Polynomial(degree=2.5)(X), ValueError, "degree must be a whole number"),
        (lambda: rowcol.solve(X, y, kernel="rbf", alpha=1.0, x0=np.full(100, 1e300)), ValueError, "x0 is too large"),
        (lambda: rowcol.solve(np.abs(X), y, kernel="chi2", alpha=1.0).function(-np.abs(X)), ValueError, "not negative"),
        (lambda: rowcol.solve(X, y, kernel="rbf", alpha=1.0, sampler="uniform"), ValueError, "sampler"),
    ],
)
def test_mistakes_are_named(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_small_things():
    assert (kernels.RBF() * np.int64(2))(X[:1])[0, 0] == 2.0
    assert kernels.Polynomial(degree=2.5)(np.abs(X)).shape == (100, 100)
    plan = rowcol.plan(np.zeros((1, 2)), [1.0], kernel="linear", alpha=1.0, method="rk")
    assert plan.route == "rk"
    assert (
        rowcol.plan(X, y, kernel="rbf", alpha=1.0).bytes
        < rowcol.plan(X, y, kernel=kernels.RBF() + kernels.Matern(), alpha=1.0).bytes
    )
    assert (
        rowcol.solve(X, y + 1e10, kernel="rbf", alpha=0.1, fit_intercept=True).function(X, return_bound=True)[1].min()
        >= 1e-6
    )


def test_a_callback_sees_what_the_user_asked_for():
    shapes = []
    Y, w = np.stack([y, y**2], axis=1), np.where(np.arange(100) < 10, 0.0, 1.0)
    options = dict(
        kernel="rbf", alpha=0.1, method="pcg", tol=1e-4, random_state=0, callback=lambda p: shapes.append(p.x.shape)
    )
    rowcol.solve(X, Y, fit_intercept=True, sample_weight=w, **options)
    rowcol.solve(X, y, fit_intercept=True, **options)
    assert set(shapes) == {(100, 2), (100,)}


def test_a_short_limit_is_kept():
    r = np.random.default_rng(0)
    Z = r.standard_normal((6000, 20))
    rowcol.solve(Z[:600], Z[:600, 0], kernel="rbf", alpha=1e-3, tol=1e-2, method="pcg", random_state=0)
    with pytest.warns(rowcol.ConvergenceWarning, match="max_seconds"):
        result = rowcol.solve(Z, np.sin(Z[:, 0]), kernel="rbf", alpha=1e-6, max_seconds=0.1, random_state=0, tol=1e-8)
    assert result.method != "direct"
    assert result.certificate.value <= 1.0


# --- a second reading --------------------------------------------------------------------------------------------


def test_a_huge_value_at_a_point_left_out_certifies_nothing_false():
    Y = np.stack([y, y], axis=1)
    Y[0, 0] = 1e200
    A = np.full((100, 2), 0.1)
    A[0, 0] = np.inf
    for method in ("pcg", "direct"):
        result = rowcol.solve(X, Y, kernel="rbf", alpha=A, method=method, tol=1e-6, random_state=0)
        assert result.success
        star = np.linalg.solve(kernels.RBF()(X[1:]) + 0.1 * np.eye(99), y[1:])
        assert np.allclose(result.x[1:, 0], star, atol=1e-4)
        assert result.x[0, 0] == 0


@pytest.mark.parametrize("method", ["direct", "blocks", "rk", "pcg"])
def test_callbacks_and_limits_of_columns_one_by_one(method):
    Y = np.stack([y, y + 1, y**2], axis=1)
    A = np.full((100, 3), 2.0)
    A[:5, 1] = np.inf
    seen = []
    tol = 0.1 if method == "rk" else 1e-4
    options = dict(kernel="rbf", alpha=A, method=method, tol=tol, random_state=0)
    result = rowcol.solve(X, Y, callback=lambda p: seen.append(p.x), **options)
    assert {x.shape for x in seen} == {(100, 3)}
    assert np.allclose(seen[-1], result.x)
    calls = []
    stopped = rowcol.solve(X, Y, callback=lambda p: calls.append(1) or True, **options)
    assert len(calls) == 1
    assert rowcol.Status.CALLBACK in stopped.statuses or stopped.success
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rowcol.ConvergenceWarning)
        short = rowcol.solve(X, Y, max_passes=1.0, **{**options, "tol": 1e-12})
    assert short.passes <= 3.5


def test_a_hand_over_shows_every_column(monkeypatch):
    from rowcol.methods import kernel_routes

    monkeypatch.setattr(kernel_routes, "SMALL", -(10**6))
    r = np.random.default_rng(0)
    Z = r.standard_normal((40, 2))
    Y = np.stack([np.sin(Z[:, 0]), Z[:, 1] ** 2, np.zeros(40)], axis=1)
    shapes = set()
    result = rowcol.solve(
        Z, Y, kernel=kernels.RBF(gamma=0.1), alpha=1e-9, random_state=0, callback=lambda p: shapes.add(p.x.shape)
    )
    assert shapes == {(40, 3)}
    assert result.method.startswith("pcg")


def test_the_bound_knows_what_rounding_does_to_the_intercept():
    Z, g = np.array([[1e-3], [-1e-3]]), 0.3
    result = rowcol.solve(Z, [g, -g * (1 + 1e-13)], kernel="linear", alpha=1.0, fit_intercept=True)
    values, bound = result.function([[0.0]], return_bound=True)
    assert abs(values[0] - (-g * 1e-13 / 2)) <= bound[0]


def test_a_matrix_that_is_seen_to_be_indefinite_gets_no_bound():
    result = rowcol.solve(-0.5 * np.eye(30), y[:30], kernel="precomputed", alpha=1.0)
    assert result.success  # K + alpha is positive definite, and the system solved
    assert result.error_bound is None


def test_fractions_of_new_points_that_have_none():
    function = rowcol.solve(np.abs(X), y, kernel=kernels.Polynomial(degree=2.5), alpha=1.0).function
    with pytest.raises(ValueError, match="no finite number"):
        function(-3 * np.abs(X))


def test_two_roundings_of_every_feature():
    Z = np.concatenate([1025 + np.random.default_rng(0).random(30), -1025 - np.random.default_rng(1).random(30)])[
        :, None
    ]
    g = gram(kernels.RBF(gamma=0.7), Z)
    wide = Z.astype(np.longdouble)
    assert np.abs(written(g) - np.exp(-np.longdouble(0.7) * (wide - wide.T) ** 2)).max() <= g.error


@pytest.mark.parametrize("method", ["pcg", "blocks", "cg"])
def test_factors_within_a_tree_that_leave_single_precision(method):
    kernel = (1e40 * kernels.RBF()) * (1e-40 * kernels.RBF())
    result = rowcol.solve(X, y, kernel=kernel, alpha=1.0, method=method, tol=1e-6, random_state=0)
    assert result.success


def test_what_the_column_of_ones_did_is_not_shown():
    sums = []
    result = rowcol.solve(
        X, y, kernel="rbf", alpha=0.1, fit_intercept=True, method="pcg", callback=lambda p: sums.append(p.x.sum())
    )
    assert abs(sums[-1]) < 1e-9
    assert {i for _, i, _ in result.history.certificate} == {0}
    assert all(one.shape == (1,) for one in result.history.energy)
    part = np.where(np.arange(100) < 30, 7.3, 1e10 / 3)
    A = np.stack([np.where(np.arange(100) < 30, np.inf, 0.1), np.full(100, 0.1)], axis=1)
    both = rowcol.solve(X, np.stack([part, y], axis=1), kernel="rbf", alpha=A, fit_intercept=True, method="pcg")
    assert both.statuses[0] is rowcol.Status.CONVERGED
    assert both.intercept[0] == pytest.approx(1e10 / 3)


def test_weights_of_a_sampler_and_columns_of_their_own():
    A = np.full((100, 2), 2.0)
    A[:7, 0] = np.inf
    Y = np.stack([y, y**2], axis=1)
    weights = np.linspace(1, 2, 100)
    assert rowcol.solve(X, Y, kernel="rbf", alpha=A, method="rk", sampler=weights, tol=0.1, random_state=0).success


def test_a_list_of_one_alpha():
    a, b = (rowcol.KernelRidge(alpha=alpha, kernel="rbf").fit(X, y).dual_coef_ for alpha in ([0.5], 0.5))
    assert (a == b).all()


def test_a_kernel_of_zeros():
    result = rowcol.solve(np.zeros((50, 2)), y[:50], kernel="linear", alpha=1e30, method="pcg", random_state=0)
    assert result.success
    assert not np.isnan(result.error_estimate)
