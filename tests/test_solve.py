"""What solve promises: its certificate, its stops, its seeds, its starts and its weights."""

import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import rowcol
from oracle import close, jump, walk
from rowcol import Status, zoo


def quiet(*args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rowcol.solve(*args, **kwargs)


# --- certificates ------------------------------------------------------------------------------------------------


def long(a):
    return np.asarray(a, np.clongdouble if np.iscomplexobj(a) else np.longdouble)


def measured(X, y, alpha, x, dual):
    """The certificate's quantities in extended precision, from their definitions."""
    X, y, x = long(X), long(y), long(x)
    r = y - X @ x
    g = X.conj().T @ r - alpha * x
    norm = lambda v: np.sqrt((abs(v) ** 2).sum())  # noqa: E731
    if norm(y) == 0:
        return dict.fromkeys(("gap", "residual", "gradient"), float(norm(x)))
    if alpha > 0:
        gaps = [norm(g) / np.sqrt(alpha)]
        if dual is not None:
            d = long(dual)
            gaps.append(np.hypot(norm(r - alpha * d), np.sqrt(alpha) * norm(x - X.conj().T @ d)))
        return {"gap": float(min(gaps) / norm(y))}
    columns = np.sqrt((abs(X) ** 2).sum(0))
    live = columns > 0
    return {
        "residual": float(norm(r) / norm(y)),
        "gradient": float(np.max(abs(g[live]) / columns[live], initial=0) / norm(r)) if norm(r) else 0.0,
    }


@given(
    st.integers(0, 10**6),
    st.sampled_from(["rk", "rcd", "rek"]),
    st.sampled_from([0.0, 1e-6, 1.0, 1e4]),
    st.sampled_from([np.float32, np.float64, np.complex128]),
    st.sampled_from([1.0, 1e-100, 1e100]),
)
def test_the_certificate_holds_in_extended_precision(seed, method, alpha, dtype, scale):
    """Claimed value and error bound against the definitions, at whatever point the solve was stopped."""
    if method == "rek" or scale != 1.0:
        alpha = 0.0
    if dtype == np.float32:
        scale = 1.0
    rng = np.random.default_rng(seed)
    n, p = (int(v) for v in rng.integers(1, 30, 2))
    X = scale * rng.standard_normal((n, p)) * np.geomspace(1, 10.0 ** rng.integers(-3, 4), p)
    X = (X + 1j * rng.standard_normal((n, p)) * scale).astype(dtype) if dtype == np.complex128 else X.astype(dtype)
    if rng.random() < 0.3:
        X[:, rng.integers(p)] = 0
    y = (X @ rng.standard_normal(p)).astype(np.complex128 if dtype == np.complex128 else float)
    if rng.random() < 0.5:
        y = y + scale * rng.standard_normal(n)
    result = quiet(X, y, alpha=alpha, method=method, tol=1e-7, max_passes=float(rng.integers(1, 60)), random_state=seed)
    c = result.certificate
    if dtype != np.float32:  # in float32 the gap is that of the α before it was rounded
        truth = measured(X, y, alpha, result.x, result.dual if method == "rk" else None)
        assert truth[c.kind] <= c.value
        assert c.value <= 1.01 * truth[c.kind] + 3 * c.rounding
    elif c.kind != "gap":
        assert measured(X, y, alpha, result.x, None)[c.kind] <= c.value + c.storing
    if result.success:
        assert c.value <= 1e-7
    if alpha > 0:
        A = long(X).conj().T @ long(X) + alpha * np.eye(p)
        double = A.astype(np.complex128 if dtype == np.complex128 else float)
        exact = np.linalg.solve(double, X.conj().T.astype(double.dtype) @ y)
        rounding = 1e-15 * np.linalg.cond(double) * np.linalg.norm(exact)
        assert np.linalg.norm(result.x - exact) <= result.error_bound + rounding

        def objective(b):
            return float((abs(long(y) - long(X) @ long(b)) ** 2).sum() + alpha * (abs(long(b)) ** 2).sum())

        above = max(objective(result.x) - objective(exact), 0.0)  # twice P(β) − P*, within rounding of `exact`
        assert np.sqrt(above) <= (c.value + c.storing) * np.linalg.norm(y) * (1 + 1e-6) + 1e-12 * np.linalg.norm(y)


@pytest.mark.parametrize("method", ["rk", "rcd"])
def test_ridge_keeps_the_pair_alpha_beta(method, rng):
    X, y = rng.standard_normal((20, 50)), rng.standard_normal(20)
    result = rowcol.solve(X, y, alpha=3.0, method=method, tol=1e-12, random_state=0)
    close(result.dual, np.linalg.solve(X @ X.T + 3 * np.eye(20), y), 1e-9)
    close(X.T @ result.dual, result.x, 1e-9)
    assert result.solution == "ridge"


def test_badly_scaled_columns_cannot_hide(rng):
    """Columns scaled from 1 to 1e-3: mainstream ridge solvers are 16-46 % wrong here, two of them in silence."""
    X = rng.standard_normal((500, 40)) * np.geomspace(1, 1e-3, 40)
    y = X @ (rng.standard_normal(40) / np.geomspace(1, 1e-3, 40)) + 0.1 * rng.standard_normal(500)
    truth = np.linalg.solve(X.T @ X + 1e-4 * np.eye(40), X.T @ y)
    result = rowcol.solve(X, y, alpha=1e-4, tol=1e-8, random_state=0)
    assert result.success
    assert np.linalg.norm(result.x - truth) <= result.error_bound
    close(result.x, truth, 1e-4)
    close(rowcol.solve(X, y, tol=1e-8, random_state=0).x, np.linalg.lstsq(X, y, rcond=None)[0], 1e-6)


# --- invariants ----------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.sampled_from([0.0, 2.0]))
def test_the_objective_never_rises(seed, alpha):
    rng = np.random.default_rng(seed)
    n, p = (int(v) for v in rng.integers(1, 12, 2))
    X, y = rng.standard_normal((n, p)), rng.standard_normal(n)
    before = np.inf
    for beta, _, s in walk("cols", X, y, rng.integers(0, p, 40), alpha):
        now = np.sum((y - X @ beta) ** 2) + alpha * beta @ beta
        assert now <= before * (1 + 1e-14) + 1e-14
        np.testing.assert_allclose(s, X @ beta - y, atol=1e-11)  # the carried image
        before = now
    before = np.inf
    for beta, a, _ in walk("rows", X, y, rng.integers(0, n, 40), alpha):  # the dual objective of Section 6
        now = 0.5 * a @ (X @ X.T + alpha * np.eye(n)) @ a - y @ a
        assert now <= before + 1e-12 * (1 + abs(before) if np.isfinite(before) else 1)
        np.testing.assert_allclose(beta, X.T @ a, atol=1e-11)
        before = now


@given(st.integers(0, 10**6), st.sampled_from(["rk", "rcd", "rek"]), st.integers(-20, 20), st.integers(-20, 20))
def test_scaling_by_powers_of_two_scales_the_answer_exactly(seed, method, ex, ey):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((15, 6)), rng.standard_normal(15)
    one = quiet(X, y, method=method, random_state=seed, max_passes=5, tol=1e-3)
    two = quiet(2.0**ex * X, 2.0**ey * y, method=method, random_state=seed, max_passes=5, tol=1e-3)
    np.testing.assert_array_equal(two.x, 2.0 ** (ey - ex) * one.x)
    assert one.certificate.value == two.certificate.value


@pytest.mark.parametrize("method", ["rk", "rcd", "rek"])
@pytest.mark.parametrize("size", [5e-324, 1e-300, 1e-150, 1e150, 1e300])
def test_the_size_of_y_does_not_matter(method, size):
    X, beta = np.diag([1.0, 2.0, 3.0]) + 0.1, np.array([size, -size, size / 2])
    result = rowcol.solve(X, X @ beta, method=method, tol=1e-10, random_state=0)
    assert result.success
    np.testing.assert_allclose(result.x, beta, rtol=1e-8, atol=1e-323)


@given(st.integers(0, 10**6), st.sampled_from(["rows", "cols"]))
def test_permuting_lines_and_picks_permutes_the_steps(seed, side):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((9, 7)), rng.standard_normal(9)
    i, j = rng.permutation(9), rng.permutation(7)
    picks = rng.integers(0, 9 if side == "rows" else 7, 60)
    moved = np.argsort(i if side == "rows" else j)[picks]
    beta = jump(side, X, y, picks)[0][0]
    close(jump(side, X[i][:, j], y[i], moved)[0][0], beta[j], 1e-11)


@given(st.integers(0, 10**6), st.sampled_from(["rk", "rcd", "rek"]), st.sampled_from(["norms", "uniform", "shuffled"]))
def test_rows_and_columns_of_zeros_are_harmless(seed, method, sampler):
    case = zoo.zero_lines(n=40, p=8, zeros=3, seed=seed)
    result = rowcol.solve(case.X, case.y, method=method, sampler=sampler, tol=1e-9, random_state=seed)
    close(result.x, case.answer, 1e-6)
    assert (result.x[case.answer == 0] == 0).all()


# --- statuses ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("store", [np.array, sp.csr_array])
@pytest.mark.parametrize("method", ["rk", "rcd", "rek", "auto"])
def test_a_row_of_zeros_that_asks_for_something_is_reported(method, store):
    case = zoo.zero_lines(seed=1)
    zero = np.flatnonzero(~case.X.any(axis=1))[0]
    y = case.y.copy()
    y[zero] = 1.0  # the least-squares solution stays what it was, and even rows find it
    result = rowcol.solve(store(case.X), y, method=method, tol=1e-10, random_state=0)
    close(result.x, case.answer, 1e-8)
    assert f"inconsistent: row {zero} of X is zero" in result.message
    assert "least squares" in result.solution


def test_a_row_of_zeros_in_an_otherwise_inconsistent_system(rng):
    case = zoo.zero_lines(seed=1)
    with pytest.warns(rowcol.ConvergenceWarning, match="row of zeros"):
        result = rowcol.solve(case.X, case.y + rng.standard_normal(200), method="rk", random_state=0)
    assert result.status is Status.INCONSISTENT


def test_rows_stop_by_themselves_on_an_inconsistent_system():
    for noise in (1e-6, 1e-3, 1.0):
        case = zoo.tall_inconsistent(noise=noise)
        with pytest.warns(rowcol.ConvergenceWarning, match="use method='rcd'"):
            result = rowcol.solve(case.X, case.y, method="rk", tol=1e-9, random_state=0)
        assert result.status is Status.PLATEAU
        assert result.passes < 100
        assert result.solution == "not converged"


def test_a_slow_consistent_system_is_not_taken_for_an_inconsistent_one():
    case = zoo.flat_tail(n=200, outliers=10, scale=100.0)
    result = quiet(case.X, case.y, method="rk", random_state=0, max_passes=300)
    assert result.status is Status.PASSES


def test_auto_goes_on_where_rows_fail():
    case = zoo.rank_deficient_inconsistent()
    result = rowcol.solve(case.X, case.y, tol=1e-9, sampler="shuffled", random_state=0)
    close(result.x, case.answer, 1e-6)
    assert result.method.startswith("rk → ")
    assert "does not fall" in result.plan.learned[0] or "falls by 1 " in result.plan.learned[0]
    assert result.solution.startswith("minimum-norm least squares")
    assert result.history.passes == sorted(result.history.passes)
    assert result.history.passes[-1] == result.passes


@pytest.mark.parametrize("make", [zoo.tall_consistent, zoo.tall_inconsistent, zoo.wide])
def test_auto_follows_the_regimes(make):
    case = make()
    result = rowcol.solve(case.X, case.y, tol=1e-10, sampler="shuffled", random_state=0)
    close(result.x, case.answer, 1e-7)
    assert result.method.startswith("rk" if make is zoo.wide else "rcd")


def test_limits(rng):
    case = zoo.ill_conditioned(condition=1e4)
    with pytest.warns(rowcol.ConvergenceWarning, match="max_passes"):
        result = rowcol.solve(case.X, case.y, method="rcd", max_passes=7)
    assert result.status is Status.PASSES
    assert result.passes == 7
    assert result.steps == 7 * 30
    with pytest.warns(rowcol.ConvergenceWarning, match="max_seconds"):
        result = rowcol.solve(case.X, case.y, method="rcd", max_seconds=0.05, max_passes=1e9)
    assert result.status is Status.SECONDS
    assert result.seconds < 2.0


def test_a_callback_sees_progress_and_can_stop():
    case = zoo.ill_conditioned(condition=100.0)
    seen = []

    def callback(progress):
        seen.append(progress)
        return len(seen) == 5

    result = rowcol.solve(
        case.X, case.y, method="rcd", callback=callback, random_state=0
    )  # no warning: it was asked for
    assert result.status is Status.CALLBACK
    assert [p.passes for p in seen] == [1, 2, 3, 4, 5]
    np.testing.assert_array_equal(seen[-1].x, result.x)
    errors = [np.linalg.norm(case.X @ (p.x - case.answer)) for p in seen]
    assert errors == sorted(errors, reverse=True)


def test_rounding_is_told_from_slow_progress(rng):
    X, beta = rng.standard_normal((50, 5)), rng.standard_normal(5)
    with pytest.warns(rowcol.ConvergenceWarning, match="as good as float64"):
        result = rowcol.solve(X, X @ beta, method="rk", tol=1e-18, random_state=0)
    assert result.status is Status.ROUNDING
    close(result.x, beta, 1e-13)


@pytest.mark.parametrize("method", ["rk", "rcd", "rek", "auto"])
def test_nothing_asked_nothing_done(method):
    result = rowcol.solve(np.eye(3), np.zeros(3), method=method)
    assert result.success
    assert not result.x.any()
    assert result.certificate.value == 0


@pytest.mark.parametrize("method", ["rk", "rcd", "rek"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1), (2, 2)])
@pytest.mark.parametrize("store", [np.array, sp.csr_array])
def test_tiny_shapes(method, shape, store, rng):
    X = rng.standard_normal(shape)
    y = X @ rng.standard_normal(shape[1])
    result = rowcol.solve(store(X), y, method=method, tol=1e-9, random_state=0, max_passes=1e5)
    close(X @ result.x, y, 1e-8)
    if method != "rcd":
        close(result.x, np.linalg.pinv(X) @ y, 1e-7)


