"""Kernel ridge regression: the paper's steps typed in, LAPACK on the stored matrix, scikit-learn; certificates held."""

import multiprocessing
import pickle
import re
import subprocess
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge as Theirs
from sklearn.metrics import pairwise
from sklearn.utils.estimator_checks import estimator_checks_generator

import rowcol
from rowcol import kernels
from rowcol.core.gram import gram
from rowcol.core.rates import kernel_step_rate
from rowcol.core.sampler import sampler, seeds, take
from rowcol.posing import pose

METHODS = ("direct", "pcg", "blocks", "cg", "rk")
TOL = {"rk": 1e-2, "cg": 1e-3}


def teacher(n, d=4, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.sin(2 * X[:, 0]) * X[:, 1] + noise * rng.standard_normal(n)


def in_space(K, a):
    """‖f‖ of f = Σ a_i k(x_i, ·)."""
    return np.sqrt(max(float(a @ K @ a), 0.0))


def test_18_30_31_the_papers_steps_pick_by_pick():  # (18), (30), (31), with K stored
    X, y = teacher(90)
    kernel, lam, seed = kernels.RBF(gamma=0.3), 0.05, 7
    K = pairwise.rbf_kernel(X, gamma=0.3)
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rowcol.ConvergenceWarning)
        options = dict(kernel=kernel, alpha=lam, method="rk", tol=1e-12, max_passes=3, random_state=seed)
        rowcol.solve(X, y, **options, callback=lambda p: seen.append((p.steps, p.x)))
    picks = take(sampler("norms", 90, seeds(seed), np.diag(K) + lam), seen[-1][0])
    alpha, at = np.zeros(90), dict(seen)
    for t, i in enumerate(picks, 1):
        delta = (y[i] - K[i] @ alpha - lam * alpha[i]) / (K[i, i] + lam)  # (18): y_i, not y, is meant
        alpha[i] += delta
        if t in at:
            assert np.abs(at[t] - alpha).max() <= 1e-12 * np.abs(alpha).max()
    assert len(at) >= 3


def test_the_linear_kernel_is_ridge_by_rows():
    """The same picks give the same α, and β = Xᵀα."""
    X, y = teacher(60, 3)
    common = dict(alpha=0.7, method="rk", random_state=3, tol=1e-10, max_passes=4000)
    a = rowcol.solve(X, y, kernel="linear", **common)
    b = rowcol.solve(X, y, **common)
    assert np.allclose(X.T @ a.x, b.x, atol=1e-9)
    exact = np.linalg.solve(X.T @ X + 0.7 * np.eye(3), X.T @ y)
    assert np.allclose(X.T @ a.x, exact, atol=1e-8)


def test_35_the_rate_of_single_steps_in_the_mean():  # (35): two-sided, over 200 seeds, 3 standard errors
    X, y = teacher(12, 2)
    K, lam = pairwise.rbf_kernel(X, gamma=2.0), 0.5
    A = K + lam * np.eye(12)
    star = np.linalg.solve(A, y)
    bound, steps = kernel_step_rate(K, lam), 60
    errors = []
    for seed in range(200):
        alpha, rng = np.zeros(12), np.random.default_rng(seed)
        for i in rng.choice(12, steps, p=np.diag(A) / np.trace(A)):
            alpha[i] += (y[i] - A[i] @ alpha) / A[i, i]
        errors.append((alpha - star) @ A @ (alpha - star))
    mean, spread = np.mean(errors), np.std(errors) / np.sqrt(200)
    assert mean - 3 * spread <= bound**steps * (star @ A @ star)
    slowest = 1 - np.linalg.eigvalsh(A)[-1] / np.trace(A)
    assert mean + 3 * spread >= slowest**steps * (star @ A @ star)


