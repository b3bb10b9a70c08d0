"""X that lies elsewhere: the answers are those of X in memory, and what goes wrong is named by its chunk."""

import json
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import rowcol
from oracle import lapack, uneven
from rowcol.core.place import aligned
from rowcol.core.problem import Shift


def saved(X, tmp_path, kind):
    if kind == "npy":
        np.save(tmp_path / "X.npy", X)
        return rowcol.chunks(tmp_path / "X.npy", rows=700).X
    if kind == "fortran npy":
        np.save(tmp_path / "X.npy", np.asfortranarray(X))
        return rowcol.chunks(tmp_path / "X.npy", rows=700).X
    if kind == "hdf5":
        import h5py

        with h5py.File(tmp_path / "X.h5", "w") as file:
            file.create_dataset("X", data=X, chunks=(500, X.shape[1]))
        return rowcol.chunks(tmp_path / "X.h5", rows=700).X
    if kind == "zarr":
        import zarr

        zarr.save(str(tmp_path / "X.zarr"), X)
        return rowcol.chunks(tmp_path / "X.zarr", rows=700).X
    if kind == "function":
        return rowcol.chunks(lambda: (X[i : i + 700] for i in range(0, len(X), 700))).X
    if kind == "sparse function":
        return rowcol.chunks(lambda: (sp.csr_array(X[i : i + 700]) for i in range(0, len(X), 700))).X
    raise AssertionError(kind)


KINDS = ["npy", "fortran npy", "hdf5", "zarr", "function", "sparse function"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["auto", "direct", "cg"])
def test_least_squares_and_ridge_are_those_of_lapack(tmp_path, kind, method):
    X, y = uneven()
    place = saved(X, tmp_path, kind)
    for alpha in (0.0, 5.0):
        result = rowcol.solve(place, y, alpha=alpha, method=method, tol=1e-9, random_state=0)
        assert result.success
        np.testing.assert_allclose(result.x, lapack(X, y, alpha), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kind", ["npy", "function", "sparse function"])
@pytest.mark.parametrize("weighted", [False, True])
def test_an_intercept_and_weights_are_those_of_scikit_learn(tmp_path, kind, weighted):
    from sklearn.linear_model import Ridge

    X, y = uneven()
    X[:, 3] = 7.0  # a constant column
    y = np.column_stack([y, -2 * y + 5])
    w = np.random.default_rng(1).uniform(0, 3, len(y)) if weighted else None
    mine = rowcol.Ridge(2.0, tol=1e-10).fit(saved(X, tmp_path, kind), y, w)
    theirs = Ridge(2.0).fit(X, y, w)
    np.testing.assert_allclose(mine.coef_, theirs.coef_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(mine.intercept_, theirs.intercept_, rtol=1e-7)
    np.testing.assert_allclose(mine.predict(saved(X, tmp_path, kind)), theirs.predict(X), rtol=1e-7)


@pytest.mark.parametrize("kind", ["npy", "function", "sparse function"])
def test_rows_reach_the_shortest_solution_and_ridge(tmp_path, kind):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 900))
    y = rng.standard_normal(300)
    place = (
        rowcol.chunks(lambda: (X[i : i + 80] for i in range(0, 300, 80))).X
        if kind != "npy"
        else saved(X, tmp_path, kind)
    )
    shortest = np.linalg.lstsq(X, y, rcond=None)[0]
    for method in ("rk", "auto"):
        result = rowcol.solve(place, y, method=method, tol=1e-8, random_state=0, max_passes=2_000)
        assert result.success
        np.testing.assert_allclose(result.x, shortest, atol=1e-6)
    ridge = rowcol.solve(place, y, alpha=30.0, method="rk", tol=1e-8, random_state=0, max_passes=2_000)
    assert ridge.success
    np.testing.assert_allclose(ridge.x, lapack(X, y, 30.0), atol=1e-6)
    again = rowcol.solve(place, y, alpha=30.0, method="rk", tol=1e-8, random_state=0, max_passes=2_000)
    assert (again.x == ridge.x).all()


def test_a_rank_deficient_x_gives_the_shortest_solution(tmp_path):
    X, y = uneven()
    X = np.hstack([X, X[:, :5]])
    result = rowcol.solve(saved(X, tmp_path, "npy"), y, tol=1e-8)
    assert result.success
    np.testing.assert_allclose(result.x, np.linalg.lstsq(X, y, rcond=None)[0], rtol=1e-5, atol=1e-7)


