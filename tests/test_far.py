"""Kernels of points that lie elsewhere and do not fit in memory: the truth is a kernel matrix written out."""

import json
import subprocess
import sys

import dask.array as da
import numpy as np
import pytest
import scipy.linalg
from sklearn.metrics.pairwise import laplacian_kernel, linear_kernel, rbf_kernel

import rowcol
from oracle import scattered
from rowcol.core.far import Far, blocks_of, grams_of
from rowcol.core.gram import block, by_columns, cross, gram, picked, product, two_ways, written
from rowcol.core.kernels import RBF, Function, Laplacian, Linear
from rowcol.core.sizes import diagonal, sizes2
from test_cluster import client  # noqa: F401 - a fixture

N, D, MEMORY = 1_500, 800, "24 MB"


def points(n=N, d=D, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 2.0
    return X, np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n)


def parts_of(X, rows=60):
    return rowcol.chunks(lambda: (X[i : i + rows] for i in range(0, X.shape[0], rows))).X


def exact(K, y, alpha):
    return scipy.linalg.solve(K + alpha * np.eye(len(K)), y, assume_a="pos")


@pytest.mark.parametrize(
    "kernel", [RBF(length_scale=4.0), Laplacian(length_scale=9.0), 0.5 * RBF(length_scale=3.0) + Linear()], ids=str
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_product_is_that_of_points_in_memory(kernel, dtype):
    X, _ = points(700, 9)
    place = parts_of(X, 90)
    place.room = 24 * 9 * 200  # blocks of two parts
    assert len(blocks_of(place)) == 4
    far, near, rng = grams_of(kernel, place, None)(dtype), gram(kernel, X, dtype), np.random.default_rng(1)
    v, some = rng.standard_normal((3, 700)), np.array([650, 3, 400, 3])
    alike = dict(rtol=1e-10, atol=1e-9) if dtype is np.float64 else dict(rtol=2e-4, atol=2e-2)
    for which in (slice(0, 1), slice(0, 3)):  # one column is spent as it is made, several are not
        np.testing.assert_allclose(product(far, v[which]), product(near, v[which]), **alike)
    np.testing.assert_allclose(
        by_columns(far, np.array([3, 400]), v[:, :2]), v[:, :2] @ written(near)[[3, 400]], **alike
    )
    np.testing.assert_allclose(written(picked(far, some)), written(near)[some], **alike)
    np.testing.assert_allclose(written(far), written(near), **alike)
    np.testing.assert_allclose(block(far, some, some[:2]), written(near)[np.ix_(some, some[:2])], **alike)
    np.testing.assert_allclose(product(cross(far, X[:5]), v), (written(near)[:5] @ v.T).T, **alike)
    np.testing.assert_allclose(diagonal(far), diagonal(near), **alike)
    np.testing.assert_allclose(sizes2(far), sizes2(near), **alike)
    assert far.chain >= near.chain


@pytest.mark.parametrize("kernel", [RBF(length_scale=4.0), 0.5 * RBF(length_scale=3.0) + Linear()], ids=str)
def test_two_ways_are_a_product_and_that_of_the_transpose(kernel):
    X, _ = points(1_500, 9)
    g, rng = cross(gram(kernel, X), X[:700] + 0.1), np.random.default_rng(2)
    for many in (1, 2):
        u, v = rng.standard_normal((many, 700)), rng.standard_normal((many, 1_500))
        there, back = two_ways(g, u, v)
        np.testing.assert_allclose(there, v @ written(g).T, rtol=1e-10)
        np.testing.assert_allclose(back, u @ written(g), rtol=1e-10)


@pytest.mark.parametrize("method", ["auto", "pcg", "cg", "blocks"])
@pytest.mark.parametrize("kind", ["npy", "function"])
def test_the_answer_is_that_of_points_in_memory(tmp_path, kind, method):
    X, y = points()
    np.save(tmp_path / "X.npy", X)
    place = rowcol.chunks(tmp_path / "X.npy").X if kind == "npy" else parts_of(X)
    result = rowcol.solve(
        place, y, kernel=RBF(length_scale=20.0), alpha=0.3, method=method, tol=1e-7, memory=MEMORY, random_state=0
    )
    assert result.success
    assert isinstance(result.function.exact.far, Far)
    K = rbf_kernel(X, gamma=1 / (2 * 20.0**2))
    alpha = exact(K, y, 0.3)
    assert np.linalg.norm(result.x - alpha) <= 1e-5 * np.linalg.norm(alpha)
    values, bounds = result.function(X[:40], return_bound=True)
    assert (np.abs(values - K[:40] @ alpha) <= bounds).all()
    np.testing.assert_allclose(result.fitted, K @ alpha, atol=1e-5)


def test_the_paper_s_steps_too():
    X, y = points(400, 2_500)
    kernel, gamma = RBF(length_scale=40.0), 1 / (2 * 40.0**2)
    asked = {"kernel": kernel, "alpha": 3.0, "method": "rk", "tol": 1e-3, "memory": "24 MB", "random_state": 0}
    result = rowcol.solve(parts_of(X, 20), y, **asked)
    assert isinstance(result.function.exact.far, Far)
    alpha = exact(rbf_kernel(X, gamma=gamma), y, 3.0)
    assert np.linalg.norm(result.x - alpha) <= 1e-2 * np.linalg.norm(alpha)


def test_an_estimator_with_weights_an_intercept_and_several_targets(tmp_path):
    X, y = points()
    Y, w = np.stack([y, np.cos(X[:, 1])], axis=1), np.linspace(0.5, 2.0, N)
    np.save(tmp_path / "X.npy", X)
    there = {"kernel": "laplacian", "gamma": 1e-3, "alpha": 0.3, "fit_intercept": True, "tol": 1e-6, "random_state": 0}
    far = rowcol.KernelRidge(**there, memory=MEMORY).fit(rowcol.chunks(tmp_path / "X.npy").X, Y, w)
    assert isinstance(far.result_.function.exact.far, Far)
    # (K + Λ)α + b = y with Σα = 0, written out
    bordered = np.zeros((N + 1, N + 1))
    bordered[:N, :N] = laplacian_kernel(X, gamma=1e-3) + np.diag(0.3 / w)
    bordered[N, :N] = bordered[:N, N] = 1.0
    truth = np.linalg.solve(bordered, np.vstack([Y, np.zeros(2)]))
    np.testing.assert_allclose(far.intercept_, truth[N], atol=1e-4)
    expected = laplacian_kernel(X[:50], X, gamma=1e-3) @ truth[:N] + truth[N]
    np.testing.assert_allclose(far.predict(X[:50]), expected, atol=1e-4)
    np.testing.assert_allclose(far.predict(parts_of(X[:50], 20)), expected, atol=1e-4)
    values, bounds = far.predict(parts_of(X[:50], 20), return_bound=True)
    assert (np.abs(values - expected) <= bounds).all()
    assert "lie elsewhere" in str(far.plan_)
    for call in (far.loo_residuals, lambda: far.predict(X[:2], return_std=True), lambda: far.add_rows(X[:2], Y[:2])):
        with pytest.raises(ValueError, match="lie elsewhere: allow more memory"):
            call()
    with pytest.raises(TypeError, match="a file holds its points"):
        rowcol.save(far, tmp_path / "model.rowcol")
    with pytest.raises(ValueError, match="7 features"):
        far.predict(parts_of(X[:50, :7]))


def test_sparse_points_and_functions():
    X, rng = scattered(np.random.default_rng(0), 900, 2_000, 0.1), np.random.default_rng(1)
    y = rng.standard_normal(900)
    sparse = rowcol.chunks(lambda: (X[i : i + 100] for i in range(0, 900, 100))).X
    for kernel, K in ((Linear(), linear_kernel(X)), (Function(linear_kernel), linear_kernel(X))):
        result = rowcol.solve(sparse, y, kernel=kernel, alpha=50.0, tol=1e-8, memory="40 MB", random_state=0)
        assert isinstance(result.function.exact.far, Far)
        np.testing.assert_allclose(result.x, exact(K, y, 50.0), atol=1e-6)
        np.testing.assert_allclose(result.function(X[:9]), (K @ exact(K, y, 50.0))[:9], atol=1e-5)


def test_a_plan_says_so_and_what_is_wrong_is_named(tmp_path):
    X, y = points()
    np.save(tmp_path / "X.npy", X)
    place = rowcol.chunks(tmp_path / "X.npy").X
    plan = rowcol.plan(place, y, kernel="rbf", alpha=0.3, memory=MEMORY)
    assert plan.bytes <= 24e6
    assert plan.copies == 0
    assert "points that lie elsewhere" in str(plan)
    asked = {"kernel": "rbf", "alpha": 0.3, "memory": MEMORY}
    with pytest.raises(ValueError, match="sample_weight and alpha must let every point count"):
        rowcol.solve(place, y, sample_weight=np.arange(N) > 3, **asked)
    with pytest.raises(TypeError, match="precomputed"):
        rowcol.solve(place, y, **asked | {"kernel": "precomputed"})
    with pytest.raises(ValueError, match="needs all 1,500 x 800 numbers of X in memory"):
        rowcol.solve(place, y, n_centers=20, **asked)
    X[1_234, 7] = np.nan
    with pytest.raises(ValueError, match=r"chunk 21 of 25 .* NaN or infinity in its row 34, column 7"):
        rowcol.solve(parts_of(X), y, **asked)


def test_the_same_seed_and_thread_count_give_the_same_bits():
    X, y = points(4_000, 300)
    asked = {"kernel": RBF(length_scale=20.0), "alpha": 9.0, "tol": 1e-1, "memory": MEMORY, "random_state": 0}
    one, two = (rowcol.solve(parts_of(X), y, n_jobs=2, **asked) for _ in range(2))
    assert isinstance(one.function.exact.far, Far)
    assert (one.x == two.x).all()


def test_a_killed_fit_goes_on_to_the_same_bits(tmp_path):
    X, y = points()
    asked = {
        "kernel": RBF(length_scale=20.0),
        "alpha": 0.3,
        "tol": 1e-6,
        "memory": MEMORY,
        "random_state": 0,
        "method": "cg",
    }
    path = tmp_path / "checkpoint"
    cut = rowcol.solve(parts_of(X), y, checkpoint=path, callback=lambda now: now.passes > 2, **asked)
    assert cut.status is rowcol.Status.CALLBACK
    again = rowcol.resume(path, parts_of(X), y)
    assert again.success
    assert (again.x == rowcol.solve(parts_of(X), y, **asked).x).all()


@pytest.mark.parametrize("method", ["blocks", "pcg"])
def test_on_a_cluster_points_stay_with_the_workers(client, method):  # noqa: F811
    X, y = points()
    place = rowcol.chunks(da.from_array(X, chunks=(400, -1))).X
    asked = {"kernel": RBF(length_scale=20.0), "alpha": 3.0, "random_state": 0}
    tol = {"blocks": 1e-2, "pcg": 1e-6}[method]
    result = rowcol.solve(place, y, memory=MEMORY, method=method, tol=tol, **asked)
    assert result.success
    assert isinstance(result.function.exact.far, Far)
    K = rbf_kernel(X, gamma=1 / (2 * 20.0**2))
    assert np.linalg.norm(y - K @ result.x - 3.0 * result.x) <= 1.01 * tol * np.linalg.norm(y)
    assert "went to the workers" in str(result.plan)


WATCHED = """
import json, sys, threading
import numpy as np, rowcol

def anonymous():
    return next(int(l.split()[1]) * 1024 for l in open("/proc/self/status") if l.startswith("RssAnon"))

X, y = rowcol.chunks(sys.argv[1]).X, np.load(sys.argv[2])
asked = dict(kernel=rowcol.kernels.RBF(length_scale=60.0), alpha=100.0, tol=1e-1, random_state=0, n_jobs=1)
few = np.random.default_rng(0).standard_normal((400, X.shape[1]))
rowcol.solve(few, np.ones(400), method="pcg", **asked)  # imports, and compiles
before, peak, done = anonymous(), [0], threading.Event()

def watch():
    while not done.wait(0.002):
        peak[0] = max(peak[0], anonymous())

threading.Thread(target=watch, daemon=True).start()
result = rowcol.solve(X, y, memory=float(sys.argv[3]), **asked)
done.set()
print(json.dumps([peak[0] - before, result.plan.bytes, result.success, result.function.exact.far is not None]))
"""


def test_memory_is_kept_whatever_the_number_of_points(tmp_path):
    n, d, budget = 8_000, 800, 24e6
    X = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.float64, (n, d))
    rng = np.random.default_rng(0)
    X[:] = rng.standard_normal((n, d))
    np.save(tmp_path / "y.npy", np.sin(X[:, 0]))
    X.flush()
    assert X.nbytes > 2 * budget
    del X
    words = [sys.executable, "-c", WATCHED, str(tmp_path / "X.npy"), str(tmp_path / "y.npy"), str(budget)]
    taken, foretold, success, far = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    assert success
    assert far
    assert taken <= foretold <= budget
