"""What was asked, validated once: `Problem`. Shapes, types and parameters are judged here, before any work."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from .place import Place
from .sparse import sound
from .words import cut, first_line, shown

PRECISIONS = (np.float32, np.float64, np.complex64, np.complex128)


class Shift(NamedTuple):
    """What an intercept takes from X: X − u x̄ᵀ stands for X, and nothing is copied."""

    mean: np.ndarray  # (p,) x̄
    ones: np.ndarray  # (n,) u: ones, or √w where rows are scaled by that
    column2: np.ndarray | None  # (p,) ‖X_j − u x̄_j‖²; None for an operator, which does not show its columns
    live: np.ndarray | None  # (p,) columns that are not constant, where some are: of those nothing is left


class Problem(NamedTuple):
    """min ½‖W^½(y − Xβ)‖² + ½ alpha ‖β‖²; with alpha = 0, and where there is a choice, of minimum norm."""

    X: Any  # (n, p): an array in the user's own order, a canonical CSR or CSC array, a LinearOperator, or a Gram
    y: np.ndarray  # (q, n) float64 or complex128, one right-hand side a row, of size near one
    scale: np.ndarray  # (q,) powers of two: y times scale is what the user gave
    alpha: float
    weight: np.ndarray | None  # (n,) float64, the largest near one; None for all ones. For kernels, or (q, n)
    gauge: float  # a power of four: weight and alpha times gauge are what the user gave
    single: bool  # y came as one dimension
    dtype: np.dtype  # of the answer: as precise as X, complex if X or y is
    copied: int  # bytes copied to get here
    each: np.ndarray | None = None  # (q,) alpha of every right-hand side, where they differ: `alpha` is the smallest
    shift: Shift | None = None  # with an intercept: y is centred, and X is meant to be
    bounds: np.ndarray | None = None  # (2, p) float64, low and high of the user's β, of numbers that dtype has


def problem(X: Any, y: Any, alpha: Any = 0.0, sample_weight: Any = None, bounds: Any = None) -> Problem:
    """Validate; copy only what cannot be used in place."""
    return posed(*matrix(X), y, alpha, sample_weight, bounds)


def posed(X: Any, copied: int, y: Any, alpha: Any, sample_weight: Any, bounds: Any = None) -> Problem:
    """The same, of an X that is validated."""
    n = X.shape[0]
    y, single = right_hand_sides(y, n)
    alpha, each = penalties(alpha, y.shape[1])
    weight, gauge = None, 1.0
    if sample_weight is not None:
        weight = weights(sample_weight, n)
        gauge = 4.0 ** ((math.frexp(float(weight.max()))[1] - 1) // 2)
        asked = np.array([alpha] if each is None else each)
        weight, alpha, each = weight / gauge, alpha / gauge, None if each is None else each / gauge
        with np.errstate(over="ignore", under="ignore"):
            reached = asked / gauge
        if not np.isfinite(reached).all():
            raise ValueError("alpha is too large beside such sample_weight: rescale them")
        if (reached * gauge != asked).any():  # too small to keep its digits, or for any
            raise ValueError("alpha is too small beside such sample_weight: rescale them, or say alpha=0")
    is_complex = np.iscomplexobj(X) or np.iscomplexobj(y)
    single_precision = X.dtype in (np.float32, np.complex64)
    dtype = np.result_type(np.float32 if single_precision else np.float64, np.complex64 if is_complex else np.float32)
    state = np.complex128 if is_complex else np.float64
    # Scaling y scales β: by powers of two it costs no bit, and no square of a slope can overflow for y's sake.
    parts = (y.real, y.imag) if np.iscomplexobj(y) else (y,)
    tallest = np.max([np.maximum(a.max(axis=0), -a.min(axis=0)) for a in parts], axis=0)
    # Not by less than 2^-1000, whose inverse is a number still: subnormal y stay small, which is small enough.
    scale = np.ldexp(1.0, np.maximum(np.frexp(np.where(tallest > 0, tallest, 1.0))[1] - 1, -1000))
    y = np.ascontiguousarray((y / scale).T, dtype=state)
    box = _bounds(bounds, X.shape[1], dtype)
    return Problem(X, y, scale, alpha, weight, gauge, single, dtype, copied, each, None, box)


def penalties(alpha: Any, q: int) -> tuple[float, np.ndarray | None]:
    """alpha; or the smallest, and one a right-hand side."""
    if not isinstance(alpha, (list, tuple, np.ndarray)) or (isinstance(alpha, np.ndarray) and alpha.ndim == 0):
        return real_number(alpha, "alpha", at_least=0.0), None
    each = numbers_of(alpha, "alpha")
    if each.size == 1:
        return real_number(each.ravel()[0], "alpha", at_least=0.0), None
    if each.shape != (q,):
        raise ValueError(f"alpha must be a number, or {q} of them, one a right-hand side; got shape {each.shape}")
    if not (np.isfinite(each).all() and (each >= 0).all()):
        raise ValueError("alpha must be finite and at least 0")
    if (each == each[0]).all():
        return float(each[0]), None
    if not each.all():
        raise ValueError("alpha is 0 for some right-hand sides only: solve these by themselves")
    return float(each.min()), each


def ridge_of(problem: Problem, ids: np.ndarray) -> Any:
    """λ of some right-hand sides: a number, or (k, 1)."""
    return problem.alpha if problem.each is None else problem.each[ids][:, None]


def shared(problem: Problem) -> np.ndarray | None:
    """Which of the different y every right-hand side has, where several λ share one; None if they do not."""
    if problem.each is None:
        return None
    seen: dict[Any, int] = {}
    base = np.array([seen.setdefault(y.tobytes(), len(seen)) for y in problem.y])
    return base if len(seen) < len(base) else None


def some(problem: Problem, ids: Any) -> Problem:
    """The Problem of some right-hand sides only."""
    each = None if problem.each is None else problem.each[ids]
    return problem._replace(y=problem.y[ids], scale=problem.scale[ids], each=each)


def answer(problem: Problem, a: np.ndarray, dual: bool = False) -> np.ndarray:
    """A (q, k) array of the solve in the user's scale, shape and precision, within the bounds if it is β; a copy.

    Not of a `dual`, which is as long as y and of no use in another scale: it is used up.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        a = np.multiply(a, problem.scale[:, None], out=a if dual else None)
        if problem.bounds is not None and not dual:
            a = np.clip(a, *problem.bounds)  # a bound over a power of two may have been rounded if it is tiny
        return np.ascontiguousarray(a[0] if problem.single else a.T, dtype=problem.dtype)


