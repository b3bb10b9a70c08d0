"""Every route against independent truths: answers, plans, hand-overs, memory, operators, preconditioners, bits."""

from __future__ import annotations

import contextlib
import re
import tracemalloc
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from threadpoolctl import threadpool_limits

import rowcol
from rowcol.methods import direct as factors

ALL = ("auto", "rk", "rcd", "rek", "sgs-cg", "subset", "blocks", "cg", "direct", "sketch")
RIDGE = tuple(m for m in ALL if m not in ("rek", "subset"))
STEPPED = ("rk", "rcd", "rek", "sgs-cg", "blocks", "cg", "sketch")
INEXACT = tuple(m for m in ALL if m not in ("rk", "subset"))
FORMS = ("C", "F", "csr", "csc", "float32", "complex", "complex64 csc", "weights", "weights csc three")
SHAPES = {
    "tall": (90, 14, 14, True, 0.0, ALL),
    "inconsistent": (90, 14, 14, False, 0.0, INEXACT),
    "wide": (14, 60, 14, True, 0.0, tuple(m for m in ALL if m not in ("rcd", "subset"))),
    "deficient tall": (90, 14, 9, False, 0.0, ("auto", "rek", "cg", "direct")),
    "deficient consistent": (90, 14, 9, True, 0.0, ("auto", "rk", "rek", "cg", "direct")),
    "deficient wide": (14, 60, 9, False, 0.0, ("auto", "rek", "direct")),
    "deficient wide consistent": (14, 60, 9, True, 0.0, ("auto", "rk", "rek", "cg", "direct")),
    "ridge tall": (90, 14, 14, False, 2.0, RIDGE),
    "ridge wide": (14, 60, 14, False, 2.0, RIDGE),
}
MID = ("t", "t noise", "w", "w ridge", "single", "square", "sparse", "sparse noise", "sparse csc")
CASES = [(shape, method) for shape, (*_, methods) in SHAPES.items() for method in methods]


@pytest.fixture(autouse=True)
def one_blas_thread():
    with threadpool_limits(1, "blas"):
        yield


def system(n, p, rank, fits, seed=0, kind="", many=None):
    rng = np.random.default_rng(seed)

    def draw(*s):
        return rng.standard_normal(s) + (1j * rng.standard_normal(s) if "complex" in kind else 0.0)

    X = draw(n, p) if rank == min(n, p) else draw(n, rank) @ draw(rank, p)
    shape = (n,) if many is None else (n, many)
    y = X @ draw(p, *shape[1:])
    if "float32" in kind or "complex64" in kind:  # round X first, so that y is consistent with what is given
        X = X.astype(np.complex64 if "complex" in kind else np.float32)
    return X, y if fits else y + draw(*shape) * np.linalg.norm(y) / n**0.5


def stacked(X, y, alpha=0.0, weight=None):
    root = np.ones(len(y)) if weight is None else np.sqrt(weight)
    A = root[:, None] * np.asarray(X.toarray() if sp.issparse(X) else X, np.result_type(X.dtype, float))
    b = (root * np.asarray(y).T).T
    if alpha > 0:
        p = A.shape[1]
        A, b = np.vstack([A, alpha**0.5 * np.eye(p)]), np.concatenate([b, np.zeros((p, *b.shape[1:]))])
    return A, b


def truth(X, y, alpha=0.0, weight=None, rcond=1e-6):
    A, b = stacked(X, y, alpha, weight)
    n, p = X.shape
    if alpha > 0 and n < p:  # the closed form by rows
        A, b = A[:n], b[:n]
        return A.conj().T @ np.linalg.solve(A @ A.conj().T + alpha * np.eye(n), b)
    return np.linalg.pinv(A, rcond=rcond) @ b


def allowed(X, y, tol, alpha=0.0, weight=None, rcond=1e-6, dtype=float):
    """The distance to the exact answer that a met tolerance leaves possible: see `honest._distance`."""
    A, b = stacked(X, y, 0.0, weight)
    b = b.reshape(len(b), -1)
    beta = truth(X, y, alpha, weight, rcond).reshape(A.shape[1], -1)
    stored = 4 * np.finfo(dtype).eps * np.linalg.norm(beta, axis=0)
    size = np.linalg.norm(b, axis=0)
    if alpha > 0:
        return tol * size / alpha**0.5 + stored
    s = np.linalg.svd(A, compute_uv=False)
    last = s[s > rcond * s[0]][-1]
    rest = np.linalg.norm(b - A @ beta, axis=0)
    return np.maximum(tol * size / last, 1.01 * tol * np.linalg.norm(A) * rest / last**2) + stored * s[0] / last


