"""`study`: the paper run from end to end, or the same questions asked of one's own system."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..core.problem import real_number
from ..show.picture import Book, Chapter, Curve, Table
from .own import own
from .parts import Claim, Part
from .penalties import kernel, ridge
from .settings import consistent, gradient_steps, inconsistent, rank_deficient, underdetermined
from .slips import slips

PARTS: dict[str, Callable[[int, int], Part]] = {
    "consistent": consistent,
    "inconsistent": inconsistent,
    "underdetermined": underdetermined,
    "rank-deficient": rank_deficient,
    "ridge": ridge,
    "kernel": kernel,
    "gradient-steps": gradient_steps,
    "slips": slips,
}
SEEDS, QUICK_SEEDS = 100, 12


@dataclass(eq=False, repr=False)
class Study:
    """What a study found.

    Attributes
    ----------
    title : str
    parts : list
        Its chapters: pictures, tables and claims.
    seeds : int
        Over which each curve is taken.
    seconds : float

    Examples
    --------
    >>> import rowcol
    >>> found = rowcol.study(parts=["kernel"], seeds=5)
    >>> found.ok, len(found.claims)
    (True, 6)
    """

    title: str
    parts: list[Part]
    seeds: int
    seconds: float
    summary: list[str] = field(default_factory=list)

    @property
    def claims(self) -> list[Claim]:
        """All that was claimed, and what was found."""
        return [claim for part in self.parts for claim in part.claims]

    @property
    def ok(self) -> bool:
        """Did every claim hold?"""
        return all(claim.holds for claim in self.claims)

    @property
    def chapters(self) -> list[Chapter]:
        """As they are shown."""
        return [part.chapter() for part in self.parts]

    def book(self) -> Book:
        """All of it, for a report."""
        held = sum(claim.holds for claim in self.claims)
        summary = [*self.summary, f"{held} of {len(self.claims)} claims held, over {self.seeds} seeds each."]
        rows = [[part.title, f"{sum(c.holds for c in part.claims)} of {len(part.claims)}"] for part in self.parts]
        marks: list[bool | None] = [all(c.holds for c in part.claims) if part.claims else None for part in self.parts]
        first = Chapter("At a glance", [], [], [Table("Claims that held", ["chapter", "held"], rows, marks)])
        from .. import __version__

        made = f"rowcol {__version__}, {self.seconds:.0f} s, NumPy {np.__version__}"
        return Book(self.title, summary, [first, *self.chapters], made)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain lists and numbers, for JSON."""
        return {
            "title": self.title,
            "seeds": self.seeds,
            "seconds": self.seconds,
            "claims": [claim._asdict() for claim in self.claims],
            "chapters": [
                {
                    "title": chapter.title,
                    "tables": [{"title": t.title, "head": t.head, "rows": t.rows} for t in chapter.tables],
                    "pictures": [{"title": p.title, "curves": [_plain(c) for c in p.curves]} for p in chapter.pictures],
                }
                for chapter in self.chapters
            ],
        }

    def __repr__(self) -> str:
        lines = [f"rowcol.Study: {self.title}, {self.seeds} seeds, {self.seconds:.1f} s"]
        for part in self.parts:
            held = sum(claim.holds for claim in part.claims)
            lines.append(f"  {held:>2} of {len(part.claims):>2}  {part.title}")
            lines += [
                f"            not so: {c.says}: {c.predicted}, measured {c.measured}"
                for c in part.claims
                if not c.holds
            ]
        return "\n".join(lines)


def _plain(curve: Curve) -> dict[str, Any]:
    drawn = {k: getattr(curve, k) for k in ("x", "y", "low", "high")}
    kept = {k: [None if not np.isfinite(v) else float(v) for v in a] for k, a in drawn.items() if a is not None}
    return {"name": curve.name, "style": curve.style, **kept}


def study(
    X: Any = None,
    y: Any = None,
    *,
    quick: bool = False,
    seeds: int | None = None,
    parts: Any = None,
    random_state: int = 0,
    progress: Any = False,
    name: str = "X",
) -> Study:
    """Run the paper: every setting over many seeds, each measured curve beside its bound; or the same for your own X.

    Parameters
    ----------
    X, y : optional
        Your own system. Without y, one that fits is made. Without X, the paper's settings.
    quick : bool
        12 seeds instead of 100.
    seeds : int, optional
    parts : list of str, optional
        Some of "consistent", "inconsistent", "underdetermined", "rank-deficient", "ridge", "kernel", "gradient-steps"
        and "slips".
    random_state : int
        Of the systems and of all picks.
    progress : bool or callable
        True tells on the terminal what is being run; or called with (done, all, title).
    name : str
        What to call X in the report.

    Returns
    -------
    Study
        For `rowcol.report`, `rowcol.plot`, or to read.

    Examples
    --------
    >>> import numpy as np, rowcol
    >>> found = rowcol.study(parts=["underdetermined"], seeds=5)
    >>> [claim.measured for claim in found.claims if claim.says.startswith("but do not")][0] > "0.1"
    True
    >>> X = np.random.default_rng(0).standard_normal((60, 10))
    >>> print(rowcol.study(X, seeds=5).ok)
    True
    """
    count = (QUICK_SEEDS if quick else SEEDS) if seeds is None else int(real_number(seeds, "seeds", at_least=2))
    if not isinstance(random_state, (int, np.integer)) or isinstance(random_state, bool) or random_state < 0:
        raise ValueError(f"random_state must be a non-negative integer, got {random_state!r}")
    chosen = list(PARTS) if parts is None else [parts] if isinstance(parts, str) else list(parts)
    for one in chosen:
        if one not in PARTS:
            raise ValueError(f"parts must be some of {', '.join(PARTS)}; got {one!r}")
    if X is None and y is not None:
        raise ValueError("y was given without X")
    tell = progress if callable(progress) else _told if progress else lambda done, all_, title: None
    start = time.perf_counter()
    if X is not None:
        tell(0, 1, f"rows, columns and both on {name}")
        made = own(X, y, count, int(random_state), name)
        tell(1, 1, "done")
        words = [f"What the paper's theory says of {name}, and what its methods do on it."]
        return Study(f"Rows or columns: {name}", made, count, time.perf_counter() - start, words)
    made = []
    for k, one in enumerate(chosen):
        tell(k, len(chosen), one)
        made.append(PARTS[one](count, int(random_state)))
    tell(len(chosen), len(chosen), "done")
    words = [
        "Randomized Kaczmarz goes by rows, randomized coordinate descent by columns. They are one method, with "
        "opposite fates: where no β fits, columns reach least squares and rows do not; where many fit, rows reach "
        "the shortest and columns do not. This is A. Ramdas' “Rows vs Columns for Linear Systems of Equations”, run.",
    ]
    return Study("Rows or columns: the paper, run", made, count, time.perf_counter() - start, words)


def _told(done: int, all_: int, title: str) -> None:
    print(f"{done} of {all_}: {title}", file=sys.stderr, flush=True)