def scaled_bounds(problem: Problem) -> np.ndarray | None:
    """Low and high of β in the scale of each y, as (2, q, p); no bit is lost, so that bounds are met exactly."""
    with np.errstate(over="ignore"):  # what overflows is as good as no bound
        return None if problem.bounds is None else problem.bounds[:, None] / problem.scale[:, None]


def matrix(X: Any) -> tuple[Any, int]:
    """X as a 2-D float or complex array, or a canonical CSR or CSC array; and how many bytes that copied."""
    if sp.issparse(X):
        return _sparse(X)
    if isinstance(X, LinearOperator):
        return X if isinstance(X, Place) else _operator(X), 0
    a = array_of(X, "X")
    if a.ndim != 2:
        hint = "; reshape a single feature with X.reshape(-1, 1)" if a.ndim == 1 else ""
        raise ValueError(f"X must have 2 dimensions, got {a.ndim} (shape {a.shape}){hint}")
    if 0 in a.shape:
        raise ValueError(f"X is empty (shape {a.shape}): it needs at least one row and one column")
    with np.errstate(over="ignore"):  # what leaves float64 is infinite, and found
        out = np.asarray(a, dtype=precision(a.dtype, "X"))
    if not out.flags.aligned:
        out = out.copy()
    if not (out.flags.c_contiguous or out.flags.f_contiguous):
        out = np.ascontiguousarray(out)
    return out, 0 if np.may_share_memory(out, a) else out.nbytes


def _operator(X: LinearOperator) -> LinearOperator:
    if 0 in X.shape:
        raise ValueError(f"X is empty (shape {X.shape}): it needs at least one row and one column")
    precision(np.dtype(X.dtype), "X")
    try:
        X.rmatvec(np.zeros(X.shape[0], X.dtype))
    except NotImplementedError:
        raise TypeError("X is a LinearOperator without rmatvec: give it one, as least squares need Xᴴ too") from None
    return X


def _sparse(X: Any) -> tuple[Any, int]:
    if X.ndim != 2:
        raise ValueError(f"X must have 2 dimensions, got a sparse array of {X.ndim}")
    if 0 in X.shape:
        raise ValueError(f"X is empty (shape {X.shape}): it needs at least one row and one column")
    with np.errstate(over="ignore"):
        out = sound(X, precision(X.dtype, "X"))
    shared = out is X or np.may_share_memory(out.data, getattr(X, "data", np.empty(0)))
    return out, 0 if shared else out.data.nbytes + out.indices.nbytes + out.indptr.nbytes


