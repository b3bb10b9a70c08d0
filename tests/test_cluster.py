"""X on a Dask cluster of worker processes: the answers are those of X in memory, whatever happens to the workers."""

import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from itertools import count

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from distributed import Client, LocalCluster
from sklearn.base import clone

import rowcol
from oracle import lapack, uneven
from rowcol.methods.joined import Joined
from rowcol.methods.progress import Bar
from rowcol.places import crew
from rowcol.places.chunks import Sliced
from rowcol.places.cluster import Spread


def workers(count, threads=1):
    """Processes; what Dask says when they are killed is not ours to judge."""
    how = {"threads_per_worker": threads, "processes": True, "dashboard_address": ":0", "silence_logs": 60}
    return LocalCluster(n_workers=count, **how)


@pytest.fixture(scope="module")
def client():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # sockets of processes that are gone
        with workers(2) as cluster, Client(cluster) as client:
            yield client


def test_without_a_client_dask_computes_part_after_part():
    X, y = uneven()
    with dask.config.set(scheduler="synchronous"):
        place = rowcol.chunks(da.from_array(X, chunks=(700, -1))).X
        assert type(place).__name__ == "Lazy"
        for method in ("direct", "cg"):
            np.testing.assert_allclose(rowcol.solve(place, y, method=method, tol=1e-9).x, lapack(X, y), rtol=1e-6)
        parts = [dask.delayed(np.asarray)(X[i : i + 800]) for i in range(0, 3_000, 800)]
        np.testing.assert_allclose(rowcol.solve(parts, y, tol=1e-9).x, lapack(X, y), rtol=1e-6)
        X[2_000, 5] = np.inf
        with pytest.raises(ValueError, match=r"chunk 3 of 5 .* NaN or infinity in its row 600, column 5"):
            rowcol.solve(da.from_array(X, chunks=(700, -1)), y)


def test_least_squares_and_ridge_are_those_of_lapack(client):
    X, y = uneven()
    place = rowcol.chunks(da.from_array(X, chunks=(700, -1))).X
    assert place.count == 5
    for method in ("auto", "direct", "cg"):
        for alpha in (0.0, 5.0):
            result = rowcol.solve(place, y, alpha=alpha, method=method, tol=1e-9)
            assert result.success
            np.testing.assert_allclose(result.x, lapack(X, y, alpha), rtol=1e-6, atol=1e-8)


def test_whatever_dask_collection_it_is(client):
    X, y = uneven()
    frame = dd.from_pandas(pd.DataFrame(X, columns=[f"c{j}" for j in range(20)]).assign(y=y), npartitions=4)
    frame = frame[frame["y"] > -1e9]  # so that lengths are not known
    parts = [dask.delayed(sp.csr_array)(X[i : i + 800]) for i in range(0, 3_000, 800)]
    truth = lapack(X, y)
    for source in (da.from_array(X, chunks=(700, -1)), frame[[f"c{j}" for j in range(20)]], parts):
        np.testing.assert_allclose(rowcol.solve(source, da.from_array(y, chunks=500), tol=1e-9).x, truth, rtol=1e-6)
    place, target, names = rowcol.chunks(frame, columns=["c3", "c0"], target="y")
    assert (names, place.shape) == (("c3", "c0"), (3_000, 2))
    np.testing.assert_array_equal(target, y)
    np.testing.assert_allclose(rowcol.solve(place, target, tol=1e-9).x, lapack(X[:, [3, 0]], y), rtol=1e-6)
    with pytest.warns(UserWarning, match=r"columns of X are in 2 chunks"):
        result = rowcol.solve(da.from_array(X, chunks=(700, 10)), y, tol=1e-9)
    np.testing.assert_allclose(result.x, truth, rtol=1e-6)


