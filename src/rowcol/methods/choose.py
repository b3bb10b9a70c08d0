"""Rows or columns? Which route to take, why, and where to go when it turns out slow. Plans are asked before running.

Costs are counted in passes over X, never in seconds, so that the same call takes the same way on every machine. What
they rest on is measured: docs/rows-or-columns.md has the table, docs/benchmarks.md the times.
"""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from ..core.problem import Problem
from ..core.view import size
from .blocks import block_length
from .factor import SMALL, Probe, probe
from .result import count_passes
from .sketch import DIRECTIONS, OVERSAMPLE

ROUTES = ("rk", "rcd", "rek", "sgs-cg", "subset", "blocks", "cg", "direct", "sketch")
SIDE_OF = {"rk": "rows", "rcd": "columns", "rek": "both", "subset": "rows"}
SKETCH = 40.0  # passes: what a sketch, and the steps it makes few, take in all
CHEAP = 9.0  # passes: a Gram matrix that costs no more is formed without trying anything else


@dataclass(frozen=True, repr=False)
class Plan:
    """What will be done, why, and what it will take; on a Result, what was learned on the way too.

    Attributes
    ----------
    route : str
        The method: "rk", "rcd", "rek", "sgs-cg", "subset", "blocks", "cg", "direct" or "sketch".
    side : str
        "rows", "columns" or "both", or for a kernel "points": whose unknowns the method steps on.
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
        what = "kernel ridge" if self.side == "points" else what
        n, p = self.shape
        lines = [f"rowcol.Plan for {n:,} x {p:,}, {what}, tol {self.tol:.0e}: {self.route}, by {self.side}"]
        lines += [f"  because     {reason}" for reason in self.reasons]
        if self.rate is not None:
            lines.append(f"  rate        the error is multiplied by about {self.rate:.2g} a pass")
        if self.passes is not None:
            over = "the kernel matrix" if self.side == "points" else "X"
            lines.append(f"  work        about {count_passes(self.passes)} over {over}")
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


def budget(memory: Any) -> int:
    """`memory` in bytes: a number, or text such as "2 GB"; half of what is free unless said."""
    if memory is None:
        return _free() // 2
    if isinstance(memory, str):
        found = re.fullmatch(r"\s*([0-9.]+)\s*([kMGT]?)i?B?\s*", memory)
        try:
            memory = float(found[1]) * 1000.0 ** " kMGT".index(found[2] or " ") if found else math.nan
        except ValueError:
            memory = math.nan
    if isinstance(memory, bool) or not isinstance(memory, (int, float, np.integer, np.floating)) or not memory > 0:
        raise ValueError(f"memory must be a positive number of bytes, or text such as '2 GB', got {memory!r}")
    return int(min(memory, 2**62))


def _free() -> int:
    try:
        with open("/proc/meminfo") as file:
            found = re.search(r"MemAvailable:\s+(\d+) kB", file.read())
        if found:
            return int(found[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, ValueError, OSError):
        return 4 * 10**9


# --- costs -----------------------------------------------------------------------------------------------------------


def sketch_passes(X: Any) -> float:
    """Passes a sketch takes in all, its dense directions counted: beside a sparse X they are most of it."""
    return SKETCH + DIRECTIONS**2 * (X.shape[0] + X.shape[1]) / size(X)


def gram_passes(X: Any, many: int = 1) -> float:
    """What forming and factoring the small Gram matrix costs, in passes with `many` right-hand sides over X."""
    n, p = X.shape
    m, entries = min(n, p), size(X)
    if sp.issparse(X):
        cost = 3 + 3.3 * entries / max(n, p) + 8 * m**2 / entries + 0.0055 * m**3 / entries
    else:
        cost = 3 + m / 18 + 0.015 * m**3 / entries
        cost *= 2 if X.dtype.itemsize < (16 if np.iscomplexobj(X) else 8) else 1  # it is formed in double precision
    return cost / max(1.0, many / 3)


def bytes_of(route: str, asked: Problem, copies: int) -> int:
    """Memory a route needs beside X and y."""
    (q, n), p = asked.y.shape, asked.X.shape[1]
    item, m = asked.y.dtype.itemsize, min(n, p)
    vectors = item * q * (n + p)
    base = copies + 5 * vectors + 64 * 1024
    if route in ("rk", "rcd", "rek", "blocks", "sgs-cg"):
        lines = {"rk": n, "rcd": p, "rek": n + p}.get(route, max(n, p))
        bounded = asked.bounds is not None  # then moves are remembered, too
        base += 3 * (16 + (4 if bounded else 2) * item * q) * lines + (12 if bounded else 2) * vectors
    if route in ("sgs-cg", "cg", "sketch"):
        base += 8 * vectors
    if route == "blocks":
        length = block_length(m, max(n, p))
        base += (4 * m + 3 * max(n, p) + 3 * length) * length * item
    if route == "direct":
        whole = n * p * item
        base += 5 * m * m * item + 3 * min(whole, max(32_000_000, 32 * m * m))
        if asked.dtype.itemsize == item and not isinstance(asked.X, LinearOperator) and not sp.issparse(asked.X):
            base -= min(whole, 32_000_000)  # blocks are looked at in place
    if route == "subset":
        base += 6 * min(2 * p, n) * p * item + (2 * size(asked.X) * item if sp.issparse(asked.X) else 0)
    if route == "sketch":
        full = max(n, p) >= 2 * OVERSAMPLE * m
        rows = OVERSAMPLE * m * m if full else 4 * DIRECTIONS * (n + p)
        base += 4 * rows * item + min(n * p * item, 3 * 32_000_000) * (2 if asked.dtype.itemsize < item else 1)
        if sp.issparse(asked.X):
            base += 3 * size(asked.X) * item
    return int(base)


def copies_of(route: str, asked: Problem) -> int:
    """Bytes of transposed or scaled copies of X a route makes."""
    X = asked.X
    if isinstance(X, LinearOperator):
        return 0
    stored = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else X.nbytes
    by_rows = X.format == "csr" if sp.issparse(X) else X.flags.c_contiguous
    by_cols = X.format == "csc" if sp.issparse(X) else X.flags.f_contiguous
    scaled = stored * (2 if X.dtype.itemsize < asked.y.dtype.itemsize else 1) if asked.weight is not None else 0
    if route == "rk" or (route == "sgs-cg" and X.shape[0] < X.shape[1]):
        return 0 if by_rows else stored
    if route == "blocks" and X.shape[0] < X.shape[1]:
        return scaled + (0 if by_rows else stored)
    if route in ("rcd", "sgs-cg", "blocks"):
        return scaled + (0 if by_cols else scaled or stored)
    if route == "rek":
        return scaled + (0 if by_rows and by_cols else scaled or stored)
    return scaled


# --- the choice --------------------------------------------------------------------------------------------------


def choose(asked: Problem, tol: float, memory: int, seed: np.random.SeedSequence, many_y: bool = False) -> Choice:
    """The route for a Problem. `many_y`: more right-hand sides are to come, so factors pay."""
    X = asked.X
    n, p = X.shape
    (q, _), m = asked.y.shape, min(n, p)
    shape = "tall" if n >= p else "wide"
    reasons, sample = [], None
    if isinstance(X, LinearOperator):
        reasons.append("X is an operator: it multiplies, but has no rows or columns to step on")
        return Choice("cg", "columns", reasons)
    reasons.append(_regime(n, p, asked.alpha))
    gram_fits = bytes_of("direct", asked, copies_of("direct", asked)) <= memory
    cost = gram_passes(X, q)
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
    if plain and not dense and (by_rows or copies_of("rk", asked) <= memory / 2):
        reasons.append("rows of a sparse X touch few unknowns, and a pass or two tells whether they converge (25)")
        return Choice("rk", "rows", reasons)
    if dense and plain and by_rows and sample is None and not many_y and n >= 2 * p:
        reasons.append(
            f"too many unknowns for a sampled QR; rows reach {p} unknowns in a few passes if consistent (25)"
        )
        return Choice("rk", "rows", reasons)
    reasons.append(
        f"conjugate gradients on the {shape} side's {m} unknowns take one or two passes a step, at the memory's speed"
    )
    return Choice("cg", _short_side(n, p), reasons, sample)


@dataclass
class Choice:
    """A route, the side it walks and why; and the sample that said so, to start from."""

    route: str
    side: str
    reasons: list[str]
    sample: Probe | None = None


def after(
    route: str, side: str, asked: Problem, memory: int, falling: bool, tried: list[str]
) -> tuple[str, str] | None:
    """Where to go on, warm, when a route was slow (`falling`) or stuck; None if nowhere."""
    X = asked.X
    n, p = X.shape
    if asked.bounds is not None:
        return None
    operator = isinstance(X, LinearOperator)
    options: list[tuple[str, str]] = []
    if route == "rk" and falling and sp.issparse(X):
        options.append(("sgs-cg", "rows"))
    if route in ("rk", "rcd", "sgs-cg", "subset"):
        # rows may have stopped because no β fits: by columns, least squares are reached whatever the shape
        safe = asked.alpha == 0 and not falling
        options.append(("cg", "columns" if safe else _short_side(n, p)))
    if not operator:
        small = ("direct", _short_side(n, p)), ("sketch", _short_side(n, p))
        options += small if gram_passes(X, len(asked.y)) <= sketch_passes(X) else small[::-1]
    options += [("cg", "columns"), ("rek", "both")]
    for name, where in options:
        label = f"{name} {where}"
        if label in tried or (name == "rek" and (operator or asked.alpha > 0)):
            continue
        if name == "cg" or bytes_of(name, asked, copies_of(name, asked)) <= memory:
            return name, where
    return None


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
    copies = asked.copied + copies_of(choice.route, asked)
    need = asked.copied + max(bytes_of(name, asked, copies_of(name, asked)) for name in (choice.route, *then))
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
