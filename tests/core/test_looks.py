"""Looks at an answer, by every layout of X: what they measure, against long double, and the rounding they allow."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from certificates import norm, same, told
from oracle import close
from rowcol import kernels
from rowcol.core.centre import centred
from rowcol.core.certify import certify, certify_residual, hopeless, weight_of
from rowcol.core.gram import gram
from rowcol.core.problem import problem
from rowcol.core.products import products
from rowcol.core.sums import sums

UNIT = 2.0**-53
RBF = kernels.RBF(gamma=1 / (2 * 1.3**2))
LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "operator": aslinearoperator,
}


def long(a):
    return np.asarray(a, np.clongdouble if np.iscomplexobj(a) else np.longdouble)


def system(shape, kind=float, q=2, seed=0):
    """X with columns of different size, some zeros, and q right-hand sides far from one in size."""
    rng = np.random.default_rng(seed)
    parts = [rng.standard_normal((shape[0], shape[1] + q)) for _ in range(2)]
    A = parts[0] + 1j * parts[1] if kind is complex else parts[0]
    X = A[:, q:] * np.geomspace(1, 9, shape[1])
    X[rng.random(shape) < 0.2] = 0
    return X, A[:, :q] * np.array([3e5, 0.02, 70.0])[:q]


def measured(X, y, beta, alpha=0.0, w=None):
    """ρ and XᴴWρ − λβ in long double, of one right-hand side."""
    X, y, beta = long(X), long(y), long(beta)
    w = np.ones(len(y)) if w is None else w
    rho = y - X @ beta
    return rho, X.conj().T @ (w * rho) - alpha * beta


# lines of other layouts are scaled beforehand where there are weights, which never come here
@pytest.mark.parametrize(("layout", "weighted"), [*((name, False) for name in LAYOUTS), ("C", True), ("csr", True)])
@pytest.mark.parametrize("kind", [float, complex])
@pytest.mark.parametrize(("shape", "alpha"), [((9, 4), 0.0), ((9, 4), 2.0), ((5, 8), 0.6)])
def test_what_is_measured_and_how_much_rounding_is_allowed(layout, kind, weighted, shape, alpha, rng):
    """Norms in the user's units; the rest as `told` has it, with as many terms as the sums say, and three more."""
    X, Y = system(shape, kind)
    w = 40.0 * rng.random(shape[0]) * (np.arange(shape[0]) != 1) if weighted else None
    asked = problem(LAYOUTS[layout](X), Y, alpha, w)
    assert asked.gauge == (16.0 if weighted else 1.0)
    by, ids, column2 = products(asked.X), np.array([1, 0]), np.full(shape[1], -1.0)
    beta = rng.standard_normal((2, shape[1])).astype(asked.y.dtype)
    dual = (0.1 * rng.standard_normal((2, shape[0]))).astype(asked.y.dtype)
    found = certify(asked, by, beta, dual, ids, column2)
    assert (found.image is None) == (alpha == 0)
    assert found.column2 is column2
    weight = np.ones(shape[0]) if w is None else w / asked.gauge
    if layout == "operator":
        top = np.linalg.svd(X)[1][0] ** 2 / shape[1]
        assert 0.8 * top <= column2[0] <= top * (1 + 1e-12)
        assert (column2 == column2[0]).all()
    else:
        close(column2, weight @ abs(X) ** 2)
    terms = sums(by, asked.y[ids], beta, asked.weight, None, False).terms
    for k, i in enumerate(ids):
        one, scale = found.certificates[k], asked.scale[i]
        rho, g = measured(X, Y[:, i], beta[k] * scale, alpha, w)
        assert one.residual_norm == pytest.approx(norm(np.sqrt(weight * asked.gauge) * rho), rel=1e-11)
        assert one.gradient_norm == pytest.approx(norm(g), rel=1e-11)
        close(found.residual[k] * scale, np.asarray(rho, asked.y.dtype), 1e-11)
        close((found.slope[k] - asked.alpha * beta[k]) * scale * asked.gauge, np.asarray(g, asked.y.dtype), 1e-11)
        numbers = dict(
            lam=asked.alpha, y=asked.y[i], w=weight, beta=beta[k], rho=found.residual[k], slope=found.slope[k],
            column=np.sqrt(column2), raw=np.sqrt(column2), pair=(dual[k], X.conj().T @ dual[k]) if alpha else None,
            units=(UNIT * (terms[0] + 3), UNIT * (terms[1] + 3)), scale=scale, sides=None, apart=0.0, single=False,
        )  # fmt: skip
        expected = told(numbers)
        bound = expected.error_bound if expected.error_bound is None else expected.error_bound * scale
        units = dict(residual_norm=one.residual_norm, gradient_norm=one.gradient_norm, error_bound=bound)
        same(one, expected._replace(**units))
    # known norms of columns are believed, and no α is needed
    doubled = certify(asked, by, beta, None, ids, column2 * 4)
    assert doubled.column2[0] == 4 * column2[0]
    assert doubled.image is None
    again = [certify(asked, by, beta[[k]], dual[[k]], ids[[k]], column2).certificates[0] for k in range(2)]
    for a, b in zip(again, found.certificates, strict=True):
        assert a.value == pytest.approx(b.value, rel=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [float, complex])