@pytest.mark.parametrize("method", ["rk", "rcd", "rek"])
def test_x_of_zeros(method):
    result = quiet(np.zeros((4, 3)), np.ones(4), method=method)
    assert not result.x.any()
    assert "inconsistent: row 0" in result.message


# --- seeds, threads, processes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["rk", "rcd", "rek", "auto"])
@pytest.mark.parametrize("sampler", ["auto", "uniform", "shuffled", "chunks"])
def test_same_seed_same_bits_whatever_watches(method, sampler, capsys, rng):
    X, Y = rng.standard_normal((200, 20)), rng.standard_normal((200, 5))
    base = quiet(X, Y, method=method, sampler=sampler, random_state=7, max_passes=20)
    for extra in ({"callback": lambda p: None}, {"progress": True}, {"n_jobs": 1}, {"n_jobs": 4}, {"max_seconds": 1e6}):
        again = quiet(X, Y, method=method, sampler=sampler, random_state=7, max_passes=20, **extra)
        np.testing.assert_array_equal(base.x, again.x)
        assert base.certificates == again.certificates
    if (method, sampler) != ("auto", "auto"):  # which takes a small system directly
        assert (quiet(X, Y, method=method, sampler=sampler, random_state=8, max_passes=20).x != base.x).any()


@pytest.mark.parametrize("method", ["rk", "rcd", "rek"])
def test_right_hand_sides_share_picks_and_stop_one_by_one(method, rng):
    X = rng.standard_normal((60, 12))
    Y = X @ rng.standard_normal((12, 4)) * np.array([1.0, 1e-3, 1.0, 1.0])
    Y[:, 2] = X[:, 0]
    Y[:, 3] = 0
    block = rowcol.solve(X, Y, method=method, tol=1e-9, random_state=3)
    assert block.x.shape == (12, 4)
    assert block.residual_norm.shape == (4,)
    for k in range(4):
        alone = rowcol.solve(X, Y[:, k], method=method, tol=1e-9, random_state=3)
        np.testing.assert_array_equal(block.x[:, k], alone.x)
        assert block.certificates[k] == alone.certificates[0]
    looks = [[i for _, i, _ in block.history.certificate].count(k) for k in range(4)]
    assert looks[3] >= 1
    assert np.isnan(block.history.energy[-1]).any() or len(block.history.energy) == 1


