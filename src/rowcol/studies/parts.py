"""What a chapter of the study is made of: curves beside their bounds, rows of a table, and claims that held or not."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..show.picture import Chapter, Curve, Picture, Table
from ..theory import Rate
from .runs import Course, Error, Trace, fitted_rate, looks_at, walked, within

LEAST = 1e-16
NAMES = {"rk": "rows (RK)", "rcd": "columns (RCD)", "rek": "both (REK)", "kernel": "points (kernel)"}
HEAD = ["method", "theorem", "a step: bound", "measured", "a pass: bound", "measured"]


class Claim(NamedTuple):
    """What the paper (or its correction) says, what was measured, and whether they agree."""

    chapter: str
    says: str
    predicted: str
    measured: str
    holds: bool


@dataclass
class Part:
    """A chapter in the making."""

    title: str
    words: list[str]
    seeds: int
    seed: int = 0
    pictures: list[Picture] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    rates: list[list[str]] = field(default_factory=list)
    marks: list[bool | None] = field(default_factory=list)

    def claim(self, says: str, predicted: str, measured: str, holds: bool) -> None:
        """Put it on record."""
        self.claims.append(Claim(self.title, says, predicted, measured, bool(holds)))

    def run(self, on: Course, error: Error, passes: float, count: int = 48) -> Trace:
        """Walk this chapter's seeds."""
        return walked(on, looks_at(passes, on, count), error, self.seeds, self.seed)

    def beside(self, trace: Trace, rate: Rate, name: str, family: str) -> list[Curve]:
        """A measured curve, its bound, their row in the table of rates, and the claim that the bound holds."""
        start = trace.mean[0]
        bound = start * rate.bound(trace.steps)
        fitted, holds = fitted_rate(trace), within(trace, bound)
        lines = rate.lines
        self.rates.append(
            [
                name,
                rate.theorem,
                f"{rate.step:.5f}",
                _number(fitted, ".5f"),
                f"{rate.per_pass:.3g}",
                _number(fitted ** (lines / 2), ".3g"),
            ]
        )
        self.marks.append(holds)
        self.claim(
            f"{name}: the mean falls no slower than {rate.theorem}",
            f"{rate.step:.5f} a step",
            _number(fitted, ".5f"),
            holds,
        )
        dashed = Curve(
            f"{name}, bound {rate.theorem}", trace.passes, drawn(np.sqrt(bound / start)), style="dashed", family=family
        )
        return [curve(trace, name, family), dashed]

    def chapter(self) -> Chapter:
        """As it is shown."""
        tables = list(self.tables)
        if self.rates:
            tables.insert(0, Table("Rates, predicted and measured", HEAD, self.rates, self.marks))
        says = [[c.says, c.predicted, c.measured] for c in self.claims]
        tables.append(
            Table(
                "What was claimed, and what was found",
                ["claim", "predicted", "measured"],
                says,
                [c.holds for c in self.claims],
            )
        )
        return Chapter(self.title, self.words, self.pictures, tables)


def curve(trace: Trace, name: str, family: str = "") -> Curve:
    """Median over seeds and the band of eight in ten, of the error relative to the start, against passes."""
    low, middle, high = np.sqrt(np.quantile(trace.errors, [0.1, 0.5, 0.9], axis=0) / max(trace.mean[0], 1e-300))
    return Curve(name, trace.passes, drawn(middle), drawn(low), drawn(high), family=family or name)


def drawn(errors: np.ndarray) -> np.ndarray:
    """Relative errors worth a look: below LEAST there is only rounding, or what a bound still promises."""
    return np.where(errors >= LEAST, errors, np.nan)


def _number(value: float, form: str) -> str:
    return format(value, form) if np.isfinite(value) else "does not fall"
