"""A certificate from the numbers of a pass, against its formulas typed plainly, with rounding errors one can see.

`_one` takes the sums of a pass and the rounding of one operation in them. Here that is a hundredth, not 2⁻⁵³: every
term of every bound counts, and errors as large as the bound allows can be made on purpose.
"""

import math

import numpy as np
import pytest

from certificates import TINY, UNIT, gains, norm, same, told
from rowcol.core import certify as module
from rowcol.core.certify import Certificate, _faint, _grain, _in_users_units, _one
from rowcol.core.norms import Lengths, lengths
from rowcol.core.norms import norm as length
from rowcol.core.problem import problem


def numbers(seed, lam=0.0, weights=False, single=False, pair=False, sides=False, apart=0.0, kind=float, scale=1.0):
    """The numbers of a pass, as they come: X of 7 x 4, β near the solution; `raw` is larger, as before centring."""
    rng = np.random.default_rng(seed)

    def draw(*shape):
        a = rng.standard_normal(shape)
        return a + 1j * rng.standard_normal(shape) if kind is complex else a

    X, y = draw(7, 4) * [1, 3, 0.5, 2], draw(7)
    w = (rng.random(7) + 0.1) * (np.arange(7) != 2) if weights else np.ones(7)
    A = (X.conj().T * w) @ X + lam * np.eye(4)
    beta = np.linalg.solve(A, (X.conj().T * w) @ y) + 0.05 * draw(4)
    if sides:
        beta = np.round(beta, 1)
    rho = y - X @ beta
    column = np.sqrt((w[:, None] * abs(X) ** 2).sum(axis=0))
    box = None
    if sides:
        box = np.array([[0.0, -0.3, -np.inf, -0.001], [np.inf, 0.0, 0.002, 0.4]])
        box = box if seed % 2 else box[:, ::-1].copy()
        box[:, 2] = (0.0, 0.0) if seed % 3 == 0 else box[:, 2]
    dual = None
    if pair:
        alpha = w * rho / lam * (1 + 0.1 * rng.standard_normal(7)) if lam else draw(7)
        dual = alpha, X.conj().T @ alpha
    posed = problem(X.astype(np.float32) if single and kind is float else X, y, lam, w if weights else None)
    if single and kind is complex:
        posed = posed._replace(dtype=np.dtype(np.complex64))
    raw = column * (1 + rng.random(4))
    slope = (X.conj().T * w) @ rho
    return dict(
        problem=posed, lam=lam, y=y, w=w, beta=beta, rho=rho, slope=slope, column=column, raw=raw, pair=dual,
        units=(0.01, 0.02), scale=scale, sides=box, apart=apart, single=single,
    )  # fmt: skip


def asked(c):
    alpha, image = c["pair"] or (None, None)
    dual = None if alpha is None else alpha[None]
    weight = None if c["problem"].weight is None else c["w"]
    size = Lengths(*(one[0] for one in lengths(c["rho"][None], weight, dual, np.array([c["lam"]]))))
    return _one(
        *(c[name] for name in ("problem", "lam", "y", "w", "beta")),
        size,
        *(c[name] for name in ("slope", "column", "raw")),
        image,
        *(c[name] for name in ("units", "scale", "sides", "apart")),
    )


KINDS = [dict(), dict(weights=True), dict(single=True), dict(apart=0.3), dict(kind=complex), dict(scale=2.0**-1060)]
KINDS += [dict(kind=complex, single=True, weights=True), dict(sides=True), dict(sides=True, single=True, weights=True)]
RIDGES = [*KINDS, dict(pair=True), dict(pair=True, weights=True, apart=0.1), dict(pair=True, kind=complex, single=True)]


@pytest.mark.parametrize("how", KINDS, ids=str)
def test_without_a_penalty(how):
    for seed in range(6):
        same(asked(c := numbers(seed, **how)), told(c))


@pytest.mark.parametrize("lam", [1e-3, 0.7, 40.0])
@pytest.mark.parametrize("how", RIDGES, ids=str)
def test_with_a_penalty(how, lam):
    for seed in range(6):
        same(asked(c := numbers(seed, lam, **how)), told(c))


