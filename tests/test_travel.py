"""What travels to the workers of a Dask cluster and back: what is counted is what goes through their sockets."""

import os
import pickle
import signal
import socket
import struct

import dask.array as da
import numpy as np
import pytest
from distributed import Client

import rowcol
from oracle import lapack, uneven
from rowcol.places import cluster, crew
from test_cluster import client, workers  # noqa: F401 - client is a fixture


@pytest.fixture(scope="module", params=[1, 2])
def pair(request):
    """Two workers of one thread each, or of two."""
    with workers(2, request.param) as there, Client(there, set_as_default=False) as mine:
        yield mine


def through_sockets():
    """Bytes that this process has received and sent by TCP, as the kernel counts them (struct tcp_info)."""
    received = sent = 0
    for fd in os.listdir("/proc/self/fd"):
        try:
            if not os.readlink(f"/proc/self/fd/{fd}").startswith("socket:"):
                continue
            with socket.socket(fileno=os.dup(int(fd))) as one:
                acked, got = struct.unpack_from("QQ", one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192), 120)
        except OSError:  # closed meanwhile, or not of TCP
            continue
        received, sent = received + got, sent + acked
    return np.array([received, sent])


def travelled(client, place, solve):  # noqa: F811
    """Bytes to the workers and back: as counted, and as they have met them."""
    before, met = np.array([place.sent, place.received]), sum(client.run(through_sockets).values())
    solve()
    return np.array([place.sent, place.received]) - before, sum(client.run(through_sockets).values()) - met


KERNEL = {"kernel": "rbf", "alpha": 5.0}
JOBS = {
    "cg": (120, 8_000, 20, {"method": "cg", "alpha": 1.0}),
    "cg, weights": (20_000, 40, 8, {"method": "cg", "alpha": 1.0, "sample_weight": 1 + np.arange(20_000) / 1e4}),
    "rk": (120, 8_000, 20, {"method": "rk", "alpha": 100.0}),
    "direct": (10_000, 100, 10, {"method": "direct"}),
    "pcg": (3_000, 5, 8, KERNEL | {"method": "pcg"}),
    "blocks": (3_000, 5, 8, KERNEL | {"method": "blocks", "tol": 1e-2}),
}


