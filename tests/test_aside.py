"""Questions that are no tasks: the same answers, and tasks where none came."""

import asyncio
import logging
import os
import pickle
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace

import dask.array as da
import numpy as np
import pytest
from distributed import Client, get_client
from distributed.worker import run as told_to_run

import rowcol
from rowcol.core.place import Late, until
from rowcol.places import carrying, crew, lowrank, team
from rowcol.places.aside import Named, _served, aside
from test_cluster import client, workers  # noqa: F401 - client is a fixture


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Workers that have just begun have rowcol to import first; in a solve they have answered tasks before."""
    monkeypatch.setattr("rowcol.places.aside.PATIENCE", 60.0)


def added(a, b):
    return sum(a), b, threading.current_thread().name


def lain(mine, worker, value):
    return mine.scatter([value], workers=[worker], hash=False)[0]


def test_what_lies_there_is_found_and_answers_come_in_order(client):  # noqa: F811
    there = list(client.nthreads())
    seats = [there[k] for k in (1, 0, 1, 1, 0)]
    asked = [(w, ([lain(client, w, np.arange(3) + k), k], (lain(client, w, k),))) for k, w in enumerate(seats)]
    found = aside(client, added, asked)
    for k, (total, (again,), thread) in enumerate(found):
        np.testing.assert_array_equal(total, np.arange(3) + 2 * k)
        assert again == k
        assert "Dask-Default-Threads" in thread  # as many as tasks have, and never the one that listens


def refusing(value):
    raise ValueError(f"not {value}")


def test_none_comes_where_any_answer_does_not(client):  # noqa: F811
    here, other = client.nthreads()
    fine = (here, ([1], 2))
    assert aside(client, added, [fine]) is not None
    assert aside(client, added, [fine, (other, ([Named("nowhere")], 2))]) is None
    assert aside(client, added, [(other, ([lain(client, here, 1)], 2))]) is None  # it lies with another
    assert aside(client, refusing, [(here, (1,))]) is None
    with pytest.raises(ValueError, match="not 1"):  # tasks say why
        list(crew.Crew(client).ask(refusing, 1, lambda k, again: (here, (1,))))


def test_time_that_is_up_is_told_at_once(client):  # noqa: F811
    (here, *_), began = client.nthreads(), time.perf_counter()
    with until(began + 0.3), pytest.raises(Late):
        aside(client, time.sleep, [(here, (5.0,))])
    assert time.perf_counter() - began < 3.0
    client.restart()  # who sleeps there is not to sleep into other tests


def dying_once(path, value):
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return value
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_dies_over_it_answers_nothing(tmp_path):
    path = str(tmp_path / "died")
    with workers(2) as cluster, Client(cluster) as mine:
        there = list(mine.nthreads())
        assert aside(mine, dying_once, [(there[k % 2], (path, k)) for k in range(4)]) is None
    assert os.path.exists(path)


def test_who_is_gone_is_not_waited_for(client, monkeypatch):  # noqa: F811
    monkeypatch.undo()
    here, *_ = client.nthreads()
    began = time.perf_counter()
    assert aside(client, added, [(here, ([1], 2)), ("tcp://127.0.0.1:9", ([1], 2))]) is None
    assert time.perf_counter() - began < 15.0  # where the scheduler would try for 30 seconds


def test_workers_log_it_once_and_other_functions_as_ever(caplog):
    server = SimpleNamespace(data={"x": 3}, executors={"default": ThreadPoolExecutor(1)})

    def told(f, *args):
        return asyncio.run(told_to_run(server, None, function=pickle.dumps(f), args=pickle.dumps(args)))

    log = logging.getLogger("distributed.worker")
    kept = list(log.filters)
    try:
        with caplog.at_level(logging.INFO, logger="distributed.worker"):
            for _ in range(4):
                assert told(_served, abs, [(Named("x"),), (-4,)])["status"] == "OK"
            for _ in range(3):
                assert told(_served, abs, [(Named("y"),)])["status"] == "error"
            assert [one for one in caplog.messages if "_served" in one] == caplog.messages[:1]
            assert told(abs, -3)["status"] == "OK"
            assert len(caplog.messages) == 2
    finally:
        log.filters[:] = kept


def test_a_fit_asks_for_little_aside_and_has_the_same_bits_by_tasks(client, monkeypatch):  # noqa: F811
    monkeypatch.setattr(lowrank, "PRICE", -1.0)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3_000, 3))
    y, D = np.sin(X).sum(axis=1) + 0.1 * rng.standard_normal(3_000), da.from_array(X, chunks=(500, -1))
    asked = {"kernel": "rbf", "alpha": 0.5, "method": "pcg", "tol": 1e-7, "random_state": 0}
    came, plain = [], aside

    def watched(*given):
        came.append((given[1].__name__, plain(*given)))
        return came[-1][1]

    found = {}
    for name, how, brief in (("aside", watched, 7e9), ("shown", watched, 0.0), ("tasks", lambda *_: None, 7e9)):
        monkeypatch.setattr(crew, "aside", how)
        monkeypatch.setattr(team, "BRIEF", brief)
        found[name] = rowcol.solve(D, y, **asked), list(came), rowcol.chunks(D).X
        came.clear()
    made, short, _ = found["aside"]
    assert made.success
    names = [name for name, answers in short if answers is not None]
    assert names.count("low_rank") > 2 * made.steps
    assert names.count("kernel_product") >= made.steps
    assert {name for name, _ in found["shown"][1]} == {"low_rank"}  # long products are tasks, which Dask shows
    for one in found.values():
        np.testing.assert_array_equal(one[0].x, made.x)


def test_steps_on_blocks_go_aside_while_they_are_short_and_one_that_is_lost_is_made_anew(client, monkeypatch):  # noqa: F811
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3_000, 3))
    y, D = np.sin(X).sum(axis=1) + 0.1 * rng.standard_normal(3_000), da.from_array(X, chunks=(500, -1))
    asked = {"kernel": "rbf", "alpha": 5.0, "method": "blocks", "tol": 1e-3, "random_state": 0}
    came, plain = [], aside

    def watched(*given, silent=()):
        came.append(given[1].__name__)
        return None if came.count("carried_on") in silent else plain(*given)

    found = {}
    for name, quick, silent in (("aside", 5e8, ()), ("tasks", 0.0, ()), ("lost", 5e8, (4,))):
        monkeypatch.setattr(crew, "aside", partial(watched, silent=silent))
        monkeypatch.setattr(carrying, "QUICK", quick)
        found[name] = rowcol.solve(D, y, **asked), came.count("carried_on")
        assert found[name][0].success
        came.clear()
    made, count = found["aside"]
    assert count >= made.steps - 3 > 10
    assert found["tasks"][1] == 0
    assert found["lost"][1] == 4  # and tasks from then on
    np.testing.assert_array_equal(found["tasks"][0].x, made.x)


def test_threads_of_a_worker_get_what_they_share_in_one_message(monkeypatch):
    came, plain = [], aside

    def watched(*given):
        came.append(plain(*given))
        return came[-1]

    monkeypatch.setattr(crew, "aside", watched)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4_000, 6))
    y = np.sin(X).sum(axis=1) + 0.1 * rng.standard_normal(4_000)
    asked = {"kernel": "rbf", "alpha": 0.5, "method": "pcg", "tol": 1e-7, "random_state": 0}
    with workers(1, 2) as cluster, Client(cluster):
        place = rowcol.chunks(da.from_array(X, chunks=(1_000, -1))).X
        made = rowcol.solve(place, y, **asked)
        answered = [len(one) for one in came if one is not None]
        assert set(answered) == {2}
        assert len(came) - len(answered) <= 2 < made.steps  # points may be on their way at first, in each precision
        products = 2 * (made.passes + 1)
        points, vectors = 12 * 4_000 * 7, 4 * 4_000 * products  # one worker: each is sent once, not once a thread
        assert place.sent < 1.2 * (points + vectors) + 100_000
    np.testing.assert_allclose(made.x, rowcol.solve(X, y, **asked).x, rtol=1e-4, atol=1e-5)


def test_what_came_aside_is_counted(client):  # noqa: F811
    asking, (here, *_) = crew.Crew(client), client.nthreads()
    sent = np.zeros(1_000)
    ((one,),) = asking.beside(lambda a: (a + 1,), [(here, (asking.send(sent, here),))])
    np.testing.assert_array_equal(one, sent + 1)
    assert (asking.sent, asking.received) == (8_000, 8_000)


@pytest.mark.slow
def test_a_worker_that_is_at_something_else_is_not_waited_for_and_a_task_may_solve(monkeypatch):
    """Within a task of the same cluster, too: whoever is asked may be who waits."""
    monkeypatch.undo()
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2_000, 3))
    y = np.sin(X).sum(axis=1)
    asked = {"kernel": "rbf", "alpha": 0.5, "method": "pcg", "tol": 1e-5, "random_state": 0}

    def within(X, y, asked):
        get_client()
        return rowcol.solve(da.from_array(X, chunks=(500, -1)), y, **asked).x

    with workers(2) as cluster, Client(cluster) as mine:
        known = rowcol.solve(X, y, **asked).x
        x = mine.submit(within, X, y, asked).result(timeout=60)
        np.testing.assert_allclose(x, known, atol=1e-3 * np.abs(known).max())
        first, _ = mine.nthreads()
        busy = mine.submit(time.sleep, 40, workers=[first], pure=False)
        began = time.perf_counter()
        x = rowcol.solve(da.from_array(X, chunks=(500, -1)), y, **asked).x
        np.testing.assert_allclose(x, known, atol=1e-3 * np.abs(known).max())
        assert time.perf_counter() - began < 30
        busy.cancel()
