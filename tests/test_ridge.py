"""Ridge, LeastSquares and RidgeClassifier: scikit-learn's manners, LAPACK's answers, and what each part promises."""

import pickle
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.optimize import lsq_linear
from scipy.sparse.linalg import aslinearoperator
from sklearn import config_context, datasets, linear_model
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import rowcol
from oracle import scattered

ESTIMATORS = [rowcol.Ridge(), rowcol.LeastSquares(), rowcol.RidgeCV(), rowcol.RidgeClassifier()]
VARIED = [
    rowcol.LeastSquares(positive=True),
    rowcol.Ridge(alpha=0.5, solver="cg", tol=1e-9),
    rowcol.RidgeCV(cv=3),
    rowcol.Ridge(fit_intercept=False),
]


# these skip themselves: we claim no array API, and a ridge classifier has no probabilities
NOT_FOR_US = ("check_array_api_input", "check_classifiers_multilabel_output_format_predict_proba")


def checks():
    for estimator in ESTIMATORS + VARIED:
        for one, check in estimator_checks_generator(estimator):
            name = getattr(check, "func", check).__name__
            dense = not estimator.__sklearn_tags__().input_tags.sparse
            # scikit-learn 1.6 asks this of everyone, later releases of those who say that they take sparse X
            if name not in NOT_FOR_US and not (dense and name == "check_sample_weight_equivalence_on_sparse_data"):
                yield pytest.param(one, check, id=f"{estimator}-{name}".replace("\n", ""))


@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def long_or_wide(shape, rng, q=None):
    """As scikit-learn's own fixture: columns of different size, an intercept, more or fewer rows than columns."""
    n, p = shape
    X = rng.standard_normal((n, p)) @ np.diag(np.geomspace(1, 1e-2, p)) + rng.uniform(-1, 1, p)
    y = X @ rng.standard_normal((p, q or 1)) + 2 + 0.1 * rng.standard_normal((n, q or 1))
    return X, y if q else y[:, 0]


