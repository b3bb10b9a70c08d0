"""Traps that an adversarial reading found, each with its truth."""

import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import rowcol
from oracle import close
from rowcol import Status, zoo


def quiet(*args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rowcol.ConvergenceWarning)
        warnings.simplefilter("ignore", rowcol.StartWarning)
        return rowcol.solve(*args, **kwargs)  # any other warning is an error


def weighted_ridge(X, y, w, alpha):
    return np.linalg.solve((X * w[:, None]).conj().T @ X + alpha * np.eye(X.shape[1]), X.conj().T @ (w * y))


@pytest.mark.parametrize("method", ["rk", "rcd"])
def test_a_warm_start_does_not_carry_rows_of_weight_zero(method, rng):
    X, y, w = rng.standard_normal((30, 8)), rng.standard_normal(30), np.ones(30)
    w[:10] = 0
    first = rowcol.solve(X, y, alpha=1.0, method="rk", random_state=0)
    result = rowcol.solve(X, y, alpha=1.0, method=method, sample_weight=w, x0=first, random_state=0)
    assert np.linalg.norm(result.x - weighted_ridge(X, y, w, 1.0)) <= result.error_bound < 1e-4


@pytest.mark.parametrize("method", ["rk", "rek"])
def test_minimum_norm_is_claimed_only_from_the_row_space_of_this_system(method, rng):
    X, y = rng.standard_normal((8, 30)), rng.standard_normal(8)
    w = np.r_[np.zeros(4), np.ones(4)]
    starts = [
        (rowcol.solve(rng.standard_normal((8, 30)), y, method="rk", random_state=0), None),  # another X
        (quiet(X, y, method="rcd", alpha=1e-3, tol=1e-10, max_passes=1, random_state=0), None),  # x is not Xᴴ dual
        (rowcol.solve(X, y, method="rk", tol=1e-10, random_state=0), w),  # rows that no longer count
        (rowcol.solve(X, y, method="rk", tol=1e-10, random_state=0), np.full(8, 2.0)),
    ]
    for x0, weight in starts:
        result = quiet(X, y, method=method, x0=x0, sample_weight=weight, tol=1e-10, random_state=0)
        kept = slice(None) if weight is None else weight > 0
        assert result.solution == "minimum norm"
        close(result.x, np.linalg.pinv(X[kept]) @ y[kept], 1e-7)
        close(X.T @ result.dual, result.x, 1e-7)


def test_columns_too_small_to_square_are_refused_with_weights_too():
    X = np.array([[1.0, 2], [3, 4], [5, 7]]) * 1e-170
    for method in ("rk", "rcd", "rek"):
        with pytest.raises(ValueError, match=r"so small|rescale"):
            rowcol.solve(X, X @ [1.0, 1], method=method, sample_weight=np.ones(3))


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_weights_do_not_round_single_precision_data(dtype, alpha, rng):
    """y nearly all residual, so that rounding √w·X would show."""
    X = (np.abs(rng.standard_normal((60, 4))) + 1).astype(dtype)
    w, z = rng.uniform(0.1, 3, 60), rng.standard_normal(60)
    Xd, root = X.astype(np.complex128 if dtype == np.complex64 else float), np.sqrt(w)
    Q = np.linalg.qr(root[:, None] * Xd)[0]
    y = (root * z - Q @ (Q.conj().T @ (root * z))) / root + Xd @ np.full(4, 1e-6)
    result = rowcol.solve(X, y, method="rcd", alpha=alpha, sample_weight=w, tol=1e-12, max_passes=1e5, random_state=0)
    c = result.certificate
    r = y - Xd @ result.x
    if alpha:
        error = np.linalg.norm(result.x - weighted_ridge(Xd, y, w, alpha))
        assert error <= result.error_bound + 1e-16
    else:
        columns = np.linalg.norm(root[:, None] * Xd, axis=0)
        angle = (abs(Xd.conj().T @ (w * r)) / columns).max() / np.linalg.norm(root * r)
        assert angle <= c.value + c.storing + 1e-15


def test_answers_that_no_precision_can_hold_are_refused(rng):
    X = rng.standard_normal((20, 4))
    with pytest.raises(ValueError, match="too large or too small for float64"):
        rowcol.solve(X * 1e140, X @ np.ones(4) * 1e-200)
    with pytest.raises(ValueError, match="too large or too small for float32"):
        rowcol.solve(X.astype(np.float32), rng.standard_normal(20) * 1e-50, alpha=1.0)
    result = rowcol.solve(X.astype(np.float32), X @ np.ones(4) * 1e-41, method="rcd", random_state=0)
    assert result.certificate.storing > 1e-6  # stored in subnormal numbers, and said so
    assert "storing" in result.message


