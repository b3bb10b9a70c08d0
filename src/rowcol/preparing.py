"""`prepare`: what depends on X alone is kept, and any number of right-hand sides solved."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from .asking import how_to, plan_for, preconditioner_of
from .core.problem import matrix, posed, problem
from .methods.choose import Plan
from .methods.result import Result
from .methods.way import Kept
from .solving import result_for


class Prepared:
    """A matrix made ready: see `prepare`.

    Attributes
    ----------
    plan : Plan
        What will be done for every right-hand side, and why.
    bytes : int
        Memory kept.
    """

    def __init__(self, X: Any, alpha: Any, sample_weight: Any, preconditioner: Any, options: dict[str, Any]) -> None:
        X, copied = matrix(X)
        self._asked = posed(X, copied, np.zeros(X.shape[0]), alpha, sample_weight)
        self._weight = sample_weight if sample_weight is None else np.array(sample_weight)
        self._alpha, self._options = alpha, options
        self._kept = Kept(precondition=preconditioner_of(preconditioner, self._asked), often=True)
        self.plan: Plan = plan_for(self._asked, self._how(1e-6, None, None, None, False), self._kept)

    def _how(self, tol: Any, passes: Any, seconds: Any, callback: Any, progress: Any) -> Any:
        o = self._options
        how = how_to(
            o["method"], tol, passes, seconds, "auto", callback, progress, o["memory"], o["n_jobs"], o["random_state"]
        )
        how.many_y = True
        return how

    def solve(
        self,
        y: Any,
        *,
        tol: float = 1e-6,
        max_passes: float | None = None,
        max_seconds: float | None = None,
        x0: Any = None,
        callback: Any = None,
        progress: bool | None = None,
    ) -> Result:
        """Solve for one right-hand side or several; parameters as of `rowcol.solve`."""
        began = time.perf_counter()
        how = self._how(tol, max_passes, max_seconds, callback, progress)
        asked = problem(self._asked.X, y, self._alpha, self._weight)
        return result_for(asked, how, x0, self._kept, began)

    @property
    def bytes(self) -> int:
        """Memory kept."""
        return self._kept.bytes

    def __repr__(self) -> str:
        n, p = self._asked.X.shape
        held = f"{self.bytes / 1e6:,.1f} MB kept"
        return f"rowcol.Prepared({n:,} x {p:,}, alpha={self._alpha:g}, {self.plan.route}, {held})"


def prepare(
    X: Any,
    *,
    alpha: float = 0.0,
    sample_weight: Any = None,
    method: str = "auto",
    preconditioner: Any = None,
    memory: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> Prepared:
    """Make X ready for many right-hand sides: factors, sketches and scaled copies are made once, when first needed.

    X is not copied: do not change it while it is prepared.

    Parameters
    ----------
    X, alpha, sample_weight, method, preconditioner, memory, n_jobs, random_state
        As for `solve`. "auto" prefers a factor of the smaller side where the memory allows.

    Returns
    -------
    Prepared
        Its `solve(y)` gives a Result.

    Examples
    --------
    >>> import numpy as np, rowcol
    >>> rng = np.random.default_rng(0)
    >>> ready = rowcol.prepare(rng.standard_normal((3000, 200)), alpha=1.0)
    >>> [ready.solve(rng.standard_normal(3000)).success for _ in range(3)]
    [True, True, True]
    >>> ready
    rowcol.Prepared(3,000 x 200, alpha=1, direct, 0.3 MB kept)
    """
    options = {"method": method, "memory": memory, "n_jobs": n_jobs, "random_state": random_state}
    return Prepared(X, alpha, sample_weight, preconditioner, options)