def test_both_kinds_and_both_duals_are_met():
    """The tests above see every branch: residuals and gradients, gaps by α and by ρ, steps cut by a side and not."""
    kinds = {told(numbers(seed)).kind for seed in range(6)} | {told(small_residual(0)).kind}
    assert kinds == {"residual", "gradient"}
    by = {told(numbers(s, 0.7, pair=True)).value < told(numbers(s, 0.7)).value for s in range(6)}
    assert by == {True, False} or by == {True}
    cut = [gains(c["slope"] - c["lam"] * c["beta"], c["lam"], c["sides"])[1] for c in (numbers(1, 0.7, sides=True),)]
    assert np.any(cut)
    assert not np.all(cut)


def small_residual(seed, units=(0.01, 0.02)):
    """A residual that is small beside y."""
    c = numbers(seed)
    c["rho"] = c["rho"] * 0.05
    return c | {"slope": c["slope"] * 0.05, "units": units}


@pytest.mark.parametrize("seed", range(4))
def test_a_small_residual(seed):
    for times in (1e-6, 1e-3, 0.1, 1.0, 3.0):
        c = small_residual(seed, (0.01 * times, 0.02 * times))
        same(asked(c), told(c))


@pytest.mark.parametrize("pair", [False, True])
@pytest.mark.parametrize("lam", [0.0, 0.7])
def test_exhausted_is_where_rounding_is_a_third_or_so_of_what_is_left(lam, pair):
    """As rounding grows: at first not, then at the very place where the formulas say so."""
    seen = []
    for unit in np.geomspace(1e-6, 1, 100):
        c = numbers(2, lam, pair=pair) | {"units": (unit, 2 * unit)}
        assert asked(c).exhausted == told(c).exhausted
        seen.append(told(c).exhausted)
    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == (False, True)


def test_exhausted_by_the_pair_alone_and_by_the_residual_alone():
    """A slope that is large, whatever ρ is: then only the pair can tell, or ρ itself."""
    seen = {"pair": [], "residual": []}
    for t in np.geomspace(1e-4, 1, 80):
        c = numbers(2, 0.7, pair=True)
        alpha = c["pair"][0]
        c |= dict(slope=1e4 * c["slope"], rho=0.7 * alpha * (1 + t), pair=(alpha, c["beta"]), units=(1e-3, 1e-3))
        seen["pair"].append((asked(c).exhausted, bool(told(c).exhausted)))
        c = numbers(2) | dict(slope=1e6 * numbers(2)["slope"], units=(0.5 * t, 0.0))
        seen["residual"].append((asked(c).exhausted, bool(told(c).exhausted)))
    for name, pairs in seen.items():
        assert {expected for _, expected in pairs} == {False, True}, name
        assert all(found == expected for found, expected in pairs), name


@pytest.mark.parametrize("lam", [1e-3, 0.7, 40.0])
def test_sums_without_rounding_leave_that_of_the_penalty(lam):
    for how in ({}, {"pair": True}, {"pair": True, "weights": True}):
        c = numbers(1, lam, **how) | dict(units=(0.0, 0.0))
        same(asked(c), told(c))


@pytest.mark.parametrize("lam", [0.0, 0.7])
def test_an_exact_solution_by_exact_sums(lam):
    c = numbers(0, lam) | dict(units=(0.0, 0.0), rho=np.zeros(7))
    c["slope"] = lam * c["beta"]
    same(asked(c), told(c))
    assert asked(c).value <= 1e-15
    assert asked(c).exhausted


@pytest.mark.parametrize("lam", [0.0, 0.7])
def test_nothing_asked_and_nothing_answered(lam):
    c = numbers(0, lam)
    c |= dict(y=np.zeros(7), rho=np.zeros(7), beta=np.zeros(4), slope=np.zeros(4))
    same(asked(c), told(c))
    assert asked(c).exhausted
    assert asked(c).value == 0
    # nothing asked, but something answered: what is left is held against what β reaches
    c = numbers(0, lam) | dict(y=np.zeros(7))
    same(asked(c), told(c))
    assert asked(c).value > 0


def test_columns_of_zeros_count_for_nothing_unless_their_slope_does():
    c = numbers(1)
    c["column"] = c["column"] * [1, 0, 1, 1]
    c["slope"] = c["slope"] * [1, 0, 1, 1]
    same(asked(c), told(c))
    assert asked(c).kind == "gradient"
    c["slope"] = c["slope"] + [0, 1e-30, 0, 0]
    same(asked(c), told(c))
    assert asked(c).kind == "residual"
    c["column"] = np.zeros(4)
    same(asked(c), told(c))
    c["slope"] = np.zeros(4)
    same(asked(c), told(c))
    assert asked(c).kind == "gradient"


