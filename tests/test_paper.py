"""Every numbered equation of the paper, as a test. Numbers are those LaTeX prints; the map is docs/paper.md."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle import (
    close,
    coordinate_descent,
    extended_kaczmarz,
    jump,
    kaczmarz,
    last,
    psd_descent,
    ridge_rows,
    walk,
)
from rowcol import zoo


@pytest.fixture
def tall():
    return zoo.tall_consistent(n=60, p=12, seed=1)


@pytest.fixture
def noisy():
    return zoo.tall_inconsistent(n=60, p=12, seed=2)


def sums(X, y, lam, beta):
    return np.linalg.norm(y - X @ beta) ** 2 + lam * np.linalg.norm(beta) ** 2


# --- what is solved: (1)-(3), (8)-(12), (16), (17) ---------------------------------------------------------------


def test_1_the_system(tall):  # (1)
    close(tall.X @ tall.answer, tall.y)


def test_2_least_squares_cannot_be_improved(noisy, rng):  # (2)
    best = sums(noisy.X, noisy.y, 0, noisy.answer)
    for scale in (1e-3, 1.0):
        other = noisy.answer + scale * rng.standard_normal(12)
        assert sums(noisy.X, noisy.y, 0, other) > best


def test_3_minimum_norm_cannot_be_improved(rng):  # (3)
    case = zoo.wide(n=10, p=30)
    null = np.linalg.svd(case.X)[2][10:]
    for _ in range(5):
        other = case.answer + rng.standard_normal(20) @ null
        close(case.X @ other, case.y, 1e-10)
        assert np.linalg.norm(other) > np.linalg.norm(case.answer)


def test_8_9_10_closed_forms(tall, noisy):  # (8), (9), (10)
    for case in (tall, noisy):
        close(np.linalg.inv(case.X.T @ case.X) @ case.X.T @ case.y, case.answer, 1e-10)
    case = zoo.wide(n=10, p=30)
    close(case.X.T @ np.linalg.inv(case.X @ case.X.T) @ case.y, case.answer, 1e-10)


def test_11_12_ridge_has_two_closed_forms(noisy, rng):  # (11), (12)
    X, y, lam = noisy.X, noisy.y, 3.0
    one = np.linalg.solve(X.T @ X + lam * np.eye(12), X.T @ y)
    two = X.T @ np.linalg.solve(X @ X.T + lam * np.eye(60), y)
    close(one, two, 1e-10)
    other = one + 0.01 * rng.standard_normal(12)
    assert sums(X, y, lam, other) > sums(X, y, lam, one)


def test_16_17_kernel_ridge_with_the_linear_kernel_is_ridge(noisy):  # (16), (17)
    X, y, lam = noisy.X, noisy.y, 3.0
    f = X @ X.T @ np.linalg.solve(X @ X.T + lam * np.eye(60), y)  # Φᵀ(K + λI)⁻¹y at the points
    close(f, X @ np.linalg.solve(X.T @ X + lam * np.eye(12), X.T @ y), 1e-10)


# --- the steps ------------------------------------------------------------------------------------------------


def test_4_5_kaczmarz_step_satisfies_the_picked_row(tall, rng):  # (4), (5)
    picks = rng.integers(0, 60, 200)
    for i, mine, theirs in zip(
        picks,
        walk("rows", tall.X, tall.y, picks),
        kaczmarz(tall.X, tall.y, picks, np.zeros(12)),
        strict=True,
    ):
        close(mine[0], theirs)
        assert abs(tall.X[i] @ mine[0] - tall.y[i]) < 1e-12


def test_6_7_coordinate_step_zeroes_the_partial_derivative(noisy, rng):  # (6), (7)
    picks = rng.integers(0, 12, 200)
    for j, mine, theirs in zip(
        picks,
        walk("cols", noisy.X, noisy.y, picks),
        coordinate_descent(noisy.X, noisy.y, picks, np.zeros(12)),
        strict=True,
    ):
        close(mine[0], theirs)
        assert abs(noisy.X[:, j] @ (noisy.y - noisy.X @ mine[0])) < 1e-10


def test_13_15_ridge_by_rows(noisy, rng):  # (13), (14), (15) = (27), (28), (29)
    picks = rng.integers(0, 60, 300)
    for mine, theirs in zip(
        walk("rows", noisy.X, noisy.y, picks, alpha=2.0), ridge_rows(noisy.X, noisy.y, 2.0, picks), strict=True
    ):
        close(mine[1], theirs[0])
        close(mine[0], theirs[1])


def test_18_30_31_kernel_updates_with_the_linear_kernel_are_ridge_by_rows(noisy, rng):  # (18), (30), (31)
    X, y, lam = noisy.X, noisy.y, 2.0
    K, picks = X @ X.T, rng.integers(0, 60, 150)
    a18, a30, a31 = np.zeros(60), np.zeros(60), np.zeros(60)
    for i, mine in zip(picks, walk("rows", X, y, picks, alpha=lam), strict=True):
        a18[i] = (y[i] - K[i] @ a18 + K[i, i] * a18[i]) / (K[i, i] + lam)  # y_i, where the paper prints y
        a30[i] = K[i, i] / (K[i, i] + lam) * a30[i] + (y[i] - K[i] @ a30) / (K[i, i] + lam)
        a31[i] = (a31[i] + (y[i] - K[i] @ a31) / K[i, i]) / (1 + lam / K[i, i])
        for a in (a18, a30, a31):
            close(mine[1], a, 1e-11)


def test_19_22_updates_through_the_residual(tall, rng):  # (19), (20), (21), (22)
    X, y, truth = tall.X, tall.y, tall.answer
    before = np.zeros(12)
    for i, mine in zip(*[(q := rng.integers(0, 60, 50)), walk("rows", X, y, q)], strict=True):
        r = y - X @ before
        close(mine[0], before + np.eye(60)[i] @ r / (X[i] @ X[i]) * X[i])
        close(X @ mine[0], X @ before + X[i] @ (truth - before) / (X[i] @ X[i]) * X @ X[i])
        before = mine[0]
    before = np.zeros(12)
    for j, mine in zip(*[(q := rng.integers(0, 12, 50)), walk("cols", X, y, q)], strict=True):
        r, c = y - X @ before, X[:, j]
        close(mine[0], before + c @ r / (c @ c) * np.eye(12)[j])
        close(X @ mine[0], X @ before + c @ X @ (truth - before) / (c @ c) * c)
        before = mine[0]


def test_32_34_ridge_by_columns(noisy, rng):  # (32), (33), (34)
    X, y, lam = noisy.X, noisy.y, 2.0
    b32, b33, b34 = np.zeros(12), np.zeros(12), np.zeros(12)
    for i, mine in zip(*[(q := rng.integers(0, 12, 100)), walk("cols", X, y, q, alpha=lam)], strict=True):
        c = X[:, i]
        c2 = c @ c
        b32[i] += (c @ y - c @ X @ b32 - lam * b32[i]) / (c2 + lam)
        b33[i] = c2 / (c2 + lam) * b33[i] + c @ (y - X @ b33) / (c2 + lam)
        b34[i] = (b34[i] + c @ (y - X @ b34) / c2) / (1 + lam / c2)
        for b in (b32, b33, b34):
            close(mine[0], b, 1e-11)


# --- Pythagoras and the table of Section 3, exactly ------------------------------------------------------------


def test_23_pythagoras_for_rows(tall, rng):  # (23)
    before = np.zeros(12)
    for mine in walk("rows", tall.X, tall.y, rng.integers(0, 60, 200)):
        beta = mine[0]
        left = np.linalg.norm(beta - tall.answer) ** 2
        right = np.linalg.norm(before - tall.answer) ** 2 - np.linalg.norm(beta - before) ** 2
        assert abs(left - right) <= 1e-13 * np.linalg.norm(tall.answer) ** 2
        before = beta


def test_24_pythagoras_for_columns_also_where_inconsistent(noisy, rng):  # (24)
    X, fit = noisy.X, noisy.X @ noisy.answer
    before = np.zeros(60)
    for mine in walk("cols", X, noisy.y, rng.integers(0, 12, 200)):
        now = X @ mine[0]
        left = np.linalg.norm(now - fit) ** 2
        right = np.linalg.norm(before - fit) ** 2 - np.linalg.norm(now - before) ** 2
        assert abs(left - right) <= 1e-13 * np.linalg.norm(fit) ** 2
        before = now


@given(st.integers(0, 10_000))
def test_section_3_one_step_expectations_by_enumeration(seed):
    """Every possible pick, with its probability: both columns of the side-by-side table hold as equalities."""
    rng = np.random.default_rng(seed)
    case = zoo.tall_consistent(n=int(rng.integers(6, 15)), p=int(rng.integers(2, 6)), seed=seed)
    X, y, truth = case.X, case.y, case.answer
    start, total = rng.standard_normal(X.shape[1]), np.sum(X**2)
    error = start - truth
    expected = 0.0
    for i in range(len(y)):
        beta = next(walk("rows", X, y, [i], s=start[None]))[0]
        expected += X[i] @ X[i] / total * np.linalg.norm(beta - truth) ** 2
    factor = 1 - np.linalg.norm(X @ error) ** 2 / total / (error @ error)
    assert expected == pytest.approx(factor * (error @ error), rel=1e-11)
    smallest = np.linalg.eigvalsh(X.T @ X)[0]
    assert factor <= 1 - smallest / total + 1e-12
    expected, fit = 0.0, np.linalg.norm(X @ error) ** 2
    for j in range(X.shape[1]):
        beta = next(walk("cols", X, y, [j], x=start[None], s=(X @ start - y)[None]))[0]
        expected += X[:, j] @ X[:, j] / total * np.linalg.norm(X @ (beta - truth)) ** 2
    factor = 1 - np.linalg.norm(X.T @ X @ error) ** 2 / total / fit
    assert expected == pytest.approx(factor * fit, rel=1e-11)
    assert factor <= 1 - smallest / total + 1e-12


# --- one method: Section 6 -------------------------------------------------------------------------------------


def test_rows_are_coordinate_descent_on_the_gram_matrix(noisy, rng):
    X, y, lam = noisy.X, noisy.y, 1.5
    picks = rng.integers(0, 60, 200)
    for mine, x in zip(
        walk("rows", X, y, picks, alpha=lam),
        psd_descent(X @ X.T + lam * np.eye(60), y, picks, np.zeros(60)),
        strict=True,
    ):
        close(mine[1], x, 1e-11)
        close(mine[0], X.T @ x, 1e-11)


def test_columns_are_coordinate_descent_on_the_covariance(noisy, rng):
    X, y = noisy.X, noisy.y
    picks = rng.integers(0, 12, 200)
    for mine, x in zip(walk("cols", X, y, picks), psd_descent(X.T @ X, X.T @ y, picks, np.zeros(12)), strict=True):
        close(mine[0], x, 1e-11)


@pytest.mark.parametrize("kind", [float, complex])
def test_extended_kaczmarz_as_published(kind, rng):
    X, y = rng.standard_normal((30, 8)).astype(kind), rng.standard_normal(30).astype(kind)
    if kind is complex:
        X, y = X + 1j * rng.standard_normal((30, 8)), y + 1j * rng.standard_normal(30)
    pairs = np.stack([rng.integers(0, 8, 200), rng.integers(0, 30, 200)], axis=1)
    woven = (pairs + [0, 8]).ravel()  # columns first, then rows
    mine = list(walk("both", X, y, woven))[1::2]
    for m, theirs in zip(mine, extended_kaczmarz(X, y, pairs), strict=True):
        close(m[0], theirs, 1e-11)
    close(jump("both", X, y, woven)[0][0], last(extended_kaczmarz(X, y, pairs)), 1e-11)


@pytest.mark.parametrize("side", ["rows", "cols"])
def test_complex_steps(side, rng):
    X = rng.standard_normal((30, 8)) + 1j * rng.standard_normal((30, 8))
    y = rng.standard_normal(30) + 1j * rng.standard_normal(30)
    m = 30 if side == "rows" else 8
    picks = rng.integers(0, m, 100)
    truth = (kaczmarz if side == "rows" else coordinate_descent)(X, y, picks, np.zeros(8, complex))
    for mine, theirs in zip(walk(side, X, y, picks), truth, strict=True):
        close(mine[0], theirs, 1e-11)
