"""The image s that steps carry along, against s0 + Bᴴx in extended precision, over a hundred million steps.

A step rounds x_i once and every s_j twice, each by a unit 2⁻⁵³ of what is there. So the drift is at most two units of
‖s‖ + max ‖a_i‖ max |x_i| a step; and about √steps of them where errors are as often up as down.
"""

import numpy as np
import pytest
from drifting import CASES, UNIT, Drift, away, by, power, system, walked

import rowcol
from rowcol.core.view import unknowns
from rowcol.methods.coordinate import Coordinate
from rowcol.methods.kernel import Points

WALK = 0.5  # of √steps units: most errors are smaller than the largest


def faults(found):
    """What of it no honest rounding explains."""
    out = [f"{one.steps:,} steps: more than all errors together" for one in found if one.worst > 2]
    return out + [f"{one.steps:,} steps: {one.walk:.2f} of √steps" for one in found if one.moves and one.walk > WALK]


def naive(kind, lost=0.0):
    """Rows, by NumPy, with s of another precision, or a part of each step lost on the way."""
    X, y = system(50, 4)
    case, rng = by("rows", X, y, 0.0), np.random.default_rng(0)
    s, x, picks = np.zeros(4, kind), case.table["x"][:, 0], rng.integers(0, 50, 10_000)
    for i in picks:
        step = (y[i] - X[i] @ s) / (X[i] @ X[i])
        x[i] += step
        s += ((1 - lost) * step * X[i]).astype(kind)
    scale = np.linalg.norm(s) + np.linalg.norm(X, axis=1).max() * np.abs(x).max()
    return [Drift(picks.size, away(s, case), float(np.linalg.norm(s)), float(scale), True)]


def test_an_image_that_is_lost_is_found():
    assert faults(naive(np.float64)) == []
    assert len(faults(naive(np.float32))) == 2
    assert len(faults(naive(np.float64, lost=1e-9))) == 1


@pytest.mark.parametrize("name", CASES)
def test_the_carried_image(name, amount, tally):
    """Nothing is summed anew on the way."""
    found = walked(CASES[name](), amount(10**5, 10**8))
    assert faults(found) == []
    last = found[-1]
    said = f"{last.walk:.2g} · √steps" if last.moves else f"{last.worst:.2g} · steps, as it had settled"
    said += f", power {power(found):.1f}"
    tally(
        "drift", steps=last.steps, **{f"{name}, carried for {_short(last.steps)} steps": f"{_of(last)} = 2⁻⁵³ · {said}"}
    )
    if all(one.moves for one in found[1:]) and last.steps >= 10**7:  # of fewer steps it could not be told
        assert power(found) <= 0.8, "nearer to steps than to their root"


def _of(one):
    return f"{one.drift / one.scale:.0e}"


def _short(steps):
    return f"{steps:.0e}".replace("e+0", "e")


# --- with looks ------------------------------------------------------------------------------------------------------

N = 20_000


def tall(kind=np.float64, density=1.0):
    return system(N, 40 if density < 1 else 8, kind, density)


SOLVES = {
    "rows": (lambda: tall(), "rk"),
    "rows, X in single precision": (lambda: tall(np.float32), "rk"),
    "rows, sparse": (lambda: tall(density=0.2), "rk"),
    "columns": (lambda: (np.asfortranarray(tall()[0].T), np.ones(8)), "rcd"),
    "columns, sparse": (lambda: (tall(density=0.2)[0].T.tocsc(), np.ones(40)), "rcd"),
}


class Looks:
    """Every look at a solve: how far its image was before, and is after."""

    def __init__(self, B, refresh):
        self.B, self.refresh = B.astype(np.longdouble), refresh
        self.lengths = np.sqrt((self.B**2).sum(axis=1)).astype(float)
        self.steps, self.found, self.told = 0.0, [], Coordinate.learn

    def learn(self, mover, place, evidence, k):
        s, x = mover.now.s[place], unknowns(mover.view, mover.now)[place]
        exact = mover.view.s0[0].astype(np.longdouble) + self.B.T @ x.astype(np.longdouble)
        scale = float(np.linalg.norm(s) + self.lengths.max() * np.abs(x).max())
        before, carried, steps = float(np.linalg.norm((s - exact).astype(float))), s.copy(), mover.passes * len(x)
        self.told(mover, place, evidence, k)
        after = float(np.linalg.norm((s - exact).astype(float)))
        # a sum of k numbers, in any order, is off by k units of their sizes at most
        most = UNIT * (len(x) + 3) * float(self.lengths @ np.abs(x) + np.linalg.norm(mover.view.s0[0]))
        self.found.append((steps - self.steps, before / scale, after / most))
        self.steps = steps
        if not self.refresh:
            mover.now.s[place] = carried


