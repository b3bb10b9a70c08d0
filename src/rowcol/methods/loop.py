"""The one loop: spend picks, watch, look, stop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from ..core.certify import Certificate, certify, hopeless
from ..core.problem import Problem, answer, explain_values
from ..core.sampler import Sampler, Weave, sampler, take
from ..core.view import State, View, beta, dual, known_diag, narrow, pack, packing_pays, pieces
from ..engine.lines import Dense, Woven, descend, norms, pulls, pushes, residuals, squares
from .progress import Bar, Progress
from .result import History, Status
from .stop import Stop, Watch, due, verdict


@dataclass
class Outcome:
    """What a run found, right-hand side by right-hand side, and what it took."""

    beta: np.ndarray  # (q, p)
    residual: np.ndarray  # (q, n)
    alpha: np.ndarray | None  # (q, n)
    certificates: dict[int, Certificate] = field(default_factory=dict)
    statuses: dict[int, Status] = field(default_factory=dict)
    passes: float = 0.0
    steps: int = 0
    history: History = field(default_factory=History)
    zero_rows: dict[int, int] = field(default_factory=dict)  # a row of zeros that asks for something
    sampler: str = ""
    copied: int = 0
    compiling: float = 0.0  # seconds


def run(
    problem: Problem,
    view: View,
    source: Sampler | Weave,
    now: State,
    stop: Stop,
    *,
    warm: bool,
    callback: Callable[[Progress], object] | None,
    bar: Bar | None,
    jobs: int,
) -> Outcome:
    """Descend from `now` until every right-hand side has its verdict. `warm`: look before the first step."""
    began = time.perf_counter()
    q, (n, p) = len(problem.y), problem.X.shape
    zeros = np.zeros((q, n), view.b.dtype)
    out = Outcome(np.zeros((q, p), view.b.dtype), zeros, None if view.side == "cols" else zeros.copy())
    watches = [Watch() for _ in range(q)]
    column2, y_norm = np.full(p, -1.0), np.maximum(np.linalg.norm(problem.y, axis=1), 1e-300)
    # Short rounds first: a tall consistent system is solved long before every row was seen.
    longest = round_of(view, source)
    length = min(longest, max(2 * min(n, p), 512))
    patience = passes_of(view, source, 32 * min(n, p) + 4 * length)
    ended: Status | None = None
    stepping = view  # the view to descend by: packed, where that pays

    with ExitStack() as stack:
        pool = None
        if min(jobs, q) > 1:
            known_diag(view, now)  # beforehand, so that threads only read it
            pool = stack.enter_context(ThreadPoolExecutor(min(jobs, q)))
        if bar is not None:
            stack.callback(bar.close)
        if warm:
            now = _look(problem, view, now, np.ones(q, bool), watches, stop, column2, out, None)
        while now.ids.size and ended is None:
            left = (stop.max_passes - out.passes) / passes_of(view, source, 1)
            length = max(min(length, math.ceil(min(left, longest) - 1e-9)), 1)
            runs, spent = [], 0
            for start, end in pieces(length, view.cost * now.ids.size):
                runs.append(_descend(stepping, now, take(source, end - start), pool, jobs))
                spent += end - start
                if time.perf_counter() - began > stop.max_seconds:
                    ended = Status.SECONDS
                    break
            # summed along contiguous memory: the order does not depend on pieces or on the other right-hand sides
            tally = np.ascontiguousarray(np.concatenate(runs).transpose(1, 2, 0)).sum(axis=-1)
            if not np.isfinite(tally).all():
                raise ValueError(explain_values(problem.X))
            out.steps += spent
            out.passes = passes_of(view, source, out.steps)
            _record(out, time.perf_counter() - began, tally[:, 0] / spent, now.ids, q)
            values = estimate(problem, view, source, now, tally / spent, y_norm[now.ids])
            for i, value, gained in zip(now.ids, values, tally[:, 0], strict=True):
                if view.side == "both" and not watches[i].rounds and value > 0:
                    watches[i].factor = 1.0 / value  # only its fall means something there
                watches[i].estimate = value
                watches[i].rounds.append((spent, gained))
            which = np.array([due(watches[i], stop, out.passes, patience) for i in now.ids], bool)
            if which.any():
                now = _look(problem, view, now, which, watches, stop, column2, out, None)
            if ended is None and out.passes >= stop.max_passes * (1 - 1e-12):
                ended = Status.PASSES
            latest = out.history.certificate[-1][2] if out.history.certificate else None
            if bar is not None:
                bar.show(out.passes, time.perf_counter() - began, latest)
            if callback is not None:
                out.beta[now.ids] = beta(view, now)
                x = answer(problem, out.beta)
                if callback(Progress(out.passes, out.steps, time.perf_counter() - began, x, latest)):
                    ended = ended or Status.CALLBACK
            length = min(longest, 2 * length)
            if ended is None and stepping is view and now.ids.size and out.passes >= 2 and packing_pays(view):
                stepping, now = pack(view, now)
                out.copied = stepping.copied - view.copied
        if now.ids.size:
            _look(problem, view, now, np.ones(now.ids.size, bool), watches, stop, column2, out, ended)
    return out


def _look(
    problem: Problem,
    view: View,
    now: State,
    which: np.ndarray,
    watches: list[Watch],
    stop: Stop,
    column2: np.ndarray,
    out: Outcome,
    otherwise: Status | None,
) -> State:
    """Certify some right-hand sides, write down what was found, and return the state of those that go on."""
    began = time.perf_counter()
    some = now if which.all() else narrow(now, which)
    if view.side == "cols":
        column2[:] = known_diag(view, now)
    answers, duals = beta(view, some), dual(view, some)
    evidence = certify(problem, view, answers, duals, some.ids, column2)
    plain_rows = view.side == "rows" and problem.alpha == 0
    done = np.zeros(now.ids.size, bool)
    for k, (place, i) in enumerate(zip(np.flatnonzero(which), some.ids, strict=True)):
        found = evidence.certificates[k]
        out.history.certificate.append((out.passes, int(i), found))
        out.certificates[int(i)] = found
        out.beta[i], out.residual[i] = answers[k], evidence.residual[k]
        if out.alpha is not None and duals is not None:
            out.alpha[i] = duals[k]
        # as many steps as there were passes: asking costs no more than was spent
        ask = partial(hopeless, problem, view, answers[k], int(i), int(out.passes)) if plain_rows else None
        status = verdict(watches[i], stop, out.passes, found, ask) or otherwise
        if status is not None:
            out.statuses[int(i)] = status
            done[place] = True
        # Drift never certifies itself: the carried image is replaced by the one just summed anew.
        if view.side == "cols":
            now.s[place] = -evidence.residual[k].conj()
        elif view.side == "rows" and evidence.image is not None:
            now.s[place] = evidence.image[k]
    out.history.check_seconds += time.perf_counter() - began
    return narrow(now, ~done) if done.any() else now


def _descend(view: View, now: State, picks: np.ndarray, pool: ThreadPoolExecutor | None, jobs: int) -> np.ndarray:
    """Spend the picks on every right-hand side; threads share the right-hand sides, which changes no bit."""
    t, q = now.table, now.ids.size

    def part(a: int, b: int) -> np.ndarray:
        return descend(view.lines, t["diag"], t["lam"], t["b"][:, a:b], t["x"][:, a:b], now.s[a:b], picks)

    if pool is None or q == 1:
        return part(0, q)
    cuts = np.linspace(0, q, min(jobs, q) + 1).astype(int)
    return np.concatenate(list(pool.map(part, cuts[:-1], cuts[1:])), axis=1)


def passes_of(view: View, source: Sampler | Weave, steps: float) -> float:
    """How often `steps` steps touch all of X."""
    if not isinstance(source, Weave):
        return steps / view.b.shape[1]
    p, n = source.cols.m, source.rows.m
    return 2 * steps / (n + p) if source.sweep else steps / 2 * (1 / p + 1 / n)


def round_of(view: View, source: Sampler | Weave) -> int:
    """Steps in a full round: a pass over the lines; woven by sweep, one over the columns and one over the rows."""
    if not isinstance(source, Weave) or source.sweep:
        return view.b.shape[1]
    return max(round(1 / passes_of(view, source, 1)), 1)


def compile_for(view: View, now: State, kind: str) -> None:
    """Call what the loop will call, on no lines at all: compiling, once a machine, is not solving."""
    t, w, none = now.table, np.ones(1), np.empty(0, np.int64)
    norms(view.lines, 0, 0, w)
    descend(view.lines, t["diag"], t["lam"], t["b"], t["x"], now.s, none)
    lines = view.lines.rows if isinstance(view.lines, Woven) else view.lines
    if packing_pays(view):
        few = view._replace(lines=Dense(view.lines.a[:2]), b=view.b[:, :2])  # type: ignore[union-attr]
        packed, then = pack(few, State(t[:2], now.s, now.ids))
        t = then.table
        descend(packed.lines, t["diag"], t["lam"], t["b"], t["x"], now.s, none)
    take(sampler(kind, 1, np.random.SeedSequence(0), w), 1)
    square = np.zeros((1, 1), view.b.dtype)
    if view.side == "cols":
        pushes(lines, 0, 0, square, square)
        pulls(lines, 0, 0, square, square)
    else:
        residuals(lines, 0, 0, square, square, w, square, square)
        squares(lines, 0, 0, w, w)


def estimate(
    problem: Problem, view: View, source: Sampler | Weave, now: State, mean: np.ndarray, y_norm: np.ndarray
) -> np.ndarray:
    """The certificates, from a round's mean gain and mean squared slope; on both sides, up to a factor."""
    gain, slope2 = mean.T
    if isinstance(source, Weave):
        return np.sqrt(gain)
    # Picks in proportion to d_i = ‖a_i‖² + λ_i meet |g_i|²/d_i with mean Σ|g_i|²/Σd_i; even picks, Σ|g_i|²/m.
    slopes2 = gain * source.total if source.kind == "norms" else slope2 * view.b.shape[1]
    if view.side == "rows":
        return np.sqrt(slopes2) / y_norm
    if problem.alpha > 0:
        return np.sqrt(slopes2 / problem.alpha) / y_norm
    # Least squares: the steepest of the columns, taken as three times the mean, against what is left of y.
    left = np.maximum(np.linalg.norm(now.s, axis=1), 1e-300)
    return np.minimum(left / y_norm, 3.0 * np.sqrt(gain) / left)


