"""Kernels: what each is, in one line, and what of it the tiles need to know.

A kernel is a plain frozen value. `a + b`, `a * b` and `2.0 * a` make kernels of kernels. Every one-line kernel says how
its features are to be prepared (scaled, centred, normalised), which base is summed over them and which shape is taken
of it; see `engine/tiles.py`. Distances are scaled so that e^−u becomes 2^−t.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ..engine import tiles
from .problem import numbers_of, real_number
from .recipes import Kernel, Recipe
from .words import shown

LOG2 = math.log(2.0)


def _gamma(kernel: Any, d: int, default: float) -> Any:
    """√γ, or 1/length-scale in the kernel's own convention; one number, or one a feature."""
    if kernel.length_scale is None:
        return kernel.gamma if kernel.gamma is not None else default
    return None


def _lengths(value: Any, d: int) -> Any:
    lengths = np.asarray(value, np.float64)
    if lengths.ndim == 0:
        return float(lengths)
    if lengths.shape != (d,):
        raise ValueError(f"length_scale must be a number or one a feature: X has {d}, got shape {lengths.shape}")
    return lengths


def _check_scales(kernel: Any) -> None:
    if getattr(kernel, "gamma", None) is not None:
        real_number(kernel.gamma, "gamma", above=0.0)
    value = getattr(kernel, "length_scale", None)
    if value is None:
        return
    if getattr(kernel, "gamma", None) is not None:
        raise ValueError("give gamma or length_scale, not both")
    lengths = numbers_of(value, "length_scale")
    if lengths.ndim > 1:
        raise TypeError(f"length_scale must be a number or one a feature, got {shown(value)}")
    if not (np.isfinite(lengths).all() and (lengths > 0).all() and lengths.size):
        raise ValueError(f"length_scale must be finite and above 0, got {shown(value)}")
    if lengths.ndim:  # frozen, and comparable
        object.__setattr__(kernel, "length_scale", tuple(float(v) for v in lengths))


@dataclass(frozen=True)
class RBF(Kernel):
    """exp(−γ‖x − y‖²), or exp(−½ Σ ((x_k − y_k)/ℓ_k)²).

    Parameters
    ----------
    gamma : float, optional
        γ; 1/d unless said, as in scikit-learn.
    length_scale : float or array, optional
        ℓ, instead of gamma: one number, or one a feature.

    Examples
    --------
    >>> import rowcol
    >>> rowcol.kernels.RBF(gamma=0.5)(x := [[0.0], [1.0]], x).round(3).tolist()
    [[1.0, 0.607], [0.607, 1.0]]
    """

    gamma: float | None = None
    length_scale: Any = None

    def __post_init__(self) -> None:
        _check_scales(self)

    def recipe(self, d: int) -> Recipe:
        """2^−t of the squared distance."""
        gamma = _gamma(self, d, 1.0 / d)
        scale = math.sqrt(0.5 / LOG2) / _lengths(self.length_scale, d) if gamma is None else math.sqrt(gamma / LOG2)
        return Recipe("distance", (tiles.Decay, 0.0), scale, LOG2)


@dataclass(frozen=True)
class Laplacian(Kernel):
    """exp(−γ‖x − y‖₁) as in scikit-learn, or with norm="l2" exp(−γ‖x − y‖₂); length-scales put (x − y)/ℓ for γ(x − y).

    Parameters
    ----------
    gamma : float, optional
        γ; 1/d unless said.
    length_scale : float or array, optional
        ℓ, instead of gamma: one number, or one a feature.
    norm : {"l1", "l2"}

    Examples
    --------
    >>> import rowcol
    >>> rowcol.kernels.Laplacian(gamma=1.0)([[0.0, 0.0]], [[1.0, 1.0]]).round(3).tolist()
    [[0.135]]
    """

    gamma: float | None = None
    length_scale: Any = None
    norm: str = "l1"

    def __post_init__(self) -> None:
        _check_scales(self)
        if not isinstance(self.norm, str) or self.norm not in ("l1", "l2"):
            raise ValueError(f"norm must be 'l1' or 'l2', got {shown(self.norm)}")

    def recipe(self, d: int) -> Recipe:
        """2^−t of the distance."""
        gamma = _gamma(self, d, 1.0 / d)
        scale = (1.0 / _lengths(self.length_scale, d) if gamma is None else gamma) / LOG2
        if self.norm == "l1":
            return Recipe("absolute", (tiles.Decay, 0.0), scale, LOG2)
        return Recipe("distance", (tiles.RootDecay, 0.0), scale, math.inf)


