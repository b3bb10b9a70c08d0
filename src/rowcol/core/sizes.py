"""How large a kernel is at its points: its diagonal, what no entry exceeds, and whether single precision bears it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..engine.tiles import bend
from .gram import Gram, checked, combined
from .kernels import Function, Precomputed
from .recipes import Kernel, Product, Scaled, Sum
from .sides import Leaf, Side


def diagonal(g: Gram) -> np.ndarray:
    """k(x_i, x_i) of the points on the left, in float64."""
    if g.far is not None and g.symmetric:
        return g.far.sizes(g).diagonal
    if not g.symmetric and any(isinstance(leaf.kernel, Precomputed) for leaf in g.leaves):
        raise ValueError("a precomputed kernel does not say k(x, x) of new points, so there is no bound for them")
    parts = iter([_leaf_diagonal(leaf, side, g.shape[0]) for leaf, side in zip(g.leaves, g.left, strict=True)])
    return combined(g.kernel, parts)


def sizes2(g: Gram) -> np.ndarray:
    """s_i² with |k(x_i, x_j)| ≤ s_i s_j: k(x_i, x_i), or a bound where a leaf is not positive definite."""
    if g.far is not None:
        return g.far.sizes(g).sizes2
    parts = [_leaf_diagonal(leaf, side, g.shape[0]) for leaf, side in zip(g.leaves, g.left, strict=True)]
    kept = [np.abs(d) if leaf.kernel.definite else np.full_like(d, leaf.bound) for leaf, d in zip(g.leaves, parts)]
    return combined(g.kernel, iter(kept))


def fits_single(g: Gram) -> bool:
    """Is every kernel of the tree, and every factor, far from the limits of single precision?"""
    if g.far is not None:
        return g.far.sizes(g).single
    parts = iter([_leaf_diagonal(leaf, side, g.shape[0]) for leaf, side in zip(g.leaves, g.left, strict=True)])
    return _fits(g.kernel, zip(g.leaves, parts))[1]


def _fits(kernel: Kernel, parts: Iterator[tuple[Leaf, np.ndarray]]) -> tuple[np.ndarray, bool]:
    if isinstance(kernel, (Sum, Product)):
        (a, left), (b, right) = _fits(kernel.a, parts), _fits(kernel.b, parts)
        size, fine = (a + b if isinstance(kernel, Sum) else a * b), left and right
    elif isinstance(kernel, Scaled):
        size, fine = _fits(kernel.a, parts)
        size, fine = kernel.c * size, fine and 1e-30 < kernel.c < 1e30
    else:
        leaf, own = next(parts)
        size, fine = np.abs(own) if leaf.kernel.definite else np.full_like(own, leaf.bound), leaf.reach < 1e15
    return size, fine and float(size.mean()) > 1e-30 and float(size.max()) < 1e30


def _leaf_diagonal(leaf: Leaf, side: Side, n: int) -> np.ndarray:
    if isinstance(leaf.kernel, Precomputed):
        return np.array(np.diagonal(side.raw), np.float64)
    if isinstance(leaf.kernel, Function):
        out = np.empty(n)
        for i in range(0, n, 32):
            part = side.raw[i : i + 32]
            out[i : i + 32] = np.diagonal(checked(leaf.kernel.f(part, part), (part.shape[0],) * 2, np.float64))
        return out
    assert leaf.recipe is not None
    if leaf.recipe.base != "dot":
        return np.ones(n)
    if side.raw is not None:
        norms = np.asarray(side.raw.multiply(side.raw).sum(axis=1), np.float64).reshape(1, -1)
    else:
        norms = np.einsum("bkj,bkj->bj", side.tiles, side.tiles, dtype=np.float64).reshape(1, -1)[:, :n]
    norms = np.ascontiguousarray(norms)
    bend(leaf.recipe.shape_in(np.float64), np.zeros(1), np.zeros(n), norms)
    return norms[0]
