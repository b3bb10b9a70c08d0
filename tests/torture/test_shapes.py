"""Whatever shape, order, strides, byte order or sparse format X and y come in: a true answer, or an error by name."""

import tracemalloc
import warnings
from collections import Counter
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import precise
import pytest
import scipy.sparse as sp
import trial
from forms import DENSE, MAPS, PLACES, SPARSE, built, parts, spaced

import rowcol
from test_honesty import METHODS

SHAPES = ((1, 1), (1, 2), (2, 1), (2, 2), (1, 9), (9, 1), (7, 7), (8, 7), (7, 8), (20, 3), (3, 20), (30, 1), (1, 30))
KINDS = ("float64", "float64", "float32", "complex128", "complex64", "int16", "bool", "float16", "longdouble")
BY_PARTS = ("auto", "cg", "direct", "rk")
SIDES = {
    "": np.array,
    "spaced": lambda y: spaced(y.reshape(len(y), -1)).reshape(y.shape) if y.ndim == 1 else spaced(y),
    "backwards": lambda y: y[::-1].copy()[::-1],
    "F": np.asfortranarray,
    "swapped": lambda y: y.astype(y.dtype.newbyteorder()),
    "list": lambda y: y.tolist(),
    "the same": lambda y: np.broadcast_to(y[:1], y.shape),
}


class Shaped(NamedTuple):
    """A system in some form, and its numbers."""

    X: Any
    dense: np.ndarray
    y: Any
    alpha: float
    weight: np.ndarray | None
    intercept: bool
    tol: float
    passes: int
    label: str


def shaped(form, number, method, folder):
    """The case of this number of a form, the same in every run."""
    every = {**DENSE, **SPARSE, **MAPS, **PLACES}
    rng = np.random.default_rng([number, list(every).index(form), METHODS.index(method)])
    n, p = SHAPES[rng.integers(len(SHAPES))]
    n = max(n, 2 * p) if method == "subset" else n
    kind = str(rng.choice(KINDS))
    if any(name in form for name in ("csr", "csc", "coo", "bsr", "lil", "dok", "dia")) and kind in (
        "float16",
        "longdouble",
        "bool",
    ):  # SciPy has no such sparse arrays, or halves none
        kind = "float64"
    numbers = rng.integers(-4, 5, (n, p)) * (rng.random((n, p)) < (0.4 if form in SPARSE or "_array" in form else 1.0))
    numbers = 2 * numbers + (2j * rng.integers(-4, 5, (n, p)) * (numbers != 0) if kind.startswith("complex") else 0)
    base = numbers.astype(kind)
    X = every[form](base, folder) if form in (*MAPS, *PLACES) else every[form](base)
    dense = base.astype({"complex64": np.complex64, "complex128": complex, "float32": np.float32}.get(kind, float))
    if kind == "float16":
        dense = dense.astype(np.float32)
    side, many = str(rng.choice(list(SIDES))), int(rng.choice([0, 0, 1, 2]))
    y = dense.astype(complex if np.iscomplexobj(dense) else float) @ rng.standard_normal((p, many or 1))
    y = y + (rng.random() < 0.5) * rng.standard_normal((n, many or 1))
    alpha = 0.0 if method in ("rek", "subset") or rng.random() < 0.5 else float(rng.choice([1e-6, 1.0, 1e3]))
    weight = rng.integers(0, 3, n) + np.eye(n)[0] if rng.random() < 0.3 else None
    intercept = bool(rng.random() < 0.25)
    label = f"shaped({form!r}, {number}, {method!r}): {n} x {p} {kind}, y {side} {many}, alpha {alpha:g}, w {weight}"
    y = SIDES[side](y if many else y[:, 0])
    return Shaped(X, dense, y, alpha, weight, intercept, 1e-6, 60, f"{label}, intercept {intercept}")


@pytest.mark.parametrize("method", METHODS)
def test_every_form_is_answered_truly(method, amount, full, tally, tmp_path):
    counts = Counter()
    forms = list({**DENSE, **SPARSE, **MAPS, **(PLACES if method in BY_PARTS else {})})
    for form in forms if full else forms[METHODS.index(method) % 3 :: 3]:
        for number in range(amount(1, 10)):
            counts.update({"cases": 1} | trial.held(shaped(form, number, method, tmp_path), method))
    assert counts["converged"] >= (0.2 if method in ("subset", "rek", "rk", "blocks") else 0.5) * counts["cases"]
    trial.noted(tally, "shapes", counts)


