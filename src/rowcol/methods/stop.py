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
    track: list[tuple[float, float]] = field(default_factory=list)  # passes and estimate, round by round
    rate: float = math.nan  # what the estimate is multiplied by in a pass, of late
    doubts: int = 0  # rounds in a row that another method was predicted to be quicker


def due(watch: Watch, stop: Stop, passes: float, patience: float, aim: float = 0.5) -> bool:
    """Is an exact look worth its pass now?

    `patience`: passes before a plateau can be suspected; `aim`: the share of tol an estimate must be below, as it errs.
    """
    watch.suspect = False
    if watch.estimate == 0.0:
        return True
    since = passes - watch.looked
    # While a look costs more than all the steps so far, a few more steps to be sure are cheap.
    aim = min(aim, 0.1) if passes < 2 and aim <= 0.5 else aim
    if watch.factor * watch.estimate <= aim * stop.tol and since >= min(0.1 * watch.looked, 1.0):
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


def slow(watch: Watch, stop: Stop, otherwise: float) -> bool:
    """Will this method take more passes from here than another would take in all?

    Asked after an eighth of what the other would take, and six rounds: estimates need some to mean something.
    """
    if otherwise == math.inf or len(watch.track) < 6 or watch.track[-1][0] < max(1.5, otherwise / 8):
        return False
    passes, at = np.array(watch.track).T
    late = passes > passes[-1] / 2
    # the best of either half, as estimates go up and down: what came of the second half, a pass
    if late.all() or not (np.isfinite(at).all() and (at > 0).all()):
        return False
    best, before = float(at[late].min()), float(at[~late].min())
    watch.rate = (best / before) ** (1 / (passes[-1] - passes[~late][-1]))
    to_go = math.log(max(watch.factor * best / (0.5 * stop.tol), 1.0))
    left = to_go / -math.log(watch.rate) if watch.rate < 1 else math.inf
    watch.doubts = watch.doubts + 1 if left > otherwise else 0
    return watch.doubts >= 2


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
