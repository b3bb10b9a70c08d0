"""A book as one page: a file that needs no network, for eyes, fingers, keyboards, screen readers and paper."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from .charts import chart, zoomed
from .drawing import DARK, LIGHT, Stroke, strokes
from .picture import Book, Chapter, Picture, Table

INK = {"text": "var(--ink)", "faint": "var(--faint)", "grid": "var(--grid)"}
CURVES = tuple(f"var(--curve-{i + 1})" for i in range(len(LIGHT)))
NUMBER = re.compile(r"^[<>≤≥≈~±]?\s*[-−+]?(\d[\d,]*\.?\d*|\.\d+|inf|nan)(e[-−+]?\d+)?\s*(%|x|×|s|ms|[kMG]?B)?$", re.I)
NONE = ("", "–", "-", "—")
LONG = 32  # letters: cells that have more wrap
LISTED = 2000  # rows of numbers beside a chart, at most
MARKS = {True: ("yes", "✓", "confirmed"), False: ("no", "✗", "not confirmed")}


class Html(str):
    """Text that is markup already. All other text is escaped when it becomes part of an element."""

    __slots__ = ()


def element(_tag: str, *inside: Any, **attributes: Any) -> Html:
    """An element; what is inside it, and its attributes, are text unless they are `Html`.

    Examples
    --------
    >>> element("p", "1 < 2", id="a&b", class_="note")
    '<p id="a&amp;b" class="note">1 &lt; 2</p>'
    >>> element("p", element("b", "<"))
    '<p><b>&lt;</b></p>'
    """
    named = ((name.rstrip("_").replace("_", "-"), value) for name, value in attributes.items() if value is not None)
    inner = "".join(part if isinstance(part, Html) else escape(_clean(part)) for part in inside)
    told = "".join(f' {name}="{escape(_clean(value))}"' for name, value in named)
    return Html(f"<{_tag}{told}>{inner}</{_tag}>")


def _clean(text: Any) -> str:
    """Text that a page can hold: no control signs, no halves of letters."""
    told = re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", "�", str(text))
    return told.encode("utf-8", "replace").decode("utf-8")


def page(book: Book) -> str:
    """A book as the text of one HTML file.

    Parameters
    ----------
    book : Book

    Returns
    -------
    str

    Examples
    --------
    >>> from rowcol.show.picture import Book, Chapter
    >>> text = page(Book("Rows & columns", ["All is well."], [Chapter("One", ["Some words."])]))
    >>> "<h1>Rows &amp; columns</h1>" in text, "http-equiv" in text
    (True, True)
    """
    engine, ours = _script(_engine()), _script(_file("page.js"))
    numbered = iter(range(1, len(book.pictures) + 1))
    chapters = [_chapter(chapter, i, numbered) for i, chapter in enumerate(book.chapters, 1)]
    top = element(
        "header",
        element("div", element("p", "rowcol", class_="brand"), element("h1", book.title)),
        element("button", "Dark", id="theme", type="button", aria_pressed="false", aria_label="Dark colours"),
        class_="wrap",
    )
    summary = element(
        "section",
        element("h2", "Summary", id="summary"),
        *(element("p", words) for words in book.summary),
        aria_labelledby="summary",
        class_="summary",
    )
    main = element("main", summary, _contents(book), *chapters, id="main", class_="wrap")
    foot = element("footer", element("p", book.made), class_="wrap") if book.made else Html("")
    data = json.dumps([_live(picture) for picture in book.pictures], allow_nan=False, separators=(",", ":"))
    body = element(
        "body",
        element("a", "To the text", href="#main", class_="skip"),
        top,
        main,
        foot,
        element("div", id="tip", hidden="", aria_hidden="true"),
        element("noscript", element("p", "Charts need JavaScript; words and tables do not.", class_="wrap")),
        element("script", _json(data), type="application/json", id="pictures"),
        engine,
        ours,
    )
    # nothing but these two scripts may run, and nothing may be fetched: whatever a name in the data says
    allowed = " ".join(f"'sha256-{_digest(script)}'" for script in (engine, ours))
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    head = element(
        "head",
        Html('<meta charset="utf-8">'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html('<meta name="generator" content="rowcol">'),
        element("title", book.title),
        Html(f"<style>{_style()}</style>"),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


# --- parts -----------------------------------------------------------------------------------------------------------


def _contents(book: Book) -> Html:
    links = (element("li", element("a", c.title, href=f"#chapter-{i}")) for i, c in enumerate(book.chapters, 1))
    if len(book.chapters) < 2:
        return Html("")
    return element("nav", element("h2", "Contents", id="contents"), element("ol", *links), aria_labelledby="contents")


def _chapter(chapter: Chapter, place: int, numbered: Any) -> Html:
    return element(
        "section",
        element("h2", chapter.title, id=f"chapter-{place}"),
        *(element("p", words) for words in chapter.words),
        *(_figure(picture, next(numbered)) for picture in chapter.pictures),
        *(_table(table, f"table-{place}-{i}") for i, table in enumerate(chapter.tables, 1)),
        class_="chapter",
        aria_labelledby=f"chapter-{place}",
    )


def _figure(picture: Picture, place: int) -> Html:
    found = strokes(picture)
    buttons, printed = [], []
    for k, one in enumerate(found):
        sample, name = _swatch(one), element("span", one.curve.name)
        button = element("button", sample, name, type="button", aria_pressed="true", data_curve=k)
        buttons.append(element("li", button))
        printed.append(element("li", sample, name, data_paper=k))
    tools = [
        element("button", sign, type="button", data_zoom=factor, aria_label=f"{label}: {picture.title}", title=label)
        for sign, factor, label in (("+", 0.5, "Zoom in"), ("−", 2, "Zoom out"), ("Reset", 0, "Reset zoom"))
    ]
    legend = [
        element("ul", *buttons, class_="bar legend", aria_label="Curves, each shown or hidden by its button"),
        element("ul", *printed, class_="bar paper-legend", aria_hidden="true"),
    ]
    legend = legend if len(found) > 1 else []
    heading = f"picture-{place}-title"
    return element(
        "figure",
        element("h3", picture.title, id=heading),
        element("p", picture.words, class_="words"),
        element(
            "div",
            element("div", class_="plot"),
            role="img",
            aria_label=f"{picture.title}. {picture.words}",
            class_="chart",
        ),
        element(
            "div", *legend, element("div", *tools, class_="tools", role="group", aria_label="Zoom"), class_="under"
        ),
        _numbers(picture, found),
        id=f"picture-{place}",
        aria_labelledby=heading,
    )


def _swatch(one: Stroke) -> Html:
    """A sample of the curve."""
    colour, dash = CURVES[one.colour], " ".join(map(str, one.dash)) or "none"
    inner = {
        "points": f'<circle cx="12" cy="6" r="4" fill="{colour}"/>',
        "bars": f'<rect x="5" y="1" width="14" height="10" rx="1.5" fill="{colour}"/>',
    }.get(one.curve.style, f'<path d="M0 6H24" stroke="{colour}" stroke-width="2.5" stroke-dasharray="{dash}"/>')
    return element("svg", Html(inner), viewBox="0 0 24 12", class_="swatch", aria_hidden="true")


def _numbers(picture: Picture, found: list[Stroke]) -> Html:
    """Where the numbers of a chart go when someone asks for them."""
    head = ["curve", picture.x_label or "x", picture.y_label or "y"] + ["low", "high"] * _banded(found)
    count = sum(int(one.points.sum()) for one in found)
    told = f"The numbers ({count:,})" if count <= LISTED else f"The numbers (the first {LISTED:,} of {count:,})"
    kinds = [None, *["number"] * (len(head) - 1)]
    row = element("tr", *(element("th", name, scope="col", class_=kind) for name, kind in zip(head, kinds)))
    table = element("table", element("thead", row), element("tbody"))
    box = element("div", table, class_="scroll", tabindex="0", role="region", aria_label=f"Numbers: {picture.title}")
    return element("details", element("summary", told), box)


def _banded(found: list[Stroke]) -> bool:
    return any(one.low is not None and one.high is not None for one in found)


def _table(table: Table, place: str) -> Html:
    columns = list(zip(*table.rows)) if table.rows else [() for _ in table.head]
    numeric = [any(c not in NONE for c in column) and all(_is_number(c) for c in column) for column in columns]
    kinds = [None, *("number" if yes else None for yes in numeric[1:])]
    marked = bool(table.marks)
    if table.rows and {len(row) for row in table.rows} != {len(table.head)}:
        raise ValueError(f"the rows of the table {table.title!r} must have {len(table.head)} cells each")
    if marked and len(table.marks) != len(table.rows):
        raise ValueError(f"the table {table.title!r} has {len(table.rows)} rows but {len(table.marks)} marks")
    head = [element("th", name, scope="col", class_=kind) for name, kind in zip(table.head, kinds)]
    if marked:
        head.insert(0, element("th", element("span", "verdict", class_="hidden"), scope="col"))
    rows = []
    for i, row in enumerate(table.rows):
        cells = [_mark(table.marks[i])] if marked else []
        for j, cell in enumerate(row):
            kind = kinds[j] or ("long" if len(cell) > LONG else None)
            cells.append(element("td", cell, class_=kind) if j else element("th", cell, scope="row", class_=kind))
        rows.append(element("tr", *cells))
    grid = element("table", element("thead", element("tr", *head)), element("tbody", *rows))
    box = element("div", grid, class_="scroll", tabindex="0", role="region", aria_labelledby=place)
    return element("div", element("h3", table.title, id=place), box, class_="table")


def _mark(value: bool | None) -> Html:
    if value is None:
        return element("td", class_="mark")
    kind, sign, words = MARKS[bool(value)]
    told = element("span", words, class_="hidden")
    return element("td", element("span", sign, class_=kind, aria_hidden="true"), told, class_="mark")


def _is_number(cell: str) -> bool:
    return cell in NONE or bool(NUMBER.match(cell.strip()))


# --- scripts and styles ----------------------------------------------------------------------------------------------


def converter() -> Any:
    """vl-convert, which has Vega in it."""
    try:
        import vl_convert  # only those who look need it
    except ImportError:
        raise ImportError("reports need vl-convert-python: pip install 'rowcol[report]'") from None
    return vl_convert


def _live(picture: Picture) -> dict[str, Any]:
    """What the page's script needs of a picture."""
    found = strokes(picture)
    banded, rows = _banded(found), []
    for k, one in enumerate(found):
        band = [one.low, one.high] if banded else []
        for i in np.flatnonzero(one.points):
            values = [one.x, one.y, *(np.full(one.x.shape, np.nan) if v is None else v for v in band)]
            rows.append([k, *(_plain(v[i]) for v in values)])
    return {
        "spec": converter().vegalite_to_vega(chart(picture, CURVES, INK, live=True)),
        "names": [_clean(one.curve.name) for one in found],
        "x": _clean(picture.x_label),
        "y": _clean(picture.y_label),
        "zoom": zoomed(picture),
        "log": [axis for axis, log in (("x", picture.log_x), ("y", picture.log_y)) if log],
        "rows": rows[:LISTED],
    }


def _plain(v: Any) -> Any:
    return str(v) if isinstance(v, str) else float(f"{v:.6g}") if np.isfinite(v) else None


def _json(text: str) -> Html:
    """JSON that no parser of HTML takes for markup."""
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Html(text)


@cache
def _engine() -> str:
    """Vega, as text; through vega-embed, as the bundle gives no other way in. Making it takes a second."""
    text = converter().javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return "(() => {" + text.replace("\r", "").replace("</script", "<\\/script").replace("<!--", "<\\!--") + "\n})();"


def _script(text: str) -> Html:
    return Html(f"<script>{text}</script>")


def _digest(script: Html) -> str:
    text = script.removeprefix("<script>").removesuffix("</script>")
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _file(name: str) -> str:
    return files("rowcol.show").joinpath(name).read_text(encoding="utf-8")


def _style() -> str:
    text = _file("page.css")
    for place, colours in (("/* curves */", LIGHT), ("/* dark curves */", DARK)):
        text = text.replace(place, " ".join(f"--curve-{i}: {colour};" for i, colour in enumerate(colours, 1)))
    return text