@pytest.mark.parametrize(
    "kernel", [kernels.RBF(gamma=0.4), kernels.Matern(1.5), kernels.Laplacian() + kernels.Linear()]
)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_reaches_choleskys_solution_to_its_certificate(method, kernel):
    X, y = teacher(400)
    lam, tol = 0.05, TOL.get(method, 1e-6)
    K = kernel(X)
    star = np.linalg.solve(K + lam * np.eye(400), y)
    result = rowcol.solve(X, y, kernel=kernel, alpha=lam, method=method, tol=tol, random_state=0)
    assert result.success
    assert result.certificate.value <= tol
    left = np.linalg.norm(y - K @ result.x - lam * result.x)
    assert left <= result.certificate.value * np.linalg.norm(y)
    assert left >= (result.certificate.value - 2 * result.certificate.rounding) * np.linalg.norm(y) - 1e-12
    assert in_space(K, result.x - star) <= result.error_bound
    if result.error_estimate is not None:  # no proof, but never far below
        assert in_space(K, result.x - star) <= 1.01 * result.error_estimate
    Z = teacher(100, seed=1)[0]
    values, bound = result.function(Z, return_bound=True)
    exact = kernel(Z, X) @ star
    assert (np.abs(values - exact) <= bound).all()
    assert np.abs(result.function(Z) - values).max() <= 1e-3 * max(np.abs(values).max(), 1)


@pytest.mark.parametrize("method", METHODS)
def test_several_columns_stop_one_by_one(method):
    X, y = teacher(300)
    Y = np.stack([y, np.zeros(300), X[:, 2], 1e9 * y**2], axis=1)
    K, lam, tol = kernels.RBF(gamma=0.4)(X), 0.1, TOL.get(method, 1e-5)
    result = rowcol.solve(X, Y, kernel=kernels.RBF(gamma=0.4), alpha=lam, method=method, tol=tol, random_state=0)
    assert result.success
    assert result.x.shape == (300, 4)
    left = np.linalg.norm(Y - K @ result.x - lam * result.x, axis=0)
    assert (left <= tol * np.linalg.norm(Y, axis=0) * (1 + 1e-9)).all()
    assert not result.x[:, 1].any()
    assert result.function(X[:5]).shape == (5, 4)


@pytest.mark.parametrize("method", ["direct", "pcg", "blocks"])
def test_weights_are_repetitions_and_zero_weights_are_absence(method):
    X, y = teacher(150)
    w = np.random.default_rng(0).integers(0, 4, 150).astype(float)
    lam, kernel = 0.2, kernels.RBF(gamma=0.4)
    result = rowcol.solve(X, y, kernel=kernel, alpha=lam, sample_weight=w, method=method, tol=1e-8, random_state=0)
    again = np.repeat(np.arange(150), w.astype(int))
    repeated = np.linalg.solve(kernel(X[again]) + lam * np.eye(again.size), y[again])
    Z = teacher(50, seed=1)[0]
    assert np.allclose(result.function(Z), kernel(Z, X[again]) @ repeated, atol=1e-5)
    assert not result.x[w == 0].any()
    theirs = Theirs(alpha=lam, kernel="rbf", gamma=0.4).fit(X, y, sample_weight=w + 1e-300)
    assert np.allclose(result.x, theirs.dual_coef_, atol=1e-5 * np.abs(theirs.dual_coef_).max())


@pytest.mark.parametrize("method", ["direct", "pcg", "blocks"])
def test_noise_of_each_point(method):
    X, y = teacher(200)
    noise = np.random.default_rng(0).uniform(0.05, 2, 200)
    kernel = kernels.Matern(2.5)
    result = rowcol.solve(X, y, kernel=kernel, alpha=noise, method=method, tol=1e-8, random_state=0)
    assert np.allclose(result.x, np.linalg.solve(kernel(X) + np.diag(noise), y), atol=1e-5)


