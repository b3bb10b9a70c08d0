"""Promptness at size: compiled calls are short, signals and time limits are obeyed. Run by `make slow`."""

import signal
import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import rowcol
from rowcol.methods import coordinate

pytestmark = pytest.mark.slow


@pytest.fixture
def big(rng):
    X = rng.standard_normal((100_000, 500))
    return X, rng.standard_normal((100_000, 8))


@pytest.mark.parametrize("method", ["rk", "rcd", "rek"])
def test_no_compiled_call_is_long(method, big, monkeypatch):
    """About 0.5 s at the most, also with eight right-hand sides; twice that leaves room for a busy machine."""
    X, Y = big
    rowcol.solve(X[:50], Y[:50, :2], method=method, alpha=0.0 if method == "rek" else 1.0, tol=0.1)  # compiled
    longest = []

    def timed(*args):
        start = time.perf_counter()
        try:
            return real(*args)
        finally:
            longest.append(time.perf_counter() - start)

    real = coordinate.descend
    monkeypatch.setattr(coordinate, "descend", timed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rowcol.solve(X, Y, method=method, max_passes=2, n_jobs=1, random_state=0)
    assert len(longest) > 5
    assert max(longest) < 1.0


@pytest.mark.parametrize("method", ["rk", "rcd"])
def test_a_signal_is_obeyed_promptly(method, big):
    X, Y = big

    class AlarmError(Exception):
        pass

    def ring(number, frame):
        raise AlarmError

    rowcol.solve(X[:50], Y[:50], method=method, alpha=1.0, tol=0.1)
    before = signal.signal(signal.SIGALRM, ring)
    try:
        start = time.perf_counter()
        signal.setitimer(signal.ITIMER_REAL, 1.5)
        with pytest.raises(AlarmError):
            rowcol.solve(X, Y, method=method, alpha=1e-3, tol=1e-15, max_passes=1e9, random_state=0)
        assert time.perf_counter() - start < 4.0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_time_limit_is_obeyed_and_still_certified(big):
    X, Y = big
    start = time.perf_counter()
    with pytest.warns(rowcol.ConvergenceWarning, match="max_seconds"):
        result = rowcol.solve(
            X, Y[:, 0], method="rk", alpha=1e-3, tol=1e-15, max_passes=1e9, max_seconds=1.0, random_state=0
        )
    assert time.perf_counter() - start < 4.0
    exact = X.T @ (Y[:, 0] - X @ result.x) - 1e-3 * result.x
    assert result.gradient_norm == pytest.approx(np.linalg.norm(exact), rel=1e-9)


def test_a_large_sparse_system(rng):
    n, p = 300_000, 30_000
    index = rng.integers(0, p, (n, 10))
    X = sp.csr_array((rng.standard_normal(10 * n), index.ravel(), np.arange(0, 10 * n + 1, 10)), shape=(n, p))
    beta = rng.standard_normal(p)
    for method in ("rk", "auto"):
        result = rowcol.solve(X, X @ beta, method=method, tol=1e-8, random_state=0)
        assert result.success
        assert np.linalg.norm(result.x - beta) < 1e-6 * np.linalg.norm(beta)