@dataclass(frozen=True)
class Matern(Kernel):
    """Matern of smoothness ν = ½, 3/2 or 5/2: e^−u times 1, 1 + u or 1 + u + u²/3, with u = √(2ν) ‖(x − y)/ℓ‖.

    Parameters
    ----------
    nu : {0.5, 1.5, 2.5}
    length_scale : float or array
        ℓ: one number, or one a feature.

    Examples
    --------
    >>> import rowcol
    >>> rowcol.kernels.Matern(nu=1.5)([[0.0]], [[1.0]]).round(3).tolist()
    [[0.483]]
    """

    nu: float = 1.5
    length_scale: Any = 1.0

    def __post_init__(self) -> None:
        _check_scales(self)
        if real_number(self.nu, "nu", above=0.0) not in (0.5, 1.5, 2.5):
            raise ValueError(f"nu must be 0.5, 1.5 or 2.5, got {shown(self.nu)}")
        if self.length_scale is None:
            raise ValueError("length_scale must be a number or one a feature, got None")

    def recipe(self, d: int) -> Recipe:
        """Half-integer Matern kernels are polynomials times an exponential."""
        scale = math.sqrt(2 * self.nu) / _lengths(self.length_scale, d) / LOG2
        if self.nu == 0.5:
            return Recipe("distance", (tiles.RootDecay, 0.0), scale, math.inf)
        if self.nu == 1.5:
            return Recipe("distance", (tiles.Matern3, 0.0, 1.0, LOG2), scale, LOG2**2 / 2)
        return Recipe("distance", (tiles.Matern5, 0.0, 1.0, LOG2, 1 / 3), scale, LOG2**2 / 6)


@dataclass(frozen=True)
class Polynomial(Kernel):
    """(γ x·y + c)^degree.

    Parameters
    ----------
    degree : float
    gamma : float, optional
        γ; 1/d unless said.
    coef0 : float
        c; below zero the kernel may not be positive definite.

    Examples
    --------
    >>> import rowcol
    >>> rowcol.kernels.Polynomial(degree=2, gamma=1.0)([[1.0, 2.0]], [[1.0, 1.0]]).tolist()
    [[16.0]]
    """

    degree: float = 3
    gamma: float | None = None
    coef0: float = 1.0

    def __post_init__(self) -> None:
        _check_scales(self)
        real_number(self.degree, "degree", above=0.0, below=1e9)
        real_number(self.coef0, "coef0", at_least=-1e300)

    length_scale = None

    def recipe(self, d: int) -> Recipe:
        """A power of the dot product."""
        degree = int(self.degree) if self.degree == int(self.degree) else float(self.degree)
        return Recipe("dot", (tiles.Power, float(self.coef0), degree), math.sqrt(_gamma(self, d, 1.0 / d)), math.nan)

    @property
    def definite(self) -> bool:
        """For whole degrees and c ≥ 0."""
        return self.coef0 >= 0 and self.degree == int(self.degree)


@dataclass(frozen=True)
class Linear(Kernel):
    """x·y: kernel ridge regression with it is ridge regression by rows.

    Examples
    --------
    >>> import rowcol
    >>> rowcol.kernels.Linear()([[1.0, 2.0]], [[3.0, 4.0]]).tolist()
    [[11.0]]
    """

    def recipe(self, d: int) -> Recipe:
        """The dot product."""
        return Recipe("dot", (tiles.Identity, 0.0), 1.0, 1.0)


