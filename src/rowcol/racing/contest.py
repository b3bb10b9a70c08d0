"""What counts: seconds, from X and y to an answer whose true error is at most the target.

Two stages. `search` gives each contender its best setting for each target: from loose to tight, the first whose answer
is good enough. `race` then times these settings in turns, so that a slow moment of a shared machine hits all alike;
the fastest turn of each counts. Errors are measured in both stages, outside the clock.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from .contenders import OURS, SOLVERS, TOLERANCES, Answer, Solver
from .problems import Dataset

SLOWER = 20  # times the best: one turn is enough to know
HOPELESS = 50  # times the best, in one call of a search: a rival is given up
# BLAS' threads wait by running, for a tenth of a second: who comes next would have half a machine
REST = 0.2 if os.environ.get("OMP_NUM_THREADS") != "1" else 0.0
SLACK = 1.01  # threads may move the last digits between two runs of one setting


class Budget(NamedTuple):
    """Seconds: of one call, of one contender's search, of a dataset's race; how long a rival's call may always take."""

    call: float
    search: float
    race: float
    patience: float
    turns: int


BUDGETS = {
    "full": Budget(20.0, 40.0, 6.0, 2.0, 7),
    "quick": Budget(3.0, 2.0, 0.7, 0.5, 5),
    "small": Budget(5.0, 2.0, 2.5, 0.5, 5),
}


def error_of(beta: np.ndarray, truth: np.ndarray) -> float:
    """‖β − truth‖ / ‖truth‖, of the worst column; infinite if β is not all numbers."""
    beta, truth = (np.asarray(v, dtype=np.float64).reshape(len(truth), -1) for v in (beta, truth))
    with np.errstate(over="ignore", invalid="ignore"):
        error = float(np.max(np.linalg.norm(beta - truth, axis=0) / np.linalg.norm(truth, axis=0)))
    return error if np.isfinite(error) else float("inf")


@dataclass
class Job:
    """One contender at one setting, and how it has done so far."""

    solver: Solver
    setting: Any
    answer: Answer
    error: float
    seconds: float
    rounds: int = 0
    targets: list[float] = field(default_factory=list)

    def again(self, data: Dataset, budget: Budget) -> float:
        """One timed turn, after a rest; its seconds. The worst error of all turns stands."""
        time.sleep(REST)
        answer, seconds = timed(self.solver, data, self.setting, budget)
        self.error = max(self.error, error_of(answer.beta, data.truth))
        self.seconds = seconds if self.rounds == 0 else min(self.seconds, seconds)
        self.rounds += 1
        return seconds


