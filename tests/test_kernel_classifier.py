"""KernelRidgeClassifier: scikit-learn's manners, LAPACK's answers, and probabilities that are held to the true ones."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import log_softmax, softmax
from sklearn import datasets
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss, pairwise
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils import compute_sample_weight
from sklearn.utils.estimator_checks import estimator_checks_generator

import rowcol
from rowcol.estimators.calibration import FOLDS, Calibration, calibrated, folds_of

# these skip themselves: we claim no array API, and without probability=True there are none
NOT_FOR_US = ("check_array_api_input", "check_classifiers_multilabel_output_format_predict_proba")
CHECKED = [rowcol.KernelRidgeClassifier(), rowcol.KernelRidgeClassifier(probability=True)]


def checks():
    for one in CHECKED:
        for k, (estimator, check) in enumerate(estimator_checks_generator(one)):
            name = getattr(check, "func", check).__name__
            if name not in NOT_FOR_US[: 1 if one.probability else 2]:
                yield pytest.param(estimator, check, id=f"{one.probability}-{name}-{k}")


@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_scikit_learns_contract(estimator, check):
    check(estimator)


def rings(n, classes=3, seed=0):
    """Rings around the origin, with some noise, and names for them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    radius = np.hypot(*X.T) + 0.1 * rng.standard_normal(n)
    y = np.digitize(radius, np.sqrt(2 * np.log(classes / np.arange(classes - 1, 0, -1))))
    return X, np.array(["inner", "middle", "outer", "far"])[y]


def dense(K, Y, lam, w, intercept):
    """LAPACK's α and b of (K + Λ)α + b = Y, Λ = λ/w, a column at a time."""
    n, out, b = len(K), np.zeros_like(Y), np.zeros(Y.shape[1])
    for k, a in enumerate(np.broadcast_to(lam, Y.shape[1])):
        A = np.zeros((n + 1, n + 1))
        A[:n, :n] = K + np.diag(a / w)
        A[n, :n] = A[:n, n] = float(intercept)
        A[n, n] = float(not intercept)
        solution = np.linalg.solve(A, np.append(Y[:, k], 0))
        out[:, k], b[k] = solution[:n], solution[n]
    return out, b


@pytest.mark.parametrize("solver", ["direct", "pcg", "blocks"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.5, [0.1, 1.0, 3.0]], ids=["one", "each"])
@pytest.mark.parametrize("class_weight", [None, "balanced", {"inner": 2.0, "outer": 0.5, "middle": 1.0}], ids=str)
def test_values_are_lapacks_to_the_certificate(solver, fit_intercept, alpha, class_weight):
    X, y = rings(150)
    new = rings(40, seed=1)[0]
    w = np.random.default_rng(3).uniform(0.5, 2, 150)
    model = rowcol.KernelRidgeClassifier(
        alpha,
        gamma=0.7,
        fit_intercept=fit_intercept,
        solver=solver,
        class_weight=class_weight,
        tol=1e-7,
        random_state=0,
    ).fit(X, y, sample_weight=w)
    assert model.result_.success
    assert model.classes_.tolist() == ["inner", "middle", "outer"]
    Y = np.where(y[:, None] == model.classes_, 1.0, -1.0)
    total = w * (1 if class_weight is None else compute_sample_weight(class_weight, y))
    coef, b = dense(pairwise.rbf_kernel(X, gamma=0.7), Y, alpha, total, fit_intercept)
    exact = pairwise.rbf_kernel(new, X, gamma=0.7) @ coef + b
    values, bound = model.result_.function(new, return_bound=True)
    assert np.array_equal(values, model.decision_function(new))
    assert (np.abs(values - exact) <= bound + 1e-12).all()
    np.testing.assert_allclose(values, exact, atol=1e-5)
    assert model.dual_coef_.shape == (150, 3)
    assert np.array_equal(model.predict(new), model.classes_[exact.argmax(axis=1)])
    if fit_intercept and np.ndim(alpha) == 0:  # what the docstring says of several classes
        np.testing.assert_allclose(values.sum(axis=1), -1.0, atol=1e-5)
        np.testing.assert_allclose(model.decision_function([[1e3, 1e3]])[0], model.intercept_, rtol=1e-12)


