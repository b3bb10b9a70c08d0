"""Rates, horizon and extremes against LAPACK's singular values, and against means over seeds of the method itself."""

import numpy as np
import pytest
import scipy.sparse as sp

import rowcol
from rowcol import kernels, theory, zoo
from rowcol.core.products import products
from rowcol.methods.extremes import _few_passes, extremes
from rowcol.studies.runs import course, kernel_course, walked

SEEDS = 200


def reflected(n, p, values, rng):
    """A matrix with these singular values: a diagonal between reflections, which cost no factorisation."""
    X = np.zeros((n, p))
    X[np.arange(len(values)), np.arange(len(values))] = values
    for _ in range(3):
        u, v = rng.standard_normal(n), rng.standard_normal(p)
        X -= np.outer(2 * u / (u @ u), u @ X)
        X -= np.outer(X @ v, 2 * v / (v @ v))
    return X


def smallest(A):
    """The smallest eigenvalue that is not zero."""
    values = np.linalg.eigvalsh(A)
    return values[values > 1e-10 * values[-1]][0]


@pytest.mark.parametrize("shape", [(60, 12), (12, 60), (30, 30)])
@pytest.mark.parametrize("store", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array])
def test_rates_are_the_papers(shape, store, rng):  # (25), (26), (36), (38)
    dense = rng.standard_normal(shape)
    X, (n, p) = store(dense), shape
    small, total = smallest(dense.T @ dense), np.sum(dense**2)
    for method, lines, theorem in (("rk", n, "(25)"), ("rcd", p, "(26)")):
        found = theory.rate(X, method)
        assert found.step == pytest.approx(1 - small / total, rel=1e-9)
        assert (found.theorem, found.lines, found.holds, found.exact) == (theorem, lines, True, True)
        assert found.per_pass == pytest.approx((1 - small / total) ** (lines / 2))
        tol = 1e-3
        steps = theory.passes(X, method, tol) * lines
        assert (1 - small / total) ** steps == pytest.approx(tol**2, rel=1e-6)
    for method, A, theorem in (("rk", dense @ dense.T, "(36)"), ("rcd", dense.T @ dense, "(38)")):
        A = A + 2.5 * np.eye(len(A))
        found = theory.rate(X, method, alpha=2.5)
        assert found.step == pytest.approx(1 - np.linalg.eigvalsh(A)[0] / np.trace(A), rel=1e-9)
        assert found.theorem == theorem


def test_the_rate_of_kernel_ridge(rng):  # (35)
    X = rng.standard_normal((40, 3))
    A = kernels.RBF(gamma=0.3)(X) + 0.2 * np.eye(40)
    found = theory.rate(X, "rk", alpha=0.2, kernel=kernels.RBF(gamma=0.3))
    assert found.step == pytest.approx(1 - np.linalg.eigvalsh(A)[0] / np.trace(A), rel=1e-9)
    many = theory.rate(rng.standard_normal((2500, 3)), "rk", alpha=0.2, kernel="rbf")
    assert many.step == pytest.approx(1 - 0.2 / (2500 * 1.2))
    assert not many.exact


def test_rank_deficient_matrices_have_the_smallest_value_that_is_not_zero(rng):
    X = rng.standard_normal((50, 10)) @ rng.standard_normal((10, 30))
    s = np.linalg.svd(X, compute_uv=False)[:10]
    assert extremes(X).rank == 10
    assert theory.rate(X, "rk").step == pytest.approx(1 - s[-1] ** 2 / np.sum(s**2), rel=1e-8)
    for method, lines in (("rk", 50), ("rcd", 30)):  # with a penalty the zeros count
        assert theory.rate(X, method, alpha=3.0).step == pytest.approx(1 - 3.0 / (np.sum(s**2) + lines * 3.0))


