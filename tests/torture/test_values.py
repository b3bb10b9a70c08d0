"""Whatever numbers X, y, weights and penalties hold: a true answer, or an error that says what to do."""

import re
from collections import Counter

import numpy as np
import precise
import pytest
import scipy.linalg as sl
import trial
from hostile import MATRICES, NAMES, Case, case, ordinary
from mpmath import mp

import rowcol
from test_honesty import METHODS, forged


@pytest.mark.parametrize("method", METHODS)
def test_every_value_is_answered_truly_or_refused(method, amount, tally):
    counts = Counter()
    for number in range(amount(1, 30)):
        for name in NAMES:
            counts.update({"cases": 1} | trial.held(case(name, number, method), method))
    assert counts["converged"] >= (0.1 if method in ("subset", "rek") else 0.25) * counts["cases"]
    assert counts["refused for X"] >= 5  # and with the right words
    trial.noted(tally, "values", counts)


def plain(X, y, alpha=0.0, weight=None, intercept=False, tol=1e-8):
    return Case("plain", X, y, alpha, weight, intercept, tol, 200, "plain")


RNG = np.random.default_rng(5)
TALL, NOISE = RNG.standard_normal((20, 4)), RNG.standard_normal(20)
PLAIN = {
    "residual": plain(TALL, TALL @ np.ones(4)),
    "gradient": plain(TALL, NOISE),
    "gap": plain(TALL, NOISE, alpha=1.0),
    "gap, weights and intercept": plain(TALL + 5, NOISE, 1.0, RNG.uniform(0.5, 2, 20), True),
}


@pytest.mark.parametrize("kind", PLAIN)
def test_the_second_opinion_sees_what_is_wrong(kind):
    """Every lie about a certificate is found."""
    one = PLAIN[kind]
    given = dict(alpha=one.alpha, sample_weight=one.weight, fit_intercept=one.intercept, tol=one.tol)
    good = rowcol.solve(one.X, one.y, method="rcd", random_state=0, **given)
    c = good.certificate
    assert precise.certified(one, good) == (1, 1)
    lies = [
        dict(x=good.x * (1 + 1e-6)),
        dict(residual_norm=c.residual_norm + 1e-9),
        dict(gradient_norm=c.gradient_norm + 1e-9),
        dict(gradient_norm=np.inf),
        dict(value=(c.value - c.rounding) * (1 - 1e-6)),
        dict(value=1.0),
        dict(statuses=[rowcol.Status.PASSES]),
    ]
    if one.alpha:
        with mp.workprec(400):
            error = precise.norm(precise.lifted(good.x) - precise.exact(*one[1:6]).beta[:, 0])
        assert error <= c.error_bound
        lies += [dict(error_bound=float(error) * 0.999), dict(error_bound=-1.0)]
    if one.intercept:
        lies.append(dict(intercept=good.intercept + 1e-12))
    for lie in lies:
        with pytest.raises(AssertionError):
            precise.certified(one, forged(good, **lie))


def test_the_second_opinion_is_right():
    """Against the inverse of Hilbert's matrix, whose entries are whole numbers, and ranks that are known."""
    with mp.workprec(400):
        H = np.array([[mp.mpf(1) / (i + j + 1) for j in range(8)] for i in range(8)], object)
        inverse = precise.solved(H, precise.lifted(np.eye(8)))
        assert abs(inverse - precise.lifted(sl.invhilbert(8, exact=True))).max() < mp.mpf(10) ** -80
        y = np.array([1.0, -2.0, 4.0])
        truth = precise.exact(np.diag([2.0**500, 1.0, 2.0**-500]), y, 1.0, None, False)
        d = precise.lifted([2.0**500, 1.0, 2.0**-500])
        assert (abs(truth.beta[:, 0] / (d * precise.lifted(y) / (d * d + 1)) - 1) < mp.mpf(10) ** -80).all()
    X = RNG.standard_normal((6, 3))
    assert precise.full_rank(X)
    assert precise.full_rank(X * (1 + 2j))
    assert precise.full_rank(np.hstack([X, X[:, :1] * (1 + np.eye(6)[:, :1] * 2.0**-50)]))
    assert not precise.full_rank(np.hstack([X, 4 * X[:, :1]]))
    assert not precise.full_rank(X, weight=np.array([1.0, 1, 0, 0, 0, 0]))
    assert not precise.full_rank(np.hstack([X, np.full((6, 1), 0.1)]), intercept=True)