@dataclass(frozen=True)
class Sigmoid(Kernel):
    """tanh(γ x·y + c): not positive definite in general.

    Parameters
    ----------
    gamma : float, optional
        γ; 1/d unless said.
    coef0 : float

    Examples
    --------
    >>> import rowcol
    >>> rowcol.kernels.Sigmoid(gamma=1.0, coef0=0.0)([[1.0]], [[1.0]]).round(3).tolist()
    [[0.762]]
    """

    gamma: float | None = None
    coef0: float = 1.0

    def __post_init__(self) -> None:
        _check_scales(self)
        real_number(self.coef0, "coef0", at_least=-1e300)

    length_scale = None

    def recipe(self, d: int) -> Recipe:
        """tanh by way of 2^t."""
        scale = math.sqrt(_gamma(self, d, 1.0 / d))
        return Recipe("dot", (tiles.Tanh, float(self.coef0), 1.0, 2.0, 2 / LOG2, 126.0), scale, 1.0)

    @property
    def definite(self) -> bool:
        """It is not."""
        return False


@dataclass(frozen=True)
class Cosine(Kernel):
    """x·y / (‖x‖‖y‖), and 0 where a point is zero.

    Examples
    --------
    >>> import rowcol
    >>> rowcol.kernels.Cosine()([[1.0, 1.0]], [[2.0, 0.0]]).round(3).tolist()
    [[0.707]]
    """

    def recipe(self, d: int) -> Recipe:
        """The dot product of directions."""
        return Recipe("dot", (tiles.Identity, 0.0), 1.0, 1.0, unit=True)


@dataclass(frozen=True)
class Chi2(Kernel):
    """exp(−γ Σ (x_k − y_k)²/(x_k + y_k)), for features that are not negative.

    Parameters
    ----------
    gamma : float

    Examples
    --------
    >>> import rowcol
    >>> rowcol.kernels.Chi2(gamma=1.0)([[1.0, 0.0]], [[0.0, 1.0]]).round(3).tolist()
    [[0.135]]
    """

    gamma: float = 1.0

    def __post_init__(self) -> None:
        real_number(self.gamma, "gamma", above=0.0)

    def recipe(self, d: int) -> Recipe:
        """2^−t of the chi-squared distance; scaling features scales it."""
        return Recipe("ratio", (tiles.Decay, 0.0), self.gamma / LOG2, LOG2)


@dataclass(frozen=True)
class Function(Kernel):
    """A kernel of your own: f(A, B) gives the len(A) x len(B) block of kernel values, in any precision.

    It is called with blocks of points, from several threads at once.

    Examples
    --------
    >>> import rowcol
    >>> rowcol.kernels.Function(lambda A, B: A @ B.T)([[1.0, 2.0]], [[3.0, 4.0]]).tolist()
    [[11.0]]
    """

    f: Callable[[np.ndarray, np.ndarray], Any]

    def __post_init__(self) -> None:
        if not callable(self.f):
            raise TypeError(f"a kernel function must be callable, got {type(self.f).__name__}")


@dataclass(frozen=True)
class Precomputed(Kernel):
    """X is the kernel matrix itself.

    Examples
    --------
    >>> import numpy as np, rowcol
    >>> rowcol.solve(np.eye(2), [1.0, 2.0], kernel=rowcol.kernels.Precomputed(), alpha=1.0).x.round(3).tolist()
    [0.5, 1.0]
    """


NAMES: dict[str, Callable[..., Kernel]] = {
    "rbf": RBF,
    "laplacian": Laplacian,
    "matern": Matern,
    "poly": Polynomial,
    "polynomial": Polynomial,
    "linear": Linear,
    "sigmoid": Sigmoid,
    "cosine": Cosine,
    "chi2": Chi2,
    "precomputed": Precomputed,
}


def kernel_of(kernel: Any, **parameters: Any) -> Kernel:
    """A kernel, from one, from its name in scikit-learn or here, or from a function of blocks.

    Parameters that a named kernel does not have are passed over, as scikit-learn does.
    """
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel):
        return Function(kernel)
    if not isinstance(kernel, str) or kernel not in NAMES:
        raise ValueError(
            f"kernel must be a rowcol kernel, a function or one of {', '.join(NAMES)}, got {shown(kernel)}"
        )
    make = NAMES[kernel]
    known = {field.name for field in fields(make)}  # type: ignore[arg-type]
    given = {name: value for name, value in parameters.items() if name in known and value is not None}
    return make(**given)
