"""Every parameter of every public callable: what it must take, and what it must not.

A limit says of a value: True (it must be taken), False (it must be refused), None (either). `LIMITS` has one for every
name, `OWN` those of a callable that differ; a parameter without one fails a test.
"""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from entries import ALPHA, GAMMA, LABELS, PLAIN_X, PLAIN_Y, by_kernel, linear, rbf_kernel
from kinds import LONG, Shown

import rowcol
from rowcol import kernels, theory


class Awkward:
    """Nothing can be done with it, not even shown."""

    def __repr__(self):
        raise RuntimeError("an inside is seen")

    def __bool__(self):
        raise RuntimeError("an inside is seen")

    def __eq__(self, other):
        raise RuntimeError("an inside is seen")

    __hash__ = None


VALUES = {
    "None": None,
    "True": True,
    "False": False,
    "numpy True": np.True_,
    "nan": math.nan,
    "inf": math.inf,
    "-inf": -math.inf,
    "-1": -1,
    "0": 0,
    "0.0": 0.0,
    "-0.0": -0.0,
    "1": 1,
    "2": 2,
    "0.5": 0.5,
    "1e-300": 1e-300,
    "5e-324": 5e-324,
    "1e300": 1e300,
    "2**70": 2**70,
    "-2**70": -(2**70),
    "10**400": 10**400,
    "float32 0.5": np.float32(0.5),
    "longdouble 0.5": np.longdouble(0.5),
    "int8 1": np.int8(1),
    "0-d 0.5": np.array(0.5),
    "text": "text",
    "0.5 as text": "0.5",
    "long text": LONG,
    "null text": "a\0b",
    "bytes": b"text",
    "complex": 0.5 + 0j,
    "list": [0.5],
    "two": [0.5, 0.5],
    "no list": [],
    "list of text": ["a", "b"],
    "nested": [[0.5]],
    "ragged": [[1], [1, 2]],
    "array": np.ones((3, 3)),
    "long array": np.ones(200),
    "no array": np.empty(0),
    "nan array": np.full(12, np.nan),
    "object array": np.array([None, 1], object),
    "dict": {"a": 1},
    "object": object(),
    "class": int,
    "function": lambda *a, **k: None,
    "generator": (i for i in range(3)),
    "awkward": Awkward(),
    "raises": Shown(1.0, RuntimeError("an inside is seen")),
    "date": np.datetime64("2020-01-01"),
}


def is_real(v):
    """A real number that is no boolean; a 0-d array of one."""
    v = v.item() if isinstance(v, np.ndarray) and v.ndim == 0 else v
    return isinstance(v, (Real, np.floating)) and not isinstance(v, (bool, np.bool_)), v


def number(above=-math.inf, below=math.inf, least=None, none=False):
    def limit(v):
        if v is None:
            return none
        real, v = is_real(v)
        if not real:
            return False
        try:
            v = float(v)
        except OverflowError:
            return False
        return math.isfinite(v) and (v >= least if least is not None else above < v) and v < below

    return limit


def whole(least, none=False):
    def limit(v):
        if v is None:
            return none
        return isinstance(v, Integral) and not isinstance(v, (bool, np.bool_)) and v >= least

    return limit


def only(*known, otherwise=False):
    """These values, by what they are."""
    return lambda v: True if any(v is one or (type(v) is type(one) is str and v == one) for one in known) else otherwise


def flag(v):
    return isinstance(v, (bool, np.bool_))


def either(limit):
    """What must be refused stays so; the rest may be."""
    return lambda v: False if limit(v) is False else None


def anything(v):
    return None


def one_or_list(of):
    """A number, or several: arrays of the right shape are not among VALUES, but lists of one are."""

    def limit(v):
        try:
            one = np.asarray(v)
        except Exception:
            return False
        if isinstance(v, Shown) or one.dtype.kind not in "fiu" or v is None:
            return of(v) if one.ndim == 0 and not isinstance(v, Shown) else False
        if one.ndim == 0:
            return of(v)
        return None if one.size and np.isfinite(one).all() and (one > 0).all() else False

    return limit


def width(v):
    """Above zero; what the squares of points can no longer hold may be refused."""
    return AT_MOST(v) and (None if v is not None and float(v) > 1e100 else True)


