"""No more threads than were asked for: counted from outside, by the time that each of them had on a core.

How busy the machine is changes none of it: a thread that was to run is counted whenever it does.
"""

import json
import os
import selectors
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import joblib
from threadpoolctl import threadpool_info

from rowcol.core.threads import count

LEAST = 0.12  # of the time that all threads had: less is what a thread needs to begin, to end, or to wait for work
LOAD = """
import json, os, sys, warnings
if sys.argv[1:]:
    os.sched_setaffinity(0, {int(core) for core in sys.argv[1:]})
import numpy as np
import rowcol
rng = np.random.default_rng(0)
X, wide, points = rng.standard_normal((20_000, 60)), rng.standard_normal((2_000, 700)), rng.standard_normal((6_000, 3))
Y = rng.standard_normal((20_000, 8))
loads = {
    "steps": lambda k: rowcol.solve(X, Y, alpha=1.0, method="rk", max_passes=1.5 * k, tol=1e-14),
    "blas": lambda k: [rowcol.solve(wide, Y[:2_000], alpha=1.0, method="direct") for _ in range(2 * k)],
    "kernel": lambda k: rowcol.solve(points, Y[:6_000, :k], kernel="rbf", alpha=1e-3, method="pcg", max_passes=40 * k),
}
options = {"memory": "2 GB", "random_state": 0}
warnings.simplefilter("ignore")
solve = rowcol.solve
rowcol.solve = lambda *args, **how: solve(*args, **how, **options)
for line in sys.stdin:
    name, n_jobs, size = json.loads(line)
    options["n_jobs"] = n_jobs
    loads[name](size)
    print(flush=True)
"""


def on_cores(process):
    """Nanoseconds that each thread of a process had so far."""
    found = {}
    for task in Path(f"/proc/{process}/task").iterdir():
        try:
            found[task.name] = int((task / "schedstat").read_text().split()[0])
        except OSError:  # it has just ended
            continue
    return found


def running(process):
    """How many threads of a process run now, or would if there were a core."""
    found = 0
    for task in Path(f"/proc/{process}/task").iterdir():
        try:
            found += (task / "stat").read_text().rsplit(")", 1)[1].split()[0] == "R"
        except OSError:
            continue
    return found


class Spent(NamedTuple):
    """What a load took."""

    threads: list[float]  # seconds that each had
    took: float  # seconds by the clock
    at_once: list[int]  # how many ran, look by look


