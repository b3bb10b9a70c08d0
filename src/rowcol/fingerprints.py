"""What tells one problem from another: X and y by their checksums, parameters and the seed as plain data."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .core.kernels import kernel_of
from .core.place import Place
from .core.problem import matrix, right_hand_sides
from .files.plain import Packing
from .methods.result import History, Result

PART = 1 << 26  # bytes of X summed at a time, so that Ctrl-C is obeyed
LIMITS = ("max_seconds", "n_jobs")  # of a process, and not of what is solved; so is the start, once there is a way
SAME = (
    *("alpha", "kernel", "n_centers", "fit_intercept", "method", "tol", "max_passes", "sampler", "sample_weight"),
    *("bounds", "preconditioner", "memory"),
)
NAMES = ("x0", *SAME, *LIMITS)


def as_bytes(value: Any) -> bytes:
    """Equal for equal plain data only."""
    packing = Packing()
    tree = json.dumps(packing.pack(value)).encode()
    return b"\0".join([tree, *(f"{a.dtype.str} {a.shape}".encode() + a.tobytes() for a in packing.arrays)])


def plain(given: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Parameters as plain data, and the names of those that are none."""
    made: dict[str, Any] = {}
    left_out = []
    for name in NAMES:
        value = given.get(name)
        try:
            made[name] = TAMED.get(name, _tame)(value)
            Packing().pack(made[name])
        except TypeError:
            made[name] = None
            left_out.append(name)
    return made, left_out


def _tame(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    value = np.asarray(value)
    return value.item() if value.ndim == 0 else value


def _number(value: Any) -> Any:
    value = _tame(value)
    return float(value) if type(value) is int else value


def _start(x0: Any) -> Any:
    """A start as an array, or as a Result of little else."""
    if not isinstance(x0, Result):
        return _tame(x0)
    if x0.function is not None and np.shape(x0.x)[0] != x0.function.exact.shape[0]:
        raise TypeError("the function of an earlier fit is no plain data")
    return replace(x0, function=None, plan=None, history=History(), fitted=None)


def _refused(value: Any) -> None:
    if value is not None:
        raise TypeError("an operator is no plain data")


TAMED: dict[str, Callable[[Any], Any]] = {
    "x0": _start,
    "kernel": lambda value: None if value is None else kernel_of(value),
    "bounds": lambda value: None if value is None else tuple(_tame(one) for one in value),
    "preconditioner": _refused,
    **dict.fromkeys(("alpha", "tol", "max_passes", "max_seconds"), _number),
}


def seeded(seed: np.random.SeedSequence) -> dict[str, Any]:
    """A seed as plain data."""
    entropy: Any = seed.entropy
    return {
        "entropy": [int(one) for one in entropy] if np.ndim(entropy) else int(entropy),
        "spawn_key": [int(one) for one in seed.spawn_key],
    }


def seed_of(told: dict[str, Any]) -> np.random.SeedSequence:
    """A seed from plain data."""
    return np.random.SeedSequence(told["entropy"], spawn_key=tuple(told["spawn_key"]))


def fingerprint(X: Any, y: Any) -> dict[str, Any]:
    """What tells one X and y from others: shapes, types, layout and a checksum of all numbers.

    It takes about a second a gigabyte, once a solve. Of an operator, it is the product with a fixed vector.
    """
    X, _ = matrix(X)
    b, single = right_hand_sides(y, X.shape[0])
    told: dict[str, Any] = {"shape of X": list(X.shape), "type of X": str(X.dtype)}
    if sp.issparse(X):
        told |= {"layout of X": X.format, "X": _sum(X.indptr, X.indices, X.data)}
    elif isinstance(X, Place):
        told |= {"layout of X": X.starts.tolist(), "X": list(X.map(_part_sum))}
    elif isinstance(X, np.ndarray):
        by_rows = X.flags.c_contiguous
        told |= {"layout of X": "rows" if by_rows else "columns", "X": _sum(X if by_rows else X.T)}
    else:
        some = np.random.default_rng(0).standard_normal(X.shape[1])
        told |= {"layout of X": "operator", "X": _sum(np.asarray(X.matvec(some)))}
    return told | {"shape of y": [len(b)] if single else list(b.shape), "y": _sum(b)}


def _part_sum(part: Any, pool: Any) -> int:
    return _sum(part.indptr, part.indices, part.data) if sp.issparse(part) else _sum(part)


def _sum(*arrays: np.ndarray) -> int:
    total = 0
    for a in arrays:
        flat = np.ascontiguousarray(a).reshape(-1).view(np.uint8)
        for start in range(0, flat.size, PART):
            total = zlib.crc32(flat[start : start + PART].data, total)
    return total
