"""Names, labels, titles and texts from data are text: in pages, pictures, notebooks and a terminal.

A page is compared with that of harmless names: it has the same elements, attributes and expressions, one by one.
"""

import contextlib
import html.parser
import io
import json
import os
import re
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest

import rowcol
import rowcol.__main__
from rowcol.show.picture import Book, Chapter, Curve, Picture, Table

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "</title></style></noscript></svg><img src=x onerror=alert(3)>",
    "'\"><svg/onload=alert(4)>",
    "javascript:alert(5)",
    "{{7*7}}${7*7}#{7*7}<%=7*7%>",
    "'] + alert(6) + datum['",
    "datum.x, alert(7)) //",
    "\u2028\u2029alert(8)<!--",
    "\u202eevil\u2066\u200f",
    "\x1b[35;41mred\x1b]0;title\x07\x9b2J\x1b]8;;http://evil\x1b\\",
    "[bold red]x[/]",
    "[/]",
    "[link=http://evil]x[/link]",
    "$\\frac{$ %(name)s %s {0} \\x",
    "a\rb\nc\td\x7f",
    "x" * 5000,
    "&lt;b&gt;&#60;i&#62;",
]
TAME = [f"n{k}".ljust(len(one), "x") for k, one in enumerate(HOSTILE)]  # a long cell has a class of its own
rng = np.random.default_rng(0)
X = rng.standard_normal((40, len(HOSTILE)))
y = X @ rng.standard_normal(len(HOSTILE)) + rng.standard_normal(40)


# --- the checkers ----------------------------------------------------------------------------------------------------


class Skeleton(html.parser.HTMLParser):
    """Elements and attributes of a page, in order; what its scripts are; where its attributes lead."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.scripts, self.led, self.inside = [], [], [], None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        """Note it."""
        self.tags.append((tag, *sorted(name for name, _ in attrs)))
        self.led += [(name, value) for name, value in attrs if name in ("href", "src", "style", "action", "http-equiv")]
        self.inside = tag

    def handle_startendtag(self, tag, attrs):
        """The same."""
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag):
        """Note that too."""
        self.tags.append(f"/{tag}")
        self.inside = None

    def handle_comment(self, data):
        """No comment comes from data."""
        self.tags.append("comment")

    def handle_data(self, data):
        """Scripts are kept."""
        if self.inside == "script":
            self.scripts.append(data)


EXPRESSIONS = ("expr", "signal", "update", "test", "labelExpr", "calculate", "filter", "href", "url", "events")


def expressions(value, key=""):
    """What of a picture's specification would be run, or followed."""
    if isinstance(value, dict):
        for name, one in value.items():
            yield from expressions(one, name if name in EXPRESSIONS else key if key in EXPRESSIONS else name)
    elif isinstance(value, list):
        for one in value:
            yield from expressions(one, key)
    elif key in EXPRESSIONS:
        yield key, value


def alike(hostile, tame):
    """Does the hostile page have nothing that the tame one has not?"""
    one, other = Skeleton(hostile), Skeleton(tame)
    assert one.tags == other.tags
    assert one.led == other.led
    assert len(one.scripts) == len(other.scripts)
    for a, b in zip(one.scripts, other.scripts):
        if a != b:  # data, not code
            assert list(expressions(json.loads(a))) == list(expressions(json.loads(b)))
            assert "<" not in a.replace("\\u003c", "")
            assert not set("\u2028\u2029") & set(a)


def drawn(path):
    """The elements of a picture, in order, and what they lead to; how long a text is decides nothing of it."""
    tree = ET.fromstring(path.read_text(encoding="utf-8"))
    for one in tree.iter():
        tag = one.tag.rsplit("}")[-1]
        assert tag in ("svg", "g", "path", "rect", "text", "tspan", "defs", "clipPath", "line", "title", "style"), tag
        assert not [name for name in one.attrib if name.lower().startswith("on") or name.endswith("href")]
        yield tag


def commands(text):
    """What in a terminal's text came from data and commands it: whole sequences, as the terminal's own are allowed."""
    bad = [one for one in ("\x1b[35;41m", "\x1b]", "\x9b", "\x07", "\x7f", "\x00") if one in text]
    bad += [one for one in "\u2028\u2029\u202e\u2066\u200f" if one in text]
    rest = re.sub(r"\r?\x1b\[[0-9;?]*[A-Za-z]", "", text)  # colours and cursor, of rich
    return bad + [one for one in rest if not one.isprintable() and one not in "\n\t"]


@pytest.mark.parametrize(
    "wrong", ["<img src=x>", "<p onclick=x>", "<a href='javascript:x'>", "<!-- x -->", "<script>1</script>"]
)
def test_the_checker_of_pages_sees_it(wrong):
    good = '<p>text</p><script type="application/json">{"a": "b"}</script>'
    alike(good, good)
    with pytest.raises(AssertionError):
        alike(good + wrong, good + "<p></p>" if wrong.startswith("<p") else good)
    with pytest.raises(AssertionError):
        alike(good.replace('"b"', '{"expr": "alert(1)"}'), good)