@pytest.mark.parametrize("method", ["direct", "pcg", "blocks"])
@pytest.mark.parametrize("weighted", [False, True])
def test_an_intercept_that_is_not_penalised(method, weighted):
    """Against the bordered system; the bound holds at every point, with the intercept's part."""
    X, y = teacher(200)
    y = y + 50
    w = np.random.default_rng(0).uniform(0.5, 2, 200) if weighted else np.ones(200)
    kernel, lam = kernels.RBF(gamma=0.4), 0.1
    K = kernel(X)
    bordered = np.block([[K + np.diag(lam / w), np.ones((200, 1))], [np.ones((1, 200)), np.zeros((1, 1))]])
    star = np.linalg.solve(bordered, np.append(y, 0))
    result = rowcol.solve(
        X,
        y,
        kernel=kernel,
        alpha=lam,
        fit_intercept=True,
        sample_weight=w if weighted else None,
        method=method,
        tol=1e-6,
        random_state=0,
    )
    assert result.success
    assert result.intercept == pytest.approx(star[-1], rel=1e-5)
    assert np.allclose(result.x, star[:-1], atol=1e-4)
    Z = teacher(60, seed=1)[0]
    values, bound = result.function(Z, return_bound=True)
    assert (np.abs(values - kernel(Z, X) @ star[:-1] - star[-1]) <= bound).all()
    moved = rowcol.solve(X, y + 1e4, kernel=kernel, alpha=lam, fit_intercept=True, method="direct", tol=1e-6)
    plain = rowcol.solve(X, y, kernel=kernel, alpha=lam, fit_intercept=True, method="direct", tol=1e-6)
    assert np.allclose(moved.x, plain.x, atol=1e-6)


@pytest.mark.parametrize("method", ["direct", "pcg", "blocks", "rk"])
def test_scaling_kernel_and_alpha_together_changes_nothing(method):
    X, y = teacher(300)
    tol = TOL.get(method, 1e-5)
    runs = []
    for c in (1.0, 2.0**-10, 2.0**20):
        runs.append(
            rowcol.solve(X, y, kernel=c * kernels.RBF(gamma=0.4), alpha=0.1 * c, method=method, tol=tol, random_state=0)
        )
    values = [run.function(X[:20]) for run in runs]
    assert np.allclose(values[0], values[1], atol=1e-6)
    assert np.allclose(values[0], values[2], atol=1e-6)
    assert runs[0].passes == pytest.approx(runs[1].passes, rel=0.1)
    assert runs[0].passes == pytest.approx(runs[2].passes, rel=0.1)


