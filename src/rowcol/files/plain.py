"""Values as JSON and arrays, and back: a fixed table says what there may be, and nothing else is made.

Numbers, text, lists and dicts are themselves. All else is a dict whose first key begins with $:

    {"$array": k}                       k.npy
    {"$scalar": k}                      k.npy, of no dimensions: a number with NumPy's type
    {"$float": "nan"}                   nan, inf or -inf
    {"$tuple": [...]}
    {"$dict": [[key, value], ...]}      where keys are not text, or begin with $
    {"$objects": [...], "shape": [...]}
    {"$masked": data, "mask": mask}
    {"$sparse": "csr", "shape": [...], "data": a, "indices": b, "indptr": c}
    {"$status": "CONVERGED"}
    {"$is": "Certificate", "fields": {...}}
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core import kernels, recipes
from ..core.certify import Certificate
from ..core.sparse import checked
from ..methods.choose import Plan
from ..methods.result import History, Result, Status

KERNELS = (
    *(kernels.RBF, kernels.Laplacian, kernels.Matern, kernels.Polynomial, kernels.Linear, kernels.Sigmoid),
    *(kernels.Cosine, kernels.Chi2, kernels.Precomputed, recipes.Sum, recipes.Product, recipes.Scaled),
)
FREE, TIMES = 1 << 28, 64  # bytes that any file may make of its arrays, and times what it has
KNOWN: dict[str, Any] = {one.__name__: one for one in (*KERNELS, Certificate, Plan, History, Result)}


@dataclass
class Packing:
    """What is on its way to a file."""

    arrays: list[np.ndarray] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=dict)  # the same array is stored once
    special: Callable[[Any, Packing], Any] = lambda value, packing: None
    known: dict[str, Any] = field(default_factory=lambda: KNOWN)  # classes, by their names

    def pack(self, value: Any) -> Any:
        """A value as JSON; a TypeError if it is no plain data."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"$float": str(value)}
        if type(value) in (list, tuple):
            held = [self.pack(one) for one in value]
            return held if type(value) is list else {"$tuple": held}
        if type(value) is dict:
            if all(type(key) is str and not key.startswith("$") for key in value):
                return {key: self.pack(one) for key, one in value.items()}
            return {"$dict": [[self.pack(key), self.pack(one)] for key, one in value.items()]}
        if isinstance(value, (np.ndarray, np.generic)) or sp.issparse(value):
            return self._array(value)
        if isinstance(value, Status):
            return {"$status": value.name}
        special = self.special(value, self)
        if special is not None:
            return special
        name = type(value).__name__
        if self.known.get(name) is not type(value):
            code = callable(value) or isinstance(value, kernels.Function)
            raise TypeError("a function cannot be saved, as nothing in a file is code" if code else f"{name} cannot be")
        return {"$is": name, "fields": {one: self.pack(getattr(value, one)) for one in names_of(type(value))}}

    def _array(self, value: Any) -> Any:
        if sp.issparse(value):
            if value.format not in ("csr", "csc"):
                raise TypeError(f"a sparse array in {value.format} format cannot be saved")
            parts = {name: self._array(getattr(value, name)) for name in ("data", "indices", "indptr")}
            return {"$sparse": value.format, "shape": list(value.shape), **parts}
        if isinstance(value, np.ma.MaskedArray):
            mask = np.ma.getmaskarray(value)
            return {"$masked": self._array(value.data), "mask": self._array(mask)}
        if value.dtype.kind == "O":
            return {"$objects": [self.pack(one) for one in value.ravel()], "shape": list(value.shape)}
        if isinstance(value, np.generic):
            self.arrays.append(np.asarray(value))
            return {"$scalar": len(self.arrays) - 1}
        if id(value) not in self.places:
            self.places[id(value)] = len(self.arrays)
            self.arrays.append(np.asarray(value))
        return {"$array": self.places[id(value)]}


def names_of(kind: Any) -> list[str]:
    """The fields of a class that are stored."""
    if is_dataclass(kind):
        return [one.name for one in fields(kind) if one.name not in ("asked",)]
    return list(kind._fields)


