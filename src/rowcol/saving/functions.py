"""The function of a kernel fit on disk: its numbers. Tiles are laid out anew, from the points, to the same bits.

Compiled code trusts the shapes it is given, so none that do not fit together may come from a file.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core.function import KernelFunction
from ..core.gram import Gram
from ..core.kernels import Precomputed
from ..core.memory import width_of
from ..core.recipes import Kernel
from ..core.sides import Leaf, leaves_of, points, settle, side_of, symmetric
from ..files.plain import Packing, Unpacking
from ..methods.given import held_by

NUMBERS = ("coefficients", "intercept", "bound", "centre", "centre2", "blur", "ridge", "places", "live", "centers")
SETTLED = ("centre", "dots", "reach", "error", "bound")


def packed(f: KernelFunction, packing: Packing) -> dict[str, Any]:
    """A function as JSON and arrays; its points are the model's `X_fit_`."""
    told: dict[str, Any] = {name: packing.pack(getattr(f, name)) for name in NUMBERS}
    told |= {"rough": bool(f.rough), "single": bool(f.single), "kernel": packing.pack(f.exact.kernel)}
    told["exact"] = _leaves(f.exact, packing)
    told["quick"] = None if f.quick is f.exact or f.quick.dtype is f.exact.dtype else _leaves(f.quick, packing)
    return told


def _leaves(g: Gram, packing: Packing) -> list:
    return [{name: packing.pack(getattr(leaf, name)) for name in SETTLED} for leaf in g.leaves]


def unpacked(told: dict[str, Any], X: Any, jobs: int, unpacking: Unpacking) -> KernelFunction:
    """A function, from what `packed` said and the model's points."""
    held = {name: unpacking.unpack(told[name]) for name in NUMBERS}
    kernel = unpacking.unpack(told["kernel"])
    if not isinstance(kernel, Kernel):
        raise ValueError("there is no kernel")
    X = points(X)
    of_centers = held["centers"] is not None
    if not of_centers:
        X = _counted(X, held["places"], any(isinstance(one, Precomputed) for one in leaves_of(kernel)))
    _check(held, X.shape[0], of_centers)
    exact = _gram(kernel, X, np.float64, told["exact"], unpacking)
    quick = exact if told["quick"] is None else _gram(kernel, X, np.float32, told["quick"], unpacking)
    flags: dict[str, Any] = {"rough": told["rough"] is True, "single": told["single"] is True}
    if flags["single"] and len(held["coefficients"]) != 1:
        raise ValueError("one column is wanted")
    return KernelFunction(quick=quick, exact=exact, jobs=jobs, **flags, **held)


def _counted(X: Any, places: Any, given: bool) -> Any:
    """The points that count, of the user's."""
    n = X.shape[0]
    if not isinstance(places, np.ndarray) or places.ndim != 1 or places.dtype.kind != "i" or not places.size:
        raise ValueError("no points count")
    if places.min() < 0 or places.max() >= n or (np.diff(places) <= 0).any():
        raise ValueError("points that are not there count")
    if given and X.shape[1] != n:
        raise ValueError("a kernel matrix is square")
    if places.size == n:
        return X
    return X[places][:, places] if given else X[places]


def _check(held: dict[str, Any], n: int, of_centers: bool) -> None:
    """Do all numbers go with n points?"""
    a = held["coefficients"]
    if not isinstance(a, np.ndarray) or a.ndim != 2 or a.shape[1] != n or not len(a):
        raise ValueError(f"coefficients do not go with {n} points")
    q, centre = len(a), held["centre"]
    shapes: dict[str, list[tuple[int, ...]]] = {
        "intercept": [(q,)],
        "bound": [(q,)],
        "blur": [(q,)],
        "centre2": [(1,), (q,)],
    }
    shapes["ridge"] = [(0, 0)] if of_centers else [(1, n), (q, n)]
    if centre is not None:
        shapes["centre"] = [(1, n), (q, n)]
    for name, allowed in {"coefficients": [a.shape], **shapes}.items():
        one = held[name]
        if not isinstance(one, np.ndarray) or one.dtype != np.float64 or one.shape not in allowed:
            raise ValueError(f"{name} does not go with {n} points")
    if centre is not None and len(centre) != len(held["centre2"]):
        raise ValueError("centre2 does not go with the centre")
    for name in ("live", "centers"):
        one = held[name]
        if one is not None and (not isinstance(one, np.ndarray) or one.shape != (n,) or one.dtype.kind != "i"):
            raise ValueError(f"{name} does not go with {n} points")
    if held["live"] is not None and not np.array_equal(held["live"], held["places"]):
        raise ValueError("columns of a kernel matrix do not go with its points")
    if of_centers and held["places"].size:
        raise ValueError("centres have no places")


def _gram(kernel: Kernel, X: Any, dtype: type, told: Any, unpacking: Unpacking) -> Gram:
    """As `gram` makes it, with the leaves as they were settled then: by points that need not be here any more."""
    found = leaves_of(kernel)
    if not isinstance(told, list) or len(told) != len(found):
        raise ValueError("the kernel has other parts")
    unpacking.allow(len(found) * held_by(X))  # each part has the points laid out for itself
    leaves = tuple(_settled(settle(leaf, X, dtype), one, X, unpacking) for leaf, one in zip(found, told, strict=True))
    n = X.shape[0]
    width = width_of(n)
    X = symmetric(X) if any(isinstance(leaf.kernel, Precomputed) for leaf in leaves) else X
    sides = tuple(side_of(leaf, X, dtype, width) for leaf in leaves)
    return Gram(kernel, leaves, sides, sides, (n, n), X.shape[1], sp.issparse(X), dtype, width, None)


def _settled(leaf: Leaf, told: Any, X: Any, unpacking: Unpacking) -> Leaf:
    held = {name: unpacking.unpack(told[name]) for name in SETTLED}
    centre, dots = held["centre"], held["dots"]
    if (centre is None) != (leaf.centre is None):
        raise ValueError("a kernel has another centre")
    if centre is not None:
        if not isinstance(centre, np.ndarray) or centre.shape != (X.shape[1],) or centre.dtype != np.float64:
            raise ValueError("a kernel's centre does not go with the points")
        if not np.isfinite(centre).all():
            raise ValueError("a kernel's centre is not finite")
    free = leaf.recipe is not None and leaf.recipe.base == "distance" and not sp.issparse(X)
    if not isinstance(dots, (bool, np.bool_)) or (bool(dots) != leaf.dots and not free):
        raise ValueError("a kernel has another base")
    if any(not isinstance(held[name], (float, np.floating)) for name in ("reach", "error", "bound")):
        raise ValueError("a kernel has no error")
    return leaf._replace(**(held | {"dots": bool(dots)}))