def test_refinement_goes_past_the_floor_of_single_precision():
    X, y = teacher(2500, 3)
    K, lam = kernels.RBF(gamma=0.5)(X), 1e-3
    result = rowcol.solve(X, y, kernel=kernels.RBF(gamma=0.5), alpha=lam, method="pcg", tol=1e-7, random_state=0)
    assert result.success
    assert np.linalg.norm(y - K @ result.x - lam * result.x) <= 1e-7 * np.linalg.norm(y)


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 60),
    d=st.integers(1, 9),
    gamma=st.floats(1e-4, 1e4),
    lam=st.floats(1e-6, 1e4),
    shift=st.sampled_from([0.0, 1e4]),
    copies=st.booleans(),
    method=st.sampled_from(["auto", "pcg", "blocks", "direct"]),
    seed=st.integers(0, 9),
)
def test_never_silently_wrong(n, d, gamma, lam, shift, copies, method, seed):
    """Success means a residual, in extended precision, within the certificate; anything else is said."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + shift
    X = np.repeat(X, 2, axis=0) if copies else X
    y = rng.standard_normal(len(X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rowcol.ConvergenceWarning)
        result = rowcol.solve(
            X, y, kernel=kernels.RBF(gamma=gamma), alpha=lam, method=method, tol=1e-5, random_state=0, max_passes=200
        )
    wide = X.astype(np.longdouble)
    K = np.exp(-np.longdouble(gamma) * sum((wide[:, None, k] - wide[None, :, k]) ** 2 for k in range(d)))
    left = np.linalg.norm((y - K @ result.x.astype(np.longdouble) - lam * result.x).astype(float))
    assert left <= result.certificate.value * np.linalg.norm(y) * (1 + 1e-9)
    assert result.success == (result.certificate.value <= 1e-5)


def test_auto_takes_pivots_where_points_are_many_and_says_so():
    X, y = teacher(3500)
    plan = rowcol.plan(X, y, kernel="rbf", alpha=1e-2, tol=1e-2)
    assert plan.route == "pcg"
    assert plan.seconds > 0
    assert "randomly drawn pivots" in str(plan)
    assert "kernel matrix" in str(plan)
    result = rowcol.solve(X, y, kernel="rbf", alpha=1e-2, tol=1e-2, random_state=0)
    assert result.success
    assert result.method == "pcg"
    assert "pivots leave" in result.plan.learned[0]
    assert rowcol.plan(X[:500], y[:500], kernel="rbf", alpha=1e-2).route == "direct"
    assert rowcol.plan(X, y, kernel="rbf", alpha=1e-2, tol=1e-4).route == "direct"
    small = rowcol.plan(X, y, kernel="rbf", alpha=1e-2, tol=1e-2, memory="5 MB")
    assert small.route == "blocks"
    with pytest.raises(ValueError, match="needs about 4 MB beside X"):
        rowcol.plan(X, y, kernel="rbf", alpha=1e-2, tol=1e-2, memory="1 MB")


def test_a_start_a_limit_and_a_callback():
    X, y = teacher(600)
    options = dict(kernel="rbf", alpha=1e-2, tol=1e-5, random_state=0)
    full = rowcol.solve(X, y, method="pcg", **options)
    for start in (full, full.x):
        again = rowcol.solve(X, y, method="pcg", x0=start, **options)
        assert again.success
        assert again.passes < full.passes
    with pytest.warns(rowcol.ConvergenceWarning, match="max_passes came before"):
        short = rowcol.solve(X, y, method="blocks", max_passes=0.5, **options)
    assert not short.success
    assert short.certificate.value < 1
    with pytest.warns(rowcol.ConvergenceWarning, match="max_seconds came before"):
        hurried = rowcol.solve(X, y, method="rk", max_seconds=1e-4, **options)
    assert np.isfinite(hurried.x).all()
    stopped = rowcol.solve(X, y, method="blocks", callback=lambda p: p.passes > 1, **options)
    assert stopped.status is rowcol.Status.CALLBACK


def test_the_same_seed_gives_the_same_bits_on_any_number_of_threads():
    X, y = teacher(3200, 9)
    for method in ("pcg", "blocks"):
        runs = [
            rowcol.solve(X, y, kernel="rbf", alpha=0.1, tol=1e-3, method=method, random_state=5, n_jobs=jobs).x
            for jobs in (1, 1, 3)
        ]
        assert (runs[0] == runs[1]).all()
        assert np.linalg.norm(runs[0] - runs[2]) <= 1e-2 * np.linalg.norm(runs[0])  # BLAS adds in another order


def _solve_in_a_child(queue):
    X, y = teacher(700)
    queue.put(rowcol.solve(X, y, kernel="rbf", alpha=0.1, method="pcg", n_jobs=2, tol=1e-3, random_state=0).x)


def test_a_fork_solves_as_its_parent_did():
    X, y = teacher(700)
    mine = rowcol.solve(X, y, kernel="rbf", alpha=0.1, method="pcg", n_jobs=2, tol=1e-3, random_state=0).x
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # later Pythons warn of any fork beside threads
        child = context.Process(target=_solve_in_a_child, args=(queue,))
        child.start()
    assert (queue.get(timeout=60) == mine).all()
    child.join(60)


def test_a_kernel_that_is_none_is_found_out():
    X, y = teacher(100)
    for method in ("direct", "cg", "pcg"):
        with pytest.warns(rowcol.ConvergenceWarning, match="not positive definite"):
            result = rowcol.solve(
                X, y, kernel=kernels.Function(lambda A, B: -pairwise.rbf_kernel(A, B)), alpha=1e-3, method=method
            )
        assert result.status is rowcol.Status.INDEFINITE


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (dict(alpha=0.0), ValueError, "alpha must be above 0"),
        (dict(alpha=-1.0), ValueError, "alpha must be above 0"),
        (dict(alpha=np.nan), ValueError, "alpha must be above 0"),
        (dict(alpha="1"), TypeError, "alpha must be a number above 0"),
        (dict(alpha=np.ones(3)), ValueError, "one a point"),
        (dict(alpha=np.zeros(20)), ValueError, "at every point"),
        (dict(kernel="gauss"), ValueError, "kernel must be"),
        (dict(method="rcd"), ValueError, "with a kernel"),
        (dict(method="subset"), ValueError, "with a kernel"),
        (dict(preconditioner=np.eye(20)), ValueError, "leave out preconditioner"),
        (dict(fit_intercept=1), TypeError, "fit_intercept must be True or False"),
        (dict(x0=np.ones(3)), ValueError, "x0 must be real numbers of shape"),
        (dict(x0=np.full(20, np.nan)), ValueError, "x0 has a NaN"),
        (dict(sample_weight=np.zeros(20)), ValueError, "sample_weight"),
        (dict(method="direct", memory="3 kB"), ValueError, "more than memory"),
    ],
)
def test_mistakes_are_named(change, error, words):
    X, y = teacher(20)
    with pytest.raises(error, match=words):
        rowcol.solve(X, y, **{"kernel": "rbf", "alpha": 1.0, **change})


def test_bad_data_are_named():
    X, y = teacher(20)
    bad = X.copy()
    bad[3, 1] = np.nan
    with pytest.raises(ValueError, match="row 3, column 1"):
        rowcol.solve(bad, y, kernel="rbf", alpha=1.0)
    with pytest.raises(ValueError, match="y has a NaN"):
        rowcol.solve(X, np.where(y == y[4], np.inf, y), kernel="rbf", alpha=1.0)
    with pytest.raises(TypeError, match="real y"):
        rowcol.solve(X, y * 1j, kernel="rbf", alpha=1.0)
    function = rowcol.solve(X, y, kernel="rbf", alpha=1.0).function
    with pytest.raises(ValueError, match="4 features"):
        function(X[:, :2])
    with pytest.raises(ValueError, match="NaN"):
        function(bad)
    one = rowcol.solve(X[:1], y[:1], kernel="rbf", alpha=1.0)
    assert one.x[0] == pytest.approx(y[0] / 2)
    kept = X.copy(), y.copy()
    rowcol.solve(X, y, kernel="rbf", alpha=1.0, method="pcg")
    assert (kept[0] == X).all()
    assert (y == kept[1]).all()


def peak(n, memory):
    """Bytes at the peak of a process that solves n points, less those before; and those its plan foretold."""
    script = f"""
