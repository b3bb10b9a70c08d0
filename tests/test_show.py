"""Charts, plots and reports, without a browser: what is drawn is what the numbers say; every kind of Result tells."""

import copy
import gc
import itertools
import json
import pickle
import re
import sys
import weakref
import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import vl_convert
from scipy.sparse.linalg import aslinearoperator
from sklearn.datasets import make_classification

import rowcol
from rowcol.show.charts import chart
from rowcol.show.drawing import DARK, LIGHT, PAPER, strokes
from rowcol.show.page import page
from rowcol.show.picture import Book, Chapter, Curve, Picture, Table
from rowcol.show.telling import told

X_AXIS = np.array([1.0, 2.0, 3.0, 4.0])


def picture(*curves, **more):
    return Picture("Title", "Words.", "along", "up", list(curves), **more)


def layer(spec, mark):
    return next(one for one in spec["layer"] if one["mark"]["type"] == mark)


def values(spec, mark, name):
    return [row.get(name) for row in layer(spec, mark)["data"]["values"]]


def svg(spec):
    return ET.fromstring(vl_convert.vegalite_to_svg(spec))


def drawn(root, mark):
    """Shapes of the marks of a kind, as Vega drew them; those of axes and legends are not counted."""
    return [
        path
        for group in root.iter("{http://www.w3.org/2000/svg}g")
        if f"mark-{mark} role-mark" in group.get("class", "")
        for path in group.iter("{http://www.w3.org/2000/svg}path")
    ]


# --- charts ----------------------------------------------------------------------------------------------------------


def test_a_chart_draws_every_curve_by_its_style():
    line = Curve("line", X_AXIS, X_AXIS, X_AXIS - 0.5, X_AXIS + 0.5, family="a")
    bound = Curve("bound", X_AXIS, X_AXIS + 1, style="dashed", family="a")
    looks = Curve("looks", X_AXIS, X_AXIS + 2, style="points")
    root = svg(chart(picture(line, bound, looks)))
    lines, areas = drawn(root, "line"), drawn(root, "area")
    assert len(lines) == 2
    assert len(areas) == 1
    assert {path.get("stroke") for path in lines} == {LIGHT[0]}, "one family, one colour"
    dashes = {path.get("stroke-dasharray") for path in lines}
    assert len(dashes) == 2, "what is predicted is dashed"
    symbols = drawn(root, "symbol")
    assert len(symbols) == 4 + 4, "the points, and those of a line that has few"
    assert {path.get("fill") for path in symbols} == {LIGHT[0], LIGHT[1]}


def test_a_band_is_drawn_where_it_is():
    """The area's corners, in the chart's own units, against its axes."""
    low, high = np.array([1.0, 2.0]), np.array([3.0, 5.0])
    spec = chart(picture(Curve("c", np.array([0.0, 1.0]), np.array([2.0, 3.0]), low, high)))
    (area,) = drawn(svg(spec), "area")
    x, y = np.array([float(v) for v in re.findall(r"-?[\d.]+", area.get("d"))]).reshape(-1, 2).T
    np.testing.assert_allclose(sorted(x)[0::2], sorted(set(x.round(6))))
    up = -y  # screens count down: y is linear in the value
    slope = (up.max() - up.min()) / (5.0 - 1.0)
    np.testing.assert_allclose(sorted((up - up.min()) / slope + 1.0), [1.0, 2.0, 3.0, 5.0], rtol=1e-6)


def test_a_log_axis_drops_what_is_not_above_zero():
    x, y = np.array([0.0, 1.0, 10.0, 100.0, 1e3]), np.array([1.0, -1.0, 0.0, 1e-3, 1e-4])
    spec = chart(picture(Curve("c", x, y), log_x=True, log_y=True))
    kept = [(a, b) for a, b in zip(values(spec, "line", "x"), values(spec, "line", "y")) if None not in (a, b)]
    assert kept == [(100.0, 1e-3), (1e3, 1e-4)]
    spec = chart(picture(Curve("c", x, y)))
    assert values(spec, "line", "y") == list(y), "a linear axis has a place for all"
    band = strokes(picture(Curve("c", x[1:3], np.ones(2), np.array([-1.0, 0.5]), np.full(2, 2.0)), log_y=True))[0]
    assert band.low.tolist() == [0.5, 0.5], "a band that reaches below zero reaches the lowest value drawn"


