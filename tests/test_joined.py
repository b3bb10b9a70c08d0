"""Rows on a cluster: α stays with the workers, and is the one that would have been here, whatever happens to them."""

import logging
import os
import signal
from copy import deepcopy

import dask.array as da
import numpy as np
import pytest
from distributed import Client

import rowcol
from oracle import lapack
from rowcol.core import certify
from rowcol.core.products import products
from rowcol.core.sums import norms_there
from rowcol.methods import joined
from rowcol.places.chunks import Sliced
from rowcol.places.crew import TRIES, LostError
from rowcol.places.keeping import Cell, Keeping
from test_cluster import client, workers  # noqa: F401 - client is a fixture


def data(n=240, p=90, q=3, kind=float, seed=0):
    rng = np.random.default_rng(seed)

    def draw(*shape):
        a = rng.standard_normal(shape)
        return a + 1j * rng.standard_normal(shape) if kind is complex else a

    return draw(n, p) + 0.3, draw(n, q), rng.uniform(0.5, 2.0, n)


ASKED = {"method": "rk", "alpha": 40.0, "tol": 1e-9, "random_state": 0, "max_passes": 300}


def same(a, b):
    """Two results, bit for bit."""
    assert (a.x == b.x).all()
    assert (a.dual == b.dual).all()
    assert (a.passes, a.statuses, a.certificates) == (b.passes, b.statuses, b.certificates)


def ridge(X, Y, w, alpha):
    """By LAPACK, each row scaled."""
    root = np.sqrt(w)[:, None]
    return lapack(root * X, root * Y, alpha)


@pytest.mark.parametrize("kind", [float, complex])
def test_answers_and_their_duals_are_those_of_lapack(client, kind):  # noqa: F811
    X, Y, w = data(kind=kind)
    Y[:, 1] = X @ np.arange(90) * 1e-3  # done sooner than the others
    D = da.from_array(X, chunks=(50, -1))
    made = rowcol.solve(D, Y, sample_weight=w, **ASKED)
    assert made.success
    np.testing.assert_allclose(made.x, ridge(X, Y, w, 40.0), atol=1e-8)
    np.testing.assert_allclose(made.dual, w[:, None] * (Y - X @ made.x) / 40.0, atol=1e-8)
    np.testing.assert_allclose(X.conj().T @ made.dual, made.x, atol=1e-8)
    wide = X.T[:60]
    shortest = rowcol.solve(da.from_array(wide, chunks=(25, -1)), Y[:60], method="rk", tol=1e-9, random_state=0)
    assert shortest.success
    np.testing.assert_allclose(shortest.x, np.linalg.pinv(wide) @ Y[:60], atol=1e-6)
    np.testing.assert_allclose(wide.conj().T @ shortest.dual, shortest.x, atol=1e-9)


class Forgetting:
    """A callback after which some parts are as if their worker had been lost, or as they were two rounds before."""

    def __init__(self, made, rounds, parts, behind):
        self.made, self.rounds, self.parts, self.behind, self.old = made, rounds, parts, behind, []

    def __call__(self, now):
        cells = self.made[-1].cells
        self.old.append(deepcopy(cells))
        if now.passes in self.rounds:
            for k in self.parts:
                cells[k] = deepcopy(self.old[-3][k]) if self.behind and len(self.old) > 2 else Cell(k)


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("span", [1, 4, 1_000])
def test_what_was_lost_is_made_again_to_the_same_bits(monkeypatch, span, behind):
    X, Y, w = data()
    Y[:, 1] = X @ np.arange(90) * 1e-3
    made, begin = [], Keeping.__init__

    def watched(self, *given):
        begin(self, *given)
        made.append(self)

    monkeypatch.setattr(Keeping, "__init__", watched)
    monkeypatch.setattr(Sliced, "together", True)
    monkeypatch.setattr(joined, "SPAN", 1_000)  # it never comes here
    place = Sliced(X, 50, "X")
    asked = ASKED | {"sample_weight": w}
    whole = rowcol.solve(place, Y, **asked)
    np.testing.assert_allclose(whole.x, ridge(X, Y, w, 40.0), atol=1e-8)
    assert len(made[0].changes) >= whole.passes
    monkeypatch.setattr(joined, "SPAN", span)
    if span < 1_000:  # α comes here every so many rounds
        monkeypatch.setattr(Keeping, "spent", property(lambda self: 10**9, lambda self, value: None), raising=False)
    for rounds, parts in (((1,), range(5)), ((3, 4, 9), (0, 2)), ((int(whole.passes) - 1,), (4,))):
        found = rowcol.solve(place, Y, callback=Forgetting(made, rounds, parts, behind), **asked)
        same(found, whole)
        assert len(made[-1].changes) <= span + 3  # right-hand sides that were done