import resource, numpy as np, rowcol
def rss(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
rng = np.random.default_rng(0)
X = rng.standard_normal((600, 8)); y = np.sin(X[:, 0])
rowcol.solve(X, y, kernel="rbf", alpha=1e-3, method="pcg", tol=1e-2, random_state=0)
X = rng.standard_normal(({n}, 8)); y = np.sin(2 * X[:, 0]) * X[:, 1]
options = dict(kernel="rbf", alpha=1e-6 * {n}, tol=1e-2, memory={memory!r}, random_state=0)
plan = rowcol.plan(X, y, **options)
before = rss()
result = rowcol.solve(X, y, **options)
assert result.success, result
print(rss() - before, plan.bytes)
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return [float(number) for number in found.stdout.split()]


def held(n, memory, limit):
    extra, foretold = peak(n, memory)
    assert extra <= 1.2 * foretold + 20e6
    assert extra <= limit
    assert limit < 8 * n * n / 2


@pytest.mark.parametrize("memory", [None, "60 MB"])
def test_memory_is_as_planned_and_never_square(memory):
    held(16_000, memory, 0.3e9 if memory is None else 90e6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "memory", "limit"), [(36_000, None, 1e9), (36_000, "300MB", 0.36e9), (150_000, None, 2.5e9)]
)
def test_memory_of_many_points(n, memory, limit):
    held(n, memory, limit)


# --- the estimator -------------------------------------------------------------------------------------------------


CHECKED = [rowcol.KernelRidge(), rowcol.KernelRidge(kernel="rbf", fit_intercept=True, solver="direct")]