EMPTY = {
    "no rows": np.empty((0, 3)),
    "no columns": np.empty((4, 0)),
    "nothing": np.empty((0, 0)),
    "no rows, F": np.empty((0, 3), order="F"),
    "no rows, sparse": sp.csr_array((0, 3)),
    "no columns, sparse": sp.csc_array((4, 0)),
    "cut away": np.ones((4, 3))[:, 3:],
    "a list": [],
    "a list of lists": [[], []],
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", EMPTY)
@pytest.mark.parametrize("intercept", [False, True])
def test_what_is_empty_is_refused(name, method, intercept, tally):
    X = EMPTY[name]
    rows = np.shape(X)[0] if not sp.issparse(X) else X.shape[0]
    for y in (np.ones(rows), np.ones((rows, 2)), np.ones((rows, 0))):
        with pytest.raises(ValueError, match=r"^X is empty|^X must have 2 dimensions, got 1") as refused:
            rowcol.solve(X, y, method=method, fit_intercept=intercept)
        trial.documented(refused.value, method)
    tally("shapes", cases=3, refused=3)


BROKEN = {
    "index too large": lambda d, i, e: (d, np.where(i == i.max(), 99, i), e),
    "index below zero": lambda d, i, e: (d, np.where(i == i.min(), -7, i), e),
    "ends that fall": lambda d, i, e: (d, i, np.concatenate([e[:2], e[1:2] - 1, e[3:]])),
    "ends beyond": lambda d, i, e: (d, i, np.append(e[:-1], e[-1] + 1000)),
    "too few ends": lambda d, i, e: (d, i, e[:-1]),
    "too few indices": lambda d, i, e: (d, i[:-3], e),
    "begins late": lambda d, i, e: (d, i, np.append([2], e[1:])),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array])
def test_sparse_arrays_that_are_none_are_refused(name, kind, tally):
    """Compiled code would read or write elsewhere in memory."""
    good = kind(np.arange(1.0, 36.0).reshape(7, 5))
    X = built(good, *BROKEN[name](*(a.copy() for a in parts(good))))
    for method in METHODS:
        with pytest.raises(ValueError, match="X is no valid sparse array") as refused:
            rowcol.solve(X, np.ones(7), method=method)
        trial.documented(refused.value, method)
    with pytest.raises(ValueError, match="is no valid sparse array") as refused:
        rowcol.solve(rowcol.chunks(lambda: iter([X])).X, np.ones(7))
    tally("shapes", cases=len(METHODS) + 1, refused=len(METHODS) + 1)


MISFITS = {
    "one too few": (3, 1),
    "turned": (1, 4),
    "three dimensions": (4, 1, 1),
    "none": (),
    "no right-hand side": (4, 0),
    "nothing": (0,),
}


@pytest.mark.parametrize("name", MISFITS)
def test_a_y_that_does_not_fit_is_refused(name, tally):
    for X in (np.eye(4), sp.csr_array(np.eye(4)), rowcol.chunks(lambda: iter([np.eye(4)])).X):
        for method in ("auto", "rk", "cg", "direct"):
            with pytest.raises(ValueError, match=r"\by (has|must have|is)\b") as refused:
                rowcol.solve(X, np.ones(MISFITS[name]), method=method)
            trial.documented(refused.value, method)
            tally("shapes", cases=1, refused=1)


@pytest.mark.parametrize("change", ["spaced", "the same rows", "whole numbers", "turned in pieces"])
def test_what_would_take_too_large_a_copy_is_read_in_parts(change, tally):
    """A broadcast or strided array may be larger than any memory: only its parts are ever copied."""
    rng = np.random.default_rng(2)
    rows = rng.integers(-9, 10, (6, 40)).astype(float)
    X = {
        "spaced": lambda: np.repeat(np.tile(rows, (500, 1)), 2, axis=1)[:, ::2],
        "the same rows": lambda: np.broadcast_to(rows, (3000, 6, 40)).transpose(1, 0, 2)[0],
        "whole numbers": lambda: np.tile(rows, (500, 1)).astype(np.int8),
        "turned in pieces": lambda: np.lib.stride_tricks.sliding_window_view(rng.standard_normal(3039), 40),
    }[change]()
    y = X @ np.ones(40) + 1e-3 * rng.standard_normal(len(X))
    whole = rowcol.solve(np.array(X, float), y, alpha=1.0, tol=1e-9)
    result = rowcol.solve(X, y, alpha=1.0, tol=1e-9, memory="300 kB")
    assert result.success
    assert result.copied < X.size
    assert np.linalg.norm(result.x - whole.x) <= result.error_bound + whole.error_bound
    with pytest.raises(TypeError, match="where rows of X lie elsewhere"):
        rowcol.solve(X, y, alpha=1.0, method="rcd", memory="300 kB")
    tally("shapes", cases=2, answered=1, converged=1, refused=1)