def test_any_fixed_weights_have_a_theorem_and_shuffles_have_none(rng):
    X = rng.standard_normal((40, 8)) * rng.uniform(0.1, 3, (40, 1))
    sizes, small = np.sum(X**2, axis=1), smallest(X.T @ X)
    for kind, p in (("uniform", np.full(40, 1 / 40)), (sizes**2, sizes**2 / np.sum(sizes**2))):
        found = theory.rate(X, "rk", sampler=kind)
        assert found.step == pytest.approx(1 - small * np.min(p / sizes))
        assert found.holds
    for kind in ("shuffled", "cyclic", "chunks"):
        found = theory.rate(X, "rk", sampler=kind)
        assert not found.holds
        assert "a guide only" in repr(found)


def draws(i):
    """Fifty random systems, of varied shape, scale and rank."""
    rng = np.random.default_rng(i)
    n, p = rng.integers(3, 40, 2)
    rank = int(rng.integers(1, min(n, p) + 1)) if i % 5 == 0 else min(n, p)
    X = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, p)) if i % 5 == 0 else rng.standard_normal((n, p))
    X = X * np.exp(rng.uniform(-1, 1, (n, 1))) * np.exp(rng.uniform(-1, 1, (1, p)))
    return X, X @ rng.standard_normal(p), rng


@pytest.mark.parametrize("block", range(5))
def test_no_rate_is_beaten_from_the_wrong_side(block):
    """On 50 random matrices, mean over 200 seeds, at every look: within the bound and 4 standard errors."""
    for i in range(10 * block, 10 * block + 10):
        X, y, rng = draws(i)
        n = len(X)
        star = np.linalg.lstsq(X, y, rcond=None)[0]
        lam = float(np.exp(rng.uniform(-2, 3)))
        dual = np.linalg.solve(X @ X.T + lam * np.eye(n), y)
        primal = X.T @ dual
        cases = {
            ("rk", 0.0): lambda b, a: np.sum((b - star) ** 2),
            ("rcd", 0.0): lambda b, a: np.sum((X @ (b - star)) ** 2),
            ("rek", 0.0): lambda b, a: np.sum((b - star) ** 2),
            ("rk", lam): lambda b, a: np.sum((X.T @ (a - dual)) ** 2) + lam * np.sum((a - dual) ** 2),
            ("rcd", lam): lambda b, a: np.sum((X @ (b - primal)) ** 2) + lam * np.sum((b - primal) ** 2),
        }
        for (method, alpha), error in cases.items():
            found = theory.rate(X, method, alpha=alpha)
            trace = walked(course(X, y, method, alpha), np.array([0, 1, 3, 10, 30]), error, SEEDS, seed=i)
            bound = trace.mean[0] * found.bound(trace.steps)
            rounding = 1e-28 * trace.mean[0]  # of rank one, a step is the answer
            assert (trace.mean <= bound * (1 + 1e-9) + 4 * trace.spread + rounding).all(), (i, method, alpha)
            assert found.step < 1


def test_a_rate_is_an_equality_where_every_direction_is_alike(rng):
    """Two-sided: with XᵀX = cI the mean is the bound, and a rate a fifth off would be seen."""
    X = 2.0 * np.linalg.qr(rng.standard_normal((30, 15)))[0]
    star = rng.standard_normal(15)
    found = theory.rate(X, "rk")
    trace = walked(course(X, X @ star, "rk"), np.arange(0, 31, 5), lambda b, a: np.sum((b - star) ** 2), 4 * SEEDS)
    bound = trace.mean[0] * found.bound(trace.steps)
    assert (abs(trace.mean - bound) <= 3 * trace.spread + 1e-12 * bound).all()
    other = trace.mean[0] * (1 - 1.2 / 15) ** trace.steps[-1]
    assert abs(other - trace.mean[-1]) > 5 * trace.spread[-1]