@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        pytest.param(estimator, check, id=f"{i}-{getattr(check, 'func', check).__name__}-{k}")
        for i, one in enumerate(CHECKED)
        for k, (estimator, check) in enumerate(estimator_checks_generator(one))
        if "array_api"
        not in getattr(check, "func", check).__name__  # it skips itself, and we claim nothing of the kind
    ],
)
def test_scikit_learns_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "parameters",
    [
        dict(),
        dict(kernel="rbf"),
        dict(kernel="rbf", gamma=0.2),
        dict(kernel="laplacian", gamma=0.3),
        dict(kernel="poly", degree=2, coef0=0.5),
        dict(kernel="polynomial"),
        dict(kernel="sigmoid", gamma=0.01),
        dict(kernel="cosine"),
        dict(kernel=lambda a, b: float(np.exp(-np.sum((a - b) ** 2)))),
    ],
    ids=lambda given: re.sub(r" at 0x\w+", "", str(given)),
)
def test_the_estimator_is_scikit_learns(parameters):
    X, y = teacher(120)
    Y = np.stack([y, X[:, 0]], axis=1)
    for target in (y, Y):
        ours = rowcol.KernelRidge(alpha=0.5, tol=1e-9, **parameters).fit(X, target)
        theirs = Theirs(alpha=0.5, **parameters).fit(X, target)
        assert ours.dual_coef_.shape == theirs.dual_coef_.shape
        assert np.allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-6)
        assert np.allclose(ours.predict(X[:9] + 0.1), theirs.predict(X[:9] + 0.1), atol=1e-5)


def test_the_estimator_with_sparse_precomputed_weights_and_copies():
    X, y = teacher(80)
    S = sp.csr_array(np.where(np.abs(X) > 1, X, 0))
    ours, theirs = (cls(alpha=0.3, kernel="rbf", gamma=0.2).fit(S, y) for cls in (rowcol.KernelRidge, Theirs))
    assert np.allclose(ours.predict(S), theirs.predict(S), atol=1e-4)
    K = pairwise.rbf_kernel(X)
    ours, theirs = (cls(alpha=0.3, kernel="precomputed").fit(K, y) for cls in (rowcol.KernelRidge, Theirs))
    assert np.allclose(ours.predict(K[:5]), theirs.predict(K[:5]), atol=1e-4)
    w = np.random.default_rng(0).uniform(0, 2, 80)
    ours = rowcol.KernelRidge(alpha=0.3, kernel="rbf", tol=1e-9).fit(X, y, sample_weight=w)
    theirs = Theirs(alpha=0.3, kernel="rbf").fit(X, y, sample_weight=w)
    assert np.allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-6)
    same = pickle.loads(pickle.dumps(ours))
    assert (same.predict(X) == ours.predict(X)).all()
    assert clone(ours).get_params() == ours.get_params()
    assert rowcol.KernelRidge(kernel=kernels.Matern() * 2.0, alpha=0.1).fit(X, y).score(X, y) > 0.9
    warm = rowcol.KernelRidge(kernel="rbf", alpha=0.3, solver="pcg", warm_start=True, random_state=0).fit(X, y)
    first = warm.n_iter_
    assert warm.fit(X, y).n_iter_ < first


def test_predicting_takes_memory_of_a_chunk(monkeypatch):
    """No call makes a block of all points with all points."""
    from rowcol.core import gram as where

    largest = []
    true = where._tile

    def watch(*asked):
        tile = true(*asked)
        largest.append(tile.size)
        return tile

    monkeypatch.setattr(where, "_tile", watch)
    X, y = teacher(3000)
    result = rowcol.solve(
        X, np.stack([y, y + 1], 1), kernel="rbf", alpha=0.1, tol=1e-2, method="blocks", random_state=0
    )
    result.function(teacher(9000)[0])
    assert max(largest) <= 256 * 704


def test_the_plain_matrix_is_for_looking_at():
    X, _ = teacher(30)
    assert np.allclose(kernels.RBF()(X), pairwise.rbf_kernel(X), atol=1e-14)
    assert gram(kernels.RBF(), X).symmetric


