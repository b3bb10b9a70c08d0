"""What is said of a solve: the plan, what was learned on the way, the verdict. The words are those of Plan and Result.

Each function is given the logger of the module that decides, so that a line's name tells where it was decided.
"""

from __future__ import annotations

import logging
from typing import Any

from .choose import Plan
from .result import ConvergenceWarning, Result, Status, count_passes, meaning, warn


def announce(log: logging.Logger, plan: Plan) -> None:
    """The plan chosen, and the reason that decided."""
    if log.isEnabledFor(logging.INFO):
        size = "{:,} x {:,}".format(*plan.shape)
        log.info("plan for %s: %s, by %s: %s", size, plan.route, plan.side, plan.reasons[-1], stacklevel=2)


def learn(log: logging.Logger, learned: list[str], text: str) -> None:
    """Something was learned on the way, such as that another route is better: the Plan will tell it, too."""
    learned.append(text)
    log.info("%s", text, stacklevel=2)


def travelled(there: Any) -> tuple[int, int] | None:
    """Bytes that went to the workers of a place or a team so far, and came back; None where there are no workers."""
    crew = getattr(there, "crew", None)
    return None if crew is None else (crew.sent, crew.received)


def tell_travelled(log: logging.Logger, learned: list[str], there: Any, before: tuple[int, int] | None) -> None:
    """How many did since; nothing is said of what lies here."""
    now = travelled(there)
    if now is not None and before is not None:
        sent, received = (b - a for a, b in zip(before, now, strict=True))
        learn(log, learned, f"{sent / 1e6:,.3g} MB went to the workers, and {received / 1e6:,.3g} MB came back")


def conclude(log: logging.Logger, result: Result) -> None:
    """The verdict with its certificate; and a warning, where the tolerance was not reached and nobody stopped it."""
    missed = result.status not in (Status.CONVERGED, Status.CALLBACK)
    if not missed and not log.isEnabledFor(logging.INFO):
        return
    worst, passes = result.certificate, count_passes(result.passes)
    told = meaning(worst.kind, result.intercept is not None)
    reached = f"{told} = {worst.value:.1e} after {passes}, tol {result.tol:.0e}"
    log.info("%s by %s: %s", result.status.name, result.method, reached, stacklevel=2)
    if missed:
        warn(f"{reached}: {result.message}", ConvergenceWarning)
