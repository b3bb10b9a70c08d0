"""F of the preconditioner, here and on workers: it is what Cholesky says, wherever its columns are, whoever is lost."""

import pickle
import time
from dataclasses import replace
from functools import partial
from itertools import product as product_of

import dask.array as da
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from distributed import Client
from sklearn.metrics.pairwise import rbf_kernel

import rowcol
from rowcol.core.far import grams_of
from rowcol.core.gram import gram, product
from rowcol.core.kernels import RBF, Function
from rowcol.core.lowrank import LowRank
from rowcol.core.memory import LINE, Rooms, laid, zeros
from rowcol.core.threads import pooled
from rowcol.methods.pivots import pivots
from rowcol.places import lowrank, opening
from rowcol.places.crew import LostError, weight
from rowcol.places.lowrank import Cell, LowRankThere, low_rank_there
from rowcol.places.team import Team
from test_carried import Near, Table
from test_cluster import Killing, client, workers  # noqa: F401 - client is a fixture

GAMMA, RANK = 0.5, 70
WHERE = ["here", "apart", "shared"]


class Seats(Table):
    """Workers around a table, of whom the last forgets what it had, at the questions that are named."""

    def __init__(self, forgets=()):
        super().__init__()
        self.forgets, self.asked = list(forgets), 0

    def memory(self):
        return np.inf

    def ask(self, f, count, question, named=None, short=False):
        self.asked += 1
        gone = self.asked in self.forgets
        for k in range(count):
            yield f(*question(k, gone and k == count - 1)[1])

    def beside(self, f, asked):
        return list(self.ask(f, len(asked), lambda k, again: (None, (None,) * 4) if again else asked[k]))


def points(n=700, d=3):
    return np.random.default_rng(n).standard_normal((n, d))


def gram_at(where, X, crew, kernel=RBF(length_scale=1.0)):  # noqa: B008 - it is never changed
    make = grams_of(kernel, Near(X, crew), None) if where == "apart" else partial(gram, kernel, X)
    return replace(make(np.float32), team=Team(crew) if where == "shared" else None)


def made_at(where, X, lam, crew=None, kernel=RBF(length_scale=1.0)):  # noqa: B008
    g = gram_at(where, X, crew or Seats(), kernel)
    low = None if where == "here" else LowRankThere(lowrank.ground_of(g), g, RANK)
    return pivots(g, lam, RANK, np.random.SeedSequence(3), at_once=25, low=low)


def nystrom(X, which, lam, v):
    """(FᵀF + Λ)⁻¹v of the points that count, F being L⁻¹K(S, X): in double precision, by scikit-learn and LAPACK."""
    K, live, out = rbf_kernel(X, gamma=GAMMA), lam > 0, np.zeros(len(v))
    F = scipy.linalg.solve_triangular(np.linalg.cholesky(K[np.ix_(which, which)]), K[which][:, live], lower=True)
    out[live] = np.linalg.solve(F.T @ F + np.diag(lam[live]), v[live])
    return out


@pytest.mark.parametrize("where", WHERE)
def test_it_is_the_preconditioner_that_cholesky_and_lapack_give(where):
    X = points()
    rng, n = np.random.default_rng(0), len(X)
    plain = np.full(n, 0.3)
    folds = np.where(np.arange(n) % 5 == np.array([[0], [1]]), 0.0, 0.3)  # a fifth of the points left out
    mixed = np.vstack([rng.uniform(0.2, 2.0, n), rng.uniform(0.2, 2.0, n)])
    for lam in (plain, folds, mixed):
        made, rows = made_at(where, X, lam), lam.reshape(-1, n)
        assert made.low.known == made.which.size == np.unique(made.which).size > 50
        v = rng.standard_normal((len(rows), n))
        found = made(v)
        for one, mine, right in zip(rows, found, v, strict=True):
            assert not mine[one == 0].any()
            truth = nystrom(X, made.which, one, right)
            assert np.linalg.norm(mine - truth) <= 2e-4 * np.linalg.norm(truth)
    assert made.slack.max() == 1.0


@pytest.mark.parametrize("where", ["apart", "shared"])
def test_workers_draw_the_same_pivots_and_have_the_same_columns(where):
    X, lam = points(), np.full(700, 0.3)
    here, there = made_at("here", X, lam), made_at(where, X, lam)
    np.testing.assert_array_equal(here.which, there.which)
    some = np.random.default_rng(1).permutation(700)[:90]
    np.testing.assert_allclose(there.low.columns(some), here.low.columns(some), atol=2e-4)
    np.testing.assert_allclose(np.tril(there.inner), np.tril(here.inner), rtol=1e-4, atol=1e-3)
    assert there.left == pytest.approx(here.left, rel=1e-3)


@pytest.mark.parametrize("where", ["apart", "shared"])
def test_who_is_lost_costs_time_and_no_bit(where):
    X, lam, v = points(), np.full(700, 0.3), np.random.default_rng(2).standard_normal((2, 700))
    quiet = Seats()
    calm = made_at(where, X, lam, quiet)
    many = quiet.asked
    wanted = calm(v)
    for forgets in ([1], [2], [3, 4], [many], [many + 1], [many + 2, many + 3]):
        crew = Seats(forgets)
        made = made_at(where, X, lam, crew)
        np.testing.assert_array_equal(made(v), wanted)
        assert crew.asked == many + 2 + len(forgets)


