"""When to look, and when to stop. Free figures decide when to look; one exact pass decides.

Every step tells, at no cost, its slope g_i and what it gained, |step|²(‖a_i‖² + λ_i). Their sums over a round estimate
the certificate (`estimate`, in loop.py); each exact look corrects the estimate by a factor for the next.

Steps that fit an inconsistent system never die out. The gains of a convergent row method add up to ‖β0 − β*‖²
(Pythagoras, (23)): over doubling stretches of steps their mean falls by half or more, while on a plateau it stays. Slow
systems can look alike for long; so before rows give up, a few conjugate-gradient steps ask whether any β fits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..core.certify import Certificate
from .result import Status


class Stop(NamedTuple):
    """The limits of one solve."""

    tol: float
    max_passes: float
    max_seconds: float


@dataclass
class Watch:
    """What is known, for one right-hand side, without looking."""

    estimate: float = math.inf  # of the certificate, from the last round
    factor: float = 1.0  # what the last look found, over what was estimated then
    looked: float = 0.0  # passes at that time
    suspect: bool = False  # the look now due is for a suspected plateau
    stuck_at: float = math.nan  # the residual norm at the first such look
    next_doubt: float = 0.0  # passes before which a plateau is not suspected again
    rounds: list[tuple[int, float]] = field(default_factory=list)  # steps and energy gained, round by round
    flat_at: float = 0.0  # passes at which flatness was last judged


def due(watch: Watch, stop: Stop, passes: float, patience: float) -> bool:
    """Is an exact look worth its pass now? `patience`: passes before a plateau can be suspected."""
    watch.suspect = False
    since = passes - watch.looked
    # While a look costs more than all the steps so far, a few more steps to be sure are cheap.
    aim = 0.1 if passes < 2 else 0.5
    if watch.factor * watch.estimate <= aim * stop.tol and since >= 0.1 * watch.looked:
        return True
    if passes >= max(patience, 1.1 * watch.flat_at):
        watch.flat_at = passes
        watch.suspect = passes >= watch.next_doubt and _flat(watch.rounds)
        if watch.suspect:
            watch.next_doubt = 1.5 * passes
            return True
    return since >= max(64.0, watch.looked)


def _flat(rounds: list[tuple[int, float]]) -> bool:
    """Was the mean gain of the last half of all steps three quarters or more of that of the quarter before?"""
    steps, gains = np.array(rounds).T
    ends = np.cumsum(steps)
    late, early = ends > ends[-1] / 2, (ends > ends[-1] / 4) & (ends <= ends[-1] / 2)
    if not early.any() or gains[early].sum() == 0:
        return False
    return bool(gains[late].sum() / steps[late].sum() > 0.75 * gains[early].sum() / steps[early].sum())


def verdict(
    watch: Watch, stop: Stop, passes: float, found: Certificate, hopeless: Callable[[], bool] | None
) -> Status | None:
    """What an exact look says: done, hopeless, or (None) go on. `hopeless` asks, at some cost, if no β fits."""
    watch.looked = passes
    if 0 < watch.estimate < math.inf:
        watch.factor = found.value / watch.estimate
    if found.value <= stop.tol:
        return Status.CONVERGED
    suspect, watch.suspect = watch.suspect, False
    if found.exhausted and (suspect or found.rounding >= stop.tol):
        return Status.ROUNDING
    if suspect and hopeless is not None:
        if found.residual_norm >= 0.7 * watch.stuck_at:  # False while stuck_at is NaN
            if hopeless():
                return Status.PLATEAU
            watch.next_doubt = 4 * passes
        else:
            watch.stuck_at = found.residual_norm
    return None