@pytest.mark.parametrize("probability", [False, True])
def test_class_weights_are_sample_weights_are_repetitions(probability):
    X, y = rings(120)
    times = {"inner": 1, "middle": 3, "outer": 2}
    each = np.array([times[c] for c in y])
    where = np.random.default_rng(0).permutation(np.repeat(np.arange(120), each))
    options = dict(alpha=0.3, gamma=0.5, probability=probability, random_state=0)
    by_class = rowcol.KernelRidgeClassifier(class_weight=times, **options).fit(X, y)
    by_point = rowcol.KernelRidgeClassifier(**options).fit(X, y, sample_weight=each.astype(float))
    repeated = rowcol.KernelRidgeClassifier(**options).fit(X[where], y[where])
    without = rowcol.KernelRidgeClassifier(**options).fit(X, y, sample_weight=np.where(y == "outer", 0.0, 1.0))
    new = rings(50, seed=1)[0]
    for other in (by_point, repeated):
        np.testing.assert_allclose(other.decision_function(new), by_class.decision_function(new), atol=1e-8)
        if probability:
            np.testing.assert_allclose(other.predict_proba(new), by_class.predict_proba(new), atol=1e-8)
    assert "outer" not in without.predict(new)


def test_two_classes_have_one_regression():
    X, y = rings(90, 2)
    model = rowcol.KernelRidgeClassifier(0.2, gamma=0.5, tol=1e-8, probability=True, random_state=0).fit(X, y)
    coef, b = dense(
        pairwise.rbf_kernel(X, gamma=0.5), np.where(y == "middle", 1.0, -1.0)[:, None], 0.2, np.ones(90), True
    )
    values = model.decision_function(X)
    assert values.shape == (90,)
    np.testing.assert_allclose(values, (pairwise.rbf_kernel(X, gamma=0.5) @ coef + b)[:, 0], atol=1e-7)
    assert np.array_equal(model.predict(X), np.where(values > 0, "middle", "inner"))
    chance = model.predict_proba(X)
    assert chance.shape == (90, 2)
    np.testing.assert_allclose(chance.sum(axis=1), 1.0, atol=1e-12)
    assert (np.diff(chance[np.argsort(values), 1]) >= 0).all()
    for named in (y == "middle", np.where(y == "middle", 3, -7)):
        again = clone(model).fit(X, named)
        np.testing.assert_array_equal(again.predict_proba(X), chance)
        assert np.array_equal(again.predict(X), again.classes_[(values > 0).astype(int)])


def test_several_labels_at_once():
    X, y = rings(200)
    labels = np.stack([y == "inner", X[:, 0] > 0, X.sum(axis=1) > -1], axis=1).astype(int)
    options = dict(alpha=0.3, gamma=0.5, tol=1e-8, probability=True, random_state=0)
    model = rowcol.KernelRidgeClassifier(**options).fit(X, labels)
    new = rings(60, seed=1)[0]
    values, chance = model.decision_function(new), model.predict_proba(new)
    assert values.shape == chance.shape == (60, 3)
    assert np.array_equal(model.predict(new), (values > 0).astype(int))
    assert model.score(X, labels) > 0.9
    assert model.classes_.tolist() == [0, 1, 2]
    for k in range(3):
        alone = rowcol.KernelRidgeClassifier(**options).fit(X, labels[:, k])
        np.testing.assert_allclose(alone.decision_function(new), values[:, k], atol=1e-6)
        np.testing.assert_allclose(alone.predict_proba(new)[:, 1], chance[:, k], atol=0.1)  # other folds


def test_points_may_be_sparse_or_a_kernel_matrix():
    X, y = rings(150)
    new = rings(30, seed=1)[0]
    options = dict(alpha=0.3, probability=True, random_state=0)
    model = rowcol.KernelRidgeClassifier(gamma=0.5, **options).fit(X, y)
    sparse = rowcol.KernelRidgeClassifier(gamma=0.5, **options).fit(sp.csr_array(X), y)
    given = rowcol.KernelRidgeClassifier(kernel="precomputed", **options).fit(pairwise.rbf_kernel(X, gamma=0.5), y)
    own = rowcol.KernelRidgeClassifier(kernel=rowcol.kernels.RBF(gamma=0.5), **options).fit(X, y)
    cross = pairwise.rbf_kernel(new, X, gamma=0.5)
    for other, at in ((sparse, sp.csr_array(new)), (sparse, sp.csc_array(new)), (given, cross), (own, new)):
        np.testing.assert_allclose(other.decision_function(at), model.decision_function(new), atol=1e-8)
        assert np.array_equal(other.predict(at), model.predict(new))
        np.testing.assert_allclose(other.predict_proba(at), model.predict_proba(new), atol=0.1)  # other folds
    np.testing.assert_array_equal(own.predict_proba(new), model.predict_proba(new))
    assert cross_val_score(given, pairwise.rbf_kernel(X, gamma=0.5), y, cv=3).mean() > 0.7  # it splits both sides


