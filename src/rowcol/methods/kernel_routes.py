"""Kernel ridge: which way, what it takes, and going there. Costs are counted in passes: n² kernel entries each."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core.certify import certify
from ..core.far import blocks_of, bytes_here
from ..core.gram import LINES, Gram, among, block, product
from ..core.memory import WIDE
from ..core.place import Place
from ..core.problem import Problem, answer
from ..core.sampler import sampler as make_sampler
from ..core.sizes import diagonal
from ..places.lowrank import low_rank_there
from .choose import Plan
from .conjugate import Conjugate, Multiply
from .kernel import Points, block_size, fresh_blocks, points, ridge_of, whole
from .log import Log
from .loop import Mover, Outcome, joined, run
from .pivots import BLOCK, Pivots, pivots
from .progress import Bar, Progress
from .result import Status
from .saying import learn
from .still import Still, cut_by
from .stop import Stop

log = logging.getLogger(__name__)

ROUTES = ("rk", "blocks", "pcg", "cg", "direct")
SMALL = 2500  # points: up to here a Cholesky factor costs less than steps, for two digits; each digit more adds
MORE = 1000  # points
PER_CUBE_ROOT = 38.0  # the rank of the preconditioner, over n^(1/3)


@dataclass
class Choice:
    """A route and why, and the rank of its preconditioner."""

    route: str
    reasons: list[str]
    rank: int = 0
    pivots_at_once: int = BLOCK
    then: tuple[str, ...] = ()


@dataclass
class Way:
    """What one kernel solve needs on its way."""

    asked: Problem  # its X is the Gram looks are taken by
    quick: Gram  # that steps are taken by
    stop: Stop
    seed: np.random.SeedSequence
    memory: int
    sampler: Any
    callback: Callable[[Progress], object] | None
    bar: Bar | None
    auto: bool
    learned: list[str] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)
    preconditioner: Pivots | None = None
    log: Log | None = None


def bytes_of(route: str, X: Any, q: int, leaves: int, rank: int = 0, at_once: int = BLOCK, cores: int = 1) -> int:
    """Memory beside X and y, at its peak; `leaves` counts one-line kernels, `cores` penalties that differ."""
    n, d = X.shape
    if isinstance(X, Place):
        stored = bytes_here(X, leaves)
    else:
        stored = leaves * (24 * X.nnz if sp.issparse(X) else 12 * n * (d + d % 2 + 1)) + 8 * 3 * min(n * d, 500_000)
    vectors = 8 * q * n * 20 + 2 * 8 * LINES * WIDE
    if route == "direct":
        return stored + vectors + 8 * n * n + 8 * n * 40
    if route == "rk":
        return stored + vectors + 8 * n * 64
    if route == "blocks":
        return stored + vectors + 24 * block_size(n) ** 2
    return stored + vectors + 4 * rank * n + 8 * min(at_once, rank) * n + (12 + 8 * cores) * rank**2


def rank_for(X: Any, q: int, leaves: int, memory: int, cores: int) -> tuple[int, int]:
    """The rank of a preconditioner within the budget, and how many pivots to draw at once."""
    n = X.shape[0]
    rank = int(min(PER_CUBE_ROOT * n ** (1 / 3), n / 2))  # more for many columns saves entries, and costs more time
    for at_once in (BLOCK, BLOCK // 4, BLOCK // 10):
        room = memory - bytes_of("cg", X, q, leaves) - 8 * at_once * n
        fits = int(min(rank, room / (4 * n + (12 + 8 * cores) * rank)))
        if fits >= min(rank, 2 * at_once):
            return fits, at_once
    return max(min(fits, rank), 0), at_once


def choose(asked: Problem, X: Any, leaves: int, method: str, memory: int, stop: Stop) -> Choice:
    """The route, and why."""
    n, q, cores = X.shape[0], len(asked.y), _penalties(asked)
    rank, at_once = rank_for(X, q, leaves, memory, cores)
    if method == "auto":
        few = SMALL + MORE * max(-2 - math.log10(stop.tol), 0.0)
        few = min(few, 7 * MORE, 3000 * stop.max_seconds ** (1 / 3))  # a factor cannot be stopped half-way
        few /= cores ** (1 / 3)  # each penalty takes its own
        if n <= few and bytes_of("direct", X, q, leaves) <= memory:
            return Choice("direct", [f"{n:,} points are few: Cholesky of the kernel matrix takes less than steps"])
        then = ("direct",) if 8 * n * n * 1.2 <= memory and cores == 1 else ()
        why = f"the kernel matrix of {n:,} points is not formed: its tiles are made anew for every product"
        if isinstance(X, Place):
            why += f", from points that lie elsewhere, {len(blocks_of(X, leaves))} blocks of which come here by turns"
        if rank >= min(32, n // 2):
            told = f"conjugate gradients, preconditioned by {rank:,} randomly drawn pivots, need few of them"
            return Choice("pcg", [why, told], rank, at_once, then)
        method, rank = "blocks", 0
        reasons = [why, "memory allows no preconditioner: steps on random blocks of points (30)"]
    else:
        reasons = [f"method={method!r} was asked for"]
    need = bytes_of(method, X, q, leaves, rank if method == "pcg" else 0, at_once, cores)
    if need > memory:
        raise ValueError(
            f"method={method!r} needs about {need / 1e6:,.0f} MB beside X, more than memory={memory / 1e6:,.0f} MB: "
            "allow more" + (", or say method='auto'" if reasons[0].startswith("method") else "")
        )
    return Choice(method, reasons, rank if method == "pcg" else 0, at_once)


def _penalties(asked: Problem) -> int:
    """How many different Λ there are, at most."""
    w = asked.weight
    return 1 if w is None or w.ndim == 1 else len({row.tobytes() for row in w})


def planned(
    X: Any, leaves: int, g: Gram | None, problem: Problem, choice: Choice, stop: Stop, memory: int, jobs: int
) -> Plan:
    """The Plan of a Choice. With the Gram of some points, their eigenvalues foretell the passes: an estimate."""
    n, d = X.shape
    copied = 0 if isinstance(X, Place) else 12 * leaves * n * d
    rate, passes = (None, None) if g is None else _foretold(g, problem, choice, stop.tol)
    quick = 0.45 + 0.05 * d if choice.route != "rk" else 1.5 + 0.1 * d  # ns an entry, on one core
    if choice.route == "direct":
        seconds = 2e-9 * n * n / jobs + n**3 / 3 / 3e10 / jobs
    else:
        seconds = None if passes is None else 1e-9 * quick * n * n * passes / jobs + 1e-11 * choice.rank**2 * n / jobs
    return Plan(
        choice.route,
        "points",
        tuple(choice.reasons),
        choice.then,
        rate,
        passes,
        bytes_of(choice.route, X, len(problem.y), leaves, choice.rank, choice.pivots_at_once, _penalties(problem)),
        copied,
        (n, d),
        problem.alpha * problem.gauge,
        stop.tol,
        memory,
        seconds=seconds,
    )


def _foretold(g: Gram, problem: Problem, choice: Choice, tol: float) -> tuple[float | None, float | None]:
    """The rate a pass and the passes, from the eigenvalues of a sample: what is beyond the rank counts for pcg."""
    n, lam = problem.X.shape[0], ridge_of(problem)
    if choice.route == "direct":
        return None, 1.0
    if choice.route == "rk":  # (35), with σ_min(K) taken as zero
        share = float(lam.min()) / float(diagonal(g).mean() * n + lam.mean() * n)
        rate = math.exp(0.5 * n * math.log1p(-min(share, 1 - 1e-12)))
        return rate, math.log(tol) / math.log(rate) if rate < 1 - 1e-12 else None
    if choice.route == "blocks":
        return None, None
    some = np.sort(np.random.default_rng(0).choice(g.shape[0], min(g.shape[0], 400), replace=False))
    values = np.maximum(np.linalg.eigvalsh(block(g, some, some))[::-1] * n / some.size, 1e-300)
    m = some.size
    edge = values[min(choice.rank, m - 1)]
    if m > 16 and choice.rank >= m // 2:  # beyond the sample, eigenvalues go on as a power of their number
        slope = math.log(values[m // 8] / values[m // 2]) / math.log(4.0)
        edge = values[m // 2] * (choice.rank / (m / 2)) ** -slope
    steps = 0.5 * math.sqrt(1 + edge / float(np.median(lam[lam > 0]))) * math.log(2 / tol) + 1
    return None, 0.5 * min(steps, n) + choice.rank / n + 1.0


def follow(way: Way, choice: Choice, alpha0: np.ndarray | None) -> Outcome:
    """Take the route; where it gets stuck and "auto" may choose, a factor."""
    weight, began = way.asked.weight, time.perf_counter()
    if weight is not None and weight.ndim == 2 and choice.route not in ("pcg", "cg"):
        return _one_by_one(way, choice, alpha0)
    out = _take(way, choice, alpha0)
    left = {Status.STALLED, Status.ROUNDING} | ({Status.INDEFINITE} if way.asked.X.kernel.definite else set())
    stuck = [i for i, status in out.statuses.items() if status in left]
    X = way.asked.X
    if (
        way.auto
        and stuck
        and (weight is None or weight.ndim == 1)
        and choice.route != "direct"
        and 8 * X.shape[0] ** 2 * 1.2 <= way.memory
    ):
        after = f"{choice.route}, after {out.passes:.3g} passes"
        learn(log, way.learned, f"{after}: no more progress; direct goes on from there")
        some = way.asked._replace(y=way.asked.y[stuck], scale=way.asked.scale[stuck])
        stop = way.stop._replace(max_seconds=max(way.stop.max_seconds - (time.perf_counter() - began), 0.0))
        watch = _embedded(way, out, stuck, slice(None), [])
        then = replace(way, asked=some, stop=stop, callback=watch, preconditioner=None)  # it shares taken and learned
        out = joined(out, _take(then, Choice("direct", []), out.beta[stuck]), stuck)
    return out


def _one_by_one(way: Way, choice: Choice, alpha0: np.ndarray | None) -> Outcome:
    """Columns with a Λ of their own, by methods that share none: a problem for each Λ, of the points that count."""
    asked, n, began = way.asked, way.asked.X.shape[0], time.perf_counter()
    wishes: list[object] = []
    assert asked.weight is not None
    whole_ = Outcome(np.zeros_like(asked.y) if alpha0 is None else alpha0.copy(), np.zeros_like(asked.y), None)
    alike: dict[bytes, list[int]] = {}  # the classes of a fold, and the ones of an intercept, share a factor
    for i, w in enumerate(asked.weight):
        alike.setdefault(w.tobytes(), []).append(i)
    for columns in alike.values():
        rows = np.array(columns)[:, None]
        w = asked.weight[columns[0]]
        at = np.flatnonzero(w)
        exact = among(asked.X, at)
        some = asked._replace(X=exact, y=asked.y[rows, at], scale=asked.scale[columns], weight=w[at])
        left = way.stop._replace(
            max_passes=max(way.stop.max_passes - whole_.passes, 1e-9),
            max_seconds=max(way.stop.max_seconds - (time.perf_counter() - began), 0.0),
        )
        asked_to_stop = any(wishes)
        mine = replace(
            way,
            asked=some,
            quick=exact if way.quick is asked.X else among(way.quick, at),
            stop=left._replace(max_seconds=0.0) if asked_to_stop else left,
            sampler=way.sampler if isinstance(way.sampler, str) else np.asarray(way.sampler)[at],
            callback=_embedded(way, whole_, columns, at, wishes) if not asked_to_stop else None,
            taken=[],
            preconditioner=None,
        )
        out = _take(mine, choice, None if alpha0 is None else alpha0[rows, at])
        if asked_to_stop:
            out.statuses = {k: Status.CALLBACK if s is Status.SECONDS else s for k, s in out.statuses.items()}
        beta, residual = np.zeros((2, len(columns), n))
        beta[:, at], residual[:, at] = out.beta, out.residual
        part = Outcome(beta, residual, None, out.certificates, out.statuses, out.passes, out.steps)
        part.history, part.sampler = out.history, out.sampler
        whole_ = joined(whole_, part, columns)
    if not (asked.weight > 0).all():  # what was found, at the points that were left out
        whole_.residual = asked.y - product(asked.X, whole_.beta)
    way.taken.append(choice.route)
    return whole_


def _embedded(
    way: Way, whole_: Outcome, columns: list[int], at: Any, wishes: list[object]
) -> Callable[[Progress], object] | None:
    """Show a callback all columns and points while only some are being solved, and write down what it wishes."""
    callback, asked = way.callback, way.asked
    if callback is None:
        return None

    def watch(part: Progress) -> object:
        x = answer(asked, whole_.beta)
        inner = x[:, columns]
        inner[at] = part.x
        x[:, columns] = inner
        wish = callback(replace(part, x=x, passes=whole_.passes + part.passes, steps=whole_.steps + part.steps))
        wishes.append(wish)
        return wish

    return watch


def _take(way: Way, choice: Choice, alpha0: np.ndarray | None) -> Outcome:
    way.taken.append(choice.route)
    began = time.perf_counter()
    logged, cut = way.log, None
    mover: Mover
    try:
        mover = _mover(way, choice, alpha0)
    except KeyboardInterrupt as why:
        x = np.zeros_like(way.asked.y) if alpha0 is None else alpha0.copy()
        mover, cut = Still(way.asked.X, np.arange(len(x)), x, None), cut_by(why)
        if logged is not None:
            logged.ended, logged = True, None  # no part of the course
    left = way.stop.max_seconds - (time.perf_counter() - began)
    stop = way.stop._replace(max_seconds=max(left, 0.0))
    look = alpha0 is not None and cut is None
    out = run(way.asked, mover, stop, look_first=look, callback=way.callback, bar=way.bar, log=logged, cut=cut)
    for i in [i for i, c in out.certificates.items() if c.value > 1.0]:  # zero is better
        assert out.column2 is not None
        out.beta[i] = 0.0
        found = certify(way.asked, mover.by, out.beta[[i]], None, np.array([i]), out.column2)
        assert out.residual is not None
        out.certificates[i], out.residual[i] = found.certificates[0], found.residual[0]
    for i in getattr(mover, "indefinite", []):
        out.statuses[i] = Status.INDEFINITE if out.statuses[i] is not Status.CONVERGED else Status.CONVERGED
    out.sampler = mover.source.kind if isinstance(mover, Points) else "none"
    return out


def _mover(way: Way, choice: Choice, alpha0: np.ndarray | None) -> Mover:
    asked, g, quick = way.asked, way.asked.X, way.quick
    if choice.route == "direct":
        return whole(asked, g, alpha0)
    if choice.route == "rk":
        kind = "norms" if isinstance(way.sampler, str) and way.sampler == "auto" else way.sampler
        return points(asked, g, lambda weights: make_sampler(kind, g.shape[0], way.seed, weights), alpha0)
    if choice.route == "blocks":
        return fresh_blocks(asked, g, quick, alpha0, way.seed)
    spent = 0.0
    if choice.route == "pcg" and choice.rank:
        if way.preconditioner is None:
            most = None if way.log is None else way.log.recalled("pivots")  # as many as there was time for, at first
            until = (
                time.perf_counter() + way.stop.max_seconds / 2 if most is None else math.inf
            )  # the rest is for steps
            lam, at_once = ridge_of(asked), choice.pivots_at_once
            low = low_rank_there(quick, choice.rank)
            way.preconditioner = pivots(quick, lam, choice.rank, way.seed, at_once, until, most=most, low=low)
            if way.log is not None:
                way.log.note("pivots", round(way.preconditioner.passes * g.shape[0]))
            left = way.preconditioner.left
            learn(log, way.learned, f"{len(way.preconditioner.which):,} pivots leave {left:.1e} of the trace of K")
        made = way.preconditioner
        if made.slack.max() > 1.0:
            raised = f"alpha is raised up to {made.slack.max():.1e} times in the preconditioner"
            learn(log, way.learned, f"{raised}: single precision needs it")
        spent = made.passes
    x = np.zeros_like(asked.y) if alpha0 is None else alpha0.copy()
    r = asked.y.copy()  # of zero; a start is looked at before the first step, and the look tells its own
    multiply = [_by(quick)] if quick is g else [_by(quick), _by(g)]
    by = None if way.preconditioner is None else way.preconditioner.shared(quick.pool)
    return Conjugate(asked, g, "kernel", np.arange(len(x)), x, None, r, by, multiply, spent, math.inf, 0.85)


def _by(g: Gram) -> Multiply:
    return lambda v: (product(g, v), 0.5)
