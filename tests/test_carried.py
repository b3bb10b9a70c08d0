"""Steps on blocks whose residuals workers carry: what is carried is true, little of it travels, and none is missed."""

import logging
import os
import pickle
import signal
from functools import partial

import dask.array as da
import numpy as np
import pytest
from distributed import Client
from sklearn.metrics.pairwise import rbf_kernel

import rowcol
from rowcol.core.carried import NAMES, Carried, Here, Pace, begun
from rowcol.core.far import Far, grams_of
from rowcol.core.gram import alone, between, gram, product
from rowcol.core.kernels import RBF
from rowcol.core.place import Place
from rowcol.core.problem import posed
from rowcol.methods import kernel as movers
from rowcol.methods.kernel import block_size, fresh_blocks
from rowcol.places import opening
from rowcol.places.carrying import Cell, Lost, Own, There, carried_on
from rowcol.places.cluster import Spread
from rowcol.places.crew import Crew, LostError, weight
from rowcol.places.team import Team
from test_cluster import Killing, client, workers  # noqa: F401 - client is a fixture

KERNEL, GAMMA = RBF(length_scale=1.0), 0.5
GROUNDS = ["apart", "shared"]


def points(n=600, d=3, q=2):
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, d))
    return X, np.sin(X @ rng.standard_normal((d, q))) + 0.1 * rng.standard_normal((n, q)), rng.uniform(0.5, 2.0, n)


class Table(Crew):
    """Workers who sit around one table: all in this process, and what they are sent is a copy."""

    status = "running"

    def __init__(self):
        super().__init__(self)
        self.there, self.forgetful = {"a": 1, "b": 2}, 0

    def workers(self):
        return dict(self.there)

    def send(self, value, worker, times=1):
        super().send(0, worker)
        return pickle.loads(pickle.dumps(value))

    lay = send

    def submit(self, f, *arguments, **where):
        return f(*arguments)

    def beside(self, f, asked):
        if f is carried_on and self.forgetful:
            self.forgetful -= 1
            return None
        return [f(*arguments) for _, arguments in asked]

    def ask(self, f, count, question, named=None, short=False):
        for k in range(count):
            _, arguments = question(k, False)
            if f is carried_on and self.forgetful and k == count - 1:  # the last one is gone, and is not asked again
                self.forgetful -= 1
                _, arguments = question(k, True)
            yield f(*arguments)


class Near(Spread):
    """Parts around that table."""

    def __init__(self, X, crew, rows=130):
        Place.__init__(self, X.dtype, np.array([*range(0, X.shape[0], rows), X.shape[0]]), X.shape[1])
        self.crew, self.room = crew, 24 * X.shape[1] * 250
        self.futures = [X[self.rows(k)] for k in range(self.count)]
        self.settle()

    def settle(self):
        self.seen = self.crew.workers()
        self.owners = [sorted(self.seen)[k % len(self.seen)] for k in range(self.count)]

    def part(self, k):
        return self.futures[k]

    map = Place.map


def mover(where, X, Y, w, alpha=0.05, crew=None, exact=True):
    """A mover of blocks, whose residuals are here, or around a table."""
    crew = crew or Table()
    make = grams_of(KERNEL, Near(X, crew), None) if where == "apart" else partial(gram, KERNEL, X)
    g, quick = make(np.float64), make(np.float32)
    if where == "shared":
        g.team = quick.team = Team(crew)
    made = fresh_blocks(posed(g, 0, Y, alpha, w), g, g if exact else quick, None, np.random.SeedSequence(1))
    assert isinstance(made.carried, Here if where == "here" else There)
    return made


def truly_left(made, X):
    """How far what is carried is from y − (K + Λ)α, written out: of w, v and z."""
    told, K = made.carried.told(), rbf_kernel(X, gamma=GAMMA)
    y = made.problem.y[made.ids]
    assert set(NAMES) == set(told)
    return max(np.abs(y - told[u] @ K - made.lam * told[u] - told[f"r_{u}"]).max() for u in "wvz")