def test_the_kernel_course_is_the_papers_update(rng):  # (18), (30), (31)
    X, y = rng.standard_normal((20, 2)), rng.standard_normal(20)
    K = kernels.RBF(gamma=0.5)(X)
    on, seen = kernel_course(K, y, 0.3), []
    walked(on, np.array([0, 7]), lambda f, a: seen.append((f.copy(), a.copy())) or 0.0, 1, seed=3)
    from rowcol.core.sampler import sampler, take

    root = np.random.SeedSequence(3).spawn(1)[0]
    alpha = np.zeros(20)
    for i in take(sampler("norms", 20, root, np.diag(K) + 0.3), 7):
        alpha[i] += (y[i] - K[i] @ alpha - 0.3 * alpha[i]) / (K[i, i] + 0.3)
    np.testing.assert_allclose(seen[-1][1], alpha, rtol=1e-12)
    np.testing.assert_allclose(seen[-1][0], K @ alpha, rtol=1e-10)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_horizon_is_where_rows_end(seed):  # Section 4, corrected
    """E‖Xe‖² is ‖w‖², two-sided; E‖e‖², e = β − β_LS, is between ‖w‖²/σ_max² and ‖w‖²/σ_min², and above the printed."""
    case = zoo.tall_inconsistent(n=80, p=8, noise=0.5, seed=seed)
    X, y, star = case.X, case.y, case.answer
    found, looks = theory.horizon(X, y), np.arange(400, 1200, 40)
    s = np.linalg.svd(X, compute_uv=False)
    w2 = np.sum((y - X @ star) ** 2)
    assert found.misfit == pytest.approx(w2, rel=1e-6)
    assert found.limit == pytest.approx(w2 / s[-1] ** 2, rel=1e-6)
    assert found.least == pytest.approx(w2 / s[0] ** 2, rel=1e-6)
    assert found.printed == pytest.approx(w2 / s[-1] ** 4, rel=1e-6)
    on = course(X, y, "rk")
    there = walked(on, looks, lambda b, a: np.sum((X @ (b - star)) ** 2), SEEDS).errors.mean(axis=1)
    assert abs(there.mean() - w2) < 3 * there.std() / np.sqrt(SEEDS)
    assert 3 * there.std() / np.sqrt(SEEDS) < 0.1 * w2  # so it can tell
    error = walked(on, looks, lambda b, a: np.sum((b - star) ** 2), SEEDS).mean
    assert (error < found.limit).all()
    assert (error > found.least).all()
    assert (error > found.printed).all()


@pytest.mark.parametrize(
    ("n", "p", "values"),
    [
        (2000, 2000, np.geomspace(1, 1e-6, 2000)),
        (1500, 900, np.linspace(1, 1e-4, 900)),
        (700, 2000, np.r_[np.linspace(5, 1, 699), 1e-7]),
        (900, 900, 1 / np.arange(1.0, 901.0)),
    ],
    ids=["geometric", "linear", "one tiny", "harmonic"],
)
def test_the_smallest_singular_value_within_five_percent(n, p, values, rng):
    found = extremes(reflected(n, p, values, rng))
    assert not found.exact
    assert found.smallest == pytest.approx(values.min(), rel=0.05)
    assert found.largest == pytest.approx(values.max(), rel=1e-3)
    assert found.smallest_range[0] <= values.min() <= found.smallest_range[1]
    assert found.largest_range[0] <= values.max() <= found.largest_range[1]
    assert found.smallest_range[1] - found.smallest_range[0] < 0.1 * values.min()


def test_a_square_gaussian_matrix_of_a_thousand(rng):
    X = rng.standard_normal((1000, 1000))
    s = np.linalg.svd(X, compute_uv=False)
    found = extremes(X)
    assert found.smallest == pytest.approx(s[-1], rel=1e-3)
    assert found.largest == pytest.approx(s[0], rel=1e-3)


def test_values_clustered_at_rounding_level_have_an_honest_range(rng):
    values = np.geomspace(1, 1e-17, 700)
    found = extremes(reflected(900, 700, values, rng))
    low, high = found.smallest_range
    assert high - low > 0.5 * found.smallest
    assert "clustered at rounding level" in found.words
    assert ((values >= low) & (values <= high)).any()


