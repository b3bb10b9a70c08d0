"""The contenders: those that rowcol carries with it for `rowcol bench`, and one that only this benchmark installs."""

from __future__ import annotations

import time

import numpy as np
import scipy.sparse as sp

from rowcol.racing.contenders import MEMORY, Answer, Solver, too_long
from rowcol.racing.contenders import SOLVERS as CARRIED
from rowcol.racing.problems import Dataset

try:
    import kaczmarz
except ImportError:  # make bench installs it
    kaczmarz = None


def run_kaczmarz(data: Dataset, setting: int, limit: float) -> Answer:
    """Uniform picks and a count of steps for a stop: its own test costs a pass a step, weighted picks near that."""
    np.random.seed(0)  # noqa: NPY002 - it draws from the global generator
    until = time.perf_counter() + limit
    steps = setting * min(data.X.shape)
    iterates = kaczmarz.UniformRandom.iterates(data.X, data.y, maxiter=steps, tol=None)
    beta = np.zeros(data.X.shape[1])
    for beta in iterates:  # noqa: B007
        if time.perf_counter() > until:
            break
    return Answer(beta)


def _kaczmarz_settings(data: Dataset) -> tuple:
    return (5, 10, 20, 30, 40, 60, 80, 120, 160, 320)


def _refuse_kaczmarz(data: Dataset, limit: float) -> str:
    if data.alpha or not data.consistent:
        return "consistent systems only"
    if sp.issparse(data.X) or data.y.ndim > 1:
        return "one right-hand side, and in practice dense, only"
    if kaczmarz is None:
        return "not installed"
    if 2 * data.X.nbytes > MEMORY:
        return "memory"
    steps = _kaczmarz_settings(data)[0] * min(data.X.shape)
    return too_long(steps * (1.5e-5 + 3e-9 * data.X.shape[1]), limit / 3)


SOLVERS: tuple[Solver, ...] = (
    *(solver for solver in CARRIED if solver.name != "KernelRidge"),
    Solver("kaczmarz", run_kaczmarz, _kaczmarz_settings, _refuse_kaczmarz),
)
