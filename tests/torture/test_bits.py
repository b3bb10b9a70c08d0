"""The same seed, the same bits: again, watched, in other processes and threads, after forks, and beside anything else.

The truth is the same job alone, on one thread, in this process; compared is all that a Result tells, but for times.
"""

import hashlib
import io
import json
import logging
import multiprocessing
import os
import random
import select
import signal
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache

import joblib
import jobs
import numpy as np
import pytest
from threadpoolctl import threadpool_info

import rowcol
from rowcol.methods.progress import Bar

pytestmark = [
    pytest.mark.filterwarnings("ignore::rowcol.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),  # of later Pythons, for any fork beside threads
]
QUICK = [name for name in jobs.NAMES if name not in jobs.SLOW]
STEPS = ("rk", "rcd", "rek", "sgs-cg")  # whose bits are the same on any number of threads
BY_STEPS = [
    f"solve: {name}" for name, (*_, how) in jobs.SOLVES.items() if how.get("method") in STEPS and "kernel" not in how
]


@cache
def alone(name, threads=1):
    return jobs.run(name, threads)


def different(found, threads=1):
    """Which jobs, and what of them, are not as they are alone."""
    return {name: parts for name, one in found if (parts := jobs.differing(alone(name, threads), one))}


def blas():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def inputs():
    """All that is shared, as one digest."""
    seen = hashlib.sha256()
    for X, y, _ in (*jobs.SOLVES.values(), *jobs.MODELS.values()):
        for a in (getattr(X, "data", X) if not isinstance(X, np.ndarray) else X, y):
            seen.update(np.ascontiguousarray(a).tobytes())
    return seen.hexdigest()


# --- can it fail? ----------------------------------------------------------------------------------------------------


def test_a_bit_that_is_not_the_same_is_found():
    X, y, how = jobs.SOLVES["rk"]
    one = jobs.digests(jobs.told(rowcol.solve(X, y, random_state=3, **how)))
    nudged = y.copy()
    nudged[0, 0] = np.nextafter(y[0, 0], 9)
    assert "/x" in jobs.differing(one, jobs.digests(jobs.told(rowcol.solve(X, nudged, random_state=3, **how))))
    assert "/x" in jobs.differing(one, jobs.digests(jobs.told(rowcol.solve(X, y, random_state=4, **how))))
    assert jobs.differing({"a": "1"}, {"b": "1"}) == ["/a", "/b"]


# --- again, and watched ----------------------------------------------------------------------------------------------


@contextmanager
def overheard():
    """All that rowcol logs, told to somebody who does not listen."""
    logger, handler = logging.getLogger("rowcol"), logging.StreamHandler(io.StringIO())
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield
    logger.setLevel(logging.NOTSET)
    logger.removeHandler(handler)


def test_again_and_whatever_watches(full, tally, capsys, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda number: None)
    show = Bar.show  # a bar is shown from the second second on: for it, these are long solves
    monkeypatch.setattr(Bar, "show", lambda self, passes, seconds, *rest: show(self, passes, 1 + 1e6 * seconds, *rest))
    names, compared = jobs.NAMES if full else QUICK[::2], 0
    for name in names:
        found = [jobs.run(name)]
        if name.startswith("solve"):
            with overheard():
                found += [jobs.run(name, callback=lambda now: None, progress=True)]
            if full:
                found += [jobs.run(name, callback=lambda now: None), jobs.run(name, progress=True)]
            if jobs.SOLVES[name.removeprefix("solve: ")][2].get("method") not in ("direct", "subset"):
                found += [jobs.run(name, checkpoint=True)]
        assert different((name, one) for one in found) == {}
        compared += len(found)
    assert "passes" in capsys.readouterr().err  # bars were shown
    tally("bits", runs_compared=compared)


@pytest.mark.parametrize("threads", [2, 3, 5])
def test_steps_and_sweeps_on_any_number_of_threads(threads, tally):
    assert different((name, jobs.run(name, threads)) for name in BY_STEPS) == {}
    tally("bits", runs_compared=len(BY_STEPS))


def test_the_same_number_of_threads_the_same_bits(full, tally):
    names = jobs.NAMES if full else [name for name in QUICK if "large" in name and "kernel" not in name]
    for name in names:
        assert jobs.differing(jobs.run(name, 2), jobs.run(name, 2)) == [], name
    tally("bits", runs_compared=len(names))


# --- other processes -------------------------------------------------------------------------------------------------


def elsewhere(names, folder, threads=1, **env):
    """The jobs in a process of its own."""
    out = folder / "found.json"
    command = [sys.executable, jobs.__file__, str(out), str(threads), *names]
    subprocess.run(command, env=os.environ | env, cwd=folder, check=True, timeout=300)
    return json.loads(out.read_text()).items()


def test_processes_of_their_own(amount, tally, tmp_path):
    names = amount(QUICK[::6], jobs.NAMES)
    # memory that malloc hands out is not zero: who reads what was never written is found
    dirty = {"PYTHONHASHSEED": "1", "MALLOC_PERTURB_": "165"}
    for env in amount([dirty], [dirty, {"PYTHONHASHSEED": "0"}, {"PYTHONHASHSEED": "random"}]):
        assert different(elsewhere(names, tmp_path, **env)) == {}
        tally("bits", runs_compared=len(names), processes=1)


def test_workers_of_multiprocessing_and_joblib(amount, tally):
    names, before = amount(QUICK[::12], QUICK), blas()
    jobs.run("solve: large rek", 2)  # threads were used here before
    for way in amount(["fork", "loky", "threading"], ["fork", "spawn", "loky", "threading"]):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rowcol.ConvergenceWarning)  # joblib's threads begin with the filters of now
            if way in ("loky", "threading"):
                with joblib.parallel_config(backend=way, n_jobs=2):
                    found = joblib.Parallel()(joblib.delayed(quietly)(name) for name in names)
            else:
                with multiprocessing.get_context(way).Pool(2) as pool:
                    found = pool.map(quietly, names, chunksize=4)
        assert different(zip(names, found, strict=True)) == {}, way
        assert blas() == before
        tally("bits", runs_compared=len(names), processes=0 if way == "threading" else 2)