@pytest.mark.parametrize("where", ["apart", "shared"])
def test_it_is_made_anew_by_those_who_are_there_then(where):
    X, lam, v = points(), np.full(700, 0.3), np.random.default_rng(2).standard_normal((1, 700))
    crew = Seats()
    made = made_at(where, X, lam, crew)
    truth = nystrom(X, made.which, lam, v[0])
    for there in ({"a": 1, "c": 3}, {"c": 1}, {"b": 2, "c": 1, "d": 1}):
        crew.there, crew.forgets = there, [crew.asked + 1]
        assert np.linalg.norm(made(v)[0] - truth) <= 2e-4 * np.linalg.norm(truth)
        seated = {seat.worker for seat in made.low.seated.seats}
        assert seated == set(there) or (where == "shared" and seated < set(there))  # two rows of tiles, for two
        made.low.seated.cells[0] = Cell()  # a copy that is behind
        assert np.linalg.norm(made(v)[0] - truth) <= 2e-4 * np.linalg.norm(truth)


def test_workers_who_are_lost_time_and_again_are_told_of():
    crew = Seats()
    made = made_at("shared", points(), np.full(700, 0.3), crew)
    crew.forgets = range(10**6)
    with pytest.raises(LostError, match="over the preconditioner, 6 times"):
        made(np.ones((1, 700)))


def test_a_function_and_sparse_points_go_to_workers_as_they_are():
    X, lam = points(), np.full(700, 0.3)
    v = np.random.default_rng(4).standard_normal((1, 700))
    function, plain = Function(partial(rbf_kernel, gamma=GAMMA)), RBF(length_scale=1.0)
    for where, (of, kernel) in product_of(WHERE, ((X, function), (sp.csr_array(X), plain))):
        made = made_at(where, of, lam, kernel=kernel)
        truth = nystrom(X, made.which, lam, v[0])
        assert np.linalg.norm(made(v)[0] - truth) <= 2e-4 * np.linalg.norm(truth)


def test_the_number_of_threads_changes_no_bit():
    X, lam, v = points(), np.full(700, 0.3), np.random.default_rng(2).standard_normal((3, 700))
    found = []
    for jobs in (1, 2, 3):
        with pooled(jobs) as pool:
            g = replace(gram_at("here", X, None), pool=pool)
            made = pivots(g, lam, RANK, np.random.SeedSequence(3), at_once=25).shared(pool)
            found.append(made(v))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_nothing_is_asked_of_workers_where_there_is_no_pivot():
    crew = Seats()
    g = gram_at("shared", points(), crew)
    low = LowRankThere(lowrank.ground_of(g), g, RANK)
    made = pivots(g, np.full(700, 0.3), RANK, np.random.SeedSequence(3), low=low, deadline=-np.inf)
    assert crew.asked == 0
    np.testing.assert_allclose(made(np.ones((1, 700))), 1 / 0.3)


def test_where_f_is_made_is_a_matter_of_threads_points_and_memory(monkeypatch):
    crew = Seats()  # of three threads
    near, apart = gram_at("shared", points(), crew), gram_at("apart", points(), crew)
    assert low_rank_there(replace(near, team=None), RANK) is None
    assert low_rank_there(near, RANK) is None  # it saves less than the questions cost
    assert isinstance(low_rank_there(apart, RANK), LowRankThere)  # it would have to travel
    monkeypatch.setattr(lowrank, "PACE", 1e5)
    assert isinstance(low_rank_there(near, RANK), LowRankThere)
    with pooled(3) as pool:
        assert low_rank_there(replace(near, pool=pool), RANK) is None
    monkeypatch.setattr(crew, "memory", lambda: 4 * RANK * 700 / lowrank.SHARE - 1)
    assert low_rank_there(near, RANK) is low_rank_there(apart, RANK) is None