@dataclass
class Unpacking:
    """What comes from a file; a ValueError if it is not what is known."""

    arrays: list[np.ndarray]
    special: dict[str, Callable[[dict, Unpacking], Any]] = field(default_factory=dict)
    known: dict[str, Any] = field(default_factory=lambda: KNOWN)
    room: int = FREE  # bytes that may still be made of arrays: a small file can name one of them a million times

    def __post_init__(self) -> None:
        self.room += TIMES * sum(one.nbytes for one in self.arrays)

    def allow(self, size: int) -> None:
        """So many bytes are about to be made."""
        self.room -= size
        if self.room < 0:
            raise ValueError("it would take far more memory than the file has")

    def unpack(self, told: Any) -> Any:
        """The value that JSON says."""
        if isinstance(told, list):
            return [self.unpack(one) for one in told]
        if not isinstance(told, dict):
            return told
        tag = next(iter(told), "")
        if not tag.startswith("$"):
            return {key: self.unpack(one) for key, one in told.items()}
        if tag in self.special:
            return self.special[tag](told, self)
        make = getattr(self, "_" + tag[1:], None) if tag in TAGS else None
        if make is None:
            raise ValueError(f"{tag!r} is not known")
        return make(told)

    def array(self, at: Any) -> np.ndarray:
        """One of the arrays."""
        if type(at) is not int or not 0 <= at < len(self.arrays):
            raise ValueError(f"there is no array {at!r}")
        return self.arrays[at]

    def _array(self, told: dict) -> np.ndarray:
        return self.array(told["$array"])

    def _scalar(self, told: dict) -> Any:
        return self.array(told["$scalar"]).reshape(())[()]

    def _float(self, told: dict) -> float:
        return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[told["$float"]]

    def _tuple(self, told: dict) -> tuple:
        return tuple(self.unpack(one) for one in told["$tuple"])

    def _dict(self, told: dict) -> dict:
        return {self.unpack(key): self.unpack(one) for key, one in told["$dict"]}

    def _objects(self, told: dict) -> np.ndarray:
        held = [self.unpack(one) for one in told["$objects"]]
        out = np.empty(len(held), object)
        out[:] = held
        return out.reshape(told["shape"])

    def _masked(self, told: dict) -> Any:
        data, mask = np.asarray(self.unpack(told["$masked"])), np.asarray(self.unpack(told["mask"]))
        if mask.dtype != bool or mask.shape != data.shape:
            raise ValueError("a mask does not go with its array")
        return np.ma.MaskedArray(data, mask=mask)

    def _sparse(self, told: dict) -> Any:
        parts = [self.unpack(told[name]) for name in ("data", "indices", "indptr")]
        if any(not isinstance(one, np.ndarray) or one.ndim != 1 for one in parts) or parts[0].dtype.kind not in "fiub":
            raise ValueError("a sparse array has no numbers")
        if any(one.dtype.kind != "i" for one in parts[1:]):
            raise ValueError("a sparse array has no places")
        kind, shape = {"csr": sp.csr_array, "csc": sp.csc_array}[told["$sparse"]], tuple(told["shape"])
        # nothing in the file says so many rows and columns, and turned round it takes them; places may be copied
        self.allow(sum(one.nbytes for one in parts) + 8 * (shape[0] + shape[1]))
        out = kind(tuple(parts), shape=shape)
        checked(out)  # compiled code does not look whether a place is within the shape
        return out

    def _status(self, told: dict) -> Status:
        return Status[told["$status"]]

    def _is(self, told: dict) -> Any:
        kind = self.known[told["$is"]]
        held = {name: self.unpack(one) for name, one in told["fields"].items()}
        if set(held) != set(names_of(kind)):
            raise ValueError(f"{told['$is']} has other fields")
        return kind(**held)


TAGS = ("$array", "$scalar", "$float", "$tuple", "$dict", "$objects", "$masked", "$sparse", "$status", "$is")