def quietly(name):
    """A job; processes of joblib's and spawned ones have no filters yet."""
    warnings.simplefilter("ignore", rowcol.ConvergenceWarning)
    return jobs.run(name)


# --- at once ---------------------------------------------------------------------------------------------------------


def test_eight_threads_at_once(amount, tally):
    """Jobs of every kind, mixed, with threads that take turns as often as they can; some have threads of their own."""
    rounds, each = amount(1, 200), (1, 2, None)
    asked = [(name, threads) for name in QUICK for threads in each]
    for one in asked:
        alone(*one)
    before, shared, pause, turns = blas(), inputs(), sys.getswitchinterval(), random.Random(0)
    try:
        sys.setswitchinterval(1e-6)
        with ThreadPoolExecutor(8) as pool:
            for _ in range(rounds):
                todo = turns.sample(asked, len(asked) // 3)
                found = list(pool.map(lambda one: jobs.run(*one), todo))
                for threads in each:
                    held = ((name, got) for (name, n), got in zip(todo, found, strict=True) if n == threads)
                    assert different(held, threads) == {}, threads
                assert blas() == before
                tally("bits", runs_at_once=len(todo), rounds_of_eight_threads=1)
    finally:
        sys.setswitchinterval(pause)
    assert inputs() == shared


def in_a_child(names, seconds=60):
    """Jobs in a forked child; None where it does not end."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, json.dumps([jobs.run(name, 2) for name in names]).encode())
        finally:
            os._exit(0)
    os.close(write)
    raw = b""
    try:
        while select.select([read], [], [], seconds)[0]:
            part = os.read(read, 1 << 16)
            if not part:
                return json.loads(raw)
            raw += part
        os.kill(child, signal.SIGKILL)
        return None
    finally:
        os.close(read)
        os.waitpid(child, 0)


def test_forks_while_threads_are_at_it(amount, tally):
    """A child has one thread, and whatever the others held stays held: nothing of ours may be."""
    forks, names = amount(6, 200), ["solve: rk", "solve: large rcd", "solve: large rek", "solve: sgs-cg, columns"]
    done = threading.Event()

    def busy(n):
        while not done.is_set():
            jobs.run("solve: large direct", 1 + n % 2)
            jobs.run(names[n % 4], 2)

    for name in names:
        alone(name)
    pause = sys.getswitchinterval()
    with ThreadPoolExecutor(4) as pool:
        others = [pool.submit(busy, n) for n in range(4)]
        try:
            sys.setswitchinterval(1e-5)
            for _ in range(forks):
                found = in_a_child(names)
                assert found is not None, "a child waits for what nobody will give back"
                assert different(zip(names, found, strict=True)) == {}
        finally:
            done.set()
            sys.setswitchinterval(pause)
    for one in others:
        one.result()
    tally("bits", forks=forks, runs_compared=forks * len(names))