def near(result, X, y, tol, alpha=0.0, weight=None, rcond=1e-6):
    beta = truth(X, y, alpha, weight, rcond)
    error = np.linalg.norm((result.x - beta).reshape(len(beta), -1), axis=0)
    limit = allowed(X, y, tol, alpha, weight, rcond, result.x.dtype)
    assert result.success, result
    assert (error <= limit).all(), f"error {error}, tol warrants {limit}: {result.method}, {result.solution}"


def sparse(n, p, each, seed=0, fits=True):
    rng = np.random.default_rng(seed)
    where = rng.integers(0, p, (n, each))
    X = sp.csr_array((rng.standard_normal(n * each), (np.repeat(np.arange(n), each), where.ravel())), shape=(n, p))
    X.sum_duplicates()
    y = X @ rng.standard_normal(p)
    return X, y if fits else y + rng.standard_normal(n)


def conditioned(n, p, condition, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    m = min(n, p)
    U, V = np.linalg.qr(rng.standard_normal((n, m)))[0], np.linalg.qr(rng.standard_normal((p, m)))[0]
    X = (U * np.geomspace(1, 1 / condition, m)) @ V.T
    y = X @ rng.standard_normal(p)
    return X, y + noise * np.linalg.norm(y) / n**0.5 * rng.standard_normal(n)


def is_single(form):
    return "32" in form or "64" in form


def deficient(shape):
    n, p, rank, *_ = SHAPES[shape]
    return rank < min(n, p)


# rounded to single precision the rank of a deficient X is full: another problem
# compiling takes most of the time of a first run: what complex64 adds to the others is left to `make slow`
ASKED = [
    pytest.param(s, m, f, marks=pytest.mark.slow) if f.startswith("complex64") else (s, m, f)
    for s, m in CASES
    for f in FORMS
    if not (is_single(f) and deficient(s))
]


@pytest.mark.parametrize(("shape", "method", "form"), ASKED)
def test_every_method_finds_what_it_says(shape, method, form):
    n, p, rank, fits, alpha, _ = SHAPES[shape]
    single = is_single(form)
    X, y = system(n, p, rank, fits, kind=form, many=3 if "three" in form else None)
    if single and fits:
        y = X.astype(np.result_type(X.dtype, float)) @ np.linalg.lstsq(X, y, rcond=None)[0].astype(y.dtype)
    weight = np.random.default_rng(5).uniform(0.2, 3.0, n) if "weights" in form else None
    given = np.asfortranarray(X) if form == "F" else X
    given = sp.csr_array(X) if form == "csr" else sp.csc_array(X) if "csc" in form else given
    tol = 1e-5 if single else 1e-9
    run = dict(alpha=alpha, method=method, tol=tol, sample_weight=weight, random_state=0, max_passes=20_000)
    result = rowcol.solve(given, y, **run)
    assert result.x.dtype == X.dtype
    near(result, X, y, tol, alpha, weight)
    said, tall_full = result.solution, n >= p and rank == p
    if alpha > 0:
        assert said == "ridge"
    elif method in ("direct", "subset") and tall_full:
        assert said == ("unique" if fits else "least squares")
    elif method in ("rcd", "sgs-cg", "blocks") and n >= p:
        assert said == ("a solution" if fits else "least squares") + " (the only one if X has full column rank)"
    elif method in ("rk", "rek", "sgs-cg", "direct") or (method == "cg" and sp.issparse(given) is False):
        assert said.startswith("minimum norm" if fits else "minimum-norm least squares")
        stated = re.search(r"rank (\d+) of (\d+)", said)
        assert stated is None or (int(stated[1]), int(stated[2])) == (rank, min(n, p))
        assert stated is not None or rank == min(n, p) or method != "direct"
    else:
        assert ("least squares" in said) != fits


@pytest.mark.parametrize("method", ["rcd", "rk", "subset"])
def test_no_more_is_claimed_than_holds(method):
    X, y = system(14, 60, 14, True) if method == "rcd" else system(400, 14, 14, False)
    with contextlib.nullcontext() if method == "rcd" else pytest.warns(rowcol.ConvergenceWarning):
        result = rowcol.solve(X, y, method=method, random_state=0)
    assert result.solution == ("a solution (one of many)" if method == "rcd" else "not converged")


@pytest.mark.parametrize("condition", [1e4, 1e6, 1e9])
@pytest.mark.parametrize("shape", [(300, 40), (3000, 120)])
def test_direct_is_as_good_as_lapack(shape, condition, monkeypatch):
    safe, blocks = [], factors.from_blocks
    monkeypatch.setattr(factors, "from_blocks", lambda *a: safe.append(a) or blocks(*a))
    X, y = conditioned(*shape, condition)
    result = rowcol.solve(X, y, method="direct", tol=1e-6)
    beta = np.linalg.lstsq(X, y, rcond=None)[0]
    # both are off by about eps·κ²·tan θ (Wedin)
    eps = 2.0**-52 * condition * (1 + condition * np.linalg.norm(y - X @ beta) / np.linalg.norm(X @ beta))
    assert (result.success, result.solution) == (True, "least squares")
    assert np.linalg.norm(result.x - beta) <= 100 * eps * np.linalg.norm(beta)
    assert np.linalg.norm(y - X @ result.x) <= np.linalg.norm(y - X @ beta) * (1 + 1e-9)
    assert bool(safe) == (condition >= 1e6 or shape == (300, 40))  # QR where Cholesky would not do, or is no cheaper


@pytest.mark.parametrize("shape", [(3000, 120), (120, 3000)])
@pytest.mark.parametrize("fits", [True, False])
def test_rank_deficient_beyond_doubt_is_told_with_its_rank(shape, fits):
    X, y = system(*shape, 77, fits)
    X[:, :] /= np.linalg.norm(X, axis=1)[:, None] if shape[0] < shape[1] else 1.0  # rows alike may be scaled
    y = X @ np.ones(shape[1]) + (0 if fits else np.random.default_rng(1).standard_normal(shape[0]))
    result = rowcol.solve(X, y, method="direct", tol=1e-9)
    near(result, X, y, 1e-9, rcond=1e-10)
    assert "rank 77 of 120" in result.solution
    assert result.solution.startswith("minimum norm" if fits else "minimum-norm least squares")
    assert "below 1e-07" in result.solution  # by eigenvalues


@pytest.mark.parametrize("method", ["direct", "auto", "cg", "sketch", "sgs-cg"])
@pytest.mark.parametrize("shape", [(300, 40), (3000, 120)])
def test_badly_scaled_columns_cost_no_digits(shape, method):
    X, y = system(*shape, shape[1], False)
    units = np.geomspace(1, 1e-8, shape[1])
    result = rowcol.solve(X * units, y, method=method, tol=1e-9, random_state=0)
    beta = np.linalg.lstsq(X, y, rcond=None)[0]
    assert result.success
    assert np.linalg.norm(result.x * units - beta) <= allowed(X, y, 1e-9)


def test_auto_learns_that_a_sparse_system_is_inconsistent():
    X, y = sparse(4000, 300, 6, fits=False)
    result = rowcol.solve(X, y, random_state=0)
    near(result, X, y, 1e-6)
    assert (result.plan.route, result.method[:5]) == ("rk", "rk → ")
    assert result.plan.learned[0].startswith("rk, after")
    looks = [certificate.value for _, _, certificate in result.history.certificate]
    assert looks[0] > 1e-6 >= looks[-1]
    assert result.history.passes == sorted(result.history.passes)
    assert result.passes == pytest.approx(result.history.passes[-1])


def test_auto_leaves_rows_that_are_slow():
    X, _ = sparse(4000, 1500, 5)
    X = sp.csr_array(X @ sp.diags_array(np.geomspace(1, 1e-3, 1500)))
    y = X @ np.random.default_rng(3).standard_normal(1500)
    result = rowcol.solve(X, y, random_state=0, tol=1e-8)
    assert (result.success, result.plan.route) == (True, "rk")
    assert {"sgs-cg", "direct", "cg"} & set(result.method.split(" → ")[1:]), result.method
    assert result.plan.learned
    assert np.linalg.norm(X @ result.x - y) <= 1e-8 * np.linalg.norm(y)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_too_little_memory_for_a_gram_matrix_stays_matrix_free(kind, alpha):
    X, y = sparse(3000, 400, 8, fits=False) if kind == "sparse" else conditioned(4000, 400, 20.0)
    memory = 8 * X.shape[1] ** 2
    result = rowcol.solve(X, y, alpha=alpha, memory=memory, random_state=0)
    near(result, X, y, 1e-6, alpha)
    assert "direct" not in (*result.method.split(" → "), result.plan.route, *result.plan.then)
    assert result.plan.bytes <= memory


@pytest.mark.parametrize("method", ["direct", "subset", "sketch", "blocks"])
def test_a_named_method_beyond_the_memory_is_refused(method):
    X, y = conditioned(4000, 300, 3.0, noise=0.0)
    with pytest.raises(ValueError, match=f"method='{method}' needs about .* MB beside X, more than memory=0 MB"):
        rowcol.solve(X, y, method=method, memory="100 kB")


def mid(name):
    """Problems of 5 to 40 MB, and alpha."""
    draw = np.random.default_rng(0).standard_normal
    if name in MID[:6]:
        shape = {"t": (20_000, 100), "w": (150, 20_000), "single": (6000, 500)}.get(name.split(" ")[0], (1600, 1000))
        X = draw(shape).astype(np.float32 if name == "single" else float)
        return X, X @ np.ones(100) if name == "t" else draw((*shape[:1], 4)), 0.0 if name in MID[:3] else 10.0
    X, y = sparse(50_000, 3000, 10, fits="noise" not in name)
    return sp.csc_array(X) if "csc" in name else X, y, 0.0


def peak(f):
    f()  # compiles
    tracemalloc.start()
    made, used = f(), tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return made, used


@pytest.mark.parametrize("name", MID)
def test_plans_are_kept_in_route_and_memory(name):
    X, y, alpha = mid(name)
    plan = rowcol.plan(X, y, alpha=alpha, memory="1 GB", random_state=0)
    result, used = peak(lambda: rowcol.solve(X, y, alpha=alpha, memory="1 GB", random_state=0))
    assert result.success
    assert (plan.route, plan.side, plan.then) == (result.plan.route, result.plan.side, result.plan.then)
    assert (plan.bytes, plan.shape, plan.memory) == (result.plan.bytes, X.shape, 10**9)
    assert (type(plan.bytes), type(plan.copies)) == (int, int)
    assert re.search(r"Section|\(\d+\)", "\n".join(plan.reasons))
    assert all(reason in repr(plan) for reason in plan.reasons)
    assert used <= 1.2 * plan.bytes + 1e6, f"{used / 1e6:.1f} MB, planned {plan.bytes / 1e6:.1f}: {result.method}"


@pytest.mark.parametrize(("order", "weighted"), [("C", False), ("F", True), ("csr", False), ("csc", True)])
@pytest.mark.parametrize("method", ALL[1:])
def test_named_methods_use_the_memory_they_plan(method, order, weighted):
    rng = np.random.default_rng(0)
    X = np.asarray(rng.standard_normal((6000, 100)), order=order) if order in "CF" else None
    X = sp.random_array((20_000, 400), density=0.05, rng=rng, format=order) if X is None else X
    y, weight = X @ np.ones(X.shape[1]), rng.uniform(0.5, 2.0, X.shape[0]) if weighted else None
    run = dict(method=method, sample_weight=weight, random_state=0)
    plan = rowcol.plan(X, y, **run)
    result, used = peak(lambda: rowcol.solve(X, y, tol=1e-4, **run))
    assert result.success
    assert used <= 1.2 * plan.bytes + 1e6, f"{used / 1e6:.1f} MB, planned {plan.bytes / 1e6:.1f}"


def test_memory_is_read_or_refused():
    for text, number in [("2 GB", 2e9), ("1.5MB", 1.5e6), ("300 kB", 3e5), ("7", 7), (12.5e6, 12.5e6), (10**6, 1e6)]:
        assert rowcol.plan(np.eye(3), np.ones(3), memory=text).memory == number
    for bad in ("much", "", "2 XB", "1.2.3 GB", "-1 GB", 0, -5, True, float("nan"), [1], "0 GB"):
        with pytest.raises(ValueError, match="memory must be a positive number of bytes"):
            rowcol.plan(np.eye(3), np.ones(3), memory=bad)


@pytest.mark.parametrize("alpha", [0.0, 3.0])
@pytest.mark.parametrize("shape", [(300, 40), (40, 300), (3000, 120), (120, 3000)])
def test_a_prepared_matrix_is_factored_once(shape, alpha, monkeypatch):
    grams = []

    def counted(f, *a):
        made = f(*a)
        grams.extend([] if made is None else [a])
        return made

    for name in ("gram", "gram_and_slope", "quick_gram"):
        monkeypatch.setattr(factors, name, partial(counted, getattr(factors, name)))
    rng = np.random.default_rng(1)
    X, w = rng.standard_normal(shape), rng.uniform(0.5, 2.0, shape[0])
    ready = rowcol.prepare(X, alpha=alpha, sample_weight=w, random_state=0)
    for many, size in [((), 1.0), ((3,), 1e-60), ((), 1e60), ((2,), -3.0)]:
        y = size * rng.standard_normal((shape[0], *many))
        result = ready.solve(y, tol=1e-10)
        near(result, X, y, 1e-10, alpha, w)
    made = len(grams)
    same = rowcol.solve(X, y, alpha=alpha, sample_weight=w, tol=1e-10, random_state=0)
    assert np.linalg.norm(result.x - same.x) <= 1e-9 * np.linalg.norm(same.x)
    assert made == (1 if max(shape) == 3000 else 0)
    assert ready.bytes >= 8 * min(shape) ** 2
    assert re.fullmatch(rf"rowcol.Prepared\([\d,]+ x [\d,]+, alpha={alpha:g}, direct, [\d.]+ MB kept\)", repr(ready))


@pytest.mark.parametrize("condition", [1e4, 1e7, 1e9])
@pytest.mark.parametrize("shape", [(300, 40), (3000, 120)])
def test_a_factor_used_again_loses_no_digits(shape, condition):
    X, y = conditioned(*shape, condition)
    ready = rowcol.prepare(X)
    for _ in range(2):
        result, beta = ready.solve(y), np.linalg.lstsq(X, y, rcond=None)[0]
        assert result.success
        assert np.linalg.norm(X @ (result.x - beta)) <= 1e-5 * np.linalg.norm(y - X @ beta)
        y = np.random.default_rng(7).standard_normal(shape[0])


@pytest.mark.parametrize("method", ["direct", "cg", "sketch", "rk"])
@pytest.mark.parametrize("kinds", ["rc", "cr"])
def test_a_prepared_matrix_takes_real_and_complex_right_hand_sides(method, kinds):
    X, y = system(400, 30, 30, True)
    ready = rowcol.prepare(X, method=method, random_state=0)
    for kind in kinds:
        b = y * (1 + 2j) if kind == "c" else y
        result = ready.solve(b)
        assert result.x.dtype == b.dtype
        near(result, X, b, 1e-6)


def test_a_prepared_plan_says_nothing_of_a_right_hand_side_not_yet_seen():
    X, y, _ = mid("t noise")
    ready = rowcol.prepare(X, memory="4 MB", random_state=0)
    assert not any("consistent to" in reason for reason in ready.plan.reasons)
    near(ready.solve(y), X, y, 1e-6)


@pytest.mark.parametrize("kind", ["", "complex"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("method", ["auto", "cg", "sketch"])
@pytest.mark.parametrize("shape", ["tall", "inconsistent", "wide", "deficient tall", "ridge tall", "ridge wide"])
def test_operators_give_what_arrays_give(shape, method, weighted, kind):
    n, p, rank, fits, alpha, _ = SHAPES[shape]
    X, y = system(n, p, rank, fits, kind=kind, many=2)
    w = np.random.default_rng(2).uniform(0.2, 3.0, n) if weighted else None
    result = rowcol.solve(aslinearoperator(X), y, alpha=alpha, sample_weight=w, method=method, tol=1e-9, random_state=0)
    near(result, X, y, 1e-9, alpha, w)
    if alpha == 0 and method != "sketch":
        assert result.solution.startswith("minimum norm" if fits else "minimum-norm least squares")


def test_operators_are_refused_where_rows_are_needed():
    X, y = system(20, 5, 5, True)
    for method in set(ALL) - {"auto", "cg", "sketch"}:
        with pytest.raises(TypeError, match=r"say method='cg' or 'auto', or pass X as an array"):
            rowcol.solve(aslinearoperator(X), y, method=method)
    with pytest.raises(TypeError, match="without rmatvec: give it one"):
        rowcol.solve(LinearOperator(X.shape, matvec=lambda v: X @ v, dtype=float), y)


PRECONDITIONED = [
    (shape, side, form)
    for shape in ((200, 60), (60, 200))
    for side in "pn"
    for form in ("array", "callable", "operator", "complex")
    if form != "callable" or side == "p"  # a callable is taken to be of size p
]


@pytest.mark.parametrize(("shape", "side", "form"), PRECONDITIONED)
def test_preconditioners_cut_the_steps(shape, side, form):
    X, y = conditioned(*shape, 1e3)
    X, alpha = X * (1j if form == "complex" else 1), 1e-6
    G = (X.conj().T @ X if side == "p" else X @ X.conj().T) + alpha * np.eye(shape[side == "p"])
    L = np.linalg.inv(np.linalg.cholesky(G))
    M = (L.conj().T * np.random.default_rng(0).uniform(0.8, 1.2, len(G))) @ L
    given = {"callable": lambda v: M @ v, "operator": aslinearoperator(M)}.get(form, M)
    plain = rowcol.solve(X, y, alpha=alpha, method="cg")
    result = rowcol.solve(X, y, alpha=alpha, preconditioner=given)
    near(result, X, y, 1e-6, alpha)
    assert result.method == "cg"
    assert result.steps < plain.steps / 3


def test_preconditioners_that_do_not_fit_are_refused():
    X, y = system(20, 5, 5, True)
    for bad in (np.eye(4), np.ones(5), np.ones((5, 20))):
        with pytest.raises(ValueError, match="preconditioner must be 5 x 5"):
            rowcol.solve(X, y, preconditioner=bad)
    with pytest.raises(ValueError, match="preconditioner took a vector of 5 to one of 3"):
        rowcol.solve(X, y, preconditioner=lambda v: v[:3])
    with pytest.raises(ValueError, match="method='cg', not 'rk'"):
        rowcol.solve(X, y, preconditioner=np.eye(5), method="rk")


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("form", ["dense", "csr", "single"])
def test_the_same_seed_gives_the_same_bits_whatever_the_threads(method, form):
    X, y = sparse(4000, 60, 9) if form == "csr" else system(4000, 60, 60, True, kind="float32" * (form == "single"))
    y, run = np.stack([y, X @ np.ones(60), 2 * y], axis=1), dict(method=method, tol=1e-5)
    first = rowcol.solve(X, y, n_jobs=1, random_state=3, **run)
    again = rowcol.solve(X, y, n_jobs=1, random_state=3, callback=lambda _: None, **run)
    assert np.array_equal(first.x, again.x)
    if method in ("sgs-cg", "rk", "rcd", "rek"):  # the others are as BLAS and SciPy add
        assert np.array_equal(first.x, rowcol.solve(X, y, n_jobs=2, random_state=3, **run).x)


@pytest.mark.parametrize("shape", [(300, 40), (3000, 120)])
@pytest.mark.parametrize(("method", "alpha"), [(m, 0.0) for m in ALL] + [(m, 2.0) for m in RIDGE])
def test_the_solution_is_a_start_that_ends_at_once(method, alpha, shape):
    X, y = system(*shape, shape[1], True)
    x0 = truth(X, y, alpha)
    result = rowcol.solve(X, y, alpha=alpha, method=method, x0=x0, random_state=0)
    near(result, X, y, 1e-6, alpha)
    assert (result.steps, result.passes) == (0, 0.0)
    assert np.allclose(result.x, x0, rtol=1e-14)


@pytest.mark.parametrize(("method", "alpha"), [(m, 0.0) for m in STEPPED] + [(m, 1e-4) for m in STEPPED if m != "rek"])
def test_a_callback_stops_every_iteration(method, alpha):
    X, y = conditioned(400, 60, 1e3, noise=0.0)
    seen, run = [], dict(alpha=alpha, method=method, tol=1e-13, random_state=0)
    result = rowcol.solve(X, y, callback=lambda now: seen.append(now.x) or True, **run)
    assert result.status is rowcol.Status.CALLBACK
    assert len(seen) == 1
    assert np.array_equal(seen[0], result.x)
    assert result.solution == "not converged"
