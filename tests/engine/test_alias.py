import numpy as np
import pytest

from rowcol.engine.alias import advance, build, draw, draw_uniform, fraction, shuffle, stand_in

MASK = 2**64 - 1


def published(state):
    """xoshiro256++ in Python's integers, typed from the authors' C: the next fraction, and the state after it."""
    a, b, c, d = state
    out = ((((a + d) & MASK) << 23 | ((a + d) & MASK) >> 41) + a) & MASK
    t = (b << 17) & MASK
    c, d = c ^ a, d ^ b
    b, a = b ^ c, a ^ d
    c ^= t
    d = (d << 45 | d >> 19) & MASK
    return (out >> 11) / 2**53, [a, b, c, d]


def fractions(seed, count):
    """So many of them, and the state that is left."""
    state, out = [int(v) for v in generator(seed)], []
    for _ in range(count):
        one, state = published(state)
        out.append(one)
    return out, state


def generator(seed):
    return np.random.SeedSequence(seed).generate_state(4, np.uint64)


def test_generator_gives_the_published_reference_sequence():
    """xoshiro256++ from the state 1, 2, 3, 4: the values its authors' C code prints."""
    state = np.array([1, 2, 3, 4], np.uint64)
    with np.errstate(over="ignore"):
        found = [int(advance(state)) for _ in range(6)]
    assert found == [
        41943041,
        58720359,
        3588806011781223,
        3591011842654386,
        9228616714210784205,
        9973669472204895162,
    ]


@pytest.mark.parametrize(
    "weights",
    [[1.0], [1.0, 3.0], [0.0, 1.0, 0.0, 2.0], [5e-324, 1.0], list(np.geomspace(1e-12, 1e12, 30)), [7.0] * 13],
)
def test_table_stands_for_the_weights_exactly(weights):
    """Summing the table's slots gives back every probability: no sampling needed."""
    w = np.array(weights)
    keep, other = np.empty(w.size), np.empty(w.size, np.int64)
    build(w, keep, other)
    chance = keep / w.size
    np.add.at(chance, other, (1 - keep) / w.size)
    np.testing.assert_allclose(chance, w / w.sum(), rtol=1e-9, atol=4e-16)
    assert (chance[w == 0] == 0).all()


def test_picks_follow_the_weights():
    w = np.array([1.0, 2.0, 0.0, 5.0])
    keep, other = np.empty(4), np.empty(4, np.int64)
    build(w, keep, other)
    picks = np.empty(40_000, np.int64)
    with np.errstate(over="ignore"):
        draw(keep, other, generator(0), picks)
    share, p = np.bincount(picks, minlength=4) / picks.size, w / w.sum()
    assert (abs(share - p) <= 4 * np.sqrt(p * (1 - p) / picks.size)).all()


def test_uniform_picks_and_shuffles_are_fair():
    picks = np.empty(30_000, np.int64)
    with np.errstate(over="ignore"):
        draw_uniform(3, generator(1), picks)
    assert (abs(np.bincount(picks) / picks.size - 1 / 3) < 4 * np.sqrt(2 / 9 / picks.size)).all()
    state, seen = generator(2), {}
    with np.errstate(over="ignore"):
        for _ in range(6000):
            order = np.arange(3)
            shuffle(order, state)
            seen[tuple(order.tolist())] = seen.get(tuple(order.tolist()), 0) + 1
    assert len(seen) == 6
    assert max(abs(v - 1000) for v in seen.values()) < 4 * np.sqrt(6000 * 5 / 36)


def test_the_generator_is_the_published_one_bit_by_bit():
    state, (expected, left) = generator(5), fractions(5, 300)
    with np.errstate(over="ignore"):
        found = [fraction(state) for _ in range(300)]
    assert found == expected
    assert state.tolist() == left
    assert 0 <= min(found) < 0.01 < 0.99 < max(found) < 1


def test_every_pick_is_the_one_its_random_number_says():
    w = np.array([3.0, 0.0, 1.0, 7.0, 0.5])
    keep, other = np.empty(5), np.empty(5, np.int64)
    build(w, keep, other)
    (u, left), state, picks = fractions(3, 200), generator(3), np.empty(200, np.int64)
    with np.errstate(over="ignore"):
        draw(keep, other, state, picks)
    slots = [int(v * 5) for v in u]
    assert picks.tolist() == [i if v * 5 - i < keep[i] else other[i] for i, v in zip(slots, u, strict=True)]
    assert state.tolist() == left
    state = generator(3)
    with np.errstate(over="ignore"):
        draw_uniform(5, state, picks)
    assert picks.tolist() == slots
    assert state.tolist() == left


def test_a_shuffle_swaps_from_the_end_on():
    for n in (0, 1, 2, 9):
        (u, left), state, order = fractions(4, max(n - 1, 0)), generator(4), np.arange(n)
        with np.errstate(over="ignore"):
            shuffle(order, state)
        expected = list(range(n))
        for i, v in zip(range(n - 1, 0, -1), u, strict=True):
            j = int(v * (i + 1))
            expected[i], expected[j] = expected[j], expected[i]
        assert order.tolist() == expected
        assert state.tolist() == left


def test_the_smallest_random_number_picks_no_line_of_weight_zero():
    """This state gives the bits 00...01, of which no upper bit is left: the fraction is zero."""
    state = np.array([0, 0, 0, 1 << 41], np.uint64)
    keep, other, picks = np.empty(2), np.empty(2, np.int64), np.empty(1, np.int64)
    build(np.array([0.0, 1.0]), keep, other)
    with np.errstate(over="ignore"):
        assert fraction(state.copy()) == 0
        draw(keep, other, state, picks)
    assert picks.tolist() == [1]


def test_a_line_of_weight_zero_that_is_left_over_stands_for_the_heaviest():
    """Rounding would have to lose a whole slot: with a hundred million lines it can."""
    w, other = np.array([0.0, 2.0, 5.0, 5.0, 0.0, 1.0, 0.0]), np.arange(7)
    stand_in(w, np.array([0, 5, 4]), other)
    assert w[other[[0, 4]]].tolist() == [5, 5]
    assert other[[1, 2, 3, 5, 6]].tolist() == [1, 2, 3, 5, 6]
    other = np.arange(3)
    stand_in(np.array([0.0, 1.0, 2.0]), np.array([0]), other)
    assert other.tolist() == [2, 1, 2]
    other = np.arange(3)
    stand_in(np.array([3.0, 1.0, 0.0]), np.array([2, 1]), other)
    assert other.tolist() == [0, 1, 0]


def test_where_rounding_leaves_none_that_has_more_than_its_share():
    """Equal weights whose mean was rounded up: each keeps what it has, and nothing is read that is not there."""
    tried = [np.full(m, w) for m in range(3, 60) for w in (0.1, 0.3, 0.7, 1.1)]
    poor = [w for w in tried if w[0] / (sum(w.tolist()) / len(w)) < 1.0]
    assert poor
    for weights in poor:
        keep, other = np.empty(len(weights)), np.full(len(weights), -1)
        build(weights, keep, other)
        assert (keep == weights[0] / (sum(weights.tolist()) / len(weights))).all()
        assert ((other >= 0) & (other < len(weights))).all()