def test_a_ridge_value_is_the_duality_gap_and_its_bound_holds(kind, weighted, rng):
    """P(β) − D(α) by their definitions, for the α given and for Wρ/λ; and the distance to the solution of LAPACK's."""
    X, Y = system((9, 4), kind, 1)
    y, lam = Y[:, 0], 3.0
    w = rng.random(9) + 0.1 if weighted else None
    W = np.ones(9) if w is None else w
    best = np.linalg.solve((X.conj().T * W) @ X + lam * np.eye(4), (X.conj().T * W) @ y)
    asked = problem(X, y, lam, w)
    for far, off in ((1e-3, 1e-4), (1e-3, 0.1), (0.5, 1e-4)):
        beta = best * (1 + far * rng.standard_normal(4))
        alpha = W * (y - X @ best) / lam * (1 + off * rng.standard_normal(9))
        scale = asked.scale[0]
        one = certify(asked, products(X), beta[None] / scale, alpha[None] / scale, np.arange(1), np.full(4, -1.0))
        rho, _ = measured(X, y, beta)
        primal = float((W * abs(rho) ** 2).sum() + lam * (abs(long(beta)) ** 2).sum()) / 2
        gaps = []
        for a in (long(alpha), W * rho / lam):
            inner = float((long(y).conj() * a).sum().real)
            image = long(X).conj().T @ a
            gaps.append(primal - lam * inner + lam**2 / 2 * float((abs(a) ** 2 / W).sum()) + lam / 2 * norm(image) ** 2)
        found = one.certificates[0]
        assert (found.value * norm(np.sqrt(W) * y)) ** 2 / 2 == pytest.approx(min(gaps), rel=1e-7)
        assert norm(beta - best) <= found.error_bound <= math.sqrt(2 * min(gaps) / lam) * 2.01 + norm(beta - best)


@pytest.mark.parametrize("layout", ["C", "F", "csr", "csc", "operator"])
@pytest.mark.parametrize("alpha", [0.0, 1.5])
def test_an_intercept_costs_rounding_as_large_as_the_means(layout, alpha, rng):
    X, Y = system((12, 4), float, 2)
    X = X + [100.0, 0.0, -5.0, 1.0]
    X[:, 1] = 7.0  # constant: nothing is left of it
    asked, _ = centred(problem(LAYOUTS[layout](X), Y, alpha))
    by, ids = products(asked.X, None, asked.shift), np.arange(2)
    beta, dual = rng.standard_normal((2, 4)), rng.standard_normal((2, 12))
    found = certify(asked, by, beta, dual, ids, np.full(4, -1.0))
    Z = X - X.mean(axis=0)
    terms = sums(by, asked.y, beta, None, None, False).terms
    own = layout == "operator"
    for k, one in enumerate(found.certificates):
        rho, g = measured(Z, asked.y[k], beta[k], alpha)
        assert one.residual_norm == pytest.approx(norm(rho) * asked.scale[k], rel=1e-9)
        assert one.gradient_norm == pytest.approx(norm(g) * asked.scale[k], rel=1e-9)
        column = np.sqrt(found.column2)
        numbers = dict(
            lam=alpha, y=asked.y[k], w=np.ones(12), beta=beta[k], rho=found.residual[k], slope=found.slope[k],
            column=column, raw=np.sqrt(found.column2 + 12 * X.mean(axis=0) ** 2), single=False, sides=None, apart=0.0,
            pair=(dual[k], Z.T @ dual[k]) if alpha else None, scale=asked.scale[k],
            units=(UNIT * (terms[0] + 48 + 3), UNIT * (terms[1] + 48 + 3)),
        )  # fmt: skip
        expected = told(numbers)
        same(
            one._replace(error_bound=None, residual_norm=0.0, gradient_norm=0.0),
            expected._replace(error_bound=None, residual_norm=0.0, gradient_norm=0.0),
        )
        if alpha:
            assert one.error_bound == pytest.approx(expected.error_bound * asked.scale[k], rel=1e-9)
    if not own:
        close(found.column2, (Z**2).sum(axis=0) * [1, 0, 1, 1], 1e-9)