POSITIVE, PENALTY = number(above=0.0), number(least=0.0)
AT_MOST = number(above=0.0, none=True)
STATE = lambda v: v is None or (isinstance(v, Integral) and not isinstance(v, (bool, np.bool_)) and v >= 0)  # noqa: E731
PATH = lambda v: True if v is None else None if isinstance(v, str) else False  # noqa: E731
CALL = lambda v: True if v is None else None if callable(v) else False  # noqa: E731
LIMITS = {
    "alpha": one_or_list(PENALTY),
    "alphas": one_or_list(POSITIVE),
    "fit_intercept": flag,
    "positive": flag,
    "warm_start": flag,
    "covariance": flag,
    "store_cv_results": flag,
    "alpha_per_target": flag,
    "probability": flag,
    "ard": flag,
    "method": only(),
    "solver": only(),
    "tol": number(above=0.0, below=1.0),
    "cv_tol": number(above=0.0, below=1.0),
    "max_passes": AT_MOST,
    "max_iter": AT_MOST,
    "max_seconds": AT_MOST,
    "x0": only(None),
    "sampler": only(),
    "sample_weight": only(None),
    "bounds": lambda v: v is None or (None if v is VALUES["two"] else False),
    "preconditioner": lambda v: True if v is None else None if callable(v) or v is VALUES["array"] else False,
    "memory": lambda v: True if v is None else None if is_real(v)[0] or isinstance(v, str) else False,
    "n_jobs": lambda v: v is None or (isinstance(v, Integral) and not isinstance(v, (bool, np.bool_)) and v != 0),
    "random_state": STATE,
    "callback": CALL,
    "progress": lambda v: v is None or isinstance(v, (bool, np.bool_)),
    "checkpoint": PATH,
    "kernel": CALL,
    "n_centers": only(None),
    "gamma": width,
    "degree": anything,
    "coef0": anything,
    "nu": anything,
    "length_scale": anything,
    "kernel_params": anything,
    "dtype": anything,
    "class_weight": either(lambda v: v is None or isinstance(v, dict)),
    "cv": anything,
    "scoring": either(lambda v: v is None or callable(v)),
    "length_scales": lambda v: True if v is None else one_or_list(POSITIVE)(v) and None,
    "tune_points": whole(2),
    "rows": whole(1, none=True),
    "extremes": only(None),
    "steps": whole(1),
    "seconds": PENALTY,
    "passes": AT_MOST,
    "encoder": anything,
    "norm": only("l1"),
    "f": lambda v: None if callable(v) else False,
}


class Call(NamedTuple):
    """make(**parameters) gives a number array; `of` is the callable whose signature counts."""

    of: Any
    make: Any
    truth: Any  # of the parameters that were changed
    skip: tuple = ()  # X and y, which test_kinds.py feeds
    own: dict = {}  # noqa: RUF012 - limits of its own
    names: dict = {}  # noqa: RUF012 - what a message may call a parameter beside its name
    watched: bool = False  # a callback tells whether work was done


def model(kind, y=PLAIN_Y, **base):
    def make(callback=None, **more):
        settings = dict(random_state=0) | base | more
        fitted = kind(**settings) if callback is None else kind(**settings, callback=callback)
        fitted.fit(PLAIN_X, y)
        return np.ravel(fitted.decision_function(PLAIN_X) if y is LABELS else fitted.predict(PLAIN_X))

    return make


def penalty_of(more, otherwise):
    return float(np.ravel(more.get("alpha", otherwise))[0])


def values_of(alpha, intercept=True, y=PLAIN_Y):
    def truth(**more):
        beta = linear(penalty_of(more, alpha), more.get("fit_intercept", intercept))(PLAIN_X, y)
        return PLAIN_X @ beta[:-1] + beta[-1]

    return truth


def kernel_values(intercept=False, y=PLAIN_Y):
    def truth(**more):
        gamma, alpha = more.get("gamma", GAMMA), penalty_of(more, ALPHA)
        gamma = 1 / 3 if gamma is None else float(gamma)
        if more.get("fit_intercept", intercept):
            return by_kernel(PLAIN_X, y, None, True, gamma, alpha)
        K = rbf_kernel(PLAIN_X, PLAIN_X, gamma)
        return K @ np.linalg.solve(K + alpha * np.eye(len(K)), y)

    return truth


def chosen(result):
    """Values at the rows, with whatever intercept."""
    return PLAIN_X @ result.x + (0.0 if result.intercept is None else result.intercept)