def timed(solver: Solver, data: Dataset, setting: Any, budget: Budget) -> tuple[Answer, float]:
    """One call. Warnings are silent: that a loose setting is loose is what the search is about."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        answer = solver.run(data, setting, budget.call)
        return answer, time.perf_counter() - start


class GivenUp(Exception):  # noqa: N818 - no error: the search of one contender ends
    """A contender has had its time."""


def search(solver: Solver, data: Dataset, budget: Budget, best: float) -> tuple[list[Job], str]:
    """The loosest setting for each target, and why the search ended early if it did.

    The walk is from loose to tight. Far from the target it jumps, as errors go about with tolerances, and where a jump
    went too far it walks back. `best` is the time of the fastest contender so far for the tightest target: a rival
    whose call takes many times as long is not asked for more digits. rowcol always is.
    """
    settings, spent = solver.settings(data), 0.0
    tried: dict[int, Job] = {}
    ours = solver.name == OURS
    patience = budget.call if ours else min(max(budget.patience, HOPELESS * best), budget.call)

    def attempt(i: int) -> Job:
        nonlocal spent
        if i in tried:
            return tried[i]
        answer, seconds = timed(solver, data, settings[i], budget)
        if ours and (seconds > patience or spent + seconds > budget.search):  # unless it was compiling
            answer, seconds = timed(solver, data, settings[i], budget)
        spent += seconds
        tried[i] = Job(solver, settings[i], answer, error_of(answer.beta, data.truth), seconds)
        return tried[i]

    def tired(job: Job) -> bool:
        return job.seconds > patience or spent > budget.search

    i = 0
    try:
        if len(settings) > 1:
            timed(solver, data, settings[0], budget)  # compile, load, touch memory
        for target in sorted(data.targets, reverse=True):
            for _ in settings:
                if (job := attempt(i)).error <= target:
                    break
                if i == len(settings) - 1:
                    raise GivenUp(f"error {job.error:.1e} at its tightest")
                if tired(job):
                    raise GivenUp(f"given up at error {job.error:.1e}: the last call took {job.seconds:.2g} s")
                i = min(i + _jump(settings, job.error, target), len(settings) - 1)
            for _ in settings:
                if i == 0 or i - 1 in tried or tired(job) or attempt(i - 1).error > target:
                    break
                i -= 1
            tried[i].targets.append(target)
        why = ""
    except GivenUp as end:
        why = str(end)
    except Exception as failure:  # whatever a rival dies of is a result, not the end of the run
        why = f"failed: {type(failure).__name__}: {str(failure)[:100]}"
    return [job for job in tried.values() if job.targets], why


def _jump(settings: tuple, error: float, target: float) -> int:
    """How many settings to go on: one; among tolerances, two a power of ten, but for a margin of 30."""
    if settings != TOLERANCES:
        return 1
    return max(1, int(2 * np.log10(min(error, 1.0) / (30 * target))))


def race(jobs: list[Job], data: Dataset, budget: Budget) -> None:
    """Time all jobs in turns. One whose search took most of the time there is keeps that as its only turn.

    Parameters
    ----------
    jobs : list of Job
    data : Dataset
    budget : Budget
    """
    live = []
    for job in jobs:
        if job.seconds > budget.race / 4 and job.solver.name != OURS:
            job.rounds = 1
        else:
            live.append(job)
    spent = 0.0
    for turn in range(budget.turns):
        took = sum(job.again(data, budget) for job in (live if turn % 2 == 0 else live[::-1]))
        best = {t: min(job.seconds for job in jobs if t in job.targets) for t in data.targets if _reached(jobs, t)}
        live = [job for job in live if any(job.seconds <= SLOWER * best[t] for t in job.targets)]
        spent += took
        if spent + took > budget.race:
            break


def _reached(jobs: Iterable[Job], target: float) -> bool:
    return any(target in job.targets for job in jobs)


def compare(
    data: Dataset,
    solvers: Iterable[Solver] = SOLVERS,
    budget: Budget | None = None,
    watch: Any = None,
) -> list[dict[str, Any]]:
    """One record for each contender and target: seconds, setting, error and rounds; or a note why there is no time.

    Parameters
    ----------
    data : Dataset
    solvers : iterable of Solver
    budget : Budget, optional
        That of the problem's size unless said.
    watch : object with an attribute `asked`, optional
        Once that is true there is no race: no records.

    Returns
    -------
    list of dict

    Examples
    --------
    >>> from rowcol.racing.contest import Budget, compare
    >>> from rowcol.racing.problems import small
    >>> records = compare(small("kernel ridge"), budget=Budget(5.0, 2.0, 0.1, 0.5, 1))
    >>> [r["contender"] for r in records if r["seconds"]]
    ['rowcol', 'KernelRidge']
    """
    budget = budget or BUDGETS[data.size]
    solvers = tuple(solvers)
    jobs: list[Job] = []
    notes: dict[str, str] = {}
    best = float("inf")
    for solver in solvers:
        if getattr(watch, "asked", False):
            return []
        why = solver.refuse(data, budget.call)
        if why:
            notes[solver.name] = f"not run: {why}"
            continue
        found, notes[solver.name] = search(solver, data, budget, best)
        jobs += found
        best = min([best, *(job.seconds for job in found if min(data.targets) in job.targets)])
    race(jobs, data, budget)
    records = []
    for target in data.targets:
        for solver in solvers:
            record: dict[str, Any] = {
                "target": target,
                "contender": solver.name,
                "seconds": None,
                "note": notes[solver.name],
            }
            for job in jobs:
                if job.solver is solver and target in job.targets:
                    record |= {"seconds": job.seconds, "setting": job.setting, "error": job.error, "rounds": job.rounds}
                    record["note"] = ""
                    if solver.name == OURS:
                        record |= {"route": job.answer.route, "passes": job.answer.passes}
                    if job.error > SLACK * target:
                        record |= {"seconds": None, "note": f"error {job.error:.1e} in a later turn"}
            records.append(record)
    return records