@pytest.mark.parametrize("wrong", HOSTILE[8:11] + [HOSTILE[15].replace("\n", "")])
def test_the_checker_of_terminals_sees_it(wrong):
    assert commands(wrong)
    assert not commands("\x1b[31merror\x1b[0m: text\n")


def test_the_checker_of_pictures_sees_it(tmp_path):
    path = tmp_path / "a.svg"
    for text in ("<svg><script/></svg>", '<svg onload="x"/>', '<svg><g href="http://x"/></svg>'):
        path.write_text(text)
        with pytest.raises(AssertionError):
            list(drawn(path))


# --- reports, pictures, notebooks ------------------------------------------------------------------------------------


def frame(names):
    return pd.DataFrame(X, columns=names)


def labelled(names):
    return np.array([names[k % 3] for k in range(40)], object)


def race(names):
    """A benchmark's results, every text of which is a name."""

    def record(contender, seconds):
        told = {"target": 1e-3, "contender": contender, "seconds": seconds, "note": names[3], "setting": 1}
        return told | {"error": 0.1, "route": names[4]}

    facts = {"dataset": names[1], "shape": [100, 5], "order": names[6], "alpha": 0.0}
    records = [record("rowcol", 1.0), record(names[0], 2.0), record(names[2], None)]
    return {
        "machine": {names[7]: names[8]},
        "size": names[9],
        "runs": [{"threads": 1, "facts": facts, "records": records}],
    }


def book(names):
    """Everything a page can have, with each name in each place."""
    at = np.arange(1.0, 4.0)
    chapters = []
    for one in names:
        curves = [Curve(one, at, at), Curve(one + "2", at, at, style="points", family=one)]
        words = Curve(one, np.array([one, "b", "c"]), at, style="bars")
        pictures = [Picture(one, one, one, one, curves), Picture(one, one, one, one, [words])]
        chapters.append(Chapter(one, [one], pictures, [Table(one, [one, "n"], [[one, "1"]], [True])]))
    return Book(names[0], list(names), chapters, names[1])


MADE = {
    "ridge": lambda names: (rowcol.Ridge(0.5).fit(frame(names), y), frame(names), y),
    "cv": lambda names: (rowcol.RidgeCV([0.1, 1.0]).fit(frame(names), y), frame(names), y),
    "classes": lambda names: (rowcol.RidgeClassifier().fit(frame(names), labelled(names)), frame(names), None),
    "kernel": lambda names: (rowcol.KernelRidge(0.1, kernel="rbf").fit(frame(names), y), frame(names), y),
    "chances": lambda names: (
        rowcol.KernelRidgeClassifier(alpha=0.1, random_state=0).fit(frame(names), labelled(names)),
        frame(names),
        None,
    ),
    "solve": lambda names: (rowcol.solve(frame(names), pd.Series(y, name=names[0])), frame(names), y),
    "race": lambda names: (race(names), None, None),
    "book": lambda names: (book(names), None, None),
}


@pytest.mark.parametrize("kind", MADE)
def test_reports_and_pictures_have_nothing_from_data_but_text(kind, tmp_path, tally):
    made = [MADE[kind](names) for names in (HOSTILE, TAME)]
    pages = [
        rowcol.report(what, tmp_path / f"{k}.html", **({} if A is None else {"X": A, "y": b}))
        for k, (what, A, b) in enumerate(made)
    ]
    alike(*(path.read_text(encoding="utf-8") for path in pages))
    if kind in ("race", "ridge"):
        rowcol.report(made[0][0], tmp_path / "a.svg")
        assert all(len(list(drawn(path))) > 5 for path in tmp_path.glob("a*.svg"))
    tally("security", reports_with_hostile_names=1)


@pytest.mark.parametrize("kind", ["ridge", "cv", "classes", "kernel", "chances", "solve"])
def test_notebooks_show_names_as_text(kind):
    """What rowcol shows of itself, and what scikit-learn shows of its estimators, before and after a fit."""
    shown = [MADE[kind](names)[0]._repr_html_() for names in (HOSTILE, TAME)]
    one, other = (Skeleton(re.sub(r"sk-\w+-id-\d+|sk-global", "id", text)) for text in shown)
    assert set(one.tags) == set(other.tags)
    for text in HOSTILE[:4]:
        assert text not in shown[0]
    plan = rowcol.plan(frame(HOSTILE), y)
    assert not hasattr(plan, "_repr_html_"), "it is plain text"


