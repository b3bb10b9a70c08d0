"""examples/: what they show is so, on fewer rows and with other seeds; and their own checks can fail."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern
from sklearn.kernel_ridge import KernelRidge

import rowcol

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture
def example(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import flights

    return flights


def test_twenty_thousand_flights(tmp_path, example):
    command = [sys.executable, str(EXAMPLES / "flights.py"), "--rows", "20000", "--sizes", "--choose", "0"]
    ended = subprocess.run([*command, "--out", str(tmp_path)], capture_output=True, text=True, check=True)
    for name in ("learning", "certificate", "memory"):
        assert (tmp_path / f"kernel-scale-{name}.png").stat().st_size > 10_000
        assert f"kernel-scale-{name}.png" in ended.stdout
    (found,) = json.loads((tmp_path / "kernel-scale.json").read_text())
    assert found["rows"] == 20_000
    assert found["method"] == "pcg"
    assert found["success"]
    assert found["certificate"] <= example.TOL
    assert found["rounds"][-1][1] == pytest.approx(found["certificate"], rel=0.2)  # NumPy, from 500 rows of 20,000
    assert found["exact"] < 0.65 * found["mean"]
    assert found["exact"] < found["centers"]
    assert found["fit"] < found["planned"] < 8 * 20_000**2 / 10


def test_its_model_is_within_its_bound_of_the_one_that_scikit_learn_solves(example):
    X, y = example.flights()
    assert len(y) == 319_809
    X, y, Z = X[:2000], y[:2000], X[-500:]
    kernel = Matern(length_scale=example.KERNEL.length_scale, nu=example.KERNEL.nu)
    truth = KernelRidge(alpha=example.ALPHA, kernel="precomputed").fit(kernel(X), y).predict(kernel(Z, X))
    options = {"alpha": example.ALPHA, "kernel": example.KERNEL, "random_state": 0}
    loose = rowcol.KernelRidge(**options, solver="pcg", tol=example.TOL).fit(X, y)
    values, bound = loose.predict(Z, return_bound=True)
    assert 1e-6 * y.std() < np.abs(values - truth).max(), "otherwise the bound has nothing to say"
    assert (np.abs(values - truth) <= bound).all()
    tight = rowcol.KernelRidge(**options, solver="pcg", tol=1e-7).fit(X, y).predict(Z)
    np.testing.assert_allclose(tight, truth, atol=1e-5 * y.std())


@pytest.fixture
def pictures(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import docs_pictures

    return docs_pictures


def test_no_error_is_above_its_bound(pictures):
    found = pictures.ridges(80, seed=1)
    ratios = np.array([bound / error for _, error, bound in found])
    assert ratios.min() >= 1
    assert np.median(ratios) < 20, "and mostly the bound says something"
    for _, error, bound in pictures.kernels(seed=1):
        assert (error <= bound).all()
        assert error.max() > 1e-7, "otherwise the bound has nothing to say"
    X = np.random.default_rng(0).standard_normal((30, 5))
    y, exact = X @ np.ones(5), pictures.exactly(X, X @ np.ones(5), 1.0)
    left = X.T.astype(np.longdouble) @ (y - X @ exact) - exact
    assert np.abs(left).max() < 1e-16, "the truth is better than double precision"


def test_a_digit_of_tol_buys_what_the_page_says(pictures):
    found = pictures.tolerances(seed=1)
    error = found["error"]
    assert error[0] > 1.2 * error[-1]
    np.testing.assert_allclose(error[pictures.TOLS <= 1e-2], error[-1], rtol=0.01)
    assert (found["bound"] > found["distance"]).all()
    assert (np.diff(found["passes"]) >= 0).all()


def test_the_pictures_of_the_pages_are_those_that_are_drawn(pictures):
    docs = EXAMPLES.parent / "docs"
    for name in pictures.PICTURES:
        assert (docs / "pictures" / name).stat().st_size < 100_000
        assert any(f"(pictures/{name})" in page.read_text() for page in docs.glob("*.md"))


GALLERY = {
    "tomography": ["gallery-tomography.png"],
    "words": ["gallery-words.png"],
    "digits": ["gallery-digits.png"],
    "ridge": ["ridge-path.png", "ridge-cv.png"],
    "streaming": ["gallery-streaming.png"],
    "own_kernel": ["gallery-kernel.png"],
    "own_sampler": ["gallery-sampler.png"],
}
FOUND = {  # what it shows, beside what it checks itself
    "tomography": lambda found: found["held"] < 0.9 * found["ridge"],
    "words": lambda found: found["score"] > 0.05 and found["documents"] > 400,
    "digits": lambda found: found["right"] > 0.9,
    "ridge": lambda found: 1 < found["alpha"] < 4,
    "streaming": lambda found: abs(found["first"] - found["last"]) < 100 and found["last"] < found["all"] / 100,
    "own_kernel": lambda found: found["our own"] < 0.9 * found["Matern, ν = ½"],
    "own_sampler": lambda found: (
        found["leverage"] < found["norms"] / 100
        and found["golden sections"] < found["shuffled"] < found["in the order of time"] / 100
    ),
}
SPOILED = {  # what of rowcol its answer comes from: of what is returned, or asked for, or all of it
    "tomography": (rowcol, "solve", "x"),
    "words": (rowcol.RidgeCV, "fit", "coef_"),
    "digits": (rowcol.KernelRidgeClassifier, "decision_function", None),
    "ridge": (rowcol, "ridge_path", "coef"),
    "streaming": (rowcol.LeastSquares, "partial_fit", "coef_"),
    "own_kernel": (rowcol, "solve", "alpha"),
    "own_sampler": (rowcol, "solve", "x"),
}


@pytest.fixture
def gallery(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module


@pytest.mark.parametrize("name", GALLERY)
def test_an_example_of_the_gallery(name, gallery, tmp_path, capsys):
    found = gallery(name).run(tmp_path, small=True)
    assert FOUND[name](found)
    said = capsys.readouterr().out
    assert said.count("check: ") >= 2
    assert "certificate" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(GALLERY[name])
    for picture in GALLERY[name]:
        assert (tmp_path / picture).read_bytes().startswith(b"\x89PNG")
        assert f"picture: {tmp_path / picture}" in said
        assert (EXAMPLES.parent / "docs" / "pictures" / picture).stat().st_size < 150_000


@pytest.mark.parametrize("name", SPOILED)
def test_an_answer_that_is_off_by_a_hundredth_stops_an_example(name, gallery, tmp_path, monkeypatch):
    where, call, part = SPOILED[name]
    right = getattr(where, call)

    def spoiled(*args, **named):
        if part in named:
            return right(*args, **named | {part: 1.01 * named[part]})
        answer = right(*args, **named)
        if part is None:
            return 1.01 * answer
        object.__setattr__(answer, part, 1.01 * getattr(answer, part))
        return answer

    monkeypatch.setattr(where, call, spoiled)
    with pytest.raises(AssertionError, match="which is above"):
        gallery(name).run(tmp_path, small=True)
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_a_number_agrees_with_nothing(gallery):
    with pytest.raises(AssertionError, match="which is above"):
        gallery("gallery").agree("a distance", float("nan"), 1.0)
