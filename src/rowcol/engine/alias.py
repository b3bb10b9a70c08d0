"""Who is next: the alias method for weighted picks, and shuffles, from one inline generator.

The generator is xoshiro256++ (Blackman and Vigna); its state is four uint64, kept by the caller, so that the same
seed gives the same picks in any process, with or without JIT. A pick costs 5-16 ns, against microseconds for
`Generator.choice` one at a time.

This file must not call compiled code of another file: Numba's disk cache would go stale silently.
"""

from __future__ import annotations

import numpy as np
from numba import njit

JIT = {"cache": True, "nogil": True}


@njit(**JIT)
def advance(state):
    """The next 64 random bits; the state moves on."""
    total = state[0] + state[3]
    out = ((total << np.uint64(23)) | (total >> np.uint64(41))) + state[0]
    t = state[1] << np.uint64(17)
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= t
    state[3] = (state[3] << np.uint64(45)) | (state[3] >> np.uint64(19))
    return out


@njit(**JIT)
def fraction(state):
    """A float64 in [0, 1), from the upper 53 bits."""
    return np.float64(advance(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(**JIT)
def stand_in(weights, left, other):
    """What is left of a table stands for itself, as it should but for rounding: but no line of weight zero may."""
    best = 0
    for j in range(weights.size):
        if weights[j] > weights[best]:
            best = j
    for k in range(left.size):
        if weights[left[k]] == 0.0:
            other[left[k]] = best


@njit(**JIT)
def build(weights, keep, other):
    """Vose's table: a uniformly chosen slot i stands for i with chance keep[i], else for other[i]."""
    m = weights.size
    mean = 0.0
    for i in range(m):
        mean += weights[i]
    mean /= m
    small, large = np.empty(m, np.int64), np.empty(m, np.int64)
    few, many = 0, 0
    for i in range(m):
        keep[i] = weights[i] / mean
        other[i] = i
        if keep[i] < 1.0:
            small[few] = i
            few += 1
        else:
            large[many] = i
            many += 1
    while few > 0 and many > 0:
        few -= 1
        poor, rich = small[few], large[many - 1]
        other[poor] = rich
        keep[rich] -= 1.0 - keep[poor]
        if keep[rich] < 1.0:
            many -= 1
            small[few] = rich
            few += 1
    stand_in(weights, small[:few], other)


@njit(**JIT)
def draw(keep, other, state, picks):
    """Fill picks with weighted picks, one random number each."""
    m = keep.size
    for t in range(picks.size):
        u = fraction(state) * m
        i = np.int64(u)
        instead = other[i]
        picks[t] = instead + (i - instead) * np.int64(u - i < keep[i])  # no branch, which would be guessed wrong


@njit(**JIT)
def draw_uniform(m, state, picks):
    """Fill picks with equally likely lines 0, ..., m-1."""
    for t in range(picks.size):
        picks[t] = np.int64(fraction(state) * m)


@njit(**JIT)
def shuffle(order, state):
    """Put `order` into random order (Fisher and Yates)."""
    for i in range(order.size - 1, 0, -1):
        j = np.int64(fraction(state) * (i + 1))
        order[i], order[j] = order[j], order[i]
