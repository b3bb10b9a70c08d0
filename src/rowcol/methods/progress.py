"""What a person or a callback sees while a solve runs."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

import numpy as np

from ..core.certify import Certificate


@dataclass(frozen=True, eq=False)
class Progress:
    """What a callback sees after every round: a pass over the lines, or less; for extended Kaczmarz one over the
    columns and one over the rows, or less. A callback that returns something true stops the solve.

    Attributes
    ----------
    passes, steps, seconds
        Work done so far.
    x : ndarray
        The solution so far, shaped as in the Result; a copy.
    certificate : Certificate or None
        The latest exact one.

    Examples
    --------
    >>> import numpy as np, rowcol
    >>> def stop_after_three(progress):
    ...     return progress.passes >= 3
    >>> X = np.vander(np.linspace(0, 1, 20), 6)
    >>> result = rowcol.solve(X, X @ np.ones(6), method="rcd", callback=stop_after_three, random_state=0)
    >>> result.status.name, result.passes
    ('CALLBACK', 3.0)
    """

    passes: float
    steps: int
    seconds: float
    x: np.ndarray
    certificate: Certificate | None


class Bar:
    """One line on stderr, from the second second on."""

    def __init__(self, tol: float) -> None:
        self.tol, self.last = tol, 0.0
        self.first: tuple[float, float] | None = None  # seconds and estimate, when there first was one

    def show(self, passes: float, seconds: float, certificate: Certificate | None, estimate: float) -> None:
        """Say how far it got, and about how long it will be, at most five times a second."""
        if self.first is None and 0.0 < estimate < math.inf:
            self.first = seconds, estimate
        if seconds < 1.0 or seconds - self.last < 0.2:
            return
        self.last = seconds
        value = "not measured yet" if certificate is None else f"{certificate.value:.1e}"
        text = f"rowcol  {passes:8.2f} passes  certificate {value} -> {self.tol:.0e}  {seconds:6.1f} s"
        text += self._left(seconds, estimate)
        sys.stderr.write(f"\r{text:<78}")
        sys.stderr.flush()

    def _left(self, seconds: float, estimate: float) -> str:
        """If the estimate goes on falling as it did: the logarithm of it, in proportion to time; once it has halved."""
        if self.first is None or not 0.0 < estimate < 0.5 * self.first[1]:
            return ""
        to_go = math.log(estimate / self.tol) / math.log(self.first[1] / estimate)
        left = max((seconds - self.first[0]) * to_go, 0.0)
        return f", about {left:.0f} s left" if left < 1e5 else ""

    def close(self) -> None:
        """Leave the terminal's line clean."""
        if self.last:
            sys.stderr.write("\r" + " " * 78 + "\r")
            sys.stderr.flush()
