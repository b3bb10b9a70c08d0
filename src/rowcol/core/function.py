"""The function that kernel ridge regression finds, and how far the exact one can be from it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .certify import UNIT
from .gram import Gram, cross, product
from .sides import points
from .sizes import diagonal, sizes2
from .threads import pooled

CHUNK = 4096  # points predicted at a time
MUCH = 200_000_000  # entries of K: predictions that take fewer are in double precision always


@dataclass(eq=False)
class KernelFunction:
    """f(x) = Σ_i α_i k(x_i, x) + b, from its points.

    Attributes
    ----------
    coefficients : ndarray, (q, n)
    intercept : ndarray, (q,)
    bound : ndarray, (q,)
        Of ‖f − f*‖ in the norm of the kernel's space.
    centers : ndarray, (m,), or None
        Which of the points fitted are the centres, where `n_centers` asked for some.
    """

    quick: Gram
    exact: Gram
    coefficients: np.ndarray
    intercept: np.ndarray
    bound: np.ndarray
    centre: np.ndarray | None  # (1, n) or (q, n) weights that sum to one, where there is an intercept
    centre2: np.ndarray  # ‖φ̄‖² of the centre
    blur: np.ndarray  # (q,) what rounding may have done to the intercept
    rough: bool  # single precision loses less than the tolerance allowed
    live: np.ndarray | None  # columns of a given matrix that counted, if not all
    single: bool
    jobs: int
    # (1, n) or (q, n) Λ: the variance of the noise, zero where a point does not count for a column; none with centres
    ridge: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    places: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))  # (n,) of these points among the user's
    centers: np.ndarray | None = None  # (m,) which of the points fitted are centres, where `n_centers` asked for some

    def __call__(self, X: Any, return_bound: bool = False) -> Any:
        """Values at the rows of X; with `return_bound`, also how far the exact solution's can be, at most."""
        X = points(X)
        if self.live is not None:
            X = X[:, self.live]  # of a given matrix, the columns of points that counted
        q = len(self.coefficients)
        if return_bound and not self.exact.kernel.definite:
            raise ValueError("there is no bound where the kernel is not positive definite: leave out return_bound")
        rows = self.coefficients
        if return_bound and self.centre is not None:
            rows = np.vstack([rows, self.centre])
        values, reach = np.empty((q, X.shape[0])), np.empty((len(self.centre2), X.shape[0]))
        top, off = np.empty(X.shape[0]), summed(self.exact)
        weighed = None if self.centre is None else (self.centre @ np.sqrt(sizes2(self.exact)))[:, None]
        with pooled(self.jobs) as pool:
            much = X.shape[0] * self.exact.shape[1] > MUCH
            g = replace(self.quick if much and self.rough and not return_bound else self.exact, pool=pool)
            for i in range(0, X.shape[0], CHUNK):
                some = cross(g, X[i : i + CHUNK])
                found = product(some, rows)
                values[:, i : i + CHUNK] = found[:q] + self.intercept[:, None]
                if return_bound:
                    at = diagonal(some)[None]
                    top[i : i + CHUNK] = np.sqrt(np.maximum(at[0], 0.0))
                    if self.centre is not None:
                        # near the centre little is left of these but their rounding
                        blurred = 2 * off * (top[i : i + CHUNK] + weighed) ** 2
                        at = at - 2 * found[q:] + self.centre2[:, None] + blurred
                    reach[:, i : i + CHUNK] = np.sqrt(np.maximum(at, 0.0))
        if not np.isfinite(values).all():
            raise ValueError("the kernel gives no finite number at some of these points: they are too far, or negative")
        out = values[0] if self.single else np.ascontiguousarray(values.T)
        if not return_bound:
            return out
        # and what rounding does to this very sum
        sizes = np.abs(self.coefficients) @ np.sqrt(sizes2(self.exact))
        rounding = off * sizes[:, None] * top + self.blur[:, None]
        rounding = rounding + 4 * UNIT * (np.abs(values) + np.abs(self.intercept)[:, None])
        bounds = self.bound[:, None] * reach + rounding
        return out, bounds[0] if self.single else np.ascontiguousarray(bounds.T)


def summed(g: Gram) -> float:
    """What entries and sums of them can be off, relatively: as in certify.py."""
    return g.error + UNIT * (g.chain + 3)