def right_hand_sides(y: Any, n: int) -> tuple[np.ndarray, bool]:
    """y as (n, q) and whether it came with one dimension."""
    if sp.issparse(y):
        raise TypeError("y must be dense: pass y.toarray()")
    a = array_of(y, "y")
    with np.errstate(over="ignore"):
        a = np.asarray(a, dtype=precision(a.dtype, "y"))
    if a.ndim not in (1, 2):
        raise ValueError(f"y must have 1 or 2 dimensions, got {a.ndim} (shape {a.shape})")
    if a.shape[0] != n:
        raise ValueError(f"X has {n} rows but y has {a.shape[0]}: they must agree")
    if a.size == 0:
        raise ValueError(f"y is empty (shape {a.shape})")
    wide = np.asarray(a, dtype=np.complex128 if np.iscomplexobj(a) else np.float64)
    if not np.isfinite(wide).all():
        i = np.argwhere(~np.isfinite(wide))[0]
        raise ValueError(f"y has a NaN or infinity at {tuple(map(int, i))}: drop or fill such rows first")
    return wide.reshape(n, -1), a.ndim == 1


def weights(w: Any, n: int, some: bool = True) -> np.ndarray:
    """Sample weights: n finite numbers, none negative; not all zero, unless others are to come."""
    a = array_of(w, "sample_weight")
    if a.dtype.kind not in "fiub":
        raise TypeError(f"sample_weight must be real numbers, got dtype {a.dtype}")
    with np.errstate(over="ignore"):
        a = a.astype(np.float64)
    if a.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), one weight a row of X, got {a.shape}")
    if not np.isfinite(a).all() or (a < 0).any() or (some and not a.any()):
        raise ValueError("sample_weight must be finite, non-negative and not all zero")
    return a


def _bounds(given: Any, p: int, dtype: np.dtype) -> np.ndarray | None:
    """(low, high) as (2, p), rounded inward to numbers of the answer's dtype; None where nothing is bounded."""
    if given is None:
        return None
    if dtype.kind == "c":
        raise TypeError("bounds need real X and y: complex numbers have no order")
    if not (isinstance(given, (tuple, list)) or (isinstance(given, np.ndarray) and given.ndim)) or len(given) != 2:
        raise ValueError(f"bounds must be a pair (low, high), of numbers or of arrays of {p}, got {shown(given)}")
    sides = []
    for side, name in zip(given, ("low", "high"), strict=True):
        a = array_of(side, f"bounds: {name}")
        if a.dtype.kind not in "fiub":
            raise TypeError(f"bounds: {name} must be real numbers, got dtype {a.dtype}")
        if a.shape not in ((), (p,)):
            raise ValueError(f"bounds: {name} must be a number or have shape ({p},), one a column of X, got {a.shape}")
        if np.isnan(a).any():
            raise ValueError(f"bounds: {name} has a NaN; -inf and inf stand for no bound")
        with np.errstate(over="ignore"):
            sides.append(np.broadcast_to(a.astype(np.float64), (p,)))
    low, high = sides
    with np.errstate(over="ignore"):
        near = [a.astype(dtype) for a in sides]
    empty = ~((low <= high) & (near[0] < np.inf) & (near[1] > -np.inf))
    if empty.any():
        j = int(np.argmax(empty))
        raise ValueError(f"bounds leave nothing for unknown {j}: low is {low[j]:g}, high is {high[j]:g}")
    if np.isinf(low).all() and np.isinf(high).all():
        return None
    # Inward, so that an answer in single precision keeps the bounds as they were given; where no such number is
    # between them, the nearest one has to do.
    inward = [np.where(near[0] < low, np.nextafter(near[0], dtype.type(np.inf)), near[0])]
    inward.append(np.where(near[1] > high, np.nextafter(near[1], dtype.type(-np.inf)), near[1]))
    return np.array(np.where(inward[0] <= inward[1], inward, near[0]), np.float64)


def real_number(
    value: Any, name: str, *, at_least: float | None = None, above: float | None = None, below: float = math.inf
) -> float:
    """A finite real number in the stated range, or an error that names it."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} must be a real number, got {shown(value)}")
    try:
        number = float(value)
    except OverflowError:  # an integer beyond float64
        number = math.inf
    if at_least is not None and not at_least <= number < math.inf:
        raise ValueError(f"{name} must be finite and at least {at_least:g}, got {shown(value)}")
    if above is not None and not above < number < below:
        limit = f"above {above:g}" + (f" and below {below:g}" if below < math.inf else " and finite")
        raise ValueError(f"{name} must be {limit}, got {shown(value)}")
    return number


def numbers_of(value: Any, name: str, what: str = "real numbers") -> np.ndarray:
    """A real number or several, in double precision and of any shape; or an error that names them."""
    try:
        a = np.asarray(value)
        if a.dtype == object and all(type(one) in (int, float) for one in a.ravel()):  # integers beyond 64 bits
            a = a.astype(np.float64)
    except MemoryError:
        raise
    except Exception:
        raise TypeError(f"{name} must be {what}, got {shown(value)}") from None
    if a.dtype.kind not in "fiu":
        raise TypeError(f"{name} must be {what}, got {shown(value)}")
    with np.errstate(over="ignore"):
        return a.astype(np.float64)


def flag(value: Any, name: str) -> bool:
    """True or False, and nothing that is like it."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {shown(value)}")
    return bool(value)