def test_chunks_without_rows_are_passed_over(tally):
    X, y = np.arange(12.0).reshape(6, 2) ** 1.5, np.arange(6.0)
    parts = [(X[:0], y[:0]), (X[:2], y[:2]), (X[:0], y[:0]), (X[2:], y[2:]), (X[:0], y[:0])]
    place, target, _ = rowcol.chunks(lambda: iter(parts))
    assert place.count == 2
    assert np.array_equal(target, y)
    found = rowcol.solve(place, target, tol=1e-10).x
    assert np.allclose(found, np.linalg.lstsq(X, y, rcond=None)[0], rtol=1e-8)
    with pytest.raises(ValueError, match="gave no rows"):
        rowcol.chunks(lambda: iter([X[:0]]))
    tally("shapes", cases=2, answered=1, converged=1, refused=1)


def test_zero_columns_are_told_from_faint_ones_without_a_copy():
    X = np.zeros((40_000, 300), np.float32)
    X[-4:, -4:] = np.eye(4)
    last = np.zeros(40_000)
    last[-1] = 1.0
    rowcol.solve(X[-20:], last[-20:], method="cg")
    tracemalloc.start()
    result = rowcol.solve(X, last, method="cg", n_jobs=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert result.success
    assert peak < 0.3 * X.nbytes
    X[0, 0] = 1e-44  # the square of which is still a number, but not of much
    Y = X.astype(float)
    Y[0, 1] = 1e-200
    with pytest.raises(ValueError, match="column 1 of X is so small"):
        rowcol.solve(Y, last, method="cg")


CORNER = 8


def corner(X):
    """Numbers in the last rows and columns only, as far from the first as can be, and a y that they explain in part."""
    rng = np.random.default_rng(3)
    block = rng.integers(-3, 4, (CORNER, CORNER)) + 12.0 * np.eye(CORNER)
    X[-CORNER:, -CORNER:] = block
    y = np.zeros(len(X))
    y[-CORNER:] = block @ rng.standard_normal(CORNER)
    return block, y


HUGE = {"in rows": ("C", "cg"), "in columns": ("F", "rcd"), "in a file with a hole": ("file", "cg")}


@pytest.mark.parametrize("name", HUGE)
def test_more_numbers_than_32_bits_can_count(name, full, tally, tmp_path):
    """Pages of zeros, and the hole in a file, take no room. What is there is at places beyond 2³¹."""
    order, method = HUGE[name]
    n, p = (2**20 + 5, 2**11) if full else (2**9 + 5, 2**5)
    if order == "file":  # of one byte a number
        X = np.memmap(tmp_path / "X.bin", np.int8, "w+", shape=(n, p))
    else:
        X = np.zeros((n, p), np.float32, order=order)
    assert X.size > 2**31 or not full
    block, y = corner(X)
    given = rowcol.chunks(X).X if order == "file" else X
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = rowcol.solve(
            given, y, alpha=1.0, method=method, tol=1e-3, max_passes=4, n_jobs=1, random_state=0, memory="2 GB"
        )
    assert not result.x[:-CORNER].any()
    small = np.asarray(block, np.float64 if order == "file" else np.float32)
    one = Shaped(small, small, y[-CORNER:], 1.0, None, False, 1e-3, 4, name)
    dual = None if result.dual is None else result.dual[-CORNER:]
    part = replace(result, x=result.x[-CORNER:], dual=dual)
    trial.sound(small, one.y, part, caught)
    precise.certified(one, part)
    tally("shapes", cases=1, answered=1, converged=int(result.success), numbers_in_the_largest_X=f"{n * p:,}")
