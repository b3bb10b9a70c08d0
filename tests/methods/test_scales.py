"""Length-scales by gradients: the closed form against naive refits, derivatives against differences."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.kernel_ridge import KernelRidge as Theirs

from rowcol import kernels
from rowcol.methods.scales import _error, tunable, tuned, usual_scale, with_scales

KERNELS = [
    kernels.RBF(),
    kernels.Matern(nu=0.5),
    kernels.Matern(nu=1.5),
    kernels.Matern(nu=2.5),
    kernels.Laplacian(),
    kernels.Laplacian(norm="l2"),
]


def data(n=60, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    Y = np.stack([np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(n), X[:, 1] * X[:, 0]], axis=1)
    return X, Y, rng.uniform(0.5, 2.0, n)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_the_error_is_that_of_leaving_one_out(kernel):
    X, Y, w = data(25)
    lengths, alpha = np.array([0.7, 1.0, 2.0, 3.0]), 0.3
    value, _ = _error(kernel, X / lengths, Y, w, alpha)
    K = with_scales(kernel, lengths)(X)  # by tiles, which know another code
    total = 0.0
    for i in range(25):
        out = np.arange(25) != i
        model = Theirs(alpha=alpha, kernel="precomputed").fit(K[np.ix_(out, out)], Y[out], sample_weight=w[out])
        total += w[i] * ((Y[i] - model.predict(K[i : i + 1, out])[0]) ** 2).sum()
    assert np.exp(value) == pytest.approx(total / w.sum(), rel=1e-9)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_derivatives_are_limits_of_differences(kernel):
    X, Y, w = data()
    theta = np.array([-0.2, 0.1, 0.3, 0.0, -1.0])

    def value(t):
        return _error(kernel, X * np.exp(-t[:-1]), Y, w, np.exp(t[-1]))

    slopes = value(theta)[1]
    differences = [(value(theta + 1e-5 * e)[0] - value(theta - 1e-5 * e)[0]) / 2e-5 for e in np.eye(5)]
    np.testing.assert_allclose(slopes, differences, atol=1e-7)
    assert np.abs(slopes).max() > 1e-2


def test_features_that_do_not_matter_get_long_scales():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 5))
    y = np.sin(2 * X[:, [3]]) + 0.05 * rng.standard_normal((300, 1))
    start = usual_scale(kernels.RBF(), X, rng), 1e-2
    each = tuned(kernels.RBF(), X, y, np.ones(300), start, True)
    lengths = np.array(each.kernel.length_scale)
    assert (np.delete(lengths, 3) > 10 * lengths[3]).all()
    one = tuned(kernels.RBF(), X, y, np.ones(300), start, False)
    assert np.ndim(one.kernel.length_scale) == 0
    assert each.error < 0.5 * one.error
    assert each.error == pytest.approx(0.05**2, rel=0.35)  # what noise leaves; 300 points know it to 8 %


def test_sparse_points_no_time_and_what_has_no_scales():
    X, Y, w = data()
    start = np.ones(4), 0.1
    a = tuned(kernels.RBF(), X, Y, w, start, True, most=5)
    b = tuned(kernels.RBF(), sp.csr_array(X), Y, w, start, True, most=5)
    assert a == b
    late = tuned(kernels.RBF(), X, Y, w, start, True, late=lambda: True)
    assert late.looks == 1
    assert late.alpha == pytest.approx(0.1)
    assert tunable(kernels.Matern())
    assert not tunable(kernels.Polynomial())
    # points that are all the same have no distance
    assert (usual_scale(kernels.RBF(), np.ones((30, 2)), np.random.default_rng(0)) == 1.0).all()
    # and where nothing is definite any more, the start is kept
    stuck = tuned(kernels.RBF(), np.ones((30, 2)), np.ones((30, 1)), np.full(30, 1e30), (np.ones(2), 1e-6), False)
    assert stuck.alpha == pytest.approx(1e-6)