def test_parameters_that_are_text_are_text_in_a_notebook():
    for text in HOSTILE[:4]:
        shown = rowcol.Ridge(solver=text)._repr_html_()
        assert text not in shown
        assert set(Skeleton(shown).tags) == set(Skeleton(rowcol.Ridge(solver="cg")._repr_html_()).tags)


# --- commands --------------------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    """A stream that is one."""

    def isatty(self):
        """So it says."""
        return True


def ran(*words):
    """Exit code and all that a terminal saw."""
    out, wrong, before = Terminal(), Terminal(), sys.argv
    sys.argv = ["rowcol", *map(str, words)]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(wrong):
        try:
            rowcol.__main__.main()
            code = 0
        except SystemExit as ended:
            code = ended.code or 0
        finally:
            sys.argv = before
    return code, out.getvalue(), wrong.getvalue()


FILE = "f\x1b[35;41m\x9b2J\x07\u202e\u2028<b>[bold red]x[" + "]"  # as a file can be called


@pytest.fixture
def folder(tmp_path, monkeypatch):
    table = frame(HOSTILE).assign(town=labelled(HOSTILE[9:12]), y=y)
    table.to_parquet(tmp_path / f"{FILE}.parquet")
    table.head(3).assign(**{HOSTILE[10]: HOSTILE[10]}).to_parquet(tmp_path / f"{FILE}bad.parquet")
    pd.DataFrame(X[:12, :3]).to_csv(tmp_path / f"{FILE}X.csv", index=False, header=False)
    (tmp_path / f"{FILE}.json").write_text(json.dumps(race(HOSTILE)))
    (tmp_path / f"{FILE}.rowcol").write_bytes(b"no model")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORCE_COLOR", "1")
    return tmp_path


def asked():
    """Every command: as it should be, and with names that are not there."""
    data, absent = f"{FILE}.parquet", f"no{HOSTILE[10]}"
    yield 0, "solve", data, "--target", "y", "--drop", "town", "--html", f"{FILE}.html", "-o", f"{FILE}x.csv", "-vv"
    yield 0, "solve", data, "--target", "y", "--drop", "town", "--json"
    yield 0, "plan", data, "--target", "y", "--drop", "town"
    yield 0, "fit", data, "--target", "town", "--model", "ridge-classifier", "-o", f"{FILE}c.rowcol", "-v"
    yield 0, "predict", f"{FILE}c.rowcol", data
    yield 0, "predict", f"{FILE}c.rowcol", data, "--json"
    yield 0, "evaluate", f"{FILE}c.rowcol", data
    yield 0, "fit", data, "--target", "y", "--one-hot", "town", "-o", f"{FILE}m.rowcol", "--html", f"{FILE}m.html"
    yield 0, "evaluate", f"{FILE}m.rowcol", data
    yield 0, "bench", data, "--target", "y", "--drop", "town", "--rounds", "1", "-o", f"{FILE}race.json"
    yield 0, "report", f"{FILE}.json", "--out", f"{FILE}r.html"
    yield None, "study", "--matrix", f"{FILE}X.csv", "--parts", "consistent", "--seeds", "2", "--out", f"{FILE}s.html"
    yield 0, "info"
    for command in ("solve", "plan", "fit", "bench"):
        yield 2, command, data, "--target", absent
        yield 2, command, data, "--target", "y"  # town is text
        yield 2, command, f"{FILE}bad.parquet", "--target", "y", "--drop", "town"
        yield 2, command, f"{absent}.csv", "--target", "y"
        yield 2, command, data, f"--{absent}"
    yield 2, "predict", f"{FILE}.rowcol", data
    yield 2, "predict", f"{FILE}m.rowcol", f"{FILE}X.csv"
    yield 2, "evaluate", f"{FILE}m.rowcol", data, "--target", absent
    yield 2, "study", "--matrix", f"{absent}.csv"
    yield 2, "study", "--parts", absent
    yield 2, "report", f"{absent}.json"
    yield 2, "report", data
    yield 2, absent


def test_no_command_lets_data_command_a_terminal(folder, tally):
    count = 0
    for code, *words in asked():
        found, out, wrong = ran(*words)
        assert found == code or code is None, f"{words}: {found} {out} {wrong}"
        assert out + wrong, words
        assert not commands(out + wrong), f"{words}: {commands(out + wrong)} {out!r} {wrong!r}"
        assert "\x1b]8" not in out + wrong, "a link"
        count += 1
    for path in folder.glob("*.html"):
        kept = Skeleton(path.read_text(encoding="utf-8"))
        assert not {"img", "b", "i", "iframe", "object"} & {tag[0] for tag in kept.tags if isinstance(tag, tuple)}
        assert all(re.fullmatch(r"#[\w-]+", value) for name, value in kept.led if name == "href")
    assert len(list(folder.glob("*.html"))) == 4, os.listdir(folder)
    tally("security", commands_with_hostile_names=count)
