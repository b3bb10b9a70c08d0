"""A fitted estimator as a book: its Result's, with what was chosen and what its predictions leave over."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier

from ..core.place import Place
from ..methods.result import Result
from .looking import left_over, some_of
from .picture import Book, Chapter, Curve, Picture
from .telling import told

LABELS = "A classifier's targets are labels, which have no residual: see its score instead."


def of_model(model: Any, X: Any = None, y: Any = None, names: Any = None) -> Book:
    """A fitted estimator of rowcol as a book.

    Parameters
    ----------
    model : estimator
    X, y : optional
        What it was fitted to, or something else to judge it by.
    names : sequence of str, optional
        Of its features, unless it knows them.

    Returns
    -------
    Book

    Examples
    --------
    >>> import numpy as np, rowcol
    >>> model = rowcol.RidgeCV([0.1, 1.0]).fit(np.eye(4), np.arange(4.0))
    >>> book = of_model(model, np.eye(4), np.arange(4.0))
    >>> book.title, book.chapters[0].title
    ('RidgeCV', 'The choice')
    """
    found = model.result_
    several = isinstance(found, tuple)
    result: Result = max(found, key=lambda r: r.certificate.value) if several else found
    names = getattr(model, "feature_names_in_", None) if names is None else names
    book = told(result, X if result.function is None else None, None, type(model).__name__, names)
    book.chapters[-1] = _left(model, result, X, y, book.chapters[-1])
    if several:
        book.summary.insert(
            0, f"{len(found)} solves were made, as targets have alphas of their own: this is the worst."
        )
    chosen = _choice(model)
    if chosen is not None:
        book.chapters.insert(0, chosen)
        book.summary.insert(0, chosen.words[0])
    return book


def _left(model: Any, result: Result, X: Any, y: Any, otherwise: Chapter) -> Chapter:
    """y − predict(X), of the target that it is worst for."""
    if is_classifier(model):
        return Chapter(otherwise.title, [LABELS])
    if X is None and y is None:
        whole = getattr(result.function, "centers", None) is None
        X, y = (getattr(model, name, None) for name in ("X_fit_", "y_fit_")) if whole else (None, None)
    if X is None or y is None:
        return otherwise
    seen = np.asarray(y)
    if seen.shape[0] != np.shape(X)[0]:
        raise ValueError(f"y has {seen.shape[0]} rows, but X has {np.shape(X)[0]}")
    rows, X = some_of(seen.shape[0]), X.tocsr() if sp.issparse(X) else X
    if isinstance(X, Place):
        some = X.some(rows)
    else:
        some = X.iloc[rows] if hasattr(X, "iloc") else X[rows] if hasattr(X, "shape") else np.asarray(X)[rows]
    fitted, seen = (v.reshape(len(rows), -1) for v in (np.asarray(model.predict(some)), seen[rows]))
    if fitted.shape != seen.shape:
        raise ValueError(f"y has {seen.shape[1]} targets, but the model predicts {fitted.shape[1]}")
    place = int(np.argmax(np.linalg.norm(seen - fitted, axis=0)))
    words = f"This is target {place + 1} of {seen.shape[1]}, of which most is left over. " if seen.shape[1] > 1 else ""
    if len(rows) < len(np.asarray(y)):
        words += f"Of {len(np.asarray(y)):,} rows, {len(rows):,} picked at random are looked at. "
    return left_over(seen[:, place], fitted[:, place], words)


def _choice(model: Any) -> Chapter | None:
    """Scores against alpha, where there was a choice."""
    found = getattr(model, "cv_results_", None)
    if isinstance(found, dict) and "param_kernel" in found:
        last = found["iter"] == max(found["iter"])
        kernels = np.array([str(k) for k in found["param_kernel"]])
        curves = []
        for kernel in dict.fromkeys(kernels[last]):
            mine = np.flatnonzero(last & (kernels == kernel))
            alphas = found["param_alpha"][mine].astype(float)
            order = np.argsort(alphas)
            mean, spread = (found[name][mine][order] for name in ("mean_test_score", "std_test_score"))
            curves.append(Curve(kernel, alphas[order], mean, mean - spread, mean + spread))
        words = (
            f"{model.kernel_} with alpha {model.alpha_:.3g} was chosen: its score on folds is {model.best_score_:.4g}."
        )
    elif getattr(model, "scores_", None) is not None and np.ndim(model.alpha_) == 0:
        alphas = np.ravel(np.asarray(model.alphas, float))
        order = np.argsort(alphas)
        curves = [Curve("score", alphas[order], np.asarray(model.scores_)[order])]
        words = f"alpha = {model.alpha_:.3g} was chosen by {model.cv_}: its score is {model.best_score_:.4g}."
    else:
        return None
    seen = np.concatenate([v for c in curves for v in (c.y, c.low, c.high) if v is not None])
    ends = np.array([np.nanmin(seen), np.nanmax(seen)])
    curves.append(Curve("chosen", np.full(2, float(model.alpha_)), ends, style="dashed"))
    shape = f"Scores against alpha, highest is best. {words}"
    return Chapter("The choice", [words], [Picture("Score against alpha", shape, "alpha", "score", curves, log_x=True)])