def looked(name, passes, refresh, monkeypatch):
    make, method = SOLVES[name]
    X, y = make()
    A = X.toarray() if hasattr(X, "toarray") else X
    looks = Looks(A if method == "rk" else A.T, refresh)
    monkeypatch.setattr(Coordinate, "learn", lambda self, *rest: looks.learn(self, *rest))
    how = dict(alpha=1e-3, method=method, tol=1e-15, max_passes=passes, random_state=0, n_jobs=1)
    with pytest.warns(rowcol.ConvergenceWarning):
        result = rowcol.solve(X, y, **how)
    monkeypatch.undo()
    return result, looks.found


@pytest.mark.parametrize("name", SOLVES)
def test_a_look_gives_a_fresh_image_for_nothing(name, amount, tally, monkeypatch):
    """And what was carried until then was no worse than so many steps make it."""
    passes = amount(140, 10**8 // N)
    result, found = looked(name, passes, True, monkeypatch)
    assert len(found) >= 2
    for steps, before, after in found:
        assert after <= 1, "summed anew it is as good as a sum can be"
        assert before <= UNIT * WALK * np.sqrt(steps + N), (steps, before)  # the sum before was of N numbers
    said = f"{max(before for _, before, _ in found):.0e} at most, found by {len(found)} looks"
    tally("drift", steps=result.steps, **{f"{name}, in a solve of {_short(result.steps)} steps": said})


def test_a_pass_for_drift_alone_would_be_wasted(amount, monkeypatch):
    """Without a fresh image a solve comes as far: so looks refresh it for nothing, and none is taken for that."""
    for name in amount(["columns"], SOLVES):
        passes = amount(140, 500)
        fresh, carried = (looked(name, passes, refresh, monkeypatch)[0] for refresh in (True, False))
        assert fresh.status is carried.status
        assert abs(fresh.certificate.value / carried.certificate.value - 1) <= 1e-3
        assert fresh.certificate.value > fresh.certificate.rounding, "there was something left to do"


@pytest.mark.parametrize("method", ["rk", "rcd", "rek"])
def test_a_solve_that_has_settled_ends(method):
    """Where steps are lost in the last bits of x, and drift would grow with every one of them, a look finds it so."""
    X, y = system(200, 8)
    with pytest.warns(rowcol.ConvergenceWarning):
        result = rowcol.solve(X, y, alpha=float(method == "rk"), method=method, tol=1e-15, random_state=0, n_jobs=1)
    assert result.status is rowcol.Status.ROUNDING
    assert result.steps <= 10**6
    assert result.certificate.value <= 3 * result.certificate.rounding


def test_a_look_at_points_gives_a_fresh_image(amount, tally, monkeypatch):
    """Columns of a kernel matrix: s holds Kα."""
    rng = np.random.default_rng(0)
    Z, found, told = rng.standard_normal((200, 2)), [], Points.learn
    K, y = rowcol.kernels.RBF()(Z), rng.standard_normal(200)

    def learn(self, place, evidence, k):
        exact = K.astype(np.longdouble) @ self.x[place].astype(np.longdouble)
        before = float(np.linalg.norm((self.s[place] - exact).astype(float)))
        told(self, place, evidence, k)
        after = float(np.linalg.norm((self.s[place] - exact).astype(float)))
        scale = np.linalg.norm(self.s[place]) + np.linalg.norm(K, axis=1).max() * np.abs(self.x[place]).max()
        found.append((before / scale, after / (np.linalg.norm(K, axis=1) @ np.abs(self.x[place]))))

    monkeypatch.setattr(Points, "learn", learn)
    how = dict(kernel="rbf", alpha=1e-6, method="rk", tol=1e-9, max_passes=amount(140, 20_000), random_state=0)
    with pytest.warns(rowcol.ConvergenceWarning):
        result = rowcol.solve(Z, y, n_jobs=1, **how)
    assert len(found) >= 2
    # entries of K are off by some units too, in every product that makes them: as many as the steps, and the sum
    assert max(before for before, _ in found) <= UNIT * 8 * np.sqrt(result.steps)
    assert max(after for _, after in found) <= UNIT * (200 + 8)
    said = f"{max(before for before, _ in found):.0e} at most, found by {len(found)} looks"
    tally("drift", steps=result.steps, **{f"points of a kernel, in a solve of {_short(result.steps)} steps": said})