def test_an_ill_conditioned_x_goes_by_qr(tmp_path):
    rng = np.random.default_rng(0)
    U, V = (np.linalg.qr(rng.standard_normal((n, 15)))[0] for n in (2_000, 15))
    X = (U * np.geomspace(1, 1e-8, 15)) @ V.T
    truth = rng.standard_normal(15)
    result = rowcol.solve(saved(X, tmp_path, "npy"), X @ truth, tol=1e-10)
    assert result.success
    np.testing.assert_allclose(X @ result.x, X @ truth, atol=1e-10)


def test_float32_and_kernels_are_as_in_memory(tmp_path):
    X, y = uneven(n=800, p=4)
    few = X.astype(np.float32)
    np.save(tmp_path / "X.npy", few)
    place = rowcol.chunks(tmp_path / "X.npy", rows=90).X
    result = rowcol.solve(place, y, alpha=1.0, tol=1e-6)
    assert result.x.dtype == np.float32
    np.testing.assert_allclose(result.x, lapack(few.astype(float), y, 1.0), rtol=1e-5)
    here = rowcol.KernelRidge(1.0, kernel="rbf", gamma=0.01, random_state=0).fit(few, y)
    there = rowcol.KernelRidge(1.0, kernel="rbf", gamma=0.01, random_state=0).fit(place, y)
    assert (here.dual_coef_ == there.dual_coef_).all()


def test_models_that_need_all_rows_read_them_where_they_fit(tmp_path):
    X, y = uneven(n=300, p=3)
    place = saved(X, tmp_path, "npy")
    models = [
        rowcol.RidgeCV([0.1, 1.0]),
        rowcol.RidgeClassifier(),
        rowcol.KernelRidgeClassifier(kernel="rbf", gamma=0.01),
    ]
    for model in models:
        target = y if isinstance(model, rowcol.RidgeCV) else y > 0
        there, here = (rowcol.__dict__[type(model).__name__](**model.get_params()).fit(A, target) for A in (place, X))
        assert (there.predict(X) == here.predict(X)).all()
        with pytest.raises(ValueError, match="needs all 300 x 3 numbers of X in memory"):
            model.set_params(memory=1_000).fit(place, target)
    assert repr(place) == "<X.npy: 300 x 3, float64, in 1 part>"


@pytest.mark.parametrize("kind", ["npy", "hdf5", "function"])
def test_what_is_wrong_is_named_by_its_chunk(tmp_path, kind):
    X, y = uneven(n=10_000, p=3)
    X[6_234, 1] = np.nan
    for options in ({}, {"fit_intercept": True}, {"method": "cg"}, {"alpha": 1.0, "method": "rk"}):
        with pytest.raises(ValueError, match=r"chunk 9 of 15 .* NaN or infinity in its row 634, column 1"):
            rowcol.solve(saved(X, tmp_path, kind), y, **options)


def test_a_file_that_is_cut_or_gone_is_named(tmp_path):
    X, y = uneven()
    place = saved(X, tmp_path, "npy")
    (tmp_path / "X.npy").write_bytes((tmp_path / "X.npy").read_bytes()[:-1_000])
    with pytest.raises(
        ValueError, match=r"X.npy: chunk 5 of 5 \(rows 2,800 to 2,999\) cannot be read: the file ends early"
    ):
        rowcol.solve(place, y)
    (tmp_path / "X.npy").unlink()
    with pytest.raises(OSError, match=r"chunk 1 of 5 .* cannot be read: .*No such file"):
        rowcol.solve(place, y)


