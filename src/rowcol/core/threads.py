"""How many threads: the user's word first, then the usual environment variables, then the machine."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

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
        raise ValueError(f"n_jobs must be None or a nonzero integer, got {n_jobs!r}")
    return int(n_jobs) if n_jobs > 0 else max(cores + 1 + int(n_jobs), 1)


class _Alone:
    """Who asked BLAS to be single-threaded. Its thread count is the process's, so callers in several threads share it:
    the first sets it and the last puts it back."""

    def __init__(self) -> None:
        self.lock, self.callers, self.limit = threading.Lock(), 0, None


_ALONE: Any = _Alone()


@cache
def _controller() -> Any:
    return ThreadpoolController().select(user_api="blas")


@contextmanager
def alone() -> Iterator[None]:
    """BLAS with one thread, while threads of our own call it: the two never multiply."""
    with _ALONE.lock:
        _ALONE.callers += 1
        if _ALONE.callers == 1:
            _ALONE.limit = _controller().limit(limits=1)
            _ALONE.limit.__enter__()
    try:
        yield
    finally:
        with _ALONE.lock:
            _ALONE.callers -= 1
            if _ALONE.callers == 0:
                _ALONE.limit.__exit__(None, None, None)