def test_what_is_no_answer_is_seen(monkeypatch):
    """A changed input, another warning, a hang, an error that helps nobody, and one for no reason."""
    one, solve = PLAIN["gap"], rowcol.solve

    def wrongly(wrong, words):
        monkeypatch.setattr(rowcol, "solve", wrong)
        with pytest.raises(AssertionError, match=words):
            trial.held(one, "rcd")

    def change(X, y, **more):
        found = solve(X, y, **more)
        y[0] += 1.0
        return found

    def fail(error):
        def wrong(X, y, **more):
            raise error

        return wrong

    def hang(X, y, **more):
        while True:
            pass

    wrongly(change, "changed")
    one = PLAIN["gradient"]
    wrongly(lambda X, y, **more: (np.float64(1e300) * np.float64(1e300), solve(X, y, **more))[1], "overflow")
    wrongly(lambda X, y, **more: solve(X, y, **more | dict(max_passes=0.5)) and solve(X, y, **more), "Convergence")
    wrongly(fail(ZeroDivisionError("division of X by zero")), "ZeroDivisionError")
    wrongly(fail(np.linalg.LinAlgError("SVD of X did not converge")), "LinAlgError")
    wrongly(fail(ValueError("array must not contain infs or NaNs")), "infs or NaNs")
    wrongly(fail(ValueError("X is wrong.\nVery wrong: mend it, please")), "Very wrong")
    wrongly(fail(ValueError("X has values that are too large: rescale it")), "for nothing")
    monkeypatch.setattr(trial, "HUNG", 0.05)
    wrongly(hang, "still busy")
    monkeypatch.setattr(rowcol, "solve", solve)
    assert trial.held(one, "rcd")["converged"]


def test_cases_are_what_they_say():
    """The same in every run; and hostile, each in its own way."""
    first, again = case("Kahan", 3, "cg"), case("Kahan", 3, "cg")
    assert first.label == again.label
    assert np.array_equal(first.dense, again.dense)
    assert np.array_equal(first.y, again.y)
    rng = np.random.default_rng(0)
    made = {name: MATRICES[name](rng, 9, 6) for name in NAMES}
    assert np.linalg.cond(made["Hilbert"]) > 1e6
    assert np.linalg.cond(made["Läuchli 1e-8"]) > 1e8
    assert np.linalg.cond(made["columns nearly twice"]) > 1e14
    assert np.linalg.matrix_rank(made["rank 1 over 16"], tol=1e-3) == 1
    assert np.signbit(made["negative zeros"]).all()
    spread = np.linalg.norm(made["rows over 16"], axis=1)
    assert spread.max() > 1e14 * spread.min()
    bad = [name for name, X in made.items() if not np.isfinite(X).all()]
    assert bad == ["NaN", "+inf", "-inf", "infs and NaNs", "nothing but NaN"]
    assert all(re.search(r"alpha .*, y \[", case(name, 0).label) for name in NAMES)
    assert sum(ordinary(case(name, 7)) for name in NAMES) >= 10


# What was wrong once, and is told by these.


def test_answers_whose_squares_leave_float64_have_bounds_all_the_same():
    """‖β‖ was taken as zero where its square is: y is scaled to one, and then β is about 1e-300."""
    X, y = np.eye(3, dtype=np.float32), np.array([1e300, 3e299, 1.0])
    result = rowcol.solve(X, y, alpha=3e299, method="cg")
    exact = y / (1 + 3e299)
    assert np.linalg.norm(result.x - exact) <= result.error_bound
    assert result.certificate.storing > 0


