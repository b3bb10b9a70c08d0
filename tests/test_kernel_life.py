"""A kernel model after its fit: rows come and go, deviations, leave-one-out; against scikit-learn and LAPACK."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern
from sklearn.metrics import pairwise

import rowcol
from rowcol import kernels
from rowcol.methods import inverse, landmarks

NEW = np.random.default_rng(9).standard_normal((30, 4))


def teacher(n, d=4, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.sin(2 * X[:, 0]) * X[:, 1] + noise * rng.standard_normal(n)


@pytest.fixture(params=["factor", "solves"])
def way(request, monkeypatch):
    """Both ways to a column of the inverse, on problems small enough for LAPACK to tell the truth."""
    if request.param == "solves":
        monkeypatch.setattr(inverse, "SMALL", 0)
        monkeypatch.setattr(inverse, "PAYS", 0)
    return request.param


def bordered(K, lam, intercept):
    """The inverse of K + Λ, bordered by ones if there is an intercept; otherwise by nothing that matters."""
    n = len(K)
    A = np.eye(n + 1)
    A[:n, :n] = K + np.diag(np.broadcast_to(lam, n))
    if intercept:
        A[n, :n] = A[:n, n] = 1.0
        A[n, n] = 0.0
    return np.linalg.inv(A)


# --- dtype ---------------------------------------------------------------------------------------------------------


def test_a_precision_of_points_and_values():
    X, y = teacher(200)
    plain = rowcol.KernelRidge(alpha=0.1, kernel="rbf").fit(X, y)
    assert plain.predict(NEW).dtype == np.float64
    assert rowcol.KernelRidge(alpha=0.1, kernel="rbf").fit(X.astype(np.float32), y).X_fit_.dtype == np.float32
    for dtype in ("float32", np.float32):
        model = rowcol.KernelRidge(alpha=0.1, kernel="rbf", dtype=dtype).fit(X, y)
        assert model.X_fit_.dtype == np.float32
        values, bound, std = model.predict(NEW, return_bound=True, return_std=True)
        assert values.dtype == bound.dtype == std.dtype == np.float32
        assert np.allclose(values, plain.predict(NEW), atol=1e-5)
        assert model.dual_coef_.dtype == np.float64
        K = kernels.RBF()(
            X.astype(np.float32)
        )  # the certificate is of the points as they are kept, in double precision
        left = np.linalg.norm(y - K @ model.dual_coef_ - 0.1 * model.dual_coef_)
        assert left <= model.result_.certificate.value * np.linalg.norm(y)
        exact = kernels.RBF()(NEW.astype(np.float32), X.astype(np.float32)) @ np.linalg.solve(K + 0.1 * np.eye(200), y)
        assert (np.abs(values.astype(float) - exact) <= bound.astype(float)).all()
    assert rowcol.KernelRidge(kernel="rbf", dtype="float64").fit(X.astype(np.float32), y).X_fit_.dtype == np.float64
    with pytest.raises(ValueError, match="dtype must be None"):
        rowcol.KernelRidge(dtype="float16").fit(X, y)


# --- standard deviations -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (kernels.RBF(length_scale=1.5), RBF(1.5)),
        (kernels.RBF(length_scale=[1.0, 2, 3, 4]), RBF([1.0, 2, 3, 4])),
        (kernels.Matern(nu=1.5, length_scale=2.0), Matern(2.0, nu=1.5)),
        (kernels.Matern(nu=2.5), Matern(nu=2.5)),
    ],
)
def test_the_deviations_are_those_of_a_gaussian_process(ours, theirs, way):
    X, y = teacher(250)
    w = np.random.default_rng(1).uniform(0.2, 3, 250)
    for alpha, weight, noise in ((0.05, None, 0.05), (0.05, w, 0.05 / w), (0.3 / w, None, 0.3 / w)):
        model = rowcol.KernelRidge(alpha=alpha, kernel=ours, random_state=0).fit(X, y, sample_weight=weight)
        mean, std = model.predict(np.vstack([NEW, X[:5]]), return_std=True)
        truth = GaussianProcessRegressor(theirs, alpha=noise, optimizer=None).fit(X, y)
        values, deviations = truth.predict(np.vstack([NEW, X[:5]]), return_std=True)
        assert np.allclose(mean, values, atol=1e-3)
        excess = std**2 - deviations**2
        assert (excess >= -1e-10).all()
        assert (excess <= 0.01 * np.median(noise)).all()
        if way == "factor":
            assert np.allclose(std, deviations, atol=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
def test_deviations_with_an_intercept_are_those_of_universal_kriging(weighted, way):
    X, y = teacher(200)
    w = np.random.default_rng(1).uniform(0.2, 3, 200) if weighted else None
    lam = 0.1 / (np.ones(200) if w is None else w)
    model = rowcol.KernelRidge(alpha=0.1, kernel=kernels.RBF(gamma=0.4), fit_intercept=True, random_state=0)
    points = np.vstack([NEW, 100 + NEW[:2]])  # far away, only the mean is known: its uncertainty adds to k(x, x)
    std = model.fit(X, y + 5, sample_weight=w).predict(points, return_std=True)[1]
    kernel = kernels.RBF(gamma=0.4)
    k = np.hstack([kernel(points, X), np.ones((32, 1))])
    truth = 1 - np.einsum("ij,jk,ik->i", k, bordered(kernel(X), lam, True), k)
    assert (std**2 - truth >= -1e-10).all()
    assert (std**2 - truth <= 0.01 * np.median(lam)).all()
    assert (std[-2:] > 1.0).all()


def test_deviations_of_several_targets_and_in_company():
    X, y = teacher(150)
    Y = np.stack([y, X[:, 1], -y], axis=1)
    model = rowcol.KernelRidge(alpha=[0.1, 2.0, 0.1], kernel="rbf").fit(X, Y)
    mean, bound, std = model.predict(NEW, return_bound=True, return_std=True)
    assert mean.shape == bound.shape == std.shape == (30, 3)
    for column, alpha in enumerate((0.1, 2.0, 0.1)):
        alone = rowcol.KernelRidge(alpha=alpha, kernel="rbf").fit(X, y).predict(NEW, return_std=True)[1]
        assert np.allclose(std[:, column], alone, atol=1e-10)
    w = np.where(np.arange(150) < 50, 0.0, 1.0)
    absent = rowcol.KernelRidge(alpha=0.1, kernel="rbf").fit(X, y, sample_weight=w).predict(NEW, return_std=True)[1]
    fewer = rowcol.KernelRidge(alpha=0.1, kernel="rbf").fit(X[50:], y[50:]).predict(NEW, return_std=True)[1]
    assert np.allclose(absent, fewer, atol=1e-10)
    S = sp.csr_array(X)
    sparse = rowcol.KernelRidge(alpha=0.1, kernel="rbf").fit(S, y).predict(sp.csr_array(NEW), return_std=True)[1]
    assert np.allclose(sparse, std[:, 0], atol=1e-6)


def test_deviations_in_little_memory_and_of_a_pickled_model():
    X, y = teacher(3000)
    model = rowcol.KernelRidge(alpha=0.1, kernel="rbf", memory="20 MB", random_state=0, tol=1e-2).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert again._kept is None
    std = model.predict(NEW[:10], return_std=True)[1]
    k = kernels.RBF()(NEW[:10], X)
    truth = 1 - np.einsum("ij,ji->i", k, np.linalg.solve(kernels.RBF()(X) + 0.1 * np.eye(3000), k.T))
    assert (std**2 - truth >= -1e-9).all()
    assert (std**2 - truth <= 1e-3).all()
    assert np.allclose(again.predict(NEW[:10], return_std=True)[1], std, atol=1e-3)
    again.add_rows(NEW, NEW[:, 0])
    assert again.result_.success


def test_deviations_that_cannot_be_had():
    X, y = teacher(60)
    with pytest.raises(ValueError, match="not positive definite"):
        rowcol.KernelRidge(kernel="sigmoid", gamma=0.01).fit(X, y).predict(X, return_std=True)
    K = pairwise.rbf_kernel(X)
    with pytest.raises(ValueError, match="leave out return_std"):
        rowcol.KernelRidge(kernel="precomputed").fit(K, y).predict(K, return_std=True)
    near = np.repeat(X, 2, axis=0) * (1 + 1e-9)
    model = rowcol.KernelRidge(kernel="rbf", gamma=1e-3, alpha=1e-13, tol=0.5).fit(near, np.repeat(y, 2))
    with pytest.warns(rowcol.ConvergenceWarning, match="variances may be too large"):
        model.predict(NEW, return_std=True)


# --- rows come and go ----------------------------------------------------------------------------------------------


def same(model, fresh, Z=NEW):
    """Both are the exact model to their certificates, so each is within both bounds of the other."""
    assert model.result_.success
    (a, far), (b, away) = model.predict(Z, return_bound=True), fresh.predict(Z, return_bound=True)
    assert (np.abs(a - b) <= far + away).all()
    assert np.abs(a - b).max() <= 1e-4
    assert model.dual_coef_.shape == fresh.dual_coef_.shape


@pytest.mark.parametrize("solver", ["auto", "pcg", "blocks", "direct"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_rows_that_come_and_go_leave_the_exact_model(solver, fit_intercept):
    X, y = teacher(400)
    Y = np.stack([y + 3, X[:, 0]], axis=1)
    w = np.random.default_rng(0).uniform(0.5, 2, 400)
    options = dict(alpha=0.1, kernel="rbf", solver=solver, fit_intercept=fit_intercept, tol=1e-6, random_state=0)
    for target, weight in ((y + 3, None), (Y, w)):
        part = [None if weight is None else weight[s] for s in (slice(300), slice(300, 330), slice(330, 400))]
        model = rowcol.KernelRidge(**options).fit(X[:300], target[:300], part[0])
        model.add_rows(X[300:330], target[300:330], part[1]).add_rows(X[330:], target[330:], part[2])
        same(model, rowcol.KernelRidge(**options).fit(X, target, weight))
        gone = np.zeros(400, bool)
        gone[[3, 5, 399, 301]] = True
        model.remove_rows([3, 5, -1, 301, 5])
        fewer = rowcol.KernelRidge(**options).fit(X[~gone], target[~gone], None if weight is None else weight[~gone])
        same(model, fewer)
        assert (model.X_fit_ == X[~gone]).all()
        assert (model.y_fit_ == target[~gone]).all()
        model.add_rows(X[gone], target[gone], None if weight is None else weight[gone])
        assert model.X_fit_.shape == (400, 4)
        mask = np.arange(400) >= 396  # the rows just added
        same(model.remove_rows(mask), fewer)


def test_an_update_is_cheaper_than_a_fit_and_says_why():
    X, y = teacher(3000, 6)
    options = dict(alpha=0.05, kernel="rbf", solver="pcg", tol=1e-5, random_state=0)
    fresh = rowcol.KernelRidge(**options).fit(X, y)
    model = rowcol.KernelRidge(**options).fit(X[:-30], y[:-30])
    drawn = model._kept.rank
    model.add_rows(X[-30:], y[-30:])
    assert model.n_iter_ <= 0.75 * fresh.n_iter_
    assert "serve again" in model.plan_.learned[0]
    assert drawn < len(model._kept.lower) <= 1.5 * drawn
    assert drawn == model._kept.rank
    K = kernels.RBF()(model._kept.points)  # F knows its landmarks: LLᵀ is K of them
    found = model._kept.lower @ model._kept.lower.T / model._kept.made.unit
    assert np.abs(K - found).max() < 1e-4
    same(model, fresh, teacher(30, 6, 1)[0])
    model.remove_rows(np.arange(30))
    assert model.n_iter_ <= 0.9 * fresh.n_iter_
    same(model, rowcol.KernelRidge(**options).fit(X[30:], y[30:]), teacher(30, 6, 1)[0])
    F, lower = model._kept.made.lines, model._kept.lower  # and F is L⁻¹K(S, X), whatever came and went
    exact = np.linalg.solve(lower, kernels.RBF()(model._kept.points, X[30:])) * np.sqrt(model._kept.made.unit)
    assert np.abs(F - exact).max() < 1e-2
    inner = np.tril(model._kept.made.inner)
    assert np.abs(inner - np.tril(F @ F.T)).max() < 1e-4 * np.abs(inner).max()


def test_pivots_are_drawn_anew_once_much_has_changed():
    X, y = teacher(600)
    model = rowcol.KernelRidge(alpha=0.1, kernel="rbf", solver="pcg", random_state=0).fit(X[:300], y[:300])
    model.add_rows(X[300:], y[300:])
    assert "trace of K" in model.plan_.learned[0]
    for _ in range(3):
        model.add_rows(X[:60] + 0.1, y[:60])
    assert model._kept.changed <= landmarks.WORN
    assert len(model._kept.lower) <= (1 + landmarks.WIDER) * model._kept.rank
    assert model.result_.success


@pytest.mark.parametrize(
    ("kernel", "kind"),
    [
        ("linear", np.asarray),
        ("rbf", sp.csr_array),
        (kernels.Laplacian() + 0.5 * kernels.Linear(), np.asarray),
        (kernels.Function(pairwise.rbf_kernel), np.asarray),
    ],
)
def test_rows_of_any_kind(kernel, kind):
    X, y = teacher(200)
    A = kind(np.where(np.abs(X) > 0.5, X, 0.0))
    options = dict(alpha=0.2, kernel=kernel, solver="pcg", tol=1e-7, random_state=0)
    model = rowcol.KernelRidge(**options).fit(A[:190], y[:190]).add_rows(A[190:], y[190:]).remove_rows([0, 1])
    fresh = rowcol.KernelRidge(**options).fit(A[2:], y[2:])
    assert model.result_.success
    assert np.allclose(model.predict(A[:20]), fresh.predict(A[:20]), atol=1e-4)


def test_weights_come_with_their_rows():
    X, y = teacher(120)
    options = dict(alpha=0.2, kernel="rbf", tol=1e-9)
    fresh = rowcol.KernelRidge(**options).fit(X, y, np.repeat([1.0, 3.0], 60))
    late = rowcol.KernelRidge(**options).fit(X[:60], y[:60]).add_rows(X[60:], y[60:], 3.0)
    early = rowcol.KernelRidge(**options).fit(X[60:], y[60:], 3.0).add_rows(X[:60], y[:60])
    for model in (late, early):
        assert np.allclose(model.predict(NEW), fresh.predict(NEW), atol=1e-6)
    gone = late.add_rows(NEW, NEW[:, 0], 0.0)  # rows of weight zero are kept, and count for nothing
    assert gone.X_fit_.shape == (150, 4)
    assert np.allclose(gone.predict(NEW), fresh.predict(NEW), atol=1e-6)
    each = rowcol.KernelRidge(alpha=[0.1, 1.0], kernel="rbf", tol=1e-9).fit(X[:60], np.stack([y, -y], 1)[:60])
    each.add_rows(X[60:], np.stack([y, -y], 1)[60:])  # an alpha a target is no hindrance
    whole = rowcol.KernelRidge(alpha=[0.1, 1.0], kernel="rbf", tol=1e-9).fit(X, np.stack([y, -y], 1))
    assert np.allclose(each.predict(NEW), whole.predict(NEW), atol=1e-6)


def test_partial_fit_is_fit_and_then_more_rows():
    X, y = teacher(90)
    model = rowcol.KernelRidge(alpha=0.1, kernel="rbf", tol=1e-8)
    for rows in (slice(0, 30), slice(30, 60), slice(60, 90)):
        assert model.partial_fit(X[rows], y[rows]) is model
    same(model, rowcol.KernelRidge(alpha=0.1, kernel="rbf", tol=1e-8).fit(X, y))
    assert model.fit(X[:10], y[:10]).X_fit_.shape == (10, 4)  # begins anew
    assert model.partial_fit(X[10:20], y[10:20]).X_fit_.shape == (20, 4)


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda m, X, y: m.add_rows(X[:, :2], y), "features"),
        (lambda m, X, y: m.add_rows(X, y[:5]), "inconsistent numbers of samples"),
        (lambda m, X, y: m.add_rows(X, np.stack([y, y], 1)), "does not go with"),
        (lambda m, X, y: m.add_rows(X, y, np.ones(3)), "one weight a row"),
        (lambda m, X, y: m.add_rows(X, y, -np.ones(40)), "sample_weight must be finite"),
        (lambda m, X, y: m.remove_rows(np.arange(40)), "all 40 rows"),
        (lambda m, X, y: m.remove_rows([40]), "row 40, but there are 40"),
        (lambda m, X, y: m.remove_rows([-41]), "row -41"),
        (lambda m, X, y: m.remove_rows(np.ones(3, bool)), "a mask of 40"),
        (lambda m, X, y: m.remove_rows([0.5]), "positions of rows"),
        (lambda m, X, y: m.loo_residuals([[1]]), "positions of rows"),
        (lambda m, X, y: m.set_params(alpha=np.ones(40)).add_rows(X, y), "sample_weight=1/alpha"),
        (lambda m, X, y: m.set_params(alpha=np.ones(40)).remove_rows([1]), "sample_weight=1/alpha"),
    ],
)
def test_mistakes_leave_the_model_as_it_was(act, words):
    X, y = teacher(40)
    model = rowcol.KernelRidge(alpha=0.1, kernel="rbf").fit(X, y)
    before = model.predict(NEW)
    with pytest.raises(ValueError, match=words):
        act(model, X, y)
    assert (model.predict(NEW) == before).all()
    assert model.X_fit_.shape == (40, 4)
    assert model.y_fit_.shape == (40,)


def test_a_given_matrix_has_no_other_rows():
    X, y = teacher(40)
    K = pairwise.rbf_kernel(X)
    model = rowcol.KernelRidge(alpha=0.1, kernel="precomputed").fit(K, y)
    for act in (lambda: model.add_rows(K, y), lambda: model.remove_rows([1])):
        with pytest.raises(ValueError, match="precomputed kernel matrix knows no other rows"):
            act()


# --- leave-one-out -------------------------------------------------------------------------------------------------


def refitted(X, Y, kernel, lam, intercept, at):
    """y_i − f(x_i) of the model without point i, from LAPACK, point by point."""
    K, out = kernel(X), []
    for i in at:
        rest = np.delete(np.arange(len(X)), i)
        inner = bordered(K[np.ix_(rest, rest)], lam[rest], intercept)
        alpha = inner @ np.vstack([Y[rest], np.zeros((1, Y.shape[1]))])
        out.append(Y[i] - K[i, rest] @ alpha[:-1] - (alpha[-1] if intercept else 0.0))
    return np.array(out)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_leaving_one_out_is_fitting_without_it(fit_intercept, weighted, way):
    X, y = teacher(160)
    Y = np.stack([y + 2, X[:, 0] * X[:, 1]], axis=1)
    w = np.random.default_rng(3).uniform(0.3, 3, 160) if weighted else np.ones(160)
    kernel = kernels.Matern(nu=1.5)
    at = np.array([0, 7, 159, 30])
    truth = refitted(X, Y, kernel, 0.1 / w, fit_intercept, at)
    options = dict(alpha=0.1, kernel=kernel, fit_intercept=fit_intercept, random_state=0)
    for tol in (1e-2, 1e-6):  # a rough fit is no excuse: its errors are known, and taken off
        model = rowcol.KernelRidge(**options, tol=tol).fit(X, Y, sample_weight=w if weighted else None)
        residuals, errors = model.loo_residuals(at)
        assert residuals.shape == errors.shape == (4, 2)
        assert (np.abs(residuals - truth) <= errors).all()
        assert (errors <= 10 * tol).all()
    one = rowcol.KernelRidge(**options).fit(X, Y[:, 0], sample_weight=w if weighted else None)
    every = one.loo_residuals()
    assert every.residuals.shape == (160,)
    assert (np.abs(every.residuals[at] - truth[:, 0]) <= every.errors[at]).all()
    mask = np.isin(np.arange(160), at)
    assert np.allclose(one.loo_residuals(mask).residuals, every.residuals[np.sort(at)], atol=1e-3)


def test_a_rough_fit_by_steps_is_bounded_too(way):
    X, y = teacher(300)
    model = rowcol.KernelRidge(alpha=0.02, kernel="rbf", solver="blocks", tol=5e-2, random_state=0).fit(X, y)
    inner = np.linalg.inv(kernels.RBF()(X) + 0.02 * np.eye(300))
    truth = inner @ y / np.diag(inner)
    residuals, errors = model.loo_residuals()
    assert (np.abs(residuals - truth) <= errors).all()
    assert np.median(errors) < 0.1 * np.median(np.abs(truth))


def test_points_that_count_for_nothing_are_left_out_as_it_is():
    X, y = teacher(100)
    w = np.where(np.arange(100) < 3, 0.0, 1.0)
    model = rowcol.KernelRidge(alpha=0.1, kernel="rbf", tol=1e-8).fit(X, y, sample_weight=w)
    residuals, errors = model.loo_residuals([0, 50, 2])
    truth = refitted(X[3:], y[3:, None], kernels.RBF(), np.full(97, 0.1), False, [47])[0, 0]
    assert abs(residuals[1] - truth) <= errors[1]
    assert np.allclose(residuals[[0, 2]], y[[0, 2]] - model.predict(X[[0, 2]]))
    K = pairwise.rbf_kernel(X)
    given = rowcol.KernelRidge(alpha=0.1, kernel="precomputed", tol=1e-8).fit(K, y, sample_weight=w)
    found = given.loo_residuals([0, 50])
    assert np.isinf(found.errors[0])  # a given matrix tells no bound there
    assert np.allclose(found.residuals, residuals[:2], atol=1e-6)


def test_each_target_is_left_out_with_its_own_alpha():
    X, y = teacher(80)
    Y = np.stack([y, y], axis=1)
    residuals, errors = rowcol.KernelRidge(alpha=[0.1, 3.0], kernel="rbf", tol=1e-8).fit(X, Y).loo_residuals([5, 6])
    for column, alpha in enumerate((0.1, 3.0)):
        truth = refitted(X, Y, kernels.RBF(), np.full(80, alpha), False, [5, 6])[:, column]
        assert (np.abs(residuals[:, column] - truth) <= errors[:, column]).all()


def test_what_cannot_be_left_out():
    X, y = teacher(50)
    with pytest.raises(ValueError, match="takes as many right-hand sides"):
        rowcol.KernelRidge(kernel="rbf").fit(X, y).set_params(memory="30 kB").loo_residuals()
    with pytest.raises(ValueError, match="nothing left"):
        rowcol.KernelRidge(kernel="rbf", fit_intercept=True).fit(X[:1], y[:1]).loo_residuals()
    alone = rowcol.KernelRidge(kernel="rbf").fit(X[:1], y[:1]).loo_residuals()
    assert alone.residuals[0] == pytest.approx(y[0])
    with pytest.raises(ValueError, match="not positive definite"):
        rowcol.KernelRidge(kernel="sigmoid", gamma=0.01).fit(X, y).loo_residuals([0])
    assert rowcol.KernelRidge(kernel="rbf").fit(X, y).loo_residuals([]).residuals.shape == (0,)
