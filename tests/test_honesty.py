"""Never a silent wrong answer: over thousands of problems, nice and nasty, every claim is held against the truth."""

import math
import warnings
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.linalg import aslinearoperator
from threadpoolctl import threadpool_limits

import rowcol
from honest import check, exact, norm
from rowcol import Status, zoo

METHODS = ("auto", "rk", "rcd", "rek", "sgs-cg", "subset", "blocks", "cg", "direct", "sketch")
LAYOUTS = ("C", "F", "csr", "csc")  # "operator" is made below, for the day it is accepted
DTYPES = ("float64", "float64", "float32", "complex128", "complex64")
LARGER = ((200, 30), (30, 200), (300, 80))
EXAMPLES = {"auto": 300}  # 100 for each named method; thousands in `make slow`
SMALL = {
    "flat_tail": dict(n=80, outliers=8),
    "sparse_consistent": dict(n=300, p=60),
    "tomography": dict(pixels=8),
    "text": dict(n=150, p=80),
}


@pytest.fixture(autouse=True)
def one_thread():
    """BLAS threads waiting for each other over matrices this small would take most of the time."""
    with threadpool_limits(1):
        yield


@dataclass(frozen=True)
class Spec:
    """A problem in a line: what failed can be copied from the report, `solved(Spec(...), method)`."""

    n: int
    p: int
    kind: str = "normal"  # normal, values (a condition number), integers (of exactly this rank)
    rank: int = 60  # at most this
    condition: float = 0.0  # these four are powers of ten
    row_scale: float = 0.0
    col_scale: float = 0.0
    noise: float | None = None  # relative to y; None: consistent, up to the rounding of Xβ
    repeat: str = ""  # "rows", "cols" or both
    zero: str = ""
    layout: str = "C"
    density: float = 0.3
    dtype: str = "float64"
    alpha: float | None = None  # power of ten
    q: int | None = None
    weight: str = ""  # "", "positive", "zeros"
    tol: float = -6.0  # power of ten
    passes: int = 200
    seed: int = 0


