"""Looks at a kernel fit, against the matrix written out: what they measure, bound, and refuse to bound."""

import math

import numpy as np
import pytest

from certificates import UNIT, long, norm, system
from oracle import close
from rowcol import kernels
from rowcol.core.certify import certify, weight_of
from rowcol.core.gram import gram
from rowcol.core.problem import problem
from rowcol.core.products import products

RBF = kernels.RBF(gamma=1 / (2 * 1.3**2))


def with_kernel(kernel, n=30, weight=None, q=2, lam=0.3):
    rng = np.random.default_rng(5)
    Z, Y = rng.standard_normal((n, 3)), rng.standard_normal((n, q)) * np.array([50.0, 0.1])[:q]
    g = gram(kernel, Z)
    asked = problem(np.eye(n), Y, lam, weight)._replace(X=g)
    return g, Z, asked, rng.standard_normal((q, n))


@pytest.mark.parametrize("weighted", [False, True])
def test_a_kernel_fit(weighted, rng):
    w = 20.0 * rng.random(30) * (np.arange(30) != 3) if weighted else None
    g, Z, asked, noise = with_kernel(RBF, weight=w)
    K = np.exp(-((long(Z)[:, None] - long(Z)) ** 2).sum(axis=-1) / (2 * 1.3**2))
    weight = np.ones(30) if w is None else w / asked.gauge
    inverse, live = np.array([1 / v if v else 0.0 for v in weight]), weight > 0
    A = K.astype(float) + np.diag(asked.alpha * inverse)
    best, unit = np.zeros((2, 30)), g.error + UNIT * (g.width + 1 + 3)
    best[:, live] = np.linalg.solve(A[np.ix_(live, live)], asked.y[:, live].T).T
    for far in (1.0, 1e-9, 0.0):
        alpha = (best[::-1] + far * noise) * live
        sizes, ids = np.full(30, -1.0), np.array([1, 0])
        found = certify(asked, products(np.eye(30)), alpha, None, ids, sizes)
        close(sizes, np.ones(30))
        assert (found.image, found.slope.shape, found.column2 is sizes) == (None, (2, 0), True)
        close(found.residual, np.asarray(asked.y[ids] - alpha @ K, float), 1e-12)
        for k, i in enumerate(ids):
            one, scale = found.certificates[k], asked.scale[i]
            left = norm(np.sqrt(weight) * (found.residual[k] - asked.alpha * inverse * alpha[k]))
            size = norm(np.sqrt(weight) * asked.y[i])
            off = unit * norm(np.sqrt(weight)) * abs(alpha[k]).sum()
            off += 3 * UNIT * (size + asked.alpha * norm(np.sqrt(inverse) * alpha[k]))
            assert one.kind == "gap"
            assert one.value == pytest.approx((left + off) / size, rel=1e-11, abs=0)
            assert one.rounding == pytest.approx(off / size, rel=1e-11, abs=0)
            bound = (left + off) / (2 * math.sqrt(asked.alpha)) * scale
            assert one.error_bound == pytest.approx(bound, rel=1e-11, abs=0)
            rho = norm(np.sqrt(weight) * found.residual[k])
            assert one.residual_norm == pytest.approx(rho * scale * math.sqrt(asked.gauge), rel=1e-11, abs=0)
            assert (one.storing, one.exhausted) == (0.0, far == 0)
            assert math.isnan(one.gradient_norm)
            # the bound itself: ‖f − f*‖² = (α − α*)ᵀK(α − α*)
            away = alpha[k] - best[i]
            assert math.sqrt(max(away @ K.astype(float) @ away, 0.0)) * scale <= one.error_bound
    # sizes that are known are believed, unless one is not
    for believed in (4.0, 0.25, 0.0):
        sizes = np.full(30, believed)
        one = certify(asked, products(np.eye(30)), alpha, None, ids, sizes).certificates[0]
        size = norm(np.sqrt(weight) * asked.y[1])
        off = unit * believed * norm(np.sqrt(weight)) * abs(alpha[0]).sum()
        off += 3 * UNIT * (size + asked.alpha * norm(np.sqrt(inverse) * alpha[0]))
        assert one.rounding == pytest.approx(off / size, rel=1e-11, abs=0)
    sizes[3] = -1.0
    certify(asked, products(np.eye(30)), alpha, None, ids, sizes)
    close(sizes, np.ones(30))


def test_a_kernel_fit_is_exhausted_where_rounding_is_a_third_of_what_is_left(rng):
    g, Z, asked, noise = with_kernel(RBF, q=1)
    unit = g.error + UNIT * (g.width + 1 + 3)
    best, seen = np.linalg.solve(RBF(Z) + 0.3 * np.eye(30), asked.y[0]), []
    for far in np.geomspace(1e-15, 1e-10, 60):
        alpha = best[None] + far * noise
        found = certify(asked, products(np.eye(30)), alpha, None, np.arange(1), np.full(30, -1.0))
        left = norm(found.residual[0] - 0.3 * alpha[0])
        off = unit * math.sqrt(30) * abs(alpha).sum() + 3 * UNIT * (norm(asked.y) + 0.3 * norm(alpha))
        seen.append(left <= 3 * off)
        assert found.certificates[0].exhausted == seen[-1]
    assert (seen[0], seen[-1]) == (True, False)


def test_a_kernel_fit_whose_points_that_count_have_small_y():
    """So that ‖W^½y‖ is below one, though y is scaled to one."""
    w = np.full(30, 1e-12)
    w[4] = 1.0
    _, _, asked, alpha = with_kernel(RBF, weight=w, q=1)
    asked.y[0, 4] = 1e-5
    one = certify(asked, products(np.eye(30)), 0 * alpha, None, np.arange(1), np.full(30, -1.0)).certificates[0]
    assert one.value == pytest.approx(1, rel=1e-12)
    assert one.rounding == pytest.approx(3 * UNIT, rel=1e-12, abs=0)


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


@pytest.mark.parametrize("times", [-0.5, 0.5, 2.0])
@pytest.mark.parametrize("large", [1.0, 1e3, 1e-3])
def test_no_bound_where_a_kernel_that_is_said_to_be_definite_is_not(large, times, rng):
    """αᵀKα is below zero by `times` what rounding can do: within that it may be rounding."""
    v = rng.random(12) + 0.5
    alpha = rng.standard_normal(12)
    alpha = (alpha - alpha @ v / (v @ v) * v)[None] * large
    unit = gram(kernels.Precomputed(), np.eye(12)).error + UNIT * (512 + 12 / 512 + 3)
    reach = abs(alpha[0]) @ v
    K = np.outer(v, v) - times * unit * reach**2 / (alpha @ alpha.T)[0, 0] * np.eye(12)
    asked = problem(np.eye(12), rng.standard_normal(12), 0.5)._replace(X=gram(kernels.Precomputed(), K))
    one = certify(asked, products(np.eye(12)), alpha, None, np.arange(1), np.full(12, -1.0)).certificates[0]
    assert (one.error_bound is not None) == (times < 1)


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
