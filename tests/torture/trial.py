"""One case: an answer that keeps its word, or an error that names what is wrong; nothing else will do."""

from __future__ import annotations

import re
import signal
import warnings
from contextlib import contextmanager

import numpy as np
import precise
import scipy.sparse as sp
from forms import content
from hostile import ordinary

import rowcol
from honest import check, sound

CERTIFIED = "certificates", "of_converged_answers", "of_dense_X", "of_sparse_X"
SECONDS = 10.0  # of one small case, without compilation
HUNG = 300  # with it
NAMED = re.compile(r"\b(X|y|alpha|method|sample_weight|tol|memory|fit_intercept)\b")


@contextmanager
def no_hang(label):
    """What takes minutes is a failure with a name, and does not keep the others waiting."""

    def ring(number, frame):
        raise AssertionError(f"still busy after {HUNG} s: {label}")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, HUNG)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def documented(error, method):
    """An error that a user can act on: of a kind that is documented, one line, naming an argument."""
    assert type(error) in (ValueError, TypeError, MemoryError, OverflowError), repr(error)
    said = str(error)
    assert "\n" not in said, said
    assert 20 < len(said) < 250, said
    assert NAMED.search(said), said


def justified(error, one, method):
    """Is there anything wrong with this case?"""
    said, dense = str(error), one.dense
    if "where rows of X lie elsewhere" in said:  # which not every method can use
        assert hasattr(one.X, "parts"), said
        return "method"
    if not np.isfinite(one.y).all():
        at = tuple(int(k) for k in np.argwhere(~np.isfinite(one.y))[0])
        assert f"y has a NaN or infinity at {at}" in said, said
        return "y"
    if f"method={method!r}" in said:  # not for such an X, whatever it holds
        return "method"
    if not np.isfinite(dense).all() and not said.startswith("alpha is too"):
        row, column = np.argwhere(~np.isfinite(dense))[0]
        assert f"X has a NaN or infinity at row {row}, column {column}:" in said, said
        return "X"
    assert not ordinary(one), f"refused for nothing: {said}"
    return "size"


def noted(tally, chapter, counts):
    """Counts for docs/trust.md."""
    tally(chapter, **{k: counts[k] for k in ("cases", "answered", "converged", "refused")})
    tally("certificates", **{k: n for k, n in sorted(counts.items()) if k in CERTIFIED or k.startswith("by_")})


def held(one, method, **more):
    """What came of a case, as counts; what is wrong with it, by its name."""
    try:
        return tried(one, method, **more)
    except Exception as wrong:
        raise AssertionError(f"{one.label}: {wrong}") from wrong


def tried(one, method, **more):
    """Solve a case and hold what comes of it to its word."""
    before = [content(a) for a in (one.X, one.y, one.weight)]
    asked = dict(alpha=one.alpha, tol=one.tol, sample_weight=one.weight, fit_intercept=one.intercept)
    asked |= dict(method=method, max_passes=one.passes, random_state=0, n_jobs=1) | more
    with warnings.catch_warnings(record=True) as caught, no_hang(one.label):
        warnings.simplefilter("always")
        result = error = None
        try:
            result = rowcol.solve(one.X, one.y, **asked)
        except Exception as wrong:
            error = wrong
    assert [content(a) for a in (one.X, one.y, one.weight)] == before, "the user's data were changed"
    if error is not None:
        assert not caught, [str(w) for w in caught]
        documented(error, method)
        return {"refused": 1, f"refused for {justified(error, one, method)}": 1}
    assert np.isfinite(one.dense).all(), "an answer to what are no numbers"
    assert np.isfinite(one.y).all(), "an answer to what are no numbers"
    assert result.seconds < SECONDS, f"{result.seconds:.1f} s"
    if ordinary(one):  # where extended precision is enough
        told = dict(alpha=one.alpha, weight=one.weight, intercept=one.intercept, caught=caught)
        words = check(one.dense, np.asarray(one.y), result, one.tol, **told)
    else:
        words = sound(one.dense, one.y, result, caught)
    many, proven = precise.certified(one._replace(X=one.dense, y=np.asarray(one.y)), result)
    counts = {"answered": 1, "converged": int(result.success), "certificates": many, "of_converged_answers": proven}
    store = "sparse" if sp.issparse(one.X) else "dense"
    return counts | {f"by_{method}": many, f"of_{store}_X": many} | dict.fromkeys(words, 1)