class Watched:
    """A process that solves what it is told to, and whose threads are counted."""

    def __init__(self, *cores, **env):
        clean = {name: text for name, text in os.environ.items() if not name.endswith("NUM_THREADS")}
        command = [sys.executable, "-c", LOAD, *map(str, cores)]
        self.process = subprocess.Popen(
            command, env=clean | env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self.waiting = selectors.DefaultSelector()
        self.waiting.register(self.process.stdout, selectors.EVENT_READ)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()
        self.waiting.close()

    def spent(self, load, n_jobs, size):
        """What the threads had, and how many were at it, look by look."""
        self._tell(load, n_jobs, 1)  # compiled, read from disk, threads of BLAS begun
        self._seen()
        before, began = on_cores(self.process.pid), time.perf_counter()
        self._tell(load, n_jobs, size)
        most = self._seen()
        took = time.perf_counter() - began
        return Spent(sorted((most[task] - before.get(task, 0)) / 1e9 for task in most), took, self.at_once)

    def _tell(self, *what):
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()

    def _seen(self):
        """Until it is done: threads end before we could ask what they had, so we ask all the time."""
        most, self.at_once = {}, []
        while not self.waiting.select(0.004):
            most |= on_cores(self.process.pid)
            self.at_once.append(running(self.process.pid))
        assert self.process.stdout.readline() == "\n", "it died"
        return most | on_cores(self.process.pid)


def at_work(spent):
    """How many threads did more than to begin, to wait and to end."""
    return sum(seconds >= LEAST * sum(spent.threads) for seconds in spent.threads)


def held(spent, allowed):
    """No more than were allowed.

    Where one is, that is one. Of several, one hands out work and adds up while the others wait for it; and OpenBLAS
    lets its threads run for some milliseconds before they sleep, when those of SciPy's or ours may have begun: so for
    that time there are up to twice as many.
    """
    most, total = 2 * allowed - 1, sum(spent.threads)
    few = sum(at_once > most for at_once in spent.at_once) <= 0.1 * len(spent.at_once)
    alone = allowed > 1 or (at_work(spent) == 1 and max(spent.threads) >= (1 - LEAST) * total)
    return few and alone and total <= 1.05 * most * spent.took + 0.02


def test_three_at_work_are_not_one():
    assert held(Spent([0.02, 0.98, 1.0], 1.01, [2, 3, 2]), 2)
    assert held(Spent([0.01, 2.0], 2.1, [1, 1]), 1)
    assert not held(Spent([0.02, 0.98, 1.0], 1.01, [2, 3, 2]), 1)
    assert not held(Spent([1.0], 1.01, [1, 2, 1]), 1)
    assert not held(Spent([0.02, 0.98, 1.0], 1.01, [2, 4, 2]), 2)
    assert not held(Spent([1.0, 1.0], 1.0, [1, 1]), 1), "in this time one could not have done it"
    assert not held(Spent([*4 * [0.05], 0.8], 9.0, [1]), 1), "many that do little are too many, too"


def test_n_jobs_is_obeyed_and_used(amount, tally):
    """And who counts them sees two where there are two, those of BLAS among them."""
    with Watched() as child:
        for load in amount(["steps"], ["steps", "blas", "kernel"]):
            for n_jobs in amount([1, 2], [1, 2, None, 1]):
                allowed = count(n_jobs) if n_jobs else len(os.sched_getaffinity(0))
                spent = child.spent(load, n_jobs, amount(2, 3))
                assert held(spent, allowed), (load, n_jobs, spent)
                assert at_work(spent) >= min(allowed, 2), (load, n_jobs, spent)
                tally("bits", solves_whose_threads_were_counted=1)


ONE = [
    ("blas", {"ROWCOL_NUM_THREADS": "1"}),
    ("blas", {"NUMBA_NUM_THREADS": "1"}),
    ("blas", {"OMP_NUM_THREADS": "1"}),
    ("steps", {"OMP_NUM_THREADS": "1,4"}),
    ("steps", {"ROWCOL_NUM_THREADS": "1", "OMP_NUM_THREADS": "8"}),
    ("kernel", {"ROWCOL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "4", "MKL_NUM_THREADS": "4"}),
    ("kernel", {"OMP_NUM_THREADS": "1"}),
]


def test_the_environment_is_obeyed_by_blas_too(amount, tally):
    for load, env in amount(ONE[:1], ONE):
        with Watched(**env) as child:
            spent = child.spent(load, None, amount(2, 6))
        assert held(spent, 1), (load, env, spent)
        tally("bits", solves_whose_threads_were_counted=1)


def test_a_process_that_may_use_one_core_has_one_thread(amount, tally):
    for load in amount(["blas"], ["steps", "blas", "kernel"]):
        with Watched(min(os.sched_getaffinity(0))) as child:
            spent = child.spent(load, None, amount(2, 6))
        assert held(spent, 1), (load, spent)
        tally("bits", solves_whose_threads_were_counted=1)


def numbers():
    """Threads that a solve would take here: ours, and those of BLAS."""
    import scipy.linalg  # noqa: F401 - which has a BLAS of its own

    blas = [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]
    return [count(None), *blas]


def test_workers_of_joblib_share_the_cores():
    """Its processes say how many each may have, and are obeyed; its threads are the user's own, who says n_jobs=1."""
    workers, cores = 2, count(-1)
    with joblib.parallel_config(backend="loky", n_jobs=workers):
        found = joblib.Parallel()(joblib.delayed(numbers)() for _ in range(4))
    assert all(max(one) <= max(cores // workers, 1) for one in found), found
