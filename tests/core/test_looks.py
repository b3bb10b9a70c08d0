"""Looks at an answer, by every layout of X: what they measure, against long double, and the rounding they allow."""

import math

import numpy as np
import pytest

from certificates import LAYOUTS, UNIT, long, measured, norm, same, system, told
from oracle import close
from rowcol.core.centre import centred
from rowcol.core.certify import certify
from rowcol.core.problem import problem
from rowcol.core.products import products
from rowcol.core.sums import sums


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
    # known norms of columns are believed, unless one is not, and no α is needed
    for times in (4.0, 1e-6, *([0.0] if layout in ("csc", "operator") else [])):
        believed = certify(asked, by, beta, None, ids, column2 * times)
        assert believed.column2[0] == times * column2[0]
        assert believed.image is None
    some = column2 * 4
    some[-1] = -1.0
    close(certify(asked, by, beta, None, ids, some).column2, column2, 1e-12)
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
@pytest.mark.parametrize("kind", [float, complex])
def test_an_intercept_costs_rounding_as_large_as_the_means(layout, alpha, kind, rng):
    X, Y = system((12, 4), kind, 2)
    X = X + [100.0, 0.0, -5.0, 1.0 if kind is float else 3j]
    X[:, 1] = 7.0  # constant: nothing is left of it
    asked, _ = centred(problem(LAYOUTS[layout](X), Y, alpha))
    asked = asked._replace(y=asked.y + 0.7)  # X is centred, y need not be
    by, ids = products(asked.X, None, asked.shift), np.arange(2)
    beta, dual = (rng.standard_normal((2, k)).astype(asked.y.dtype) for k in (4, 12))
    found = certify(asked, by, beta, dual, ids, np.full(4, -1.0))
    beta = beta if asked.shift.live is None else beta * asked.shift.live  # constant columns are no part of an answer
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
            column=column, raw=np.sqrt(found.column2 + 12 * abs(X.mean(axis=0)) ** 2), sides=None, apart=0.0,
            single=False, pair=(dual[k], Z.conj().T @ dual[k]) if alpha else None, scale=asked.scale[k],
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
        close(found.column2, (abs(Z) ** 2).sum(axis=0) * [1, 0, 1, 1], 1e-9)


def test_an_expected_residual_counts_by_how_far_it_is_from_the_one_found(rng):
    X, Y = system((5, 60), float, 1)
    asked, beta = problem(X, Y, 1.0), 1e-4 * rng.standard_normal((1, 60))
    by = products(X)
    rho = asked.y - beta @ X.T
    guess = rho * (1 + 4e-15)
    plain = certify(asked, by, beta, None, np.arange(1), np.full(60, -1.0))
    found = certify(asked, by, beta, None, np.arange(1), np.full(60, -1.0), guess)
    close(found.slope, guess @ X)
    apart = norm(found.residual - guess)
    assert apart > 0
    terms = sums(by, asked.y, beta, None, None, True, guess).terms
    column = np.sqrt((X**2).sum(axis=0))
    numbers = dict(
        lam=1.0, y=asked.y[0], w=np.ones(5), beta=beta[0], rho=found.residual[0], slope=found.slope[0], column=column,
        raw=column, pair=None, units=(UNIT * (terms[0] + 3), UNIT * (terms[1] + 3)),
        scale=asked.scale[0], sides=None, apart=apart, single=False,
    )  # fmt: skip
    one = found.certificates[0]
    expected = told(numbers)
    assert one.value == pytest.approx(expected.value, rel=1e-13)
    assert one.rounding == pytest.approx(expected.rounding, rel=1e-9, abs=0)
    assert one.rounding > plain.certificates[0].rounding * 1.1


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
