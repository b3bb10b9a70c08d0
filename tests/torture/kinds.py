"""Kinds of input: what each makes of a plain array, and what it means as one; or that it means nothing.

ANSWER must be taken, REFUSE must not be, EITHER may be both; what is taken must be answered as its meaning is.
"""

from __future__ import annotations

import array
import decimal
import fractions
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from test_inputs import FORMS as STORED

VALUES = ("NaN", "infinity", "null", "NA", "objects", "beyond float64")  # in names of kinds whose numbers are none
ANSWER, REFUSE, EITHER = "answer", "refuse", "either"
LONG = "very long text " * 5000


class Form(NamedTuple):
    """make(plain) is what is given, means(plain) its numbers."""

    make: Any
    verdict: str = ANSWER
    means: Any = np.asarray
    rough: bool = False  # single precision


class Odd(np.ndarray):
    """A subclass that would like to have a say."""

    def __array_wrap__(self, *args, **kwargs):
        raise RuntimeError("an inside is seen")


class Shown:
    """An array by its protocol only, or what the protocol raises."""

    def __init__(self, a, error=None):
        self.a, self.error = a, error

    def __array__(self, dtype=None, copy=None):
        if self.error is not None:
            raise self.error
        return np.array(self.a, dtype)

    def __deepcopy__(self, memo):
        raise TypeError("no copies")


def nothing(a):
    return None


def complexed(a):
    return a + 1j * (a[::-1] - 1.0)


def cut_ragged(a):
    return [*a.tolist()[:-1], a.tolist()[-1][:-1] if a.ndim == 2 else [1.0, 2.0]]


def changed(a, value):
    """A list with another value at its end."""
    out = a.astype(object)
    out.flat[-1] = value
    return out.tolist()


def refused(make):
    return Form(make, REFUSE, nothing)