@pytest.mark.parametrize("seed", range(8))
def test_slow_consistent_systems_are_not_called_inconsistent(seed):
    X = np.array([[1, 0.0], [1, 0.01]])  # condition 200
    assert quiet(X, X @ [1.0, 1], method="rk", random_state=seed, max_passes=2000).status is Status.PASSES
    rng = np.random.default_rng(402374 + seed)
    Z = rng.standard_normal((5, 5))
    assert quiet(Z, Z @ rng.standard_normal(5), method="rk", random_state=seed).status is not Status.PLATEAU
    n, p = (int(v) for v in rng.integers(5, 40, 2))
    r = min(n, p)
    U, V = (np.linalg.qr(rng.standard_normal((k, r)))[0] for k in (n, p))
    S = U * np.geomspace(1, 10 ** -rng.uniform(1, 2.5), r) @ V.T
    for limit in (53, 1000):
        status = quiet(S, S @ rng.standard_normal(p), method="rk", random_state=seed, tol=1e-9, max_passes=limit).status
        assert status in (Status.CONVERGED, Status.PASSES)


def test_a_sampler_that_never_picks_most_rows_is_not_a_plateau(rng):
    X = rng.standard_normal((20, 5))
    result = quiet(X, X @ np.ones(5), method="rk", sampler=np.r_[1.0, np.zeros(19)], max_passes=100)
    assert result.status is Status.PASSES
    assert "never picked" in result.message


def test_auto_stops_when_the_callback_says_so():
    rng = np.random.default_rng(0)
    U, _, V = np.linalg.svd(rng.standard_normal((60, 80)), full_matrices=False)
    B = U @ np.diag(np.logspace(0, -3, 60)) @ V
    B[30:] = B[:30]
    Y = np.column_stack([B @ rng.standard_normal(80), rng.standard_normal(60)])
    calls = []

    def callback(progress):
        calls.append(progress.x.shape)
        return len(calls) >= 12

    quiet(B, Y, random_state=0, sampler="shuffled", tol=1e-10, callback=callback)
    assert len(calls) == 12
    assert set(calls) == {(80, 2)}


def test_auto_redoes_only_the_right_hand_sides_that_need_it(rng):
    A = rng.standard_normal((30, 40))
    A[15:] = A[:15]
    Y = np.column_stack([A @ rng.standard_normal(40), rng.standard_normal(30)])
    both = rowcol.solve(A, Y, random_state=0, sampler="shuffled", tol=1e-9)
    for k in range(2):
        alone = rowcol.solve(A, Y[:, k], random_state=0, sampler="shuffled", tol=1e-9)
        np.testing.assert_allclose(both.x[:, k], alone.x, rtol=1e-6, atol=1e-8)
        assert both.statuses[k] is alone.status is Status.CONVERGED
    close(both.x, np.linalg.pinv(A) @ Y, 1e-6)
    assert len(both.history.energy[-1]) == 2
    seen = []
    rowcol.solve(A, Y[:, 1], random_state=0, tol=1e-9, callback=lambda p: seen.append(p.passes))
    assert seen == sorted(seen)


def test_a_row_of_zeros_concerns_only_its_own_right_hand_side(rng):
    X = rng.standard_normal((20, 40))
    X[3] = 0
    Y = X @ rng.standard_normal((40, 2))
    Y[3, 0] = 1
    assert quiet(X, Y, method="rk", max_passes=3, random_state=0).statuses == [Status.INCONSISTENT, Status.PASSES]


@pytest.mark.parametrize("method", ["rk", "rcd", "rek"])
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_where_y_is_zero_so_is_the_answer_wherever_one_starts(method, alpha, rng):
    X = rng.standard_normal((30, 8))
    result = rowcol.solve(X, np.zeros(30), method=method, alpha=0.0 if method == "rek" else alpha, x0=np.ones(8))
    assert result.success
    assert not result.x.any()
    Y = np.column_stack([X @ np.ones(8), np.zeros(30)])
    block = rowcol.solve(X, Y, method=method, x0=np.ones((8, 2)), random_state=0)
    close(block.x[:, 0], np.ones(8), 1e-4)
    assert not block.x[:, 1].any()


