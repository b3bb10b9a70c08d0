"""What a person or a callback sees while a solve runs."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from ..core.certify import Certificate
from ..core.place import telling

WIDTH = 79  # characters of the line, at most: terminals have 80


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
    """One line on stderr, from the second second on, at most five times a second."""

    def __init__(self, tol: float, clock: Callable[[], float] = time.perf_counter) -> None:
        self.tol, self.clock, self.began = tol, clock, clock()
        self.before = 0.0  # seconds of a run that this one goes on with
        self.last = 0.0  # when it was written; zero: there is nothing to be wiped off
        self.first: tuple[float, float] | None = None  # seconds and estimate, when there first was one
        self.passes, self.rest = 0.0, self._rest(None, "")

    def show(self, passes: float, seconds: float, certificate: Certificate | None, estimate: float) -> None:
        """Say how far it got, and about how long it will be."""
        if self.first is None and 0.0 < estimate < math.inf:
            self.first = seconds, estimate
        self.before = max(self.before, seconds - (self.clock() - self.began))
        self.passes, self.rest = passes, self._rest(certificate, self._left(seconds, estimate))
        self._write("")

    def within(self, done: int, count: int) -> None:
        """Say how far a pass is: one of a round, for means before the first, or to measure a certificate."""
        self._write(f" +{100 * done // count}%" if done < count else "")

    def _write(self, more: str) -> None:
        seconds = self.before + self.clock() - self.began
        if seconds < 1.0 or seconds - self.last < 0.2:
            return
        self.last = seconds
        certificate, left = self.rest
        text = f"rowcol  {self.passes:8.2f} passes{more}  {certificate} {seconds:6.1f} s"
        text += left if len(text + left) <= WIDTH else ""
        sys.stderr.write(f"\r{text:<{WIDTH}}")
        sys.stderr.flush()

    def _rest(self, certificate: Certificate | None, left: str) -> tuple[str, str]:
        value = "not measured yet" if certificate is None else f"{certificate.value:.1e}"
        return f"certificate {value} -> {self.tol:.0e}", left

    def _left(self, seconds: float, estimate: float) -> str:
        """If the estimate goes on falling as it did: the logarithm of it, in proportion to time; once it has halved."""
        if self.first is None or not 0.0 < estimate < 0.5 * self.first[1]:
            return ""
        to_go = math.log(estimate / self.tol) / math.log(self.first[1] / estimate)
        left = max((seconds - self.first[0]) * to_go, 0.0)
        return f", ~{left:.0f} s left" if left < 1e5 else ""

    def close(self) -> None:
        """Leave the terminal's line clean."""
        if self.last:
            sys.stderr.write("\r" + " " * WIDTH + "\r")
            sys.stderr.flush()


@contextmanager
def watched(bar: Bar | None) -> Iterator[None]:
    """While this lasts a bar, if there is one, is told of every part of a pass; then its line is wiped off."""
    with telling(None if bar is None else bar.within):
        try:
            yield
        finally:
            if bar is not None:
                bar.close()