def test_an_expected_residual_counts_by_how_far_it_is_from_the_one_found(rng):
    X, Y = system((5, 60), float, 1)
    asked, beta = problem(X, Y, 1.0), rng.standard_normal((1, 60))
    by, dual = products(X), rng.standard_normal((1, 5))
    rho = asked.y - beta @ X.T
    guess = rho * (1 + 1e-15)
    plain = certify(asked, by, beta, dual, np.arange(1), np.full(60, -1.0))
    found = certify(asked, by, beta, dual, np.arange(1), np.full(60, -1.0), guess)
    close(found.slope, guess @ X)
    apart = norm(found.residual - guess)
    assert apart > 0
    terms = sums(by, asked.y, beta, None, dual, True, guess).terms
    column = np.sqrt((X**2).sum(axis=0))
    numbers = dict(
        lam=1.0, y=asked.y[0], w=np.ones(5), beta=beta[0], rho=found.residual[0], slope=found.slope[0], column=column,
        raw=column, pair=(dual[0], dual[0] @ X), units=(UNIT * (terms[0] + 3), UNIT * (terms[1] + 3)),
        scale=asked.scale[0], sides=None, apart=apart, single=False,
    )  # fmt: skip
    one = found.certificates[0]
    expected = told(numbers)
    assert one.value == pytest.approx(expected.value, rel=1e-13)
    assert one.rounding == pytest.approx(expected.rounding, rel=1e-9)
    assert one.rounding > plain.certificates[0].rounding or one.rounding == expected.rounding


def test_each_right_hand_side_has_its_own_penalty_and_its_own_room_within_bounds(rng):
    X, Y = system((9, 4), float, 2)
    alphas = np.array([0.5, 8.0])
    asked = problem(X, Y, alphas)
    beta = rng.standard_normal((2, 4))
    found = certify(asked, products(X), beta, None, np.array([1, 0]), np.full(4, -1.0))
    for k, i in enumerate((1, 0)):
        _, g = measured(X, asked.y[i], beta[k], alphas[i])
        assert found.certificates[k].gradient_norm == pytest.approx(norm(g) * asked.scale[i], rel=1e-11)
    low, high = np.array([-1.0, -np.inf, 0.0, 2.0]), np.array([1.0, 3.0, np.inf, 2.0])
    for alpha in (0.0, 0.5):
        asked = problem(X, Y, alpha, None, (low, high))
        beta = np.clip(3 * rng.standard_normal((2, 4)) * [1, 1, 1, 1], low / 2.0, high) / asked.scale[:, None]
        beta[:, 0], beta[0, 2] = high[0] / asked.scale, 0.0
        beta[:, 3] = 2.0 / asked.scale
        found = certify(asked, products(X), beta, None, np.arange(2), np.full(4, -1.0))
        for k, one in enumerate(found.certificates):
            _, g = measured(X, Y[:, k], beta[k] * asked.scale[k], alpha)
            at = beta[k] * asked.scale[k]
            g = np.where((at == low) & (g < 0) | (at == high) & (g > 0), 0, g).astype(float)
            assert one.gradient_norm == pytest.approx(norm(g), rel=1e-9)


