import numpy as np
import pytest

from rowcol.engine.alias import advance, build, draw, draw_uniform, shuffle


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
