"""Kernel ridge on hostile points: success means that the certificate holds, beside 400 digits."""

import mpmath as mp
import numpy as np
import pytest
import scipy.sparse as sp
from exactly import check_kernel
from judging import outcome
from test_kinds import run_all

import rowcol
from rowcol import kernels

POINTS = {
    "plain": lambda r, n, d: r.standard_normal((n, d)),
    "whole": lambda r, n, d: r.integers(0, 3, (n, d)).astype(float),
    "duplicated": lambda r, n, d: np.repeat(r.standard_normal((1 + n // 3, d)), 3, axis=0)[:n],
    "nearly duplicated": lambda r, n, d: (
        np.repeat(r.standard_normal((1, d)), n, axis=0) * (1 + 1e-9 * r.random((n, d)))
    ),
    "all the same": lambda r, n, d: np.full((n, d), 0.3),
    "zeros": lambda r, n, d: np.zeros((n, d)),
    "constant feature": lambda r, n, d: np.hstack([np.full((n, 1), 1e3), r.standard_normal((n, d - 1))]),
    "one point": lambda r, n, d: r.standard_normal((1, d)),
    "far from zero": lambda r, n, d: r.standard_normal((n, d)) + 1e7,
    "one far": lambda r, n, d: r.standard_normal((n, d)) * np.r_[1e9, np.ones(n - 1)][:, None],
    "all sizes": lambda r, n, d: r.standard_normal((n, d)) * 10.0 ** r.integers(-12, 12, (n, 1)),
    "features of all sizes": lambda r, n, d: r.standard_normal((n, d)) * 10.0 ** r.integers(-8, 8, (1, d)),
    "subnormal": lambda r, n, d: r.integers(0, 9, (n, d)) * 5e-324,
    **{f"1e{e}": lambda r, n, d, e=e: r.standard_normal((n, d)) * 10.0**e for e in (-150, -60, -20, 5, 20, 60, 150)},
}


def float_rbf(A, B):
    """A function of blocks, whose float64 numbers are the kernel."""
    A, B = (np.asarray(Z.toarray() if sp.issparse(Z) else Z, np.float64) for Z in (A, B))
    with np.errstate(over="ignore"):
        return np.array([[np.exp(-float(((a - b) ** 2).sum())) for b in B] for a in A])


KERNELS = {
    "rbf": lambda g: kernels.RBF(gamma=g),
    "rbf length": lambda g: kernels.RBF(length_scale=g),
    "laplacian": lambda g: kernels.Laplacian(gamma=g),
    "laplacian l2": lambda g: kernels.Laplacian(gamma=g, norm="l2"),
    "matern 1/2": lambda g: kernels.Matern(0.5, g),
    "matern 3/2": lambda g: kernels.Matern(1.5, g),
    "matern 5/2": lambda g: kernels.Matern(2.5, g),
    "linear": lambda g: kernels.Linear(),
    "cosine": lambda g: kernels.Cosine(),
    "poly 1": lambda g: kernels.Polynomial(1, g, 0.0),
    "poly 2": lambda g: kernels.Polynomial(2, g, 1.0),
    "poly 5": lambda g: kernels.Polynomial(5, g, 0.5),
    "poly, negative": lambda g: kernels.Polynomial(3, g, -1.0),
    "sigmoid": lambda g: kernels.Sigmoid(gamma=g, coef0=-0.5),
    "chi2": lambda g: kernels.Chi2(gamma=g),
    "sum": lambda g: kernels.RBF(gamma=g) + 0.5 * kernels.Linear(),
    "product": lambda g: kernels.RBF(gamma=g) * kernels.Matern(1.5),
    "scaled": lambda g: 1e-30 * kernels.RBF(gamma=g),
    "function": lambda g: kernels.Function(float_rbf),
}
GAMMAS = (1e-150, 1e-12, 1e-3, 0.5, 1.0, 7.0, 1e4, 1e12, 1e150)
ALPHAS = (1e-30, 1e-12, 1e-6, 1e-2, 1.0, 1e3, 1e12, 1e100)
TARGETS = {
    "plain": lambda r, n: r.standard_normal(n),
    "zero": lambda r, n: np.zeros(n),
    "one": lambda r, n: np.eye(n)[0],
    "constant": lambda r, n: np.full(n, 0.1),
    "tiny": lambda r, n: r.standard_normal(n) * 1e-200,
    "huge": lambda r, n: r.standard_normal(n) * 1e200,
    "all sizes": lambda r, n: r.standard_normal(n) * 10.0 ** r.integers(-30, 30, n),
}
METHODS = ("auto", "rk", "blocks", "pcg", "cg", "direct")
NAMES = ("X", "y", "alpha", "kernel", "points", "gamma", "sample_weight", "scale")


def drawn(seed):
    """A case, from its number."""
    r = np.random.default_rng(seed)
    n, d = int(r.integers(2, 8)), int(r.choice([1, 2, 4]))
    where, name = str(r.choice(list(POINTS))), str(r.choice(list(KERNELS)))
    X = POINTS[where](r, n, d)
    X = np.abs(X) if name == "chi2" else X
    usual = r.random() < 0.5
    gamma, alpha = (float(r.choice((0.5, 1.0) if usual else GAMMAS)), float(r.choice((1e-2, 1.0) if usual else ALPHAS)))
    y = TARGETS[str(r.choice(list(TARGETS) if r.random() < 0.4 else ["plain"]))](r, len(X))
    weight = r.integers(0, 3, len(X)) * 10.0 ** r.integers(-6, 6) if r.random() < 0.25 else None
    if weight is not None and not weight.any():
        weight[0] = 1.0
    how = str(r.choice(["dense"] * 4 + ["float32", "sparse"]))
    with np.errstate(over="ignore", under="ignore"):
        X = X.astype(np.float32) if how == "float32" else sp.csr_array(X) if how == "sparse" else X
    intercept, tol = bool(r.random() < 0.2), float(r.choice([1e-2, 1e-6]))
    return X, y, KERNELS[name](gamma), alpha, weight, intercept, tol, str(r.choice(METHODS)), int(r.integers(100))


def one_drawn(seed):
    """One case; True if it was answered, and by success."""
    X, y, kernel, alpha, weight, intercept, tol, method, state = drawn(int(seed))
    more = dict(sample_weight=weight, fit_intercept=intercept, method=method, tol=tol, random_state=state)
    if method == "rk":
        more["max_passes"] = 200
    found = outcome(lambda: rowcol.solve(X, y, kernel=kernel, alpha=alpha, **more), (X, y, weight), NAMES)
    if found.refused:
        return False
    Z = X[:2] if sp.issparse(X) else np.vstack([X[:1], np.zeros_like(X[:1])])
    CHECKED.append(check_kernel(X, y, kernel, alpha, weight, found.value, tol, Z, intercept, found.warned))
    return True


CHECKED: list = []


def test_success_means_that_the_certificate_holds(amount, tally):
    CHECKED.clear()
    cases = [(str(i),) for i in range(amount(80, 3000))]
    answered = run_all(cases, one_drawn)
    converged = sum("CONVERGED" in done for done in CHECKED)
    assert converged > len(cases) / 4
    tally("kernels", cases=len(cases), answered=answered, converged=converged, refused=len(cases) - answered)
    counts = {name: sum(name in done for done in CHECKED) for name in ("kernel_gap", "kernel_norm", "kernel_values")}
    assert min(counts.values()) > len(cases) / 8
    tally("certificates", **counts)


FOUND = {  # what the first runs found wrong
    779: "bounds near the mean of the points, with an intercept",
    1006: "the same, of a kernel that is large",
    1302: "kernel values beyond float64, by blocks",
    2279: "cosines of sparse points that are subnormal",
    2420: "coefficients that vanish",
}


@pytest.mark.parametrize("seed", FOUND)
def test_what_was_wrong_once(seed):
    one_drawn(seed)


# --- given matrices, and functions of one's own -----------------------------------------------------------------------


def given_matrix(name, r, n=6):
    B = r.standard_normal((n, n))
    K = B @ B.T
    whole = np.round(3 * B).astype(int)
    if name == "indefinite":
        return K - 3 * np.eye(n)
    if name == "negative":
        return -K
    if name == "singular":
        return np.outer(B[0], B[0])
    if name == "nearly symmetric":
        return K * (1 + 1e-12 * r.standard_normal((n, n)))
    if name in ("1e150", "1e-150"):
        return K * float(name)
    return {
        "zero": 0 * K,
        "identity": np.eye(n),
        "float32": K.astype(np.float32),
        "int": whole @ whole.T,
    }[name]


DEFINITE = ("singular", "nearly symmetric", "1e150", "1e-150", "zero", "identity", "float32", "int")
MATRICES = ("indefinite", "negative", *DEFINITE)


@pytest.mark.parametrize("name", MATRICES)
def test_given_matrices(name, amount, tally):
    count = 0
    for seed in range(amount(1, 15)):
        r = np.random.default_rng(seed)
        K, y = given_matrix(name, r), r.standard_normal(6)
        for method in METHODS:
            for alpha in (1e-8, 1.0, 1e3):
                more = dict(kernel="precomputed", alpha=alpha, method=method, tol=1e-6, random_state=0, max_passes=200)
                found = outcome(lambda: rowcol.solve(K, y, **more), (K, y), NAMES)
                count += 1
                if found.refused:
                    continue
                S = K if name != "nearly symmetric" else 0.5 * K + 0.5 * K.T
                result = found.value
                if name not in DEFINITE:  # an error bound speaks of kernel matrices only, and these are none
                    result.function.bound[:] = np.inf
                check_kernel(S, y, kernels.Precomputed(), alpha, None, result, 1e-6, None, False, found.warned)
    tally("kernels", cases=count)


WRONG = {
    "None": lambda A, B: None,
    "text": lambda A, B: "text",
    "number": lambda A, B: 1.0,
    "shape": lambda A, B: np.ones((len(A), len(B) + 1)),
    "1-d": lambda A, B: np.ones(len(A)),
    "3-d": lambda A, B: np.ones((len(A), len(B), 1)),
    "NaN": lambda A, B: np.full((len(A), len(B)), np.nan),
    "inf": lambda A, B: np.full((len(A), len(B)), np.inf),
    "complex": lambda A, B: np.ones((len(A), len(B))) * 1j,
    "objects": lambda A, B: np.full((len(A), len(B)), None),
    "texts": lambda A, B: np.full((len(A), len(B)), "a"),
    "ragged": lambda A, B: [[1.0], [1.0, 2.0]],
    "masked": lambda A, B: np.ma.masked_equal(np.ones((len(A), len(B))), 1.0),
    "generator": lambda A, B: (1.0 for _ in A),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("method", METHODS)
def test_functions_that_give_wrong_things(name, method, tally):
    X, y = np.arange(12.0).reshape(6, 2), np.arange(6.0)
    for kernel in (WRONG[name], kernels.Function(WRONG[name]) + kernels.RBF()):
        found = outcome(
            lambda: rowcol.solve(X, y, kernel=kernel, alpha=1.0, method=method, random_state=0), (X, y), ("kernel",)
        )
        assert found.refused, found.value
    tally("kernels", cases=2, refused=2)


# --- do these checks check? -------------------------------------------------------------------------------------------


def fitted(**more):
    r = np.random.default_rng(0)
    X, y = r.standard_normal((6, 2)), r.standard_normal(6)
    return X, y, rowcol.solve(X, y, kernel=kernels.RBF(gamma=0.5), alpha=0.1, tol=1e-6, random_state=0, **more)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda r: r.x.__setitem__(0, r.x[0] + 1e-5), "certificate"),
        (lambda r: r.certificates.__setitem__(0, r.certificate._replace(value=1e-30)), "certificate"),
        (lambda r: r.function.bound.__imul__(1e-12), "bound"),
        (lambda r: r.function.coefficients.__imul__(1.001), "f\\(x\\)"),
        (lambda r: r.x.__setitem__(0, np.nan), "no number"),
    ],
)
def test_what_does_not_hold_is_seen(spoil, words):
    X, y, result = fitted()
    assert check_kernel(X, y, kernels.RBF(gamma=0.5), 0.1, None, result, 1e-6, X[:2]) >= {"CONVERGED", "kernel_values"}
    spoil(result)
    with pytest.raises(AssertionError, match=words):
        check_kernel(X, y, kernels.RBF(gamma=0.5), 0.1, None, result, 1e-6, X[:2])


def test_another_kernel_is_seen():
    X, y, result = fitted()
    with pytest.raises(AssertionError):
        check_kernel(X, y, kernels.RBF(gamma=0.5000001), 0.1, None, result, 1e-6, X[:2])


def test_truths_agree_with_float64():
    """The 400 digits are of the same kernels as those of rowcol."""
    r = np.random.default_rng(0)
    X = np.abs(r.standard_normal((4, 2)))
    from exactly import exact_points, matrix_of

    for make in KERNELS.values():
        K = np.array(matrix_of(make(0.5), exact_points(X), exact_points(X)), dtype=float)
        np.testing.assert_allclose(make(0.5)(X), K, rtol=1e-13)
    assert mp.mp.dps >= 15