# --- half a look ---------------------------------------------------------------------------------------------------


def test_half_a_look_is_the_residual_alone():
    X, Y = system((9, 4), float, 2)
    beta = np.array([[1.0, -2.0, 0.5, 3.0], [0.0, 1.0, 1.0, -0.3]])
    Y = X @ beta.T * [3.0, 0.01] + 1e-9 * Y
    asked = problem(X, Y)
    beta = beta * np.array([3.0, 0.01])[:, None] / asked.scale[:, None]
    for ids in (np.array([0, 1]), np.array([1])):
        found = certify_residual(asked, products(X), beta[ids], ids, 1e-3)
        assert found is not None
        assert found.image is None
        assert (found.slope.shape, found.column2.size) == ((len(ids), 0), 0)
        for k, i in enumerate(ids):
            one, scale = found.certificates[k], asked.scale[i]
            rho, _ = measured(X, Y[:, i], beta[i] * scale)
            size, reach = norm(Y[:, i]) / scale, norm(abs(X) @ abs(beta[i]))
            off = UNIT * (4 + 3) * (size + reach)
            assert one.kind == "residual"
            assert one.residual_norm == pytest.approx(norm(rho), rel=1e-6)
            assert one.rounding == pytest.approx(off / size, rel=1e-9)
            assert one.value == pytest.approx(norm(rho) / scale / size + off / size, rel=1e-6)
            assert (one.storing, one.error_bound, one.exhausted) == (0.0, None, False)
            assert math.isnan(one.gradient_norm)
            assert type(one.value) is float
        value = max(c.value for c in found.certificates)
        assert certify_residual(asked, products(X), beta[ids], ids, value) is not None
        assert certify_residual(asked, products(X), beta[ids], ids, value * (1 - 1e-9)) is None
        assert certify_residual(asked, products(X), beta[ids] * np.nan, ids, 1e300) is None


def test_half_a_look_is_for_plain_rows_only():
    X, Y = system((9, 4), float, 1)
    one, beta = np.array([0]), np.zeros((1, 4))
    beta[0, 0] = 1.0
    assert certify_residual(problem(X, Y), products(X), beta, one, 1e9) is not None
    assert certify_residual(problem(X, Y, 1e-9), products(X), beta, one, 1e9) is None
    assert certify_residual(problem(X, Y, 0.0, np.ones(9)), products(X), beta, one, 1e9) is None
    F = np.asfortranarray(X)
    assert certify_residual(problem(F, Y), products(F), beta, one, 1e9) is None
    asked, _ = centred(problem(X, Y))
    assert certify_residual(asked, products(X, None, asked.shift), beta, one, 1e9) is None


@pytest.mark.parametrize("size", [1.0, 3e8, 1e-8])
def test_half_a_look_knows_when_rounding_is_all_that_is_left(size):
    """Whatever the size of y: it was held against a residual in another unit."""
    X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    beta = np.array([[1.0, 1.0]])
    for off, exhausted in ((0.0, True), (2.5, True), (3.5, False), (40.0, False)):
        y = X @ beta[0]
        y[0] += off * UNIT * (2 + 3) * (2 * norm(y))
        asked = problem(X, y * size)
        found = certify_residual(asked, products(X), beta * size / asked.scale[0], np.arange(1), 1.0)
        assert found is not None
        left = norm(found.residual[0]) * asked.scale[0]
        assert found.certificates[0].residual_norm == left
        assert found.certificates[0].exhausted == exhausted, (left, off)


def test_half_a_look_at_nothing():
    """y = 0 and β = 0: no rounding, where it was NaN."""
    X, Y = system((9, 4), float, 2)
    Y[:, 1] = 0
    beta = np.zeros((2, 4))
    beta[0, 1] = 1.0
    found = certify_residual(problem(X, Y), products(X), beta, np.arange(2), 1e9)
    assert found is not None
    assert found.certificates[1][:5] == ("residual", 0.0, 0.0, 0.0, 0.0)
    assert found.certificates[1].exhausted
    beta[1, 1] = 1e-200  # no y, but an answer
    assert certify_residual(problem(X, Y), products(X), beta, np.arange(2), 1e9) is None


