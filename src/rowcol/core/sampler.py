"""Who is next. A Sampler is plain data with a stream of picks in it; `take` draws the next ones.

| name | picks |
|---|---|
| `norms` | independent, in proportion to ‖a_i‖² + λ_i: the paper's |
| `uniform` | independent, all alike: needs no norms beforehand |
| `shuffled` | every line once, in a new random order each pass |
| `chunks` | runs of 64 neighbouring lines, the runs in a new random order each pass; `chunks:16` for runs of 16 |
| `cyclic` | 0, 1, 2, ... again and again |
| an array of weights | independent, in proportion to them |
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..engine.alias import build, draw, draw_uniform, shuffle
from .problem import numbers_of
from .words import shown

NAMES = ("norms", "uniform", "shuffled", "chunks", "cyclic")
CHUNK = 64


@dataclass
class Sampler:
    """A stream of picks from 0, ..., m-1."""

    kind: str
    m: int
    random: np.ndarray  # the generator's state: four uint64
    keep: np.ndarray = field(default_factory=lambda: np.empty(0))  # alias table of `norms` and weights
    other: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    chunk: int = CHUNK
    order: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))  # this pass of `shuffled`, `chunks`
    place: int = 0  # how far into this pass
    total: float = 0.0  # the sum of the weights


@dataclass
class Weave:
    """Two streams in one, for extended Kaczmarz: columns 0..p-1, then rows p..p+n-1.

    With `sweep` off, a column pick and a row pick alternate, as published; with it on, whole passes alternate.
    """

    cols: Sampler
    rows: Sampler
    sweep: bool
    place: int = 0


def sampler(kind: Any, m: int, seed: np.random.SeedSequence, weights: np.ndarray | None = None) -> Sampler:
    """The named sampler over m lines; `weights` are those of `norms`."""
    state = seed.generate_state(4, np.uint64)
    if not isinstance(kind, str):
        kind, weights = "weights", _checked(kind, m)
    kind, _, length = kind.partition(":")
    made = Sampler(kind, m, state, chunk=int(length or CHUNK))
    if kind in ("norms", "weights"):
        assert weights is not None
        made.keep, made.other, made.total = np.empty(m), np.empty(m, np.int64), float(weights.sum())
        tallest = float(weights.max(initial=0.0))
        if not 1e-290 < tallest < 1e290:  # sums and quotients of these would leave float64
            weights = weights / tallest if tallest > 0 else np.ones(m)
        build(weights, made.keep, made.other)
    return made


def _checked(weights: Any, m: int) -> np.ndarray:
    a = np.asarray(weights)
    if a.dtype.kind not in "fiub":
        raise ValueError(f"sampler weights must be real numbers, got dtype {a.dtype}")
    if a.shape != (m,):
        raise ValueError(
            f"sampler must be a name or {m} weights, one for each row or column picked from; got {a.shape}"
        )
    a = np.ascontiguousarray(a, np.float64)
    if not np.isfinite(a).all() or (a < 0).any() or not a.any():
        raise ValueError("sampler weights must be finite, non-negative and not all zero")
    return a if a.max() < 1e290 else np.ldexp(a, -1000)  # so that their sum is finite; no bit is lost that counts


def check(kind: Any) -> None:
    """A clear error for what is not a sampler, before any work."""
    if isinstance(kind, str):
        name, _, length = kind.partition(":")
        sized = name == "chunks" and length.isdecimal() and int(length) > 0
        if name not in ("auto", *NAMES) or (name != kind and not sized):
            known = f"auto, {', '.join(NAMES)}, chunks:LENGTH or an array of weights"
            raise ValueError(f"sampler must be one of {known}, got {shown(kind)}")
    elif not isinstance(kind, (list, tuple, np.ndarray)):
        raise TypeError(f"sampler must be a name or an array of weights, got {type(kind).__name__}")
    else:
        numbers_of(kind, "sampler")


def take(source: Sampler | Weave, count: int) -> np.ndarray:
    """The next `count` picks."""
    if isinstance(source, Weave):
        return _woven(source, count)
    picks = np.empty(count, np.int64)
    with np.errstate(over="ignore"):  # without JIT the generator's wrap-around would warn
        if source.kind in ("norms", "weights"):
            draw(source.keep, source.other, source.random, picks)
        elif source.kind == "uniform":
            draw_uniform(source.m, source.random, picks)
        else:
            done = 0
            while done < count:
                if source.place == 0 and source.kind != "cyclic":
                    _new_order(source)
                part = _in_order(source, source.place, min(source.m, source.place + count - done))
                picks[done : done + part.size] = part
                done += part.size
                source.place = (source.place + part.size) % source.m
    return picks


def _new_order(source: Sampler) -> None:
    if source.kind == "shuffled":
        source.order = np.arange(source.m)
        shuffle(source.order, source.random)
        return
    # The first run is cut at a random place, so that runs do not start at the same lines in every pass.
    cut = np.empty(1, np.int64)
    draw_uniform(min(source.chunk, source.m), source.random, cut)
    starts = np.unique(np.concatenate([[0], np.arange(cut[0], source.m, source.chunk)]))
    lengths = np.diff(starts, append=source.m)
    order = np.arange(starts.size)
    shuffle(order, source.random)
    starts, lengths = starts[order], lengths[order]
    # runs laid out one after the other: each start, repeated, plus the place in its run
    within = np.arange(source.m) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    source.order = np.repeat(starts, lengths) + within


def _in_order(source: Sampler, start: int, stop: int) -> np.ndarray:
    return np.arange(start, stop) if source.kind == "cyclic" else source.order[start:stop]


def _woven(source: Weave, count: int) -> np.ndarray:
    p, n = source.cols.m, source.rows.m
    if not source.sweep:
        which = (np.arange(source.place, source.place + count) % 2).astype(bool)
        source.place = (source.place + count) % 2
    else:
        which = np.arange(source.place, source.place + count) % (p + n) >= p
        source.place = (source.place + count) % (p + n)
    picks = np.empty(count, np.int64)
    picks[~which] = take(source.cols, int((~which).sum()))
    picks[which] = take(source.rows, int(which.sum())) + p
    return picks


def seeds(random_state: Any) -> np.random.SeedSequence:
    """What a user may pass as random_state, as the root of all randomness of one call."""
    if random_state is None:
        return np.random.SeedSequence()
    if isinstance(random_state, np.random.SeedSequence):
        return np.random.SeedSequence(random_state.entropy, spawn_key=random_state.spawn_key)
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence(random_state.integers(0, 2**63, size=4).tolist())
    if isinstance(random_state, np.random.RandomState):
        return np.random.SeedSequence(random_state.randint(0, 2**31, size=4).tolist())
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool) and random_state >= 0:
        return np.random.SeedSequence(int(random_state))
    raise ValueError(
        f"random_state must be None, a non-negative integer or a NumPy generator, got {shown(random_state)}"
    )