def pieces(spec):
    """X, y, alpha and sample_weight."""
    rng = np.random.default_rng(spec.seed)
    n, p, rank = spec.n, spec.p, max(min(spec.n, spec.p, spec.rank), 1)
    is_complex = spec.dtype.startswith("complex")

    def normal(*shape):
        return rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if is_complex else 0)

    if spec.kind == "integers":
        X = rng.integers(-3, 4, (n, rank)) @ rng.integers(-3, 4, (rank, p)) * (1 + 1j if is_complex else 1.0)
    elif spec.kind == "values":
        U, V = (np.linalg.qr(normal(k, rank))[0] for k in (n, p))
        X = U * np.geomspace(1, 10.0**-spec.condition, rank) @ V.conj().T
    else:
        X = normal(n, p) if rank == min(n, p) else normal(n, rank) @ normal(rank, p)
    if spec.layout in ("csr", "csc"):
        X = X * (rng.random((n, p)) < spec.density)
    X = X * 10.0 ** (spec.row_scale * rng.uniform(-1, 1, (n, 1))) * 10.0 ** (spec.col_scale * rng.uniform(-1, 1, p))
    if "rows" in spec.repeat:
        X[n // 2 :] = X[: n - n // 2]
    if "cols" in spec.repeat:
        X[:, p // 2 :] = X[:, : p - p // 2]
    if "rows" in spec.zero:
        X[rng.integers(n)] = 0
    if "cols" in spec.zero:
        X[:, rng.integers(p)] = 0
    X = X.astype(spec.dtype)
    y = X.astype(complex if is_complex else float) @ normal(p, spec.q or 1)
    if spec.noise is not None:
        size = np.linalg.norm(y, axis=0) / math.sqrt(n)
        y[:, -1] += 10.0**spec.noise * (np.where(size > 0, size, 1) * normal(n, spec.q or 1))[:, -1]
    weight = None
    if spec.weight:
        weight = 10.0 ** rng.uniform(-2, 2, n)
        weight[rng.random(n) < (0.3 if spec.weight == "zeros" else 0)] = 0
        weight[rng.integers(n)] = 1.0
    X = {
        "C": np.ascontiguousarray,
        "F": np.asfortranarray,
        "csr": sp.csr_array,
        "csc": sp.csc_array,
        "operator": lambda a: aslinearoperator(np.asarray(a)),
    }[spec.layout](X)
    return X, y if spec.q else y[:, 0], 0.0 if spec.alpha is None else 10.0**spec.alpha, weight


def power(low, high):
    return st.integers(2 * low, 2 * high).map(lambda k: k / 2)


@st.composite
def specs(draw):
    n, p = draw(st.integers(1, 60)), draw(st.integers(1, 60))
    if draw(st.integers(0, 40)) == 23:
        n, p = draw(st.sampled_from(LARGER))
    rare = st.sampled_from(["", "", "", "", "rows", "cols", "rows and cols"])
    scaled = st.one_of(st.just(0.0), st.just(0.0), power(0, 8))
    kind = draw(st.sampled_from(["normal", "values", "integers"]))
    return Spec(
        n,
        p,
        kind,
        rank=draw(st.one_of(st.just(400), st.integers(1, 20))),
        condition=draw(power(0, 14)) if kind == "values" else 0.0,
        row_scale=draw(scaled),
        col_scale=draw(scaled),
        noise=draw(st.one_of(st.none(), power(-10, 3))),
        repeat=draw(rare),
        zero=draw(rare),
        layout=draw(st.sampled_from(LAYOUTS)),
        density=draw(st.sampled_from([0.3, 0.05, 0.9])),
        dtype=draw(st.sampled_from(DTYPES)),
        alpha=draw(st.one_of(st.none(), st.none(), power(-12, 6))),
        q=draw(st.sampled_from([None, None, 1, 3])),
        weight=draw(st.sampled_from(["", "", "positive", "zeros"])),
        tol=draw(power(-12, -3)),
        passes=draw(st.sampled_from([40] * 7 + [400])),  # half of these problems would take all they are given
        seed=draw(st.integers(0, 10**6)),
    )


def bits(*things):
    """What an array holds, to the bit."""
    arrays = []
    for a in things:
        a = getattr(a, "A", a)  # of an operator
        arrays += [a.data, a.indices, a.indptr] if sp.issparse(a) else [] if a is None else [a]
    return [np.asarray(a).tobytes() for a in arrays]


def held(X, y, alpha, weight, tol, method, passes=200):
    """Solve, hold the result to its word, and say what was checked; {"refused"} if the method named itself and why."""
    before = bits(X, y, weight)
    given = dict(alpha=alpha, tol=tol, sample_weight=weight, max_passes=passes)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = rowcol.solve(X, y, method=method, random_state=0, n_jobs=1, **given)
        except (ValueError, TypeError) as error:
            if method == "auto" or repr(method) not in str(error):
                raise
            return {"refused"}
    assert bits(X, y, weight) == before, "the user's data were changed"
    return check(getattr(X, "A", X), y, result, tol, alpha=alpha, weight=weight, caught=caught)


def solved(spec, method, passes=None):
    X, y, alpha, weight = pieces(spec)
    return held(X, y, alpha, weight, 10.0**spec.tol, method, passes or spec.passes)


def many(method, examples, passes=None):
    tally = Counter()

    @settings(max_examples=examples, print_blob=False)
    @given(specs())
    def each(spec):
        tally.update(solved(spec, method, passes) | {"all"})

    each()
    print(f"\n{method}: " + ", ".join(f"{k} {v}" for k, v in sorted(tally.items())))  # seen with pytest -s
    return tally


@pytest.mark.parametrize("method", METHODS)
def test_no_answer_claims_what_it_is_not(method):
    tally = many(method, EXAMPLES.get(method, 100))
    assert tally["refused"] <= (0.8 if method == "subset" else 0.7) * tally["all"]  # subset is for tall, plain X
    assert tally["CONVERGED"] >= 0.1 * (tally["all"] - tally["refused"]), "too few converge for this to mean much"
    if method == "auto":
        sharp = tally["the only solution, sharply"] + tally["shortest solution, sharply"]
        assert sharp >= 0.05 * tally["all"]
        assert tally["error bound"] >= 0.05 * tally["all"]
        assert not tally["refused"]


ONCE_FALSE = [
    # rows that differ by 1e14 in size: what direct took as zero, conjugate gradients then used
    Spec(7, 39, "integers", 2, 0.0, 7.5, 0.0, 0.0, "rows", "", "csr", 0.05, tol=-3.0, passes=40, seed=33826),
    # no β fits, and α goes far in single precision before columns take over from β = Xᴴα
    Spec(21, 32, "values", 400, 8.5, noise=0.0, zero="cols", dtype="float32", tol=-3.0, passes=40, seed=168),
    Spec(11, 35, "values", 400, 8.5, noise=0.0, dtype="float32", tol=-3.0, passes=40, seed=0),
]


@pytest.mark.parametrize("spec", ONCE_FALSE, ids=str)
def test_what_was_claimed_falsely_once(spec):
    assert not any("minimum" in word for word in solved(spec, "auto", 1000))


@pytest.mark.slow
def test_no_answer_claims_what_it_is_not_over_thousands():
    assert many("auto", 4000, 1000)["CONVERGED"] >= 1000


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", zoo.CASES)
def test_the_zoo_is_answered_honestly(name, method):
    case = zoo.CASES[name](**SMALL.get(name, {}))
    for tol in (1e-3, 1e-9):
        held(case.X, case.y, case.alpha, None, tol, method)


@pytest.mark.parametrize("method", METHODS)
def test_the_shortest_least_squares_solution_is_that(method):
    """No solution and many least-squares ones, mild enough to converge."""
    tally = Counter()
    for seed in range(24):
        n, p = (int(k) for k in np.random.default_rng(seed).integers(12, 50, 2))
        dtype, layout = ("float64", "complex128")[seed % 2], LAYOUTS[seed % 4]
        spec = Spec(n, p, "values", 8, 0.5, noise=0.0, layout=layout, density=1.0, dtype=dtype, tol=-7.0, seed=seed)
        tally.update(solved(spec, method, 1000))
    if method == "rek":
        assert tally["shortest solution, sharply"] == tally["solution: minimum-norm least squares"] == 24
    if method == "auto":
        assert tally["CONVERGED"] >= 20  # where rows do not notice in time that nothing fits, they say PASSES
        assert tally["shortest solution, sharply"] >= 8


def test_auto_gives_least_squares_where_rows_stop_and_say_so():
    """Tall and wide, both inconsistent: the wide one has its rows twice, with different right-hand sides."""
    rng = np.random.default_rng(0)
    tall, wide = rng.standard_normal((60, 12)), np.tile(rng.standard_normal((10, 40)), (2, 1))
    for X, claim in ((tall, "least squares"), (wide, "minimum-norm least squares")):
        y = rng.standard_normal(len(X))
        result = rowcol.solve(X, y, tol=1e-10, random_state=0)
        assert result.solution.startswith(claim)
        check(X, y, result, 1e-10)
        assert norm(result.x - exact(X, y).beta[:, 0]) <= 1e-8 * norm(result.x)
        with pytest.warns(rowcol.ConvergenceWarning, match="inconsistent"):
            rows = rowcol.solve(X, y, method="rk", tol=1e-10, random_state=0)
        assert rows.status is Status.PLATEAU
        assert rows.passes < 1000  # that is, by itself
        assert "'rcd'" in rows.message
        assert "'rek'" in rows.message


def forged(result, **changes):
    """A result with some of its first certificate, or of itself, made up."""
    own = {k: changes.pop(k) for k in list(changes) if k in result.certificate._fields}
    return replace(result, certificates=[result.certificate._replace(**own)], **changes)


def test_the_checker_sees_what_is_wrong():
    """A check that nothing fails is no check."""
    rng = np.random.default_rng(1)
    X, noise = rng.standard_normal((30, 8)), rng.standard_normal(30)
    for y, alpha in ((X @ np.ones(8), 0.0), (noise, 0.0), (noise, 1.0)):
        good = rowcol.solve(X, y, alpha=alpha, method="rcd", tol=1e-8, random_state=0)
        done = check(X, y, good, 1e-8, alpha=alpha)
        assert "error bound" in done if alpha else "the only solution, sharply" in done
        lies = [
            dict(x=good.x * (1 + 1e-6)),
            dict(x=good.x + np.inf),
            dict(residual_norm=good.residual_norm + 1e-9),
            dict(gradient_norm=good.gradient_norm + 1e-9),
            dict(value=good.certificate.value / 100),
            dict(status=Status.PASSES),
            dict(solution="minimum norm" if alpha else "ridge"),
        ]
        lies += [dict(error_bound=good.error_bound / 1e4)] if alpha else []
        for lie in lies:
            with pytest.raises(AssertionError):
                check(X, y, forged(good, **lie), 1e-8, alpha=alpha)
    by_columns = rowcol.solve(X.T, np.ones(8), method="rcd", tol=1e-8, random_state=0)
    assert check(X.T, np.ones(8), by_columns, 1e-8)
    with pytest.raises(AssertionError, match="row space"):
        check(X.T, np.ones(8), forged(by_columns, solution="minimum norm"), 1e-8)
    few = "minimum-norm least squares (rank 3 of 30, singular values below 1e-12 of the largest taken as zero)"
    with pytest.raises(AssertionError, match="rank 3"):
        check(X.T, np.ones(8), forged(by_columns, solution=few), 1e-8)


def test_the_truth_is_true():
    """Against answers known from the way the problem was made."""
    for name in zoo.CASES:
        case = zoo.CASES[name](**SMALL.get(name, {}))
        truth = exact(case.X, case.y, case.alpha)
        if truth.beta is not None:
            assert norm(truth.beta[:, 0] - case.answer) <= 1e-9 * norm(case.answer), name


@pytest.mark.parametrize("kind", ["solve", "prepare", "path", "ridge", "kernel", "cv", "start"])
def test_a_warning_points_to_the_line_that_called(kind):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 20)), rng.standard_normal(60)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        if kind == "solve":
            rowcol.solve(X, y, method="rcd", max_passes=1)
        elif kind == "prepare":
            rowcol.prepare(X, alpha=1.0, method="rcd").solve(y, max_passes=1)
        elif kind == "path":
            rowcol.ridge_path(X, y, [1e-3, 1e-2], method="rcd", max_passes=1)
        elif kind == "ridge":
            rowcol.Ridge(1e-3, solver="rcd", max_iter=1).fit(X, y)
        elif kind == "kernel":
            rowcol.KernelRidge(1e-6, kernel="rbf", solver="rk", max_iter=1).fit(X, y)
        elif kind == "cv":
            rowcol.KernelRidgeCV([1e-7], kernel="rbf", solver="rk", max_iter=1).fit(X, y)
        else:
            rowcol.solve(X.T, y[:20], x0=rng.standard_normal(60), method="rk")
    assert seen
    assert {warning.filename for warning in seen} == {__file__}, [str(warning) for warning in seen]
