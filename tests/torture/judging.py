"""Did a call answer, or refuse in words? What it may never do: change what it was given, warn of something else, or
fail by an error of its inside. `Outcome` is one or the other; anything else is an AssertionError."""

from __future__ import annotations

import copy
import re
import traceback
import warnings
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import rowcol

# what scikit-learn's contract says of tables
BY_SKLEARN = re.compile("has feature names, but|does not have valid feature names|sparse columns found")
SAID = (rowcol.ConvergenceWarning, rowcol.StartWarning)  # warnings that are answers of ours
REFUSALS = (ValueError, TypeError)  # these types themselves: LinAlgError and UnicodeError are ValueErrors too
LONGEST = 450  # characters of a message


class Outcome(NamedTuple):
    """What came back, or the words of a refusal."""

    value: Any
    words: str | None
    warned: tuple

    @property
    def refused(self):
        return self.words is not None


def outcome(call, given=(), names=(), refusals=REFUSALS, said=SAID):
    """Call; `given` must be as before, and a refusal in one line that holds one of `names`."""
    before = [frozen(one) for one in given]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value, error = call(), None
        except Exception as wrong:
            value, error = None, wrong
    others = [w for w in caught if not issubclass(w.category, said) and not BY_SKLEARN.search(str(w.message))]
    assert not others, f"{others[0].category.__name__}: {others[0].message}"
    for one, was in zip(given, before, strict=True):
        assert same(one, was), f"{type(one).__name__} was changed"
    if error is None:
        return Outcome(value, None, tuple(w.category for w in caught))
    check_words(error, names, refusals)
    return Outcome(None, str(error), ())


def check_words(error, names, refusals=REFUSALS):
    """A refusal of the right kind, in one line, that names its argument."""
    told = f"{type(error).__name__}: {str(error)[:600]}"
    assert type(error) in refusals, told
    words = str(error)
    by_sklearn = "sklearn" in traceback.extract_tb(error.__traceback__)[-1].filename  # whose words may take two lines
    assert by_sklearn or "\n" not in words, f"more than a line: {told}"
    assert by_sklearn or 12 <= len(words) <= LONGEST, f"{len(words)} characters: {told}"
    assert not names or any(re.search(rf"\b{name}\b", words) for name in names), f"names none of {names}: {told}"


def frozen(a):
    """A copy to compare with later; None of what cannot be copied."""
    try:
        return copy.deepcopy(a)
    except Exception:  # generators, operators, objects that do not like to be looked at
        return None


def same(a, was):
    """Is it as it was, to the bit?"""
    if was is None:
        return True
    if sp.issparse(a):
        parts = [name for name in ("data", "indices", "indptr", "row", "col", "offsets") if hasattr(a, name)]
        return a.format == was.format and all(
            same(np.asarray(getattr(a, n)), np.asarray(getattr(was, n))) for n in parts
        )
    if isinstance(a, np.ndarray):
        alike = a.dtype == was.dtype and a.shape == was.shape
        return alike and (same(a.tolist(), was.tolist()) if a.dtype.hasobject else a.tobytes() == was.tobytes())
    if hasattr(a, "equals"):  # tables of pandas, polars and pyarrow
        return bool(a.equals(was))
    if isinstance(a, (list, tuple)):
        return len(a) == len(was) and all(same(one, other) for one, other in zip(a, was, strict=True))
    return type(a) is type(was) and (not isinstance(a, (int, float, complex, str, bytes)) or repr(a) == repr(was))
