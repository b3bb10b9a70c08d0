"""What the tiles need to know of a kernel, and kernels made of kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .problem import real_number
from .words import shown


class Recipe(NamedTuple):
    """How a one-line kernel is made of features."""

    base: str  # "distance", "absolute", "ratio" or "dot"
    shape: tuple  # the shape and its constants
    scale: Any  # what features are multiplied by: a number, or one a feature
    slope: float  # the most the kernel changes when its base does by one, to judge rounding
    unit: bool = False  # points are divided by their norms first

    def shape_in(self, dtype: type) -> Any:
        """The shape, with its constants in a precision."""
        kind, *constants = self.shape
        return kind(*(dtype(value) if isinstance(value, float) else value for value in constants))


@dataclass(frozen=True)
class Kernel:
    """A kernel; `+` and `*` combine them."""

    def __add__(self, other: Any) -> Kernel:
        return Sum(self, _operand(other))

    def __mul__(self, other: Any) -> Kernel:
        return (
            Scaled(self, float(other))
            if isinstance(other, (int, float, np.integer, np.floating))
            else Product(self, _operand(other))
        )

    __rmul__ = __mul__

    def __call__(self, A: Any, B: Any = None) -> np.ndarray:
        """The matrix k(a_i, b_j), all of it, in float64: to look at, not to solve with."""
        from .gram import dense  # it is made of tiles, which are made of kernels

        return dense(self, A, B)

    def recipe(self, d: int) -> Recipe:
        """What the tiles need, for points of d features."""
        raise NotImplementedError

    @property
    def definite(self) -> bool:
        """Is every matrix of it positive semi-definite?"""
        return True


def _operand(other: Any) -> Kernel:
    if not isinstance(other, Kernel):
        raise TypeError(f"kernels combine with kernels (and, by *, with positive numbers), not with {shown(other)}")
    return other


@dataclass(frozen=True)
class Pair(Kernel):
    """Two kernels."""

    a: Kernel
    b: Kernel

    @property
    def definite(self) -> bool:
        """If both are (for products, by Schur)."""
        return self.a.definite and self.b.definite


@dataclass(frozen=True)
class Sum(Pair):
    """a + b."""


@dataclass(frozen=True)
class Product(Pair):
    """a · b, entry by entry."""


@dataclass(frozen=True)
class Scaled(Kernel):
    """c · a."""

    a: Kernel
    c: float

    def __post_init__(self) -> None:
        real_number(self.c, "the factor of a kernel", above=0.0)

    @property
    def definite(self) -> bool:
        """If a is."""
        return self.a.definite