SIGNS = np.where(LABELS == 2, 1.0, -1.0)
POSITIVE_ALPHA = {"alpha": one_or_list(POSITIVE)}
XY, SEED = ("X", "y"), {"random_state": 0}
CALLS = {
    "solve": Call(
        rowcol.solve,
        lambda **k: chosen(rowcol.solve(PLAIN_X, PLAIN_Y, **{"random_state": 0} | k)),
        values_of(0.0, False),
        XY,
        {"kernel": lambda v: True if v is None else False if not callable(v) else None},
        watched=True,
    ),
    "solve kernel": Call(
        rowcol.solve,
        lambda **k: (
            rowcol.solve(
                PLAIN_X, PLAIN_Y, **{"random_state": 0, "kernel": kernels.RBF(GAMMA), "alpha": ALPHA} | k
            ).fitted
        ),
        kernel_values(),
        (*XY, "kernel"),
        POSITIVE_ALPHA | {"n_centers": either(whole(1, none=True)), "preconditioner": only(None)},
        {"n_centers": ("n_centers",)},
        True,
    ),
    "plan": Call(rowcol.plan, lambda **k: list(rowcol.plan(PLAIN_X, PLAIN_Y, **k).shape), lambda **k: [12, 3], XY),
    "prepare": Call(
        rowcol.prepare,
        lambda **k: chosen(rowcol.prepare(PLAIN_X, **{"random_state": 0} | k).solve(PLAIN_Y)),
        values_of(0.0, False),
        ("X",),
    ),
    "Prepared.solve": Call(
        rowcol.Prepared.solve,
        lambda **k: chosen(rowcol.prepare(PLAIN_X, random_state=0).solve(PLAIN_Y, **k)),
        values_of(0.0, False),
        ("self", "y"),
        watched=True,
    ),
    "ridge_path": Call(
        rowcol.ridge_path,
        lambda **k: [rowcol.ridge_path(PLAIN_X, PLAIN_Y, **{"alphas": [ALPHA], "random_state": 0} | k).success],
        lambda **k: [True],
        XY,
        {"alphas": either(one_or_list(POSITIVE))},
    ),
    "chunks": Call(
        rowcol.chunks,
        lambda **k: list(rowcol.chunks(PLAIN_X, **k).X.shape),
        lambda **k: [12, 3],
        ("source",),
        {"columns": only(None), "target": only(None), "name": anything},
    ),
    "Checkpoint": Call(
        rowcol.Checkpoint,
        lambda **k: (
            rowcol.solve(PLAIN_X, PLAIN_Y, random_state=0, checkpoint=rowcol.Checkpoint(**{"path": "one"} | k)).x
        ),
        lambda **k: linear()(PLAIN_X, PLAIN_Y)[:-1],
        (),
        {"path": lambda v: None if isinstance(v, str) else False},
        {"path": ("checkpoint",)},
    ),
    "theory.rate": Call(
        theory.rate,
        lambda **k: [theory.rate(PLAIN_X, **{"method": "rk"} | k).lines],
        lambda **k: [12],
        ("X",),
    ),
    "theory.passes": Call(
        theory.passes,
        lambda **k: [theory.passes(PLAIN_X, **{"method": "rk", "tol": 1e-3} | k) > 0],
        lambda **k: [True],
        ("X", "named"),
        {"tol": number(above=1e-150, below=1e150)},
    ),
    "theory.extremes": Call(
        theory.extremes, lambda **k: list(theory.extremes(PLAIN_X, **k).shape), lambda **k: [12, 3], ("X",)
    ),
    "theory.horizon": Call(
        theory.horizon, lambda **k: [theory.horizon(PLAIN_X, PLAIN_Y, **k).misfit > 0], lambda **k: [True], XY
    ),
    "Ridge": Call(rowcol.Ridge, model(rowcol.Ridge), values_of(1.0), watched=True),
    "LeastSquares": Call(rowcol.LeastSquares, model(rowcol.LeastSquares), values_of(0.0), watched=True),
    "RidgeCV": Call(rowcol.RidgeCV, model(rowcol.RidgeCV, alphas=[ALPHA]), values_of(ALPHA), ("alphas",)),
    "RidgeCV alphas": Call(rowcol.RidgeCV, model(rowcol.RidgeCV), None),
    "RidgeClassifier": Call(
        rowcol.RidgeClassifier, model(rowcol.RidgeClassifier, LABELS), values_of(1.0, y=SIGNS), watched=True
    ),
    "KernelRidge": Call(
        rowcol.KernelRidge,
        model(rowcol.KernelRidge, kernel="rbf", gamma=GAMMA, alpha=ALPHA),
        kernel_values(),
        ("kernel",),
        POSITIVE_ALPHA | {"n_centers": either(whole(1, none=True))},
        watched=True,
    ),
    "KernelRidgeCV": Call(
        rowcol.KernelRidgeCV,
        model(rowcol.KernelRidgeCV, kernel="rbf", alphas=[ALPHA], gamma=GAMMA, cv=2, tune_points=8),
        None,
        ("kernel",),
        {"alphas": lambda v: v is None or LIMITS["alphas"](v)},
        {"length_scales": ("length_scale",)},
    ),
    "KernelRidgeClassifier": Call(
        rowcol.KernelRidgeClassifier,
        model(rowcol.KernelRidgeClassifier, LABELS, kernel="rbf", gamma=GAMMA, alpha=ALPHA),
        kernel_values(True, SIGNS),
        ("kernel",),
        POSITIVE_ALPHA,
        watched=True,
    ),
    **{
        f"kernels.{one.__name__}": Call(
            one,
            lambda one=one, **k: np.diag(one(**k)(PLAIN_X)),
            None,
            (),
            {
                "gamma": (lambda v: width(v) if v is not None else False) if one is kernels.Chi2 else width,
                "degree": number(above=0.0, below=1e9),
                "coef0": lambda v: number()(v) and (None if abs(float(v)) > 1e100 else True),
                "nu": either(number()),
            },
        )
        for one in (kernels.RBF, kernels.Laplacian, kernels.Matern, kernels.Polynomial, kernels.Sigmoid, kernels.Chi2)
    },
}