ANY = {
    "float64": Form(np.copy),
    "float32": Form(lambda a: a.astype(np.float32), rough=True),
    "float16": Form(lambda a: a.astype(np.float16), rough=True),
    "longdouble": Form(lambda a: a.astype(np.longdouble)),
    **{f"{s}int{b}": Form(lambda a, t=f"{s}int{b}": a.astype(t)) for s in ("", "u") for b in (8, 16, 32, 64)},
    "big-endian": Form(lambda a: a.astype(">f8")),
    "big-endian int": Form(lambda a: a.astype(">i4")),
    "bool": Form(lambda a: a > 2, means=lambda a: (a > 2).astype(float)),
    "strided": Form(lambda a: np.repeat(a, 3, axis=0)[::3]),
    "reversed": Form(lambda a: a[::-1].copy()[::-1]),
    "readonly": Form(lambda a: np.frombuffer(a.tobytes()).reshape(a.shape)),
    "unaligned": Form(lambda a: np.frombuffer(b"x" + a.tobytes(), np.uint8)[1:].view(float).reshape(a.shape)),
    "list": Form(lambda a: a.tolist()),
    "tuple": Form(lambda a: tuple(map(tuple, a.tolist())) if a.ndim == 2 else tuple(a.tolist())),
    "list of arrays": Form(list),
    "list of bools": Form(lambda a: (a > 2).tolist(), means=lambda a: (a > 2).astype(float)),
    "subclass": Form(lambda a: a.view(Odd)),
    "__array__": Form(Shown),
    "memoryview": Form(lambda a: memoryview(np.ascontiguousarray(a)), EITHER),
    "object floats": Form(lambda a: a.astype(object), EITHER),
    "decimals": Form(lambda a: np.vectorize(decimal.Decimal, otypes=[object])(a), EITHER),
    "fractions": Form(lambda a: np.vectorize(fractions.Fraction, otypes=[object])(a), EITHER),
    "text of numbers": Form(lambda a: a.astype(str), EITHER),
    "list of text": Form(lambda a: a.astype(str).tolist(), EITHER),
    "bytes of numbers": Form(lambda a: a.astype("S"), EITHER),
    "complex64": Form(lambda a: complexed(a).astype(np.complex64), means=complexed, rough=True),
    "complex128": Form(complexed, means=complexed),
    "clongdouble": Form(lambda a: complexed(a).astype(np.clongdouble), means=complexed),
    "list of complex": Form(lambda a: complexed(a).tolist(), means=complexed),
    "masked": refused(lambda a: np.ma.masked_equal(a, a.flat[0])),
    "masked, nothing hidden": Form(lambda a: np.ma.array(a), EITHER),
    "text": refused(lambda a: np.full(a.shape, "a")),
    "text of numbers, by NumPy 2": Form(lambda a: a.astype(np.dtypes.StringDType()), EITHER),
    "bytes": refused(lambda a: np.full(a.shape, b"a")),
    "long text": refused(lambda a: np.full(a.shape, LONG)),
    "list of long text": refused(lambda a: changed(a, LONG)),
    "object text": refused(lambda a: np.full(a.shape, LONG, object)),
    "object None": refused(lambda a: np.array(changed(a, None), object)),
    "object of objects": refused(lambda a: np.full(a.shape, object(), object)),
    "object lists": refused(lambda a: np.array(changed(a, {}), object)),
    "list with None": refused(lambda a: changed(a, None)),
    "list with a dict": refused(lambda a: changed(a, {})),
    "list with a huge integer": refused(lambda a: changed(a, 10**400)),
    "integers beyond 64 bits": Form(
        lambda a: (a.astype(int).astype(object) * 10**20).tolist(), EITHER, lambda a: a * 1e20
    ),
    "dates": refused(lambda a: a.astype("M8[D]")),
    "durations": refused(lambda a: a.astype("m8[s]")),
    "no dates": refused(lambda a: np.full(a.shape, "NaT", "M8[ns]")),
    "structured": refused(lambda a: np.zeros(a.shape, [("a", float), ("b", int)])),
    "void": refused(lambda a: np.zeros(a.shape, "V3")),
    "record": refused(lambda a: np.rec.array(np.zeros(a.shape, [("a", float)]))),
    "NaN": refused(lambda a: np.where(np.arange(a.size).reshape(a.shape) == 1, np.nan, a)),
    "infinity": refused(lambda a: np.where(np.arange(a.size).reshape(a.shape) == 1, np.inf, a)),
    "list with NaN": refused(lambda a: changed(a, float("nan"))),
    "float32 NaN": refused(lambda a: np.full(a.shape, np.nan, np.float32)),
    "longdouble beyond float64": refused(lambda a: a.astype(np.longdouble) * np.longdouble("1e4000")),
    "ragged": refused(cut_ragged),
    "generator": refused(lambda a: (row for row in a)),
    "iterator": refused(iter),
    "map": refused(lambda a: map(float, a.ravel())),
    "set": refused(lambda a: set(a.ravel())),
    "dict": refused(lambda a: {"a": a}),
    "None in a box": refused(lambda a: np.array(None)),
    "scalar": refused(lambda a: 3.0),
    "0-d": refused(lambda a: np.array(3.0)),
    "3-d": refused(lambda a: np.stack([np.atleast_2d(a)] * 2)),
    "4-d": refused(lambda a: np.ones((2, 2, 2, 2))),
    "text alone": refused(lambda a: "data.csv"),
    "long text alone": refused(lambda a: LONG),
    "bytes alone": refused(lambda a: b"data"),
    "bytearray": refused(lambda a: bytearray(b"data")),
    "object": refused(lambda a: object()),
    "class": refused(lambda a: np.ndarray),
    "function": refused(lambda a: lambda: a),
    "ellipsis": refused(lambda a: ...),
    "slice": refused(lambda a: slice(3)),
    "empty list": refused(lambda a: []),
    "empty": refused(lambda a: np.empty((0, *a.shape[1:]))),
    "list of nothing": refused(lambda a: [[] for _ in a]),
    "too short": Form(lambda a: a[:-1], REFUSE, lambda a: a[:-1]),
    "too long": Form(lambda a: np.concatenate([a, a[:1]]), REFUSE, lambda a: np.concatenate([a, a[:1]])),
    "__array__ of text": refused(lambda a: Shown("text")),
    **{
        f"__array__ raises {type(e).__name__}": refused(lambda a, e=e: Shown(a, e))
        for e in (
            ValueError("no"),
            TypeError("no\nand no"),
            RuntimeError("an inside is seen"),
            AttributeError(LONG),
            KeyError("k"),
            IndexError("i"),
            ZeroDivisionError("z"),
            AssertionError(),
            NotImplementedError(),
            OSError("disk"),
            RecursionError("deep"),
        )
    },
}


