"""X, y and weights of estimators: scikit-learn's validation, whose refusals name the argument in one line."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_array, validate_data

from ..asking import how_to
from ..core.place import Place
from ..core.problem import array_of, flag, precision, refuse_columns, right_hand_sides, weights
from ..core.words import cut
from ..places.cluster import is_dask

FLAGS = (
    "fit_intercept",
    "positive",
    "warm_start",
    "covariance",
    "store_cv_results",
    "alpha_per_target",
    "probability",
    "ard",
)


def names_of(X: Any) -> tuple | None:
    """Names of the columns of an X in parts, or of what Dask has yet to make one of."""
    found = X.names if isinstance(X, Place) else getattr(X, "columns", None) if is_dask(X) else None
    return None if found is None or not all(isinstance(one, str) for one in found) else tuple(found)


def take_columns(model: Any, X: Place) -> None:
    """An X in parts is fitted to: how many columns, and their names where they have any."""
    model.n_features_in_ = X.shape[1]
    vars(model).pop("feature_names_in_", None)
    if X.names is not None:
        model.feature_names_in_ = np.array(X.names, dtype=object)


def check_columns(model: Any, X: Place) -> None:
    """An error, unless an X in parts has the columns that were fitted, in their order."""
    if X.shape[1] != model.n_features_in_:
        raise ValueError(f"X has {X.shape[1]} features, but {model.n_features_in_} were fitted")
    known: Any = getattr(model, "feature_names_in_", X.names)
    if X.names is None or tuple(known) == X.names:
        return
    have, want = next(pair for pair in zip(X.names, known, strict=True) if pair[0] != pair[1])
    order = "take columns in the order of feature_names_in_"
    raise ValueError(f"X has column {have!r} where {want!r} was fitted: {order}")


def validated(model: Any, X: Any, *y: Any, names: tuple | None = None, **kinds: Any) -> Any:
    """As `validate_data` has it: X, or X and y; `names` are those of its columns where X itself has lost them."""
    X, y = _here(X, "X"), tuple(_here(one, "y") for one in y)
    numeric = kinds.get("y_numeric", False)
    if y and numeric and sp.issparse(y[0]):
        raise TypeError("y must be dense: pass y.toarray()")
    _see(X, "X")
    if y and (numeric or np.ma.isMaskedArray(y[0])):
        _see(y[0], "y")
    try:
        with np.errstate(over="ignore"), warnings.catch_warnings():  # what leaves float64 is infinite, and found
            if names is not None:
                warnings.filterwarnings("ignore", "X does not have valid feature names")
            found = validate_data(model, X, *y, **kinds)
            if names is not None and kinds.get("reset", True):
                model.feature_names_in_ = np.array(names, dtype=object)
    except MemoryError:
        raise
    except Exception as wrong:
        raise _reworded(wrong, _whose(wrong, X, y, kinds)) from wrong
    if y and numeric:
        right_hand_sides(found[1], len(found[1]))  # text, or None among numbers, has come through
    return found


@contextmanager
def worded(name: str) -> Iterator[None]:
    """Errors inside are about `name`, and say so in one line."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as wrong:
        raise _reworded(wrong, name) from wrong


def check_parameters(model: Any, kernel: bool = False) -> None:
    """The parameters of a fit, before any work, by their names; a generator is not drawn from."""
    state = model.random_state
    state = 0 if isinstance(state, (np.random.Generator, np.random.RandomState)) else state
    limits = model.tol, model.max_iter, model.max_seconds
    rest = model.callback, model.progress, model.memory, model.n_jobs, state, kernel
    how_to(model.solver, *limits, "auto", *rest, called=("solver", "max_iter"))
    for name in FLAGS:
        if hasattr(model, name):
            flag(getattr(model, name), name)


def weighed(given: Any, n: int) -> np.ndarray | None:
    """Weights of rows, checked: numbers, one a row, or the same for all."""
    if given is None:
        return None
    one = array_of(given, "sample_weight")
    alike = one.ndim == 0 and one.dtype.kind in "fiu"
    return weights(np.full(n, one, np.float64) if alike else given, n, some=False)


class Regressor(RegressorMixin):
    """R² of its predictions."""

    def score(self: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the predictions at X, as in scikit-learn.

        Parameters
        ----------
        X : array or sparse array, (n_samples, n_features)
        y : array, (n_samples,) or (n_samples, n_targets)
        sample_weight : array, (n_samples,), optional

        Returns
        -------
        float
        """
        values = self.predict(X)
        y, _ = right_hand_sides(y, len(values))
        with worded("y" if sample_weight is None else "y or sample_weight"):
            return float(r2_score(y, values, sample_weight=sample_weight))


def _here(a: Any, name: str) -> Any:
    """What Dask has yet to compute, computed: its columns are not told from its tables otherwise."""
    if not is_dask(a):
        return a
    with worded(name):
        return a.compute() if hasattr(a, "compute") else array_of(a, name)


def _see(a: Any, name: str) -> None:
    """Refuse what scikit-learn would take for numbers: hidden entries, dates, records."""
    if np.ma.isMaskedArray(a) or type(a).__module__.startswith("polars."):
        array_of(a, name)
    kind = getattr(a, "dtype", None)
    if isinstance(kind, np.dtype) and kind.kind in "MmV":
        precision(kind, name)
    if hasattr(a, "columns") and hasattr(a, "dtypes"):  # of pandas
        kinds = zip(a.columns, a.dtypes, strict=True)
        refuse_columns([c for c, one in kinds if getattr(one, "kind", "") in ("M", "m")], name)
    elif type(a).__module__.startswith("pyarrow.") and hasattr(a, "schema"):
        dates = ("date", "time", "duration")
        refuse_columns([one.name for one in a.schema if str(one.type).startswith(dates)], name)


def _whose(wrong: Exception, X: Any, y: tuple, kinds: dict[str, Any]) -> str:
    """Which of the two an error is about."""
    if not y:
        return "X"
    alone = {name: kinds[name] for name in ("accept_sparse", "dtype", "ensure_all_finite") if name in kinds}
    try:
        with warnings.catch_warnings(), np.errstate(over="ignore"):
            warnings.simplefilter("ignore")
            check_array(X, **alone)
    except Exception:
        return "X"
    return "X" if re.search("feature names|is expecting", str(wrong)) else "y"


def _reworded(wrong: Exception, name: str) -> Exception:
    text = cut(str(wrong) or type(wrong).__name__, 400)
    name = "X and y" if "inconsistent numbers of samples" in text else name
    known = re.search(rf"\b({name.replace(' and ', '|').replace(' or ', '|')})\b", text)
    kind = TypeError if isinstance(wrong, TypeError) and not isinstance(wrong, ValueError) else ValueError
    return kind(text if known else f"{name} cannot be used: {text}")
