"""The line of progress: it moves within passes over an X that lies elsewhere, and changes nothing."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

import rowcol
from rowcol.core.place import tell, telling
from rowcol.methods.progress import Bar, watched


class Clock:
    """Seconds that pass when they are told to, or a little at every look."""

    def __init__(self, step=0.0):
        self.now, self.step = 0.0, step

    def __call__(self):
        self.now += self.step
        return self.now


@pytest.fixture
def slow(monkeypatch):
    """Every look at a bar's clock is a quarter of a second after the last."""
    clock = Clock(0.25)
    real = Bar.__init__
    monkeypatch.setattr(Bar, "__init__", lambda self, tol: real(self, tol, clock))
    return clock


def lines(capsys):
    return [one.strip() for one in capsys.readouterr().err.split("\r") if one.strip()]


def shares(text):
    """Passes, and what was done of the next, of each line."""
    found = [
        re.fullmatch(r"rowcol +([0-9.]+) passes(?: \+([0-9]+)%)?  certificate .* s(, ~.* left)?", one) for one in text
    ]
    assert all(found), text
    return [(float(one[1]), int(one[2] or 0)) for one in found]


def test_it_shows_from_the_second_second_on_five_times_a_second(capsys):
    clock = Clock()
    bar = Bar(1e-6, clock)
    with watched(bar):
        for k in range(1, 321):  # 32 parts a second
            clock.now = k / 32
            tell(k, 320)
        assert shares(lines(capsys)) == [(0.0, 100 * k // 320) for k in range(32, 320, 7)]
    assert "rowcol" not in capsys.readouterr().err  # wiped off
    tell(1, 2)
    assert capsys.readouterr().err == ""  # nobody listens any more


def test_a_line_fits_a_terminal(capsys):
    clock = Clock()
    bar = Bar(1e-6, clock)
    for k in range(1, 400):
        clock.now = 10.0 * k
        bar.show(123.45 + k, clock.now, SimpleNamespace(value=1.23e-3) if k > 200 else None, 10.0 ** (-k / 100))
        clock.now += 1.0
        bar.within(k, 400)
    assert "s left" in (shown := capsys.readouterr().err)
    assert {len(one) for one in shown.split("\r")} <= {0, 79}


def test_who_asks_for_no_bar_inside_of_another_solve_has_none():
    heard = []
    with telling(lambda *told: heard.append(told)):
        tell(1, 2)
        with watched(None):
            tell(2, 2)
    assert heard == [(1, 2)]


@pytest.mark.parametrize("method", ["direct", "cg", "rk"])
def test_it_moves_within_passes_over_chunks_and_changes_no_bit(tmp_path, capsys, slow, method):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((2_000, 10)), rng.standard_normal(2_000)
    np.save(tmp_path / "X.npy", X)
    place = rowcol.chunks(tmp_path / "X.npy", rows=100).X
    asked = {"alpha": 1e3, "method": method, "tol": 1e-4, "random_state": 0}
    with_bar = rowcol.solve(place, y, progress=True, **asked)
    seen = shares(lines(capsys))
    within = [part for passes, part in seen if passes == 0.0]
    assert len(set(within)) >= 10  # of the twenty parts of the first pass, but for its first second
    assert set(within) <= set(range(0, 100, 5))
    without = rowcol.solve(place, y, progress=False, **asked)
    assert capsys.readouterr().err == ""
    np.testing.assert_array_equal(with_bar.x, without.x)


def test_it_moves_while_means_are_found_and_in_estimators(capsys, slow):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((2_000, 10)), rng.standard_normal(2_000)
    place = rowcol.chunks(lambda: (X[i : i + 100] for i in range(0, 2_000, 100))).X
    for model in (rowcol.Ridge(progress=True, solver="cg"), rowcol.LeastSquares(progress=True)):
        model.fit(place, y)
        assert len({one for one in shares(lines(capsys)) if one[0] == 0.0}) >= 10


def test_it_moves_where_a_kernel_reads_its_points(capsys, slow):
    points = np.random.default_rng(0).standard_normal((2_000, 400))
    place = rowcol.chunks(lambda: (points[i : i + 100] for i in range(0, 2_000, 100))).X
    model = rowcol.KernelRidge(kernel="rbf", gamma=1e-3, memory="20 MB", random_state=0, progress=True)
    model.fit(place, points[:, 0])
    assert "from points that lie elsewhere" in str(model.plan_)
    assert len({part for _, part in shares(lines(capsys))}) >= 10


def test_the_line_is_wiped_off_where_a_pass_fails(capsys, slow):
    X = np.ones((2_000, 3))
    X[1_950, 1] = np.nan
    place = rowcol.chunks([X[i : i + 100] for i in range(0, 2_000, 100)]).X
    with pytest.raises(ValueError, match="chunk 20 of 20"):
        rowcol.solve(place, np.ones(2_000), method="direct", progress=True)
    shown = capsys.readouterr().err
    assert "passes +" in shown
    assert shown.endswith("\r" + " " * 79 + "\r")