def test_digits_are_read_as_well_as_by_support_vectors():
    X, y = datasets.load_digits(return_X_y=True)
    train, test, train_y, test_y = train_test_split(X / 16, y, random_state=0)
    ours = rowcol.KernelRidgeClassifier(0.1, gamma=0.2).fit(train, train_y).score(test, test_y)
    theirs = SVC(gamma=0.2, C=10).fit(train, train_y).score(test, test_y)
    assert ours >= theirs - 0.005
    assert ours >= 0.985


def test_copies_pipelines_names_and_starts():
    X, y = rings(200)
    frame = pd.DataFrame(X, columns=["east", "north"])
    model = rowcol.KernelRidgeClassifier(0.3, gamma=0.5, probability=True, random_state=0).fit(frame, y)
    assert model.feature_names_in_.tolist() == ["east", "north"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["north", "east"]])
    same = pickle.loads(pickle.dumps(model))
    assert np.array_equal(same.predict(frame), model.predict(frame))
    assert np.array_equal(same.predict_proba(frame), model.predict_proba(frame))
    assert clone(model).get_params() == model.get_params()
    assert model.plan_.route == "direct"
    pipe = make_pipeline(StandardScaler(), rowcol.KernelRidgeClassifier(gamma=0.5))
    search = GridSearchCV(pipe, {"kernelridgeclassifier__alpha": [0.1, 1000.0]}, cv=3).fit(X, y)
    assert search.best_params_ == {"kernelridgeclassifier__alpha": 0.1}
    proba = GridSearchCV(model, {"alpha": [0.1, 1.0]}, scoring="neg_log_loss", cv=3).fit(X, y)
    assert proba.best_score_ > -0.6
    warm = rowcol.KernelRidgeClassifier(0.3, gamma=0.5, solver="pcg", warm_start=True, random_state=0).fit(X, y)
    first = warm.n_iter_
    assert warm.fit(X, y).n_iter_ < first


def test_what_is_wrong_is_named():
    X, y = rings(60)
    with pytest.raises(ValueError, match="one class only, 'inner'"):
        rowcol.KernelRidgeClassifier().fit(X, np.full(60, "inner"))
    with pytest.raises(ValueError, match="not in class_weight"):
        rowcol.KernelRidgeClassifier(class_weight={"innner": 2.0}).fit(X, y)
    with pytest.raises(ValueError, match="balanced"):
        rowcol.KernelRidgeClassifier(class_weight="even").fit(X, y)
    with pytest.raises(ValueError, match="one a class: there are 3"):
        rowcol.KernelRidgeClassifier(alpha=[1.0, 2.0]).fit(X, y)
    with pytest.raises(ValueError, match="alpha must be above 0"):
        rowcol.KernelRidgeClassifier(alpha=0.0).fit(X, y)
    with pytest.raises(ValueError, match="kernel must be"):
        rowcol.KernelRidgeClassifier(kernel="gauss").fit(X, y)
    with pytest.raises(ValueError, match="sample_weight"):
        rowcol.KernelRidgeClassifier(probability=True).fit(X, y, sample_weight=np.full(60, -1.0))
    without = rowcol.KernelRidgeClassifier().fit(X, y)
    assert not hasattr(without, "predict_proba")
    with pytest.raises(AttributeError, match="predict_proba") as found:
        without.predict_proba(X)
    assert "probability=True" in str(found.value.__cause__)
    with pytest.raises(ValueError, match="not fitted yet"):
        without.set_params(probability=True).predict_proba(X)


def test_what_is_asked_to_stop_stops():
    X, y = rings(400)
    seen = []
    model = rowcol.KernelRidgeClassifier(
        1e-3, gamma=0.5, probability=True, solver="pcg", callback=lambda p: seen.append(p.x.shape) or True
    ).fit(X, y)
    assert seen == [(400, 3 * FOLDS), (400, 3)]
    assert model.result_.status is rowcol.Status.CALLBACK
    model = rowcol.KernelRidgeClassifier(1e-3, gamma=0.5, probability=True, max_seconds=60).fit(X, y)
    assert model.result_.success


# --- folds -----------------------------------------------------------------------------------------------------------