def test_calls_from_many_threads_agree_with_calls_one_by_one(rng):
    X, y = rng.standard_normal((300, 30)), rng.standard_normal(300)
    jobs = [(m, s) for m in ("rk", "rcd", "rek") for s in range(8)]

    def one(job):
        return rowcol.solve(X, y, method=job[0], random_state=job[1], max_passes=20).x

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with ThreadPoolExecutor(8) as pool:
            together = list(pool.map(one, jobs))
        alone = [one(job) for job in jobs]
    for a, b in zip(together, alone, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_can_solve(rng):
    X, y = rng.standard_normal((50, 5)), rng.standard_normal((50, 3))
    here = rowcol.solve(X, y, method="rcd", random_state=0, n_jobs=2).x
    pid = os.fork()
    if pid == 0:
        ok = np.array_equal(rowcol.solve(X, y, method="rcd", random_state=0, n_jobs=2).x, here)
        os._exit(0 if ok else 1)
    assert os.waitpid(pid, 0)[1] == 0


SCRIPT = """
import sys, warnings
import numpy as np
warnings.simplefilter("ignore")
import rowcol
import scipy.sparse as sp
rng = np.random.default_rng(0)
X, Y = rng.standard_normal((12, 5)), rng.standard_normal((12, 2))
kinds = {
    "dense": X,
    "sparse": sp.csr_array(np.where(X > 0, X, 0)),
    "single": X.astype("f4"),
    "complex": X + 1j * rng.standard_normal((12, 5)),
}
out = {}
for method in ("rk", "rcd", "rek"):
    for name, Z in kinds.items():
        for sampler in ("norms", "uniform", "shuffled", "chunks", "cyclic"):
            r = rowcol.solve(Z, Y, method=method, sampler=sampler, random_state=1, max_passes=3, tol=1e-14)
            out[f"{method} {name} {sampler}"] = r.x
np.savez(sys.argv[1], **out)
"""


def run_script(script, *args, **env):
    return subprocess.run(
        [sys.executable, "-c", script, *args], env={**os.environ, **env}, check=True, capture_output=True, text=True
    ).stdout


def test_other_processes_give_the_same_bits_and_no_jit_the_same_numbers(tmp_path):
    for name, env in (("one", {}), ("two", {}), ("nojit", {"NUMBA_DISABLE_JIT": "1"})):
        run_script(SCRIPT, str(tmp_path / f"{name}.npz"), **env)
    one, two, nojit = (np.load(tmp_path / f"{name}.npz") for name in ("one", "two", "nojit"))
    for key in one.files:
        np.testing.assert_array_equal(one[key], two[key])
        np.testing.assert_allclose(one[key], nojit[key], rtol=1e-6 if "single" in key else 1e-11, atol=1e-12)


@pytest.mark.parametrize(
    ("env", "n_jobs", "expected"),
    [
        ({"OMP_NUM_THREADS": "1"}, "None", 1),
        ({"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "7"}, "None", 1),
        ({}, "3", 3),
    ],
)
def test_threads_obey_the_environment_and_the_argument(env, n_jobs, expected):
    out = run_script(f"from rowcol.core.threads import count; print(count({n_jobs}))", **env)
    assert int(out) == expected


# --- starts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["rk", "rcd", "rek"])
@pytest.mark.parametrize("alpha", [0.0, 2.0])
def test_a_start_is_only_a_start(method, alpha, rng):
    """x0 does not change the goal (ridge does not penalise x − x0), is not changed, and a good one is used."""
    if method == "rek" and alpha:
        alpha = 0.0
    X = rng.standard_normal((60, 8))
    y = X @ rng.standard_normal(8) + (0 if method == "rk" and alpha == 0 else rng.standard_normal(60))
    truth = np.linalg.solve(X.T @ X + alpha * np.eye(8), X.T @ y)
    for x0 in (rng.standard_normal(8) * 100, truth, np.zeros(8), truth.astype(np.float32)):
        kept = x0.copy()
        result = rowcol.solve(X, y, alpha=alpha, method=method, x0=x0, tol=1e-10, random_state=0)
        close(result.x, truth, 1e-7)
        np.testing.assert_array_equal(x0, kept)
    assert rowcol.solve(X, y, alpha=alpha, method=method, x0=truth, tol=1e-10, random_state=0).steps == 0
    first = rowcol.solve(X, y, alpha=alpha, method=method, tol=1e-8, random_state=0)
    again = rowcol.solve(X, y, alpha=alpha, method=method, x0=first, tol=1e-8, random_state=0)
    assert again.steps == 0
    close(again.x, first.x, 1e-12)


def test_ridge_by_rows_restarts_exactly_from_a_result_along_a_path(rng):
    X, y = rng.standard_normal((30, 80)), rng.standard_normal(30)
    warm = cold = 0.0
    previous = None
    for alpha in (100.0, 90.0, 81.0):
        result = rowcol.solve(X, y, alpha=alpha, method="rk", x0=previous, tol=1e-10, random_state=0)
        close(result.x, X.T @ np.linalg.solve(X @ X.T + alpha * np.eye(30), y), 1e-8)
        warm += result.passes
        cold += rowcol.solve(X, y, alpha=alpha, method="rk", tol=1e-10, random_state=0).passes
        previous = result
    assert warm < cold


def test_a_start_that_spoils_the_minimum_norm_is_warned_about_and_not_claimed(rng):
    case = zoo.wide()
    with pytest.warns(rowcol.StartWarning, match="row space"):
        result = rowcol.solve(case.X, case.y, method="rk", x0=rng.standard_normal(300), tol=1e-9, random_state=0)
    assert result.success
    assert "minimum" not in result.solution
    assert result.dual is None
    assert np.linalg.norm(result.x) > 1.1 * np.linalg.norm(case.answer)
    first = rowcol.solve(case.X, case.y, method="rk", tol=1e-3, random_state=0)
    second = rowcol.solve(case.X, case.y, method="rk", x0=first, tol=1e-9, random_state=0)  # no warning
    assert second.solution == "minimum norm"
    close(second.x, case.answer, 1e-7)


@pytest.mark.parametrize("method", ["direct", "auto"])
def test_a_factor_forgets_the_start_and_is_not_warned_about(method, rng):
    """Warnings are errors here. A start that is a solution already is kept, and that is worth a warning."""
    case = zoo.wide()
    result = rowcol.solve(case.X, case.y, method=method, x0=rng.standard_normal(300))
    assert result.method == "direct"
    assert result.solution == "minimum norm"
    close(result.x, np.linalg.pinv(case.X) @ case.y, 1e-10)
    other = case.answer + np.linalg.svd(case.X)[2][-1]  # the last is orthogonal to all rows
    with pytest.warns(rowcol.StartWarning, match="row space"):
        kept = rowcol.solve(case.X, case.y, method=method, x0=other)
    np.testing.assert_allclose(kept.x, other)
    assert "minimum" not in kept.solution


# --- weights -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["rk", "rcd", "rek", "auto"])
@pytest.mark.parametrize("alpha", [0.0, 2.0])
@pytest.mark.parametrize("store", [np.array, sp.csr_array])
def test_weights_are_repetitions(method, alpha, store, rng):
    if method == "rek":
        alpha = 0.0
    w = rng.integers(0, 4, 40)
    X, noise = rng.standard_normal((40, 6)), rng.standard_normal(40)
    y = X @ rng.standard_normal(6) + (0 if method == "rk" and alpha == 0 else noise)
    y[w == 0] += 100 * noise[w == 0]  # rows of weight zero count for nothing
    Z, z = np.repeat(X, w, axis=0), np.repeat(y, w)
    truth = np.linalg.solve(Z.T @ Z + alpha * np.eye(6), Z.T @ z)
    result = rowcol.solve(store(X), y, alpha=alpha, method=method, sample_weight=w, tol=1e-11, random_state=0)
    close(result.x, truth, 1e-8)
    assert result.residual_norm == pytest.approx(np.linalg.norm(z - Z @ truth), rel=1e-6, abs=1e-8)
    if alpha:
        assert np.linalg.norm(result.x - truth) <= result.error_bound + 1e-13
        close(X.T @ result.dual, result.x, 1e-8)
    if method == "rk" and store is np.array:
        assert result.copied == 0


# --- looks and cost ------------------------------------------------------------------------------------------------


def test_result_reads_well(rng):
    X, y = rng.standard_normal((50, 5)), rng.standard_normal(50)
    result = rowcol.solve(X, y, alpha=1.0, method="rcd", random_state=0)
    text = repr(result)
    for word in ("CONVERGED", "ridge", "certificate", "error bound", "passes", "MB"):
        assert word in text
    assert "<table>" in result._repr_html_()
    assert max(len(line) for line in text.splitlines()) <= 110
    assert "&#x27;rcd&#x27;" in quiet(X, y, method="rk", random_state=0)._repr_html_()  # escaped


def test_progress_shows_on_stderr_only_when_asked(capsys):
    case = zoo.ill_conditioned(n=4000, p=300, condition=1e4)
    quiet(case.X, case.y, method="rcd", progress=True, max_seconds=1.6, max_passes=1e9)
    shown = capsys.readouterr()
    assert "passes" in shown.err
    assert shown.out == ""
    quiet(case.X, case.y, method="rcd", max_seconds=0.1, max_passes=1e9)
    assert capsys.readouterr().err == ""


def test_tall_consistent_systems_are_solved_before_every_row_was_seen():
    case = zoo.tall_consistent(n=100_000, p=10)
    result = rowcol.solve(case.X, case.y, method="rk", sampler="uniform", tol=1e-8, random_state=0)
    close(result.x, case.answer, 1e-6)
    assert result.passes < 0.1


MEMORY = """
import numpy as np, resource, sys, tracemalloc
import rowcol
method, order = sys.argv[1:]
rng = np.random.default_rng(0)
small = rng.standard_normal((50, 20))
rowcol.solve(np.asarray(small, order=order), small @ np.ones(20), method=method, random_state=0)
X = np.asarray(rng.standard_normal((200_000, 20)), order=order)
y = X @ np.ones(20)
tracemalloc.start()
result = rowcol.solve(X, y, method=method, random_state=0)
assert result.success
print(tracemalloc.get_traced_memory()[1] / X.nbytes, result.copied / X.nbytes)
"""


@pytest.mark.parametrize(
    ("method", "order", "copies"), [("rk", "C", 0), ("rcd", "F", 0), ("rcd", "C", 1), ("rek", "C", 1)]
)
def test_memory_is_a_few_vectors_and_the_copies_reported(method, order, copies):
    """X has 20 columns here, so that ten vectors of length n weigh half as much as X."""
    peak, copied = map(float, run_script(MEMORY, method, order).split())
    assert copied == copies
    assert peak < copies + 1.0


START = """
import sys, time
before, start = set(sys.modules), time.perf_counter()
import rowcol
imported = time.perf_counter() - start
foreign = {name.split(".")[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)
assert foreign == {"rowcol"}, f"import rowcol is not light: {foreign}"
assert {name for name in sys.modules if name.startswith("rowcol.")} == set()
begun = time.perf_counter()
import numpy as np
numpy = time.perf_counter() - begun
X = np.random.default_rng(0).standard_normal((300, 40))
rowcol.solve(X, X @ np.ones(40), method="rk", random_state=0)
dear = {"sklearn", "scipy.optimize", "scipy.stats", "dask", "matplotlib", "pandas", "pyarrow", "h5py", "typer", "rich"}
assert not dear & set(sys.modules), f"a solve loads {dear & set(sys.modules)}"
print(imported, numpy, time.process_time())
"""
HELP = """
import sys
from rowcol.__main__ import main
sys.argv = ["rowcol", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    assert end.code == 0
dear = {"numba", "sklearn", "scipy", "dask", "matplotlib", "pandas", "pyarrow", "h5py", "vl_convert"} & set(sys.modules)
assert not dear, f"help loads {dear}"
"""


def test_import_is_light_and_a_warm_start_is_quick():
    run_script(START)  # warms the cache
    times = [tuple(map(float, run_script(START).split())) for _ in range(3)]
    assert min(t[0] for t in times) < min(t[1] for t in times), "dearer than NumPy; it takes about a third of that"
    # of the processor, Python's start included, as others may share it; `make speed` prints seconds: 0.8 if quiet
    assert min(t[2] for t in times) < 2.0


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["solve", "--help"]])
def test_help_loads_nothing_that_solves(words):
    assert run_script(HELP, *words)


@pytest.mark.parametrize("method", ["rk", "rcd", "rek"])
def test_pieces_cut_differently_change_no_bit(method, rng, monkeypatch):
    """Several right-hand sides take shorter pieces; with tiny pieces everywhere every cut is exercised."""
    X, Y = rng.standard_normal((700, 30)), rng.standard_normal((700, 3))
    usual = quiet(X, Y, method=method, random_state=0, max_passes=30, n_jobs=1)
    monkeypatch.setattr("rowcol.core.view.PIECE", 1000)
    cut = quiet(X, Y, method=method, random_state=0, max_passes=30, n_jobs=1)
    np.testing.assert_array_equal(usual.x, cut.x)
    assert [c.value for c in usual.certificates] == [c.value for c in cut.certificates]


# --- what new users met first ----------------------------------------------------------------------------------------


def test_callbacks_may_return_anything_true(rng):
    X, beta = rng.standard_normal((50, 5)), rng.standard_normal(5)
    for stop in (np.True_, True, 1):
        result = rowcol.solve(X, X @ beta, method="rcd", callback=lambda p, stop=stop: stop, random_state=0)
        assert result.status is Status.CALLBACK
        assert result.passes == 1
    assert rowcol.solve(X, X @ beta, method="rcd", callback=lambda p: np.False_, random_state=0).success


@pytest.mark.parametrize("shape", [(300, 40), (300, 5), (3000, 5), (5, 300)])
@pytest.mark.parametrize("sampler", ["norms", "shuffled"])
@pytest.mark.parametrize("method", ["rk", "rcd", "rek"])
def test_limits_on_passes_are_kept_and_rounds_are_no_longer_than_said(method, sampler, shape, rng):
    X, y = rng.standard_normal(shape), rng.standard_normal(shape[0])
    one_step = 1 / min(shape)
    for limit in (0.5, 1, 2.5):
        result = quiet(X, y, method=method, sampler=sampler, max_passes=limit, tol=1e-14, random_state=0)
        assert result.passes <= limit + one_step
        assert result.status is not Status.PASSES or limit <= result.passes * (1 + 1e-9)
    rounds = np.diff([0, *quiet(X, y, method=method, sampler=sampler, max_passes=9, tol=1e-14).history.passes])
    assert rounds.max() <= (2 if method == "rek" and sampler == "shuffled" else 1) + one_step


def test_the_printed_figures_are_the_worst_of_all_right_hand_sides(rng):
    X = rng.standard_normal((60, 8))
    Y = rng.standard_normal((60, 5)) * np.geomspace(1, 1e4, 5)
    result = rowcol.solve(X, Y, alpha=1.0, random_state=0)
    assert f"{result.error_bound.max():.2e}, the worst of 5" in repr(result)
    assert f"{result.residual_norm.max():.6g}, the worst of 5" in repr(result)


def test_float32_answers_say_what_storing_them_adds(rng):
    X, y = rng.standard_normal((60, 8)).astype(np.float32), rng.standard_normal(60)
    result = rowcol.solve(X, y, alpha=1.0, tol=1e-11, random_state=0)
    assert "storing x as float32 can add" in result.message
    assert "storing" in repr(result)


def test_data_that_are_inconsistent_by_rounding_only_end_at_rounding(rng):
    """float32 y = Xβ is inconsistent by 1e-8: more passes would not help, and the advice must not be to take them."""
    X = rng.standard_normal((200, 20)).astype(np.float32)
    result = quiet(X, X @ np.ones(20, np.float32), tol=1e-12, random_state=0)
    assert result.status is Status.ROUNDING
    w = rng.integers(1, 4, 200)
    assert quiet(X, X[:, 0], alpha=1e-3, sample_weight=w, tol=1e-15, random_state=0).status is Status.ROUNDING


def test_solve_survives_pickling():
    code = "import pickle, rowcol; pickle.loads({!r}); print(callable(rowcol.solve))"
    import pickle

    assert run_script(code.format(pickle.dumps(rowcol.solve))).strip() == "True"
    result = rowcol.solve(np.eye(3), np.ones(3), random_state=0)
    again = pickle.loads(pickle.dumps(result))
    np.testing.assert_array_equal(again.x, result.x)
    assert again.certificate == result.certificate
    assert result == result
    assert result != again  # compared as objects: no ambiguous truth of arrays


def test_copies_of_all_routes_are_counted_when_auto_changes_its_mind():
    case = zoo.rank_deficient_inconsistent()
    result = rowcol.solve(np.asfortranarray(case.X), case.y, sampler="shuffled", random_state=0)
    assert result.method.startswith("rk → ")
    assert result.copied == case.X.nbytes  # rows needed a copy, the next route did not


def test_compiling_is_not_solving():
    """In a process with an empty cache the reported seconds are those of solving."""
    code = (
        "import numpy as np, rowcol, time; X = np.ones((20, 2)) + np.eye(20, 2); t = time.perf_counter();"
        "r = rowcol.solve(X, X @ np.ones(2), method='rk', max_seconds=1.0, random_state=0);"
        "print(time.perf_counter() - t, r.seconds, r.status.name)"
    )
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        total, seconds, status = run_script(code, NUMBA_CACHE_DIR=folder).split()
    assert status == "CONVERGED"
    assert float(seconds) < 0.6 * float(total)


def test_long_solves_of_short_rows_are_packed_and_the_copy_is_counted(rng, monkeypatch):
    X, y = rng.standard_normal((400, 6)), rng.standard_normal(400)
    settings = dict(method="rk", alpha=1.0, tol=1e-11, random_state=0)
    plain = rowcol.solve(X, y, **settings)
    monkeypatch.setattr("rowcol.core.view.PACKED_FROM", 0)
    packed = rowcol.solve(X, y, **settings)
    assert plain.passes > 3
    assert (plain.copied, packed.copied) == (0, X.nbytes)
    close(packed.x, plain.x, 1e-9)
    assert quiet(X, y, **{**settings, "max_passes": 2}).copied == 0


@pytest.mark.parametrize("known", [False, True])
def test_the_dual_of_weighted_ridge_is_that_of_the_answer_also_where_x0_was_one(known):
    rng = np.random.default_rng(0)
    X, y, w, alpha = rng.standard_normal((400, 30)), rng.standard_normal(400), rng.uniform(0.5, 2.0, 400), 3.0
    beta = np.linalg.solve(X.T @ (w[:, None] * X) + alpha * np.eye(30), X.T @ (w * y))
    result = rowcol.solve(X, y, alpha=alpha, sample_weight=w, method="direct", x0=beta if known else None)
    assert (result.passes == 0) == known
    np.testing.assert_allclose(result.dual, w * (y - X @ beta) / alpha, rtol=1e-9, atol=1e-12)