@pytest.mark.parametrize("p", [1, 2, 3, 5])
@pytest.mark.parametrize("kind", [float, complex])
def test_threads_change_no_bit_for_short_lines_either(p, kind, rng):
    Z = rng.standard_normal((3000, p)).astype(kind)
    if kind is complex:
        Z = Z + 1j * rng.standard_normal((3000, p))
    Y = rng.standard_normal((3000, 2))
    for method, X in (("rk", Z), ("rcd", Z[: max(p, 2)])):
        for sampler in ("shuffled", "uniform", "norms"):
            settings = dict(method=method, sampler=sampler, random_state=0, max_passes=5)
            y = Y[: len(X)]
            one, two = quiet(X, y, n_jobs=1, **settings), quiet(X, y, n_jobs=2, **settings)
            np.testing.assert_array_equal(one.x, two.x)


def test_looking_for_rows_of_zeros_is_quick_and_complete(rng):
    A = sp.random_array((50_000, 100), density=0.05, format="csc", rng=rng)
    y = A @ rng.standard_normal(100)
    rowcol.solve(A, y, random_state=0, sample_weight=np.ones(50_000))
    start = time.perf_counter()
    rowcol.solve(A, y, random_state=0, sample_weight=np.ones(50_000))
    assert time.perf_counter() - start < 2.0
    X = np.ones((3000, 1))
    X[2900] = 0
    result = rowcol.solve(X, np.r_[np.tile([1.0, -1.0], 1450), 5.0, np.zeros(99)], method="rcd")  # β = 0
    assert "row 2900" in result.message


LEGAL = {
    "alpha 1e100 with x0": dict(alpha=1e100, x0=np.ones(8)),
    "weights 1e160": dict(sample_weight=np.full(30, 1e160)),
    "weights 1e300": dict(sample_weight=np.full(30, 1e300)),
    "weights 1e-290": dict(sample_weight=np.full(30, 1e-290)),
    "tiny y with x0": dict(scale=1e-5, x0=np.ones(8)),
}


@pytest.mark.parametrize("method", ["rk", "rcd", "rek"])
@pytest.mark.parametrize("name", LEGAL)
def test_extreme_but_legal(name, method, rng):
    settings = dict(LEGAL[name])
    scale, alpha = settings.pop("scale", 1.0), settings.pop("alpha", 0.0)
    if alpha and method == "rek":
        alpha = 0.0
    X, beta = rng.standard_normal((30, 8)), rng.standard_normal(8) * scale
    result = quiet(X, X @ beta, alpha=alpha, method=method, tol=1e-8, random_state=0, **settings)
    assert result.success
    if not alpha:
        close(result.x, beta, 1e-6)


@pytest.mark.parametrize(
    "settings", [dict(x0=np.full(8, 1e200)), dict(scale=1e-160, x0=np.ones(8)), dict(scale=1e-310, x0=np.ones(8))]
)
def test_starts_beyond_all_measure_are_named(settings, rng):
    X = rng.standard_normal((30, 8))
    settings = dict(settings)
    y = X @ np.ones(8) * settings.pop("scale", 1.0)
    with pytest.raises(ValueError, match="x0 is too large beside y"):
        rowcol.solve(X, y, method="rcd", **settings)


def test_errors_do_not_blame_x_for_alpha(rng):
    X = rng.standard_normal((30, 8))
    with pytest.raises(ValueError, match="rescale X, y, alpha, x0 or sample_weight"):
        rowcol.solve(X, X @ np.ones(8), alpha=1e300, method="rcd", x0=np.full(8, 1e100))


def test_a_dual_that_overflows_is_left_out(rng):
    X = rng.standard_normal((30, 8)).astype(np.float32)
    y = rng.standard_normal(30) * 1e36
    result = rowcol.solve(X, y, alpha=1e-6, method="rcd", random_state=0)
    assert result.dual is None
    rowcol.solve(X, y, alpha=1.0, method="rk", x0=result, random_state=0)


def test_a_view_of_a_view_is_used_in_place(rng):
    A = rng.standard_normal((8, 30))
    assert rowcol.solve(A.T, np.ones(30), method="rcd", random_state=0).copied == 0
    assert rowcol.solve(A[:, :], np.ones(8), method="rk", random_state=0).copied == 0


def test_inconsistency_is_found_also_where_the_horizon_is_far_above_the_least_residual():
    for noise in (0.1, 1.0):
        case = zoo.tall_inconsistent(n=120, p=100, noise=noise)
        assert quiet(case.X, case.y, method="rk", tol=1e-10, random_state=0).status is Status.PLATEAU