@pytest.mark.parametrize("solver", ["auto", "direct", "cg", "sgs-cg", "sketch"])
@pytest.mark.parametrize("shape", [(60, 15), (15, 60)])
@pytest.mark.parametrize("kind", ["C", "F", "csr", "csc", "float32", "frame"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_ridge_is_scikit_learns_to_the_certificate(solver, shape, kind, fit_intercept, rng):
    X, Y = long_or_wide(shape, rng, 3)
    w = rng.uniform(0.1, 3.0, len(X))
    make = {"F": np.asfortranarray, "csr": sp.csr_array, "csc": sp.csc_array, "frame": pd.DataFrame}
    A = X.astype(np.float32) if kind == "float32" else make.get(kind, np.ascontiguousarray)(X)
    dense = A.astype(float) if kind == "float32" else X
    for y, alpha, weight in ((Y[:, 0], 0.3, None), (Y, 0.3, w), (Y, np.array([0.1, 1.0, 10.0]), w)):
        model = rowcol.Ridge(alpha=alpha, fit_intercept=fit_intercept, solver=solver, tol=1e-8, max_iter=5000)
        if np.ndim(alpha) and solver == "sketch" and shape[0] < shape[1] and kind in ("csr", "csc"):
            continue  # single precision of nothing: the same code as dense
        model.fit(A, y, weight)
        truth = linear_model.Ridge(alpha=alpha, fit_intercept=fit_intercept, solver="cholesky").fit(dense, y, weight)
        results = model.result_ if isinstance(model.result_, tuple) else (model.result_,)
        assert all(r.success for r in results)
        bound = np.concatenate([[c.error_bound for c in r.certificates] for r in results]).max()
        assert np.linalg.norm(model.coef_ - truth.coef_, axis=-1).max() <= bound * (1 + 1e-6) + 1e-9
        np.testing.assert_allclose(model.intercept_, truth.intercept_, atol=1e-3 if kind == "float32" else 1e-5)
        assert model.coef_.shape == truth.coef_.shape
        assert model.coef_.dtype == (np.float32 if kind == "float32" else np.float64)
        np.testing.assert_allclose(model.predict(A), truth.predict(dense), atol=1e-3 if kind == "float32" else 1e-5)
        assert model.dual_coef_.shape == y.shape


def test_badly_scaled_columns_where_scikit_learn_is_wrong_in_silence(rng):
    X = rng.standard_normal((500, 40)) * np.geomspace(1, 1e-3, 40)
    y = X @ rng.standard_normal(40) + 0.1 * rng.standard_normal(500)
    truth = linear_model.Ridge(alpha=1e-4, solver="svd").fit(X, y).coef_

    def error(model):
        return np.linalg.norm(model.fit(X, y).coef_ - truth) / np.linalg.norm(truth)

    # without a warning, which would be an error here
    assert error(linear_model.Ridge(alpha=1e-4, solver="lsqr", tol=1e-8)) > 0.1
    assert error(linear_model.Ridge(alpha=1e-4, solver="sparse_cg")) > 0.3
    for solver in ("auto", "direct", "cg"):
        model = rowcol.Ridge(alpha=1e-4, solver=solver)
        assert error(model) <= 1e-4
        assert model.result_.success


def test_weights_are_repetitions(rng):
    X, Y = long_or_wide((40, 8), rng, 2)
    w = rng.integers(0, 4, 40)
    again, y_again = np.repeat(X, w, axis=0), np.repeat(Y, w, axis=0)
    for model in (rowcol.Ridge(0.5, tol=1e-10), rowcol.LeastSquares(), rowcol.Ridge(0.5, solver="rk", tol=1e-9)):
        model.set_params(random_state=0)
        if model.solver == "rk":
            model.set_params(max_iter=20_000)
        a, b = clone(model).fit(X, Y, w), clone(model).fit(again, y_again)
        np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-6)
        np.testing.assert_allclose(a.intercept_, b.intercept_, atol=1e-6)


@pytest.mark.parametrize("solver", ["auto", "rk", "rcd", "cg"])
def test_an_alpha_a_target_also_zero(solver, rng):
    X, Y = long_or_wide((60, 6), rng, 3)
    model = rowcol.Ridge(np.array([0.0, 1.0, 5.0]), solver=solver, tol=1e-8, random_state=0, max_iter=50_000)
    if solver == "rk":
        model.set_params(alpha=np.array([2.0, 1.0, 5.0]))
    model.fit(X, Y)
    for k, a in enumerate(model.alpha):
        alone = linear_model.Ridge(a, solver="svd").fit(X, Y[:, k])
        np.testing.assert_allclose(model.coef_[k], alone.coef_, atol=1e-5)
        assert model.intercept_[k] == pytest.approx(alone.intercept_, abs=1e-5)
    with pytest.raises(ValueError, match="one a target"):
        rowcol.Ridge([1.0, 2.0]).fit(X, Y)
    with pytest.raises(ValueError, match="at least 0"):
        rowcol.Ridge(-1.0).fit(X, Y)


def test_pipelines_grids_names_pickles_and_reprs(rng):
    X, y = datasets.load_diabetes(return_X_y=True, as_frame=True)
    model = make_pipeline(StandardScaler(), rowcol.Ridge(alpha=10.0))
    theirs = make_pipeline(StandardScaler(), linear_model.Ridge(alpha=10.0))
    np.testing.assert_allclose(cross_val_score(model, X, y), cross_val_score(theirs, X, y), rtol=1e-6)
    search = GridSearchCV(rowcol.Ridge(), {"alpha": [0.01, 0.1, 1.0]}).fit(X, y)
    assert search.best_params_ == GridSearchCV(linear_model.Ridge(), {"alpha": [0.01, 0.1, 1.0]}).fit(X, y).best_params_
    plain = rowcol.Ridge(alpha=0.1).fit(X, y)
    assert list(plain.feature_names_in_) == list(X.columns)
    assert plain.n_features_in_ == 10
    again = pickle.loads(pickle.dumps(plain))
    assert np.array_equal(again.predict(X), plain.predict(X))
    assert again.result_.certificate == plain.result_.certificate
    assert "Ridge" in plain._repr_html_()
    assert clone(plain).get_params() == plain.get_params()
    assert plain.solver_ == "direct"
    assert plain.plan_.route == "direct"


def test_weights_are_routed_and_pandas_stays_pandas(rng):
    X, y = datasets.load_diabetes(return_X_y=True, as_frame=True)
    w = rng.integers(0, 3, len(y)).astype(float)
    with config_context(enable_metadata_routing=True):
        scale = StandardScaler().set_fit_request(sample_weight=False)
        pipe = make_pipeline(scale, rowcol.Ridge(3.0).set_fit_request(sample_weight=True))
        pipe.set_output(transform="pandas").fit(X, y, sample_weight=w)
    assert list(pipe[-1].feature_names_in_) == list(X.columns)
    theirs = linear_model.Ridge(3.0, solver="svd").fit(StandardScaler().fit_transform(X), y, w)
    np.testing.assert_allclose(pipe[-1].coef_, theirs.coef_, atol=1e-6)


def test_not_converged_is_said(rng):
    X, y = long_or_wide((300, 40), rng)
    with pytest.warns(rowcol.ConvergenceWarning, match="max_passes"):
        model = rowcol.Ridge(1e-6, solver="cg", max_iter=2).fit(X, y)
    assert not model.result_.success
    stopped = rowcol.Ridge(1e-6, solver="cg", callback=lambda progress: progress.passes > 3).fit(X, y)
    assert stopped.result_.status is rowcol.Status.CALLBACK


@pytest.mark.parametrize("shape", [(2000, 30), (40, 500)])
@pytest.mark.parametrize("solver", ["rk", "cg"])
def test_warm_starts_are_exact_starts_also_when_wide(shape, solver, rng):
    X, y = long_or_wide(shape, rng)
    model = rowcol.Ridge(5.0, solver=solver, tol=1e-6, warm_start=True, random_state=0, max_iter=20_000)
    cold = model.fit(X, y).result_.passes
    again = model.fit(X, y).result_.passes
    assert again <= 2.0 < cold  # the start itself is certified
    model.set_params(alpha=4.5).fit(X, y)
    near = model.result_.passes
    assert near < rowcol.Ridge(4.5, solver=solver, tol=1e-6, random_state=0, max_iter=20_000).fit(X, y).result_.passes
    truth = linear_model.Ridge(4.5, solver="svd").fit(X, y).coef_
    assert np.linalg.norm(model.coef_ - truth) <= model.result_.certificate.error_bound + 1e-9
    model.fit(X[:-1], y[:-1])  # fewer rows: α is of no use, β is
    truth = linear_model.Ridge(4.5, solver="svd").fit(X[:-1], y[:-1]).coef_
    assert np.linalg.norm(model.coef_ - truth) <= model.result_.certificate.error_bound + 1e-9
    model.fit(X[:, :-1], y)  # another number of features: from zero
    assert model.coef_.shape == (shape[1] - 1,)


@pytest.mark.parametrize("estimator", [rowcol.Ridge(0.7, tol=1e-7), rowcol.LeastSquares(tol=1e-7)])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("q", [None, 2])
def test_rows_in_pieces_are_all_rows(estimator, fit_intercept, q, rng):
    X, y = long_or_wide((150, 12), rng, q)
    X[:, 3] += 1e4  # a mean that would spoil sums of squares
    w = rng.integers(0, 3, 150).astype(float)
    whole = clone(estimator).set_params(fit_intercept=fit_intercept).fit(X, y, w)
    model = clone(estimator).set_params(fit_intercept=fit_intercept)
    for start, stop in ((0, 1), (1, 5), (5, 6), (6, 80), (80, 150)):
        part = sp.csr_array(X[start:stop]) if start == 6 else X[start:stop]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # one row of weight zero, or a system that float64 cannot settle yet
            if w[start:stop].any():
                model.partial_fit(part, y[start:stop], w[start:stop])
    scale = np.abs(whole.coef_).max()
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-6 * scale)
    np.testing.assert_allclose(model.intercept_, whole.intercept_, atol=1e-2 * scale * fit_intercept)
    assert model.dual_coef_ is None
    assert model._stream.R.shape == (12 + (q or 1),) * 2  # whatever the number of rows
    assert "zero" not in model.result_.message, "rows of the triangle are not the user's"
    # Q changes no norm: what is certified is all rows
    np.testing.assert_allclose(
        [c.residual_norm for c in model.result_.certificates],
        [c.residual_norm for c in whole.result_.certificates],
        rtol=1e-6,
    )


