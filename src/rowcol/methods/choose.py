"""Rows or columns? Which route to take, why, and where to go when it turns out slow. Plans are asked before running.

Costs are counted in passes over X, never in seconds, so that the same call takes the same way on every machine. What
they rest on is measured: docs/rows-or-columns.md has the table, docs/benchmarks.md the times.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from ..core.place import Place
from ..core.problem import Problem, shared
from ..core.view import size
from .costs import bytes_of, copies_of, gram_passes, sketch_passes
from .factor import SMALL
from .probe import Probe, probe
from .result import count_passes
from .rivals import rivals

ROUTES = ("rk", "rcd", "rek", "sgs-cg", "subset", "blocks", "cg", "direct", "sketch")
SIDE_OF = {"rk": "rows", "rcd": "columns", "rek": "both", "subset": "rows"}
LINE_OF = {"rows": "rk", "columns": "rcd"}
SWEEPS = 200.0  # passes: sweeps that may take more are not tried
CHEAP = 11.0  # passes: conjugate gradients take as long on the best of columns, looks and start included


@dataclass(frozen=True, repr=False)
class Plan:
    """What will be done, why, and what it will take; on a Result, what was learned on the way too.

    Attributes
    ----------
    route : str
        The method: "rk", "rcd", "rek", "sgs-cg", "subset", "blocks", "cg", "direct" or "sketch".
    side : str
        "rows", "columns" or "both", or for a kernel "points" or "centres": whose unknowns the method steps on.
    reasons : tuple of str
        Why, in sentences that name the paper's section or equation where it has one.
    then : tuple of str
        Routes it may hand over to, with what it has, when it turns out slow or stuck.
    rate : float or None
        What the error is multiplied by in a pass, as predicted; None where nothing cheap says.
    passes : float or None
        Passes over X that takes, to the tolerance.
    bytes : int
        Memory needed beside X and y, at its peak, handing over included; for a kernel, which hands over only where it
        is stuck, without that.
    copies : int
        Of these, bytes of converted or transposed copies of X.
    shape, alpha, tol, memory
        What was asked; `memory` is the budget in bytes.
    learned : tuple of str
        What running it taught.
    seconds : float or None
        A rough guess, for kernels; nothing is decided by it.
    bounded : bool
        Were there bounds?

    Examples
    --------
    >>> import numpy as np, rowcol
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((20_000, 40))
    >>> plan = rowcol.plan(X, X @ np.ones(40))
    >>> plan.route, plan.side
    ('subset', 'rows')
    >>> print(plan.reasons[-1])  # doctest: +ELLIPSIS
    80 of 20,000 rows sampled: consistent to 1e-1...; one pass over the rest certifies it
    """

    route: str
    side: str
    reasons: tuple[str, ...]
    then: tuple[str, ...]
    rate: float | None
    passes: float | None
    bytes: int
    copies: int
    shape: tuple[int, int]
    alpha: float
    tol: float
    memory: int
    learned: tuple[str, ...] = ()
    seconds: float | None = None
    bounded: bool = False

    def __repr__(self) -> str:
        what = "ridge" if self.alpha > 0 else "least squares" if self.bounded else "least squares or minimum norm"
        what += " within bounds" if self.bounded else ""
        what = "kernel ridge" if self.side in ("points", "centres") else what
        n, p = self.shape
        lines = [f"rowcol.Plan for {n:,} x {p:,}, {what}, tol {self.tol:.0e}: {self.route}, by {self.side}"]
        lines += [f"  because     {reason}" for reason in self.reasons]
        if self.rate is not None:
            lines.append(f"  rate        the error is multiplied by about {self.rate:.2g} a pass")
        if self.passes is not None:
            over = {"points": "the kernel matrix", "centres": "the kernel values of points and centres"}
            lines.append(f"  work        about {count_passes(self.passes)} over {over.get(self.side, 'X')}")
        if self.seconds is not None:
            lines.append(f"  time        about {self.seconds:.2g} s, from the speed of common machines")
        lines.append(f"  memory      {_in_words(self.bytes)} beside X and y, of a budget of {_in_words(self.memory)}")
        lines.append(f"  copies of X {_in_words(self.copies) if self.copies else 'none'}")
        if self.then:
            lines.append(f"  if slow     hands over to {', then '.join(self.then)}")
        lines += [f"  learned     {what}" for what in self.learned]
        return "\n".join(lines)


def _in_words(number: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000 or unit == "GB":
            return f"{number:.3g} {unit}" if number < 1000 else f"{number:,.0f} {unit}"
        number /= 1000
    raise AssertionError


# --- the choice --------------------------------------------------------------------------------------------------


def choose(asked: Problem, tol: float, memory: int, seed: np.random.SeedSequence, many_y: bool = False) -> Choice:
    """The route for a Problem. `many_y`: more right-hand sides are to come, so factors pay."""
    X = asked.X
    n, p = X.shape
    (q, _), m = asked.y.shape, min(n, p)
    shape = "tall" if n >= p else "wide"
    reasons: list[str] = []
    sample = None
    if isinstance(X, Place):
        return _elsewhere(asked, memory, reasons)
    if isinstance(X, LinearOperator):
        reasons.append("X is an operator: it multiplies, but has no rows or columns to step on")
        return Choice("cg", "columns", reasons)
    reasons.append(_regime(n, p, asked.alpha))
    rates = rivals(asked, tol) if asked.alpha > 0 else None
    if rates is not None:
        reasons.append(rates.told())
    gram_fits = bytes_of("direct", asked, copies_of("direct", asked)) <= memory
    base = shared(asked)
    cost = gram_passes(X, q if base is None else int(base.max()) + 1)  # many λ of one y share the passes
    if asked.each is not None:
        cost += 0.15 * m**3 / size(X)  # all eigenvalues
    if n * p * m <= SMALL and gram_fits:
        reasons.append(f"it is small: a factorization by QR costs less than asking what else would do ({n} x {p})")
        return Choice("direct", _short_side(n, p), reasons)
    if many_y and gram_fits:
        reasons.append(f"many right-hand sides are to come: one factor of {m} x {m} serves them all")
        return Choice("direct", _short_side(n, p), reasons)
    dense, plain = not sp.issparse(X), asked.alpha == 0
    if plain and dense and not many_y and n >= 8 * p and 0.25 * p * p <= n and bytes_of("subset", asked, 0) <= memory:
        sample = probe(asked, seed, 2 * p)
        told = f"{len(sample.rows):,} of {n:,} rows sampled: "
        if sample.fits(tol):
            worst = max(float(sample.misfit.max()), 1e-16)
            reasons.append(f"{told}consistent to {_power(worst)}; one pass over the rest certifies it")
            return Choice("subset", "rows", reasons, sample)
        reasons.append(
            f"{told}they contradict each other by {float(sample.misfit.max()):.1g} of ‖y‖: not RK (Section 4)"
        )
    if gram_fits and cost <= CHEAP:
        reasons.append(f"the {m} x {m} Gram matrix costs about {count_passes(cost)}: fewer than steps would take")
        return Choice("direct", _short_side(n, p), reasons, sample)
    if gram_fits and sample is not None and sample.factor.rank < p:
        reasons.append(f"the sample has rank {sample.factor.rank} of {p}: the shortest solution needs the eigenvalues")
        return Choice("direct", _short_side(n, p), reasons, sample)
    if gram_fits and sample is not None and sample.factor.condition > 100 * math.sqrt(p):  # in the 1-norm
        reasons.append(
            f"the sample's condition is {sample.factor.condition:.0e}: conjugate gradients would take more than the "
            f"{count_passes(cost)} of a Gram matrix"
        )
        return Choice("direct", _short_side(n, p), reasons, sample)
    by_rows = X.format == "csr" if not dense else X.flags.c_contiguous
    if rates is not None and not dense and asked.each is None and not many_y:
        by_rows, side = X.format == "csr", rates.settled(n, p)
        work = rates.passes[0 if side == "rows" else 1] if side else max(rates.passes)
        lies = by_rows == (side == "rows") if side else True
        fits = all(bytes_of(name, asked, copies_of(name, asked)) <= memory for name in ("rk", "rcd"))
        if lies and work <= SWEEPS and side is not None:
            reasons.append(f"{side} lie in memory one after the other, and should take few sweeps")
            return Choice(LINE_OF[side], side, reasons)
        if work <= SWEEPS and side is None and fits:
            reasons.append("there are about as many rows as columns: a pass of each is raced, and the better goes on")
            first, second = ("rk", "rcd") if by_rows else ("rcd", "rk")
            return Choice(first, SIDE_OF[first], reasons, rival=second)
        if not lies and work <= SWEEPS:
            reasons.append(f"{side} lie across the memory, and would take a copy")
    lines = asked.shift is None  # with an intercept, rows and columns are not what is stored
    if lines and plain and not dense and (by_rows or copies_of("rk", asked) <= memory / 2):
        reasons.append("rows of a sparse X touch few unknowns, and a pass or two tells whether they converge (25)")
        return Choice("rk", "rows", reasons)
    if lines and dense and plain and by_rows and sample is None and not many_y and n >= 2 * p:
        reasons.append(
            f"too many unknowns for a sampled QR; rows reach {p} unknowns in a few passes if consistent (25)"
        )
        return Choice("rk", "rows", reasons)
    reasons.append(
        f"conjugate gradients on the {shape} side's {m} unknowns take one or two passes a step, at the memory's speed"
    )
    return Choice("cg", _short_side(n, p), reasons, sample)


def _elsewhere(asked: Problem, memory: int, reasons: list[str]) -> Choice:
    """The route for an X in parts: a pass is what is dear, and two are enough for a Gram matrix and its certificate."""
    n, p = asked.X.shape
    reasons.append(_regime(n, p, asked.alpha))
    parts = f"{asked.X.count:,} part{'s' * (asked.X.count != 1)}"
    reasons.append(f"X lies elsewhere, in {parts} of rows: a pass reads it, or asks all who have it")
    need = bytes_of("direct", asked, 0)
    if n >= p and need <= max(memory, bytes_of("cg", asked, 0)):
        fits = "fits in memory" if need <= memory else "takes less memory than steps would"
        reasons.append(f"the {p} x {p} Gram matrix {fits}, and takes one pass")
        return Choice("direct", "columns", reasons)
    if n >= p:
        reasons.append(f"the {p} x {p} Gram matrix does not fit in memory; conjugate gradients take a pass a step")
    else:
        reasons.append("conjugate gradients by rows stay in the row space; they take two passes a step")
    return Choice("cg", _short_side(n, p), reasons)


@dataclass
class Choice:
    """A route, the side it walks and why; and the sample that said so, to start from."""

    route: str
    side: str
    reasons: list[str]
    sample: Probe | None = None
    rival: str | None = None  # a route of the other side, to be raced for a pass


def after(
    route: str, side: str, asked: Problem, memory: int, falling: bool, tried: list[str]
) -> tuple[str, str] | None:
    """Where to go on, warm, when a route was slow (`falling`) or stuck; None if nowhere."""
    X = asked.X
    n, p = X.shape
    if asked.bounds is not None:
        return None
    operator = isinstance(X, LinearOperator)
    if asked.each is not None and not isinstance(X, Place):  # many λ share their passes here and in cg only
        need = bytes_of("direct", asked, copies_of("direct", asked))
        here = f"direct {_short_side(n, p)}"
        return ("direct", _short_side(n, p)) if not operator and here not in tried and need <= memory else None
    for name, where in _options(route, side, asked, falling):
        label = f"{name} {where}"
        if label in tried or (name == "rek" and (operator or asked.alpha > 0 or asked.shift is not None)):
            continue
        if name == "cg" or bytes_of(name, asked, copies_of(name, asked)) <= memory:
            return name, where
    return None


def _options(route: str, side: str, asked: Problem, falling: bool) -> list[tuple[str, str]]:
    """What could be next, the best first."""
    X = asked.X
    n, p = X.shape
    # rows may have stopped because no β fits: by columns, least squares are reached whatever the shape
    safe = asked.alpha == 0 and not falling
    if isinstance(X, Place):  # whose Gram matrix does not fit, or that of its rows, which takes all of them at once
        if side == "rows" and safe:
            return [("cg", "columns")]
        return [("sketch", side)] if route == "cg" and asked.each is None else []
    options: list[tuple[str, str]] = []
    if route == "rk" and falling and sp.issparse(X) and asked.shift is None and asked.alpha == 0:
        options.append(("sgs-cg", "rows"))
    if route in ("rk", "rcd", "sgs-cg", "subset"):
        options.append(("cg", "columns" if safe else _short_side(n, p)))
    if not isinstance(X, LinearOperator):
        small = ("direct", _short_side(n, p)), ("sketch", _short_side(n, p))
        options += small if gram_passes(X, len(asked.y)) <= sketch_passes(X) else small[::-1]
    return [*options, ("cg", "columns"), ("rek", "both")]


def _regime(n: int, p: int, alpha: float) -> str:
    if alpha > 0:
        side = (
            "rows are fewer (Section 6, (27)-(29): ridge by rows)"
            if n < p
            else "columns are fewer (Section 6, (32)-(34): ridge by columns)"
        )
        return f"alpha > 0: one solution whatever the rank, and {side}"
    if n < p:
        return "X is wide: many solutions, and only rows stay in the row space, where the shortest is (Section 5)"
    return "X is tall: one solution if consistent (Section 3), least squares if not (Section 4)"


def _short_side(n: int, p: int) -> str:
    return "rows" if n < p else "columns"


def _power(value: float) -> str:
    return f"1e{math.ceil(math.log10(value))}"


def planned(
    asked: Problem,
    choice: Choice,
    tol: float,
    memory: int,
    then: tuple[str, ...],
    rate: float | None,
    passes: float | None,
) -> Plan:
    """The Plan of a Choice, with what it takes."""
    first = [choice.route] if choice.rival is None else [choice.route, choice.rival]
    copies = asked.copied + sum(copies_of(name, asked) for name in first)
    need = asked.copied + max(bytes_of(name, asked, copies_of(name, asked)) for name in (*first, *then))
    return Plan(
        choice.route,
        choice.side,
        tuple(choice.reasons),
        then,
        rate,
        passes,
        need,
        copies,
        tuple(asked.X.shape),
        asked.alpha * asked.gauge,
        tol,
        memory,
        bounded=asked.bounds is not None,
    )


def with_learned(plan: Plan, learned: list[str]) -> Plan:
    """The same plan, and what running it taught."""
    return replace(plan, learned=tuple(learned))