def test_half_a_look_counts_what_storing_in_single_precision_does():
    X = system((9, 4), float, 1)[0].astype(np.float32)
    beta = np.array([[1.0, -2.0, 0.5, 3.0]])
    asked = problem(X, X.astype(float) @ beta[0])
    at = beta / asked.scale[0]
    found = certify_residual(asked, products(X), at, np.arange(1), 1.0)
    assert found is not None
    storing = 2.0**-24 * norm(abs(X).astype(float) @ abs(at[0])) / norm(asked.y)
    assert found.certificates[0].storing == pytest.approx(storing, rel=1e-6)
    both = found.certificates[0].value + found.certificates[0].storing
    assert certify_residual(asked, products(X), at, np.arange(1), both) is not None
    assert certify_residual(asked, products(X), at, np.arange(1), both * (1 - 1e-9)) is None


def test_half_a_look_leaves_answers_in_subnormal_numbers_to_a_whole_one():
    """In single precision these are stored to three digits: the half look said ten."""
    X = system((9, 4), float, 1)[0].astype(np.float32)
    for size, fine in ((1e-43, False), (1e-20, True)):
        beta = np.array([[1.0, -2.0, 0.5, 3.0]]) * size
        asked = problem(X, X.astype(float) @ beta[0])
        at = beta / asked.scale[0]
        assert (certify_residual(asked, products(X), at, np.arange(1), 1.0) is not None) == fine
        whole = certify(asked, products(X), at, None, np.arange(1), np.full(4, -1.0)).certificates[0]
        kept = beta[0].astype(np.float32).astype(float)
        lost = norm(X.astype(float) @ (kept - beta[0]) / asked.scale[0]) / norm(asked.y)
        assert lost <= whole.value + whole.storing
        assert (lost > 1e-5) != fine


# --- kernels -------------------------------------------------------------------------------------------------------


def with_kernel(kernel, n=30, weight=None, q=2, lam=0.3):
    rng = np.random.default_rng(5)
    Z, Y = rng.standard_normal((n, 3)), rng.standard_normal((n, q)) * np.array([50.0, 0.1])[:q]
    g = gram(kernel, Z)
    asked = problem(np.eye(n), Y, lam, weight)._replace(X=g)
    return g, Z, asked, rng.standard_normal((q, n))


@pytest.mark.parametrize("weighted", [False, True])
def test_a_kernel_fit(weighted, rng):
    w = 20.0 * rng.random(30) * (np.arange(30) != 3) if weighted else None
    g, Z, asked, alpha = with_kernel(RBF, weight=w)
    K = np.exp(-((long(Z)[:, None] - long(Z)) ** 2).sum(axis=-1) / (2 * 1.3**2))
    weight = np.ones(30) if w is None else w / asked.gauge
    inverse = np.array([1 / v if v else 0.0 for v in weight])
    if weighted:
        alpha[:, 3] = 0
    sizes, ids = np.full(30, -1.0), np.array([1, 0])
    found = certify(asked, products(np.eye(30)), alpha, None, ids, sizes)
    close(sizes, np.ones(30))
    assert (found.image, found.slope.shape, found.column2 is sizes) == (None, (2, 0), True)
    unit = g.error + UNIT * (g.width + 30 / g.width + 3)
    for k, i in enumerate(ids):
        one, scale = found.certificates[k], asked.scale[i]
        left = norm(np.sqrt(weight) * (asked.y[i] - K @ alpha[k] - asked.alpha * inverse * alpha[k]))
        size = norm(np.sqrt(weight) * asked.y[i])
        off = unit * norm(np.sqrt(weight)) * abs(alpha[k]).sum()
        off += 3 * UNIT * (size + asked.alpha * norm(np.sqrt(inverse) * alpha[k]))
        assert one.kind == "gap"
        assert one.value == pytest.approx((left + off) / size, rel=1e-11)
        assert one.rounding == pytest.approx(off / size, rel=1e-11)
        assert one.error_bound == pytest.approx((left + off) / (2 * math.sqrt(asked.alpha)) * scale, rel=1e-11)
        rho = np.sqrt(weight) * (asked.y[i] - K @ alpha[k])
        assert one.residual_norm == pytest.approx(norm(rho) * scale * math.sqrt(asked.gauge), rel=1e-11)
        assert (one.storing, one.exhausted) == (0.0, False)
        assert math.isnan(one.gradient_norm)
        # the bound itself: ‖f − f*‖² = (α − α*)ᵀK(α − α*)
        live = weight > 0
        A = K[np.ix_(live, live)].astype(float) + np.diag(asked.alpha * inverse[live])
        away = alpha[k][live] - np.linalg.solve(A, asked.y[i][live])
        assert math.sqrt(away @ K[np.ix_(live, live)].astype(float) @ away) * scale <= one.error_bound
    known = certify(asked, products(np.eye(30)), alpha, None, ids, np.full(30, 4.0))
    assert known.certificates[0].rounding > 1.9 * found.certificates[0].rounding


