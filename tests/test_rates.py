"""The bounds (25), (26), (36), (38) against the mean over many seeds, at every step; from both sides where tight."""

import numpy as np
import pytest

from oracle import as_given, close
from rowcol import zoo
from rowcol.core.sampler import sampler, take
from rowcol.core.view import beta, cols, rows, state, unknowns
from rowcol.engine.lines import descend

SEEDS = 200


def mean_errors(side, X, y, alpha, error, steps):
    """Mean and standard error, over seeds, of error(β, α) after 0, 1, ..., steps norm-weighted picks."""
    view = (rows if side == "rows" else cols)(as_given(X, y, alpha))
    m = view.b.shape[1]
    weights = np.array([np.linalg.norm(line) ** 2 for line in (X if side == "rows" else X.T)]) + alpha
    errors = np.empty((SEEDS, steps + 1))
    for seed in range(SEEDS):
        now = state(view)
        t = now.table
        picks = take(sampler("norms", m, np.random.SeedSequence(seed), weights), steps)
        errors[seed, 0] = error(beta(view, now)[0], unknowns(view, now)[0])
        for k in range(steps):
            descend(view.lines, t["diag"], t["lam"], t["b"], t["x"], now.s, picks[k : k + 1])
            errors[seed, k + 1] = error(beta(view, now)[0], unknowns(view, now)[0])
    return errors.mean(0), errors.std(0, ddof=1) / np.sqrt(SEEDS)


def under(mean, se, rate):
    bound = mean[0] * (1 - rate) ** np.arange(len(mean))
    assert (mean <= bound + 3 * se).all()
    return bound


def energy(A, x):
    return float(x @ A @ x)


def test_25_26_rows_and_columns_on_consistent_systems():  # (25), (26)
    case = zoo.tall_consistent(n=40, p=20, seed=3)
    X, y, truth = case.X, case.y, case.answer
    rate = np.linalg.eigvalsh(X.T @ X)[0] / np.sum(X**2)
    under(*mean_errors("rows", X, y, 0.0, lambda b, a: np.sum((b - truth) ** 2), 20), rate)
    under(*mean_errors("cols", X, y, 0.0, lambda b, a: np.sum((X @ (b - truth)) ** 2), 20), rate)


def test_26_holds_for_columns_on_inconsistent_systems():  # Section 4
    case = zoo.tall_inconsistent(n=40, p=20, seed=3)
    X, y, truth = case.X, case.y, case.answer
    rate = np.linalg.eigvalsh(X.T @ X)[0] / np.sum(X**2)
    under(*mean_errors("cols", X, y, 0.0, lambda b, a: np.sum((X @ (b - truth)) ** 2), 20), rate)


def test_25_is_met_from_both_sides_where_it_is_tight(rng):
    """With XᵀX = c I every direction shrinks alike, so that the bound is an equality in expectation."""
    X = 3.0 * np.linalg.qr(rng.standard_normal((40, 20)))[0]
    truth = rng.standard_normal(20)
    mean, se = mean_errors("rows", X, X @ truth, 0.0, lambda b, a: np.sum((b - truth) ** 2), 20)
    bound = mean[0] * (1 - 1 / 20) ** np.arange(21)
    assert (abs(mean - bound)[1:] <= 3 * se[1:]).all()
    assert (se[1:] < 0.05 * bound[1:]).all()  # so it can tell: a rate of 1/15 would be far outside
    assert abs(mean[0] * (1 - 1 / 15) ** 20 - mean[-1]) > 3 * se[-1]


@pytest.mark.parametrize(("n", "p"), [(40, 20), (20, 40)])
def test_35_36_ridge_by_rows(n, p, rng):  # (35), (36)
    X, y, lam = rng.standard_normal((n, p)), rng.standard_normal(n), 2.0
    A = X @ X.T + lam * np.eye(n)
    truth = np.linalg.solve(A, y)
    s2 = np.linalg.svd(X, compute_uv=False) ** 2
    rate = (lam if n > p else s2.min() + lam) / (s2.sum() + n * lam)  # the smallest singular value, not σ_1
    close(rate, np.linalg.eigvalsh(A)[0] / np.trace(A), 1e-10)
    under(*mean_errors("rows", X, y, lam, lambda b, a: energy(A, a - truth), p), rate)


@pytest.mark.parametrize(("n", "p"), [(40, 20), (20, 40)])
def test_37_38_ridge_by_columns(n, p, rng):  # (37), (38)
    X, y, lam = rng.standard_normal((n, p)), rng.standard_normal(n), 2.0
    A = X.T @ X + lam * np.eye(p)
    truth = np.linalg.solve(A, X.T @ y)
    s2 = np.linalg.svd(X, compute_uv=False) ** 2
    rate = (s2.min() + lam if n > p else lam) / (s2.sum() + p * lam)
    close(rate, np.linalg.eigvalsh(A)[0] / np.trace(A), 1e-10)
    under(*mean_errors("cols", X, y, lam, lambda b, a: energy(A, b - truth), p), rate)


@pytest.mark.slow
def test_section_4_horizon_as_corrected():
    """RK stays within ‖z‖²/σ_min(Σ) of β_LS in the mean; the bound as printed, with σ², is violated."""
    case = zoo.tall_inconsistent(n=400, p=10, noise=0.5, seed=1)
    X, y, truth = case.X, case.y, case.answer
    steps = 400
    z2, smallest = np.sum((y - X @ truth) ** 2), np.linalg.eigvalsh(X.T @ X)[0]
    mean, se = mean_errors("rows", X, y, 0.0, lambda b, a: np.sum((b - truth) ** 2), steps)
    bound = mean[0] * (1 - smallest / np.sum(X**2)) ** np.arange(steps + 1)
    assert (mean <= bound + z2 / smallest + 3 * se).all()
    assert mean[-1] - 3 * se[-1] > bound[-1] + z2 / smallest**2