def test_what_storing_in_subnormal_numbers_costs_is_told_column_by_column():
    X = np.diag([1.0, 1e60])
    y = np.array([1e-250, 3e-262])
    result = rowcol.solve(X, y, method="direct", tol=1e-10)
    left = np.linalg.norm((y - X @ result.x) * 1e250)
    assert result.certificate.value < left <= result.certificate.value + result.certificate.storing


def test_alpha_that_weights_make_vanish_is_refused(rng):
    with pytest.raises(ValueError, match="alpha is too small beside such sample_weight"):
        rowcol.solve(rng.standard_normal((5, 2)), np.ones(5), alpha=1e-300, sample_weight=np.full(5, 1e300))


def test_a_row_of_a_sample_is_named_by_its_place_in_x(rng):
    X = rng.standard_normal((40, 3))
    X[37, 1] = np.inf
    with pytest.raises(ValueError, match="row 37, column 1"):
        rowcol.solve(X, np.ones(40), method="subset", random_state=0)


def test_complex_y_may_be_subnormal(rng):
    X = rng.standard_normal((8, 3)) + 1j * rng.standard_normal((8, 3))
    y = 1e-312 * (X @ np.ones(3))
    assert np.abs(rowcol.solve(X, y).x - 1e-312).max() < 1e-318


def test_sweeps_that_left_the_row_space_do_not_claim_the_minimum_norm():
    H = 1.0 / (np.arange(6)[:, None] + np.arange(7) + 1)
    y = np.array([0.3, -1.0, 0.5, 0.2, 1.0, -0.4])
    result = rowcol.solve(H, y, method="sgs-cg", tol=1e-3)
    null = np.linalg.svd(H)[2][-1]
    assert result.success
    assert result.dual is None or np.linalg.norm(H.T @ result.dual - result.x) <= 1e-5 * np.linalg.norm(result.x)
    assert "minimum" not in result.solution or abs(null @ result.x) <= 1e-7 * np.linalg.norm(result.x)


def test_what_is_left_in_constant_columns_is_no_part_of_a_certificate():
    one = case("large constant columns", 18, "rcd")
    given = dict(alpha=one.alpha, fit_intercept=True, method="rcd", tol=one.tol, max_passes=one.passes, random_state=0)
    with pytest.warns(rowcol.ConvergenceWarning):
        result = rowcol.solve(one.X, one.y, **given)
    left = one.y[:, 0] - one.dense.astype(float) @ result.x[:, 0]
    assert result.residual_norm == pytest.approx(np.linalg.norm(left - left.mean()), rel=1e-5)


def test_a_mean_that_was_rounded_is_no_other_problem():
    """Columns of 1e10 with a spread of 1e-3: the mean is off by a thousandth of it."""
    rng = np.random.default_rng(1)
    X = np.round(rng.standard_normal((12, 3)) * 1e3) / 2**20 + 1e10 + np.arange(3)
    one = plain(X, rng.standard_normal(12) + 1e8, alpha=1e-6, intercept=True)
    given = dict(alpha=one.alpha, fit_intercept=True, tol=one.tol, random_state=0)
    for method in ("rk", "rcd", "sgs-cg", "blocks"):
        precise.certified(one, rowcol.solve(one.X, one.y, method=method, max_passes=20_000, **given))


def test_zero_is_the_least_squares_answer_where_y_is_at_right_angles():
    """Conjugate gradients, and a sample, ran away, went back to zero, and called that a plateau."""
    one = case("both over 16", 0, "subset")
    result = rowcol.solve(one.X, one.y[:, 1], method="subset", tol=one.tol, random_state=0, max_passes=one.passes)
    assert result.success
    assert not result.x.any()


def test_an_intercept_too_large_is_refused():
    X = np.arange(7.0)[:, None] * 1e-3 + 1e6
    y = np.eye(7)[0] * 1e302
    with pytest.raises(ValueError, match="intercept is too large"):
        rowcol.solve(X, y, fit_intercept=True, method="direct")
