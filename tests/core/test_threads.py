"""Threads: BLAS keeps to one while ours share the work, and products by them are those of NumPy."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from rowcol.core import threads
from rowcol.core.products import back, conormal, normal, products, times
from rowcol.core.threads import SHARED, blas_limit, lent, quota, single_blas


def blas_threads() -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_the_last_to_leave_gives_back_what_the_first_found():
    meet = Barrier(3)

    def inside(order: int) -> list[int]:
        with single_blas():
            meet.wait(20)  # all are inside
            seen = blas_threads()
            for turn in range(3):  # they leave one after the other
                meet.wait(20)
                if turn == order:
                    break
        for _ in range(2 - order):
            meet.wait(20)
        return seen

    with threadpool_limits(3, "blas"):
        with ThreadPoolExecutor(3) as pool:
            seen = list(pool.map(inside, range(3)))
        assert all(set(one) == {1} for one in seen)
        assert set(blas_threads()) == {3}


def test_an_error_gives_it_back_too():
    with threadpool_limits(2, "blas"):
        with pytest.raises(ZeroDivisionError), single_blas():
            _ = 1 / 0
        assert set(blas_threads()) == {2}


def test_what_lends_gives_way_to_large_matrices_and_nothing_else_does():
    with threadpool_limits(3, "blas"):
        for many, hard, seen in ((5, False, 3), (2, False, 2), (2, True, 1)):
            with blas_limit(many, at_most=True), single_blas(lends=not hard):
                with lent(SHARED):
                    assert set(blas_threads()) == {1}, "matrices are small"
                with lent(SHARED + 1):
                    assert set(blas_threads()) == {seen}
                    with single_blas():
                        assert set(blas_threads()) == {1}, "somebody inside wants one"
                with pytest.raises(ZeroDivisionError), lent(SHARED + 1):
                    _ = 1 / 0
                assert set(blas_threads()) == {1}
                with ThreadPoolExecutor(1) as pool:
                    assert pool.submit(_lent_there).result() == {1}, "that of another thread is not ours to lend"
        assert set(blas_threads()) == {3}


def _lent_there() -> set[int]:
    with lent(SHARED + 1):
        return set(blas_threads())


def test_the_fewest_wanted_at_once_hold_whoever_leaves_first():
    with threadpool_limits(3, "blas"):
        one, two, some = blas_limit(1), blas_limit(2), blas_limit(5, at_most=True)
        for enter, seen in ((some, 3), (two, 2), (one, 1)):
            enter.__enter__()
            assert set(blas_threads()) == {seen}
        for leave, seen in ((two, 1), (one, 3), (some, 3)):
            leave.__exit__(None, None, None)
            assert set(blas_threads()) == {seen}


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_is_not_held_to_what_threads_of_its_parent_wanted():
    inside, leave = Event(), Event()

    def wants_one():
        with single_blas():
            inside.set()
            leave.wait(20)

    with threadpool_limits(2, "blas"), ThreadPoolExecutor(1) as pool:
        pool.submit(wants_one)
        assert inside.wait(20)
        child = os.fork()
        if child == 0:
            with blas_limit(2):
                os._exit(0 if set(blas_threads()) == {2} else 1)
        leave.set()
        assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"cpu.max": "150000 100000\n"}, 2),
        ({"cpu.max": "max 100000\n"}, sys.maxsize),
        ({"cpu/cpu.cfs_quota_us": "100000", "cpu/cpu.cfs_period_us": "100000"}, 1),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, sys.maxsize),
        ({"cpu.max": "nonsense"}, sys.maxsize),
        ({}, sys.maxsize),
    ],
)
def test_a_container_may_have_less_than_its_cores(files, cores, tmp_path, monkeypatch):
    (tmp_path / "cpu").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert quota(tmp_path) == cores
    monkeypatch.setattr(threads, "quota", lambda: cores)
    assert threads.count(-1) <= cores
    assert threads.count(7) == 7, "what is said holds"


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(9_001, 41), (40, 9_003)])
@pytest.mark.parametrize("kind", [float, complex])
@pytest.mark.parametrize("many", [1, 5])
def test_products_by_threads_are_those_of_numpy(shape, order, kind, many):
    rng = np.random.default_rng(0)

    def numbers(*size: int) -> np.ndarray:
        return rng.standard_normal(size) + (1j * rng.standard_normal(size) if kind is complex else 0)

    X, v, u = np.asarray(numbers(*shape), order=order), numbers(many, shape[1]), numbers(many, shape[0])
    with ThreadPoolExecutor(3) as pool:
        by = products(X, pool)
        np.testing.assert_allclose(times(by, v), v @ X.T, atol=1e-10)
        np.testing.assert_allclose(back(by, u), u @ X.conj(), atol=1e-10)
        np.testing.assert_allclose(normal(by, v)[0], v @ X.T @ X.conj(), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(conormal(by, u)[1], u @ X.conj() @ X.T, rtol=1e-9, atol=1e-9)