def test_a_function_must_give_the_same_rows_each_time():
    X, y = uneven()
    calls = []

    def begin():
        calls.append(1)
        step = 700 if len(calls) == 1 else 600
        return (X[i : i + step] for i in range(0, len(X), step))

    with pytest.raises(ValueError, match=r"chunk 1 of 5 .* should be 700 x 20, but is"):
        rowcol.solve(rowcol.chunks(begin).X, y)
    with pytest.raises(TypeError, match="function that returns an iterator"):
        rowcol.chunks(lambda: 5)
    with pytest.raises(ValueError, match="gave no rows"):
        rowcol.chunks(lambda: iter(()))


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".csv"])
def test_tables_by_the_names_of_columns(tmp_path, suffix):
    import pandas as pd

    X, y = uneven(n=2_000, p=4)
    table = pd.DataFrame(X, columns=list("abcd")).assign(y=y, word="x")
    path = tmp_path / f"t{suffix}"
    if suffix == ".parquet":
        table.to_parquet(path, row_group_size=300)
    elif suffix == ".feather":
        table.to_feather(path)
    else:
        table.to_csv(path, index=False)
    place, target, names = rowcol.chunks(path, columns=["d", "a"], target="y", rows=500)
    assert names == ("d", "a")
    np.testing.assert_allclose(target, y)
    assert place.count >= 2
    np.testing.assert_allclose(rowcol.solve(place, target, tol=1e-9).x, lapack(X[:, [3, 0]], y), rtol=1e-6)
    with pytest.raises(TypeError, match=r"column 'word' is of .*, not of numbers"):
        rowcol.chunks(path, target="y")
    with pytest.raises(ValueError, match="has no column 'z'"):
        rowcol.chunks(path, columns=["a", "z"])


def test_methods_that_need_columns_say_so(tmp_path):
    X, y = uneven()
    place = saved(X, tmp_path, "npy")
    for method in ("rcd", "rek", "blocks", "subset"):
        with pytest.raises(TypeError, match="where rows of X lie elsewhere: say method='direct'"):
            rowcol.solve(place, y, method=method)
    with pytest.raises(TypeError, match="bounds need the columns"):
        rowcol.solve(place, y, bounds=(0, np.inf))


def test_the_plan_says_how_and_keeps_to_the_memory(tmp_path):
    X, y = uneven(p=200)
    place = saved(X, tmp_path, "npy")
    plan = rowcol.plan(place, y)
    assert plan.route == "direct"
    assert "in 5 parts of rows" in str(plan)
    assert rowcol.plan(place, y, memory=6e6).route == "cg"
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert "parts of rows" in str(rowcol.plan(mapped, y, memory=2e6))
    assert "parts of rows" not in str(rowcol.plan(mapped, y, memory="1 GB"))


WATCHED = """
import json, sys, threading
import numpy as np
import rowcol

def anonymous():
    return next(int(l.split()[1]) * 1024 for l in open("/proc/self/status") if l.startswith("RssAnon"))

X, y = rowcol.chunks(sys.argv[1]).X, np.load(sys.argv[2])

def options(n, alpha):
    more = {"fit_intercept": True, "sample_weight": np.linspace(1, 2, n)} if sys.argv[5] == "weighted" else {}
    return {"alpha": alpha, "method": sys.argv[3], "random_state": 0, **more}

rowcol.solve(rowcol.chunks(lambda: iter([np.eye(3), np.eye(3)])).X, np.arange(6.0), **options(6, 1.0))
asked = options(len(y), 1e7) | {"tol": 1e-3} if sys.argv[3] == "rk" else options(len(y), 1.0)
before, peak, done = anonymous(), [0], threading.Event()

def watch():
    while not done.wait(0.002):
        peak[0] = max(peak[0], anonymous())

threading.Thread(target=watch, daemon=True).start()
result = rowcol.solve(X, y, memory=float(sys.argv[4]), **asked)
done.set()
print(json.dumps([peak[0] - before, result.plan.bytes, result.success]))
"""


KEPT = [("direct", "plain"), ("direct", "weighted"), ("sketch", "weighted")]
SLOW = [("cg", "plain"), ("cg", "weighted"), ("sketch", "plain"), ("rk", "plain")]


@pytest.mark.parametrize(("method", "how"), [*KEPT, *(pytest.param(*one, marks=pytest.mark.slow) for one in SLOW)])
def test_a_file_of_eight_times_the_memory_is_solved_within_it(tmp_path, method, how):
    n, p, budget = (70_000, 600, 40e6) if method == "sketch" else (140_000, 300, 40e6)
    X = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.float64, (n, p))
    rng = np.random.default_rng(0)
    block = rng.standard_normal((10_000, p))
    for i in range(0, n, len(block)):
        X[i : i + len(block)] = np.roll(block, i, axis=1)
    np.save(tmp_path / "y.npy", X @ rng.standard_normal(p) + rng.standard_normal(n))
    X.flush()
    assert X.nbytes >= 8 * budget
    del X
    words = [sys.executable, "-c", WATCHED, str(tmp_path / "X.npy"), str(tmp_path / "y.npy"), method, str(budget), how]
    taken, foretold, success = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    assert success
    assert taken <= foretold <= budget


