import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcol.core.sampler import NAMES, Weave, sampler, seeds, take


def fresh(kind, m, seed=0, weights=None):
    return sampler(kind, m, np.random.SeedSequence(seed), weights if weights is not None else np.ones(m))


@given(st.integers(1, 300), st.sampled_from(NAMES), st.integers(0, 99), st.lists(st.integers(0, 200), max_size=6))
def test_the_stream_does_not_depend_on_how_it_is_cut(m, kind, seed, cuts):
    whole = take(fresh(kind, m, seed), sum(cuts))
    source = fresh(kind, m, seed)
    parts = [take(source, c) for c in cuts]
    np.testing.assert_array_equal(whole, np.concatenate([np.empty(0, np.int64), *parts]))
    assert ((whole >= 0) & (whole < m)).all()


@given(st.integers(1, 500), st.sampled_from(["shuffled", "chunks", "cyclic"]), st.integers(0, 99))
def test_every_pass_of_an_ordered_sampler_meets_every_line_once(m, kind, seed):
    source = fresh(kind, m, seed)
    for _ in range(3):
        assert sorted(take(source, m).tolist()) == list(range(m))


def test_chunks_are_runs_of_neighbours_in_a_new_order_each_pass():
    source = fresh("chunks", 1000)
    one, two = take(source, 1000), take(source, 1000)
    assert (np.diff(one) == 1).mean() > 0.97
    assert not np.array_equal(one, two)
    assert one.tolist() != sorted(one.tolist())


def test_chunks_of_a_given_length():
    order = take(fresh("chunks:10", 100), 100)
    assert (np.diff(order) == 1).sum() in range(86, 92)  # ten or eleven runs, some of which may follow each other


def test_cyclic_is_the_order_of_the_lines():
    assert take(fresh("cyclic", 3), 7).tolist() == [0, 1, 2, 0, 1, 2, 0]


def test_norms_follow_the_weights_and_avoid_zeros():
    weights = np.array([1.0, 0.0, 3.0])
    share = np.bincount(take(fresh("norms", 3, 1, weights), 20_000), minlength=3) / 20_000
    assert share[1] == 0
    assert abs(share[0] - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 20_000)
    mine = np.bincount(take(fresh(weights, 3, 1), 20_000), minlength=3) / 20_000
    np.testing.assert_array_equal(share, mine)


def test_weave_alternates_steps_or_sweeps():
    steps = take(Weave(fresh("cyclic", 2), fresh("cyclic", 3), sweep=False), 8)
    assert steps.tolist() == [0, 2, 1, 3, 0, 4, 1, 2]
    sweeps = take(Weave(fresh("cyclic", 2), fresh("cyclic", 3), sweep=True), 8)
    assert sweeps.tolist() == [0, 1, 2, 3, 4, 0, 1, 2]


def test_what_random_state_may_be():
    assert seeds(3).generate_state(2).tolist() == seeds(np.int64(3)).generate_state(2).tolist()
    one, two = np.random.default_rng(1), np.random.default_rng(1)
    assert seeds(one).generate_state(2).tolist() == seeds(two).generate_state(2).tolist()
    assert seeds(one).generate_state(2).tolist() != seeds(np.random.default_rng(1)).generate_state(2).tolist()
    root = np.random.SeedSequence(5)
    assert seeds(root).generate_state(2).tolist() == seeds(root).generate_state(2).tolist()
    assert seeds(np.random.RandomState(0)).generate_state(1)
    for bad in (-1, 1.5, "seed", True):
        with pytest.raises(ValueError, match="random_state"):
            seeds(bad)


@pytest.mark.parametrize("bad", [[1.0, 2.0], [-1.0, 1.0, 1.0], [np.nan, 1, 1], [0, 0, 0], ["a", "b", "c"]])
def test_bad_weights(bad):
    with pytest.raises(ValueError, match="sampler"):
        fresh(bad, 3)