def test_partial_fit_is_bounded_and_refuses(rng):
    X, y = long_or_wide((50, 8), rng)
    with pytest.raises(ValueError, match="triangle"):
        rowcol.Ridge(memory=1000).partial_fit(X, y)
    model = rowcol.Ridge().partial_fit(X, y)
    with pytest.raises(ValueError, match="not that of earlier rows"):
        model.partial_fit(X, np.stack([y, y], axis=1))
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :5], y)
    before = model.coef_.copy()
    bad = X.copy()
    bad[2, 2] = np.nan
    with pytest.raises(ValueError, match="NaN or infinity at row 2"):
        model.partial_fit(bad, y)
    assert np.array_equal(model.coef_, before)
    twice = rowcol.Ridge().fit(np.vstack([X, X]), np.append(y, y))
    np.testing.assert_allclose(model.partial_fit(X, y).coef_, twice.coef_)
    with pytest.raises(ValueError, match="fit_intercept was changed"):
        model.set_params(fit_intercept=False).partial_fit(X, y)
    model.fit(X, y)  # begins anew
    assert model._stream is None
    assert not hasattr(rowcol.Ridge(positive=True), "partial_fit")
    with pytest.raises(TypeError, match=r"rowcol\.solve"):
        rowcol.Ridge().fit(aslinearoperator(X), y)