def _record(out: Outcome, seconds: float, energy: np.ndarray, ids: np.ndarray, q: int) -> None:
    out.history.passes.append(out.passes)
    out.history.seconds.append(seconds)
    out.history.energy.append(_spread(energy, ids, q))


def joined(first: Outcome, second: Outcome, where: list[int]) -> Outcome:
    """The first run, with the right-hand sides `where` taken from the second, and the work of both."""
    a, b = first.history, second.history
    history = History(
        a.passes + [first.passes + v for v in b.passes],
        a.seconds + [a.seconds[-1] + v for v in b.seconds],
        a.energy + [_spread(v, where, len(first.beta)) for v in b.energy],
        a.certificate + [(first.passes + v, where[i], c) for v, i, c in b.certificate],
        a.check_seconds + b.check_seconds,
    )
    first.beta[where], first.residual[where] = second.beta, second.residual
    if first.alpha is not None and second.alpha is not None:
        first.alpha[where] = second.alpha
    return Outcome(
        first.beta,
        first.residual,
        first.alpha,
        first.certificates | {where[i]: c for i, c in second.certificates.items()},
        first.statuses | {where[i]: s for i, s in second.statuses.items()},
        first.passes + second.passes,
        first.steps + second.steps,
        history,
        first.zero_rows | {where[i]: row for i, row in second.zero_rows.items()},
        second.sampler,
        first.copied + second.copied,
        first.compiling + second.compiling,
    )


def _spread(values: np.ndarray, where: list[int] | np.ndarray, q: int) -> np.ndarray:
    full = np.full(q, np.nan)
    full[where] = values
    return full