@pytest.mark.skipif(not os.path.exists("/proc/self/fd") or not hasattr(socket, "TCP_INFO"), reason="Linux tells")
@pytest.mark.parametrize("job", JOBS)
def test_bytes_that_are_counted_are_those_that_travel(job, pair):
    """Besides, a question and its answer have some 2 kB of names and types: there are a few dozen, or a few hundred."""
    n, p, parts, options = JOBS[job]
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n, p)), rng.standard_normal(n)
    with pair.as_current():
        place = rowcol.chunks(da.from_array(X, chunks=(n // parts, -1))).X
        rowcol.solve(place, y, random_state=0, **options)  # so that rows have come, which is not ours to count
        counted, true = travelled(pair, place, lambda: rowcol.solve(place, y, random_state=0, **options))
    slack = 1_500_000 if job == "blocks" else 400_000
    assert (true >= 0.95 * counted).all()
    assert (true <= 1.3 * counted + slack).all()
    if job in ("cg", "rk"):  # p numbers a worker and round, where it was p a part: 20 parts would be ten times that
        rounds = counted[1] / (8 * p * parts)
        assert true[0] <= 2 * (rounds + 2) * 8 * p * 1.5 + slack


ONLY_P = {
    "rk": {"method": "rk", "alpha": 5e3, "tol": 1e-15},
    "rk, weights": {"method": "rk", "alpha": 5e3, "tol": 1e-15, "sample_weight": 1.0},
    "cg": {"method": "cg", "alpha": 1.0, "tol": 1e-9},
    "cg, intercept": {"method": "cg", "tol": 1e-9, "fit_intercept": True},
    "cg, weights": {"method": "cg", "tol": 1e-9, "sample_weight": 1.0, "fit_intercept": True},
    "direct": {"method": "direct", "alpha": 1.0},
    "direct, intercept": {"method": "direct", "alpha": 1.0, "fit_intercept": True},
}


def rounds_of(client, n, options):  # noqa: F811
    """Of every round but the first two: bytes there and back, as counted and as the workers have met them."""
    p, parts = 20, 8
    X, y = uneven(n, p)
    if "sample_weight" in options:
        options = options | {"sample_weight": 1 + np.arange(n) / n}
    place, seen = rowcol.chunks(da.from_array(X, chunks=(n // parts, -1))).X, []

    def watch(now):
        met = np.zeros(2, int) if SOCKETS is None else sum(client.run(through_sockets).values())
        seen.append([place.sent, place.received, *met])
        return now.passes >= 12

    # y, weights and ones are there then: they travel once, whatever is asked
    rowcol.solve(place, y, random_state=0, callback=lambda now: now.passes >= 12, **options)
    before = place.sent, place.received
    made = rowcol.solve(place, y, random_state=0, callback=watch, **options)
    root = np.sqrt(options.get("sample_weight", np.ones(n)))[:, None]
    if not options.get("fit_intercept") and made.success:
        np.testing.assert_allclose(made.x, lapack(root * X, root[:, 0] * y, options["alpha"]), rtol=1e-6, atol=1e-8)
    return np.diff(seen, axis=0)[1:], np.array([place.sent, place.received]) - before


SOCKETS = None if not os.path.exists("/proc/self/fd") or not hasattr(socket, "TCP_INFO") else True


@pytest.mark.parametrize("job", ONLY_P)
def test_what_travels_does_not_depend_on_the_number_of_rows(job, client):  # noqa: F811
    """A round and its looks, the same p, parts and workers: as many bytes for 10,000 rows as for 40,000."""
    (few, all_few), (many, all_many) = (rounds_of(client, n, ONLY_P[job]) for n in (10_000, 40_000))
    p, parts = 20, 8
    most = np.array([2 * 8 * (6 * p + 4 * parts), parts * 8 * (6 * p + 40)])  # of a pass and two looks
    for found in (few, many):
        assert (found[:, :2] <= most).all()
        assert (found[:, 2:] <= most + 60_000).all()  # with names and types, and what Dask says of itself
    if job.startswith("rk"):
        assert len(few) == len(many) >= 9
        assert (all_many - all_few).tolist() == [0, 8 * 30_000]  # looks and all; α comes here, once, at the end
    elif job.startswith("direct"):
        assert (all_many == all_few).all()
    else:
        assert (all_many <= all_few + 6 * most).all()  # it may take a few rounds more


def test_parts_that_are_asked_together_answer_as_if_they_were_not(client, monkeypatch):  # noqa: F811
    X, y = uneven()
    place = rowcol.chunks(da.from_array(X, chunks=(300, -1))).X
    for method in ("cg", "direct", "rk"):
        asked = {"method": method, "alpha": 1e5, "tol": 1e-2, "random_state": 0}
        found = [rowcol.solve(place, y, **asked).x for _ in range(2)]  # lengths of answers are known by now
        assert len(place._shares(list(range(10)), 160)) == 2
        with monkeypatch.context() as patched:
            patched.setattr(cluster, "HELD", 0)
            assert len(place._shares(list(range(10)), 160)) == 10
            found.append(rowcol.solve(place, y, **asked).x)
        assert all((one == found[0]).all() for one in found)


def test_long_answers_come_one_by_one(client):  # noqa: F811
    X, _ = uneven()
    place = rowcol.chunks(da.from_array(X, chunks=(300, -1))).X
    place.settle()
    assert place._shares([0, 4, 7], None) == [[0], [4], [7]]
    for length, most in ((1, 10), (cluster.HELD // 4, 2), (cluster.HELD, 1)):
        shares = place._shares(list(range(10)), length)
        assert sorted(k for share in shares for k in share) == list(range(10))
        assert max(map(len, shares)) <= most
        assert all(len({place.owners[k] for k in share}) == 1 for share in shares)


def asked_twice(place, f, first, then):
    """The first time nobody knows how long an answer is; the second time parts are asked together."""
    assert len(list(place.map(f, (first,)))) == place.count
    return list(place.map(f, (then,)))


def test_of_parts_that_are_asked_together_the_one_that_fails_is_named(client):  # noqa: F811
    X = np.arange(3_000.0).reshape(1_000, 3)
    place = rowcol.chunks(da.from_array(X, chunks=(100, -1))).X

    def picky(part, pool, v):
        if part[0, 0] == v[0]:
            raise OSError(f"rows from {part[0, 0]:.0f} on")
        return part[:, 0] + v[1]

    with pytest.raises(OSError, match="rows from 1800 on"):
        asked_twice(place, picky, np.array([-1.0, 0.0]), np.array([1_800.0, 0.0]))
    found = asked_twice(place, picky, np.array([-1.0, 0.0]), np.array([-1.0, 5.0]))
    np.testing.assert_array_equal(np.concatenate(found), X[:, 0] + 5)


def test_workers_that_forgot_are_told_again(client):  # noqa: F811
    X, y = uneven()
    place = rowcol.chunks(da.from_array(X, chunks=(300, -1))).X
    found = [rowcol.solve(place, y, method="cg", tol=1e-9).x for _ in range(2)]
    before = place.sent
    client.run(lambda: crew._notes.clear())
    found.append(rowcol.solve(place, y, method="cg", tol=1e-9).x)
    assert place.sent - before >= y.nbytes
    assert all((one == found[0]).all() for one in found)


def test_a_worker_that_dies_over_some_parts_loses_none(tmp_path):
    X, _ = uneven()
    died = str(tmp_path / "died")

    def dying(part, pool, v):
        if v[0]:  # the second time
            try:
                os.close(os.open(died, os.O_CREAT | os.O_EXCL))
                os.kill(os.getpid(), signal.SIGKILL)
            except FileExistsError:
                pass
        return part @ v

    v = np.arange(20.0) + 1
    with workers(2) as there, Client(there):
        place = rowcol.chunks(da.from_array(X, chunks=(300, -1))).X
        found = np.concatenate(asked_twice(place, dying, 0 * v, v))
    assert os.path.exists(died)
    np.testing.assert_allclose(found, X @ v)


def test_a_client_that_is_closed_is_said_to_be():
    X, y = uneven()
    with workers(1) as there:
        with Client(there):
            place = rowcol.chunks(da.from_array(X, chunks=(700, -1))).X
            model = rowcol.Ridge().fit(place, y)
        said = r"^the Dask client of X is closed: open a Client, and take rowcol.chunks of X anew$"
        for use in (
            lambda: rowcol.solve(place, y),
            lambda: rowcol.solve(place, y, kernel="rbf", alpha=1.0),
            lambda: model.predict(place),
        ):
            with pytest.raises(RuntimeError, match=said):
                use()
        with Client(there):
            place = rowcol.chunks(da.from_array(X, chunks=(700, -1))).X
            assert (rowcol.Ridge().fit(place, y).coef_ == model.coef_).all()


@pytest.mark.parametrize("method", ["cg", "direct"])
def test_a_dual_by_columns_comes_when_it_is_asked_for(method, client):  # noqa: F811
    X, y = uneven(n=8_000, p=10)
    w, Y = 1 + np.arange(8_000) / 8e3, np.stack([y, y**2], axis=1)
    D = da.from_array(X, chunks=(1_000, -1))
    place = rowcol.chunks(D).X
    asked = {"method": method, "tol": 1e-8, "sample_weight": w, "fit_intercept": True}
    made, before = rowcol.solve(place, Y, alpha=[2.0, 30.0], **asked), place.received
    again = rowcol.solve(place, Y, alpha=[2.0, 30.0], x0=made, **asked)
    assert again.success
    assert place.received - before < 8 * 8_000 / 2  # it goes on without
    before = place.received
    truth = w[:, None] * (Y - X @ made.x - made.intercept) / [2.0, 30.0]
    np.testing.assert_allclose(made.dual, truth, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose((X - w @ X / w.sum()).T @ made.dual, made.x, rtol=1e-5, atol=1e-8)
    came = place.received - before
    assert made.dual is made.dual
    assert came == 2 * 8 * 8_000 == place.received - before
    alone = rowcol.solve(D, y, alpha=2.0, method=method)  # whose place is gone
    np.testing.assert_allclose(alone.dual, (y - X @ alone.x) / 2.0, rtol=1e-6, atol=1e-9)
    there = rowcol.solve(D, y.copy(), alpha=2.0, method=method)  # and so is y
    assert there.dual is None
    assert not hasattr(there, "nothing")
    assert pickle.loads(pickle.dumps(made)).dual.shape == (8_000, 2)
    assert pickle.loads(pickle.dumps(rowcol.solve(place, y, alpha=2.0, method=method))).dual is None
    rows = rowcol.solve(place, y, alpha=2.0, method="rk", x0=alone, tol=1e-3, random_state=0)
    assert rows.passes <= 1


def test_an_answer_that_was_left_is_none(monkeypatch):
    """Dask may take back that it does not want a task: then it must not take some parts for all."""
    said = iter([True, False, True, True, True, True])
    monkeypatch.setattr(cluster, "wanted", lambda: next(said))
    asked = (lambda part, pool: part + 1), [1, 2, 3], None, [(), (), ()], ()
    assert cluster._asked(*asked) == crew.Forgotten()
    assert cluster._asked(*asked) == [2, 3, 4]