def test_a_kernel_fit_that_is_done_and_one_of_nothing():
    g, _, asked, _ = with_kernel(RBF)
    K = g.kernel(with_kernel(g.kernel)[1])
    alpha = np.linalg.solve(K + 0.3 * np.eye(30), asked.y.T).T
    one = certify(asked, products(np.eye(30)), alpha, None, np.arange(2), np.full(30, -1.0)).certificates[0]
    assert one.exhausted
    nothing = asked._replace(y=np.zeros((2, 30)))
    one = certify(nothing, products(np.eye(30)), 0 * alpha, None, np.arange(2), np.full(30, -1.0)).certificates[0]
    assert (one.value, one.rounding, one.error_bound) == (0.0, 0.0, 0.0)
    one = certify(nothing, products(np.eye(30)), alpha, None, np.arange(2), np.full(30, -1.0)).certificates[0]
    assert one.value > 1
    assert one.error_bound > 0
    one = certify(asked, products(np.eye(30)), 0 * alpha, None, np.arange(2), np.full(30, -1.0)).certificates[0]
    assert one.value == pytest.approx(1, rel=1e-12)


def test_no_bound_where_a_kernel_that_is_said_to_be_definite_is_not():
    for sign, bounded in ((1.0, True), (-1.0, False)):
        rng = np.random.default_rng(0)
        Z = rng.standard_normal((12, 2))
        K = sign * np.exp(-((Z[:, None] - Z) ** 2).sum(axis=-1)) + (0 if sign > 0 else 2) * np.eye(12)
        g = gram(kernels.Precomputed(), K)
        asked = problem(np.eye(12), rng.standard_normal(12), 0.5)._replace(X=g)
        alpha = np.ones((1, 12))
        one = certify(asked, products(np.eye(12)), alpha, None, np.arange(1), np.full(12, -1.0)).certificates[0]
        assert (one.error_bound is not None) == bounded


def test_a_kernel_fit_that_leaves_float64_is_an_error():
    _, _, asked, alpha = with_kernel(RBF)
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="leave float64"):
        certify(asked, products(np.eye(30)), alpha * 1e308, None, np.arange(2), np.full(30, -1.0))


def test_weights_of_a_right_hand_side():
    X, Y = system((4, 2), float, 2)
    assert [a.tolist() for a in weight_of(problem(X, Y), 0)] == [[1] * 4, [1] * 4]
    one = problem(X, Y, 0.0, [1.0, 0.0, 0.5, 0.25])
    assert [a.tolist() for a in weight_of(one, 1)] == [[1, 0, 0.5, 0.25], [1, 0, 2, 4]]
    each = one._replace(weight=np.array([[1.0, 1, 1, 1], [0, 0.5, 1, 0]]))
    assert [a.tolist() for a in weight_of(each, 1)] == [[0, 0.5, 1, 0], [0, 2, 1, 0]]
    assert weight_of(each, 0)[0].tolist() == [1] * 4


# --- what stops a look ---------------------------------------------------------------------------------------------


def looked(X, y=None, weight=None, column2=None, shift=False):
    asked = problem(X, np.ones(X.shape[0]) if y is None else y, 0.0, weight)
    asked = centred(asked)[0] if shift else asked
    column2 = np.full(X.shape[1], -1.0) if column2 is None else column2
    by = products(asked.X, None, asked.shift)
    return certify(asked, by, np.zeros((1, X.shape[1])), None, np.arange(1), column2)


