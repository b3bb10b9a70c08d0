"""`KernelRidgeCV`: folds x alphas against the naive loop, scikit-learn's contract, what is chosen and what it costs."""

import pickle
import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge as Theirs
from sklearn.metrics import pairwise, r2_score
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit, TimeSeriesSplit, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import rowcol
from rowcol import folding, kernels
from rowcol.folding import folded

ALPHAS = np.logspace(-2, 1, 8)
QUICK = dict(kernel="rbf", tune_points=60, random_state=0)


def teacher(n, d=3, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.sin(2 * X[:, 0]) * X[:, 1] + noise * rng.standard_normal(n)


def checks():
    models = rowcol.KernelRidgeCV(**QUICK), rowcol.KernelRidgeCV([0.1, 1.0], kernel="linear", cv=3, fit_intercept=False)
    for i, model in enumerate(models):
        for k, (estimator, check) in enumerate(estimator_checks_generator(model)):
            if "array_api" in check.func.__name__:  # it skips itself, and we claim nothing of the kind
                continue
            yield pytest.param(estimator, check, id=f"{i}-{check.func.__name__}-{k}")


@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_scikit_learns_contract(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        check(estimator)


# --- folds x alphas --------------------------------------------------------------------------------------------------


def naive(K, y, w, alphas, trains, centre):
    """Forty fits, one by one, by scikit-learn."""
    out = np.empty((len(alphas), len(trains), len(y)))
    for k, alpha in enumerate(alphas):
        for f, at in enumerate(trains):
            mean = np.average(y[at], weights=w[at]) if centre else 0.0
            model = Theirs(alpha=alpha, kernel="precomputed").fit(K[np.ix_(at, at)], y[at] - mean, sample_weight=w[at])
            out[k, f] = model.predict(K[:, at]) + mean
    return out


@pytest.mark.parametrize("few", [0, 2500], ids=["tiles", "inverse"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("cv", [KFold(5), ShuffleSplit(3, random_state=0), TimeSeriesSplit(3)], ids=str)
def test_folds_and_alphas_are_the_naive_loop(cv, weighted, few, monkeypatch):
    monkeypatch.setattr(folding, "FEW", few)
    X, y = teacher(400)
    w = np.random.default_rng(1).uniform(0.5, 2.0, 400) if weighted else np.ones(400)
    trains = [train for train, _ in cv.split(X)]
    K = pairwise.rbf_kernel(X, gamma=0.3)
    more = dict(method="pcg", tol=1e-9) if few == 0 else {}
    given = w if weighted else None
    for centre in (False, True):
        found = folded(
            X, y[:, None], kernels.RBF(gamma=0.3), ALPHAS, trains, given, centre=centre, random_state=0, **more
        )
        assert found.methods == (("pcg",) if few == 0 else ("inverse",))
        assert found.reached.all()
        np.testing.assert_allclose(found.values[..., 0], naive(K, y, w, ALPHAS, trains, centre), atol=2e-7)
        for f, train in enumerate(trains):
            out = np.setdiff1d(np.arange(400), train)
            assert not found.coefficients[:, f, out].any()


def test_the_scores_are_those_of_scikit_learns_cross_validation():
    X, y = teacher(300)
    model = rowcol.KernelRidgeCV(ALPHAS, kernel=kernels.RBF(gamma=0.3), cv=KFold(5), fit_intercept=False).fit(X, y)
    search = GridSearchCV(Theirs(kernel="rbf", gamma=0.3), {"alpha": ALPHAS}, cv=KFold(5)).fit(X, y)
    for name in ("mean_test_score", "std_test_score", "split0_test_score", "split4_test_score"):
        np.testing.assert_allclose(model.cv_results_[name], search.cv_results_[name], atol=1e-9)
    assert (model.cv_results_["rank_test_score"] == search.cv_results_["rank_test_score"]).all()
    assert model.alpha_ == search.best_params_["alpha"]
    assert model.best_index_ == search.best_index_
    assert model.best_score_ == pytest.approx(search.best_score_)
    np.testing.assert_allclose(model.predict(X), search.predict(X), atol=1e-3)
    assert model.result_.success
    named = dict(alphas=ALPHAS, kernel=kernels.RBF(gamma=0.3), cv=KFold(5), fit_intercept=False)
    ours = rowcol.KernelRidgeCV(**named, scoring="neg_mean_absolute_error").fit(X, y)
    theirs = GridSearchCV(
        Theirs(kernel="rbf", gamma=0.3), {"alpha": ALPHAS}, cv=KFold(5), scoring="neg_mean_absolute_error"
    ).fit(X, y)
    np.testing.assert_allclose(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=1e-9)


def test_five_folds_of_eight_alphas_compute_little_more_of_the_matrix_than_one_fit(monkeypatch):
    monkeypatch.setattr(folding, "FEW", 0)
    X, y = teacher(3000)
    trains = [np.flatnonzero(np.arange(3000) % 5 != f) for f in range(5)]
    how = dict(method="pcg", tol=1e-3, random_state=0)
    all_ = folded(X, y[:, None], kernels.RBF(gamma=0.3), ALPHAS, trains, **how)
    one = rowcol.solve(X, y, kernel=kernels.RBF(gamma=0.3), alpha=ALPHAS.min(), **how)
    assert all_.reached.all()
    assert all_.entries <= 6 * one.passes * 3000**2  # in truth about as many, as they share them


def test_many_targets_go_a_few_folds_at_a_time(monkeypatch):
    X, y = teacher(200)
    Y = np.stack([y, X[:, 0], X[:, 1] ** 2], axis=1)
    trains = [np.flatnonzero(np.arange(200) % 4 != f) for f in range(4)]
    found = []
    for together in (64, 7):
        monkeypatch.setattr(folding, "FEW", 0)
        monkeypatch.setattr(folding, "TOGETHER", together)
        found.append(folded(X, Y, kernels.RBF(gamma=0.3), ALPHAS[:3], trains, method="pcg", tol=1e-10).values)
    np.testing.assert_allclose(found[0], found[1], atol=1e-7)


def test_f_at_the_points_that_were_fitted():
    X, y = teacher(150)
    K = pairwise.rbf_kernel(X, gamma=0.3)
    w = np.ones(150)
    w[:7] = 0.0
    for method in ("direct", "pcg", "cg", "blocks"):
        for intercept in (False, True):
            options = dict(kernel=kernels.RBF(gamma=0.3), alpha=0.5, method=method, fit_intercept=intercept, tol=1e-6)
            result = rowcol.solve(X, y, sample_weight=w, **options)
            assert np.isnan(result.fitted[:7]).all()  # of no weight, so not among the points
            np.testing.assert_allclose(result.fitted[7:], result.function(X)[7:], atol=1e-9)
    A = np.full((150, 2), 0.5)
    A[:20] = np.inf  # left out by all: predicted all the same
    A[20:30, 1] = np.inf
    result = rowcol.solve(X, np.stack([y, y], 1), kernel=kernels.RBF(gamma=0.3), alpha=A)
    for j in range(2):
        at = np.isfinite(A[:, j])
        alpha = np.linalg.solve(K[np.ix_(at, at)] + 0.5 * np.eye(at.sum()), y[at])
        np.testing.assert_allclose(result.fitted[:, j], K[:, at] @ alpha, atol=1e-6)
    given = rowcol.solve(K, np.stack([y, y], 1), kernel="precomputed", alpha=A)
    np.testing.assert_allclose(given.fitted, result.fitted, atol=1e-6)


# --- what is chosen --------------------------------------------------------------------------------------------------


def test_it_does_as_well_as_a_search_over_a_grid():
    X, y = teacher(600, noise=0.2)
    Z, z = teacher(2000, seed=1, noise=0.0)
    grid = {"alpha": np.logspace(-3, 1, 5), "gamma": np.logspace(-2, 1, 7)}
    theirs = GridSearchCV(Theirs(kernel="rbf"), grid).fit(X, y)
    far = np.sqrt(np.mean((theirs.predict(Z) - z) ** 2))
    for kernel in ("rbf", "auto"):
        model = rowcol.KernelRidgeCV(kernel=kernel, tune_points=400, random_state=0).fit(X, y)
        assert np.sqrt(np.mean((model.predict(Z) - z) ** 2)) < 1.1 * far
        assert model.best_score_ == pytest.approx(r2_score(y, cross(model, X, y)), abs=0.03)


def cross(model, X, y):
    """Predictions by folds of a plain model with what was chosen."""
    plain = rowcol.KernelRidge(model.alpha_, kernel=model.kernel_, fit_intercept=True)
    return cross_val_predict(plain, X, y, cv=5)


def test_features_that_matter_are_told_from_others():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((700, 6)) * [1, 1, 5, 5, 0.1, 0.1]
    y = np.sin(2 * X[:, 0]) + 10 * X[:, 4] + 0.1 * rng.standard_normal(700)
    alike = rowcol.KernelRidgeCV(kernel="rbf", random_state=0).fit(X, y)
    each = rowcol.KernelRidgeCV(kernel="rbf", ard=True, random_state=0).fit(X, y)
    lengths = np.array(each.kernel_.length_scale) / X.std(axis=0)
    assert lengths[[0, 4]].max() < lengths[[1, 2, 3, 5]].min()
    assert each.best_score_ > 0.95 > alike.best_score_ + 0.05
    assert any(stage["stage"] == "gradients" for stage in each.stages_)


def test_ladder_goes_from_few_points_to_all():
    X, y = teacher(8000)
    model = rowcol.KernelRidgeCV(kernel="rbf", cv=3, tune_points=300, random_state=0, n_jobs=1).fit(X, y)
    found = model.cv_results_
    assert sorted(set(found["n_resources"])) == [500, 2000, 8000]
    tried = [len({str(k) for k in found["param_kernel"][found["iter"] == i]}) for i in range(3)]
    assert tried == [3, 3, 1]
    assert found["iter"][model.best_index_] == 2
    assert [s["n_samples"] for s in model.stages_] == [300, 500, 2000, 8000, 8000]
    assert [s["stage"] for s in model.stages_] == ["gradients", "folds", "folds", "folds", "fit"]
    assert all(s["kernel_entries"] > 0 and s["seconds"] > 0 for s in model.stages_)
    assert model.result_.success
    last = found["iter"] == 2
    assert model.best_score_ == found["mean_test_score"][last].max()
    assert model.best_score_ > 0.97


def test_length_scales_that_are_given_are_those_tried():
    X, y = teacher(2400)
    scales = [0.1, 1.0, 10.0, [1.0, 1.0, 30.0]]
    model = rowcol.KernelRidgeCV(ALPHAS[:3], kernel="matern", nu=2.5, length_scales=scales, cv=3, random_state=0)
    model.fit(X, y)
    assert [s["stage"] for s in model.stages_] == ["folds", "folds", "fit"]
    first = {k.length_scale for k in model.cv_results_["param_kernel"][model.cv_results_["iter"] == 0]}
    assert first == {0.1, 1.0, 10.0, (1.0, 1.0, 30.0)}
    assert model.kernel_ == kernels.Matern(nu=2.5, length_scale=(1.0, 1.0, 30.0))
    assert set(model.cv_results_["param_alpha"]) <= set(ALPHAS[:3])


def test_kernels_of_all_sorts():
    X, y = teacher(120)
    Y = np.stack([y, X[:, 0]], axis=1)
    K = pairwise.rbf_kernel(X, gamma=0.3)
    given = rowcol.KernelRidgeCV(ALPHAS, kernel="precomputed", random_state=0).fit(K, y)
    named = rowcol.KernelRidgeCV(ALPHAS, kernel=kernels.RBF(gamma=0.3), random_state=0).fit(X, y)
    assert given.alpha_ == named.alpha_
    np.testing.assert_allclose(given.predict(K), named.predict(X), atol=1e-6)
    several = rowcol.KernelRidgeCV(
        ALPHAS, kernel=["poly", "rbf", kernels.Matern()], tune_points=60, random_state=0
    ).fit(X, Y)
    assert several.predict(X).shape == (120, 2)
    assert len({type(k) for k in several.cv_results_["param_kernel"]}) == 3
    function = rowcol.KernelRidgeCV(ALPHAS, kernel=lambda a, b: float(a @ b) + 1.0, random_state=0).fit(X, y)
    linear = rowcol.KernelRidgeCV(ALPHAS, kernel=kernels.Polynomial(degree=1, gamma=1.0), random_state=0).fit(X, y)
    np.testing.assert_allclose(function.predict(X), linear.predict(X), atol=1e-6)
    dense = rowcol.KernelRidgeCV(ALPHAS, **QUICK).fit(X, y)
    sparse = rowcol.KernelRidgeCV(ALPHAS, **QUICK).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(dense.predict(X), sparse.predict(sp.csr_array(X)), atol=1e-6)


def test_weights_count():
    X, y = teacher(90)
    w = np.ones(90)
    w[:30] = 0.0
    y = np.where(w > 0, y, 1e3)  # would spoil everything
    model = rowcol.KernelRidgeCV(ALPHAS, kernel=kernels.RBF(gamma=0.3), cv=KFold(3, shuffle=True, random_state=0))
    model.fit(X, y, sample_weight=w)
    assert np.abs(model.predict(X)).max() < 10
    assert model.best_score_ > 0.3
    only = rowcol.KernelRidgeCV(**QUICK).fit(X, y, sample_weight=w)
    assert np.abs(only.predict(X)).max() < 10


# --- manners ---------------------------------------------------------------------------------------------------------


def test_in_pipelines_and_searches():
    X, y = teacher(150)
    pipe = make_pipeline(StandardScaler(), rowcol.KernelRidgeCV(**QUICK)).fit(X * [1, 100, 1e4], y)
    assert pipe.score(X * [1, 100, 1e4], y) > 0.8
    search = GridSearchCV(rowcol.KernelRidgeCV(ALPHAS, **QUICK), {"fit_intercept": [True, False]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.5
    model = clone(pipe[-1]).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(X), model.predict(X))
    values, bound = model.predict(X, return_bound=True)
    assert (bound >= 0).all()
    np.testing.assert_allclose(values, model.predict(X), atol=1e-9)


def test_the_same_seed_gives_the_same_bits():
    X, y = teacher(2200)
    a, b = (rowcol.KernelRidgeCV(kernel="rbf", tune_points=200, random_state=3).fit(X, y) for _ in range(2))
    assert np.array_equal(a.dual_coef_, b.dual_coef_)
    assert a.kernel_ == b.kernel_


def test_it_keeps_to_its_seconds_and_says_so():
    X, y = teacher(4000)
    began = time.process_time()  # others may share the processor
    with pytest.warns(rowcol.ConvergenceWarning):
        model = rowcol.KernelRidgeCV(
            alphas=[1e-9], kernel=kernels.Matern(nu=0.5), tol=1e-12, max_seconds=1.0, random_state=0
        ).fit(X, y)
    assert time.process_time() - began < 30  # a compilation may come in between
    assert np.isfinite(model.predict(X[:5])).all()


def test_a_line_for_every_stage(capfd):
    X, y = teacher(2100)
    rowcol.KernelRidgeCV(kernel="rbf", tune_points=100, progress=True, random_state=0).fit(X, y)
    told = capfd.readouterr().err
    assert "100 points: length-scales of 1 kernel by gradients" in told
    assert "525 points: 3 kernels, 5 folds" in told
    assert "the fit to all 2,100 points" in told
    rowcol.KernelRidgeCV(kernel="rbf", tune_points=100, progress=False, random_state=0).fit(X[:200], y[:200])
    assert not capfd.readouterr().err


def test_the_validation_curve_is_drawn():
    import matplotlib

    matplotlib.use("Agg")
    X, y = teacher(2100)
    model = rowcol.KernelRidgeCV(kernel="rbf", tune_points=100, random_state=0).fit(X, y)
    ax = model.plot()
    assert ax.get_xscale() == "log"
    last = model.cv_results_["iter"] == 1
    drawn = [line for line in ax.get_lines() if line.get_marker() == "o"]
    shown = np.concatenate([line.get_ydata() for line in drawn])
    assert np.allclose(np.sort(shown), np.sort(model.cv_results_["mean_test_score"][last]))
    assert model.plot(ax) is ax
    matplotlib.pyplot.close("all")


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"alphas": [1.0, -1.0]}, "alphas must be numbers above 0"),
        ({"alphas": []}, "alphas must be numbers above 0"),
        ({"kernel": "gauss"}, "kernel must be a rowcol kernel"),
        ({"kernel": []}, "kernel must name one kernel or more"),
        ({"length_scales": [0.0]}, "length_scale must be finite and above 0"),
        ({"length_scales": []}, "length_scales must"),
        ({"max_seconds": -1}, "max_seconds must be"),
        ({"cv": [(np.arange(5), np.arange(0))]}, "nothing to predict"),
        ({"tune_points": 1}, "tune_points must"),
        ({"scoring": "no such"}, "scoring"),
        ({"cv_tol": 0.0}, "cv_tol must"),
    ],
)
def test_what_cannot_be_is_said(parameters, told):
    X, y = teacher(40)
    with pytest.raises(ValueError, match=told):
        rowcol.KernelRidgeCV(**{**QUICK, **parameters}).fit(X, y)


def test_leaving_one_out_needs_a_score_of_one_point():
    X, y = teacher(12)
    with pytest.warns(UserWarning, match="R.* score is not well-defined"), pytest.raises(ValueError, match="no score"):
        rowcol.KernelRidgeCV(ALPHAS, **QUICK, cv=12).fit(X, y)
    rowcol.KernelRidgeCV(ALPHAS, **QUICK, cv=12, scoring="neg_mean_squared_error").fit(X, y)


def test_what_folds_find_must_fit_in_memory():
    X, y = teacher(300)
    with pytest.raises(ValueError, match="300 folds of 5 alphas take 7 MB"):
        rowcol.KernelRidgeCV(**QUICK, cv=300, scoring="neg_mean_squared_error", memory="5 MB").fit(X, y)


def test_folds_that_few_points_do_not_have_keep_their_places():
    X, y = teacher(2000)
    groups = np.zeros(2000, int)
    groups[:1] = 1  # a fold of one row, which a quarter of the points may lack
    folds = [(np.flatnonzero(groups != g), np.flatnonzero(groups == g)) for g in (1, 0)]
    folds[1] = (np.arange(1, 1000), np.arange(1000, 2000))
    model = rowcol.KernelRidgeCV([0.1], kernel="rbf", tune_points=60, cv=folds, scoring="neg_mean_squared_error")
    model.set_params(random_state=0).fit(X, y)
    found, lower = model.cv_results_, model.cv_results_["iter"] == 0
    assert not np.isnan(found["split1_test_score"]).any()
    assert np.isnan(found["split0_test_score"][lower]).all() or not np.isnan(found["split0_test_score"]).any()
    assert not np.isnan(found["split0_test_score"][~lower]).any()


def test_where_time_runs_out_the_best_so_far_is_fitted_to_all():
    X, y = teacher(2100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rowcol.ConvergenceWarning)
        model = rowcol.KernelRidgeCV(kernel="rbf", tune_points=60, max_seconds=1e-3, random_state=0).fit(X, y)
    assert max(model.cv_results_["n_resources"]) == 525
    assert model.dual_coef_.shape == (2100,)
    assert model.stages_[-1]["n_samples"] == 2100


@pytest.mark.parametrize("given", [False, True])
def test_a_larger_kernel_has_an_alpha_as_much_larger(given, rng):
    """c·k with c·alpha is the same model: what is chosen is measured against k(x, x)."""
    X = rng.standard_normal((300, 3))
    y = np.sin(X[:, 0]) + X[:, 1] + 0.2 * rng.standard_normal(300)
    found = []
    for c in (1.0, 2.0**20, 2.0**-20):
        kernel = c * kernels.RBF(length_scale=1.5)
        model = rowcol.KernelRidgeCV(kernel="precomputed" if given else kernel, random_state=0)
        model.fit(c * kernels.RBF(length_scale=1.5)(X) if given else X, y)
        found.append((model.alpha_ / c, model.best_score_))
    assert found[1] == pytest.approx(found[0], rel=1e-6)
    assert found[2] == pytest.approx(found[0], rel=1e-6)