def test_folds_are_even_in_every_class_and_keep_equal_points_together():
    X, y = rings(500)
    targets = np.where(y[:, None] == np.unique(y), 1.0, -1.0)
    w = np.where(np.arange(500) % 10 == 0, 0.0, 1.0)
    fold = folds_of(X, targets, w, 0)
    assert (fold[w == 0] == -1).all()
    for column in targets.T:
        counts = np.bincount(fold[(column > 0) & (w > 0)], minlength=FOLDS)
        assert np.ptp(counts) <= 1
    order = np.random.default_rng(0).permutation(np.tile(np.arange(500), 3))
    for kind in (np.asarray, sp.csr_array):
        alone = folds_of(kind(X), targets, w, 0)
        again = folds_of(kind(X[order]), targets[order], w[order], 0)
        assert np.array_equal(again, alone[order])
    assert not np.array_equal(fold, folds_of(X, targets, w, 1))
    few = np.arange(500.0)[:, None] % 7  # seven points, again and again
    spread = folds_of(few, targets, np.ones(500), 0)
    assert all(np.ptp(np.bincount(spread[few[:, 0] == k], minlength=FOLDS)) < 20 for k in range(7))
    assert folds_of(-few * 0, targets, np.ones(500), 0).max() == FOLDS - 1


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_values_left_out_are_those_of_fits_without_the_fold(fit_intercept, monkeypatch):
    from rowcol.estimators import kernel_classifier as home

    seen = []
    true = home.calibrated

    def watch(scores, targets, weight):
        seen.append(scores)
        return true(scores, targets, weight)

    monkeypatch.setattr(home, "calibrated", watch)
    X, y = rings(120)
    fold = folds_of(X, np.where(y[:, None] == np.unique(y), 1.0, -1.0), np.ones(120), 0)
    options = dict(alpha=0.4, gamma=0.5, fit_intercept=fit_intercept, random_state=0)
    for solver in ("direct", "pcg"):
        rowcol.KernelRidgeClassifier(probability=True, solver=solver, **options).fit(X, y)
        for k in range(FOLDS):
            out = fold == k
            alone = rowcol.KernelRidgeClassifier(**options).fit(X[~out], y[~out])
            atol = 1e-9 if solver == "direct" else 1e-2
            np.testing.assert_allclose(seen[-1][out], alone.decision_function(X[out]), atol=atol)


def test_folds_go_a_few_at_a_time_where_memory_is_short(monkeypatch):
    X, y = rings(3000, 4)
    columns = []
    true = rowcol.KernelRidgeClassifier._solved

    def watch(self, X, y, *rest, **changes):
        columns.append(y.shape[1])
        return true(self, X, y, *rest, **changes)

    monkeypatch.setattr(rowcol.KernelRidgeClassifier, "_solved", watch)
    options = dict(alpha=1.0, gamma=0.5, solver="pcg", probability=True, random_state=0)
    found = []
    for memory, expected in (("1 GB", [20, 4]), ("16 MB", [12, 8, 4]), ("8 MB", [4, 4, 4, 4, 4, 4])):
        columns.clear()
        found.append(rowcol.KernelRidgeClassifier(memory=memory, **options).fit(X, y).predict_proba(X))
        assert columns == expected
        np.testing.assert_allclose(found[-1], found[0], atol=0.01)


# --- probabilities ---------------------------------------------------------------------------------------------------


