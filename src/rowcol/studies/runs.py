"""Errors after so many steps, over many seeds, by the one loop; and what they say of a rate.

A `Course` is what a method walks: lines, their table and a start. Seeds differ in nothing but the picks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..core.problem import problem
from ..core.sampler import Weave, sampler, take
from ..core.view import View, beta, both, cols, dual, known_diag, rows, state
from ..engine.lines import Lookup, descend

FLOOR = 1e-22  # of E‖e‖²/‖e_0‖²: below it rounding, not the method, is measured
SIDES = {"rk": rows, "rcd": cols, "rek": both}

Error = Callable[[np.ndarray, np.ndarray], float]  # of β (or f's values) and α (or x)


class Course(NamedTuple):
    """A method on a system: what a seed walks."""

    method: str
    lines: Any
    diag: np.ndarray  # (m,) what steps divide by, with lam
    lam: np.ndarray
    b: np.ndarray  # (m, 1)
    s0: np.ndarray  # (1, k)
    weights: tuple[np.ndarray, ...]  # of the picks; of rek, those of columns and of rows
    answer: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]  # β and α, from x and s
    steps_a_pass: float


class Trace(NamedTuple):
    """Squared errors, (seeds, looks), after so many steps (of rek, pairs of them)."""

    steps: np.ndarray
    passes: np.ndarray
    errors: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """Over seeds: what theorems speak of."""
        return self.errors.mean(axis=0)

    @property
    def spread(self) -> np.ndarray:
        """The standard error of the mean."""
        return self.errors.std(axis=0, ddof=1) / np.sqrt(len(self.errors))


def course(X: Any, y: np.ndarray, method: str, alpha: float = 0.0, step: np.ndarray | None = None) -> Course:
    """Rows, columns or both; with `step`, rows take steps of that size instead: stochastic gradient descent."""
    asked = problem(X, y, alpha)
    asked = asked._replace(y=asked.y * asked.scale[:, None], scale=np.ones(1))
    view: View = SIDES[method](asked)
    now = state(view)
    diag = np.ascontiguousarray(known_diag(view, now))
    n, p = asked.X.shape
    weights = (diag[:p], diag[p:]) if method == "rek" else (diag + view.lam,)

    def answer(x: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        now.table["x"][: len(x)] = x
        held = now._replace(s=s)
        alpha_now = dual(view, held)
        return beta(view, held)[0], x[:, 0] if alpha_now is None else alpha_now[0]

    lam = np.zeros(1) if method == "rek" else view.lam
    lam = np.zeros(len(diag)) if method == "rek" else lam
    divide = diag if step is None else 1.0 / np.broadcast_to(step, diag.shape)
    a_pass = {"rk": n, "rcd": p, "rek": max(n, p)}[method]
    return Course(
        method, view.lines, divide.copy(), lam, np.ascontiguousarray(view.b.T), view.s0, weights, answer, float(a_pass)
    )


def kernel_course(K: np.ndarray, y: np.ndarray, lam: float) -> Course:
    """The paper's coordinate update (18): lines are columns of K, s is Kα."""
    n, diag = len(K), np.diagonal(K).copy()
    return Course(
        "kernel",
        Lookup(np.ascontiguousarray(K), np.arange(n)),
        diag,
        np.full(n, lam),
        y[:, None].copy(),
        np.zeros((1, n)),
        (diag + lam,),
        lambda x, s: (s[0], x[:, 0]),
        float(n),
    )


def walked(on: Course, looks: np.ndarray, error: Error, seeds: int, seed: int = 0) -> Trace:
    """Squared errors at `looks` steps (ascending, from 0), for every seed."""
    errors, twice = np.empty((seeds, len(looks))), 2 if on.method == "rek" else 1
    for k, root in enumerate(np.random.SeedSequence(seed).spawn(seeds)):
        source = _source(on, root)
        diag, x, s = on.diag.copy(), np.zeros_like(on.b), on.s0.copy()
        for j, count in enumerate(np.diff(looks, prepend=0)):
            if count:
                descend(on.lines, diag, on.lam, on.b, x, s, take(source, int(count) * twice))
            errors[k, j] = error(*on.answer(x, s))
    return Trace(looks, looks / on.steps_a_pass, errors)


def _source(on: Course, root: np.random.SeedSequence) -> Any:
    if on.method != "rek":
        return sampler("norms", len(on.b), root, on.weights[0])
    one, two = root.spawn(2)
    made = [sampler("norms", len(w), seed, np.ascontiguousarray(w)) for w, seed in zip(on.weights, (one, two))]
    return Weave(made[0], made[1], sweep=False)


def distance2(star: np.ndarray) -> Error:
    """‖β − β*‖²."""
    return lambda b, a: float(np.sum((b - star) ** 2))


def image2(X: Any, star: np.ndarray) -> Error:
    """‖X(β − β*)‖²."""
    return lambda b, a: float(np.sum((X @ (b - star)) ** 2))


def energy2(A: np.ndarray, star: np.ndarray) -> Error:
    """‖α − α*‖² in the energy norm of A."""
    return lambda b, a: float((a - star) @ A @ (a - star))


def looks_at(passes: float, on: Course, count: int = 48) -> np.ndarray:
    """Steps to look after, evenly over so many passes, from 0."""
    return np.unique(np.linspace(0, max(round(passes * on.steps_a_pass), 1), count).round().astype(int))


def fitted_rate(trace: Trace, mean: np.ndarray | None = None) -> float:
    """What the mean squared error is multiplied by in a step, by a straight line through its logarithm.

    Its second half only, where it is above rounding: at first every direction falls, later the slowest.
    """
    mean = trace.mean if mean is None else mean
    seen = np.flatnonzero(mean > FLOOR * mean[0])
    if not seen.size:
        return float("nan")
    late = seen[seen >= seen[-1] // 2]
    if late.size < 3:
        return float("nan")
    return float(np.exp(np.polyfit(trace.steps[late], np.log(mean[late]), 1)[0]))


def within(trace: Trace, bound: np.ndarray, errors: float = 3.0) -> bool:
    """Is the mean below the bound at every look, but for so many standard errors and rounding?"""
    return bool((trace.mean <= bound * (1 + 1e-9) + errors * trace.spread + FLOOR * trace.mean[0]).all())