@pytest.mark.parametrize("where", ["here", *GROUNDS])
def test_what_is_carried_is_the_residual_whatever_happens(where, monkeypatch):
    X, Y, w = points()
    made = mover(where, X, Y, w)
    for step in range(40):
        made.advance(9.0, np.inf)
        if step == 7:
            made.carried.restart(np.array([True, False]))
        if step == 11:  # as if a look had found the first to be something else, which the check below finds out
            told = made.carried.told()
            made.carried.fresh(0, told["r_w"][0] + 1e-3)
            assert truly_left(made, X) > 9e-4
            made.carried.fresh(0, told["r_w"][0])
        if step == 15:
            before = made.carried.told()
            with monkeypatch.context() as patched:
                patched.setattr(movers, "_energy", lambda sums: sums.energy * np.nan)
                assert made.advance(9.0, np.inf).stuck.all()
            after = made.carried.told()
            for one in "wvz":  # from where it was, without momentum
                np.testing.assert_array_equal(after[one], before["w"])
                np.testing.assert_array_equal(after[f"r_{one}"], before["r_w"])
        if step == 25:
            made.keep(np.array([False, True]))
        assert truly_left(made, X) <= 1e-12
    sums, told = made.carried.sums(), made.carried.told()
    weight, y = made.problem.weight, made.problem.y[made.ids]
    np.testing.assert_allclose(sums.left2, (weight * told["r_w"] ** 2).sum(axis=1))
    np.testing.assert_allclose(sums.energy, (told["w"] * (y + told["r_w"])).sum(axis=1))
    made.keep(np.array([False]))
    assert made.state()["r_w"].shape == (0, 600)
    assert where == "here" or not made.carried.seated.cells  # workers may forget them


@pytest.mark.parametrize("where", GROUNDS)
def test_steps_are_those_of_points_in_memory(where):
    X, Y, w = points()
    there, here = mover(where, X, Y, w), mover("here", X, Y, w)
    for _ in range(60):
        mine, theirs = there.advance(9.0, np.inf), here.advance(9.0, np.inf)
        np.testing.assert_allclose(mine.estimate, theirs.estimate, rtol=1e-6)
        np.testing.assert_allclose(there.answers()[0], here.answers()[0], rtol=1e-7, atol=1e-9)
    # what the driver has is, bit for bit, what the workers have
    pieces = [piece for cell in there.carried.seated.cells for piece in cell.pieces]
    rows = [rows for seat in there.carried.seated.seats for rows in seat.pieces]
    if where == "apart":
        assert len(rows) == 5
    assert sum(r.stop - r.start for r in rows) == 600
    for piece, at in zip(pieces, rows, strict=True):
        np.testing.assert_array_equal(piece.x.w, there.carried.w[:, at])


@pytest.mark.parametrize("where", GROUNDS)
def test_a_worker_that_knows_nothing_is_told_all_and_nothing_changes(where, caplog):
    X, Y, w = points()
    crew = Table()
    there, here = mover(where, X, Y, w, crew=crew), mover("here", X, Y, w)
    with caplog.at_level(logging.INFO, logger="rowcol"):
        for step in range(40):
            crew.forgetful = {6: 1, 20: 3}.get(step, 0)
            there.advance(9.0, np.inf)
            here.advance(9.0, np.inf)
            np.testing.assert_allclose(there.answers()[0], here.answers()[0], rtol=1e-7, atol=1e-9)
            assert truly_left(there, X) <= 1e-12
    assert "a product makes it anew" in caplog.text
    crew.forgetful = 100
    with pytest.raises(LostError, match="lost over a step"):
        there.advance(9.0, np.inf)


def test_those_who_come_get_a_share_after_a_look():
    X, Y, w = points()
    crew = Table()
    made = mover("apart", X, Y, w, crew=crew)
    made.advance(9.0, np.inf)
    crew.there = {"a": 1, "b": 1, "c": 1}
    made.advance(9.0, np.inf)
    assert {seat.worker for seat in made.carried.seated.seats} == {"a", "b"}
    made.carried.fresh(0, made.carried.told()["r_w"][0])
    made.advance(9.0, np.inf)
    assert {seat.worker for seat in made.carried.seated.seats} == {"a", "b", "c"}
    assert truly_left(made, X) <= 1e-12


@pytest.mark.parametrize("where", GROUNDS)
def test_going_on_from_a_state_has_the_same_bits(where):
    X, Y, w = points()
    made, again = (mover(where, X, Y, w, exact=False) for _ in range(2))
    for _ in range(15):
        made.advance(9.0, np.inf)
    made.carried.restart(np.array([False, True]))  # what workers are yet to be told is part of it
    again.restore(pickle.loads(pickle.dumps(made.state())))
    for _ in range(15):
        one, other = made.advance(9.0, np.inf), again.advance(9.0, np.inf)
        assert (one.estimate == other.estimate).all()
        assert (made.answers()[0] == again.answers()[0]).all()
    told, retold = made.carried.told(), again.carried.told()
    assert all((told[name] == retold[name]).all() for name in NAMES)