@pytest.mark.parametrize("layout", ["C", "F", "csr", "csc"])
def test_columns_too_small_to_square_are_named_and_columns_of_zeros_are_not(layout):
    X = np.ones((4, 3))
    X[:, 1] = [0, 1e-141, 0, 0]
    with pytest.raises(ValueError, match="column 1 of X is so small"):
        looked(LAYOUTS[layout](X))
    X[:, 1] = [0, 1e-138, 0, 0]
    looked(LAYOUTS[layout](X))
    X[:, 1] = 0
    looked(LAYOUTS[layout](X))
    X[:, 2] = 1e-150
    with pytest.raises(ValueError, match="column 2 of X is so small"):
        looked(LAYOUTS[layout](X))
    looked(aslinearoperator(X))


@pytest.mark.parametrize("layout", ["C", "csr"])
def test_rows_that_do_not_count_name_no_column(layout):
    X = np.ones((4, 3))
    X[:, 1] = [0, 1e-150, 0, 0]
    w = np.ones(4)
    with pytest.raises(ValueError, match="column 1 of X is so small"):
        looked(LAYOUTS[layout](X), weight=w)
    w[1] = 0
    looked(LAYOUTS[layout](X), weight=w)


def test_constant_columns_are_known_to_be_nothing():
    X = np.arange(12.0).reshape(4, 3) ** 2
    X[:, 1] = 5.0
    looked(X, y=np.arange(4.0), shift=True)
    X[:, 1] = [5.0, 5.0, 5.0, 5.0 + 1e-9]
    looked(X, y=np.arange(4.0), shift=True)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("layout", ["C", "F", "csr"])
def test_a_number_that_is_none_is_found_where_it_is(bad, layout):
    X = np.ones((4, 3))
    X[2, 1] = bad
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match="row 2, column 1"):
        looked(LAYOUTS[layout](X))
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match="row 2, column 1"):
        looked(LAYOUTS[layout](X), column2=np.ones(3))


def test_norms_that_leave_float64_are_an_error():
    with np.errstate(over="ignore", invalid="ignore"), pytest.raises(ValueError, match="values near 1e\\+200"):
        looked(np.full((4, 3), 1e200))


def test_an_operator_of_zeros_and_one_that_overflows():
    found = looked(aslinearoperator(np.zeros((4, 3))))
    assert found.column2.tolist() == [0, 0, 0]
    big = LinearOperator((2, 2), matvec=lambda v: np.full(2, np.inf), rmatvec=lambda v: np.full(2, np.inf), dtype=float)
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match="operator"):
        looked(big)


# --- is there a β at all? --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_hopeless_tells_no_solution_from_slow_rows(weighted, rng):
    w = rng.random(30) + 0.1 if weighted else None
    X = rng.standard_normal((30, 6))
    consistent = X @ np.ones(6)
    start = np.zeros(6)
    for y, expected in ((consistent, False), (consistent + rng.standard_normal(30), True)):
        for scale in (1.0, 1e7):
            asked = problem(X, y * scale, 0.0, w)
            assert hopeless(asked, products(X), start, 0, 3) == expected
    asked = problem(X, np.column_stack([consistent, consistent + rng.standard_normal(30)]), 0.0, w)
    assert [hopeless(asked, products(X), start, i, 3) for i in range(2)] == [False, True]
    # slow for rows: conjugate gradients keep taking the residual down
    slow = rng.standard_normal((60, 60)) * np.geomspace(1, 1e-4, 60)
    assert not hopeless(problem(slow, slow @ np.ones(60)), products(slow), np.zeros(60), 0, 10)
    # at the solution of least squares already
    best = np.linalg.lstsq(X, y, rcond=None)[0]
    asked = problem(X, y)
    assert hopeless(asked, products(X), best / asked.scale[0], 0, 3)
    assert not hopeless(
        problem(X, consistent), products(X), np.ones(6) / problem(X, consistent).scale[0] * 1.0001, 0, 3
    )
