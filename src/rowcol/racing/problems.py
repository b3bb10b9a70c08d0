"""Problems to race on: each is X, y and alpha with the truth known, so that an answer's error is a fact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg as sla

from .. import zoo

TARGETS = (1e-4, 1e-8)
MARGIN = 10.0  # a target is to be so many times what the truth itself may be off by


@dataclass(frozen=True, eq=False)
class Dataset:
    """A problem, its true answer, and the errors to reach.

    Attributes
    ----------
    group : str
        The class of problems it counts under.
    consistent : bool
        Whether X β = y holds to rounding; row methods without a least-squares part are only run there.
    gamma : float, optional
        Then it is kernel ridge regression with exp(−gamma ‖x − x'‖²), and the truth is its dual coefficients.
    """

    name: str
    X: Any
    y: np.ndarray
    alpha: float
    truth: np.ndarray
    targets: tuple[float, ...]
    group: str
    consistent: bool = False
    size: str = "full"
    intercept: bool = False
    gamma: float | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """What a reader of the table needs to know of it."""
        sparse = sp.issparse(self.X)
        order = "sparse" if sparse else "F" if self.X.flags.f_contiguous else "C"
        return {
            "dataset": self.name,
            "group": self.group,
            "shape": list(self.X.shape),
            "entries": int(self.X.nnz if sparse else self.X.size),
            "dtype": str(self.X.dtype),
            "order": order,
            "alpha": self.alpha,
            "intercept": self.intercept,
            "kernel": None if self.gamma is None else f"rbf, gamma {self.gamma:g}",
            "right_hand_sides": 1 if self.y.ndim == 1 else self.y.shape[1],
        }


# --- those that rowcol carries with it -------------------------------------------------------------------------------


def _from_zoo(case: Callable[..., zoo.Case], targets: tuple[float, ...] = TARGETS, **sizes: Any) -> Dataset:
    found = case(**sizes)
    consistent = "rk" in found.good and not found.alpha
    return Dataset("", found.X, found.y, found.alpha, found.answer, targets, found.kind, consistent, "small")


def kernel_ridge(n: int, d: int = 8, alpha: float = 1e-2) -> Dataset:
    """The dual coefficients first: y = Kα + λα, by the kernel matrix as NumPy writes it."""
    rng = np.random.default_rng(0)
    X, dual, gamma = rng.standard_normal((n, d)), rng.standard_normal(n), 0.5 / d
    square = (X * X).sum(axis=1)
    K = np.exp(-gamma * np.maximum(square[:, None] + square - 2 * X @ X.T, 0.0))
    return Dataset("", X, K @ dual + alpha * dual, alpha, dual, (1e-4,), "kernel ridge", size="small", gamma=gamma)


SMALL: dict[str, Callable[[], Dataset]] = {
    "tall, consistent": lambda: _from_zoo(zoo.tall_consistent, n=50_000, p=50),
    "tall, least squares": lambda: _from_zoo(zoo.tall_inconsistent, n=20_000, p=100),
    "wide, minimum norm": lambda: _from_zoo(zoo.wide, n=200, p=10_000),
    "a few large singular values": lambda: _from_zoo(zoo.flat_tail, n=1000),
    "sparse, consistent": lambda: _from_zoo(zoo.sparse_consistent, n=20_000, p=2_000),
    "texts, ridge": lambda: _from_zoo(zoo.text, (1e-2, 1e-4), n=2_000, p=5_000),
    "correlated, ridge": lambda: _from_zoo(zoo.correlated, n=10_000, p=100),
    "kernel ridge": lambda: kernel_ridge(1_500),
}


def small(name: str) -> Dataset:
    """One of the problems of `rowcol bench`, each a second or so for all contenders.

    Examples
    --------
    >>> from rowcol.racing.problems import small
    >>> small("wide, minimum norm").facts["shape"]
    [200, 10000]
    """
    return replace(SMALL[name](), name=name)


# --- one's own -------------------------------------------------------------------------------------------------------


def own(name: str, X: Any, y: np.ndarray, alpha: float = 0.0, size: str = "small") -> Dataset:
    """Least squares or ridge on X and y, the truth being LAPACK's (or, of a sparse X, that of LSQR at its tightest).

    How well it is known is found by asking twice, in two ways; targets that this cannot tell apart are left out.

    Parameters
    ----------
    name : str
    X : array or sparse array, (n, p)
    y : array, (n,)
    alpha : float
    size : str
        Whose budget of seconds it has.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> import numpy as np
    >>> from rowcol.racing.problems import own
    >>> own("mine", np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]]), np.array([1.0, 2.0, 3.0])).truth
    array([1., 1.])
    """
    first, second = (_by_lsqr if sp.issparse(X) else _by_lapack)(X, np.asarray(y, np.float64), float(alpha))
    norm = float(np.linalg.norm(first))
    off = float(np.linalg.norm(first - second)) / norm if norm > 0 else np.inf
    targets = tuple(target for target in TARGETS if target >= MARGIN * off)
    if not targets:
        raise ValueError(
            f"two ways to solve it differ by {off:.1g}: so ill-conditioned a system has no answer to verify errors by; "
            "give an alpha, or leave out columns that are nearly combinations of others"
        )
    return Dataset(name, X, y, float(alpha), first, targets, "your data", size=size)


def _by_lapack(X: np.ndarray, y: np.ndarray, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """By singular values, and by QR; a penalty is rows √λ I more."""
    exact = np.asarray(X, np.float64)
    if alpha:
        exact = np.vstack([exact, np.sqrt(alpha) * np.eye(X.shape[1])])
        y = np.concatenate([y, np.zeros(X.shape[1])])
    cut = max(exact.shape) * float(np.finfo(np.float64).eps)
    first, second = (scipy.linalg.lstsq(exact, y, cond=cut, lapack_driver=one)[0] for one in ("gelsd", "gelsy"))
    return first, second


def _by_lsqr(X: Any, y: np.ndarray, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """By LSQR and by LSMR, each as tightly as it goes."""
    options = {"damp": float(np.sqrt(alpha)), "atol": 0, "btol": 0, "conlim": 0}
    most = 20 * min(X.shape) + 100
    return sla.lsqr(X, y, iter_lim=most, **options)[0], sla.lsmr(X, y, maxiter=most, **options)[0]