def test_workers_that_lose_all_they_are_told_are_not_asked_for_ever(monkeypatch):
    X, Y, _ = data()
    monkeypatch.setattr(Sliced, "together", True)
    asked = []

    class Sieve(Cell):
        """It keeps nothing."""

        now = property(lambda self: (-1, asked.append(0)), lambda self, value: None)

    monkeypatch.setattr(Sliced, "cells", lambda self, make: [Sieve(k) for k in range(self.count)])
    with pytest.raises(LostError, match="lost over what they kept"):
        rowcol.solve(Sliced(X, 50, "X"), Y, **ASKED)
    assert len(asked) >= TRIES


@pytest.mark.parametrize("alpha", [0.0, 40.0])
def test_a_worker_killed_in_the_midst_of_rows_changes_no_bit(alpha, caplog):
    X, Y, w = data(n=240 if alpha else 40)
    with workers(2) as there, Client(there) as mine:
        place = rowcol.chunks(da.from_array(X, chunks=(len(X) // 8, -1))).X
        asked = ASKED | {"alpha": alpha, "sample_weight": w}
        whole, killed = rowcol.solve(place, Y, **asked), []

        def killing(now):
            if now.passes == 6:
                killed.append(place.owners[0])
                os.kill(mine.run(os.getpid, workers=killed)[killed[0]], signal.SIGKILL)

        with caplog.at_level(logging.INFO, logger="rowcol"):
            found = rowcol.solve(place, Y, callback=killing, **asked)
        assert "lost with a worker: it is made anew" in caplog.text
        assert killed[0] not in place.owners
    same(found, whole)
    assert whole.success
    truth = np.linalg.pinv(X) @ Y if alpha == 0 else ridge(X, Y, w, alpha)
    np.testing.assert_allclose(found.x, truth, atol=1e-6)


def test_workers_that_come_take_what_was_kept_along():
    X, Y, _ = data()
    with workers(1) as there, Client(there) as mine:
        place = rowcol.chunks(da.from_array(X, chunks=(20, -1))).X
        whole = rowcol.solve(place, Y, **ASKED)

        def coming(now):
            if now.passes == 4:
                there.scale(2)
                mine.wait_for_workers(2, timeout=60)

        found = rowcol.solve(place, Y, callback=coming, **ASKED)
        assert len(set(place.owners)) == 2
    same(found, whole)


def test_it_goes_on_from_a_checkpoint_and_from_a_result(client, tmp_path):  # noqa: F811
    X, Y, w = data()
    place, asked = rowcol.chunks(da.from_array(X, chunks=(50, -1))).X, ASKED | {"sample_weight": w}
    whole = rowcol.solve(place, Y, checkpoint=str(tmp_path / "whole"), **asked)
    assert whole.success
    file = str(tmp_path / "cut")
    cut = rowcol.solve(place, Y, checkpoint=file, callback=lambda now: now.passes == 7, **asked)
    assert cut.passes == 7
    gone_on = rowcol.resume(file, place, Y)
    assert (gone_on.x == whole.x).all()
    assert (gone_on.dual == whole.dual).all()
    assert gone_on.passes == whole.passes
    warm = rowcol.solve(place, Y, x0=cut, **asked)
    assert warm.success
    np.testing.assert_allclose(warm.x, ridge(X, Y, w, 40.0), atol=1e-8)
    assert rowcol.solve(place, Y, x0=whole, **asked).passes <= 1


@pytest.mark.parametrize("kind", [float, complex])
@pytest.mark.parametrize("weighted", [False, True])
def test_what_conjugate_gradients_would_leave_is_known_without_the_residual(monkeypatch, kind, weighted):
    """After as many steps as there are columns, what LAPACK leaves; and nothing, where a β fits."""
    X, Y, w = data(n=300, p=12, q=2, kind=kind)
    Y[:, 1] = X @ np.arange(12)
    monkeypatch.setattr(Sliced, "together", True)
    by, beta, root = (
        products(Sliced(X, 70, "X")),
        0.1 * np.ones((1, 12), kind),
        np.sqrt(w) if weighted else np.ones(300),
    )
    for i in (0, 1):
        got = norms_there(by, np.ascontiguousarray(Y.T), np.array([i]), beta, w if weighted else None, 12)
        best = lapack(root[:, None] * X, root * Y[:, i])
        assert got[0] == pytest.approx(np.linalg.norm(root * (Y[:, i] - X @ beta[0])))
        assert got[12] == pytest.approx(np.linalg.norm(root * (Y[:, i] - X @ best)), abs=1e-5 * got[0])
        assert (np.diff(got) <= 0).all()


def test_rows_that_no_solution_fits_end_as_such(monkeypatch):
    X, Y, _ = data(n=2_000, p=8, q=1)

    def refused(*given):
        raise AssertionError("n numbers would travel")

    monkeypatch.setattr(Sliced, "together", True)
    for name in ("times", "back"):
        monkeypatch.setattr(certify, name, refused)
    with pytest.warns(rowcol.ConvergenceWarning):
        made = rowcol.solve(Sliced(X, 500, "X"), Y[:, 0], method="rk", random_state=0)
    assert made.status is rowcol.Status.PLATEAU
