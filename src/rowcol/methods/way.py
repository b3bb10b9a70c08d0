"""What the routes of one solve share, and what is kept of X for the next."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..core.problem import Problem
from .conjugate import Precondition
from .factor import Factor
from .gathered import Gathered
from .given import held_by
from .log import Log
from .progress import Bar, Progress
from .sketch import Sketched
from .stop import Stop


@dataclass
class Kept:
    """What can be used again for other right-hand sides of the same X."""

    scaled: Any = None  # √w X
    shifted: dict[bool, Any] = field(default_factory=dict)  # X less its means, for steps on lines; True: without √w
    factor: Factor | None = None
    sketch: dict[str, Sketched] = field(default_factory=dict)
    precondition: Precondition | None = None  # the user's own
    often: bool = (
        False  # right-hand sides are to come, whose tolerances are not known: factors are made as well as can be
    )

    @property
    def bytes(self) -> int:
        """Memory kept."""
        held = sum(held_by(a) for a in (self.scaled, *self.shifted.values()) if a is not None)
        return held + (0 if self.factor is None else self.factor.bytes) + sum(f.bytes for f in self.sketch.values())


@dataclass
class Way:
    """What every route of one solve shares."""

    asked: Problem
    sampler: Any
    stop: Stop
    seed: np.random.SeedSequence
    memory: int
    callback: Callable[[Progress], object] | None
    bar: Bar | None
    pool: Executor | None
    jobs: int
    kept: Kept
    auto: bool
    learned: list[str] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)
    row_space: bool = True  # is the β of this route in the row space, by construction?
    proven: bool = True  # and those of all routes by which a right-hand side converged?
    factor: Factor | None = None  # of all of X, where one was made
    column2: np.ndarray | None = None  # ‖W^½X_j‖², once known
    compiling: float = 0.0  # seconds, of the products of this route
    log: Log | None = None
    gathered: Gathered | None = None  # sums for a factor, where the means were found beside them
    cut: BaseException | None = None  # what ended it before its first round

    def __post_init__(self) -> None:
        if self.asked.shift is not None and self.asked.shift.column2 is not None:
            self.column2 = self.asked.shift.column2.copy()
