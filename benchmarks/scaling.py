"""What a cluster takes: measured on one worker and on two, and foretold for up to 1,000.

    python benchmarks/scaling.py [--rows 2000000] [--columns 100] [--points 120000] [--repeats 3]

Workers are processes of one thread each on this machine. What the model knows is measured on one of them: how long it
takes for the work of a round, how long a question takes that asks nothing, alone and among others, and how fast bytes
travel. Then it is held against two workers, and against the bytes that were counted.

The driver has as many threads as Dask leaves it, which is one: a process that starts workers has OMP_NUM_THREADS=1 from
then on, and the model is of such a driver. With --jobs -1 it has all cores, which it shares with the workers here.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import time
from functools import partial
from typing import NamedTuple

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

import rowcol
from rowcol.core.place import Place
from rowcol.methods.kernel_routes import PER_CUBE_ROOT
from rowcol.places.lowrank import PACE, PRICE
from rowcol.places.team import BRIEF


class Machine(NamedTuple):
    """What was measured."""

    question: float  # seconds that a question and its answer take, by the scheduler and the driver, one after the other
    byte: float  # seconds a byte travels, through the driver's one connection
    round: float  # seconds besides, from the first question of a round to the last answer
    aside: float  # seconds a question takes that is no task, one after the other
    beside: float  # seconds besides, of a round of these


class Job(NamedTuple):
    """What a job asks of a cluster of so many workers, one question each a round, and so many parts."""

    name: str
    work: float  # seconds of one worker, for all of it
    rounds: float
    sent: float  # bytes a round to every worker
    back: float  # bytes a round from every part
    all_back: float  # bytes that come back in all, however many workers and parts
    each: float = 0.0  # bytes to every worker, once
    asides: float = 0.0  # of the rounds, those that are no tasks


def travelled(job: Job, workers: int, parts: int) -> tuple[float, float]:
    """Bytes to the workers and back."""
    return (job.rounds * job.sent + job.each) * workers, job.rounds * job.back * parts + job.all_back


def seconds(job: Job, machine: Machine, workers: int, parts: int) -> float:
    """Work that is shared, rounds, questions one after the other, and bytes through one connection."""
    asked = (job.rounds - job.asides) * (machine.round + workers * machine.question)
    asked += job.asides * (machine.beside + workers * machine.aside)
    return job.work / workers + asked + sum(travelled(job, workers, parts)) * machine.byte


def linear_cg(p: int, steps: float, work: float, looks: int = 1) -> Job:
    """Conjugate gradients: p numbers to every worker and from every part a step, and a look.

    The first look is for the lengths of columns. y went there once, in an earlier solve: workers remember it.
    """
    return Job("least squares, cg", work, steps + looks + 1, 8.0 * p, 8.0 * p, 0.0)


def linear_gram(p: int, work: float) -> Job:
    """A Gram matrix of every part, and one of a few rows before; and a look."""
    return Job("least squares, direct", work, 2, 4.0 * p, 4.0 * p * p + 8.0 * p, 8.0 * p * p)


def kernel_pcg(n: int, d: int, products: float, steps: float, rank: int, workers: int) -> Job:
    """All points to every worker in both precisions, then n numbers there and back a product.

    One worker has the driver make the preconditioner, which takes as long; more of them share it, if that saves more
    than it costs. Then every block of pivots and every step have two rounds more, of which only one a block is a task.
    """
    points, name = 12.0 * n * (d + d % 2 + 1), "kernel ridge, pcg"
    brief = products * (n * n / 2 / workers * (d + 8) < BRIEF)
    if 2.0 * n * rank**2 / PACE * (1 - 1 / workers) <= PRICE:
        return Job(name, 0.0, products, 4.0 * n, 8.0 * n, 8.0 * n * d, points, brief)
    blocks = rank / 220  # that are kept of 320 drawn
    rounds = products + 2 * steps + 2 * blocks
    there = 4.0 * n * products + 4.0 * rank * steps + 2.0 * rank**2 + 4.0 * 220 * rank  # to every worker
    back = 8.0 * n * products + 8.0 * rank * steps + 4.0 * rank**2  # from every worker
    once = 8.0 * n * d + 4.0 * n * (steps + blocks) + 2.0 * (320 / 220) * rank**2
    asides = brief + 2 * steps + blocks
    return Job(name, 0.0, rounds, (there + 4.0 * n * steps / workers) / rounds, back / rounds, once, points, asides)


def nothing(part: object, pool: object, v: np.ndarray) -> np.ndarray:
    """A question that takes no work."""
    return v[:1]


async def answered() -> None:
    """The same, which is no task."""


def least(f, repeats: int) -> float:
    took = []
    for _ in range(repeats):
        began = time.perf_counter()
        f()
        took.append(time.perf_counter() - began)
    return min(took)


def probe(place: Place) -> Machine:
    """Seconds a question, and seconds a byte, on one worker of one thread."""
    lengths, long = iter(range(1, 11)), np.zeros(10_000_000)
    # of vectors that are as long as none before, every part is asked by itself: questions in a row, not one
    question = least(lambda: list(place.map(nothing, (np.zeros(next(lengths)),))), 10) / place.count
    both = least(lambda: list(place.map(nothing, (long,))), 5)
    alone = np.median([least(lambda: list(place.map(nothing, (np.zeros(1),))), 1) for _ in range(20)])
    client = place.crew.client
    (worker,) = client.nthreads()

    async def asides(many: int) -> None:
        await asyncio.gather(*(client.run(answered, workers=[worker]) for _ in range(many)))

    one, many = (np.median([least(partial(client.sync, asides, k), 1) for _ in range(20)]).item() for k in (1, 11))
    aside = max(many - one, 0.0) / 10
    byte, rounds = max(both - alone, 1e-6) / long.nbytes, max(float(alone) - question, 0.0)
    return Machine(question, byte, rounds, aside, max(one - aside, 0.0))


WORKERS = (1, 10, 100, 1_000)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--rows", type=int, default=2_000_000)
    asked.add_argument("--columns", type=int, default=100)
    asked.add_argument("--points", type=int, default=120_000)
    asked.add_argument("--features", type=int, default=8)
    asked.add_argument("--parts", type=int, default=16)
    asked.add_argument("--repeats", type=int, default=3, help="by turns; the least counts")
    asked.add_argument("--jobs", type=int, default=None, help="threads of the driver")
    asked.add_argument("--only", default="cg,direct,kernel", help="which jobs, with commas between")
    asked = asked.parse_args()
    crews, runs = problems(asked)
    machine = probe(crews[1][2])
    print(
        f"a question {1e3 * machine.question:.2f} ms, a round {1e3 * machine.round:.2f} ms besides, "
        f"{1e-9 / machine.byte:.2f} GB/s through the driver; a question that is no task {1e3 * machine.aside:.2f} ms, "
        f"a round of these {1e3 * machine.beside:.2f} ms besides",
        flush=True,
    )
    took = measured(crews, runs, asked.repeats)

    def job_of(name: str, workers: int) -> Job:
        """A job without its work."""
        result = took[name, 1][3]
        if name == "cg":
            return linear_cg(asked.columns, result.passes, 0.0, len(result.history.certificate))
        if name == "direct":
            return linear_gram(asked.columns, 0.0)
        rank = int(PER_CUBE_ROOT * asked.points ** (1 / 3))
        return kernel_pcg(
            asked.points, asked.features, 2 * (result.passes - rank / asked.points), result.steps, rank, workers
        )

    def jobs(name: str, workers: int) -> Job:
        """A job, with as much work as one worker had."""
        alone = seconds(job_of(name, 1), machine, 1, parts_of(name, 1, asked.parts))
        return job_of(name, workers)._replace(work=max(took[name, 1][0] - alone, 0.0))

    table(["job", "workers", "measured s", "foretold s", "MB to workers", "foretold", "MB back", "foretold"])
    for (name, count), (spent, sent, back, _) in sorted(took.items()):
        job, parts = jobs(name, count), parts_of(name, count, asked.parts)
        foretold = [one / 1e6 for one in travelled(job, count, parts)]
        numbers = [spent, seconds(job, machine, count, parts), sent / 1e6, foretold[0], back / 1e6, foretold[1]]
        print(f"| {job.name} | {count} | " + " | ".join(f"{one:.2f}" for one in numbers) + " |")
    print()
    table(["the same job, a part a worker", *(f"{w:,} worker{'s' * (w > 1)}" for w in WORKERS)])
    for name in runs:
        cells = [f"{seconds(jobs(name, w), machine, w, w):.2f} s" for w in WORKERS]
        print(f"| {jobs(name, 1).name} | " + " | ".join(cells) + " |")
    print()
    table(["as many rows again for every worker", *(f"{w:,} worker{'s' * (w > 1)}" for w in WORKERS)])
    for name in [name for name in ("cg", "direct") if name in runs]:
        job = jobs(name, 1)
        grown = [job._replace(work=job.work * w) for w in WORKERS]
        cells = [f"{seconds(one, machine, w, w):.2f} s" for one, w in zip(grown, WORKERS, strict=True)]
        print(f"| {job.name} | " + " | ".join(cells) + " |")
    for one, client, _, _ in crews.values():
        client.close()
        one.close()


def problems(asked: argparse.Namespace) -> tuple[dict, dict]:
    """Clusters of one worker and of two with the same data, and what is to be solved there."""
    n, p, m, d = asked.rows, asked.columns, asked.points, asked.features
    rng = np.random.default_rng(0)
    X = da.random.default_rng(0).standard_normal((n, p), chunks=(-(-n // asked.parts), -1))
    y, Z = rng.standard_normal(n), rng.standard_normal((m, d))
    t = np.sin(2 * Z[:, 0]) + Z[:, 1] * Z[:, 2] + 0.1 * rng.standard_normal(m)
    crews = {}
    for count in (1, 2):
        one = LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=":0", silence_logs=60)
        client = Client(one)
        crews[count] = one, client, rowcol.chunks(X).X, rowcol.chunks(da.from_array(Z, chunks=(-(-m // 8), -1))).X
    linear = {"alpha": 1.0, "tol": 1e-6}
    kernel = {"kernel": "rbf", "alpha": 0.1, "tol": 1e-4, "method": "pcg", "random_state": 0, "n_jobs": asked.jobs}
    runs = {
        "cg": lambda place, points: rowcol.solve(place, y, method="cg", **linear),
        "direct": lambda place, points: rowcol.solve(place, y, method="direct", **linear),
        "kernel": lambda place, points: rowcol.solve(points, t, **kernel),
    }
    return crews, {name: run for name, run in runs.items() if name in asked.only.split(",")}


def measured(crews: dict, runs: dict, repeats: int) -> dict:
    """Of each job and number of workers: seconds, bytes there and back, and the result; the least of some turns."""
    took: dict = {}
    for turn in range(repeats + 1):
        for name, run in runs.items():
            for count, (_, _, place, points) in crews.items():
                there = points if name == "kernel" else place
                before, began = (there.sent, there.received), time.perf_counter()
                result = run(place, points)
                spent = time.perf_counter() - began
                moved = there.sent - before[0], there.received - before[1]
                if turn and spent < took.get((name, count), (math.inf,))[0]:  # the first loads compiled code
                    took[name, count] = spent, *moved, result
    return took


def parts_of(name: str, workers: int, parts: int) -> int:
    """Answers a round: one for each part of rows, but one a worker for kernels."""
    return workers if name == "kernel" else parts


def table(head: list[str]) -> None:
    print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")


if __name__ == "__main__":
    main()
