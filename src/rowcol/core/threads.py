"""How many threads: the user's word first, then the usual environment variables, then the machine."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

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
