"""What a hostile reading of the kernel estimators found, each against a truth of its own."""

import numpy as np
import pytest
import scipy.linalg
from sklearn.exceptions import NotFittedError
from sklearn.kernel_ridge import KernelRidge as Plain
from sklearn.metrics import r2_score
from sklearn.model_selection import LeaveOneOut

from rowcol import KernelRidge, KernelRidgeClassifier, KernelRidgeCV, kernels, solve
from rowcol.estimators.validating import check_parameters


def _points(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    return X, np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(n)


# --- rows that come after the parameters have changed -----------------------------------------------------------------


@pytest.mark.parametrize("other", [{"gamma": 0.03}, {"kernel": "poly", "degree": 2}], ids=["gamma", "kernel"])
def test_rows_that_come_after_the_kernel_was_changed(other):
    X, y = _points(1200)
    model = KernelRidge(0.1, kernel="rbf", gamma=0.3, solver="pcg", random_state=0, tol=1e-3).fit(X[:1150], y[:1150])
    model.set_params(**other).add_rows(X[1150:], y[1150:])
    fresh = KernelRidge(**model.get_params()).fit(X, y)
    assert model.result_.success
    assert model.n_iter_ <= fresh.n_iter_ + 2  # the old preconditioner took 60 times as many
    assert not any("serve again" in line for line in model.plan_.learned)


def test_rows_that_come_to_a_function_whose_arrays_were_changed():
    X, y = _points(60)

    def weighed(a, b, w):
        return float(a @ (w * b)) + 1.0

    model = KernelRidge(0.1, kernel=weighed, kernel_params={"w": np.ones(2)}, solver="pcg", random_state=0)
    model.fit(X[:50], y[:50]).set_params(kernel_params={"w": np.array([1.0, 3.0])}).add_rows(X[50:], y[50:])
    K = (X * [1.0, 3.0]) @ X.T + 1.0
    truth = K @ np.linalg.solve(K + 0.1 * np.eye(60), y)
    np.testing.assert_allclose(model.predict(X), truth, atol=1e-3)


# --- KernelRidgeCV ----------------------------------------------------------------------------------------------------


def test_rows_named_twice_by_cv_count_twice():
    X, y = _points()
    train, test = np.repeat(np.arange(50), [1, 3] * 25), np.arange(50, 120)
    model = KernelRidgeCV([0.3], kernel="rbf", gamma=0.5, cv=[(train, test)], cv_tol=1e-8).fit(X, y)
    mean = y[train].mean()
    plain = Plain(alpha=0.3, kernel="rbf", gamma=0.5).fit(X[train], y[train] - mean)
    assert abs(model.best_score_ - r2_score(y[test], plain.predict(X[test]) + mean)) < 1e-9


@pytest.mark.parametrize("value", [0.0, 1.0, 3.3])
@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "none"])
def test_y_that_is_the_same_everywhere(value, intercept):
    X, y = _points()
    model = KernelRidgeCV(kernel="rbf", fit_intercept=intercept, random_state=0).fit(X, np.full_like(y, value))
    assert model.result_.success
    np.testing.assert_allclose(model.predict(X), value, atol=0.05 * value)


@pytest.mark.parametrize("size", [1e-170, 1e160, 1e300])
def test_choice_does_not_depend_on_the_unit_of_y(size):
    X, y = _points()
    model, plain = (KernelRidgeCV(kernel="rbf", random_state=0).fit(X, y * unit) for unit in (size, 1.0))
    np.testing.assert_allclose([model.alpha_, model.best_score_], [plain.alpha_, plain.best_score_], rtol=1e-6)


@pytest.mark.parametrize("size", [1e-170, 1e160])
def test_choice_does_not_depend_on_the_unit_of_points(size):
    X, y = _points()
    model, plain = (KernelRidgeCV(kernel="rbf", random_state=0).fit(X * unit, y) for unit in (size, 1.0))
    np.testing.assert_allclose(model.kernel_.length_scale / size, plain.kernel_.length_scale, rtol=1e-6)
    assert abs(model.best_score_ - plain.best_score_) < 1e-6