def known(n, classes, sharp, seed):
    """Points, classes drawn with known probabilities, and these."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    W = np.random.default_rng(7).standard_normal((4, classes)) * sharp
    features = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1], X[:, 0] * X[:, 2], np.ones(n)])
    p = softmax(features @ W, axis=1)
    return X, np.minimum((p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), classes - 1), p


def brier(p, y):
    return ((p - np.eye(p.shape[1])[y]) ** 2).sum(axis=1).mean()


def calibration_error(p, y, bins=15):
    """What is claimed for the likeliest class less how often it is right, over bins of what is claimed."""
    claim, right = p.max(axis=1), p.argmax(axis=1) == y
    at = np.minimum((claim * bins).astype(int), bins - 1)
    return sum(abs(claim[at == k].sum() - right[at == k].sum()) for k in range(bins)) / len(y)


@pytest.mark.parametrize(("classes", "sharp"), [(2, 1), (2, 3), (4, 1), (4, 3)])
def test_probabilities_are_near_the_true_ones(classes, sharp):
    X, y, _ = known(1500, classes, sharp, 0)
    new, drawn, p = known(4000, classes, sharp, 5)
    model = rowcol.KernelRidgeClassifier(gamma=0.3, probability=True, random_state=0).fit(X, y)
    found, values = model.predict_proba(new), model.decision_function(new)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)
    values = np.stack([-values, values], axis=1) if classes == 2 else values
    clipped = np.clip((1 + values) / 2, 1e-6, None)
    clipped /= clipped.sum(axis=1, keepdims=True)
    ours = log_loss(drawn, found)
    assert ours < log_loss(drawn, softmax(values, axis=1))
    assert ours < log_loss(drawn, clipped)
    theirs = CalibratedClassifierCV(clone(model).set_params(probability=False), ensemble=False).fit(X, y)
    assert ours <= log_loss(drawn, theirs.predict_proba(new)) + 0.002
    assert ours <= log_loss(drawn, p) + 0.08
    assert brier(found, drawn) <= brier(p, drawn) + 0.035
    assert calibration_error(found, drawn) <= 0.05
    assert np.abs(found - p).mean() <= 0.05


def test_probabilities_of_digits():
    X, y = datasets.load_digits(return_X_y=True)
    train, test, train_y, test_y = train_test_split(X / 16, y, random_state=0, train_size=900)
    model = rowcol.KernelRidgeClassifier(0.1, gamma=0.2, probability=True, random_state=0).fit(train, train_y)
    found = model.predict_proba(test)
    theirs = CalibratedClassifierCV(SVC(gamma=0.2), ensemble=False).fit(train, train_y)
    assert log_loss(test_y, found) <= 0.07
    assert log_loss(test_y, found) < log_loss(test_y, theirs.predict_proba(test))
    assert brier(found, test_y) <= 0.025
    assert calibration_error(found, test_y) <= 0.035
    assert (found.argmax(axis=1) == test_y).mean() >= theirs.score(test, test_y) - 0.005


def test_offsets_come_where_shrinkage_needs_them():
    """A rare class under a large alpha: no value is above 0, and yet its probability can be."""
    X, y = datasets.make_classification(3000, 8, n_informative=5, weights=[0.93], flip_y=0.05, random_state=0)
    model = rowcol.KernelRidgeClassifier(300.0, gamma=0.1, probability=True, random_state=0).fit(X[:1500], y[:1500])
    assert model.calibration_[0].offsets.any()
    assert log_loss(y[1500:], model.predict_proba(X[1500:])) < 0.22  # 0.28 by a slope alone
    assert model.predict_proba(X[1500:])[:, 1].max() > 0.5
    X, y = rings(400)
    plain = rowcol.KernelRidgeClassifier(0.3, gamma=0.5, probability=True, random_state=0).fit(X, y)
    assert not plain.calibration_[0].offsets.any()  # and so the likeliest class is the one predicted
    assert np.array_equal(plain.predict(X), plain.classes_[plain.predict_proba(X).argmax(axis=1)])


def test_calibration_finds_the_likeliest_slope_and_offsets():
    rng = np.random.default_rng(0)
    scores = rng.normal(-0.3, 0.5, (4000, 3))
    true = Calibration(2.0, np.array([0.8, -0.5, -0.3]))
    y = (true(scores).cumsum(axis=1) < rng.random((4000, 1))).sum(axis=1)
    found = calibrated(scores, 2 * np.eye(3)[y] - 1, np.ones(4000))
    assert abs(found.slope - 2.0) < 0.15
    np.testing.assert_allclose(found.offsets - found.offsets.mean(), true.offsets, atol=0.15)
    # no other near by is likelier, given Platt's targets: all but 1 in N + 2
    counts = np.bincount(y)
    wanted = np.where(np.eye(3)[y] > 0, (counts[y] + 1.0)[:, None], 0.5) / (counts[y] + 2.0)[:, None]

    def loss(slope, offsets):
        t = np.log(np.log1p(np.exp(5 * (1 + scores))) / 10)
        return -(wanted * log_softmax(slope * t + offsets, axis=1)).sum()

    best = loss(found.slope, found.offsets)
    for change in np.random.default_rng(1).normal(0, 1e-3, (20, 4)):
        assert loss(found.slope + change[0], found.offsets + change[1:]) >= best - 1e-9
    noise = calibrated(-scores, 2 * np.eye(3)[y] - 1, np.ones(4000))  # worse than nothing
    assert noise.slope == 0.0
    np.testing.assert_allclose(noise(scores)[0], np.bincount(y) / 4000, atol=1e-3)
    sure = calibrated(np.where(y[:60, None] == np.arange(3), 1.0, -1.0), 2 * np.eye(3)[y[:60]] - 1, np.ones(60))
    assert np.isfinite(sure.slope)
    assert 0.9 < sure(np.array([[1.0, -1.0, -1.0]]))[0, 0] < 0.99
    far = sure(np.array([[-1e4, 1e4, 0.0]]))
    assert np.isfinite(far).all()
    assert far[0, 1] > 0.99
