"""A fit that was cut short and is fitted again has the bits of one that was not: that one is the truth."""

import pickle
import signal

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import rowcol
from cases import POINTS, SPARSE, TALL, VALUES, WIDE, Y, told
from oracle import lapack
from rowcol import checkpoints
from rowcol.checkpoints import Warm
from rowcol.estimators import going_on

pytestmark = pytest.mark.filterwarnings("ignore::rowcol.ConvergenceWarning")
rng = np.random.default_rng(5)
STEEP = rng.standard_normal((300, 40)) @ np.diag(np.logspace(0, -2.5, 40))
LEFT = STEEP @ rng.standard_normal(40) + 0.1 * rng.standard_normal(300)


def kernel(solver, alpha, tol=1e-6, **more):
    return rowcol.KernelRidge(alpha, kernel="rbf", solver=solver, tol=tol, **more)


def chunked(X, rows=50):
    return rowcol.chunks(lambda: (X[i : i + rows] for i in range(0, X.shape[0], rows))).X


LONG = {
    "cg": (rowcol.Ridge(0.003, solver="cg", tol=1e-9), STEEP, LEFT),
    "rows": (rowcol.Ridge(0.5, solver="rk", tol=1e-4, max_iter=200), TALL, Y),
    "columns": (rowcol.Ridge(0.5, solver="rcd", tol=1e-4), TALL, Y),
    "sgs-cg": (rowcol.Ridge(0.003, solver="sgs-cg", tol=1e-9), STEEP, LEFT),
    "positive": (rowcol.Ridge(1e-2, positive=True, tol=1e-9), STEEP, LEFT),
    "sparse, rows": (rowcol.Ridge(0.5, solver="rk", tol=1e-5, max_iter=400), SPARSE, Y),
    "sparse, ones": (rowcol.Ridge(0.005, solver="sgs-cg", tol=1e-9), SPARSE, Y),
    "wide": (rowcol.Ridge(1e-3, solver="cg", tol=1e-9), WIDE, Y[:20, 0]),
    "alphas apart": (rowcol.Ridge([0.5, 1.0, 1.0], solver="rcd", tol=1e-4), TALL, Y),
    "chunks": (rowcol.Ridge(0.003, solver="cg", tol=1e-9), chunked(STEEP), LEFT),
    "chunks, rows": (
        rowcol.Ridge(0.5, solver="rk", fit_intercept=False, tol=1e-4, max_iter=300),
        chunked(TALL),
        Y[:, 0],
    ),
    "least squares": (rowcol.LeastSquares(solver="cg", tol=1e-10), STEEP, LEFT),
    "classes": (rowcol.RidgeClassifier(0.003, solver="cg", tol=1e-9), STEEP, LEFT > 0),
    "kernel pcg": (kernel("pcg", 1e-4, 1e-7, fit_intercept=True), POINTS, VALUES),
    "kernel blocks": (kernel("blocks", 0.05), POINTS, VALUES),
    "kernel points": (kernel("rk", 0.5, 1e-3), POINTS, VALUES),
    "kernel points, alphas": (kernel("rk", [0.5, 1.0, 2.0], 1e-3), POINTS, VALUES),
    "kernel centres": (kernel("cg", 1e-4, 1e-4, n_centers=40), POINTS, VALUES),
    "kernel classes": (
        rowcol.KernelRidgeClassifier(1e-3, solver="cg", tol=1e-6),
        POINTS,
        VALUES[:, 0] > 0,
    ),
}


class After:
    """A callback that stops after so many rounds, and counts them."""

    def __init__(self, count=np.inf):
        self.count, self.calls = count, 0

    def __call__(self, progress):
        self.calls += 1
        return self.calls >= self.count


def asked(name):
    model, X, y = LONG[name]
    return clone(model).set_params(random_state=3, memory="1 GB", n_jobs=1, warm_start=True), X, y


def results(model):
    return model.result_ if isinstance(model.result_, tuple) else (model.result_,)


def same(a, b):
    """All that the Results of two fits tell, and the coefficients."""
    for one, other in zip(results(a), results(b), strict=True):
        one, other = told(one), told(other)
        assert [name for name in one if one[name] != other[name]] == []
    assert np.array_equal(a.dual_coef_, b.dual_coef_)
    assert np.array_equal(getattr(a, "coef_", 0), getattr(b, "coef_", 0))