def job(n=1_500):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3))
    return X, np.sin(X).sum(axis=1) + 0.1 * rng.standard_normal(n), da.from_array(X, chunks=(n // 6, -1))


@pytest.mark.parametrize("where", ["shared", "apart"])
def test_a_solve_on_real_workers_is_exact_and_f_does_not_travel(client, monkeypatch, where):  # noqa: F811
    X, y, D = job(4_000)
    came, plain = {}, LowRankThere._ask
    if where == "apart":  # as if they did not fit
        monkeypatch.setattr(opening, "_needed", lambda X: np.inf)
    monkeypatch.setattr(lowrank, "PRICE", -1.0)

    def counted(self, name, own, many=1):
        found = plain(self, name, own, many)
        came.setdefault(name, []).append((sum(weight(one) for _, one in found), self.known, len(found)))
        return found

    monkeypatch.setattr(LowRankThere, "_ask", counted)
    made = rowcol.solve(D, y, kernel=RBF(gamma=0.5), alpha=0.5, method="pcg", tol=1e-7)
    assert made.success
    ((inner, rank, seats),) = came["squared"]
    assert inner == 4 * rank**2 * seats
    assert rank > 300
    assert all(one == 8 * rank * seats for one, _, _ in came["times"])
    assert all(one == 4 * 4_000 for one, _, _ in came["back"] + came["fallen"])
    assert all(one <= 4 * known * 320 for one, known, _ in came["columns"])
    assert set(came) == {"squared", "times", "back", "fallen", "columns"}
    left = y - rbf_kernel(X, gamma=0.5) @ made.x - 0.5 * made.x
    assert np.linalg.norm(left) <= 1.01e-7 * np.linalg.norm(y)


def test_a_worker_killed_in_the_middle_changes_nothing(monkeypatch):
    X, y, D = job()
    monkeypatch.setattr(lowrank, "PRICE", -1.0)
    with workers(2) as cluster, Client(cluster) as mine:
        killing = Killing(mine, cluster)
        made = rowcol.solve(D, y, kernel=RBF(gamma=0.5), alpha=0.5, method="pcg", tol=1e-8, callback=killing)
    assert killing.done.is_set()
    assert made.success
    truth = np.linalg.solve(rbf_kernel(X, gamma=0.5) + 0.5 * np.eye(len(X)), y)
    np.testing.assert_allclose(made.x, truth, atol=1e-6)


def test_answers_that_are_done_are_forgotten_and_memory_is_what_workers_say(client):  # noqa: F811
    _, y, D = job(3_000)
    place = rowcol.chunks(D).X
    limits = client.run(lambda dask_worker: dask_worker.memory_manager.memory_limit)
    assert place.crew.memory() == sum(limits.values())
    assert rowcol.solve(place, y, alpha=1.0, method="cg", tol=1e-8).success
    until = time.monotonic() + 10
    asked = ["normal-part", "look-at-some"]
    while left := [key for key in list(client.futures) if any(name in str(key) for name in asked)]:
        assert time.monotonic() < until, left
        time.sleep(0.01)


# --- memory ----------------------------------------------------------------------------------------------------------


def test_arrays_begin_at_a_line_of_the_cache_wherever_they_come_from():
    for shape, kind in (((3, 5), np.float32), (7, np.float64), ((2, 0), np.float64)):
        made = zeros(shape, kind)
        assert made.shape == np.zeros(shape).shape
        assert made.dtype == kind
        assert made.ctypes.data % LINE == 0 or not made.size
        assert not made.any()
    raw = np.arange(101.0)
    for a in (raw[1:], raw[::2], raw.reshape(1, -1)[:, 3:], np.asfortranarray(raw[1:].reshape(10, 10))):
        found = laid(a)
        np.testing.assert_array_equal(found, a)
        assert found.ctypes.data % LINE == 0
        assert found.flags.c_contiguous
        assert laid(found) is found
        found.flags.writeable = False
        assert laid(found).flags.writeable
        assert laid(a, np.float32).dtype == np.float32
    X, v = points(), np.random.default_rng(0).standard_normal((1, 700))
    g = gram(RBF(), X, np.float32)
    came = pickle.loads(pickle.dumps(g))
    assert came.symmetric
    for one in (g, came):
        assert [side.ctypes.data % LINE for side in one.left[0][:2]] == [0, 0]
    np.testing.assert_array_equal(product(came, v), product(g, v))


def test_memory_that_is_used_again_is_zero_again():
    rooms = Rooms()
    first = rooms.zeros(2, 5)
    first += 1.0
    rooms.free(first)
    again = rooms.zeros(3, 2)
    assert np.shares_memory(first, again)
    assert again.shape == (3, 2)
    assert not again.any()
    rooms.free(again)
    assert rooms.zeros(2, 6).size == 12  # longer than what is there: new
    assert rooms.zeros(1, 0).shape == (1, 0)


def test_lowrank_alone_is_plain_arithmetic():
    rng = np.random.default_rng(0)
    F = rng.standard_normal((6, 40)).astype(np.float32)
    low = LowRank(F, 5)
    G, shape = F[:5].astype(float), (np.arange(40) % 4).astype(np.float32)
    np.testing.assert_allclose(low.times(np.eye(40, dtype=np.float32)), G.T, rtol=1e-6)
    np.testing.assert_allclose(low.back(np.eye(5, dtype=np.float32)), G, rtol=1e-6)
    np.testing.assert_allclose(np.tril(low.squared()), np.tril(G @ G.T), rtol=1e-5, atol=1e-5)
    for room in (1, 35, 10_000):
        np.testing.assert_allclose(np.tril(low.weighed(shape, False, room)), np.tril(G * shape**2 @ G.T), atol=1e-3)
        out = G[:, shape == 0]
        np.testing.assert_allclose(np.tril(low.weighed(shape, True, room)), np.tril(out @ out.T), atol=1e-4)
    np.testing.assert_allclose(low.fallen(1, 4), (G[1:4] ** 2).sum(axis=0), rtol=1e-5)