def test_covariance_is_the_textbooks(rng):
    X, Y = long_or_wide((80, 5), rng, 2)
    w = rng.integers(1, 4, 80)
    A, B = np.repeat(X, w, axis=0), np.repeat(Y, w, axis=0)
    ones = np.hstack([A, np.ones((len(A), 1))])
    for alpha in (0.0, 3.0):
        model = rowcol.Ridge(alpha, covariance=True, tol=1e-10).fit(X, Y, w)
        G, penalty = ones.T @ ones, np.diag([alpha] * 5 + [0])
        inverse = np.linalg.inv(G + penalty)
        left = B - ones @ inverse @ ones.T @ B
        free = len(A) - np.trace(inverse @ G)
        for k in range(2):
            truth = (left[:, k] @ left[:, k] / free * inverse @ G @ inverse)[:5, :5]
            np.testing.assert_allclose(model.covariance_[k], truth, rtol=1e-6)
            np.testing.assert_allclose(model.standard_errors_[k], np.sqrt(np.diag(truth)), rtol=1e-6)
        pieces = rowcol.Ridge(alpha, covariance=True, tol=1e-10)
        for part in (slice(0, 30), slice(30, 80)):
            pieces.partial_fit(X[part], Y[part], w[part])
        np.testing.assert_allclose(pieces.covariance_, model.covariance_, rtol=1e-6)
    single = rowcol.LeastSquares(covariance=True, fit_intercept=False).fit(X, Y[:, 0])
    rss = np.sum((Y[:, 0] - X @ single.coef_) ** 2)
    np.testing.assert_allclose(single.covariance_, rss / 75 * np.linalg.inv(X.T @ X), rtol=1e-6)
    X[:, 1] = X[:, 0]
    with pytest.raises(ValueError, match="full column rank"):
        rowcol.LeastSquares(covariance=True).fit(X, Y)
    with pytest.raises(ValueError, match="leave nothing"):
        rowcol.LeastSquares(covariance=True).fit(X[:5, [0, 2, 3, 4]], Y[:5])


def test_spread_of_the_estimate_is_what_the_covariance_says():
    """Two-sided: 2,000 draws of y; the variance of a variance estimate is 2/2,000, so 5 sigma is 0.16."""
    rng = np.random.default_rng(7)
    X, beta = rng.standard_normal((60, 4)), np.arange(4.0)
    model = rowcol.Ridge(8.0, fit_intercept=False)
    Y = (X @ beta)[:, None] + 0.5 * rng.standard_normal((60, 2000))
    seen = np.cov(model.fit(X, Y).coef_.T)
    G = X.T @ X
    inverse = np.linalg.inv(G + 8.0 * np.eye(4))
    np.testing.assert_allclose(np.diag(seen), np.diag(0.25 * inverse @ G @ inverse), rtol=0.16)
    one = rowcol.Ridge(8.0, fit_intercept=False, covariance=True).fit(X, Y[:, 0])
    ratio = np.diag(one.covariance_) / np.diag(0.25 * inverse @ G @ inverse)
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-9)  # but for s², which is one draw's