def test_a_line_breaks_where_there_is_no_value():
    y = np.array([1.0, np.nan, 3.0, 4.0, np.inf, 5.0, 6.0])
    (path,) = drawn(svg(chart(picture(Curve("c", np.arange(7.0), y)))), "line")
    assert path.get("d").count("M") == 3


def test_bars_stand_on_zero_or_on_a_power_of_ten():
    bars = Curve("c", X_AXIS, np.array([3.0, 20.0, 7.0, 50.0]), style="bars")
    assert set(values(chart(picture(bars)), "rect", "base")) == {0.0}
    spec = chart(picture(bars, log_y=True))
    assert set(values(spec, "rect", "base")) == {1.0}
    left, right = np.array(values(spec, "rect", "x")), np.array(values(spec, "rect", "end"))
    assert (right[:-1] < left[1:]).all(), "no bar hides another"
    np.testing.assert_allclose((left + right) / 2, X_AXIS)
    named = Curve("c", np.array(["tall", "wide"]), np.array([1.0, 2.0]), style="bars")
    assert len(drawn(svg(chart(picture(named, Curve("d", named.x, named.y, style="bars")))), "rect")) == 4


def test_curves_of_one_name_are_still_two():
    spec = chart(picture(Curve("same", X_AXIS, X_AXIS, family="a"), Curve("same", X_AXIS, 2 * X_AXIS, family="b")))
    assert {path.get("stroke") for path in drawn(svg(spec), "line")} == set(LIGHT[:2])


def test_an_empty_picture_is_a_picture():
    for one in (picture(), picture(Curve("c", np.empty(0), np.empty(0))), picture(Curve("c", X_AXIS, X_AXIS * np.nan))):
        for log in (False, True):
            one.log_y = log
            assert svg(chart(one)).tag.endswith("svg")
            assert "picture-1" in page(Book("B", [], [Chapter("C", [], [one])]))


def test_words_are_never_part_of_an_expression():
    """Whatever is in an expression, a field name or a format is ours: with other words it is the same."""

    def code(node, key=""):
        if isinstance(node, dict):
            for name, value in node.items():
                if name not in ("values", "title", "text"):
                    yield name
                    yield from code(value, name)
        elif isinstance(node, list):
            for value in node:
                yield from code(value, key)
        elif isinstance(node, str):
            yield node

    def spec(word):
        curve = Curve(word, np.array([word, "b"]), np.array([1.0, 2.0]), style="bars", family=word)
        line = Curve(word, X_AXIS, X_AXIS, X_AXIS, X_AXIS, family=word)
        pictures = (Picture(word, word, word, word, [c], log_y=True) for c in (curve, line))
        return [vl_convert.vegalite_to_vega(chart(one, live=True)) for one in pictures]

    assert list(code(spec("alert(1)"))) == list(code(spec("datum.x")))
    assert "alert(1)" in json.dumps(spec("alert(1)"))


@pytest.mark.parametrize(
    ("curve", "match"),
    [
        (Curve("c", X_AXIS, X_AXIS, style="dotty"), "must be one of line, dashed, points, bars, got 'dotty'"),
        (Curve("c", X_AXIS, X_AXIS[:2]), r"y of the curve 'c' has shape \(2,\), x has \(4,\)"),
        (Curve("c", X_AXIS, X_AXIS, low=X_AXIS[:1], high=X_AXIS), "low of the curve"),
    ],
)
def test_a_curve_that_cannot_be_drawn_says_why(curve, match):
    with pytest.raises(ValueError, match=match):
        chart(picture(curve))


# --- colours ---------------------------------------------------------------------------------------------------------