def test_estimators_with_weights_and_an_intercept_are_those_of_scikit_learn(client):
    from sklearn.linear_model import Ridge

    X, y = uneven()
    X[:, 3] = 7.0
    w = np.random.default_rng(1).uniform(0, 3, len(y))
    D = da.from_array(X, chunks=(700, -1))
    mine, theirs = rowcol.Ridge(2.0, tol=1e-10).fit(D, y, w), Ridge(2.0).fit(X, y, w)
    np.testing.assert_allclose(mine.coef_, theirs.coef_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(mine.intercept_, theirs.intercept_, rtol=1e-7)
    np.testing.assert_allclose(mine.predict(D), theirs.predict(X), rtol=1e-7)
    plain = rowcol.LeastSquares(tol=1e-10).fit(D, da.from_array(y, chunks=1_000))
    np.testing.assert_allclose(plain.predict(X), X @ plain.coef_ + plain.intercept_)
    assert abs((y - plain.predict(X)).mean()) < 1e-8


def test_tables_of_dask_are_those_of_pandas(client):
    rng = np.random.default_rng(0)
    here = pd.DataFrame(rng.standard_normal((200, 2)), columns=["a", "b"])
    here = here.assign(y=2 * here.a - here.b, w=rng.uniform(1, 2, 200), kind=np.where(here.a > 0, "up", "down"))
    there = dd.from_pandas(here, npartitions=3)
    near, far = here[["a", "b"]], there[["a", "b"]]
    regressions = [rowcol.Ridge(), rowcol.LeastSquares(), rowcol.KernelRidge(kernel="rbf"), rowcol.RidgeCV()]
    regressions.append(rowcol.KernelRidgeCV(kernel="rbf", random_state=0))
    for model in regressions:
        want = clone(model).fit(near, here["y"], here["w"])
        model.fit(far, there["y"], there["w"])
        np.testing.assert_allclose(model.predict(far), want.predict(near), rtol=1e-6, atol=1e-9)
        assert model.score(far, there["y"]) == pytest.approx(want.score(near, here["y"]))
    for model in (rowcol.RidgeClassifier(), rowcol.KernelRidgeClassifier(kernel="rbf", gamma=0.5)):
        want = clone(model).fit(near, here["kind"])
        assert (model.fit(far, there["kind"]).predict(far) == want.predict(near)).all()
        assert model.score(far, there["kind"]) == want.score(near, here["kind"])
    missing = dd.from_pandas(here.assign(y=here["y"].astype("Float64").mask(here.index == 7)), npartitions=3)["y"]
    for model in regressions:
        with pytest.raises(ValueError, match=r"^(Input )?y .*NaN"):
            model.fit(far, missing)
        with pytest.raises(ValueError, match="one column of a table"):
            model.fit(there["a"], there["y"])


def test_rows_on_all_workers_reach_the_shortest_solution_and_ridge(client):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 900)), rng.standard_normal(300)
    place = rowcol.chunks(da.from_array(X, chunks=(80, -1))).X
    for alpha in (0.0, 30.0):
        result = rowcol.solve(place, y, alpha=alpha, method="rk", tol=1e-8, random_state=0, max_passes=200)
        assert result.success
        np.testing.assert_allclose(result.x, lapack(X, y, alpha), atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_best_combination_of_moves_never_makes_it_worse(monkeypatch, weighted):
    """½‖Xᵀα‖² + ½αᵀΛα − yᵀα, written out; without it, the sum of moves of rows that are alike would run away."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 300)) + 0.5  # parts know the same directions
    y, w = rng.standard_normal(120), rng.uniform(0.5, 2, 120) if weighted else np.ones(120)
    seen, advance = [0.0], Joined.advance

    def watched(self, room, deadline):
        made = advance(self, room, deadline)
        a = np.asarray(self.answers()[1])[0] * self.problem.scale[0]
        seen.append(0.5 * ((X.T @ a) ** 2).sum() + 0.5 * 30.0 * (a**2 / w).sum() - y @ a)
        np.testing.assert_allclose(self.beta[0] * self.problem.scale[0], X.T @ a, atol=1e-9)
        return made

    monkeypatch.setattr(Joined, "advance", watched)
    monkeypatch.setattr(Sliced, "together", True)
    given = w if weighted else None
    place = Sliced(X, 20, "X")
    result = rowcol.solve(place, y, alpha=30.0, method="rk", tol=1e-6, random_state=0, sample_weight=given)
    assert result.success
    assert len(seen) > 3
    assert (np.diff(seen) <= 1e-12 * abs(seen[-1])).all()
    root = np.sqrt(w)
    np.testing.assert_allclose(result.x, lapack(root[:, None] * X, root * y, 30.0), atol=1e-5)


def test_a_worker_is_reminded_of_what_it_knows_and_says_when_it_does_not(monkeypatch):
    there = crew.Crew(None)
    long, short = np.arange(500.0), np.arange(3.0)
    first, again = there.note((long, short), "a"), there.note((long.copy(), short), "a")
    assert crew.weight(again) == short.nbytes
    assert crew.weight(there.note((long,), "b")) == long.nbytes
    assert crew.weight(there.note((long.astype(int),), "a")) == long.nbytes
    with pytest.raises(KeyError):
        crew.noted(again)
    assert (crew.noted(first)[0] == long).all()
    assert (crew.noted(again)[0] == long).all()
    monkeypatch.setattr(crew, "NOTES", 5_000)
    crew.noted(there.note((long + 1,), "a"))
    with pytest.raises(KeyError):
        crew.noted(again)


def test_bits_do_not_depend_on_how_many_workers_there_are(client):
    """Arrays come over the network at any byte, and BLAS takes no others than those that begin at a number."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 1_200)), rng.standard_normal(300)
    source, found = da.from_array(X, chunks=(100, -1)), []
    asked = {"alpha": 0.5, "method": "cg", "tol": 1e-7}
    for place in (rowcol.chunks(source).X, rowcol.chunks(source).X):
        found.append(rowcol.solve(place, y, **asked).x)
    with workers(1) as cluster, Client(cluster, set_as_default=False) as alone, alone.as_current():
        found.append(rowcol.solve(source, y, **asked).x)
    assert (found[0] == found[1]).all()
    assert (found[0] == found[2]).all()
    np.testing.assert_allclose(found[0], lapack(X, y, 0.5), atol=1e-7)


def test_only_short_vectors_and_one_gram_matrix_a_part_travel(client):
    n, p, parts = 8_000, 20, 4
    X, y = uneven(n, p)
    place = rowcol.chunks(da.from_array(X, chunks=(n // parts, -1))).X

    def travelled(**options):
        before = place.sent, place.received
        result = rowcol.solve(place, y, tol=1e-9, **options)
        assert "went to the workers" in str(result.plan)
        return result, place.sent - before[0], place.received - before[1]

    vector, column, slack = 8 * p, 8 * n, 4_000
    _, sent, received = travelled(method="direct")
    assert sent <= column + 4 * parts * vector + slack  # y once: the look finds it there
    assert received <= parts * (vector * (p + 6)) + column + slack  # Gram matrices, and the residual of the look
    result, sent, received = travelled(method="cg", fit_intercept=True)
    rounds = int(np.ceil(result.passes)) + 4
    assert sent <= 6 * column + 6 * rounds * parts * vector + slack  # y, weights and ones once, whatever the passes
    assert received <= 4 * column + 6 * rounds * parts * vector + slack
    again = travelled(method="cg", fit_intercept=True)
    assert again[1] < sent


def test_the_log_and_task_names_tell_what_is_done(client, caplog):
    X, y = uneven()
    place = rowcol.chunks(da.from_array(X, chunks=(700, -1))).X
    with caplog.at_level(logging.INFO, logger="rowcol"):
        rowcol.solve(place, y)
    assert "MB went to the workers" in caplog.text
    rowcol.solve(place, y, method="cg", sample_weight=y**2)  # rows are scaled first, which is not its name
    rowcol.solve(place, y, method="rk", alpha=1e5, tol=1e-2)
    names = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.task_prefixes))
    assert {"rowcol-part", "rowcol-triangle-of", "rowcol-normal-part", "rowcol-walked"} <= set(names)
    assert "rowcol-scaled-first" not in names


def test_progress_is_shown_while_workers_work(client, capsys):
    X, y = uneven()
    passes = []

    def slowly(now):
        passes.append(now.passes)
        time.sleep(0.15)

    place = rowcol.chunks(da.from_array(X, chunks=(700, -1))).X
    rowcol.solve(place, y, method="cg", tol=1e-9, progress=True, callback=slowly)
    assert len(passes) > 6
    assert (np.diff(passes) > 0).all()
    lines = re.findall(r"rowcol +([0-9.]+) passes( \+[0-9]+%)?  ", capsys.readouterr().err)
    shown = [float(one) for one, _ in lines]
    assert len(set(shown)) > 2
    assert (np.diff(shown) >= 0).all()  # the same more than once within a pass only
    assert set(shown) <= {0.0, *passes}
    after = [float(one) for one, more in lines if not more]
    assert (np.diff(after) > 0).all()


def test_the_bar_moves_within_the_one_pass_of_a_gram_matrix(client, capsys, monkeypatch):
    X, y = uneven(n=10_000, p=20)
    real, looks = Bar.__init__, count(0.0, 0.25)  # each look at its clock is a quarter of a second after the last
    monkeypatch.setattr(Bar, "__init__", lambda self, tol: real(self, tol, looks.__next__))
    place = rowcol.chunks(da.from_array(X, chunks=(700, -1))).X  # 15 parts
    found = rowcol.solve(place, y, method="direct", progress=True)
    shown = [int(one) for one in re.findall(r"rowcol +0.00 passes \+([0-9]+)%", capsys.readouterr().err)]
    assert found.success
    assert len(shown) > 9
    assert set(shown) <= {100 * k // 15 for k in range(15)}
    np.testing.assert_array_equal(rowcol.solve(place, y, method="direct", progress=False).x, found.x)
    assert capsys.readouterr().err == ""


def test_what_is_wrong_is_named_by_its_chunk(client):
    X, y = uneven(n=10_000, p=3)
    X[6_234, 1] = np.nan
    D = da.from_array(X, chunks=(700, -1))
    for options in ({}, {"fit_intercept": True}, {"method": "cg"}, {"alpha": 1.0, "method": "rk"}):
        with pytest.raises(ValueError, match=r"chunk 9 of 15 .* NaN or infinity in its row 634, column 1"):
            rowcol.solve(D, y, **options)

    def spoiled(block, block_info=None):
        if block_info[0]["chunk-location"][0] == 4:
            raise OSError("the disk is gone")
        return block

    bad = da.from_array(np.ones((3_000, 3)), chunks=(500, -1)).map_blocks(spoiled, dtype=float)
    with pytest.raises(OSError, match=r"chunk 5 of 6 \(rows 2,000 to 2,499\) cannot be read: the disk is gone"):
        rowcol.solve(bad, np.ones(3_000))
    short = da.from_array(np.ones((3_000, 3)), chunks=(500, -1)).map_blocks(lambda b: b[:-1], dtype=float)
    with pytest.raises(ValueError, match=r"chunk 1 of 6 .* should be 500 x 3"):
        rowcol.solve(short, np.ones(3_000))
    with pytest.raises(TypeError, match=r"column 'a' is of .*, not of numbers"):
        rowcol.chunks(dd.from_pandas(pd.DataFrame({"a": ["x", "y"]}), npartitions=1))


@pytest.mark.parametrize(("solver", "tol"), [("pcg", 1e-8), ("blocks", 1e-3)])
def test_kernel_products_that_workers_share_are_exact(client, solver, tol):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1_100, 3))
    y = np.sin(X).sum(axis=1) + 0.1 * rng.standard_normal(1_100)
    place = rowcol.chunks(da.from_array(X, chunks=(400, -1))).X
    mine = rowcol.KernelRidge(0.5, kernel="rbf", gamma=0.5, solver=solver, tol=tol, random_state=0).fit(place, y)
    assert mine.result_.success
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    left = y - K @ mine.dual_coef_ - 0.5 * mine.dual_coef_
    assert np.linalg.norm(left) <= 1.01 * tol * np.linalg.norm(y)
    tiles = 12 * (4 + 1) * 1_536  # three features padded to four, and an offset, in both precisions, in tiles of 512
    products = 2 * mine.result_.steps + 8
    assert place.sent <= 2 * (tiles + 8 * products * 1_100)
    assert place.received <= X.nbytes + 2 * 8 * products * 1_100
    assert "went to the workers" in str(mine.plan_)


class Killing:
    """A callback that kills a worker of ours in the middle, once; or adds one."""

    def __init__(self, client, cluster, more=0):
        self.client, self.cluster, self.more, self.rounds, self.done = client, cluster, more, 0, threading.Event()

    def __call__(self, progress):
        self.rounds += 1
        if self.rounds == 2:
            if self.more:
                self.cluster.scale(self.more)
                self.client.wait_for_workers(self.more, timeout=60)
            else:
                victim = sorted(self.client.run(os.getpid).items())[0][1]
                os.kill(victim, signal.SIGKILL)
            self.done.set()


@pytest.mark.parametrize(
    "job", ["cg", pytest.param("rk", marks=pytest.mark.slow), pytest.param("kernel", marks=pytest.mark.slow)]
)
def test_a_worker_killed_in_the_middle_changes_nothing(job):
    rng = np.random.default_rng(0)
    n, p = (300, 900) if job == "rk" else (1_500, 3) if job == "kernel" else (3_000, 20)
    X, y = rng.standard_normal((n, p)), rng.standard_normal(n)
    with workers(2) as cluster, Client(cluster) as client:
        D = da.from_array(X, chunks=(n // 6, -1))
        killing = Killing(client, cluster)
        if job == "kernel":
            made = rowcol.solve(D, y, kernel="rbf", alpha=0.5, method="pcg", tol=1e-8, callback=killing)
            K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / p)
            np.testing.assert_allclose(made.x, np.linalg.solve(K + 0.5 * np.eye(n), y), atol=1e-6)
        else:
            made = rowcol.solve(D, y, alpha=2.0, method=job, tol=1e-9, callback=killing, max_passes=500)
            np.testing.assert_allclose(made.x, lapack(X, y, 2.0), atol=1e-6)
        assert killing.done.is_set()
        assert made.success


def test_a_worker_killed_while_gram_matrices_are_summed_changes_no_bit(monkeypatch):
    X, y = uneven(n=6_000, p=200)
    killed, asked = [], Spread.map
    with workers(2) as cluster, Client(cluster) as client:
        place = rowcol.chunks(da.from_array(X, chunks=(1_000, -1))).X

        def watched(self, f, *rest, **more):
            for k, one in enumerate(asked(self, f, *rest, **more)):
                if f.__name__ == "_sums" and k == 1 and not killed:
                    killed.append(place.owners[4])
                    os.kill(client.run(os.getpid, workers=killed)[killed[0]], signal.SIGKILL)
                yield one

        monkeypatch.setattr(Spread, "map", watched)
        made, again = (rowcol.solve(place, y, alpha=2.0, method="direct", tol=1e-7) for _ in range(2))
    assert killed
    assert killed[0] not in place.owners
    assert made.success
    np.testing.assert_allclose(made.x, lapack(X, y, 2.0), rtol=1e-6, atol=1e-8)
    assert (made.x == again.x).all()


def test_a_worker_that_dies_over_a_question_is_asked_no_more(tmp_path):
    X, _ = uneven()
    died, v = str(tmp_path / "died"), np.arange(20.0)

    def dying(part, pool, v):  # in the midst of a task, the first time
        try:
            os.close(os.open(died, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return part @ v
        os.kill(os.getpid(), signal.SIGKILL)

    with workers(2) as cluster, Client(cluster):
        place = rowcol.chunks(da.from_array(X, chunks=(500, -1))).X
        found = np.concatenate(list(place.map(dying, (v,))))
    assert os.path.exists(died)
    np.testing.assert_allclose(found, X @ v)


@pytest.mark.slow
@pytest.mark.parametrize("moment", [0.05, 0.15, 0.3, 0.5, 0.8, 1.2])
def test_a_worker_killed_at_any_moment_changes_nothing(moment):
    D = da.random.default_rng(0).standard_normal((200_000, 60), chunks=(12_500, -1)) * np.geomspace(1, 30, 60)
    X, y = D.compute(scheduler="synchronous"), np.random.default_rng(1).standard_normal(200_000)
    with workers(2) as cluster, Client(cluster) as client:
        place = rowcol.chunks(D).X
        rowcol.solve(place, y, alpha=1.0, method="cg", callback=lambda now: True)  # so that it is there
        victim = sorted(client.run(os.getpid).items())[0][1]
        killing = threading.Timer(moment, os.kill, (victim, signal.SIGKILL))
        killing.start()
        made = rowcol.solve(place, y, alpha=1.0, method="cg", tol=1e-8)
        killing.join()
        again = rowcol.solve(place, y, alpha=1.0, method="direct", tol=1e-8)
    for one in (made, again):
        assert one.success
        assert np.linalg.norm(one.x - lapack(X, y, 1.0)) <= 1e-6 * np.linalg.norm(one.x)


def test_workers_that_come_while_it_runs_are_used():
    X, y = uneven(p=10)
    with workers(1) as cluster, Client(cluster) as client:
        place = rowcol.chunks(da.from_array(X, chunks=(500, -1))).X
        alone = rowcol.solve(place, y, method="cg", tol=1e-10)
        assert len(set(place.owners)) == 1
        coming = Killing(client, cluster, more=2)
        made = rowcol.solve(place, y, method="cg", tol=1e-10, callback=coming)
        assert coming.done.is_set()
        assert len(set(place.owners)) == 2
        assert all(client.run(lambda dask_worker: bool(dask_worker.data)).values())  # both have rows
    np.testing.assert_allclose(made.x, lapack(X, y), rtol=1e-6, atol=1e-8)
    assert (made.x == alone.x).all()


def slow_walks(begun):
    """On a worker: every part that is walked takes half a second from now on, and is written down."""
    from rowcol.methods import joined

    quick = joined.walk

    def slowly(*given):
        with open(begun, "a") as file:
            file.write("x")
        time.sleep(0.5)
        return quick(*given)

    joined.walk = slowly


def cut_short(begun, interrupt):
    """A third pass of ten seconds and more, in one task a worker, is left: what is there is that of the second."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((2_000, 20)) + 1.0, rng.standard_normal(2_000)
    asked = {"method": "rk", "alpha": 50.0, "tol": 1e-14, "random_state": 0}
    with workers(2) as there, Client(there) as client, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        place = rowcol.chunks(da.from_array(X, chunks=(50, -1))).X
        whole = rowcol.solve(place, y, callback=lambda now: now.passes == 2, **asked)

        def watched(now):
            if now.passes == 2:
                client.run(slow_walks, begun)
                if interrupt:
                    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()

        made = rowcol.solve(place, y, callback=watched, max_seconds=None if interrupt else 4.0, **asked)
    assert made.status is (rowcol.Status.INTERRUPTED if interrupt else rowcol.Status.SECONDS)
    assert made.passes == 2
    assert (made.x == whole.x).all()
    assert (made.dual == whole.dual).all()
    left = np.linalg.norm(y - X @ made.x - 50.0 * made.dual) / np.linalg.norm(y)
    np.testing.assert_allclose(made.x, X.T @ made.dual, rtol=1e-9)
    assert made.certificate.value <= 1.001 * left + made.certificate.rounding
    assert 0 < os.path.getsize(begun) < 36  # of 40 parts


def test_max_seconds_leaves_a_pass_that_workers_are_at(tmp_path):
    cut_short(str(tmp_path / "begun"), interrupt=False)


def test_ctrl_c_leaves_a_pass_that_workers_are_at(tmp_path):
    code = """
import sys
sys.path.insert(0, sys.argv[1])
from test_cluster import cut_short

if __name__ == "__main__":
    cut_short(sys.argv[2], interrupt=True)
"""
    script = tmp_path / "interrupted.py"
    script.write_text(code)
    here = str(__file__).rpartition("/")[0]
    subprocess.run([sys.executable, str(script), here, str(tmp_path / "begun")], check=True, timeout=120)


def test_parts_of_y_may_be_delayed_and_x_a_single_one(client):
    X, y = uneven(n=2_100, p=4)
    want = lapack(X, y)
    parts = [dask.delayed(lambda i=i: X[i : i + 700])() for i in (0, 700, 1_400)]
    ys = [dask.delayed(lambda i=i: y[i : i + 700])() for i in (0, 700, 1_400)]
    for x, right in ((parts, ys), (dask.delayed(lambda: X)(), dask.delayed(lambda: y)()), (X, ys)):
        np.testing.assert_allclose(rowcol.solve(x, right, tol=1e-9).x, want, rtol=1e-6)
        np.testing.assert_allclose(rowcol.LeastSquares(fit_intercept=False).fit(x, right).coef_, want, rtol=1e-4)
    with pytest.raises(ValueError, match=r"y cannot be computed: .*gone"):
        rowcol.solve(X, dask.delayed(_gone)())


def _gone():
    raise OSError("gone")


def test_the_part_that_differs_from_the_first_is_named(client):
    rows = [dask.delayed(lambda w=w: np.ones((10, w)))() for w in (3, 3, 4)]
    with pytest.raises(ValueError, match=r"chunk 3 of 3 \(rows 20 to 29\) should be 10 x 3, but is \(10, 4\)"):
        rowcol.solve(rows, np.ones(30))
    for made, told in ((np.ones(10), r"an array of shape \(10,\)"), (None, "a NoneType")):
        with pytest.raises(ValueError, match=f"chunk 2 of 2 should be rows of numbers, and is {told}"):
            rowcol.solve([rows[0], dask.delayed(lambda made=made: made)()], np.ones(20))


def test_columns_in_another_order_than_fitted_are_refused(client):
    X, y = uneven(n=2_000, p=3)
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    there = dd.from_pandas(table, npartitions=3)
    model = rowcol.Ridge().fit(there, y)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    np.testing.assert_allclose(model.predict(there), rowcol.Ridge().fit(table, y).predict(table), rtol=1e-6)
    np.testing.assert_allclose(model.predict(there), model.predict(table))
    with pytest.raises(ValueError, match=r"X has column 'b' where 'a' was fitted"):
        model.predict(there[["b", "a", "c"]])
    assert not hasattr(model.fit(da.from_array(X, chunks=(700, -1)), y), "feature_names_in_")


@pytest.mark.parametrize(
    "model", [rowcol.RidgeCV(), rowcol.KernelRidge(gamma=0.1), rowcol.RidgeClassifier(), rowcol.KernelRidgeClassifier()]
)
def test_no_model_takes_columns_in_another_order_than_fitted(client, model):
    X, y = uneven(n=400, p=3)
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    there, y = dd.from_pandas(table, npartitions=3), np.sign(y) if "Classifier" in type(model).__name__ else y
    model = clone(model).fit(there, y)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    np.testing.assert_allclose(model.predict(there), clone(model).fit(table, y).predict(table), rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match=r"X has column 'b' where 'a' was fitted"):
        model.predict(there[["b", "a", "c"]])


def test_a_fit_brings_no_dual_here_that_nobody_asked_for(client):
    X, y = uneven(n=20_000, p=4)
    place = rowcol.chunks(da.from_array(X, chunks=(5_000, -1))).X
    model = rowcol.Ridge(alpha=2.0).fit(place, y)
    assert place.received < 8 * len(y)
    assert model.dual_coef_ is None
    left = y - model.predict(X)
    np.testing.assert_allclose(model.result_.dual, left / 2.0, rtol=1e-6, atol=1e-6)
    assert place.received > 8 * len(y)