@pytest.mark.parametrize("shape", [(3000, 400), (400, 3000)])
@pytest.mark.parametrize("store", [np.asarray, sp.csr_array])
def test_a_few_passes_give_a_range_that_holds(shape, store, rng):
    """Golub-Kahan-Lanczos, as for a large X: values from inside, a range that holds the truth."""
    dense = rng.standard_normal(shape)
    s = np.linalg.svd(dense, compute_uv=False)
    found = _few_passes(products(store(dense)), np.sum(dense**2), np.random.default_rng(0), 60)
    assert found.smallest_range[0] <= s[-1] <= found.smallest_range[1] * (1 + 1e-12)
    assert found.largest_range[0] * (1 - 1e-12) <= s[0] <= found.largest_range[1]
    assert found.smallest == pytest.approx(s[-1], rel=0.05)
    assert found.smallest_range[0] > 0.5 * s[-1]
    hard = reflected(*shape, np.geomspace(1, 1e-5, 400), rng)
    found = _few_passes(products(store(hard)), np.sum(hard**2), np.random.default_rng(0), 40)
    assert found.smallest_range[0] <= 1e-5 <= found.smallest_range[1]
    assert "can be smaller" in found.words


def test_what_cannot_be_asked_is_refused(rng):
    X = rng.standard_normal((6, 4))
    for bad in ("direct", "nonsense", 3):
        with pytest.raises(ValueError, match="method must be one of rk, rcd, rek, cg"):
            theory.rate(X, bad)
    with pytest.raises(ValueError, match="alpha"):
        theory.rate(X, "rk", alpha=-1.0)
    with pytest.raises(ValueError, match="X is zero"):
        theory.rate(np.zeros((3, 3)), "rk")
    with pytest.raises(ValueError, match="alpha = 0"):
        theory.rate(X, "rek", alpha=1.0)
    with pytest.raises(ValueError, match="with a kernel"):
        theory.rate(X, "rcd", kernel="rbf", alpha=1.0)
    with pytest.raises(ValueError, match=r"not a number|NaN"):
        theory.rate(np.full((3, 3), np.nan), "rk")
    with pytest.raises(TypeError, match="LinearOperator"):
        extremes(sp.linalg.aslinearoperator(X))
    with pytest.raises(ValueError, match="sampler"):
        theory.rate(X, "rk", sampler="often")
    with pytest.raises(ValueError, match="extremes are those of"):
        theory.rate(X, "rk", extremes=extremes(X.T))


def test_the_plan_uses_the_same_formulas():
    """The Plan's passes for rows, on a system whose sample is all of it, are those of theory."""
    case = zoo.tall_consistent(n=120, p=40)
    plan = rowcol.plan(case.X, case.y, method="rk", tol=1e-6, random_state=0)
    found = theory.rate(case.X, "rk")
    assert plan.rate == pytest.approx(found.per_pass, rel=1e-6)
    assert plan.passes == pytest.approx(found.passes(1e-6), rel=1e-6)