def named(a):
    return list("abcdefgh")[: a.shape[1]]


def frame(a, dtype=None):
    return pd.DataFrame(a, columns=named(a)).astype(dtype or float)


def frame_with(a, column):
    return frame(a).assign(a=column)


TABLES = {
    "pandas": Form(frame),
    "pandas int": Form(lambda a: frame(a, int)),
    "pandas float32": Form(lambda a: frame(a, np.float32), rough=True),
    "pandas bool": Form(lambda a: frame(a) > 2, means=lambda a: (a > 2).astype(float)),
    "pandas mixed": Form(lambda a: frame(a).astype({"a": np.int8, "b": np.float32})),
    "pandas Int64": Form(lambda a: frame(a, "Int64")),
    "pandas Float64": Form(lambda a: frame(a, "Float64")),
    "pandas boolean": Form(lambda a: (frame(a) > 2).astype("boolean"), means=lambda a: (a > 2).astype(float)),
    "pandas Int64 and float": Form(lambda a: frame(a).astype({"a": "Int64"})),
    "pandas of arrow": Form(lambda a: frame(a, "int64[pyarrow]"), EITHER),
    "pandas sparse": Form(lambda a: frame(a, pd.SparseDtype(float, 0.0)), EITHER),
    "pandas one sparse": Form(lambda a: frame(a).astype({"a": pd.SparseDtype(float, 0.0)}), EITHER),
    "pandas categories of numbers": Form(lambda a: frame(a, "category"), EITHER),
    "pandas one category of numbers": Form(lambda a: frame(a).astype({"a": "category"}), EITHER),
    "pandas whole names": Form(pd.DataFrame),
    "pandas twice the name": Form(lambda a: pd.DataFrame(a, columns=["a"] * a.shape[1]), EITHER),
    "pandas names of all sorts": Form(lambda a: pd.DataFrame(a, columns=[0, "b", None][: a.shape[1]]), EITHER),
    "pandas names in two rows": Form(
        lambda a: pd.DataFrame(a, columns=pd.MultiIndex.from_tuples([(c, 1) for c in named(a)])), EITHER
    ),
    "pandas other index": Form(lambda a: frame(a).set_axis(np.arange(len(a))[::-1])),
    "pandas same index": Form(lambda a: frame(a).set_axis([LONG] * len(a))),
    "pandas NaN": refused(lambda a: frame_with(a, np.nan)),
    "pandas NA": refused(lambda a: frame_with(a, pd.array([pd.NA] * len(a), "Int64"))),
    "pandas objects": refused(lambda a: frame_with(a, [None] * len(a))),
    "pandas text": refused(lambda a: frame_with(a, LONG)),
    "pandas categories of text": refused(lambda a: frame_with(a, "x").astype({"a": "category"})),
    "pandas dates": refused(lambda a: frame_with(a, pd.Timestamp("2020-01-01"))),
    "pandas all dates": refused(lambda a: frame(a).astype("int64").astype("datetime64[ns]")),
    "pandas durations": refused(lambda a: frame_with(a, pd.Timedelta("1s"))),
    "pandas periods": refused(lambda a: frame_with(a, pd.period_range("2020", periods=len(a), freq="D"))),
    "pandas empty": refused(lambda a: frame(a).iloc[:0]),
    "pandas long text names": refused(lambda a: frame(a).rename(columns={"a": LONG}).astype(object).assign(b=LONG)),
    "polars": Form(lambda a: pl.DataFrame(a, schema=named(a))),
    "polars int": Form(lambda a: pl.DataFrame(a.astype(int), schema=named(a))),
    "polars mixed": Form(lambda a: pl.DataFrame(a, schema=named(a)).cast({"a": pl.Int8, "b": pl.Float32})),
    "polars bool": Form(lambda a: pl.DataFrame(a > 2, schema=named(a)), EITHER, lambda a: (a > 2).astype(float)),
    "polars decimal": Form(lambda a: pl.DataFrame(a, schema=named(a)).cast({"a": pl.Decimal(10, 2)}), EITHER),
    "polars null": refused(lambda a: pl.DataFrame(a, schema=named(a)).with_columns(a=None)),
    "polars a null": refused(lambda a: pl.DataFrame({"a": [None, *a[1:, 0]], "b": a[:, 1], "c": a[:, 0] * a[:, 1]})),
    "polars NaN": refused(lambda a: pl.DataFrame(a * np.nan, schema=named(a))),
    "polars text": refused(lambda a: pl.DataFrame(a, schema=named(a)).with_columns(a=pl.lit(LONG))),
    "polars categories": refused(
        lambda a: pl.DataFrame(a, schema=named(a)).with_columns(a=pl.lit("x").cast(pl.Categorical))
    ),
    "polars dates": refused(
        lambda a: pl.DataFrame(a, schema=named(a)).with_columns(a=pl.lit("2020-01-01").str.to_date())
    ),
    "polars lazy": refused(lambda a: pl.DataFrame(a, schema=named(a)).lazy()),
    "arrow": Form(lambda a: pa.table(dict(zip(named(a), a.T))), EITHER),
    "arrow int": Form(lambda a: pa.table(dict(zip(named(a), a.T.astype(int)))), EITHER),
    "arrow batch": Form(lambda a: pa.record_batch(dict(zip(named(a), a.T))), EITHER),
    "arrow null": refused(lambda a: pa.table({"a": [None, *a[1:, 0]], "b": a[:, 1], "c": a[:, 0] * a[:, 1]})),
    "arrow dates": refused(lambda a: pa.table({"a": a[:, 0].astype("M8[D]"), "b": a[:, 1], "c": a[:, 0]})),
    "arrow all dates": refused(lambda a: pa.table({"a": a[:, 0].astype("M8[s]"), "b": a[:, 1].astype("M8[s]")})),
    "arrow text": refused(lambda a: pa.table({"a": [LONG] * len(a), "b": a[:, 1], "c": a[:, 0]})),
}
NARROW = {
    f"matrix of {f}": Form(lambda a, f=f: getattr(sp, f"{f}_matrix")(a))
    for f in ("csr", "csc", "coo", "lil", "dok", "dia", "bsr")
}
TABLES |= NARROW
TABLES |= {
    f"stored {name}": Form(make, rough=name == "float16")
    for name, make in STORED.items()
    if "matrix" not in name and "pandas" not in name
}
TABLES |= {
    "sparse bool": Form(lambda a: sp.csr_array(a > 2), means=lambda a: (a > 2).astype(float)),
    "sparse float32": Form(lambda a: sp.csc_array(a.astype(np.float32)), rough=True),
    "sparse longdouble": Form(lambda a: sp.csr_array(a.astype(np.longdouble))),
    "sparse complex": Form(lambda a: sp.csr_array(complexed(a)), means=complexed),
    "sparse int8": Form(lambda a: sp.coo_array(a.astype(np.int8))),
    "sparse NaN": refused(lambda a: sp.csr_array(np.where(a == a.max(), np.nan, a))),
    "sparse 1-d": refused(lambda a: sp.coo_array(a[:, 0])),
    "sparse empty": refused(lambda a: sp.csr_array((0, a.shape[1]))),
    "list of sparse": refused(lambda a: [sp.csr_array(a)] * 2),
    "object of sparse": refused(lambda a: np.array([sp.csr_array(a), None], object)),
    "sparse with a zero stored": Form(
        lambda a: sp.csr_array(
            (a.ravel(), np.tile(np.arange(a.shape[1]), len(a)), np.arange(0, a.size + 1, a.shape[1])), a.shape
        )
    ),
}