def test_a_residual_that_rounding_could_have_made_has_no_angle():
    c = small_residual(3, (1.0, 1.0))
    assert told(c).kind == "residual"
    same(asked(c), told(c))
    # storing alone may take all of the residual: then it may add anything to an angle
    c = small_residual(3, (1e-9, 1e-9)) | dict(single=True, scale=TINY[True] / 0.02)
    c["problem"] = c["problem"]._replace(dtype=np.dtype(np.float32))
    c["slope"] = c["slope"] * 1e-9
    same(asked(c), told(c))
    assert asked(c).storing == math.inf


@pytest.mark.parametrize("how", [dict(), dict(weights=True), dict(pair=True), dict(sides=True)], ids=str)
@pytest.mark.parametrize("lam", [0.0, 0.7])
def test_no_error_within_the_budget_makes_the_truth_exceed_the_value(lam, how, rng):
    """Sums with errors as large as is allowed: the value that they give covers the one that is exact."""
    for seed in range(5):
        c = numbers(seed, lam, **how) | {"units": (0.001, 0.002)}
        exact = asked(c | {"units": (0.0, 0.0)})
        root = np.sqrt(c["w"])
        off = c["units"][0] * (norm(root * c["y"]) + float(abs(c["beta"]) @ c["raw"]))
        d_rho = rng.standard_normal(7)
        d_rho *= off / norm(root * d_rho)
        X_d = c["column"] * off * np.sign(rng.standard_normal(4)) * rng.random(4)
        d_sum = c["raw"] * c["units"][1] * norm(root * c["rho"]) * np.sign(rng.standard_normal(4))
        wrong = c | {"rho": c["rho"] + d_rho * (root > 0), "slope": c["slope"] + 0.9 * (X_d + d_sum)}
        found = asked(wrong)
        if found.kind == exact.kind:
            assert exact.value <= found.value * 1.01
        if exact.error_bound is not None:
            assert exact.error_bound <= found.error_bound * 1.01


def test_constants():
    assert np.finfo(float).eps / 2 == module.UNIT
    assert module.ONE == 1
    # NumPy sums 128 numbers as 8 chains of 16, those in pairs, and halves of up to 2³⁶ numbers in pairs
    assert module.PAIRS == 16 + 3 + (36 - 7)


@pytest.mark.parametrize("single", [False, True])
def test_numbers_are_faint_where_they_may_be_stored_as_subnormal_ones(single):
    c = numbers(0, single=single)
    for times, faint in ((0.9, 0.0), (1.1, 1.0)):
        tiny = times * UNIT**2 * 3.0
        found = _faint(c["problem"], np.array([3.0, 0.0, -3.0, 300.0]), TINY[single] / tiny)
        np.testing.assert_allclose(found, np.array([faint, 0.0, faint, 0.0]) * tiny, rtol=1e-12, atol=0)


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e-150, 1e-3, 1.0, 1e150, 1e200, 1e300])
def test_norms_are_right_where_squares_leave_float64(size):
    for a in ([3.0, -4.0], [-3.0, -4.0], [-3.0, 4j], [0.0, 5.0]):
        assert length(np.array(a) * size) == pytest.approx(5 * size, rel=1e-15, abs=0)


def test_norms_of_nothing_and_of_infinity():
    assert length(np.zeros(3)) == 0.0
    assert length(np.empty(0)) == 0.0
    assert length(np.array([1.0, -np.inf])) == np.inf


@pytest.mark.parametrize("single", [False, True])
def test_the_grain_of_subnormal_numbers_is_that_of_the_smallest(single):
    c = numbers(0, single=single)
    beta, tiny = np.array([2.0, -0.5, 0.0, 1.0]), UNIT**2 * 4
    assert _grain(c["problem"], beta, TINY[single] / tiny) == pytest.approx(4 * tiny / 0.5, rel=1e-12, abs=0)
    assert _grain(c["problem"], beta[[2, 2, 2, 2]], TINY[single] / tiny) == 0.0


def test_a_bound_is_never_rounded_to_zero_nor_made_larger_than_it_is():
    def bound(value, scale):
        one = Certificate("gap", 0.1, 0.0, 0.0, 1.0, 1.0, value, False)
        return _in_users_units(one, scale, 1.0).error_bound

    assert bound(1e-30, 1.0) == 1e-30
    assert bound(1e-200, 2.0**-600) == math.ulp(0.0)
    assert bound(0.0, 1.0) == 0.0
    assert bound(None, 1.0) is None