def test_leave_one_out_on_a_ladder():
    X, y = _points(2000)
    error = "neg_mean_squared_error"
    model = KernelRidgeCV([0.1], kernel="rbf", gamma=0.5, cv=LeaveOneOut(), scoring=error, random_state=0)
    few = [(train, test) for train, test in LeaveOneOut().split(X) if test[0] < 60]  # all of them take their time
    model.set_params(cv=few).fit(X, y)
    assert model.cv_results_["n_resources"].min() == 500
    assert model.best_score_ > -0.05


@pytest.mark.parametrize(
    ("what", "kind", "said"),
    [
        ({"solver": "foo"}, ValueError, "solver must be one of"),
        ({"tol": -1}, ValueError, "tol must be"),
        ({"max_iter": -1}, ValueError, "max_iter must be"),
        ({"fit_intercept": "no"}, TypeError, "fit_intercept must be"),
        ({"callback": 3}, TypeError, "callback must be"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be"),
        ({"random_state": "a"}, ValueError, "random_state must be"),
        ({"random_state": -1}, ValueError, "random_state must be"),
        ({"alphas": "abc"}, TypeError, "alphas must be"),
        ({"length_scales": "abc"}, TypeError, "length_scales must be"),
        ({"length_scales": [None]}, TypeError, "length_scale"),
        ({"length_scales": []}, ValueError, "length_scales must hold"),
        ({"length_scales": [1.0], "kernel": "poly"}, ValueError, "length_scales are for"),
        ({"cv": []}, ValueError, "cv gives no folds"),
        ({"cv": [([0, 1], [2, 120])]}, ValueError, "cv must give positions of rows, from 0 to 119"),
        ({"cv": [([0.0, 1.0], [2.0])]}, ValueError, "cv must give positions"),
        ({"cv": [([], [2])]}, ValueError, "nothing to fit"),
    ],
    ids=lambda one: ",".join(one) if isinstance(one, dict) else "",
)
def test_what_is_wrong_is_said_before_any_work(monkeypatch, what, kind, said):
    def climbed(*_):
        raise AssertionError("it went to work")

    monkeypatch.setattr("rowcol.estimators.kernel_cv.climbed", climbed)
    with pytest.raises(kind, match=said):
        KernelRidgeCV(**{"kernel": "rbf", **what}).fit(*_points())


def test_a_check_does_not_draw_from_a_generator():
    one, two = (np.random.default_rng(3) for _ in range(2))
    check_parameters(KernelRidgeClassifier(0.1, random_state=one), kernel=True)
    assert one.bit_generator.state == two.bit_generator.state


def test_a_fold_that_fits_rows_of_no_weight():
    X, y = _points()
    weight = (np.arange(120) >= 24).astype(float)
    folds = [(np.arange(24), np.arange(24, 120)), (np.arange(24, 120), np.arange(24))]
    with pytest.raises(ValueError, match="sample_weight 0"):
        KernelRidgeCV(kernel="rbf", cv=folds).fit(X, y, sample_weight=weight)


@pytest.mark.parametrize(
    "scales", [1.0, np.array(1.0), [1.0, [1.0, 2.0]], (v for v in (1.0, 2.0))], ids=["one", "0-d", "mixed", "generator"]
)
def test_length_scales_in_many_forms(scales):
    model = KernelRidgeCV([0.01, 0.1], kernel="rbf", length_scales=scales).fit(*_points())
    assert model.best_score_ > 0.9


def test_a_choice_that_fails_leaves_the_last_one(monkeypatch):
    X, y = _points()
    model = KernelRidgeCV(kernel="rbf", random_state=0).fit(X, y)
    before = {name: getattr(model, name) for name in ("kernel_", "alpha_", "stages_", "best_score_", "result_")}
    model.set_params(kernel="matern")

    def fails(*_, **__):
        raise MemoryError

    monkeypatch.setattr(model, "_solved", fails)
    with pytest.raises(MemoryError):
        model.fit(X, -y)
    assert all(getattr(model, name) is one for name, one in before.items())


# --- KernelRidgeClassifier --------------------------------------------------------------------------------------------


def test_probabilities_of_an_earlier_fit_do_not_stay():
    X, y = _points()
    classes = np.digitize(y, [-0.5, 0.5])
    model = KernelRidgeClassifier(0.1, probability=True, random_state=0).fit(X, classes)
    model.set_params(probability=False).fit(X[:, ::-1], classes[::-1])
    with pytest.raises(NotFittedError):
        model.set_params(probability=True).predict_proba(X)


@pytest.mark.parametrize(
    ("what", "weight", "kind", "said"),
    [
        ({"alpha": "a"}, None, TypeError, "alpha must be a number"),
        ({"alpha": 0}, None, ValueError, "alpha must be above 0 and finite, for every class"),
        ({"tol": "a"}, None, TypeError, "tol must be"),
        ({"max_seconds": "a"}, None, TypeError, "max_seconds must be"),
        ({}, np.arange(120) == 0, ValueError, "two points or more"),
        ({"class_weight": "balanced"}, np.ones(50), ValueError, r"sample_weight must have shape \(120,\)"),
    ],
    ids=["alpha a", "alpha 0", "tol", "max_seconds", "one point", "weights"],
)
def test_what_a_classifier_cannot_take(what, weight, kind, said):
    X, y = _points()
    with pytest.raises(kind, match=said):
        KernelRidgeClassifier(**{"probability": True, **what}).fit(X, y > 0, sample_weight=weight)


# --- KernelRidge ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["rbf", lambda a, b: float(np.exp(-((a - b) ** 2).sum()))], ids=["rbf", "function"])
def test_pieces_that_come_in_the_same_array(kernel):
    X, y = _points(90)
    model, piece = KernelRidge(0.1, kernel=kernel, gamma=1.0), np.empty((30, 2))
    for i in range(0, 90, 30):
        piece[:] = X[i : i + 30]
        model.partial_fit(piece, y[i : i + 30])
    piece[:] = 0.0
    truth = Plain(alpha=0.1, kernel="rbf", gamma=1.0).fit(X, y).predict(X)
    np.testing.assert_allclose(model.predict(X), truth, atol=1e-3)
    assert (model.X_fit_ == X).all()


@pytest.mark.parametrize("alpha", ["a", None, True, ["a"], [None], [True]], ids=repr)
def test_an_alpha_that_is_no_number(alpha):
    with pytest.raises(TypeError, match="alpha must be a number above 0"):
        KernelRidge(alpha).fit(*_points())


def test_weights_that_are_no_numbers():
    with pytest.raises(TypeError, match="sample_weight must be an array of numbers"):
        KernelRidge().fit(*_points(), sample_weight="a")


def test_what_was_fitted_decides_and_not_what_was_set_since():
    X, y = _points(20)
    model = KernelRidge(0.1, kernel="rbf").fit(X[:1], y[:1]).set_params(fit_intercept=True, kernel="precomputed")
    assert abs(model.loo_residuals().residuals[0] - y[0]) < 1e-12  # nothing is left: f = 0
    assert abs(model.predict(X[:1], return_std=True)[1][0] ** 2 - (1 - 1 / 1.1)) < 1e-12


@pytest.mark.parametrize("alpha", [0.01, 0.1])
def test_the_estimate_of_the_error_is_not_below_it(alpha):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 3))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(3000)
    kernel = kernels.RBF(gamma=0.3)
    result = solve(X, y, kernel=kernel, alpha=alpha, method="pcg", random_state=0, tol=1e-2)
    K = kernel(X)
    off = result.x - scipy.linalg.solve(K + alpha * np.eye(3000), y, assume_a="pos")
    assert np.sqrt(off @ K @ off) <= 1.01 * result.error_estimate  # it was 2.4 times as large