def array_of(a: Any, name: str) -> np.ndarray:
    """Whatever was given, as an array of any shape and dtype; or an error that names it."""
    a = _computed(a, name)
    if np.ma.isMaskedArray(a):
        raise TypeError(f"{name} is a masked array: fill or drop the masked entries first")
    if isinstance(a, (str, bytes, dict, set, type)) or hasattr(a, "__next__"):
        raise TypeError(f"{name} must be an array of numbers, got {type(a).__name__}")
    if not hasattr(a, "__array__") and not isinstance(a, (list, tuple, int, float, complex, memoryview)):
        raise TypeError(f"{name} must be an array or a SciPy sparse array, got {type(a).__name__}")
    if type(a).__module__.startswith("polars."):
        return _from_polars(a, name)
    try:
        if hasattr(a, "to_dask_array"):  # a table or column of Dask's: pandas knows what is missing in it
            a = a.compute()
        read = np.asarray(a)
    except MemoryError:
        raise
    except Exception as wrong:  # whatever its own code, or a nested list, leads to
        raise ValueError(f"{name} cannot be read as an array of numbers: {first_line(wrong)}") from wrong
    return _from_table(a, name) if read.dtype == object and hasattr(a, "to_numpy") else read


def _computed(a: Any, name: str) -> Any:
    """What Dask has yet to make, or a list of such parts, made; anything else as it is."""
    several = isinstance(a, (list, tuple)) and bool(a)
    if any(type(one).__module__ != "dask.delayed" for one in (a if several else [a])):
        return a
    import dask

    try:
        made = dask.compute(*(a if several else [a]))
        return np.concatenate([np.asarray(one) for one in made]) if several else made[0]
    except Exception as wrong:
        raise ValueError(f"{name} cannot be computed: {first_line(wrong)}") from wrong


def _from_table(a: Any, name: str) -> np.ndarray:
    """A pandas table or column whose dtypes are numeric, but not one NumPy dtype: booleans beside floats, say."""
    kinds = dict(zip(a.columns, a.dtypes, strict=True)) if hasattr(a, "columns") else {a.name: a.dtype}
    bad = [column for column, dtype in kinds.items() if getattr(dtype, "kind", "O") not in "fiub"]
    refuse_columns(bad, name)
    return a.to_numpy(dtype=np.float64, na_value=np.nan)


def _from_polars(a: Any, name: str) -> np.ndarray:
    """A polars table or column: left to itself it would give dates as numbers."""
    columns = a.get_columns() if hasattr(a, "get_columns") else [a]
    bad = [one.name for one in columns if not (one.dtype.is_numeric() or str(one.dtype) == "Boolean")]
    refuse_columns(bad, name)
    read = [np.asarray(one) for one in columns]
    read = [one.astype(np.float64) if one.dtype.kind in "Ob" else one for one in read]
    return np.column_stack(read) if hasattr(a, "get_columns") else read[0]


def refuse_columns(columns: list[Any], name: str) -> None:
    """An error that names them, if there are any."""
    if columns:
        told = ", ".join(cut(str(one), 50) for one in columns[:5])
        raise TypeError(f"{name} has columns that are not numeric: {told}; drop or encode them first")


def precision(dtype: np.dtype, name: str) -> np.dtype:
    """The nearest of the four dtypes the engine knows; native byte order."""
    if dtype.kind == "f":
        return np.dtype(np.float32 if dtype.itemsize <= 4 else np.float64)
    if dtype.kind == "c":
        return np.dtype(np.complex64 if dtype.itemsize <= 8 else np.complex128)
    if dtype.kind in "iub":
        return np.dtype(np.float64)
    remedy = {
        "O": "convert it with .astype(float), after filling or dropping missing values",
        "U": "encode text as numbers first",
        "S": "encode text as numbers first",
        "M": "turn dates into numbers first",
        "m": "turn durations into numbers first",
    }.get(dtype.kind, "convert it with .astype(float)")
    raise TypeError(f"{name} has dtype {dtype}, which is not numeric: {remedy}")
