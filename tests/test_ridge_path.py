"""ridge_path and RidgeCV: every alpha certified, and chosen as scikit-learn would choose."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import linear_model
from sklearn.model_selection import KFold, LeaveOneOut, ShuffleSplit, check_cv

import rowcol
from honest import Truth, check, fine
from oracle import scattered
from rowcol.estimators import ridge_cv
from rowcol.methods import validate

ALPHAS = np.array([3.0, 1e-3, 1e2, 0.2, 3.0])  # in no order, and one of them twice


@pytest.mark.parametrize("method", ["auto", "direct", "cg", "sketch", "rk", "rcd", "sgs-cg"])
@pytest.mark.parametrize("shape", [(60, 15), (15, 60)])
@pytest.mark.parametrize("layout", ["C", "F", "csr", "csc"])
@pytest.mark.parametrize("q", [None, 2])
def test_every_alpha_is_what_it_would_be_alone(method, shape, layout, q, rng):
    X = rng.standard_normal(shape) + 1.0
    X *= rng.random(shape) < 0.5 if layout in ("csr", "csc") else 1.0
    Y = X @ rng.standard_normal((shape[1], 2)) + rng.standard_normal((shape[0], 2)) + 4
    y = Y if q else Y[:, 0]
    A = {"F": np.asfortranarray, "csr": sp.csr_array, "csc": sp.csc_array}.get(layout, np.ascontiguousarray)(X)
    alphas = ALPHAS if method not in ("rk", "rcd", "sgs-cg") else np.array([30.0, 300.0])
    for fit_intercept in (True, False):
        path = rowcol.ridge_path(
            A, y, alphas, fit_intercept=fit_intercept, method=method, tol=1e-6, random_state=0, max_passes=20_000
        )
        assert path.success
        assert path.coef.shape == (len(alphas), *y.shape[1:], shape[1])
        for k, alpha in enumerate(alphas):
            truth = linear_model.Ridge(alpha, fit_intercept=fit_intercept, solver="svd").fit(X, y)
            bounds = [c.error_bound for c in (path.certificates[k] if q else [path.certificates[k]])]
            error = np.linalg.norm(path.coef[k] - truth.coef_, axis=-1)
            assert (error <= np.array(bounds) * (1 + 1e-6) + 1e-8).all()


@pytest.mark.parametrize("shape", [(200, 40), (40, 200)])
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_many_alphas_of_one_y_in_extended_precision(shape, dtype, rng):
    X = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype == "complex128" else 0.0)
    X, y = X.astype(dtype), rng.standard_normal(shape[0])
    each = np.geomspace(1e-3, 1e3, 9)
    Y = np.tile(y[:, None], 9)
    for method in ("cg", "direct", "auto"):
        result = rowcol.solve(X, Y, alpha=each, method=method, tol=1e-5, random_state=0)
        for k, alpha in enumerate(each):
            alone = rowcol.solve(X, y, alpha=float(alpha), method=method, tol=1e-5)
            one = alone.__class__(**{**vars(alone), "x": result.x[:, k], "dual": result.dual[:, k]})
            one.certificates, one.statuses = [result.certificates[k]], [result.statuses[k]]
            check(X, y, one, 1e-5, alpha=float(alpha))


def test_all_alphas_cost_the_passes_of_the_smallest(rng):
    """The Krylov space is the same for all: one product with X a step, whatever the number of alphas."""
    X, y = rng.standard_normal((3000, 400)), rng.standard_normal(3000)
    alphas = np.geomspace(1.0, 1e4, 20)
    one = rowcol.solve(X, y, alpha=1.0, method="cg", tol=1e-8)
    path = rowcol.ridge_path(X, y, alphas, method="cg", tol=1e-8)
    assert path.passes <= one.passes + 3


def test_small_memory_takes_batches_each_started_from_the_last(rng):
    X, y = rng.standard_normal((300, 30)), rng.standard_normal(300)
    alphas = np.geomspace(1e-2, 1e4, 12)
    whole = rowcol.ridge_path(X, y, alphas, method="cg", tol=1e-9)
    pieces = rowcol.ridge_path(X, y, alphas, method="cg", tol=1e-9, memory=4 * 16 * 8 * 330)
    assert pieces.success
    np.testing.assert_allclose(pieces.coef, whole.coef, atol=1e-7)
    assert pieces.passes > whole.passes


def test_paths_read_well_and_refuse(rng):
    X, y = rng.standard_normal((30, 4)), rng.standard_normal(30)
    assert "3 alphas from 0.1 to 10, all certified" in repr(rowcol.ridge_path(X, y, [0.1, 1.0, 10.0]))
    for bad in ([], [0.0, 1.0], [-1.0], [np.nan], [[1.0]], [np.inf]):
        with pytest.raises(ValueError, match="above 0"):
            rowcol.ridge_path(X, y, bad)
    with pytest.raises(ValueError, match="one a right-hand side"):
        rowcol.solve(X, y, alpha=[1.0, 2.0])
    with pytest.raises(ValueError, match="takes one alpha"):
        rowcol.solve(X, np.stack([y, y], 1), alpha=[1.0, 2.0], method="rk")
    with pytest.raises(ValueError, match="by themselves"):
        rowcol.solve(X, np.stack([y, y], 1), alpha=[0.0, 2.0])
    with pytest.warns(rowcol.ConvergenceWarning):
        path = rowcol.ridge_path(X, y, [1e-6, 1.0], method="cg", max_passes=1, tol=1e-12)
    assert not path.success
    assert "NOT ALL CONVERGED" in repr(path)


# --- choosing --------------------------------------------------------------------------------------------------------


def data(shape, rng, noise=3.0):
    X = rng.standard_normal(shape) + 2
    return X, X @ rng.standard_normal((shape[1], 2)) + noise * rng.standard_normal((shape[0], 2))


CHOICE = np.logspace(-2, 4, 13)


def by_folds(X, y, w, fit_intercept, cv):
    """R² of every alpha, as the folds say: each is fitted without, and judged by its own rows and their weights."""
    w = np.ones(len(y)) if w is None else w
    one = linear_model.Ridge(fit_intercept=fit_intercept, solver="cholesky")
    found = [
        [
            one.set_params(alpha=alpha).fit(X[train], y[train], w[train]).score(X[test], y[test], w[test])
            for alpha in CHOICE
        ]
        for train, test in cv.split(X)
    ]
    return np.mean(found, axis=0)


@pytest.mark.parametrize("shape", [(90, 12), (25, 60)])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_choice_is_scikit_learns(shape, sparse, fit_intercept, weighted, rng):
    X, Y = data(shape, rng)
    w = rng.uniform(0.2, 3.0, shape[0]) if weighted else None
    A = sp.csr_array(X) if sparse else X
    for y in (Y[:, 0], Y):
        ours = rowcol.RidgeCV(CHOICE, fit_intercept=fit_intercept, store_cv_results=True).fit(A, y, w)
        theirs = linear_model.RidgeCV(CHOICE, fit_intercept=fit_intercept, store_cv_results=True).fit(X, y, w)
        assert ours.alpha_ == theirs.alpha_
        np.testing.assert_allclose(ours.cv_results_, theirs.cv_results_, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
        for cv in (4, KFold(3, shuffle=True, random_state=0), ShuffleSplit(3, test_size=0.3, random_state=1)):
            ours = rowcol.RidgeCV(CHOICE, fit_intercept=fit_intercept, cv=cv).fit(A, y, w)
            scores = by_folds(X, y, w, fit_intercept, check_cv(cv))
            assert ours.alpha_ == CHOICE[np.argmax(scores)]
            assert ours.best_score_ == pytest.approx(scores.max(), abs=1e-7)
            if not weighted:  # scikit-learn weights the fits to folds; its later releases weight their scores, too
                theirs = linear_model.RidgeCV(CHOICE, fit_intercept=fit_intercept, cv=cv).fit(X, y)
                assert ours.alpha_ == theirs.alpha_
                assert ours.best_score_ == pytest.approx(theirs.best_score_, abs=1e-7)
            assert "one Gram matrix" in ours.cv_


@pytest.mark.parametrize("shape", [(40, 6), (15, 30)])
def test_leaving_one_out_is_that(shape, rng):
    """Against n fits; rows of weight zero are neither used nor judged."""
    X, Y = data(shape, rng)
    w = rng.integers(0, 3, shape[0]).astype(float)
    live = np.flatnonzero(w)
    found = validate.left_out(X[live], Y[live], w[live], np.array([0.5, 20.0]), True)
    for i, (train, test) in enumerate(LeaveOneOut().split(live)):
        for k, alpha in enumerate((0.5, 20.0)):
            model = linear_model.Ridge(alpha, solver="cholesky").fit(X[live][train], Y[live][train], w[live][train])
            np.testing.assert_allclose(found[k, i], model.predict(X[live][test])[0], atol=1e-7)
    assert rowcol.RidgeCV(CHOICE).fit(X, Y, w).alpha_ == rowcol.RidgeCV(CHOICE).fit(X[live], Y[live], w[live]).alpha_


def test_scoring_targets_and_refusals(rng):
    X, Y = data((60, 20), rng)
    Y[:, 1] = rng.standard_normal(60)  # wants another alpha
    for scoring in ("neg_mean_absolute_error", "r2", lambda model, X, y: -np.median(np.abs(y - model.predict(X)))):
        ours, theirs = (m(CHOICE, scoring=scoring).fit(X, Y) for m in (rowcol.RidgeCV, linear_model.RidgeCV))
        assert ours.alpha_ == theirs.alpha_
        assert ours.best_score_ == pytest.approx(theirs.best_score_, abs=1e-6)
    ours, theirs = (m(CHOICE, alpha_per_target=True).fit(X, Y) for m in (rowcol.RidgeCV, linear_model.RidgeCV))
    assert list(ours.alpha_) == list(theirs.alpha_)
    assert len(set(ours.alpha_)) == 2
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    with pytest.raises(ValueError, match="above 0"):
        rowcol.RidgeCV([0.0, 1.0]).fit(X, Y)
    with pytest.raises(ValueError, match="leave-one-out"):
        rowcol.RidgeCV(cv=3, alpha_per_target=True).fit(X, Y)


def test_where_gram_matrices_are_dear_folds_are_paths(rng, monkeypatch):
    X, Y = data((80, 10), rng)
    cheap = rowcol.RidgeCV(CHOICE, cv=4).fit(X, Y)
    monkeypatch.setattr(ridge_cv, "cheap", lambda *args: False)
    monkeypatch.setattr(ridge_cv, "ROUGH", 1e-9)
    for A in (X, sp.csc_array(X)):
        dear = rowcol.RidgeCV(CHOICE, cv=4, tol=1e-9).fit(A, Y)
        assert dear.cv_ == "4 folds, by a path each"
        assert dear.alpha_ == cheap.alpha_
        np.testing.assert_allclose(dear.scores_, cheap.scores_, atol=1e-6)
    assert rowcol.RidgeCV(CHOICE).fit(X, Y).cv_ == "5 folds, by a path each, as leaving one out would be dear"
    with pytest.raises(ValueError, match="too dear"):
        rowcol.RidgeCV(CHOICE, alpha_per_target=True).fit(X, Y)


# --- rows or columns -------------------------------------------------------------------------------------------------


def test_a_race_is_told_and_won_by_the_better_side(rng):
    X = scattered(rng, 4000, 4000, 0.005)
    y = rng.standard_normal(4000)
    result = rowcol.solve(X, y, alpha=30.0, random_state=0)
    assert "raced" in " ".join(result.plan.reasons)
    told = [t for t in result.plan.learned if t.startswith("raced for a pass")]
    assert len(told) == 1
    reached = dict(re.findall(r"(rows|columns) (?:reached )?([\d.e+-]+)", told[0]))
    assert result.method.split(" ")[0] == ("rk" if float(reached["rows"]) < float(reached["columns"]) else "rcd")
    check(X, y, result, 1e-6, alpha=30.0, truth=_truth(X, y, 30.0))
    Y = np.stack([y, 0 * y, X @ rng.standard_normal(4000)], 1)
    many = rowcol.solve(X, Y, alpha=30.0, random_state=0)
    assert many.success
    np.testing.assert_allclose(many.x[:, 0], result.x, atol=1e-5)
    assert not many.x[:, 1].any()


def _truth(X, y, alpha):
    """Conjugate gradients would take an hour in extended precision: a dense Cholesky, refined, will do here."""
    A = X.toarray()
    beta = np.linalg.solve(A.T @ A + alpha * np.eye(len(y)), A.T @ y)
    doubt = np.linalg.norm(A.T @ (y - A @ beta) - alpha * beta) / alpha + 1e-12
    return Truth(fine(A), fine(y)[:, None], beta[:, None], np.array([doubt]), np.ones(4000), np.empty(0), 0.0, [])


def test_both_rates_are_printed_for_ridge(rng):
    X, y = rng.standard_normal((3000, 500)), rng.standard_normal(3000)
    said = str(rowcol.plan(X, y, alpha=50.0))
    assert "by rows (36)" in said
    assert "by columns (38)" in said