def test_a_cell_answers_twice_alike_and_says_what_it_does_not_know():
    rng = np.random.default_rng(0)
    y, nothing = rng.standard_normal((1, 5)), np.zeros((1, 5))
    begin = (nothing, None, None, y, None, None, y, np.ones(5), None)
    cell, picks = Cell(), np.array([1, 4])
    tasks = (lambda given, step: [np.ones((1, 5))], lambda given, i, picks: given[picks])
    told = Own(0, np.empty(0, int), picks, [begin])
    ((sums, found),) = carried_on(cell, np.arange(5), (1, (("begin", ()),), None, tasks), [told])
    np.testing.assert_array_equal(found.r_z, y[:, picks])
    np.testing.assert_array_equal(found.points, picks)
    np.testing.assert_allclose(sums.left2, (y**2).sum())

    class Stepped:
        d, pace = np.ones((1, 2)), Pace(0.5, 1.0, 0.5)

    own = Own(0, np.array([0, 2]), picks, [])
    once = carried_on(cell, np.arange(5), (2, (), Stepped, tasks), [own])
    late = pickle.loads(pickle.dumps(cell))
    assert carried_on(cell, np.arange(5), (2, (), Stepped, tasks), [own]) is once
    np.testing.assert_array_equal(cell.pieces[0].x.w, [[1, 0, 1, 0, 0]])
    carried_on(cell, np.arange(5), (3, (), None, tasks), [own])
    for stale, turn in ((late, 4), (Cell(), 4), (None, 4)):
        assert isinstance(carried_on(stale, np.arange(5), (turn, (), None, tasks), [own]), Lost)
    assert not isinstance(carried_on(cell, np.arange(5), (4, (), None, tasks), [own]), Lost)


def test_parts_together_do_what_the_whole_does():
    rng = np.random.default_rng(0)
    y, K, lam = rng.standard_normal((2, 12)), rng.standard_normal((12, 12)), rng.uniform(1, 2, 12)
    whole = Carried(begun(0 * y), begun(y), y, lam, None)
    cuts = [slice(0, 5), slice(5, 12)]
    parts = [Carried(begun(0 * y[:, c]), begun(y[:, c]), y[:, c], lam[c], None) for c in cuts]
    for at in (np.array([1, 4, 6]), np.array([0, 11])):
        d, pace = rng.standard_normal((2, at.size)), Pace(0.7, 1.3, 0.4)
        whole.step(at, d, d @ K[at], pace)
        for part, c in zip(parts, cuts, strict=True):
            mine = (at >= c.start) & (at < c.stop)
            part.step(at[mine] - c.start, d[:, mine], d @ K[at][:, c], pace)
    for name, value in whole.told().items():
        np.testing.assert_allclose(np.hstack([part.told()[name] for part in parts]), value, atol=1e-12)


# --- on workers that are processes -----------------------------------------------------------------------------------


@pytest.fixture
def ground(request, monkeypatch):
    """Points stay with the workers, or everybody has them."""
    if request.param == "apart":

        def leave(X, memory, whole=False):
            X = opening.placed(X, memory)
            if isinstance(X, Place):
                X.room = 24 * X.shape[1] * 400
            return X, None

        monkeypatch.setattr("rowcol.solving.with_team", leave)
    return request.param


