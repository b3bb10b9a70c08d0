"""low ≤ β ≤ high: against SciPy, and against the conditions of optimality measured anew in extended precision."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear, nnls
from scipy.sparse.linalg import aslinearoperator

import rowcol
from rowcol import zoo

SLACK = 1 + 1e-9
LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
}


def truth(X, y, low, high, alpha=0.0, weight=None):
    """By an active-set method, on the augmented system."""
    X = X.toarray() if sp.issparse(X) else X
    n, p = X.shape
    root = np.sqrt(np.ones(n) if weight is None else weight)
    A = np.vstack([root[:, None] * X.astype(float), np.sqrt(alpha) * np.eye(p)])
    low, high = np.broadcast_to(low, p).astype(float), np.broadcast_to(high, p).astype(float)
    fixed, x = low == high, low.copy()
    if not fixed.all():
        b = np.append(root * y, np.zeros(p)) - A[:, fixed] @ low[fixed]
        x[~fixed] = lsq_linear(A[:, ~fixed], b, (low[~fixed], high[~fixed]), method="bvls", tol=1e-15).x
    return x


def check(X, y, result, low, high, tol, alpha=0.0, weight=None):
    """Hold a result to its word, by nothing of rowcol's and in extended precision; the certificates' kinds."""
    X = X.toarray() if sp.issparse(X) else X
    n, p = X.shape
    x, y = result.x.reshape(p, -1), np.reshape(y, (n, -1))
    low, high = np.broadcast_to(low, p), np.broadcast_to(high, p)
    assert result.success, result
    assert result.solution == ("ridge within bounds" if alpha else "least squares within bounds")
    assert (low <= x.T).all()
    assert (high >= x.T).all()
    root = np.sqrt(np.ones(n) if weight is None else weight).astype(np.longdouble)
    A, b = root[:, None] * X.astype(np.longdouble), root[:, None] * y.astype(np.longdouble)
    columns = np.sqrt((A**2).sum(axis=0))
    for q, c in enumerate(result.certificates):
        beta = x[:, q].astype(np.longdouble)
        rho = b[:, q] - A @ beta
        slope, left, whole = A.T @ rho, np.sqrt(rho @ rho), np.sqrt(b[:, q] @ b[:, q])
        g = slope - alpha * beta
        # single precision has numbers next to a bound that has none itself
        at = [np.abs(x[:, q] - a) <= (1.2e-7 * np.abs(a) if x.dtype == np.float32 else 0) for a in (low, high)]
        v = np.where(at[0], np.maximum(g, 0), g)
        v = np.where(at[1], np.minimum(v, 0), v)
        reach = np.abs(beta) @ columns
        scale, spare = whole if whole else reach, 0.0
        if alpha:
            gap = (v @ v) / (2 * alpha)
            t = np.clip(g / alpha, low - beta, high - beta)
            gap = min(gap, (t * (g - alpha * t / 2)).sum())
            value = np.sqrt(2 * gap) / (scale or 1)
            if x.dtype == np.float32:  # here α is taken from the stored x, which moves it, too
                spare = (
                    6e-8 * (reach * np.sqrt(columns @ columns / alpha) + np.sqrt(alpha * beta @ beta)) / (scale or 1)
                )
            near = truth(X, y[:, q], low, high, alpha, weight)
            assert np.linalg.norm(x[:, q] - near) <= c.error_bound * SLACK + 1e-11 * (1 + np.linalg.norm(near))
        else:
            live = columns > 0
            angle = np.max(np.abs(v[live]) / columns[live], initial=0) / left if left else 0
            value = left / (scale or 1) if c.kind == "residual" else angle
            assert c.error_bound is None
        assert value <= c.value * SLACK + c.storing + spare + 1e-15, (
            f"{c.kind} is {value:.3e}, certificate {c.value:.3e}"
        )
        assert c.value <= tol
    return {c.kind for c in result.certificates}


def gaussian(n, p, rng):
    return rng.standard_normal((n, p)), rng.standard_normal(n)


@pytest.mark.parametrize("method", ["auto", "rcd"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_non_negative_least_squares_are_those_of_scipy(layout, method, rng):
    X, y = gaussian(120, 30, rng)
    X[rng.random(X.shape) < 0.5] = 0.0
    result = rowcol.solve(LAYOUTS[layout](X), y, bounds=(0, np.inf), method=method, tol=1e-11, random_state=0)
    expected = nnls(X, y)[0]
    np.testing.assert_allclose(result.x, expected, atol=1e-9)
    np.testing.assert_array_equal(result.x == 0, expected == 0)
    assert result.at_bound == (expected == 0).sum() > 5
    assert f"{result.at_bound} at a bound" in repr(result)
    assert result.method == "rcd"
    assert result.sampler == ("shuffled" if method == "auto" else "norms")
    assert check(X, y, result, 0, np.inf, 1e-11) == {"gradient"}


@pytest.mark.parametrize("shape", [(120, 30), (30, 120)])
def test_ridge_is_non_negative_least_squares_on_the_augmented_system(shape, rng):
    X, y = gaussian(*shape, rng)
    p = shape[1]
    result = rowcol.solve(X, y, alpha=3.0, bounds=(0, np.inf), tol=1e-11, random_state=0)
    expected = nnls(np.vstack([X, np.sqrt(3.0) * np.eye(p)]), np.append(y, np.zeros(p)))[0]
    np.testing.assert_allclose(result.x, expected, atol=1e-9)
    assert check(X, y, result, 0, np.inf, 1e-11, 3.0) == {"gap"}
    # the dual it comes with is one: clipped, it gives the answer back
    np.testing.assert_allclose(np.maximum(X.T @ result.dual, 0), result.x, atol=1e-9)


CASES = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 10**6),
        "shape": st.sampled_from([(1, 1), (30, 8), (12, 20), (60, 25), (7, 1), (1, 5)]),
        "layout": st.sampled_from(list(LAYOUTS)),
        "single": st.booleans(),
        "alpha": st.sampled_from([0.0, 0.01, 1.0, 100.0]),
        "weighted": st.booleans(),
        "many": st.sampled_from([0, 1, 3]),
        "box": st.sampled_from(["positive", "negative", "narrow", "far", "mixed", "points"]),
        "method": st.sampled_from(["auto", "auto", "rcd"]),
        "scale": st.sampled_from([1.0, 1e-30, 1e25]),
    }
)


def box_of(kind, p, rng):
    low, high = np.sort(rng.standard_normal((2, p)), axis=0)
    if kind == "mixed":
        low[rng.random(p) < 0.5], high[1:][rng.random(p - 1) < 0.5] = -np.inf, np.inf
        equal = rng.random(p) < 0.2
        low[equal] = high[equal] = 0.3
    pairs = {"positive": (0, np.inf), "negative": (-np.inf, 0), "narrow": (-0.01, 0.02), "far": (low + 5, high + 5)}
    pairs |= {"mixed": (low, high), "points": (low, low)}
    return pairs[kind]


@settings(max_examples=120)
@given(CASES)
@example(dict(seed=0, shape=(30, 8), layout="C", single=True, alpha=0.0, weighted=True, many=3, box="mixed",
              method="auto", scale=1e-30))  # fmt: skip
def test_any_problem_keeps_its_bounds_and_its_certificate(case):
    rng = np.random.default_rng(case["seed"])
    (n, p), alpha = case["shape"], case["alpha"]
    X = rng.standard_normal((n, p))
    X[rng.random((n, p)) < 0.3] = 0.0
    X = X.astype(np.float32) if case["single"] else X
    unit = 1.0 if case["single"] else case["scale"]
    low, high = (unit * np.asarray(a) for a in box_of(case["box"], p, rng))
    if case["single"]:  # numbers that the answer can hold
        low, high = low.astype(np.float32), high.astype(np.float32)
    y = unit * rng.standard_normal((n, case["many"]) if case["many"] else n)
    if case["many"] == 3:
        y[:, 1] = 0.0  # where bounds exclude zero, so does the answer
    weight = rng.random(n) + 0.1 if case["weighted"] else None
    how = dict(alpha=alpha, bounds=(low, high), sample_weight=weight, random_state=0, method=case["method"])
    result = rowcol.solve(LAYOUTS[case["layout"]](X), y, tol=1e-7, max_passes=2e4, **how)
    assert result.x.dtype == X.dtype
    # in units of y, so that the yardstick's own tolerances mean something
    result.x = result.x.astype(float) / unit if unit != 1 else result.x
    result.certificates = [c._replace(error_bound=c.error_bound and c.error_bound / unit) for c in result.certificates]
    check(X, y / unit, result, low / unit, high / unit, 1e-7, alpha, weight)
    x = result.x.reshape(p, -1)
    at = ((low / unit == x.T) | (high / unit == x.T)).sum(axis=1)
    np.testing.assert_array_equal(result.at_bound, at if case["many"] else at[0])


def test_bounds_that_single_precision_does_not_have_are_kept_all_the_same(rng):
    X, y = gaussian(60, 20, rng)
    low, high = np.full(20, 0.1), np.full(20, 0.3)
    low[:2] = high[:2] = 0.7  # nothing of single precision is between: the nearest has to do
    result = rowcol.solve(X.astype(np.float32), 3 * y, alpha=1.0, bounds=(low, high), random_state=0)
    x = result.x[2:].astype(float)
    assert x.min() >= 0.1
    assert x.max() <= 0.3
    np.testing.assert_array_equal(result.x[:2], np.float32(0.7))
    assert result.at_bound > 10
    with pytest.raises(ValueError, match="nothing for unknown 0"):
        rowcol.solve(X.astype(np.float32), y, bounds=(1e300, np.inf))


def test_everything_at_a_bound_and_boxes_of_one_point(rng):
    X, y = np.abs(rng.standard_normal((40, 10))), -np.ones(40)
    result = rowcol.solve(X, y, bounds=(0, np.inf), random_state=0)
    assert not result.x.any()
    assert result.at_bound == 10
    assert check(X, y, result, 0, np.inf, 1e-6) == {"gradient"}
    fixed = rng.standard_normal(10)
    for alpha in (0.0, 1.0):
        result = rowcol.solve(X, y, alpha=alpha, bounds=(fixed, fixed), random_state=0)
        np.testing.assert_array_equal(result.x, fixed)
        assert result.success
        assert result.at_bound == 10
        assert result.gradient_norm == 0
    half = np.where(np.arange(10) < 5, fixed, np.inf)
    result = rowcol.solve(X, y, bounds=(np.where(np.arange(10) < 5, fixed, -np.inf), half), tol=1e-11, random_state=0)
    rest = np.linalg.lstsq(X[:, 5:], y - X[:, :5] @ fixed[:5], rcond=None)[0]
    np.testing.assert_allclose(result.x, np.append(fixed[:5], rest), atol=1e-8)


def test_zero_columns_and_zero_right_hand_sides(rng):
    X, _ = gaussian(30, 6, rng)
    X[:, 2] = 0.0
    for alpha in (0.0, 2.0):
        result = rowcol.solve(X, np.zeros(30), alpha=alpha, bounds=(1.0, 3.0), tol=1e-9, random_state=0)
        check(X, np.zeros(30), result, 1.0, 3.0, 1e-9, alpha)
        assert result.x[2] == 1.0
        assert not rowcol.solve(X, np.zeros(30), alpha=alpha, bounds=(-1, 1), x0=np.ones(6)).x.any()


def test_infinite_bounds_are_none(rng):
    X, y = gaussian(80, 12, rng)
    for how in ({}, {"method": "rcd"}, {"method": "rk", "alpha": 1.0}, {"alpha": 1.0}):
        free, open_ = (
            rowcol.solve(X, y, random_state=3, bounds=b, **how) for b in (None, (-np.inf, np.full(12, np.inf)))
        )
        np.testing.assert_array_equal(open_.x, free.x)
        assert (open_.solution, open_.method, open_.at_bound) == (free.solution, free.method, None)
    wide = rowcol.solve(X, y, bounds=(-1e6, np.inf), method="rcd", random_state=3)
    free = rowcol.solve(X, y, method="rcd", random_state=3)
    np.testing.assert_array_equal(wide.x, free.x)  # the loop takes the same steps, bit for bit
    assert (wide.passes, wide.certificate, wide.at_bound) == (free.passes, free.certificate, 0)


def test_weights_are_rows_had_twice(rng):
    X, y = gaussian(40, 10, rng)
    times = rng.integers(0, 3, 40)
    for alpha in (0.0, 1.0):
        how = dict(alpha=alpha, bounds=(-0.1, 0.1), tol=1e-11, random_state=0)
        weighted = rowcol.solve(X, y, sample_weight=times, **how)
        repeated = rowcol.solve(np.repeat(X, times, axis=0), np.repeat(y, times), **how)
        np.testing.assert_allclose(weighted.x, repeated.x, atol=1e-9)


@pytest.mark.parametrize("method", ["auto", "rcd"])
def test_the_same_seed_gives_the_same_bits(method, rng):
    X, y = rng.standard_normal((90, 30)), rng.standard_normal((90, 5))
    how = dict(alpha=0.1, bounds=(0, 0.1), method=method, random_state=7, tol=1e-9)
    first = rowcol.solve(X, y, **how)
    np.testing.assert_array_equal(first.x, rowcol.solve(X, y, n_jobs=2, callback=lambda now: None, **how).x)
    for q in range(5):  # right-hand sides do not notice each other
        np.testing.assert_allclose(rowcol.solve(X, y[:, q], **how).x, first.x[:, q], atol=1e-7)


@pytest.mark.parametrize("method", ["auto", "rcd"])
@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_a_callback_sees_only_what_is_within_and_the_objective_falls(method, alpha, rng):
    X = rng.standard_normal((60, 40)) @ np.diag(np.geomspace(1, 0.1, 40)) @ rng.standard_normal((40, 40))
    y, seen = rng.standard_normal((60, 2)), []
    rowcol.solve(
        X, y, alpha=alpha, bounds=(-0.3, 1.0), method=method, x0=np.full((40, 2), 9.0), random_state=0,
        max_passes=1e4, tol=1e-4, callback=lambda now: seen.append(now.x),
    )  # fmt: skip
    assert len(seen) > 20
    assert min(x.min() for x in seen) >= -0.3
    assert max(x.max() for x in seen) <= 1.0
    energy = np.array([((y - X @ x) ** 2).sum(axis=0) + alpha * (x**2).sum(axis=0) for x in seen])
    assert (np.diff(energy, axis=0) <= 1e-12 * energy[0]).all()


def test_starts_are_clipped_and_never_changed(rng):
    X, y = gaussian(60, 10, rng)
    x0 = 100 * rng.standard_normal(10)
    kept = x0.copy()
    how = dict(bounds=(0, 0.05), tol=1e-10, random_state=0)
    cold, warm = rowcol.solve(X, y, **how), rowcol.solve(X, y, x0=x0, **how)
    np.testing.assert_allclose(warm.x, cold.x, atol=1e-9)
    np.testing.assert_array_equal(x0, kept)
    again = rowcol.solve(X, y, x0=cold, **how)
    assert again.passes == 0
    np.testing.assert_array_equal(again.x, cold.x)
    ridge = rowcol.solve(X, y, alpha=1.0, **how)  # its dual is no way to its x
    assert rowcol.solve(X, y, alpha=1.0, x0=ridge, **how).passes == 0
    free = rowcol.solve(X, y, alpha=1.0, x0=ridge, method="rk", tol=1e-9, random_state=0)
    np.testing.assert_allclose(free.x, rowcol.solve(X, y, alpha=1.0, tol=1e-9).x, atol=1e-7)
    warnings.simplefilter("error")  # of a wide X: no minimum norm is spoilt
    rowcol.solve(X.T, rng.standard_normal(10), x0=np.ones(60), bounds=(0, np.inf), random_state=0)


@pytest.mark.parametrize("pixels", [8, 12])
def test_tomography_without_negative_density_is_scipys(pixels, rng):
    case = zoo.tomography(pixels, angles=3 * pixels // 2)
    y = case.y + 0.05 * np.abs(case.y).mean() * rng.standard_normal(case.y.size)
    result = rowcol.solve(case.X, y, bounds=(0, np.inf), tol=1e-9, random_state=0)
    expected = nnls(case.X.toarray(), y, maxiter=10**5)[0]
    np.testing.assert_allclose(result.x, expected, atol=1e-6)
    assert check(case.X, y, result, 0, np.inf, 1e-9) == {"gradient"}
    plain = rowcol.solve(case.X, y, bounds=(0, np.inf), method="rcd", tol=1e-9, max_passes=1e5, random_state=0)
    assert result.passes < plain.passes / 2
    clean = rowcol.solve(case.X, case.y, bounds=(0, 1), tol=1e-8, random_state=0)
    assert check(case.X, case.y, clean, 0, 1, 1e-8) == {"residual"}


def test_the_plan_says_why(rng):
    X, y = gaussian(60, 10, rng)
    plan = rowcol.plan(X, y, bounds=(0, np.inf))
    assert (plan.route, plan.side, plan.then, plan.bounded) == ("rcd", "columns", (), True)
    assert plan.reasons[0] == "bounds: only columns can keep them"
    assert "least squares within bounds" in repr(plan)
    assert "ridge within bounds" in repr(rowcol.plan(X, y, alpha=1.0, bounds=(0, np.inf)))
    result = rowcol.solve(X, y, bounds=(0, np.inf), random_state=0)
    assert result.plan.reasons == plan.reasons
    named = rowcol.solve(X, y, bounds=(0, np.inf), sampler="cyclic", random_state=0)
    assert (named.sampler, named.plan.route, len(named.plan.reasons)) == ("cyclic", "rcd", 1)


def test_giving_up_is_said_without_naming_methods_there_are_not(rng):
    X = rng.standard_normal((60, 40)) @ np.diag(np.geomspace(1, 1e-4, 40)) @ rng.standard_normal((40, 40))
    with pytest.warns(rowcol.ConvergenceWarning, match="raise max_passes or loosen tol$"):
        result = rowcol.solve(X, rng.standard_normal(60), bounds=(0, np.inf), max_passes=3, random_state=0)
    assert result.passes <= 3
    assert result.solution == "not converged"
    assert result.x.min() >= 0


def test_bad_bounds_are_refused(rng):
    X, y = gaussian(12, 4, rng)
    inf = np.inf
    for bounds, error, words in (
        ((np.nan, 1), ValueError, "low has a NaN"),
        ((0, [1, 1, np.nan, 1]), ValueError, "high has a NaN"),
        (([0, 0, 3, 0], 1), ValueError, "nothing for unknown 2: low is 3, high is 1"),
        ((inf, inf), ValueError, "nothing for unknown 0"),
        ((-inf, -inf), ValueError, "nothing for unknown 0"),
        ((np.zeros(3), 1), ValueError, r"shape \(4,\), one a column"),
        ((np.zeros((4, 1)), 1), ValueError, r"shape \(4,\)"),
        ((0, 1, 2), ValueError, "a pair"),
        (0, ValueError, "a pair"),
        ("01", ValueError, "a pair"),
        ((0, None), TypeError, "bounds: high"),
        ((0, 1j), TypeError, "real numbers"),
    ):
        with pytest.raises(error, match=words):
            rowcol.solve(X, y, bounds=bounds)
    for given_X, given_y in ((X + 1j, y), (X, y + 1j)):
        with pytest.raises(TypeError, match="complex numbers have no order"):
            rowcol.solve(given_X, given_y, bounds=(0, inf))
    for method in ("rk", "rek", "cg", "sgs-cg", "direct", "subset", "blocks", "sketch"):
        with pytest.raises(ValueError, match=f"say method='rcd' or 'auto', not '{method}'"):
            rowcol.solve(X, y, bounds=(0, inf), method=method)
    for ask in (rowcol.solve, rowcol.plan):
        with pytest.raises(ValueError, match="leave out bounds or kernel"):
            ask(X, y, kernel="rbf", alpha=1.0, bounds=(0, inf))
    with pytest.raises(TypeError, match="need the columns of X"):
        rowcol.solve(aslinearoperator(X), y, bounds=(0, inf))
    with pytest.raises(ValueError, match="keep no bounds"):
        rowcol.solve(X, y, bounds=(0, inf), preconditioner=np.eye(4))
    with pytest.raises(ValueError, match="Fortran order"):
        rowcol.solve(X, y, bounds=(0, inf), memory=1000)
    with pytest.raises(ValueError, match="too far from zero"):
        rowcol.solve(X, y, bounds=(1e200, inf))
    for method in ("auto", "rcd"):
        bad = X.copy()
        bad[3, 2] = np.nan
        with pytest.raises(ValueError, match="NaN or infinity at row 3, column 2"):
            rowcol.solve(bad, y, bounds=(0, 1), method=method)
