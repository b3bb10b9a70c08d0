"""Cut short by Ctrl-C or max_seconds, at any moment, where a pass takes long: what is there, with its certificate."""

import os
import signal
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


def slowly(X, seconds, interrupt=0):
    """X in parts, a pass over which takes so long; and which were begun. Ctrl-C comes in the middle of one of them."""
    begun = []

    def begin():
        begun.append(len(begun))
        mine = begun[-1]
        for k, part in enumerate(np.array_split(X, PARTS)):
            time.sleep(seconds / PARTS)
            if interrupt and (mine, k) == (interrupt, PARTS // 2):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.2)
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
    return result.certificate.value <= 1.1 * gap + result.certificate.rounding


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
import sys, warnings
sys.path.insert(0, sys.argv[1])
import numpy as np
import rowcol
from test_cut import certified, data, slowly

X, y = data()
method, alpha, intercept, which = sys.argv[2], float(sys.argv[3]), sys.argv[4] == "True", int(sys.argv[5])
asked = {"alpha": alpha, "method": method, "fit_intercept": intercept, "tol": 1e-13, "random_state": 0}
place, begun = slowly(X, 0.1, which)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    result = rowcol.solve(place, y, **asked)
assert len(begun) > which, "it never came"
if sys.argv[6] == "True":  # an answer is there, and a look at it may say that it is as good as can be
    assert result.status in (rowcol.Status.INTERRUPTED, rowcol.Status.ROUNDING), result
    assert result.x.any()
else:
    assert result.status is rowcol.Status.INTERRUPTED, result
    assert "Ctrl-C came before" in str(told[-1].message)
assert certified(result, X, y, alpha)
"""


@pytest.mark.parametrize(
    ("method", "alpha", "intercept", "which", "answered"),
    [
        ("auto", 0.0, False, 2, False),  # the first pass sees how many rows there are, the second a first few of them
        ("auto", 0.0, False, 3, True),
        ("auto", 2.0, True, 2, False),
        ("auto", 2.0, True, 3, True),
        ("cg", 2.0, False, 1, False),
        ("cg", 2.0, False, 2, False),
        ("cg", 2.0, False, 5, True),
        ("cg", 0.0, True, 1, False),
        ("cg", 0.0, True, 7, True),
        ("rk", 2.0, False, 1, False),
        ("rk", 2.0, False, 4, False),
    ],
)
def test_ctrl_c_in_any_pass_over_chunks_gives_what_is_there(method, alpha, intercept, which, answered):
    here = str(__file__).rpartition("/")[0]
    command = [sys.executable, "-c", INTERRUPTED, here, method, str(alpha), str(intercept), str(which), str(answered)]
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