def placed(X, parts=4):
    return rowcol.chunks(da.from_array(X, chunks=(-(-len(X) // parts), -1))).X


def asked(**more):
    return {"kernel": KERNEL, "alpha": 5.0, "method": "blocks", "tol": 1e-3, "random_state": 0} | more


@pytest.mark.parametrize("ground", GROUNDS, indirect=True)
def test_answers_are_those_of_points_here_to_the_certificate(client, ground):  # noqa: F811
    X, Y, w = points(900)
    there, here = (rowcol.solve(Z, Y, sample_weight=w, **asked()) for Z in (placed(X), X))
    assert there.success
    assert here.success
    assert isinstance(there.function.exact.far, Far) == (ground == "apart")
    K = rbf_kernel(X, gamma=GAMMA)
    for one in (there, here):
        left = np.sqrt(w)[:, None] * (Y - K @ one.x - 5.0 * one.x / w[:, None])
        assert (np.linalg.norm(left, axis=0) <= 1.01e-3 * np.linalg.norm(np.sqrt(w)[:, None] * Y, axis=0)).all()
    bounds = [c.error_bound for c in (*there.certificates, *here.certificates)]
    apart = np.abs(there.function(X[:50]) - here.function(X[:50]))
    assert (apart <= np.array(bounds[:2]) + np.array(bounds[2:])).all()  # k(x, x) = 1


def bytes_of_a_step(n, d, parts):
    """To the workers and back; some blocks are shorter, and after a look residuals are sent: so the median."""
    assert block_size(n) == 64
    X, Y, _ = points(n, d, 1)
    place, marks = placed(X, parts), []

    def watch(now):
        marks.append((place.sent, place.received))
        return now.steps >= 12

    rowcol.solve(place, Y[:, 0], callback=watch, **asked(tol=1e-9))
    assert len(marks) == 12
    return np.median(np.diff(marks, axis=0), axis=0)


@pytest.mark.parametrize("ground", GROUNDS, indirect=True)
def test_bytes_of_a_step_are_those_of_a_block_whatever_the_number_of_points(client, ground, monkeypatch):  # noqa: F811
    b, d, parts, few = 64, 4, 4, 300
    sent, back = bytes_of_a_step(2_000, d, parts)
    assert bytes_of_a_step(1_000, d, parts).tolist() == [sent, back]
    # to each of two workers: tiles in single precision, padded, or numbers; what is added; and whose turn is next
    assert sent <= 2 * (4 * b * (d + 2 + 1) if ground == "apart" else 8 * b) + 2 * 8 * b + 2 * 8 * b + few
    assert back <= (8 * b * d if ground == "apart" else 0) + 2 * 8 * b + 16 * parts + few
    monkeypatch.setattr(movers, "ground_of", lambda g: None)  # if residuals were here, that would be seen
    some, more = bytes_of_a_step(1_000, d, parts), bytes_of_a_step(2_000, d, parts)
    assert more[1] >= some[1] + 8 * 1_000


def test_a_block_of_points_travels_once_a_product(client):  # noqa: F811
    rng = np.random.default_rng(0)
    X, v = rng.standard_normal((1_000, 60)), rng.standard_normal((1, 1_000))
    place = placed(X, 8)
    place.room = 24 * 60 * 250
    g = grams_of(RBF(length_scale=9.0), place, None)(np.float64)
    assert g.far.blocks() == [(0, 2), (2, 4), (4, 6), (6, 8)]
    before = place.sent
    np.testing.assert_allclose(product(g, v), v @ rbf_kernel(X, gamma=1 / 162), rtol=1e-9)
    once = sum(weight(alone(between(g, X[i : i + 250]))) for i in range(0, 1_000, 250))
    assert place.sent - before <= 2 * (once + 8 * 1_000) + 4 * 8 * 1_000  # to two workers, with its part of v; and v


@pytest.mark.parametrize("ground", GROUNDS, indirect=True)
def test_a_worker_killed_in_the_middle_of_steps_changes_nothing(ground, caplog):
    X, Y, _ = points(900, q=1)
    y = Y[:, 0]
    with workers(2) as cluster, Client(cluster) as mine:
        killing = Killing(mine, cluster)
        with caplog.at_level(logging.INFO, logger="rowcol"):
            result = rowcol.solve(placed(X, 6), y, callback=killing, **asked())
    assert killing.done.is_set()
    assert "a product makes it anew" in caplog.text
    assert result.status is rowcol.Status.CONVERGED
    left = y - rbf_kernel(X, gamma=GAMMA) @ result.x - 5.0 * result.x
    assert np.linalg.norm(left) <= 1.01e-3 * np.linalg.norm(y)


class Twice:
    """A callback that kills a worker after some steps, and the other one later, when a third has come."""

    def __init__(self, mine, cluster):
        self.mine, self.cluster, self.rounds = mine, cluster, 0

    def __call__(self, now):
        self.rounds += 1
        if self.rounds in (3, 40):
            self.cluster.scale(2 if self.rounds == 3 else 3)
            self.mine.wait_for_workers(2, timeout=60)
            os.kill(sorted(self.mine.run(os.getpid).items())[0][1], signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("ground", GROUNDS, indirect=True)
def test_workers_killed_again_and_again_change_nothing(ground):
    X, Y, w = points(2_000)
    with workers(2) as cluster, Client(cluster) as mine:
        killing = Twice(mine, cluster)
        result = rowcol.solve(placed(X, 6), Y, sample_weight=w, callback=killing, **asked())
    assert killing.rounds > 40
    assert result.status is rowcol.Status.CONVERGED
    root = np.sqrt(w)[:, None]
    left = root * (Y - rbf_kernel(X, gamma=GAMMA) @ result.x - 5.0 * result.x / w[:, None])
    assert (np.linalg.norm(left, axis=0) <= 1.01e-3 * np.linalg.norm(root * Y, axis=0)).all()


@pytest.mark.parametrize("ground", GROUNDS, indirect=True)
def test_a_fit_that_was_cut_short_goes_on_to_the_same_bits(client, ground, tmp_path):  # noqa: F811
    X, Y, _ = points(700)
    place, path = placed(X), tmp_path / "checkpoint"
    whole = rowcol.solve(place, Y, **asked())
    cut = rowcol.solve(place, Y, checkpoint=path, callback=lambda now: now.steps >= 20, **asked())
    assert cut.status is rowcol.Status.CALLBACK
    again = rowcol.resume(path, place, Y)
    assert again.success
    assert (again.steps, again.status) == (whole.steps, whole.status)
    assert (again.x == whole.x).all()