# --- what a review found -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [3100, 4000])
def test_few_passes_that_find_everything_say_what_is_so(n, rng):
    """Golub-Kahan-Lanczos comes to an end where X has few different singular values."""
    found = extremes(sp.eye_array(n, format="csr"))
    assert (found.largest, found.smallest) == pytest.approx((1.0, 1.0))
    assert found.full
    half = extremes(sp.diags_array(np.r_[np.ones(n // 2), np.zeros(n - n // 2)]).tocsr())
    assert (half.largest, half.smallest) == pytest.approx((1.0, 1.0))
    assert half.smallest_range[0] <= 1.0 <= half.smallest_range[1]
    assert not half.full
    counts = rng.integers(0, n - 50, 4 * n)
    Z = sp.csr_array((np.ones(4 * n), (np.arange(4 * n), counts)), shape=(4 * n, n))
    true = np.sqrt(np.bincount(counts)[np.bincount(counts) > 0])
    found = extremes(Z)
    assert found.smallest_range[0] <= true.min() <= found.smallest_range[1]
    assert found.largest_range[0] <= true.max() <= found.largest_range[1]
    assert not found.full


def test_where_x_may_be_rank_deficient_nothing_is_claimed(rng):
    X = reflected(3200, 3200, np.geomspace(1, 1e-9, 3200), rng)
    found = _few_passes(products(X), np.sum(X**2), np.random.default_rng(0), 20)
    assert found.smallest_range[0] == 0
    assert found.smallest_range[1] >= 1e-9
    assert found.rank is None
    guess = theory.rate(X, "rk", extremes=found)
    assert not guess.holds
    assert guess.range[1] == 1.0


@pytest.mark.parametrize("scale", [1e60, 1e-60])
def test_extremes_scale_with_x(scale, rng):
    values = np.linspace(1, 2, 650) * scale
    found = extremes(reflected(800, 650, values, rng))
    assert found.smallest_range[0] <= values.min() <= found.smallest_range[1]
    assert found.largest_range[0] <= values.max() <= found.largest_range[1]
    with pytest.raises(ValueError, match="rescale it"):
        extremes(rng.standard_normal((8, 5)) * scale**2)


def test_a_column_hidden_by_rounding_is_not_called_zero():
    found = extremes(np.diag([1.0, 1e-17]))
    assert found.smallest_range[0] <= 1e-17
    assert found.rank is None
    assert "rescale" in found.words
    assert not theory.rate(np.diag([1.0, 1e-17]), "rcd").holds


def test_rows_of_zeros_have_no_part_in_the_horizon():
    found = theory.horizon(np.array([[1.0], [1.0], [0.0]]), np.array([1.0, 1.0, 5.0]))
    assert found.misfit == pytest.approx(0.0, abs=1e-18)
    assert found.limit == pytest.approx(0.0, abs=1e-18)
    with pytest.raises(ValueError, match="one target at a time"):
        theory.horizon(np.eye(3), np.ones((3, 2)))


def test_one_step_is_enough_where_singular_values_are_equal(rng):
    for X in (np.eye(4), rng.standard_normal((6, 1)), rng.standard_normal((1, 6)), np.ones((1, 1))):
        assert theory.rate(X, "cg").passes(1e-6) == pytest.approx(1.0)
        assert rowcol.study(X, seeds=3).ok


def test_a_kernel_that_is_none_has_no_rate(rng):
    with pytest.raises(ValueError, match="not positive definite"):
        theory.rate(np.array([[1, 2.0], [2, 1]]), "rk", alpha=0.1, kernel="precomputed")
    with pytest.raises(ValueError, match="not positive definite"):
        theory.rate(np.zeros((3, 2)), "rk", kernel="linear")
    K = np.array([[1, 2.0], [2, 1]])
    A = K + 1.5 * np.eye(2)
    found = theory.rate(K, "rk", alpha=1.5, kernel="precomputed")
    assert found.step == pytest.approx(1 - np.linalg.eigvalsh(A)[0] / np.trace(A))


def test_pairs_of_steps_of_both_are_counted_to_the_end():
    """After so many pairs the bound is at the tolerance, and stays below it."""
    X = np.random.default_rng(0).standard_normal((40, 10))
    found = theory.rate(X, "rek")
    for tol in (0.9, 0.1, 1e-6):
        k = found.passes(tol) * found.lines
        later = found.bound(k * np.linspace(1.001, 3, 50))
        assert (later <= tol**2).all()
        if k > 1:
            assert found.bound(0.98 * k) > tol**2


def test_the_range_of_conjugate_gradients_has_its_rate_in_it(rng):
    X = rng.standard_normal((30, 5))
    X[:, 4] = X[:, 3]
    found = theory.rate(X, "cg", alpha=1.0)
    assert found.range[0] <= found.step <= found.range[1]
    for method, count in (("cg", 3), ("rek", 3)):
        with pytest.raises(ValueError, match="weights"):
            theory.rate(X, method, sampler=np.ones(count))
    assert theory.rate(X, "rk", sampler=np.full(30, 1e307)).step == theory.rate(X, "rk", sampler="uniform").step