def uncut(name):
    """A fit without warm_start, and how many rounds it takes."""
    model, X, y = asked(name)
    every = After()
    whole = model.set_params(warm_start=False, callback=every).fit(X, y)
    assert every.calls > 3, "an example that cannot be cut shows nothing"
    assert all(result.success for result in results(whole))
    return whole, every.calls


@pytest.mark.parametrize("name", LONG)
def test_cut_by_a_callback_and_fitted_again_it_has_the_same_bits(name):
    whole, rounds = uncut(name)
    for cut in (1, 2, rounds // 2, rounds - 1):
        model, X, y = asked(name)
        model.set_params(callback=After(cut)).fit(X, y)
        if all(result.success for result in results(model)):
            assert cut > 2  # what it had was good enough
            continue
        on = After()
        model.set_params(callback=on).fit(X, y)
        same(whole, model)
        assert on.calls < rounds or len(results(model)) > 1, "it went on from there"
        assert "_cut" not in vars(model), "it is done"


@pytest.mark.parametrize("name", LONG)
def test_cut_by_max_iter_it_goes_on_where_more_is_allowed(name):
    whole, _ = uncut(name)
    for share in (0.1, 0.3, 0.77):
        model, X, y = asked(name)
        most = model.max_iter
        model.set_params(max_iter=share * max(r.passes for r in results(whole))).fit(X, y)
        if all(result.success for result in results(model)):
            continue
        same(whole, model.set_params(max_iter=most).fit(X, y))


@pytest.mark.parametrize("name", ["cg", "rows", "chunks", "kernel points"])
def test_the_same_max_iter_again_and_again_comes_to_the_end(name):
    model, X, y = asked(name)
    whole, _ = uncut(name)
    model.set_params(max_iter=whole.result_.passes / 2.5)
    fits = [model.fit(X, y).result_.passes for _ in range(2)]
    assert not model.result_.success
    assert fits == sorted(set(fits))
    model.fit(X, y)
    same(whole, model)


def test_the_same_bits_in_ever_so_many_slots_of_time():
    for name in ("rows", "kernel points"):
        whole, rounds = uncut(name)
        model, X, y = asked(name)
        model.set_params(max_seconds=1e-9)
        for _ in range(rounds // 2):
            assert model.fit(X, y).result_.status.name == "SECONDS"
        on = After()
        same(whole, model.set_params(max_seconds=None, callback=on).fit(X, y))
        assert on.calls == rounds - rounds // 2


@pytest.mark.parametrize("name", ["cg", "chunks", "kernel blocks"])
def test_after_control_c_it_goes_on(name):
    whole, rounds = uncut(name)
    model, X, y = asked(name)
    calls = []

    def interrupt(progress):
        calls.append(progress)
        if len(calls) == rounds // 2:
            signal.raise_signal(signal.SIGINT)

    model.set_params(callback=interrupt).fit(X, y)
    assert model.result_.status.name == "INTERRUPTED"
    on = After()
    same(whole, model.set_params(callback=on).fit(X, y))
    assert on.calls < rounds


@pytest.mark.parametrize("name", ["cg", "rows", "chunks", "kernel pcg"])
def test_what_was_begun_from_other_coefficients_is_ended_from_them(name):
    """A start is part of what is cut short."""
    models = []
    for cut in (np.inf, 2):
        model, X, y = asked(name)
        model.fit(X, y)
        model.set_params(callback=After(cut)).fit(X, -y)
        models.append(model.set_params(callback=None))
    same(models[0], models[1].fit(X, -y))


def test_another_problem_is_not_gone_on_with():
    """It starts from the coefficients, and ends at its own solution."""
    weight = np.arange(300.0) % 3
    other, shifted = STEEP.copy(), LEFT.copy()
    other[7, 3] += 1
    shifted[9] += 1
    at = np.sqrt(weight)[:, None]
    X, y = STEEP, LEFT
    for now, given, truth in (
        ({"alpha": 0.5}, (X, y), lapack(X, y, 0.5)),
        ({}, (other, y), lapack(other, y, 0.003)),
        ({}, (X, shifted), lapack(X, shifted, 0.003)),
        ({}, (X, y, weight), lapack(X * at, y * at[:, 0], 0.003)),
        ({"random_state": 4}, (X, y), lapack(X, y, 0.003)),
        ({"tol": 1e-10}, (X, y), lapack(X, y, 0.003)),
        ({"solver": "sgs-cg"}, (X, y), lapack(X, y, 0.003)),
    ):
        model, _, _ = asked("cg")
        model.set_params(fit_intercept=False, callback=After(5)).fit(X, y)
        on = After()
        model.set_params(callback=on, **now).fit(*given)
        assert model.result_.success
        assert len(model.result_.history.passes) == on.calls, "all of it was done now"
        np.testing.assert_allclose(model.coef_, truth, rtol=1e-5, atol=1e-7)


def test_x_that_was_changed_in_place_is_another():
    X = STEEP.copy()
    model, _, y = asked("cg")
    model.set_params(fit_intercept=False, callback=After(5)).fit(X, y)
    X[:, 0] *= 2
    model.set_params(callback=None).fit(X, y)
    np.testing.assert_allclose(model.coef_, lapack(X, y, 0.003), rtol=1e-5, atol=1e-7)


def test_another_function_is_another_kernel():
    def one(a, b):
        return np.exp(-((a - b) ** 2).sum())

    def two(a, b):
        return np.exp(-2 * ((a - b) ** 2).sum())

    X, y = POINTS[:60], VALUES[:60]
    options = dict(alpha=1e-3, solver="cg", tol=1e-8, random_state=0, memory="1 GB")
    for f, goes_on in ((one, True), (two, False)):
        whole, on = rowcol.KernelRidge(kernel=f, **options).fit(X, y), After()
        model = rowcol.KernelRidge(kernel=one, warm_start=True, callback=After(3), **options).fit(X, y)
        model.set_params(kernel=f, callback=on).fit(X, y)
        assert (on.calls < len(model.result_.history.passes)) == goes_on
        if goes_on:
            same(whole, model)
        np.testing.assert_allclose(model.predict(X), whole.predict(X), atol=1e-5)


@pytest.mark.parametrize(
    "state", [None, np.random.RandomState(0), np.random.default_rng(0)], ids=["none", "state", "generator"]
)
def test_without_a_seed_the_picks_go_on_as_they_were_drawn(state):
    """`rk` picks at random: the history of the whole has to begin with that of its part."""
    model, X, y = asked("rows")
    part = model.set_params(random_state=state, callback=After(4)).fit(X, y).result_
    whole = model.set_params(callback=None).fit(X, y).result_
    assert whole.success
    assert np.array_equal(part.history.energy, whole.history.energy[:4], equal_nan=True)


@pytest.mark.parametrize("name", ["cg", "rows", "classes", "kernel pcg", "kernel centres", "kernel classes"])
def test_pickles_go_on_and_clones_begin_anew(name, tmp_path):
    whole, rounds = uncut(name)
    model, X, y = asked(name)
    model.set_params(callback=After(3)).fit(X, y)
    model.set_params(callback=None)
    assert "_cut" not in vars(clone(model))
    again = pickle.loads(pickle.dumps(model))
    on = After()
    same(whole, again.set_params(callback=on).fit(X, y))
    assert on.calls < rounds
    same(whole, clone(model).fit(X, y))
    rowcol.save(model, tmp_path / "m")
    assert not hasattr(rowcol.load(tmp_path / "m"), "_cut")


def test_without_warm_start_and_at_the_end_nothing_is_kept():
    model, X, y = asked("cg")
    assert "_cut" not in vars(model.set_params(warm_start=False, callback=After(3)).fit(X, y))
    model.set_params(warm_start=True).fit(X, y)
    kept = vars(model)["_cut"][0]
    held = sum(a.nbytes for a in arrays(kept))
    assert held < 12 * 8 * sum(X.shape), "a few vectors, and not X"
    assert "_cut" not in vars(model.set_params(callback=None).fit(X, y))


def arrays(value):
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from arrays(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from arrays(one)


def test_x_and_y_are_summed_up_only_where_that_is_of_use(monkeypatch):
    count, summed = [], checkpoints.fingerprint
    monkeypatch.setattr(checkpoints, "fingerprint", lambda X, y: (count.append(1), summed(X, y))[1])
    model, X, y = asked("cg")
    model.fit(X, y).fit(X, y)
    assert len(count) == 0, "it came to its end"
    model.set_params(callback=After(2)).fit(X, -y)
    assert len(count) == 1
    model.set_params(callback=After(1)).fit(X, -y)
    assert len(count) == 2, "once for both questions"
    model.set_params(alpha=0.1, callback=None).fit(X, -y)
    assert len(count) == 2, "alpha tells"


def test_a_file_comes_first_and_memory_goes_on_into_it(tmp_path):
    whole, rounds = uncut("cg")
    model, X, y = asked("cg")
    at = rowcol.Checkpoint(tmp_path / "at", seconds=1e6)
    model.set_params(callback=After(3)).fit(X, y)
    model.set_params(callback=After(3), checkpoint=at).fit(X, y)  # from memory, into the file
    other, on = clone(model), After()
    same(whole, other.set_params(callback=on).fit(X, y))
    assert on.calls == rounds - 6
    on = After()
    same(whole, clone(model).set_params(callback=on).fit(X, y))
    assert on.calls == 0
    on = After()
    same(whole, model.set_params(callback=on, checkpoint=None).fit(X, y))  # from memory again
    assert on.calls == rounds - 6
    with pytest.raises(ValueError, match="checkpoint: at is of another solve, as y has other values"):
        model.set_params(checkpoint=at).fit(X, 2 * y)


def test_a_file_that_ended_by_its_limit_is_no_end_of_what_has_another_limit(tmp_path):
    whole, _ = uncut("rows")
    model, X, y = asked("rows")
    for _ in range(2):  # it is written, and read
        model.set_params(max_iter=7.3, checkpoint=tmp_path / "at").fit(X, y)
        assert model.result_.status.name == "PASSES"
    same(whole, model.set_params(max_iter=200, checkpoint=None).fit(X, y))


def test_a_limit_that_leaves_no_race_is_another_way():
    """Rows and columns race if three passes are allowed: a fit that had two did not, and begins as the whole does."""
    X = sp.random_array((4000, 4000), density=0.005, rng=5, format="csr")
    y = X @ np.ones(4000)
    options = dict(alpha=30.0, fit_intercept=False, random_state=3, memory="1 GB", n_jobs=1)
    whole = rowcol.Ridge(**options).fit(X, y)
    assert "raced" in str(whole.plan_)
    for first in (2, 4):
        model = rowcol.Ridge(warm_start=True, max_iter=first, **options).fit(X, y)
        assert not model.result_.success
        same(whole, model.set_params(max_iter=None).fit(X, y))


def test_a_memory_map_stays_in_the_parts_it_was_cut_in(tmp_path, monkeypatch):
    """The budget is that of the fit that was cut short: what is free by now does not matter."""
    np.save(tmp_path / "X.npy", STEEP)
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    whole = rowcol.Ridge(0.003, solver="cg", tol=1e-9, random_state=0).fit(X, LEFT)
    model = rowcol.Ridge(0.003, solver="cg", tol=1e-9, random_state=0, warm_start=True, callback=After(4)).fit(X, LEFT)
    monkeypatch.setattr(going_on, "budget", lambda memory: X.nbytes // 2)
    on = After()
    same(whole, model.set_params(callback=on).fit(X, LEFT))
    assert on.calls == len(whole.result_.history.passes) - 4


def test_a_fit_that_is_refused_leaves_what_there_was():
    whole, rounds = uncut("cg")
    model, X, y = asked("cg")
    model.set_params(callback=After(4)).fit(X, y)
    with pytest.raises(ValueError, match="y"):
        model.fit(X, y[:-1])
    on = After()
    same(whole, model.set_params(callback=on).fit(X, y))
    assert on.calls == rounds - 4


def test_of_a_fit_that_came_to_its_end_nothing_is_left():
    assert Warm().left(rowcol.solve(TALL, Y)) is None