# Machado, Oliveira & Fernandes (2009), severity 1, on linear RGB
BLIND = {
    "nobody": np.eye(3),
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def linear(colour):
    c = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ np.clip(rgb, 0, 1)
    t = xyz / [0.9505, 1.0, 1.089]
    f = np.where(t > 0.008856, np.cbrt(t), 7.787 * t + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(one, other):
    a, b = sorted(linear(c) @ [0.2126, 0.7152, 0.0722] for c in (one, other))
    return (b + 0.05) / (a + 0.05)


@pytest.mark.parametrize(("colours", "paper"), [(LIGHT, PAPER["light"]), (DARK, PAPER["dark"])], ids=["light", "dark"])
@pytest.mark.parametrize("eyes", BLIND)
def test_colours_are_told_apart_by_all_eyes(colours, paper, eyes):
    assert min(contrast(colour, paper) for colour in colours) >= 3, "WCAG 1.4.11"
    seen = [lab(np.asarray(BLIND[eyes]) @ linear(colour)) for colour in colours]
    apart = {(i, j): np.linalg.norm(seen[i] - seen[j]) for i, j in itertools.combinations(range(len(colours)), 2)}
    assert min(apart.values()) > 10
    assert min(d for (_, j), d in apart.items() if j < 5) > 19, "the first five, which most pictures have"


# --- books of results ------------------------------------------------------------------------------------------------


def data(n=80, p=6):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((n, p))
    return X, X @ np.arange(1.0, p + 1) + 0.1 * rng.standard_normal(n)


def several(X, y):
    return np.column_stack([y, y[::-1], np.ones(len(y))])


WIDE = data(6, 80)
KINDS = {
    "tall": lambda X, y: (X, y, {}),
    "rows": lambda X, y: (X, X @ np.ones(X.shape[1]), {"method": "rk"}),
    "wide": lambda X, y: (WIDE[0], WIDE[1], {}),
    "ridge": lambda X, y: (X, y, {"alpha": 2.0, "method": "rcd"}),
    "many alphas": lambda X, y: (X, several(X, y), {"alpha": np.array([1.0, 2.0, 3.0])}),
    "sparse": lambda X, y: (sp.csr_array(X * (X > 0)), y, {"alpha": 0.1}),
    "sparse by columns": lambda X, y: (sp.csc_matrix(X * (X > 0)), y, {"fit_intercept": True}),
    "several": lambda X, y: (X, several(X, y), {}),
    "intercept": lambda X, y: (X, y + 3, {"fit_intercept": True}),
    "weights": lambda X, y: (X, y, {"sample_weight": np.linspace(0, 2, len(y)), "fit_intercept": True}),
    "operator": lambda X, y: (aslinearoperator(X), y, {}),
    "complex": lambda X, y: (X + 1j * X[::-1], y + 1j, {"method": "rcd"}),
    "bounds": lambda X, y: (X, y, {"bounds": (0, 2.0)}),
    "single precision": lambda X, y: (X.astype(np.float32), y.astype(np.float32), {"tol": 1e-3}),
    "pandas": lambda X, y: (pd.DataFrame(X, columns=list("abcdef")), pd.Series(y), {}),
    "zeros": lambda X, y: (X, np.zeros(len(y)), {}),
    "rank deficient": lambda X, y: (np.hstack([X, X]), y, {}),
    "one column": lambda X, y: (X[:, :1], y, {}),
    "kernel": lambda X, y: (X, y, {"kernel": "rbf", "alpha": 1.0}),
    "kernel, intercept, several": lambda X, y: (
        X,
        several(X, y),
        {"kernel": "matern", "alpha": 1.0, "fit_intercept": True},
    ),
    "kernel, points out": lambda X, y: (X, y, {"kernel": "rbf", "alpha": np.where(np.arange(80) < 8, 9.0, 1.0)}),
    "kernel on centres": lambda X, y: (X, y, {"kernel": "rbf", "alpha": 1.0, "n_centers": 10}),
    "kernel, given": lambda X, y: (X @ X.T, y, {"kernel": "precomputed", "alpha": 1.0}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_result_tells(kind, tmp_path):
    X, y, more = KINDS[kind](*data())
    result = rowcol.solve(X, y, random_state=0, **more)
    book = told(result)
    page = rowcol.report(result, tmp_path / "page.html").read_text(encoding="utf-8")
    titles = {one.title: one for one in book.pictures}
    assert all(f">{one}</h3>" in page for one in titles)
    assert "Certificate and steps against passes" in titles
    place = int(np.argmax([c.value for c in result.certificates]))
    dense = X.toarray() if sp.issparse(X) else None if kind == "operator" else np.asarray(X)
    seen = np.asarray(y).reshape(len(y), -1)[:, place]
    if result.function is None:
        fitted = np.asarray(X @ result.x).reshape(len(y), -1)[:, place]
        fitted = fitted + (0 if result.intercept is None else np.ravel(result.intercept)[place])
    else:
        fitted = np.reshape(result.function(X), (len(y), -1))[:, place]
    dots = titles["Residual against fitted value"].curves[0]
    r = seen - fitted
    r, fitted = (np.abs(r), np.abs(fitted)) if np.iscomplexobj(r) else (r, fitted)
    np.testing.assert_allclose(dots.y, r, atol=1e-6 * np.abs(seen).max())
    np.testing.assert_allclose(dots.x, fitted, rtol=1e-5, atol=1e-6)
    assert titles["How large residuals are"].curves[0].y.sum() == len(r)
    spectra = [one.curves[0].y for title, one in titles.items() if "largest first" in title]
    if kind in ("operator", "kernel on centres"):
        assert not spectra
    elif result.function is not None:
        truth = np.linalg.eigvalsh(dense if kind == "kernel, given" else result.function.exact.kernel(dense))[::-1]
        np.testing.assert_allclose(spectra[0], truth, atol=1e-8 * truth[0])
    else:
        centred = dense - (0 if result.intercept is None else dense.mean(axis=0))
        np.testing.assert_allclose(spectra[0], np.linalg.svd(centred, compute_uv=False), atol=1e-4)


def test_the_chapters_say_what_the_result_says():
    X, y = data()
    result = rowcol.solve(X, y, alpha=2.0, method="rcd", random_state=0)
    book = told(result)
    text = json.dumps([vars(table) for chapter in book.chapters for table in chapter.tables], ensure_ascii=False)
    assert f"{result.certificate.value:.2e}" in text
    assert f"≤ {result.error_bound:.2e}" in text
    assert all(reason in " ".join(book.chapters[1].words) for reason in result.plan.reasons)
    looks, tol = book.pictures[0].curves[-2:]
    assert looks.y.tolist() == [c.value for _, _, c in result.history.certificate]
    assert set(tol.y) == {result.tol}
    energy = np.sqrt(np.ravel(result.history.energy))
    np.testing.assert_allclose(book.pictures[0].curves[0].y, energy / energy[0])
    level = next(c for c in book.pictures[1].curves if c.style == "dashed")
    np.testing.assert_allclose(level.y, np.sqrt(2.0))


def test_a_solve_that_fails_is_not_called_good():
    X, y = data()
    with pytest.warns(rowcol.ConvergenceWarning):
        result = rowcol.solve(X, y, method="rcd", max_passes=1, tol=1e-14, random_state=0)
    book = told(result)
    assert "ended early" in book.summary[0]
    assert "as good as was asked" not in book.summary[0]
    assert next(t for c in book.chapters for t in c.tables if t.title == "Measured").marks[0] is False


def test_large_x_is_sampled_and_said_so():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 500)) * np.geomspace(1, 1e-2, 500)
    y = rng.standard_normal(4000)
    for A in (X, sp.csc_array(X), sp.csr_array(X)):
        book = told(rowcol.solve(A, y, tol=1e-2, random_state=0))
        chapter = next(c for c in book.chapters if c.title == "Singular values")
        assert "random sample of 1,600 rows and 400 columns" in chapter.words[0]
        found, truth = chapter.pictures[0].curves[0].y, np.linalg.svd(X, compute_uv=False)
        assert 0.7 < found[0] / truth[0] < 1.4
        dots = next(p for p in book.pictures if p.title.startswith("Residual against")).curves[0]
        assert len(dots.x) == 2000
        assert np.isin(dots.y.round(9), (y - X @ told_x(A, y)).round(9)).mean() > 0.99


def told_x(A, y):
    return rowcol.solve(A, y, tol=1e-2, random_state=0).x


# --- what a result remembers -----------------------------------------------------------------------------------------


def test_a_result_keeps_neither_x_nor_y_alive():
    X, y = data()
    result = rowcol.solve(X, y)
    assert result.asked.X is X
    assert result.asked.y is y
    gone = weakref.ref(X)
    del X, y
    gc.collect()
    assert gone() is None
    assert result.asked.X is None
    words = {c.title: " ".join(c.words) for c in told(result).chapters}
    assert "Pass X= to report()" in words["Singular values"]
    assert "Pass X= and y= to report()" in words["What is left over"]
    again = told(result, *data())
    assert len(again.pictures) == 4


def test_copies_and_pickles_of_a_result_have_no_x():
    X, y = data()
    for kernel in (None, "rbf"):
        result = rowcol.solve(X, y, kernel=kernel, alpha=1.0)
        assert result.asked.X is X
        for twin in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
            np.testing.assert_array_equal(twin.x, result.x)
            assert twin.asked.X is None
            assert twin.asked.y is None
    lists = rowcol.solve(X.tolist(), y.tolist())
    assert lists.asked.X is None
    assert len(told(lists, X.tolist(), y.tolist()).pictures) == 4


@pytest.mark.parametrize(
    ("X", "y", "error", "match"),
    [
        (np.ones((80, 5)), None, ValueError, "X has shape .80, 5., but the result has 6 unknowns"),
        (np.ones(80), None, ValueError, "X must have 2 dimensions"),
        (None, np.ones(7), ValueError, "y has shape .7,., but X and the result are of one of shape .80,."),
        (None, np.array(["a"] * 80), TypeError, "y has dtype .*encode text"),
    ],
)
def test_an_x_that_is_not_the_results_is_refused(X, y, error, match, tmp_path):
    A, b = data()
    result = rowcol.solve(A, b)
    with pytest.raises(error, match=match):
        rowcol.report(result, tmp_path / "a.html", X=X, y=y)
    assert not list(tmp_path.iterdir())


# --- estimators, studies, benchmarks ---------------------------------------------------------------------------------


def test_estimators_tell(tmp_path):
    X, y = data()
    frame = pd.DataFrame(X, columns=[f"<b>{i}" for i in range(6)])
    ridge = rowcol.Ridge(alpha=1.0).fit(frame, y)
    text = rowcol.report(ridge, tmp_path / "a.html", X=frame, y=y).read_text(encoding="utf-8")
    assert "&lt;b&gt;5" in text
    assert "<b>5" not in text
    book = rowcol.show.reporting.book_of(ridge, frame, y)
    dots = next(p for p in book.pictures if p.title.startswith("Residual against")).curves[0]
    np.testing.assert_allclose(dots.y, y - ridge.predict(frame), atol=1e-12)
    best = rowcol.RidgeCV([0.1, 1.0, 100.0]).fit(X, y)
    choice = rowcol.show.reporting.book_of(best, X, y).pictures[0]
    np.testing.assert_array_equal(choice.curves[0].y, best.scores_)
    assert set(choice.curves[-1].x) == {best.alpha_}
    cv = rowcol.KernelRidgeCV(kernel=["rbf"], cv=3, random_state=0).fit(X, y)
    book = rowcol.show.reporting.book_of(cv)
    assert book.pictures[0].curves[0].y.max() == pytest.approx(cv.best_score_)
    assert any(p.title.startswith("Residual against") for p in book.pictures), "it keeps its X and y"
    each = rowcol.Ridge(alpha=[1.0, 2.0], solver="rcd").fit(X, several(X, y)[:, :2])
    assert len(rowcol.show.reporting.book_of(each, X, several(X, y)[:, :2]).pictures) >= 3
    A, labels = make_classification(60, random_state=0)
    named = np.array(["no", "yes"])[labels]
    for model in (rowcol.RidgeClassifier().fit(A, named), rowcol.KernelRidgeClassifier().fit(A, named)):
        last = rowcol.show.reporting.book_of(model, A, named).chapters[-1]
        assert "labels" in last.words[0]


class Study:
    def __init__(self, book):
        self._book = book

    def book(self):
        return self._book


def small_book(pictures=2):
    one = [picture(Curve(f"c{i}", X_AXIS, X_AXIS + i), Curve("d", X_AXIS, X_AXIS)) for i in range(pictures)]
    for i, each in enumerate(one):
        each.title = f"Picture {i}"
    table = Table("T", ["name", "value"], [["a", "1.5"], ["b", "−2e-3"], ["c", "–"]], [True, False, None])
    return Book("Book", ["Summary."], [Chapter("One", ["Words."], one, [table])], "Made.")


def test_marks_and_numbers_of_a_table():
    text = page(small_book()).split("<noscript>")[0]
    rows = text.rsplit("<tbody>", 1)[1].split("</tr>")
    assert "✓" in rows[0]
    assert '<span class="hidden">confirmed</span>' in rows[0]
    assert "✗" in rows[1]
    assert "not confirmed" in rows[1]
    assert '<td class="mark"></td>' in rows[2]
    assert '<td class="number">−2e-3</td>' in rows[1]
    broken = small_book()
    broken.chapters[0].tables[0].marks.pop()
    with pytest.raises(ValueError, match="3 rows but 2 marks"):
        page(broken)
    broken.chapters[0].tables[0].rows[1].pop()
    with pytest.raises(ValueError, match="must have 2 cells each"):
        page(broken)


def race():
    def record(target, contender, seconds):
        return {"target": target, "contender": contender, "seconds": seconds, "note": "", "setting": 1, "error": 0.1}

    facts = {"dataset": "tall", "shape": [100, 5], "order": "C", "alpha": 0.0}
    records = [record(1e-3, "rowcol", 2.0), record(1e-3, "lstsq", 4.0), record(1e-6, "rowcol", 3.0)]
    records += [record(1e-6, "lstsq", 1.0), record(1e-9, "lstsq", 1.0), record(1e-9, "rowcol", None)]
    return {"machine": {"cores": 2}, "size": "quick", "runs": [{"threads": 1, "facts": facts, "records": records}]}


def test_a_benchmark_tells(tmp_path):
    book = rowcol.show.reporting.book_of(race())
    table = book.chapters[0].tables[0]
    assert table.marks == [True, False, False]
    assert [row[-1] for row in table.rows] == ["2", "0.333", "rivals only"]
    ours, rival = book.pictures[0].curves
    assert np.isnan(ours.y).all()
    assert rival.y.tolist() == [1.0]
    path = tmp_path / "bench.json"
    path.write_text(json.dumps(race()))
    assert "rivals only" in rowcol.report(path, tmp_path / "a.html").read_text(encoding="utf-8")
    assert rowcol.report(str(path), tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"
    kernel = [{"what": "a", "value": 1.0, "target": 2.0, "words": "w"}, {"what": "b", "value": 1.0, "target": -2.0}]
    kernel += [{"what": "c", "value": None, "target": None, "words": "w"}]
    assert rowcol.show.reporting.book_of(kernel).chapters[0].tables[0].marks == [False, True, None]
    paths = [{"problem": "p", "path": 1.0, "one": 1.0, "ratio": 5.0}]
    choices = [{"shape": [10, 2], "cv": None, "rowcol": 1.0, "scikit-learn": 2.0, "ratio": 2.0, "apart": 0.0}]
    ridge = rowcol.show.reporting.book_of({"threads": 1, "paths": paths, "choices": choices})
    assert ridge.chapters[0].tables[0].marks == [False]


# --- files -----------------------------------------------------------------------------------------------------------


def test_pictures_go_into_files_of_their_own(tmp_path):
    first = rowcol.report(Study(small_book(2)), tmp_path / "a.svg")
    assert first == tmp_path / "a-1.svg"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a-1.svg", "a-2.svg"]
    assert "Picture 1" in (tmp_path / "a-2.svg").read_text(encoding="utf-8")
    assert rowcol.report(small_book(1), tmp_path / "B.PNG").name == "B.PNG"
    width, height = (int.from_bytes((tmp_path / "B.PNG").read_bytes()[i : i + 4], "big") for i in (16, 20))
    assert width > 1000
    assert height > 600


def test_a_report_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "a.html"
    path.write_text("before")

    def fails(*_):
        raise OSError("disk")

    monkeypatch.setattr("os.replace", fails)
    with pytest.raises(OSError, match="disk"):
        rowcol.report(small_book(), path)
    assert path.read_text() == "before"
    assert [p.name for p in tmp_path.iterdir()] == ["a.html"]


@pytest.mark.parametrize(
    ("what", "name", "more", "error", "match"),
    [
        (small_book(), "a.pdf", {}, ValueError, r"path must end in .html, .svg or .png, got 'a.pdf'"),
        (small_book(), "no/a.html", {}, FileNotFoundError, "path: there is no folder"),
        (small_book(0), "a.png", {}, ValueError, "no picture"),
        (small_book(), "a.html", {"X": np.eye(2)}, ValueError, "X and y are for a Result or an estimator"),
        (7, "a.html", {}, TypeError, "what must be a Result"),
        (Study(3), "a.html", {}, TypeError, r"its book\(\) must give a Book, got int"),
        ({"a": 1}, "a.html", {}, ValueError, "not of a benchmark"),
        ({"runs": [{}]}, "a.html", {}, ValueError, "not as the benchmarks of rowcol write it"),
        ("none.json", "a.html", {}, FileNotFoundError, "what: there is no file"),
        (rowcol.Ridge(), "a.html", {}, ValueError, "this Ridge is not fitted"),
    ],
)
def test_what_cannot_be_reported_says_why(what, name, more, error, match, tmp_path):
    with pytest.raises(error, match=match):
        rowcol.report(what, tmp_path / name, **more)
    assert not list(tmp_path.iterdir())


def test_bad_names_of_files(tmp_path):
    (tmp_path / "a.html").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        rowcol.report(small_book(), tmp_path / "a.html")
    with pytest.raises(TypeError, match="path must be the name of a file"):
        rowcol.report(small_book(), 3)
    (tmp_path / "b.json").write_text("{")
    with pytest.raises(ValueError, match=r"'b\.json' is not JSON"):
        rowcol.report(tmp_path / "b.json", tmp_path / "c.html")


def test_what_is_missing_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(ImportError, match=r"rowcol\[report\]"):
        rowcol.report(small_book(), tmp_path / "a.html")
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"rowcol\[plot\]"):
        rowcol.plot(small_book())


# --- plot ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def plt():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def test_plot_draws_the_numbers(plt):
    line = Curve("line", X_AXIS, X_AXIS**2, X_AXIS, X_AXIS**3, family="a")
    bound = Curve(r"_bound $\nonsense$", X_AXIS, -X_AXIS, style="dashed", family="a")
    bars = Curve("bars", X_AXIS, X_AXIS, style="bars")
    points = Curve("points", X_AXIS, X_AXIS, style="points")
    ax = rowcol.plot(picture(line, bound, bars, points, log_y=True))
    first, dashed, dots = ax.get_lines()
    np.testing.assert_array_equal(first.get_ydata(), X_AXIS**2)
    assert first.get_color() == dashed.get_color() == LIGHT[0]
    assert np.isnan(dashed.get_ydata()).all(), "a log axis has no place for them"
    assert dashed.is_dashed()
    assert not first.is_dashed()
    assert dots.get_linestyle() == "None"
    assert len(ax.collections) == 1
    assert [round(bar.get_y() + bar.get_height(), 9) for bar in ax.patches] == list(X_AXIS)
    assert ax.get_yscale() == "log"
    assert ax.get_xscale() == "linear"
    assert len(ax.get_legend().get_texts()) == 4
    ax.figure.canvas.draw()
    named = Curve("c", np.array(["tall", "wide"]), np.array([1.0, 2.0]), style="bars")
    ax = rowcol.plot(picture(named, Curve("d", named.x, named.y, style="bars")))
    assert [t.get_text() for t in ax.get_xticklabels()] == ["tall", "wide"]
    assert len(ax.patches) == 4


def test_plot_draws_all_or_one(plt):
    book = small_book(3)
    axes = rowcol.plot(Study(book))
    assert [ax.get_title() for ax in axes] == ["Picture 0", "Picture 1", "Picture 2"]
    assert len(axes[0].figure.axes) == 3
    mine = plt.subplots()[1]
    assert rowcol.plot(book, ax=mine) is mine
    assert mine.get_title() == "Picture 0"
    assert rowcol.plot(book, picture="Picture 2").get_title() == "Picture 2"
    assert rowcol.plot(book, ax=plt.subplots()[1], picture=1).get_title() == "Picture 1"
    for wrong in ("no such", 3, 1.5):
        with pytest.raises(ValueError, match="picture must be"):
            rowcol.plot(book, picture=wrong)
    with pytest.raises(TypeError, match="what must be"):
        rowcol.plot(3)
    with pytest.raises(ValueError, match="no picture"):
        rowcol.plot(small_book(0))


@pytest.mark.parametrize("kind", ["tall", "rows", "several", "kernel", "zeros"])
def test_plot_of_a_result(plt, kind):
    X, y, more = KINDS[kind](*data())
    result = rowcol.solve(X, y, random_state=0, **more)
    ax = rowcol.plot(result)
    looks = next(line for line in ax.get_lines() if "exact look" in line.get_label())
    found = [c.value for _, _, c in result.history.certificate if c.value > 0]
    np.testing.assert_allclose(looks.get_ydata(), found)


def test_whatever_solve_reads_is_reported(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 5)), rng.standard_normal(40)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1] > 0})
    for given in (frame, X.astype(np.float16), X.astype(np.longdouble), sp.dia_array(X), sp.coo_array(X)):
        kept = rowcol.solve(given, y)
        assert rowcol.report(kept, tmp_path / "x.html").exists()
    for given in (sp.dia_array(X), sp.bsr_array(X), frame):
        assert rowcol.report(rowcol.Ridge().fit(given, y), tmp_path / "x.html", X=given, y=y).exists()
    model = rowcol.Ridge().fit(X, y)
    with pytest.raises(ValueError, match="rows"):
        rowcol.report(model, tmp_path / "x.html", X=X, y=y[:30])
    with pytest.raises(ValueError, match="NaN"):
        rowcol.report(rowcol.solve(X, y), tmp_path / "x.html", X=np.where(X > 2, np.nan, X), y=y)


@pytest.mark.parametrize(
    "text",
    [
        '{"runs": [{"threads": 1, "facts": {"dataset": 3, "shape": [2, 2]}, "records": [{"target": 0.1, "contender": '
        '"rowcol", "seconds": 0}, {"target": 0.1, "contender": null, "seconds": 1}]}]}',
        '[{"what": "a", "value": ' + "9" * 400 + "}]",
        "[" * 100_000,
        "nothing",
    ],
    ids=["zero seconds", "huge", "deep", "no json"],
)
def test_a_benchmark_that_is_none_is_refused(text, tmp_path):
    (tmp_path / "b.json").write_text(text)
    with pytest.raises(ValueError, match="what: "):
        rowcol.report(tmp_path / "b.json", tmp_path / "b.html")
