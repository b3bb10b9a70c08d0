"""How many threads (the user's word first, then the environment, then the machine), and how they share work."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache
from itertools import chain as chained
from pathlib import Path
from threading import RLock, get_ident
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg  # noqa: F401 - SciPy has a BLAS of its own, which must be there to be found
from threadpoolctl import ThreadpoolController

from .words import shown

SHARED = 512  # unknowns up to which threads have a Gram matrix each; larger ones keep the threads of BLAS busy
MOST = 1024  # threads, whoever asks for more
AHEAD = 8  # calls that may wait to be read, where threads share them
WAITING = 4_000_000  # bytes of what they give, where that is little
FOREIGN = 64
VARIABLES = ("ROWCOL_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS")


def count(n_jobs: Any) -> int:
    """`n_jobs` as a number of threads: None obeys the environment, -1 takes every core, -2 all but one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    cores = min(cores, quota())
    if n_jobs is None:
        for name in VARIABLES:
            text = os.environ.get(name, "").split(",")[0]
            if text.isdigit() and int(text) > 0:
                return min(int(text), cores)
        return cores
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
        raise ValueError(f"n_jobs must be None or a nonzero integer, got {shown(n_jobs)}")
    return min(int(n_jobs), MOST) if n_jobs > 0 else max(cores + 1 + int(n_jobs), 1)


def most(n_jobs: Any) -> Any:
    """`n_jobs` as a file says it: it may ask for FOREIGN threads, or for as many as there are cores."""
    limit = max(FOREIGN, count(-1))
    return n_jobs if count(n_jobs) <= limit else limit


def quota(groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Cores' worth of time that a container is given, rounded up: by cgroups of the second kind, or of the first."""
    for files in (["cpu.max"], ["cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"]):
        with suppress(OSError, ValueError, ZeroDivisionError):
            given, period = (int(word) for file in files for word in (groups / file).read_text().split())
            return -(-given // period) if given > 0 else sys.maxsize
    return sys.maxsize


class Wanted(NamedTuple):
    """What somebody inside wants of BLAS."""

    many: int
    at_most: bool  # no more than that, or just that?
    by: int  # which thread
    lends: bool = False  # may `lent` do without it for a while?


class _Limits:
    """How many threads BLAS has: the fewest that anybody inside wants. The last to leave gives back what there was.

    There is one number for the process, so those that call at once share it.
    """

    def __init__(self) -> None:
        self.lock = RLock()
        self.wanted: dict[object, Wanted] = {}
        self.found: list[int] = []

    @contextmanager
    def __call__(self, many: int, at_most: bool = False, lends: bool = False) -> Iterator[None]:
        mark = object()
        libraries = _blas()  # found before anything is changed
        try:
            with self.lock:
                if not self.wanted:
                    self.found = [library.num_threads for library in libraries]
                self.wanted[mark] = Wanted(many, at_most, get_ident(), lends)
                self._set()
            yield
        finally:
            with self.lock:
                self.wanted.pop(mark, None)
                self._set()

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Without those that this thread wants, and that lend."""
        with self.lock:
            mine = {mark: one for mark, one in self.wanted.items() if one.lends and one.by == get_ident()}
            for mark in mine:
                del self.wanted[mark]
            self._set()
        try:
            yield
        finally:
            with self.lock:
                self.wanted.update(mine)
                self._set()

    def _set(self) -> None:
        for library, had in zip(_blas(), self.found, strict=True):
            # BLAS by OpenMP has a number for each thread
            here = get_ident() if getattr(library, "threading_layer", "") == "openmp" else None
            heard = [one for one in self.wanted.values() if here in (None, one.by)]
            least = min((min(one.many, had) if one.at_most else one.many for one in heard), default=had)
            if library.num_threads != least:
                # threadpoolctl may hear only one thread, and the last to leave may be another
                getattr(library, "clear_controlling_thread", lambda force: None)(force=True)
                library.set_num_threads(least)
                getattr(library, "clear_controlling_thread", lambda force: None)(force=True)

    def forked(self) -> None:
        """In a child: what other threads of the parent wanted, nobody will take back."""
        if self.wanted:
            self.wanted.clear()
            self._set()
        self.lock.release()


@cache
def _blas() -> list[Any]:
    """Finding them takes milliseconds, limiting them microseconds."""
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    return [library for library in libraries if library.num_threads]


_limits = _Limits()
if hasattr(os, "register_at_fork"):  # a child that was forked while another thread held the lock would wait for ever
    os.register_at_fork(
        before=_limits.lock.acquire, after_in_parent=_limits.lock.release, after_in_child=_limits.forked
    )


def single_blas(lends: bool = False) -> AbstractContextManager[None]:
    """BLAS with one thread: its threads and ours would wait for each other. One that `lends` gives way to `lent`.

    A thread of OpenBLAS runs on for a tenth of a second after any sum of 10,000 numbers, and SciPy's runs beside
    NumPy's: with two cores, solves on two threads took half as long again.
    """
    return _limits(1, lends=lends)


def lent(unknowns: int) -> AbstractContextManager[None]:
    """For matrices of so many unknowns: BLAS with as many threads as the solve has, if they are worth it."""
    return _limits.lent() if unknowns > SHARED else nullcontext()


def blas_limit(many: int, at_most: bool = False) -> AbstractContextManager[None]:
    """BLAS with this many threads, or with no more than that."""
    return _limits(many, at_most)


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
    groups = ((items[i : i + step],) for i in range(0, len(items), step))
    return chained.from_iterable(ahead(pool, lambda some: [f(item) for item in some], groups, AHEAD))


def by_threads(pool: Executor | None, f: Callable, items: Iterable, part: int = WAITING) -> Iterator:
    """The same of products by BLAS: our threads share the items, and BLAS keeps to one for each.

    OpenBLAS cuts blocks so that two threads may take longer than one, and waits by running: where another process has
    a core, ten times as long.
    """
    if pool is None:
        yield from map(f, items)
        return

    with single_blas():
        yield from spread(pool, f, list(items), part)


def workers_of(pool: Executor | None) -> int:
    """How many threads a pool of `pooled` has; none is this one."""
    return 1 if pool is None else int(getattr(pool, "_max_workers", 1))


def ahead(pool: Executor, f: Callable, items: Iterable[tuple], most: int) -> Iterator:
    """f of the arguments that items are, in order; of so many at a time, so that few results wait in memory."""
    waiting: deque = deque()

    def quietly(*item: Any) -> Any:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # each thread has its own; found later
            return f(*item)

    for item in items:
        waiting.append(pool.submit(quietly, *item))
        del item
        if len(waiting) >= most:
            yield waiting.popleft().result()
    for one in waiting:
        yield one.result()
