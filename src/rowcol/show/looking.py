"""What X and y show beside the answer: singular values, and what is left over."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from ..core.explain import explain_values
from ..core.gram import written
from ..core.problem import array_of, matrix, precision
from ..methods.result import Result
from .picture import Chapter, Curve, Picture

EXACT = 3e8  # n p min(n, p): singular values of no more are exact
SAMPLE = (1600, 400)  # of the longer side and of the shorter, otherwise
POINTS = 2000  # that are drawn, at most
KERNEL = 1000  # points: eigenvalues of no larger kernel matrix are computed
BINS = 31
MISSING = (
    "Not drawn, as {} is not at hand: a result knows its arrays only while someone keeps them. Pass {} to report()."
)


# --- singular values -------------------------------------------------------------------------------------------------


def spectrum(result: Result, X: Any) -> Chapter:
    """The singular values of X, or of a sample of it; of a kernel matrix that is small, its eigenvalues."""
    title = "Singular values" if result.function is None else "Eigenvalues"
    if result.function is not None:
        return _of_kernel(result, title)
    if X is None:
        return Chapter(title, [MISSING.format("X", "X=")])
    if isinstance(X, LinearOperator):
        return Chapter(
            title, ["X is an operator, which shows no rows and no columns: its singular values are not drawn."]
        )
    X = check(X, None, result)[0]
    n, p = X.shape
    part, words = _part(X)
    if result.intercept is not None:
        part = part - part.mean(axis=0)
        words += " The means of the columns were taken off first, as the intercept takes them up."
    scale = np.sqrt(n / part.shape[0] * p / part.shape[1])
    values = np.linalg.svd(part, compute_uv=False) * scale
    alpha = 0.0 if result.plan is None else float(result.plan.alpha)
    level = (np.sqrt(alpha), "√alpha") if alpha > 0 else None
    return Chapter(title, [words], [_falling(values, "singular value", level)])


def _part(X: Any) -> tuple[np.ndarray, str]:
    """X, or a random sample of its rows and columns, dense; and which it is."""
    n, p = X.shape
    rows, columns = np.arange(n), np.arange(p)
    words = f"The singular values of X, {n:,} x {p:,}."
    if n * p * min(n, p) > EXACT:
        rng = np.random.default_rng(0)
        most = SAMPLE if n >= p else SAMPLE[::-1]
        rows, columns = (np.sort(rng.choice(size, min(size, m), replace=False)) for size, m in zip((n, p), most))
        words = (
            f"X has {n:,} x {p:,} entries, too many for its exact singular values: these are of a random sample of "
            f"{len(rows):,} rows and {len(columns):,} columns, scaled up to the whole. The shape of the fall is about "
            "right; the smallest ones may be smaller in X itself."
        )
    if not sp.issparse(X):
        return np.asarray(X[rows][:, columns] if len(rows) * len(columns) < n * p else X), words
    by_rows = X.format != "csc"
    X = X.tocsr() if by_rows else X.tocsc()
    part = X[rows][:, columns] if by_rows else X[:, columns][rows]
    return part.toarray(), words


def _of_kernel(result: Result, title: str) -> Chapter:
    g = result.function.exact
    n = g.shape[0]
    if result.function.centers is not None:
        return Chapter(title, ["The fit is on centres: the whole kernel matrix was never asked for, and is not drawn."])
    if n > KERNEL:
        return Chapter(title, [f"The kernel matrix of {n:,} points is never formed: its eigenvalues are not drawn."])
    values = np.linalg.eigvalsh(written(g).astype(np.float64))[::-1]
    ridge = result.function.ridge
    level = (float(np.median(ridge[ridge > 0])), "alpha") if ridge.size else None
    return Chapter(
        title, [f"The eigenvalues of the kernel matrix of {n:,} points."], [_falling(values, "eigenvalue", level)]
    )


def _falling(values: np.ndarray, name: str, level: tuple[float, str] | None) -> Picture:
    """Values from the largest to the smallest, and what a penalty does to them."""
    top = float(values[0]) if values.size else 0.0
    least = top * max(len(values), 1) * np.finfo(np.float64).eps
    live = values[values > least]
    count = np.arange(1, len(values) + 1)
    curves = [Curve(f"{name}s", count, values)]
    none = len(values) - len(live)
    words = f"{len(live):,} {name}s fall from {top:.3g} to {float(live[-1]) if live.size else 0.0:.3g}"
    words += f", by a factor of {top / float(live[-1]):.3g}" if live.size > 1 else ""
    words += f"; {none:,} more {'is' if none == 1 else 'are'} zero, but for rounding." if none else "."
    if level is not None:
        curves.append(Curve(level[1], np.array([1, max(len(values), 2)]), np.full(2, level[0]), style="dashed"))
        words += f" Directions far below {level[1]} = {level[0]:.3g} are shrunk to nothing by the penalty."
    return Picture(f"{name.capitalize()}s, largest first", words, "number", name, curves, log_y=True)


# --- what is left over -----------------------------------------------------------------------------------------------


def residual(result: Result, X: Any, y: Any) -> Chapter:
    """y − Xβ − b, or y − f(X), against what is fitted; of several right-hand sides, of the worst."""
    title = "What is left over"
    needs_x = result.function is None or result.fitted is None
    if y is None or (needs_x and X is None):
        both = [name for name, value in (("X", X if needs_x else 0), ("y", y)) if value is None]
        return Chapter(title, [MISSING.format(" and ".join(both), " and ".join(f"{name}=" for name in both))])
    X, y = check(X, y, result)
    place = int(np.argmax([c.value for c in result.certificates]))
    y = y.reshape(y.shape[0], -1)
    observed = y[:, place]
    rows = np.arange(len(observed))
    if result.function is None:
        b = 0.0 if result.intercept is None else np.ravel(result.intercept)[place]
        fitted = np.ravel(X @ result.x.reshape(result.x.shape[0], -1)[:, place]) + b
    elif result.fitted is not None:
        fitted = result.fitted.reshape(len(observed), -1)[:, place]
    else:
        rows = some_of(len(observed))
        fitted = np.asarray(result.function(X[rows])).reshape(len(rows), -1)[:, place]
    of = f"This is the worst of {y.shape[1]} right-hand sides, number {place + 1}. " if y.shape[1] > 1 else ""
    return left_over(observed[rows], fitted, of, result.certificates[place].residual_norm)


def left_over(observed: np.ndarray, fitted: np.ndarray, words: str = "", certified: float | None = None) -> Chapter:
    """Pictures of y − fitted."""
    r = observed - fitted
    there = np.isfinite(np.abs(r))
    r, fitted = r[there], fitted[there]
    size = float(np.linalg.norm(r))
    whole = float(np.linalg.norm(observed[there]))
    words += f"‖residual‖ is {size:.4g}" + (f", of ‖y‖ = {whole:.4g}." if whole > 0 else ".")
    if certified is not None:
        words += f" The certificate has {certified:.4g}, with weights if there were any, and for y as it was then."
    tag = ""
    if np.iscomplexobj(r) or np.iscomplexobj(fitted):
        r, fitted, tag = np.abs(r), np.abs(fitted), "size of "
        words += " Numbers are complex: their sizes are drawn."
    some = some_of(len(r))
    thin = f" {len(some):,} of {len(r):,} points are drawn, picked at random." if len(some) < len(r) else ""
    dots = Curve("residual", fitted[some], r[some], style="points")
    pictures = []
    if len(r):
        ends = np.array([fitted.min(), fitted.max()], np.float64)
        against = (
            f"Residuals between {r.min():.3g} and {r.max():.3g}, against what is fitted. A good model leaves no "
            f"pattern here.{thin}"
        )
        zero = Curve("zero", ends, np.zeros(2), style="dashed")
        name = f"{tag}fitted value", f"{tag}residual"
        pictures.append(Picture("Residual against fitted value", against, *name, [dots, zero]))
        counts, edges = np.histogram(r, bins=min(BINS, max(3, len(r) // 4)))
        middle = (edges[1:] + edges[:-1]) / 2
        shape = f"The median of {len(r):,} residuals is {np.median(r):.3g}; half lie within {_half(r):.3g} of it."
        bars = Curve("residuals", middle, counts.astype(np.float64), style="bars")
        pictures.append(Picture("How large residuals are", shape, f"{tag}residual", "count", [bars]))
    return Chapter("What is left over", [words], pictures)


def _half(r: np.ndarray) -> float:
    return float(np.median(np.abs(r - np.median(r))))


def some_of(n: int) -> np.ndarray:
    """All of n, or as many as are drawn."""
    return np.arange(n) if n <= POINTS else np.sort(np.random.default_rng(0).choice(n, POINTS, replace=False))


def check(X: Any, y: Any, result: Result) -> tuple[Any, Any]:
    """X and y as arrays that go with the result."""
    if X is not None and result.function is None:
        X = matrix(X)[0]  # as solve reads it: booleans, half precision, every sparse format
        if not isinstance(X, LinearOperator) and not np.isfinite(X.data if sp.issparse(X) else X).all():
            raise ValueError(explain_values(X))
    elif X is not None and not sp.issparse(X):
        X = array_of(X, "X")
    if y is not None:
        y = array_of(y, "y")
        with np.errstate(over="ignore"):
            y = y.astype(precision(y.dtype, "y"), copy=False)
    if X is not None and result.function is None and (len(X.shape) != 2 or X.shape[1] != result.x.shape[0]):
        raise ValueError(f"X has shape {X.shape}, but the result has {result.x.shape[0]} unknowns, one a column")
    if y is not None:
        n = X.shape[0] if X is not None else len(result.fitted)
        shape = (n, *result.x.shape[1:])
        if y.shape != shape:
            raise ValueError(f"y has shape {y.shape}, but X and the result are of one of shape {shape}")
        if not np.isfinite(y).all():
            raise ValueError("y has a NaN or infinity: give the y of the result")
    return X, y
