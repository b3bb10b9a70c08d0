"""One pass over rows that lie elsewhere: sums against long double, and what single precision does to answers."""

import numpy as np
import pytest
import scipy.sparse as sp

import rowcol
from oracle import lapack
from rowcol.core.place import PIECE, Unread, pieces_of, whole
from rowcol.methods import gathered as module
from rowcol.methods.direct import Direct
from rowcol.methods.gathered import gathered

N, P = 6_000, 12


def data(kind, dtype=np.float64, seed=0):
    """Columns of very different size, means far from zero, or both; and three right-hand sides."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, P)) @ (np.eye(P) + 0.1 * rng.standard_normal((P, P)))
    X = X * np.logspace(-8, 8, P) if kind == "sizes" else X
    X = X + (1e8 if dtype == np.float64 else 1e3) * np.arange(1, P + 1) if kind == "means" else X
    return X.astype(dtype), rng.standard_normal((3, N))


def truth(X, y, centre):
    """The same sums in long double, in two passes."""
    X, y = (np.asarray(a, np.longdouble) for a in (X, y))
    mean = X.mean(axis=0) if centre else np.zeros(P)
    D = X - mean
    return mean, D.T @ D, (y - y.mean(axis=1, keepdims=True) if centre else y) @ D


def worst(found, X, y, centre):
    """The largest error of any sum, beside the sizes of the columns it is of; and of a mean, beside its column's."""
    mean, gram, slope = truth(X, y, centre)
    size, right = np.sqrt(np.diagonal(gram)), np.linalg.norm(y, axis=1)
    off = [
        np.abs((found.gram - gram) / np.multiply.outer(size, size)).max(),
        np.abs((found.slope - slope) / np.multiply.outer(right, size)).max(),
        np.abs(found.column2 / size**2 - 1).max(),
    ]
    if centre:
        off.append(np.abs((found.mean - mean) / (np.abs(mean) + size / np.sqrt(N))).max())
    return float(max(off))


@pytest.fixture
def always_short(monkeypatch):
    """Single precision however few the columns are."""
    monkeypatch.setattr(module, "SHORT", (1, 1))


