"""Kernels and their tiles, against scikit-learn's functions, SciPy's distances and extended precision."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import Matern as GPMatern
from sklearn.metrics import pairwise

import rowcol
from rowcol import kernels
from rowcol.core.gram import block, cross, gram, picked, product, some_columns, written
from rowcol.core.memory import NARROW, WIDE, width_of
from rowcol.core.sides import points
from rowcol.core.sizes import diagonal
from rowcol.engine import tiles

TOLERANCE = {np.float32: 1e-6, np.float64: 1e-12}
PAIRS = {
    "rbf": (kernels.RBF(), pairwise.rbf_kernel),
    "rbf gamma": (kernels.RBF(gamma=0.05), lambda A, B: pairwise.rbf_kernel(A, B, gamma=0.05)),
    "rbf lengths": (
        kernels.RBF(length_scale=np.linspace(1, 3, 5)),
        lambda A, B: np.exp(-0.5 * cdist(A / np.linspace(1, 3, 5), B / np.linspace(1, 3, 5), "sqeuclidean")),
    ),
    "laplacian": (kernels.Laplacian(), pairwise.laplacian_kernel),
    "laplacian l2": (kernels.Laplacian(gamma=0.4, norm="l2"), lambda A, B: np.exp(-0.4 * cdist(A, B))),
    "matern 1/2": (kernels.Matern(0.5, 1.3), GPMatern(1.3, nu=0.5)),
    "matern 3/2": (kernels.Matern(1.5, np.linspace(1, 2, 5)), GPMatern(np.linspace(1, 2, 5), nu=1.5)),
    "matern 5/2": (kernels.Matern(2.5, 2.0), GPMatern(2.0, nu=2.5)),
    "poly": (kernels.Polynomial(), pairwise.polynomial_kernel),
    "poly 2": (kernels.Polynomial(2, 0.3, 0.5), lambda A, B: pairwise.polynomial_kernel(A, B, 2, 0.3, 0.5)),
    "poly 1": (kernels.Polynomial(1, 0.3, 2.0), lambda A, B: pairwise.polynomial_kernel(A, B, 1, 0.3, 2.0)),
    "poly 5": (kernels.Polynomial(5, 0.1, 2.0), lambda A, B: pairwise.polynomial_kernel(A, B, 5, 0.1, 2.0)),
    "linear": (kernels.Linear(), pairwise.linear_kernel),
    "sigmoid": (kernels.Sigmoid(), pairwise.sigmoid_kernel),
    "cosine": (kernels.Cosine(), pairwise.cosine_similarity),
    "chi2": (kernels.Chi2(0.3), lambda A, B: pairwise.chi2_kernel(A, B, gamma=0.3)),
    "function": (kernels.Function(pairwise.rbf_kernel), pairwise.rbf_kernel),
    "sum": (
        kernels.RBF() + 0.5 * kernels.Linear() * kernels.Laplacian(),
        lambda A, B: pairwise.rbf_kernel(A, B) + 0.5 * pairwise.linear_kernel(A, B) * pairwise.laplacian_kernel(A, B),
    ),
    "mixed": (
        kernels.Function(pairwise.rbf_kernel) * kernels.Matern(),
        lambda A, B: pairwise.rbf_kernel(A, B) * GPMatern(1.0, nu=1.5)(A, B),
    ),
}


def data(name, n, d, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, d))
    return np.abs(X) if name == "chi2" else X


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", PAIRS)
def test_every_kernel_is_scikit_learns(name, dtype):
    """Every way to look at the matrix: all of it, rows, columns, blocks, the diagonal, products with it."""
    kernel, truth = PAIRS[name]
    X, A = data(name, 1100, 5), data(name, 70, 5, 1)
    K, C = truth(X, X), truth(A, X)
    g = gram(kernel, X, dtype)
    rng = np.random.default_rng(2)
    i, j, V = rng.integers(0, 1100, 50), rng.integers(0, 1100, 61), rng.standard_normal((3, 1100))
    tol = TOLERANCE[dtype] * np.abs(K).max()
    assert np.abs(written(g) - K).max() <= tol
    assert np.abs(written(cross(g, A)) - C).max() <= tol
    assert np.abs(written(picked(g, i)) - K[i]).max() <= tol
    assert np.abs(block(g, i, j) - K[np.ix_(i, j)]).max() <= tol
    assert np.abs(diagonal(g) - np.diag(K)).max() <= tol
    size = tol * np.abs(V).sum(axis=1).max()
    for v in (V[:1], V):
        assert np.abs(product(g, v) - v @ K).max() <= size
        assert np.abs(product(cross(g, A), v) - v @ C.T).max() <= size
        assert np.abs(product(some_columns(g, j), v[:, :61]) - v[:, :61] @ K[:, j].T).max() <= size


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [*range(1, 14), 40, 97, 401])
def test_every_number_of_features(d, dtype):
    """Differences, dot products and BLAS, at every remainder."""
    X = data("", 131, d) / np.sqrt(d)
    for kernel, truth in ((kernels.RBF(gamma=0.7), cdist(X, X, "sqeuclidean")), (kernels.Matern(0.5), cdist(X, X))):
        K = np.exp(-0.7 * truth if isinstance(kernel, kernels.RBF) else -truth)
        g = gram(kernel, X, dtype)
        assert np.abs(written(g) - K).max() <= 2 * TOLERANCE[dtype]
        assert np.abs(product(g, np.ones((1, 131))) - K.sum(axis=1)).max() <= 131 * TOLERANCE[dtype]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 511, 512, 513, 514, 1027])
def test_every_remainder_of_points(n):
    X = data("", n, 3)
    K = np.exp(-cdist(X, X, "sqeuclidean") / 3)
    v = np.random.default_rng(0).standard_normal((1, n))
    for dtype, tol in TOLERANCE.items():
        g = gram(kernels.RBF(), X, dtype)
        assert np.abs(product(g, v) - v @ K).max() <= tol * n
        assert np.abs(product(g, np.vstack([v, v])) - v @ K).max() <= tol * n


def test_tiles_of_many_points():
    """Wide tiles, and bands of several."""
    X = data("", 8 * WIDE + 5, 2)
    g = gram(kernels.RBF(), X)
    assert g.width == WIDE
    v = np.random.default_rng(0).standard_normal((1, len(X)))
    some = np.array([0, WIDE - 1, WIDE, 5000, len(X) - 1])
    truth = np.exp(-cdist(X[some], X, "sqeuclidean") / 2) @ v[0]
    assert np.abs(product(g, v)[0, some] - truth).max() < 1e-11


def test_features_of_a_tile_are_spread_over_the_cache():
    """Not 2,048 bytes or a multiple apart, in either precision: they would share a few of its sets."""
    few = gram(kernels.RBF(), data("", 600, 3))
    made = [picked(few, np.arange(m)).left[0].tiles.shape[2] for m in range(1, 600, 7)] + [
        picked(gram(kernels.RBF(), data("", 8 * WIDE, 3)), np.arange(m)).left[0].tiles.shape[2]
        for m in (508, 510, 512, 700)
    ]
    made += [width_of(n, most) for n in (1, 8 * WIDE - 1, 8 * WIDE, 10**6) for most in (64, 512, 516, WIDE)]
    assert {NARROW, WIDE, 528} <= set(made)
    assert all(width % 512 for width in made)
    assert all(width >= m for width, m in zip(made, range(1, 448, 7), strict=False))  # and one tile is enough for a few


def test_the_exponential():
    """2^x to a few units in the last place, against extended precision, and never below the smallest normal number."""
    rng = np.random.default_rng(0)
    for dtype, low, units in ((np.float32, -126.0, 2), (np.float64, -1022.0, 4)):
        x = np.concatenate([-rng.uniform(0, 30, 5000), rng.uniform(low, 20, 5000), [0.0, -0.5, -1.0, low]]).astype(
            dtype
        )
        out = -x[None].copy()
        tiles.bend(tiles.Decay(dtype(np.inf)), np.zeros(1, dtype), np.zeros(x.size, dtype), out)
        truth = np.exp2(x.astype(np.longdouble))
        assert np.abs(out[0] / truth - 1).max() <= units * np.finfo(dtype).eps
        far = np.full((1, 3), 1e30, dtype)
        tiles.bend(tiles.Decay(dtype(0)), np.zeros(1, dtype), np.zeros(3, dtype), far)
        assert (far == dtype(2.0**low)).all()


HOSTILE = {
    "far from the origin": lambda rng: rng.standard_normal((300, 10)) + 1e4,
    "very far in one feature": lambda rng: rng.standard_normal((300, 3)) + [0, 1e7, 0],
    "duplicates": lambda rng: np.repeat(rng.standard_normal((30, 10)), 10, axis=0),
    "near duplicates": lambda rng: np.repeat(rng.standard_normal((30, 10)), 10, axis=0) + 1e-6 * rng.random((300, 10)),
    "constant features": lambda rng: np.hstack([rng.standard_normal((300, 4)), np.full((300, 8), 3.0)]),
    "outliers": lambda rng: rng.standard_normal((300, 10)) * np.where(rng.random((300, 1)) < 0.02, 1e4, 1),
    "one point": lambda rng: rng.standard_normal((1, 10)),
    "all the same": lambda rng: np.ones((300, 10)),
}


@pytest.mark.parametrize("kernel", [kernels.RBF(), kernels.RBF(gamma=1e3), kernels.Matern(0.5), kernels.Matern(2.5)])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_points_stay_within_the_stated_error(name, kernel):
    """Against distances in extended precision: the error bound known beforehand holds, and is small in float64."""
    X = HOSTILE[name](np.random.default_rng(0))
    wide = X.astype(np.longdouble)
    distance2 = sum((wide[:, None, k] - wide[None, :, k]) ** 2 for k in range(X.shape[1]))
    if isinstance(kernel, kernels.RBF):
        truth = np.exp(-(kernel.gamma or 1 / X.shape[1]) * distance2)
    else:
        u = np.sqrt(2 * kernel.nu * distance2)
        truth = np.exp(-u) * (1 if kernel.nu == 0.5 else 1 + u + u**2 / 3)
    for dtype in (np.float64, np.float32):
        g = gram(kernel, X, dtype)
        assert np.abs(written(g) - truth).max() <= g.error
    assert gram(kernel, X).error <= 1e-8


@pytest.mark.parametrize("name", ["rbf", "linear", "poly", "cosine", "sigmoid", "matern 3/2"])
def test_sparse_points(name):
    kernel, truth = PAIRS[name] if name != "matern 3/2" else (kernels.Matern(), GPMatern(1.0, nu=1.5))
    S = sp.random_array((600, 40), density=0.2, format="csr", rng=np.random.default_rng(0))
    K = truth(S.toarray(), S.toarray())
    v = np.random.default_rng(1).standard_normal((1, 600))
    g = gram(kernel, points(S))
    tol = 1e-12 * np.abs(K).max()
    assert np.abs(written(g) - K).max() <= tol
    assert np.abs(product(g, v) - v @ K).max() <= 600 * tol
    assert np.abs(diagonal(g) - np.diag(K)).max() <= tol
    assert np.abs(block(g, np.arange(5), np.arange(9)) - K[:5, :9]).max() <= tol
    with pytest.raises(TypeError, match="sparse X is for kernels of dot products"):
        gram(kernels.Laplacian(), points(S))


def test_a_given_matrix():
    K = pairwise.rbf_kernel(data("", 200, 3))
    g = gram(kernels.Precomputed(), K)
    v = np.random.default_rng(0).standard_normal((2, 200))
    assert np.allclose(product(g, v), v @ K, atol=1e-12)
    assert np.allclose(block(g, np.arange(7), np.arange(3, 30)), K[:7, 3:30], atol=0)
    with pytest.raises(ValueError, match="square and dense"):
        gram(kernels.Precomputed(), K[:, :5])
    K[3, 4] += 1
    with pytest.raises(ValueError, match="not symmetric"):
        gram(kernels.Precomputed(), K)


def test_threads_change_no_bit():
    from concurrent.futures import ThreadPoolExecutor

    X = data("", 3000, 7)
    V = np.random.default_rng(0).standard_normal((3, 3000))
    with ThreadPoolExecutor(3) as pool:
        for v in (V[:1], V):
            one, three = (product(gram(kernels.RBF(), X, np.float32, p), v) for p in (None, pool))
            assert (one == three).all()


def test_kernels_are_values():
    assert kernels.RBF(gamma=2.0) == kernels.RBF(gamma=2.0) != kernels.RBF(gamma=3.0)
    assert kernels.RBF(length_scale=np.ones(2)) == kernels.RBF(length_scale=[1.0, 1.0])
    assert (2.0 * kernels.RBF() + kernels.Linear()).definite
    assert not (kernels.RBF() * kernels.Sigmoid()).definite
    assert not kernels.Polynomial(coef0=-1.0).definite
    assert rowcol.kernels.kernel_of("rbf", gamma=0.5, degree=7) == kernels.RBF(gamma=0.5)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: kernels.RBF(gamma=0.0), ValueError, "gamma must be above 0"),
        (lambda: kernels.RBF(gamma=-1.0), ValueError, "gamma must be above 0"),
        (lambda: kernels.RBF(gamma="scale"), TypeError, "gamma must be a real number"),
        (lambda: kernels.RBF(gamma=1.0, length_scale=1.0), ValueError, "not both"),
        (lambda: kernels.RBF(length_scale=[1.0, 0.0]), ValueError, "length_scale must be finite and above 0"),
        (lambda: kernels.RBF(length_scale=[[1.0]]), TypeError, "length_scale must be a number or one a feature"),
        (lambda: kernels.RBF(length_scale=[1.0, 2.0])(np.ones((3, 3))), ValueError, "X has 3"),
        (lambda: kernels.Laplacian(norm="l3"), ValueError, "norm must be"),
        (lambda: kernels.Matern(nu=2.0), ValueError, "nu must be"),
        (lambda: kernels.Matern(length_scale=None), ValueError, "length_scale"),
        (lambda: kernels.Polynomial(degree=0), ValueError, "degree"),
        (lambda: kernels.Function(3), TypeError, "callable"),
        (lambda: kernels.RBF() + 3, TypeError, "kernels combine with kernels"),
        (lambda: -1.0 * kernels.RBF(), ValueError, "factor of a kernel"),
        (lambda: kernels.kernel_of("gaussian"), ValueError, "one of rbf"),
        (lambda: kernels.Chi2()(-np.ones((2, 2))), ValueError, "not negative"),
        (lambda: kernels.RBF()([[np.nan, 1.0]]), ValueError, "NaN or infinity at row 0, column 0"),
        (lambda: kernels.RBF()(np.ones((2, 3)), np.ones((2, 4))), ValueError, "4 features"),
        (lambda: kernels.RBF(gamma=1e300)(data("", 5, 2)), ValueError, "too far apart"),
        (lambda: kernels.RBF()(np.ones((2, 2)) * 1j), TypeError, "real points"),
        (lambda: kernels.Function(lambda A, B: A)(np.ones((3, 2))), ValueError, "the kernel function gave"),
        (lambda: kernels.Function(lambda A, B: A @ B.T * np.nan)(np.ones((3, 2))), ValueError, "NaN or infinity"),
    ],
)
def test_mistakes_are_named(make, error, words):
    with pytest.raises(error, match=words):
        make()
