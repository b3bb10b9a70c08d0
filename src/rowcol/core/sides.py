"""Points as kernels see them: centred, scaled, in tiles; and what the training points settle about a kernel.

A `Leaf` is a one-line kernel with all that depends on the training points: where the centre is, and whether distances
may come from dot products (quicker) or must be summed from differences, which an error bound known beforehand decides.
A `Side` is a set of points as one leaf sees them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .explain import explain_values
from .kernels import Function, Polynomial, Precomputed, Sigmoid
from .memory import laid, zeros
from .problem import matrix
from .recipes import Kernel, Product, Recipe, Scaled, Sum
from .words import shown

FEW = 3  # features: up to here differences cost no more than dot products
LOST = {4: 1e-6, 8: 1e-13}  # what dot products may lose of the kernel; bytes of a number to error
HUGE = 1e140
BAND = 256  # lines compared at a time
FAR = "points are too far apart for this kernel, the squares leave float64: rescale X, gamma or length_scale"


class Leaf(NamedTuple):
    """A one-line kernel, as the training points settle it."""

    kernel: Kernel
    recipe: Recipe | None  # None: a function, or a given matrix
    centre: np.ndarray | None
    dots: bool  # the base is made of dot products
    reach: float  # the largest norm of a prepared point
    error: float  # of an entry, against √(k_ii k_jj), in the precision of the tiles
    bound: float  # that no entry exceeds, where the kernel is not positive definite: it stands for k_ii then


class Side(NamedTuple):
    """Points as a leaf sees them."""

    tiles: np.ndarray  # (count, d, w); empty if the leaf has no use for it
    offsets: np.ndarray  # (count, w)
    raw: Any  # (n, d) prepared points where they are sparse, or those of a function; or rows of a given matrix


def points(X: Any) -> Any:
    """X as finite points: an array or a CSR array."""
    X, _ = matrix(X)
    if np.iscomplexobj(X):
        raise TypeError("kernels are of real points, X is complex")
    if not hasattr(X, "dtype") or (not sp.issparse(X) and not isinstance(X, np.ndarray)):
        raise TypeError("kernels need points, and a LinearOperator has none: pass X as an array or a sparse array")
    values = X.data if sp.issparse(X) else X
    if not np.isfinite(values).all():
        raise ValueError(explain_values(X))
    return X.tocsr() if sp.issparse(X) else X


def leaves_of(kernel: Kernel) -> list[Kernel]:
    """The one-line kernels of a tree, from left to right."""
    if isinstance(kernel, (Sum, Product)):
        return leaves_of(kernel.a) + leaves_of(kernel.b)
    return leaves_of(kernel.a) if isinstance(kernel, Scaled) else [kernel]


def settle(kernel: Kernel, X: Any, dtype: type) -> Leaf:
    """A one-line kernel, for these training points."""
    made = begun(kernel, X.shape, sp.issparse(X), lambda: X.mean(axis=0, dtype=np.float64), dtype)
    if made.recipe is None:
        return made
    values = X.data if sp.issparse(X) else X
    lowest = float(values.min(initial=0.0)) if isinstance(kernel, Polynomial) else 0.0
    return settled(made, X.shape[1], sp.issparse(X), reach2_of(made, X), lowest, dtype)


def begun(kernel: Kernel, shape: tuple[int, int], sparse: bool, mean: Callable[[], np.ndarray], dtype: type) -> Leaf:
    """A one-line kernel and its centre; how far the points are from it is yet to be seen."""
    unit = float(np.finfo(dtype).eps) / 2
    if isinstance(kernel, (Function, Precomputed)):
        if isinstance(kernel, Precomputed) and (sparse or shape[0] != shape[1]):
            raise ValueError(f"a precomputed kernel matrix must be square and dense, got shape {shape}")
        return Leaf(kernel, None, None, False, 1.0, 2 * unit, 1.0)
    recipe = kernel.recipe(shape[1])
    if sparse and recipe.base not in ("dot", "distance"):
        raise TypeError(f"sparse X is for kernels of dot products and Euclidean distances, not {type(kernel).__name__}")
    if not np.isfinite(recipe.scale).all():
        raise ValueError(FAR)
    shifts = recipe.base in ("distance", "absolute") and not sparse
    return Leaf(kernel, recipe, mean() if shifts else None, False, 0.0, 0.0, 1.0)


def reach2_of(made: Leaf, X: Any) -> float:
    """The largest squared norm of a prepared point."""
    reach2 = 0.0
    for i in range(0, X.shape[0], step := max(500_000 // X.shape[1], 1)):
        part = prepared(made, X[i : i + step])
        squares = part.multiply(part).sum(axis=1) if sp.issparse(part) else np.einsum("ij,ij->i", part, part)
        reach2 = max(reach2, float(np.max(squares)))
    return reach2


def settled(made: Leaf, d: int, sparse: bool, reach2: float, lowest: float, dtype: type) -> Leaf:
    """A kernel that was begun, once it is known how far points are, and which number among them is the lowest."""
    kernel, recipe, unit = made.kernel, made.recipe, float(np.finfo(dtype).eps) / 2
    assert recipe is not None
    if not reach2 < HUGE:
        raise ValueError(FAR)
    dots = recipe.base == "dot"
    if recipe.base == "distance":
        lossless = recipe.slope * unit * 2 * reach2 <= LOST[np.dtype(dtype).itemsize]
        dots = sparse or (d > FEW and lossless)
    if isinstance(kernel, Polynomial):
        _check_degree(kernel, lowest, reach2)
    error, bound = _entry_error(kernel, recipe, d, dots, reach2, unit)
    return made._replace(dots=dots, reach=math.sqrt(reach2), error=error, bound=bound)


def _check_degree(kernel: Polynomial, lowest: float, reach2: float) -> None:
    """A fraction is no power of a negative number."""
    safe = kernel.coef0 >= reach2 or (kernel.coef0 >= 0 and lowest >= 0)
    if kernel.degree != int(kernel.degree) and not safe:
        raise ValueError(f"degree must be a whole number where x·y + coef0 can be negative, got {shown(kernel.degree)}")


def symmetric(K: np.ndarray) -> np.ndarray:
    """A given matrix, or (K + Kᵀ)/2 where rounding has made it less than symmetric; an error where more has."""
    same = True
    for i in range(0, len(K), BAND):
        part, other = K[i : i + BAND], K[:, i : i + BAND].T
        same = same and bool((part == other).all())
        if not same and not np.allclose(part, other, rtol=1e-5, atol=1e-7 * float(np.abs(part).max())):
            raise ValueError("the precomputed kernel matrix is not symmetric")
    return K if same else 0.5 * K + 0.5 * K.T


def _entry_error(kernel: Kernel, recipe: Recipe, d: int, dots: bool, reach2: float, unit: float) -> tuple[float, float]:
    """How far an entry can be off, against √(k_ii k_jj): features, base, shape. And what no entry exceeds.

    Where the kernel is not positive definite k_ii says nothing of other entries: there it is against that bound.
    """
    if isinstance(kernel, Polynomial):  # powers multiply relative errors
        top, degree = reach2 + abs(kernel.coef0), float(kernel.degree)
        if degree * math.log(max(top, 1e-300)) > 700:
            raise ValueError(f"degree {degree:g} takes kernel values beyond float64: rescale X, gamma or coef0")
        bound = math.exp(min(degree * math.log(max(top, 1e-300)), 700.0))
        return max(degree, 1.0) * (d + 8) * unit, bound
    if isinstance(kernel, Sigmoid):  # its slope is at most one
        return (d + 8) * unit * (reach2 + abs(kernel.coef0)) + 8 * unit, 1.0
    if recipe.base == "dot":
        return (d + 8) * unit, 1.0
    features = 4 * unit * math.sqrt(reach2) * (math.sqrt(d) if recipe.base == "absolute" else 1.0)
    base = (d + 4) * unit  # of differences, relative to t, and t 2^−t is below 0.54
    if dots:
        base = (d + 4) * unit * 4 * reach2 * (recipe.slope if math.isfinite(recipe.slope) else 1.0)
        if not math.isfinite(recipe.slope):
            base = math.sqrt(base)
    return features + base + 8 * unit, 1.0


def tree_error(kernel: Kernel, leaves: Iterator[Leaf]) -> float:
    """Of an entry of the whole kernel, against √(k_ii k_jj)."""
    if isinstance(kernel, Sum):
        return max(tree_error(kernel.a, leaves), tree_error(kernel.b, leaves))
    if isinstance(kernel, Product):
        return tree_error(kernel.a, leaves) + tree_error(kernel.b, leaves)
    return tree_error(kernel.a, leaves) if isinstance(kernel, Scaled) else next(leaves).error


def prepared(leaf: Leaf, A: Any) -> Any:
    """Points centred, scaled and, for cosines, divided by their norms; in float64."""
    recipe = leaf.recipe
    assert recipe is not None
    if sp.issparse(A):
        part = A.astype(np.float64)
        scale = np.asarray(recipe.scale)  # one number, or one a feature: of those there may be very many
        if np.any(scale != 1.0):
            part = part * float(scale) if scale.ndim == 0 else part @ sp.diags_array(scale)
        if recipe.unit:
            tallest = np.abs(part).max(axis=1).toarray().reshape(-1)  # first, so that no square leaves float64
            part = sp.csr_array(part)  # divided, as 1 over the smallest numbers is infinite
            part.data = part.data / np.repeat(np.where(tallest > 0, tallest, 1.0), np.diff(part.indptr))
            norms = np.sqrt(np.asarray(part.multiply(part).sum(axis=1)).reshape(-1))
            part = sp.diags_array(np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)) @ part
        return sp.csr_array(part)
    part = np.asarray(A, np.float64)
    part = part - leaf.centre if leaf.centre is not None else part
    part = part * recipe.scale
    if recipe.base == "ratio" and (part < 0).any():
        raise ValueError("the chi-squared kernel is for features that are not negative")
    if recipe.unit:
        tallest = np.abs(part).max(axis=1, keepdims=True)  # first, so that no square leaves float64
        part = np.divide(part, tallest, out=np.zeros_like(part), where=tallest > 0)
        norms = np.linalg.norm(part, axis=1, keepdims=True)
        part = np.divide(part, norms, out=np.zeros_like(part), where=norms > 0)
    return part


def side_of(leaf: Leaf, A: Any, dtype: type, width: int) -> Side:
    """Points, prepared for a leaf and laid out in tiles."""
    nothing: np.ndarray = np.empty((0, 2, 0), dtype)
    if leaf.recipe is None:
        return Side(nothing, nothing[:, 0], A)
    if sp.issparse(A):
        raw = prepared(leaf, A)
        norms = np.asarray(raw.multiply(raw).sum(axis=1)).reshape(-1)
        offsets = norms if leaf.recipe.base == "distance" else np.zeros_like(norms)
        return Side(nothing, _in_tiles(offsets[:, None], dtype, width)[:, 0], raw.astype(dtype))
    n, d = A.shape
    tiles = zeros((-(-n // width), d + d % 2, width), dtype)
    offsets = zeros((len(tiles), width), dtype)
    for b in range(len(tiles)):
        part = prepared(leaf, A[b * width : (b + 1) * width])
        tiles[b, :d, : len(part)] = part.T
        if leaf.dots and leaf.recipe.base == "distance":
            # of the points as they are stored, so that a point is at distance zero from itself
            stored = tiles[b].astype(np.float64)
            offsets[b] = np.einsum("kj,kj->j", stored, stored)
    return Side(tiles, offsets, None)


def _in_tiles(A: np.ndarray, dtype: type, width: int) -> np.ndarray:
    n, d = A.shape
    out = zeros((-(-n // width), d, width), dtype)
    for b in range(len(out)):
        part = A[b * width : (b + 1) * width]
        out[b, :, : len(part)] = part.T
    return out


def arrived(sides: tuple[Side, ...]) -> tuple[Side, ...]:
    """Sides that came from another process, where a compiled loop reads them as fast as those laid out here."""
    return tuple(one._replace(tiles=laid(one.tiles), offsets=laid(one.offsets)) for one in sides)


def some_of(leaf: Leaf, side: Side, which: np.ndarray, width: int) -> Side:
    """Some points of a side."""
    raw = side.raw[which] if side.raw is not None else None
    if not side.offsets.size:
        return Side(side.tiles, side.offsets, raw)
    w = side.offsets.shape[1]
    dtype = side.offsets.dtype.type
    offsets = _in_tiles(side.offsets[which // w, which % w][:, None], dtype, width)[:, 0]
    if not side.tiles.size:
        return Side(side.tiles, offsets, raw)
    return Side(_in_tiles(side.tiles[which // w, :, which % w], dtype, width), offsets, raw)