@pytest.mark.parametrize("alpha", [0.0, 2.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_positive_coefficients(alpha, fit_intercept, rng):
    """Against SciPy's bounded least squares on the system with the penalty's rows and the intercept's column."""
    X, Y = long_or_wide((60, 8), rng, 2)
    w = rng.uniform(0.5, 2.0, 60)
    model = rowcol.Ridge(alpha, positive=True, fit_intercept=fit_intercept, tol=1e-9, max_iter=50_000, random_state=0)
    model.fit(X, Y, w)
    for k in range(2):
        ones = np.ones((60, 1)) if fit_intercept else np.ones((60, 0))
        A = np.sqrt(w)[:, None] * np.hstack([X, ones])
        A = np.vstack([A, np.hstack([np.sqrt(alpha) * np.eye(8), np.zeros((8, ones.shape[1]))])])
        low = [0.0] * 8 + [-np.inf] * ones.shape[1]
        truth = lsq_linear(A, np.append(np.sqrt(w) * Y[:, k], np.zeros(8)), (low, np.inf), method="bvls", tol=1e-14).x
        np.testing.assert_allclose(model.coef_[k], truth[:8], atol=1e-5)
        if fit_intercept:
            assert model.intercept_[k] == pytest.approx(truth[8], abs=1e-5)
    assert (model.coef_ >= 0).all()
    assert (model.coef_ == 0).any()
    assert "within bounds" in model.result_.solution
    with pytest.raises(ValueError, match="take no sparse X"):
        rowcol.Ridge(positive=True).fit(sp.csr_array(X), Y)
    assert (rowcol.Ridge(positive=True, fit_intercept=False).fit(sp.csr_array(X), Y).coef_ >= 0).all()
    apart = rowcol.Ridge([1.0, 3.0], positive=True, tol=1e-9).fit(X, Y)
    for k, a in enumerate((1.0, 3.0)):
        alone = rowcol.Ridge(a, positive=True, tol=1e-9).fit(X, Y[:, k])
        np.testing.assert_allclose(apart.coef_[k], alone.coef_, atol=1e-7)
    with pytest.raises(ValueError, match="bounds take one alpha"):
        rowcol.solve(X, Y, alpha=[1.0, 2.0], bounds=(0, 1))


def test_classes_labels_and_weights():
    X, y = datasets.load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    for target in (names, y == 1, (np.eye(3)[y]).astype(int)):
        for weight in (None, "balanced"):
            ours = rowcol.RidgeClassifier(class_weight=weight, tol=1e-9).fit(X, target)
            theirs = linear_model.RidgeClassifier(class_weight=weight, solver="svd").fit(X, target)
            np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-6)
            assert np.array_equal(ours.predict(X), theirs.predict(X))
            assert np.array_equal(ours.classes_, theirs.classes_)
            assert ours.score(X, target) == theirs.score(X, target)
    with pytest.raises(ValueError, match="one class"):
        rowcol.RidgeClassifier().fit(X, np.zeros(150))


def test_no_copy_of_x_is_made(rng):
    """A copy would be 32 MB. C order by rows and products; Fortran order and CSC by columns."""
    X = rng.standard_normal((20_000, 200))
    y = rng.standard_normal(20_000)
    sparse = scattered(rng, 20_000, 2_000, 0.05, "csc")  # 24 MB
    cases = [
        (rowcol.Ridge(1.0, solver="rk", fit_intercept=False, tol=1e-2, max_iter=3), X),
        (rowcol.Ridge(1.0, solver="cg"), X),
        (rowcol.Ridge(1.0, solver="rcd", fit_intercept=False, tol=1e-2), np.asfortranarray(X)),
        (rowcol.Ridge(1.0, solver="cg"), np.asfortranarray(X)),
        (rowcol.Ridge(1.0, solver="rcd", fit_intercept=False, tol=1e-2), sparse),
        (rowcol.Ridge(1.0, solver="cg", tol=1e-3), sparse),
    ]
    for model, A in cases:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clone(model).fit(A[:300], y[:300])
            tracemalloc.start()
            model.fit(A, y)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert peak <= 10e6, (model, peak)
        assert model.result_.copied == 0
