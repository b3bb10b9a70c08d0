"""Cut short by Ctrl-C or max_seconds, at any moment, where a pass takes long: what is there, with its certificate."""

import subprocess
import sys
import time
import warnings

import numpy as np
import pytest

import rowcol

N, P, PARTS = 60_000, 30, 20


def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, P)) + 3.0
    return X, X @ rng.standard_normal(P) + rng.standard_normal(N)


def slowly(X, seconds):
    """X in parts, a pass over which takes so long; and how many passes were begun."""
    begun = []

    def begin():
        begun.append(1)
        for part in np.array_split(X, PARTS):
            time.sleep(seconds / PARTS)
            yield part

    return rowcol.chunks(begin).X, begun


def certified(result, X, y, alpha):
    """Is the certificate that of the answer? By NumPy, from the definitions."""
    ones = result.intercept is not None
    D, target = (X - X.mean(axis=0), y - y.mean()) if ones else (X, y)
    r = target - D @ result.x
    if alpha == 0:
        angle = np.abs(D.T @ r) / (np.linalg.norm(D, axis=0) * np.linalg.norm(r))
        return np.isclose(result.certificate.value, min(angle.max(), np.linalg.norm(r) / np.linalg.norm(target)))
    gap = np.linalg.norm(D.T @ r - alpha * result.x) / np.sqrt(alpha) / np.linalg.norm(target)
    return result.certificate.value <= gap * (1 + 1e-9) + result.certificate.rounding


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 2.0])
@pytest.mark.parametrize("method", ["auto", "cg", "direct", "rk"])
def test_max_seconds_ends_a_pass(method, alpha, intercept):
    """Beside what was cut there are a pass that certifies and, with an intercept, one for the means."""
    if method == "rk" and intercept:
        return
    X, y = data()
    place, begun = slowly(X, 0.6)
    begun.clear()
    began = time.perf_counter()
    with pytest.warns(rowcol.ConvergenceWarning, match="max_seconds came"):
        result = rowcol.solve(
            place, y, alpha=alpha, method=method, fit_intercept=intercept, max_seconds=0.15, tol=1e-12, random_state=0
        )
    assert result.status is rowcol.Status.SECONDS
    assert len(begun) <= 3 + intercept  # a first few rows, which are not a pass
    assert time.perf_counter() - began < 2.0 + intercept + 10.0  # on a busy machine
    assert certified(result, X, y, alpha)


INTERRUPTED = """
import os, signal, sys, threading, time, warnings
sys.path.insert(0, sys.argv[1])
import numpy as np
import rowcol
from test_cut import certified, data, slowly

X, y = data()
method, alpha, intercept, after = sys.argv[2], float(sys.argv[3]), sys.argv[4] == "True", float(sys.argv[5])
asked = {"alpha": alpha, "method": method, "fit_intercept": intercept, "tol": 1e-13, "random_state": 0}
rowcol.solve(rowcol.chunks(X, rows=9_000).X, y, **asked | {"tol": 1e-2})  # what is compiled, is
place, begun = slowly(X, 0.6)
threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT)).start()
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    result = rowcol.solve(place, y, **asked)
if after < 0.6:  # later, a factor is there, and a look at its answer may say that it is as good as can be
    assert result.status is rowcol.Status.INTERRUPTED, result
    assert "Ctrl-C came before" in str(told[-1].message)
else:
    assert result.status in (rowcol.Status.INTERRUPTED, rowcol.Status.ROUNDING), result
    assert result.x.any() or method == "cg"  # which has got ready by then
assert certified(result, X, y, alpha)
"""


@pytest.mark.parametrize(
    ("method", "alpha", "intercept", "after"),
    [
        ("auto", 0.0, False, 0.3),
        ("auto", 2.0, True, 0.2),
        ("auto", 2.0, True, 0.9),
        ("cg", 2.0, False, 0.3),
        ("cg", 0.0, True, 0.3),
        ("cg", 0.0, True, 1.6),
        ("rk", 2.0, False, 0.3),
    ],
)
def test_ctrl_c_in_any_pass_over_chunks_gives_what_is_there(method, alpha, intercept, after):
    here = str(__file__).rpartition("/")[0]
    command = [sys.executable, "-c", INTERRUPTED, here, method, str(alpha), str(intercept), str(after)]
    subprocess.run(command, check=True, timeout=120)


def test_ctrl_c_before_the_first_step_of_kernels():
    """While pivots are drawn: zero, whose residual is y."""
    code = """
import os, signal, warnings
import numpy as np
import rowcol
from rowcol.methods import kernel_routes
rng = np.random.default_rng(0)
X, y = rng.standard_normal((3_000, 3)), rng.standard_normal(3_000)

def interrupted(*args, **more):
    os.kill(os.getpid(), signal.SIGINT)
    raise AssertionError("the signal comes first")

kernel_routes.pivots = interrupted
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    result = rowcol.solve(X, y, kernel="rbf", alpha=1e-3, method="pcg", random_state=0)
assert result.status is rowcol.Status.INTERRUPTED, result
assert not result.x.any()
assert np.isclose(result.certificate.value, 1.0)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_a_solve_in_time_is_not_cut():
    X, y = data()
    place, _ = slowly(X, 0.2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = rowcol.solve(place, y, max_seconds=300.0, random_state=0)
    np.testing.assert_allclose(result.x, np.linalg.lstsq(X, y, rcond=None)[0], rtol=1e-6)
