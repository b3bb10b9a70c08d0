"""The study: claims hold at a small size, curves are those of naive loops, and one's own system is understood."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

import rowcol
from oracle import extended_kaczmarz, kaczmarz
from rowcol import zoo
from rowcol.core.sampler import sampler, take
from rowcol.studies import penalties
from rowcol.studies.runs import course, distance2, fitted_rate, walked
from rowcol.studies.studying import PARTS


@pytest.fixture(scope="module")
def quick():
    return rowcol.study(quick=True)


def test_every_claim_of_the_paper_holds(quick):
    assert quick.ok, quick
    assert len(quick.parts) == len(PARTS) == 8
    assert len(quick.claims) > 60
    assert quick.seconds < 60


def test_the_book_has_pictures_with_bounds_and_words(quick):
    book = quick.book()
    assert len(book.pictures) >= 12
    for picture in book.pictures:
        assert len(picture.words) > 40
        assert len({curve.name for curve in picture.curves}) == len(picture.curves)
        for curve in picture.curves:
            assert len(curve.x) == len(curve.y)
            assert np.isfinite(curve.y).any()
            if curve.low is not None:
                seen = np.isfinite(curve.low)
                assert (curve.low <= curve.y)[seen].all()
                assert (curve.y <= curve.high)[np.isfinite(curve.y)].all()
    json.dumps(quick.to_dict(), allow_nan=False)


def test_a_claim_that_fails_is_said(quick):
    part = quick.parts[0]
    part.claim("two is one", "1", "2", False)
    try:
        assert not quick.ok
        assert "not so: two is one: 1, measured 2" in repr(quick)
        assert quick.book().chapters[1].tables[-1].marks[-1] is False
    finally:
        part.claims.pop()


def test_a_walk_is_kaczmarz_as_printed():  # (4)
    case = zoo.tall_consistent(n=30, p=5)
    seen = []
    walked(course(case.X, case.y, "rk"), np.array([0, 12]), lambda b, a: seen.append(b) or 0.0, 2, seed=9)
    for k, root in enumerate(np.random.SeedSequence(9).spawn(2)):
        picks = take(sampler("norms", 30, root, np.sum(case.X**2, axis=1)), 12)
        *_, last = kaczmarz(case.X, case.y, picks, np.zeros(5))
        np.testing.assert_allclose(seen[2 * k + 1], last, rtol=1e-10)


def test_a_walk_of_both_is_extended_kaczmarz_as_published():
    case = zoo.rank_deficient_inconsistent(20, 12, 6)
    seen = []
    walked(course(case.X, case.y, "rek"), np.array([0, 15]), lambda b, a: seen.append(b) or 0.0, 1, seed=4)
    root = np.random.SeedSequence(4).spawn(1)[0]
    one, two = root.spawn(2)
    columns = take(sampler("norms", 12, one, np.sum(case.X**2, axis=0)), 15)
    rows = take(sampler("norms", 20, two, np.sum(case.X**2, axis=1)), 15)
    *_, last = extended_kaczmarz(case.X, case.y, zip(columns, rows, strict=True))
    np.testing.assert_allclose(seen[-1], last, rtol=1e-9, atol=1e-12)


def test_a_step_of_ones_choice_is_stochastic_gradient_descent(rng):
    X, y, eta = rng.standard_normal((15, 4)), rng.standard_normal(15), 0.07
    seen = []
    on = course(X, y, "rk", step=np.full(15, eta))
    walked(on, np.array([0, 20]), lambda b, a: seen.append(b) or 0.0, 1, seed=2)
    beta = np.zeros(4)
    for i in take(sampler("norms", 15, np.random.SeedSequence(2).spawn(1)[0], np.sum(X**2, axis=1)), 20):
        beta += eta * (y[i] - X[i] @ beta) * X[i]
    np.testing.assert_allclose(seen[-1], beta, rtol=1e-10)


def test_a_fitted_rate_is_the_slope_of_a_straight_line():
    steps = np.arange(0, 400, 10)
    trace = walked(course(np.eye(2), np.ones(2), "rk"), np.array([0]), distance2(np.ones(2)), 2)
    made = trace._replace(steps=steps, passes=steps / 2.0, errors=np.tile(5.0 * 0.97**steps, (3, 1)))
    assert fitted_rate(made) == pytest.approx(0.97)


def test_curves_cross_where_they_cross():
    x = np.logspace(-2, 2, 9)
    assert penalties.crossing(x, x, 1 / x * 9) == pytest.approx(3.0, rel=1e-9)
    assert np.isnan(penalties.crossing(x, x, 2 * x))


@pytest.mark.parametrize("store", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("name", ["tall_consistent", "tall_inconsistent", "wide", "rank_deficient_inconsistent"])
def test_ones_own_system(name, store):
    case = zoo.CASES[name]()
    found = rowcol.study(store(case.X), case.y, seeds=6, name="<b>mine</b>")
    assert found.ok, found
    words = " ".join(w for part in found.parts for w in part.words)
    fits = np.linalg.norm(case.y - case.X @ case.answer) < 1e-8 * np.linalg.norm(case.y)
    assert ("Some β fits" in words) == fits
    s = np.linalg.svd(case.X, compute_uv=False)
    assert f"{s[s > 1e-10 * s[0]][-1]:.4g}" in words
    assert len(found.book().pictures[0].curves) == 6


def test_without_y_one_that_fits_is_made(rng):
    found = rowcol.study(rng.standard_normal((50, 8)), seeds=4)
    assert found.ok
    assert "y was not given" in found.parts[0].words[0]


def test_what_cannot_be_studied_is_refused(rng):
    X = rng.standard_normal((5, 3))
    with pytest.raises(ValueError, match="parts must be some of consistent"):
        rowcol.study(parts=["nonsense"])
    with pytest.raises(ValueError, match="seeds"):
        rowcol.study(seeds=1)
    with pytest.raises(ValueError, match="without X"):
        rowcol.study(y=np.ones(3))
    with pytest.raises(ValueError, match="y is zero"):
        rowcol.study(X, np.zeros(5))
    with pytest.raises(TypeError, match="real"):
        rowcol.study(X * 1j, np.ones(5))
    with pytest.raises(ValueError, match="random_state"):
        rowcol.study(random_state=-1)


def test_progress_is_told(capsys):
    seen = []
    rowcol.study(parts="kernel", seeds=2, progress=lambda *told: seen.append(told))
    assert seen == [(0, 1, "kernel"), (1, 1, "done")]
    rowcol.study(parts="kernel", seeds=2, progress=True)
    assert "0 of 1: kernel" in capsys.readouterr().err


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_other_precisions_are_studied_in_double(dtype, rng):
    X = (10 * rng.standard_normal((40, 5))).astype(dtype)
    assert rowcol.study(X, seeds=5).ok
    assert rowcol.study(X, 1e200 * rng.standard_normal(40), seeds=5).ok
    assert rowcol.study(X, 1e-200 * rng.standard_normal(40), seeds=5).ok


def test_what_is_wrong_with_x_is_said_of_x(rng):
    X = rng.standard_normal((6, 3))
    X[2, 1] = np.nan
    with pytest.raises(ValueError, match="X has a NaN"):
        rowcol.study(X)


def test_no_bounds_are_drawn_where_none_is_known(rng):
    X = rng.standard_normal((40, 5)) * np.r_[1, 1, 1, 1, 1e-17]
    found = rowcol.study(X, seeds=3)
    assert found.ok
    assert "No bounds are drawn" in " ".join(found.parts[1].words)