@pytest.mark.parametrize("rows", [N, 1_999, 500, 7])
@pytest.mark.parametrize("kind", ["plain", "sizes", "means"])
@pytest.mark.parametrize("centre", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("filed", [True, False])
def test_sums_are_those_of_long_double(kind, centre, rows, dtype, filed, tmp_path):
    X, y = data(kind, dtype)
    y = y - y.mean(axis=1, keepdims=True) if centre else y
    np.save(tmp_path / "X.npy", X)
    place = rowcol.chunks(tmp_path / "X.npy" if filed else X, rows=rows).X
    found = gathered(place, y, 0.0, 0.0, None, centre)
    far = 2.0**-52 * 1.2e9 if kind == "means" else 0.0  # a mean that is 1e9 spreads is itself rounded
    assert worst(found, X, y, centre) <= 1e-12 + far
    assert found.tame == 0.0


@pytest.mark.parametrize("centre", [True, False])
@pytest.mark.parametrize("kind", ["plain", "means"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_single_precision_is_taken_where_it_will_do(always_short, centre, kind, dtype, tmp_path):
    if kind == "means" and not centre:
        return
    X, y = data(kind, dtype)
    y = y - y.mean(axis=1, keepdims=True)
    np.save(tmp_path / "X.npy", X)
    found = gathered(rowcol.chunks(tmp_path / "X.npy", rows=2_000).X, y, 0.0, 1e-3, None, centre)
    assert found.tame > 0
    assert 1e-9 < np.abs(found.gram - truth(X, y, centre)[1]).max() / N < 1e-5  # single it is, and no less
    exact = found._replace(gram=truth(X, y, centre)[1])
    assert worst(exact, X, y, centre) <= (1e-12 if kind == "plain" else 1e-6)  # all but the products is in double
    X[:, 0] = X[:, 1] * (1 + 1e-6 * X[:, 2])  # nearly dependent
    found = gathered(rowcol.chunks(X, rows=2_000).X, y, 0.0, 1e-3, None, False)
    assert found.tame == 0.0


def test_single_precision_is_not_taken_where_it_is_not_quicker():
    X, y = data("plain")
    for tol in (1e-3, 0.0, 1e-9):
        assert gathered(rowcol.chunks(X, rows=2_000).X, y, 0.0, tol, None).tame == 0.0


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_nor_where_numbers_are_too_large_or_too_small_for_it(always_short, scale):
    X, y = data("plain")
    assert gathered(rowcol.chunks(X * scale, rows=2_000).X, y, 0.0, 1e-3, None).tame == 0.0


def test_first_rows_that_are_no_guide_to_the_means_are_found_out():
    """Means 1e4 times the spread, after a first few rows about zero: about zero, too much would cancel."""
    X = 1e4 + np.random.default_rng(0).standard_normal((400_000, 2))
    X[: module.FEW * 2] -= 1e4
    y = np.zeros((1, len(X)))
    assert gathered(rowcol.chunks(X, rows=50_000).X, y, 0.0, 0.0, None, True) is None
    assert gathered(rowcol.chunks(X[::-1], rows=50_000).X, y, 0.0, 0.0, None, True) is not None


def test_sparse_parts_are_summed_too_but_not_about_means():
    X, y = data("plain")
    X[np.abs(X) < 1] = 0.0
    place = rowcol.chunks(lambda: iter(sp.csr_array(X[i : i + 900]) for i in range(0, N, 900))).X
    assert worst(gathered(place, y, 0.0, 1e-3, None), X, y, False) <= 1e-12
    assert gathered(place, y, 0.0, 1e-3, None, True) is None


def test_the_judge_of_sums_can_say_no():
    """Means 1e8 times the spread: XᵀX less what they bring has no digit left, and a mean of float32 is not one."""
    X, y = data("means")
    y = y - y.mean(axis=1, keepdims=True)
    right = gathered(rowcol.chunks(X, rows=900).X, y, 0.0, 0.0, None, True)
    mean = X.mean(axis=0)
    assert worst(right._replace(gram=X.T @ X - N * np.multiply.outer(mean, mean)), X, y, True) > 1e-3
    assert worst(right._replace(mean=right.mean * (1 + 1e-8)), X, y, True) > 1e-9


TALL = 40_000, 100  # large enough for a Gram matrix, and wide enough for single precision


def tall(means=0.0, seed=0, collinear=0.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(TALL)
    if collinear:
        X[:, 1] = X[:, 0] + collinear * X[:, 1]
    beta = rng.standard_normal(TALL[1])
    return X + means, X @ beta + rng.standard_normal(TALL[0])


def readings(place):
    """The names of what is asked of every part from now on."""
    read, parts = [], place.map

    def noted(f, *rest, **more):
        if more.get("which") is None:
            read.append(f.__name__)
        return parts(f, *rest, **more)

    place.map = noted
    return read


@pytest.mark.parametrize("means", [0.0, 0.5, 1e6])
@pytest.mark.parametrize("collinear", [0.0, 1e-4])
@pytest.mark.parametrize("alpha", [0.0, 2.0])
@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_an_intercept_takes_one_pass_and_is_that_of_lapack(tmp_path, means, collinear, alpha, n_jobs):
    X, y = tall(means, collinear=collinear)
    np.save(tmp_path / "X.npy", X)
    place = rowcol.chunks(tmp_path / "X.npy", rows=7_000).X
    read = readings(place)
    tol = 1e-3 if means > 1 else 1e-6  # the rounding term of a look grows with the means
    result = rowcol.solve(place, y, alpha=alpha, fit_intercept=True, tol=tol, random_state=0, n_jobs=n_jobs)
    assert result.success
    assert read == ["_sums"] + ["_look_at_some"] * len(result.history.passes)
    wide = X.astype(np.longdouble)
    want = lapack(np.asarray(wide - wide.mean(axis=0), float), y - y.mean(), alpha)
    bound = result.certificate.error_bound
    assert bound is None or np.linalg.norm(result.x - want) <= bound
    share = 1e-5 if not collinear else 0.1 if means > 1 else 1e-2
    assert np.linalg.norm(result.x - want) <= share * np.linalg.norm(want)


@pytest.mark.parametrize("weighted", [True, False])
def test_weights_and_no_intercept(tmp_path, weighted):
    X, y = tall()
    w = np.random.default_rng(2).random(len(y)) if weighted else np.ones(len(y))
    np.save(tmp_path / "X.npy", X)
    place = rowcol.chunks(tmp_path / "X.npy", rows=7_000).X
    for intercept in (True, False):
        mean, middle = (w @ X / w.sum(), w @ y / w.sum()) if intercept else (0.0, 0.0)
        want = lapack((X - mean) * np.sqrt(w)[:, None], (y - middle) * np.sqrt(w), 3.0)
        given = {"sample_weight": w if weighted else None, "fit_intercept": intercept, "random_state": 0}
        result = rowcol.solve(place, y, alpha=3.0, **given)
        assert result.success
        assert np.linalg.norm(result.x - want) <= min(result.certificate.error_bound, 1e-5 * np.linalg.norm(want))


def test_what_single_precision_leaves_is_corrected_and_not_solved_anew(monkeypatch, always_short):
    """A look found it, so a correction costs nothing but the next look."""
    X, y = tall()
    solved, before = [], Direct._solve
    monkeypatch.setattr(Direct, "_solve", lambda self, safely: solved.append(safely) or before(self, safely))
    place = rowcol.chunks(X, rows=7_000).X
    read = readings(place)
    result = rowcol.solve(place, y, alpha=1e-6, tol=1e-6, random_state=0)
    assert result.success
    assert solved == [False]
    assert read == ["_sums", "_look_at_some", "_look_at_some"]
    assert (result.passes, len(result.history.passes)) == (1.0, 2)
    assert np.linalg.norm(result.x - lapack(X, y, 1e-6)) <= 1e-9 * np.linalg.norm(result.x)


def test_where_corrections_do_not_help_it_is_summed_in_double_precision(monkeypatch):
    """A factor of products that are far off, as if rounding had been worse than foretold."""
    X, y = tall()
    before = module._sums

    def off(part, pool, about, single, y):
        found = before(part, pool, about, single, y)
        return found._replace(gram=found.gram * (3.0 if single else 1.0))

    monkeypatch.setattr(module, "_sums", off)
    place = rowcol.chunks(X, rows=7_000).X
    read = readings(place)
    result = rowcol.solve(place, y, tol=1e-6, random_state=0)
    assert result.success
    assert read[-2:] == ["off", "_look_at_some"]
    assert np.linalg.norm(result.x - lapack(X, y)) <= 1e-9 * np.linalg.norm(result.x)


@pytest.mark.parametrize("intercept", [True, False])
def test_numbers_too_large_for_single_precision_are_summed_anew(intercept):
    X, y = tall()
    X[-1, 0], y[-1] = 1e39, 3.0  # no number of single precision, and the first rows do not show it
    result = rowcol.solve(rowcol.chunks(X, rows=7_000).X, y, fit_intercept=intercept, tol=1e-5, random_state=0)
    assert result.success
    scale = np.linalg.norm(X, axis=0)
    design = np.column_stack([X / scale, np.full(len(y), len(y) ** -0.5)] if intercept else [X / scale])
    want = lapack(design, y)[: TALL[1]]
    assert np.abs(result.x * scale - want).max() <= 1e-4 * np.linalg.norm(y)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("row", [0, -1])
def test_what_is_no_number_is_named(intercept, row):
    X, y = tall()
    X[row, 3] = np.nan
    with pytest.raises(ValueError, match=f"chunk {1 if row == 0 else 6} of 6"):
        rowcol.solve(rowcol.chunks(X, rows=7_000).X, y, fit_intercept=intercept, random_state=0)


@pytest.mark.parametrize("value", [0.0, 0.1, 3.0])
def test_a_constant_column_and_a_constant_y_leave_nothing(value):
    X, y = tall()
    X[:, 3] = value
    many = np.column_stack([y, np.full(len(y), 0.3)])
    result = rowcol.solve(rowcol.chunks(X, rows=7_000).X, many, fit_intercept=True, random_state=0)
    assert result.success
    assert (result.x[3] == 0).all()
    assert (result.x[:, 1] == 0).all()


def test_pieces_are_the_part_and_a_file_that_ends_is_named(tmp_path):
    X = np.arange(6e5).reshape(100_000, 6) % 1000
    for stored in (X, X.astype(np.float32), X.astype(np.int16), X.astype(">f8"), X.astype(complex)):
        np.save(tmp_path / "X.npy", stored)
        place = rowcol.chunks(tmp_path / "X.npy", rows=64_000).X
        for least in (1, 50_000, 64_000, 10**6):
            found = [(rows, piece.copy()) for rows, piece in pieces_of(place.unread(0), least)]
            assert [rows.start for rows, _ in found] == np.cumsum([0, *(len(p) for _, p in found)])[:-1].tolist()
            assert max(piece.nbytes for _, piece in found) <= max(PIECE, least * 6 * place.dtype.itemsize)
            got = np.concatenate([piece for _, piece in found])
            assert got.dtype == place.dtype
            np.testing.assert_array_equal(got, X[:64_000])
        assert isinstance(place.unread(1), Unread)
        np.testing.assert_array_equal(whole(place.unread(1)), X[64_000:])
    with open(tmp_path / "X.npy", "r+b") as file:
        file.truncate(64_100 * 6 * 16)
    with pytest.raises(ValueError, match=r"chunk 2 of 2 .*ends early"):
        list(pieces_of(place.unread(1)))
    (tmp_path / "X.npy").unlink()
    with pytest.raises(OSError, match="chunk 1 of 2"):
        list(pieces_of(place.unread(0)))
