"""What adversarial readings of ridge, intercepts and choices found: each was wrong once."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import linear_model
from sklearn.model_selection import KFold, LeaveOneOut

import rowcol
from honest import norm


def centred(X, y, w=None):
    w = np.ones(len(y), np.longdouble) if w is None else w.astype(np.longdouble)
    X, y, pi = X.astype(np.longdouble), y.astype(np.longdouble), w / w.sum()
    return np.sqrt(w)[:, None] * (X - pi @ X), np.sqrt(w) * (y - pi @ y)


@pytest.mark.parametrize("method", ["rcd", "rk", "sgs-cg", "blocks", "cg", "direct"])
@pytest.mark.parametrize("mean", [1e4, 1e8, 1e10])
@pytest.mark.parametrize("weighted", [True, False])
def test_means_and_weights_are_in_the_certificate(method, mean, weighted, rng):
    """Scaling by √w before centring rounded away what was left."""
    X, y = mean + rng.standard_normal((200, 3)), rng.standard_normal(200)
    w = rng.random(200) + 0.1 if weighted else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = rowcol.solve(
            X, y, alpha=0.01, sample_weight=w, fit_intercept=True, method=method, tol=1e-9, random_state=0
        )
    A, b = centred(X, y, w)
    gap = norm(A.T @ (b - A @ result.x) - 0.01 * result.x) / 0.1 / norm(b)
    if result.dual is None or result.certificate.value >= gap:
        assert gap <= result.certificate.value * (1 + 1e-6)
    truth = np.linalg.solve((A.T @ A).astype(float) + 0.01 * np.eye(3), (A.T @ b).astype(float))
    assert norm(result.x - truth) <= result.certificate.error_bound * (1 + 1e-6) + 1e-14


def test_rows_that_sum_to_nothing_have_one_rank_less():
    """n ≤ p with an intercept is never unique; nor are fewer rows that count."""
    for seed in range(6):
        g = np.random.default_rng(seed)
        for n, mean in ((4, 1e4), (4, 1.0), (2, 0.0)):
            X, y = mean + g.standard_normal((n, n)), g.standard_normal(n)
            result = rowcol.solve(X, y, fit_intercept=True)
            A, b = centred(X, y)
            shortest = np.linalg.pinv(A.astype(float), rcond=1e-9) @ b.astype(float)
            assert result.solution.startswith("minimum norm")
            np.testing.assert_allclose(result.x, shortest, atol=1e-4 * max(norm(shortest), 1.0))
    X, y, w = g.standard_normal((5, 2)), g.standard_normal(5), np.array([1.0, 0, 0, 2, 0])
    assert "unique" not in rowcol.solve(X, y, sample_weight=w, fit_intercept=True).solution


def test_sparse_single_steps_claim_nothing_of_a_free_intercept(rng):
    X, y = sp.random_array((20, 60), density=0.4, rng=rng, format="csr"), rng.standard_normal(20)
    for method in ("rk", "rek", "sgs-cg", "rcd", "blocks"):
        with pytest.raises(ValueError, match="needs alpha > 0"):
            rowcol.solve(X, y, fit_intercept=True, method=method)
    X = X.tolil()
    X[3] = 0  # an empty row is no contradiction
    result = rowcol.solve(X.tocsr(), y, fit_intercept=True)
    assert "inconsistent" not in result.message


def test_constant_is_what_is_constant(rng):
    """Not what is nearly so: a few last bits are data."""
    x = rng.uniform(-8e-4, 8e-4, 20)
    y = 1e12 + x
    result = rowcol.solve(x[:, None], y, alpha=1e-9, fit_intercept=True)
    A, b = centred(x[:, None], y)
    np.testing.assert_allclose(result.x[0], float(A[:, 0] @ b / (A[:, 0] @ A[:, 0] + 1e-9)), rtol=1e-6)
    X = rng.standard_normal((500, 2))
    X[:, 1] = 1 + 2.0**-50 * rng.integers(0, 4, 500)
    y = (X[:, 1] - 1) * 2.0**50 + 0.01 * rng.standard_normal(500)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few bits may be beyond certifying; but not ignored
        result = rowcol.solve(X, y, fit_intercept=True)
    assert result.x[1] == pytest.approx(2.0**50, rel=0.05) or not result.success
    n = 300_000
    A = sp.hstack([sp.random_array((n, 3), density=0.1, rng=rng), np.full((n, 1), 0.1)]).tocsr()
    result = rowcol.solve(A, rng.standard_normal(n), fit_intercept=True)
    assert result.success
    assert result.x[3] == 0.0
    w = np.ones(30)
    w[:3] = 0
    y = np.append([5.0, 6.0, 7.0], np.full(27, 0.1))
    assert not rowcol.solve(rng.standard_normal((30, 2)), y, alpha=1.0, sample_weight=w, fit_intercept=True).x.any()


def test_constant_columns_in_a_stream(rng):
    X = rng.standard_normal((60, 5))
    y = X @ np.arange(5.0) + 3 + rng.standard_normal(60)
    Z = np.hstack([X, np.full((60, 1), 0.1)])
    model = rowcol.LeastSquares().partial_fit(Z[:25], y[:25]).partial_fit(Z[25:], y[25:])
    assert abs(model.coef_[-1]) <= 1e-12
    whole = rowcol.LeastSquares().fit(Z, y)
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-9)
    assert model.intercept_ == pytest.approx(whole.intercept_)


def test_a_stream_that_failed_has_taken_nothing(rng):
    X, y = rng.standard_normal((60, 3)), rng.standard_normal(60)
    model = rowcol.Ridge().partial_fit(X[:30], y[:30])
    with pytest.raises(ValueError, match="alpha"):
        model.set_params(alpha=-1.0).partial_fit(X[30:], y[30:])
    model.set_params(alpha=1.0).partial_fit(X[30:], y[30:]).partial_fit(X[:9], y[:9], np.zeros(9))
    np.testing.assert_allclose(model.coef_, rowcol.Ridge().fit(X, y).coef_, atol=1e-9)
    assert rowcol.Ridge().partial_fit(X.astype(np.float32), y).coef_.dtype == np.float32
    huge = rowcol.Ridge(1e160).partial_fit(X, y, np.full(60, 1e160)).partial_fit(X, y, np.full(60, 1e160))
    np.testing.assert_allclose(huge.coef_, rowcol.Ridge().fit(np.vstack([X, X]), np.append(y, y)).coef_, atol=1e-9)


def test_the_intercept_is_that_of_the_x_that_is_stored(rng):
    Z = (1e5 + rng.standard_normal((60, 5))).astype(np.float32)
    y = Z.astype(float) @ np.arange(5.0) + rng.standard_normal(60)
    result = rowcol.solve(Z, y, alpha=1.0, fit_intercept=True)
    mine = y.mean() - Z.astype(float).mean(axis=0) @ result.x.astype(float)
    assert result.intercept == pytest.approx(mine, rel=1e-12)


def test_a_factor_is_used_for_its_own_alpha_only(rng):
    X, Y = rng.standard_normal((50, 5)), rng.standard_normal((50, 40))
    alphas = np.logspace(-2, 3, 6)
    path = rowcol.ridge_path(X, Y, alphas, memory=1_500_000, method="direct")
    assert path.success
    for k, alpha in enumerate(alphas):
        np.testing.assert_allclose(
            path.coef[k], linear_model.Ridge(alpha, fit_intercept=False).fit(X, Y).coef_, atol=1e-8
        )


def test_folds_that_dominate_and_folds_that_are_no_partition(rng):
    X, y = rng.standard_normal((60, 5)), rng.standard_normal(60)
    alphas = [1e-3, 1.0, 100.0]
    drawn = [(rng.choice(train, len(train)), test) for train, test in KFold(4).split(X)]
    masks = [(np.isin(np.arange(60), train), np.isin(np.arange(60), test)) for train, test in KFold(3).split(X)]
    X2, y2 = X.copy(), y.copy()
    X2[3] *= 1e9
    y2[3] *= 1e9
    for A, b, cv in ((X, y, drawn), (X, y, masks), (X2, y2, 5)):
        ours = rowcol.RidgeCV(alphas, cv=cv, fit_intercept=False).fit(A, b)
        for k, alpha in enumerate(alphas):
            model = linear_model.Ridge(alpha, fit_intercept=False, solver="svd")
            splits = list(KFold(5).split(A)) if cv == 5 else cv
            scores = [model.fit(A[train], b[train]).score(A[test], b[test]) for train, test in splits]
            assert ours.scores_[k] == pytest.approx(np.mean(scores), rel=1e-4, abs=1e-6)


def _by_hand(X, y, w, alpha):
    out = []
    for train, test in LeaveOneOut().split(X):
        model = linear_model.Ridge(alpha, solver="svd").fit(X[train], y[train], None if w is None else w[train])
        out.append(float(model.predict(X[test])[0] - y[test][0]) ** 2)
    return np.array(out)


def test_leaving_one_out_with_means_weights_and_bad_scales():
    for seed, n, p, mean, scales, alpha in (
        (0, 10, 25, 1e6, 1.0, 1e-6),
        (1, 8, 20, 0.0, 1.0, 1e-6),
        (2, 22, 20, 0.0, np.geomspace(1, 1e5, 20), 1.0),
    ):
        g = np.random.default_rng(seed)
        X, y = mean + g.standard_normal((n, p)) * scales, g.standard_normal(n)
        w = g.uniform(0.5, 2.0, n) if seed == 1 else None
        for A in (X, sp.csr_array(X)):
            ours = rowcol.RidgeCV([alpha], store_cv_results=True).fit(A, y, w)
            truth = _by_hand(X, y, w, alpha) * (1.0 if w is None else w)
            np.testing.assert_allclose(ours.cv_results_[:, 0], truth, rtol=1e-4, atol=1e-6 * truth.max())


def test_callbacks_are_obeyed_in_a_race(rng):
    X, y = sp.random_array((3000, 2800), density=0.01, format="csr", rng=rng), rng.standard_normal(3000)
    for when in (1, 2, 4):
        seen = []

        def stop(progress, seen=seen, when=when):
            seen.append(progress)
            return len(seen) == when

        result = rowcol.solve(X, y, alpha=30.0, tol=1e-9, random_state=0, callback=stop)
        assert result.status is rowcol.Status.CALLBACK
        assert len(seen) == when
    rowcol.solve(X, y, alpha=30.0, random_state=0, callback=lambda p: seen.append(p))
    seen = []
    rowcol.solve(X, y, alpha=30.0, random_state=0, callback=lambda p: bool(seen.append(p)))
    assert [p.passes for p in seen] == sorted(p.passes for p in seen)


def test_plans_of_races_and_small_budgets(rng):
    X, y = sp.random_array((1500, 1400), density=0.02, format="csr", rng=rng), rng.standard_normal(1500)
    plan, result = rowcol.plan(X, y, alpha=30.0), rowcol.solve(X, y, alpha=30.0, random_state=0)
    assert "raced" in str(plan)
    assert plan.copies >= result.copied > 0
    assert rowcol.plan(X, y, alpha=30.0, memory="200 kB").route == "cg"


def test_standard_errors_are_never_those_of_another_fit(rng):
    X, Y = rng.standard_normal((60, 4)), rng.standard_normal((60, 2))
    model = rowcol.Ridge(covariance=True).fit(X, Y[:, 0], 2.0)
    assert model.standard_errors_.shape == (4,)
    assert not hasattr(model.set_params(covariance=False).fit(X, Y[:, 1]), "covariance_")
    with pytest.raises(ValueError, match="all 0 or all above"):
        rowcol.Ridge([0.0, 1.0], covariance=True).fit(X, Y)
    apart = rowcol.Ridge([2.0, 1.0], covariance=True, solver="rcd", random_state=0, tol=1e-9).fit(X, Y)
    together = rowcol.Ridge([2.0, 1.0], covariance=True).fit(X, Y)
    np.testing.assert_allclose(apart.covariance_, together.covariance_, rtol=1e-6)


def test_odds_and_ends(rng):
    X, y = rng.standard_normal((40, 3)), rng.standard_normal(40)
    model = rowcol.Ridge(warm_start=True, solver="cg").fit(X, y * 1e145)
    np.testing.assert_allclose(model.fit(X, y).coef_, rowcol.Ridge().fit(X, y).coef_, atol=1e-5)
    with pytest.raises(TypeError, match="one a target"):
        rowcol.Ridge([True, False]).fit(X, np.stack([y, y], 1))
    for scoring in (lambda model, X, y: -np.abs(y - model.predict(X)).max(), "neg_mean_absolute_error"):
        assert rowcol.RidgeCV(scoring=scoring).fit(X, y, np.ones(40)).alpha_ > 0
        assert rowcol.RidgeCV(scoring=scoring, cv=3).fit(X, y, np.ones(40)).alpha_ > 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="no score is a number"):
            rowcol.RidgeCV(cv=LeaveOneOut()).fit(X, y)
    with pytest.raises(ValueError, match="sample_weight must have shape"):
        rowcol.RidgeCV().fit(X, y, np.ones(7))
    slow = sp.csr_array(rng.standard_normal((300, 40)) @ np.diag(np.geomspace(1, 1e-4, 40)))
    with pytest.warns(rowcol.ConvergenceWarning):
        rowcol.solve(
            slow, rng.standard_normal(300), alpha=1e-9, fit_intercept=True, method="rcd", max_seconds=0.2, tol=1e-12
        )
