"""How many threads (the user's word first, then the environment, then the machine), and how they share work."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import chain as chained
from threading import Lock
from typing import Any

import numpy as np
import scipy.linalg  # noqa: F401 - SciPy has a BLAS of its own, which must be there to be found
from threadpoolctl import ThreadpoolController

from .words import shown

SHARED = 512  # unknowns up to which threads have a Gram matrix each; larger ones keep the threads of BLAS busy
MOST = 1024  # threads, whoever asks for more
AHEAD = 8  # calls that may wait to be read, where threads share them
WAITING = 4_000_000  # bytes of what they give, where that is little
VARIABLES = ("ROWCOL_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS")


def count(n_jobs: Any) -> int:
    """`n_jobs` as a number of threads: None obeys the environment, -1 takes every core, -2 all but one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        for name in VARIABLES:
            text = os.environ.get(name, "").split(",")[0]
            if text.isdigit() and int(text) > 0:
                return min(int(text), cores)
        return cores
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
        raise ValueError(f"n_jobs must be None or a nonzero integer, got {shown(n_jobs)}")
    return min(int(n_jobs), MOST) if n_jobs > 0 else max(cores + 1 + int(n_jobs), 1)


class _Single:
    """BLAS with one thread as long as anybody wants it: the last to leave gives back what the first one found."""

    def __init__(self) -> None:
        self.lock, self.inside = Lock(), 0
        self.limits: Any = None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self.lock:
            if self.inside == 0:
                _take_control()
                self.limits = _blas().limit(limits=1)
            self.inside += 1
        try:
            yield
        finally:
            with self.lock:
                self.inside -= 1
                if self.inside == 0:
                    _take_control()
                    self.limits.restore_original_limits()
                    _take_control()


def _take_control() -> None:
    """Let this thread say how many: threadpoolctl may hear only one, and the last to leave may be another."""
    for library in _blas().lib_controllers:
        getattr(library, "clear_controlling_thread", lambda force: None)(force=True)


single_blas = _Single()  # BLAS' threads and ours would wait for each other; those that call at once share one count


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")  # finding them takes milliseconds, limiting them microseconds


@contextmanager
def blas_limit(many: int | None) -> Iterator[None]:
    """BLAS with this many threads; None leaves it alone."""
    if many is None:
        yield
        return
    _take_control()
    limits = _blas().limit(limits=many)
    try:
        yield
    finally:
        _take_control()
        limits.restore_original_limits()
        _take_control()


@contextmanager
def pooled(jobs: int) -> Iterator[Executor | None]:
    """So many threads of ours, to `spread` work over."""
    if jobs == 1:
        yield None
        return
    with ThreadPoolExecutor(jobs) as pool:
        yield pool


def spread(pool: Executor | None, f: Callable, items: list, part: int = WAITING) -> Iterable:
    """f of every item, in order; by several threads if there is a pool, a few items ahead of the reader at most.

    `part`: bytes of what f gives. Where that is little, threads take several items at once, as each handing over costs.
    """
    if pool is None or len(items) < 2:
        return map(f, items)
    step = max(min(-(-len(items) // AHEAD), WAITING // (AHEAD * max(part, 1))), 1)
    return chained.from_iterable(_ahead(pool, f, [items[i : i + step] for i in range(0, len(items), step)]))


def by_threads(pool: Executor | None, f: Callable, items: Iterable, part: int = WAITING) -> Iterator:
    """The same of products by BLAS: our threads share the items, and BLAS keeps to one for each.

    OpenBLAS cuts blocks so that two threads may take longer than one, and waits by running: where another process has
    a core, ten times as long.
    """
    if pool is None:
        yield from map(f, items)
        return

    def quietly(item: Any) -> Any:
        with np.errstate(
            over="ignore", invalid="ignore", divide="ignore"
        ):  # each thread has its own; it is found later
            return f(item)

    with single_blas():
        yield from spread(pool, quietly, list(items), part)


def _ahead(pool: Executor, f: Callable, groups: list[list]) -> Iterable[list]:
    waiting = []
    for group in groups:
        waiting.append(pool.submit(lambda some: [f(item) for item in some], group))
        if len(waiting) >= AHEAD:  # so that few parts wait in memory
            yield waiting.pop(0).result()
    for one in waiting:
        yield one.result()