@pytest.mark.parametrize("method", ["pcg", "direct", "blocks"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_columns_with_an_alpha_and_points_of_their_own(method, fit_intercept):
    """Several alphas, and folds: each column as if solved alone on its points, on the same tiles."""
    X, y = teacher(240)
    n, kernel = 240, kernels.RBF(gamma=0.4)
    fold = np.arange(n) % 3
    Y = np.stack([y + 3, y + 3, y + 3], axis=1)
    alphas = np.stack([np.full(n, 0.1), np.full(n, 2.0), np.where(fold == 0, np.inf, 0.1)], axis=1)
    options = dict(kernel=kernel, method=method, tol=1e-7, random_state=0, fit_intercept=fit_intercept)
    together = rowcol.solve(X, Y, alpha=alphas, **options)
    assert together.success
    Z = teacher(40, seed=1)[0]
    values, bound = together.function(Z, return_bound=True)
    for column, (lam, rows) in enumerate([(0.1, fold >= 0), (2.0, fold >= 0), (0.1, fold > 0)]):
        m = int(rows.sum())
        A = np.zeros((m + 1, m + 1))
        A[:m, :m] = kernel(X[rows]) + lam * np.eye(m)
        A[m, :m] = A[:m, m] = 1.0 if fit_intercept else 0.0
        A[m, m] = 0.0 if fit_intercept else 1.0
        star = np.linalg.solve(A, np.append(Y[rows, column], 0))
        exact = kernel(Z, X[rows]) @ star[:m] + star[m]
        assert np.allclose(values[:, column], exact, atol=1e-5)
        assert (np.abs(values[:, column] - exact) <= bound[:, column]).all()
        assert not together.x[~rows, column].any()
    with pytest.raises(ValueError, match="no point counts"):
        rowcol.solve(X, Y, alpha=np.where(np.arange(3) == 1, np.inf, alphas), **options)


def test_columns_of_one_alpha_share_a_factor_and_a_column_of_ones():
    """Two folds of two targets, with an intercept: two factors, not eight."""
    X, y = teacher(120)
    fold = np.arange(120) % 2
    Y = np.stack([y, X[:, 1], y, X[:, 1]], axis=1)
    alphas = np.where(fold[:, None] == np.array([0, 0, 1, 1]), np.inf, 0.1)
    options = dict(kernel="rbf", alpha=alphas, method="direct", fit_intercept=True)
    together = rowcol.solve(X, Y, **options)
    alone = rowcol.solve(X, Y[:, :2], **(options | dict(alpha=alphas[:, :2])))
    assert together.passes == 2 * alone.passes
    np.testing.assert_allclose(together.x[:, :2], alone.x, atol=1e-12)
    for k in range(4):
        one = rowcol.solve(X, Y[:, k], **(options | dict(alpha=alphas[:, [k]].copy())))
        np.testing.assert_allclose(together.x[:, k], one.x, atol=1e-10)
        assert together.intercept[k] == pytest.approx(one.intercept, abs=1e-10)
    iterated = rowcol.solve(
        X, Y[:, [0, 2, 1, 3]], **(options | dict(alpha=alphas[:, [0, 2, 1, 3]], method="pcg", tol=1e-8))
    )
    np.testing.assert_allclose(iterated.x, together.x[:, [0, 2, 1, 3]], atol=1e-6)
    np.testing.assert_allclose(iterated.intercept, together.intercept[[0, 2, 1, 3]], atol=1e-6)
    posed_as = pose(X, Y, "rbf", alphas, SimpleNamespace(method="auto", sampler="auto"), None, True)
    assert posed_as.asked.y.shape == (4 + 2, 120)
    seen = []
    stopped = rowcol.solve(X, Y, **options, callback=lambda p: seen.append(p.x.shape) or True)
    assert stopped.status in (rowcol.Status.CALLBACK, rowcol.Status.CONVERGED)
    assert set(seen) == {(120, 4)}


def test_an_alpha_for_each_target_as_in_scikit_learn():
    X, y = teacher(100)
    Y = np.stack([y, X[:, 1]], axis=1)
    ours = rowcol.KernelRidge(alpha=[0.1, 3.0], kernel="rbf", tol=1e-9).fit(X, Y)
    theirs = Theirs(alpha=[0.1, 3.0], kernel="rbf").fit(X, Y)
    assert np.allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-6)