INTERRUPTED = """
import os, signal, threading, warnings
import numpy as np
import rowcol

rng = np.random.default_rng(0)
X = rng.standard_normal((3000, 300)) * np.geomspace(1, 1e-6, 300)
y = rng.standard_normal(3000)
begun = threading.Event()
once = []

def tell(progress):
    if not once:  # from now on it is in the middle
        once.append(1)
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()

with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    asked = {"method": "rcd", "tol": 1e-14, "random_state": 0, "max_seconds": 60, "max_passes": 10**8}
    result = rowcol.solve(X, y, callback=tell, **asked)
assert result.status is rowcol.Status.INTERRUPTED, result
assert result.seconds < 30
assert "Ctrl-C came before" in str(told[-1].message)
assert np.isclose(np.linalg.norm(y - X @ result.x), result.certificate.residual_norm)
assert result.x.any()
"""


def test_ctrl_c_once_gives_the_best_so_far_with_its_certificate():
    subprocess.run([sys.executable, "-c", INTERRUPTED], check=True, timeout=120)


@pytest.mark.parametrize("method", ["rk", "cg"])
def test_a_solve_of_chunks_goes_on_from_its_checkpoint(tmp_path, method):
    rng = np.random.default_rng(0)
    U, V = (np.linalg.qr(rng.standard_normal((n, 60)))[0] for n in (2_000, 60))
    X, y = (U * np.geomspace(1, 1e-3, 60)) @ V.T, rng.standard_normal(2_000)
    place = saved(X, tmp_path, "npy")
    options = {"alpha": 0.03, "method": method, "tol": 1e-7, "random_state": 0, "max_passes": 200}
    whole = rowcol.solve(place, y, **options)
    path = str(tmp_path / "solve.checkpoint")
    cut = rowcol.solve(place, y, **options, checkpoint=path, callback=lambda now: now.passes >= 3)
    assert cut.status is rowcol.Status.CALLBACK
    on = rowcol.resume(path, place, y)
    assert (on.x == whole.x).all()
    assert on.passes == whole.passes
    X[5, 5] += 1
    with pytest.raises(ValueError, match="X"):
        rowcol.resume(path, saved(X, tmp_path, "npy"), y)


@pytest.mark.parametrize("intercept", [False, True])
def test_a_wide_system_that_no_solution_fits_has_its_least_squares(intercept):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 200)), rng.standard_normal(30)
    X[15:] = X[:15]
    result = rowcol.solve(rowcol.chunks(X, rows=10).X, y, fit_intercept=intercept, tol=1e-8, random_state=0)
    assert result.success
    D, target = (X - X.mean(axis=0), y - y.mean()) if intercept else (X, y)
    np.testing.assert_allclose(result.x, np.linalg.pinv(D) @ target, atol=1e-6)


def test_arrays_that_begin_between_numbers_are_copied_and_no_others():
    room = np.zeros(8 * 12 + 1, np.uint8)
    off = room[1:].view(np.float64).reshape(3, 4)
    off[...] = np.arange(12.0).reshape(3, 4)
    assert not off.flags.aligned
    here = np.arange(3.0)
    sparse = sp.csr_array((off[0], np.arange(4), [0, 4]), shape=(1, 4))
    found = aligned((off, [here, None, 2.5], sparse, Shift(here, off, None, None), Shift))
    assert found[3].ones.flags.aligned
    assert found[3].mean is here
    assert found[4] is Shift
    assert found[0].flags.aligned
    assert (found[0] == off).all()
    assert found[1][0] is here
    assert found[1][1:] == [None, 2.5]
    assert found[2].data.flags.aligned
    assert (found[2].toarray() == off[:1]).all()
    place = rowcol.chunks(lambda: iter([off, off])).X
    assert all(part.flags.aligned for _, part in place.parts())
