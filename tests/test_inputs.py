"""What may go in, what is copied, and what is refused with which words."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import rowcol
from oracle import close


def answer(X, y, **kwargs):
    return rowcol.solve(X, y, tol=1e-11, random_state=0, **{"method": "rcd", **kwargs})


@pytest.fixture
def plain(rng):
    X = rng.integers(-5, 6, (40, 6)).astype(float)
    return X, X @ rng.standard_normal(6) + rng.standard_normal(40), 40 * 6 * 8


def lstsq(X, y):
    return np.linalg.lstsq(X, y, rcond=None)[0]


FORMS = {
    "C": lambda X: X.copy(),
    "F": np.asfortranarray,
    "int": lambda X: X.astype(int),
    "int8": lambda X: X.astype(np.int8),
    "list": lambda X: X.tolist(),
    "float16": lambda X: X.astype(np.float16),
    "longdouble": lambda X: X.astype(np.longdouble),
    "swapped": lambda X: X.astype(">f8"),
    "strided": lambda X: np.repeat(np.repeat(X, 2, 0), 3, 1)[::2, ::3],
    "reversed": lambda X: X[::-1, ::-1][::-1, ::-1],
    "readonly": lambda X: np.frombuffer(X.tobytes()).reshape(X.shape),
    "unaligned": lambda X: np.frombuffer(b"x" + X.tobytes(), np.uint8)[1:].view(float).reshape(X.shape),
    "pandas": lambda X: pd.DataFrame(X, columns=list("abcdef")),
    "pandas int": lambda X: pd.DataFrame(X.astype(int)),
    "matrix": np.asmatrix,
    **{
        f: (lambda f: lambda X: sp.csr_array(X).asformat(f))(f)
        for f in ("csr", "csc", "coo", "lil", "dok", "dia", "bsr")
    },
    "csr_matrix": sp.csr_matrix,
    "sparse int": lambda X: sp.csr_array(X.astype(int)),
    "int64 indices": lambda X: wide_indices(sp.csr_array(X)),
    "duplicates": lambda X: duplicated(X),
}


def wide_indices(X):
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def duplicated(X):
    """Every entry in two halves, in a jumble."""
    coo = sp.coo_array(X)
    order = np.random.default_rng(0).permutation(2 * coo.nnz)
    row, col, data = (np.concatenate([v, v])[order] for v in (coo.row, coo.col, coo.data / 2))
    order = np.argsort(row, kind="stable")
    indptr = np.searchsorted(row[order], np.arange(X.shape[0] + 1))
    return sp.csr_array((data[order], col[order], indptr), shape=X.shape)


@pytest.mark.filterwarnings("ignore:.*matrix subclass.*:PendingDeprecationWarning")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("method", ["rcd", "rek"])
def test_every_form_of_x(form, method, plain):
    X, y, _ = plain
    given = FORMS[form](X)
    frozen = given.copy() if hasattr(given, "copy") else list(given)
    result = answer(given, y, method=method)
    assert result.x.dtype == (np.float32 if form == "float16" else np.float64)
    close(result.x, lstsq(X, y), 1e-7 if form == "float16" else 1e-8)
    before, after = (Z.toarray() if sp.issparse(Z) else np.asarray(Z) for Z in (frozen, given))
    np.testing.assert_array_equal(before, after)
    if form == "duplicates":
        assert given.nnz == 2 * sp.csr_array(X).nnz  # not tidied up behind the user's back


def test_boolean_x(rng):
    X = rng.random((30, 5)) < 0.5
    y = rng.standard_normal(30)
    close(answer(X, y).x, lstsq(X.astype(float), y), 1e-8)


@pytest.mark.parametrize("y_form", [list, pd.Series, lambda y: y.astype(np.float32), lambda y: y[:, None], np.round])
def test_every_form_of_y(y_form, plain):
    X, y, _ = plain
    given = y_form(y)
    truth = lstsq(X, np.asarray(given, float).reshape(40, -1))
    result = answer(X, given)
    close(result.x.reshape(6, -1), truth, 1e-8)
    assert result.x.ndim == np.ndim(given)


def test_copies_are_made_only_when_the_method_needs_them_and_are_reported(plain):
    X, _, size = plain
    F = np.asfortranarray(X)
    expected = {
        ("rk", "C"): 0,
        ("rk", "F"): size,
        ("rcd", "C"): size,
        ("rcd", "F"): 0,
        ("rek", "C"): size,
        ("rek", "F"): size,
    }
    for (method, order), copied in expected.items():
        result = answer(X if order == "C" else F, X @ np.ones(6), method=method)
        assert result.copied == copied, (method, order)
        assert result.copied_mb == copied / 1e6
    assert answer(X.astype(int), X @ np.ones(6), method="rk").copied == size
    S = sp.csr_array(X)
    assert answer(S, X @ np.ones(6), method="rk").copied == 0
    assert answer(S, X @ np.ones(6), method="rcd").copied >= S.data.nbytes


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_readonly_memory_map_is_used_in_place(order, plain, tmp_path):
    X, _, _ = plain
    np.save(tmp_path / "x.npy", np.asarray(X, order=order))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    result = answer(mapped, X @ np.ones(6), method="rk" if order == "C" else "rcd")
    assert result.copied == 0
    close(result.x, np.ones(6), 1e-8)


def test_float32_and_complex64_are_kept(rng):
    X = rng.standard_normal((60, 5)).astype(np.float32)
    y = rng.standard_normal(60)
    result = rowcol.solve(X, y, method="rcd", random_state=0)
    assert result.x.dtype == np.float32
    assert result.success
    close(result.x, lstsq(X.astype(float), y), 1e-6)
    assert result.certificate.storing > 0
    Z = (X + 1j * rng.standard_normal((60, 5))).astype(np.complex64)
    result = rowcol.solve(Z, y, method="rcd", random_state=0)
    assert result.x.dtype == np.complex64
    close(result.x, lstsq(Z.astype(complex), y), 1e-6)


@pytest.mark.parametrize("method", ["rk", "rcd", "rek"])
@pytest.mark.parametrize("which", ["X", "y", "both"])
def test_complex(method, which, rng):
    i = 1j
    X = rng.standard_normal((30, 6)) + (i * rng.standard_normal((30, 6)) if which != "y" else 0)
    beta = rng.standard_normal(6) + (i * rng.standard_normal(6) if which != "X" else 0)
    y = X @ beta
    for Z in (X, sp.csr_array(X)):
        result = answer(Z, y, method=method)
        assert result.x.dtype == complex
        close(result.x, beta, 1e-8)
    if method != "rek":
        truth = np.linalg.solve(X.conj().T @ X + 2 * np.eye(6), X.conj().T @ y)
        result = answer(X, y, method=method, alpha=2.0)
        close(result.x, truth, 1e-8)
        assert np.linalg.norm(result.x - truth) <= result.error_bound
        close(X.conj().T @ result.dual, result.x, 1e-8)


def test_tables_of_mixed_numeric_columns(rng):
    table = pd.DataFrame(
        {"a": rng.standard_normal(30), "b": pd.array(rng.integers(-2, 3, 30), "Int64"), "c": rng.random(30) < 0.5}
    )
    y = rng.standard_normal(30)
    close(answer(table, y).x, lstsq(table.to_numpy(float), y), 1e-7)
    table["d"] = "text"
    with pytest.raises(TypeError, match="X has columns that are not numeric: d;"):
        answer(table, y)
    table["d"] = pd.array([None] + [1] * 29, "Int64")
    with pytest.raises(ValueError, match="NaN or infinity at row 0, column 3"):
        answer(table, y)


X, y = np.arange(12.0).reshape(4, 3) ** 1.5, np.ones(4)
BAD = {
    "3-D X": (dict(X=np.ones((2, 2, 2))), ValueError, "X must have 2 dimensions"),
    "1-D X": (dict(X=np.ones(4)), ValueError, r"X.reshape\(-1, 1\)"),
    "no rows": (dict(X=np.empty((0, 3)), y=np.empty(0)), ValueError, "X is empty"),
    "no columns": (dict(X=np.empty((4, 0))), ValueError, "X is empty"),
    "empty sparse": (dict(X=sp.csr_array((0, 3))), ValueError, "X is empty"),
    "object X": (dict(X=np.array([[1, None]] * 4, object)), TypeError, r"X has dtype object.*astype\(float\)"),
    "text X": (dict(X=np.array([["a", "b"]] * 4)), TypeError, "X has dtype.*encode text"),
    "date X": (dict(X=np.array([["2020-01-01"]] * 4, "M8[D]")), TypeError, "turn dates into numbers"),
    "string": (dict(X="data.csv"), TypeError, "X must be an array"),
    "generator": (dict(X=(r for r in [[1.0]])), TypeError, "X must be an array"),
    "dict": (dict(X={"a": 1}), TypeError, "X must be an array"),
    "ragged": (dict(X=[[1, 2], [3]]), ValueError, "X cannot be read"),
    "masked": (dict(X=np.ma.masked_equal(X, 0)), TypeError, "masked"),
    "short y": (dict(y=np.ones(3)), ValueError, "X has 4 rows but y has 3"),
    "3-D y": (dict(y=np.ones((4, 1, 1))), ValueError, "y must have 1 or 2 dimensions"),
    "no right-hand sides": (dict(y=np.ones((4, 0))), ValueError, "y is empty"),
    "sparse y": (dict(y=sp.csr_array(np.ones((4, 1)))), TypeError, r"y.toarray\(\)"),
    "NaN y": (dict(y=np.array([1, np.nan, 1, 1])), ValueError, r"y has a NaN or infinity at \(1,\)"),
    "inf y": (
        dict(y=np.array([[1, 1], [1, 1], [1, np.inf], [1, 1]])),
        ValueError,
        r"y has a NaN or infinity at \(2, 1\)",
    ),
    "object y": (dict(y=np.array(["1"] * 4, object)), TypeError, "y has dtype object"),
    "negative alpha": (dict(alpha=-1.0), ValueError, "alpha must be finite and at least 0"),
    "NaN alpha": (dict(alpha=np.nan), ValueError, "alpha"),
    "text alpha": (dict(alpha="1"), TypeError, "alpha must be a real number"),
    "tol 0": (dict(tol=0.0), ValueError, "tol must be above 0 and below 1"),
    "tol 1": (dict(tol=1.0), ValueError, "tol"),
    "tol None": (dict(tol=None), TypeError, "tol must be a real number"),
    "method": (dict(method="kaczmarz"), ValueError, "method must be one of auto, rk, .*, got 'kaczmarz'"),
    "method type": (dict(method=3), ValueError, "method must be one of"),
    "sampler": (dict(sampler="greedy"), ValueError, "sampler must be one of"),
    "sampler length": (dict(sampler="chunks:0"), ValueError, "chunks:LENGTH"),
    "sampler with length": (dict(sampler="norms:3"), ValueError, "chunks:LENGTH"),
    "sampler type": (dict(sampler=3), TypeError, "sampler must be a name"),
    "sampler weights": (dict(sampler=[1.0]), ValueError, "sampler must be a name or 4 weights"),
    "auto with weights": (dict(method="auto", sampler=[1.0] * 4), ValueError, "sampler weights need rows or columns"),
    "rek with weights": (dict(method="rek", sampler=[1.0] * 4), ValueError, "not 'rek'"),
    "rek with alpha": (dict(method="rek", alpha=1.0), ValueError, "rek.*alpha=0"),
    "max_passes": (dict(max_passes=0), ValueError, "max_passes must be above 0"),
    "max_seconds": (dict(max_seconds=-1), ValueError, "max_seconds must be above 0"),
    "x0 shape": (dict(x0=np.ones(4)), ValueError, r"x0 must have shape \(3,\)"),
    "x0 NaN": (dict(x0=np.full(3, np.nan)), ValueError, "x0 has a NaN"),
    "x0 text": (dict(x0=["a", "b", "c"]), TypeError, "x0 must be numbers"),
    "x0 complex": (dict(x0=np.ones(3) * 1j), TypeError, "x0 is complex"),
    "weights shape": (dict(sample_weight=np.ones(3)), ValueError, r"sample_weight must have shape \(4,\)"),
    "weights sign": (dict(sample_weight=[1, 1, -1, 1]), ValueError, "sample_weight must be finite, non-negative"),
    "weights zero": (dict(sample_weight=np.zeros(4)), ValueError, "sample_weight"),
    "weights text": (dict(sample_weight=["a"] * 4), TypeError, "sample_weight must be real"),
    "n_jobs": (dict(n_jobs=0), ValueError, "n_jobs"),
    "random_state": (dict(random_state="x"), ValueError, "random_state"),
    "callback": (dict(callback=3), TypeError, "callback must be callable"),
    "progress": (dict(progress="yes"), TypeError, "progress"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_refused_names_the_argument_and_the_remedy(name):
    changes, kind, words = BAD[name]
    with pytest.raises(kind, match=words):
        rowcol.solve(**{"X": X, "y": y, "method": "rk", "random_state": 0, **changes})


@pytest.mark.parametrize("method", ["rk", "rcd", "rek", "auto"])
@pytest.mark.parametrize("store", [np.array, np.asfortranarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.nan, "X has a NaN or infinity at row 17, column 2"),
        (np.inf, "X has a NaN or infinity at row 17, column 2"),
        (-np.inf, "row 17, column 2"),
        (1e200, "1e\\+200, whose squares leave float64: rescale"),
    ],
)
def test_bad_values_in_x_never_give_an_answer(method, store, value, words, rng):
    Z = rng.standard_normal((50, 4))
    Z[17, 2] = value
    for alpha in (0.0, 1.0):
        if method == "rek" and alpha:
            continue
        with pytest.raises(ValueError, match=words):
            rowcol.solve(store(Z), np.ones(50), method=method, alpha=alpha, random_state=0)


def test_a_bad_value_in_a_row_that_was_never_picked_is_found_by_the_certificate(rng):
    Z = rng.standard_normal((100_000, 3))
    Z[31_234, 1] = np.nan
    with pytest.raises(ValueError, match="row 31234, column 1"):
        rowcol.solve(Z, np.nan_to_num(Z) @ np.ones(3), method="rk", sampler="uniform", random_state=3)


def test_columns_too_small_to_square_are_refused(rng):
    Z = rng.standard_normal((30, 3))
    Z[:, 1] *= 1e-200
    with pytest.raises(ValueError, match="column 1 of X is so small"):
        rowcol.solve(Z, np.ones(30), method="rcd")