def series(a, dtype=None):
    return pd.Series(a, name="b").astype(dtype or float)


COLUMNS = {
    "broadcast": Form(lambda a: np.broadcast_to(a[:1], a.shape), means=lambda a: np.broadcast_to(a[:1], a.shape)),
    "Series": Form(series),
    "Series int": Form(lambda a: series(a, int)),
    "Series Int64": Form(lambda a: series(a, "Int64")),
    "Series Float64": Form(lambda a: series(a, "Float64")),
    "Series of arrow": Form(lambda a: series(a, "int64[pyarrow]"), EITHER),
    "Series sparse": Form(lambda a: series(a, pd.SparseDtype(float, 0.0)), EITHER),
    "Series categories of numbers": Form(lambda a: series(a, "category"), EITHER),
    "Series other index": Form(lambda a: series(a).set_axis(np.arange(len(a))[::-1])),
    "Series name": Form(lambda a: pd.Series(a, name=LONG)),
    "Series NaN": refused(lambda a: series(a * np.nan)),
    "Series NA": refused(lambda a: pd.Series([pd.NA] * len(a), dtype="Int64")),
    "Series a NA": refused(lambda a: pd.Series([pd.NA, *a[1:]], dtype="Float64", name=LONG)),
    "Series text": refused(lambda a: pd.Series([LONG] * len(a), name=LONG)),
    "Series categories of text": refused(lambda a: pd.Series(["x"] * len(a), dtype="category")),
    "Series dates": refused(lambda a: pd.Series(pd.date_range("2020", periods=len(a)))),
    "Index": Form(pd.Index),
    "pandas array": Form(lambda a: pd.array(a, "Float64"), EITHER),
    "polars Series": Form(pl.Series),
    "polars Series int": Form(lambda a: pl.Series(a.astype(int))),
    "polars Series a null": refused(lambda a: pl.Series([None, *a[1:]])),
    "polars Series text": refused(lambda a: pl.Series(["x"] * len(a))),
    "arrow array": Form(pa.array, EITHER),
    "arrow chunked": Form(lambda a: pa.chunked_array([a[:3], a[3:]]), EITHER),
    "arrow array of nulls": refused(lambda a: pa.array([None, *a[1:]])),
    "array": Form(lambda a: array.array("d", a), EITHER),
    "range": Form(lambda a: range(len(a)), EITHER, lambda a: np.arange(float(len(a)))),
    "sparse": refused(lambda a: sp.csr_array(a[:, None])),
    "sparse 1-d": refused(lambda a: sp.coo_array(a)),
    "operator": refused(lambda a: aslinearoperator(a[:, None])),
}
OPERATORS = {
    "operator": Form(aslinearoperator),
    "operator of float32": Form(lambda a: aslinearoperator(a.astype(np.float32)), rough=True),
    "operator by functions": Form(
        lambda a: LinearOperator(a.shape, matvec=lambda v: a @ v, rmatvec=lambda u: a.T @ u, dtype=float)
    ),
    "operator complex": Form(lambda a: aslinearoperator(complexed(a)), means=complexed),
    "operator without rmatvec": refused(lambda a: LinearOperator(a.shape, matvec=lambda v: a @ v, dtype=float)),
    "operator of objects": refused(
        lambda a: LinearOperator(a.shape, matvec=lambda v: a @ v, rmatvec=lambda u: a.T @ u, dtype=object)
    ),
    "operator of NaN": refused(lambda a: aslinearoperator(a * np.nan)),
    "operator of nothing": refused(lambda a: aslinearoperator(np.empty((0, 3)))),
}
