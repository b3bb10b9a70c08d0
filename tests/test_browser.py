"""A report in a browser: what is drawn, hidden, zoomed, themed, printed and read aloud, as the page itself says."""

import numpy as np
import pytest

import rowcol
from browsing import PHONE, Opened
from rowcol.show.drawing import DARK, LIGHT
from rowcol.show.picture import Book, Chapter, Curve, Picture, Table

EVIL = "</script><img src=x onerror=alert(1)><!--\u2028'\"`${alert(2)}</title></style>{{x}}&lt;"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("reports")


def book(evil=""):
    """Three chapters with all there can be; `evil` is added to every text there is."""
    x = np.geomspace(1, 1000, 30)

    def curve(name, rate, family, style="line"):
        y = np.exp(-rate * np.sqrt(x))
        band = (y / 2, 2 * y) if style == "line" else (None, None)
        return Curve(name + evil, x, y, *band, style=style, family=family + evil)

    def picture(title, *curves, **more):
        return Picture(title + evil, f"Words of {title}." + evil, "passes" + evil, "error" + evil, list(curves), **more)

    errors = picture(
        "Errors",
        curve("rows", 0.5, "rk"),
        curve("rows, predicted", 0.4, "rk", "dashed"),
        curve("columns", 0.2, "rcd"),
        Curve("looks" + evil, x[::5], x[::5] ** -0.5, style="points"),
        log_x=True,
        log_y=True,
    )
    histogram = picture("Histogram", Curve("count" + evil, np.arange(9.0), np.arange(9.0), style="bars"))
    names = np.array(["tall" + evil, "wide", "sparse"])
    bars = [Curve(name + evil, names, np.array([1.0, 20.0, 3.0]), style="bars") for name in ("ours", "theirs")]
    rows = [["A claim that is a good deal longer than a phone is wide, so that it wraps" + evil, "0.9913", "1.5e-03"]]
    rows += [["Another", "12,400", "−"], ["None", "–", "2"]]
    table = Table("Claims" + evil, ["claim" + evil, "predicted", "measured"], rows, [True, False, None])
    return Book(
        "A book" + evil,
        ["All is well." + evil],
        [
            Chapter("One" + evil, ["Some words." + evil], [errors]),
            Chapter("Two", ["More."], [], [table]),
            Chapter("Three", ["Last."], [histogram, picture("Seconds", *bars, log_y=True)]),
        ],
        "Made by a test." + evil,
    )


def solved():
    rng = np.random.default_rng(0)
    X, beta = rng.standard_normal((400, 12)), rng.standard_normal(12)
    y = X @ beta + rng.standard_normal(400)
    return rowcol.solve(X, y, method="rcd", random_state=0), X, y


@pytest.fixture(scope="module")
def pages(folder):
    result, X, y = solved()
    paths = {
        "book": rowcol.report(book(), folder / "book.html"),
        "evil": rowcol.report(book(EVIL), folder / "evil.html"),
        "solve": rowcol.report(result, folder / "solve.html", X=X, y=y),
    }
    for path in paths.values():
        assert path.stat().st_size < 3_000_000
    return paths


LINES = "#picture-1 .mark-line path"
COUNT_LINES = f"document.querySelectorAll('{LINES}').length"


@pytest.mark.parametrize("name", ["book", "evil", "solve"])
def test_it_opens_offline_and_says_nothing(browser, pages, name):
    with Opened(browser, pages[name], offline=True) as it:
        assert it.requests == [pages[name].as_uri()], "the page itself is all it asks for"
        assert it.count(".chart[data-drawn] svg") == it.count("figure") > 2


def test_every_curve_is_drawn(browser, pages):
    with Opened(browser, pages["book"]) as it:
        assert it.count(LINES) == 3
        assert it.count("#picture-1 .mark-area path") == 2
        shapes = it.page.locator(LINES).evaluate_all(
            "all => all.map(e => [getComputedStyle(e).stroke, getComputedStyle(e).strokeDasharray])"
        )
        assert len({colour for colour, _ in shapes}) == 2, "curves of one family share a colour"
        assert sum(dash not in ("none", "1px, 0px", "1, 0") for _, dash in shapes) == 1, "one is predicted"
        seen = "#picture-1 .mark-symbol.role-mark path:not([opacity='0'])"
        assert it.count(seen) == 6, "looks; the points that wait for the pointer are not seen"
        assert it.count("#picture-2 .mark-rect.role-mark path") == 9
        assert it.count("#picture-3 .mark-rect.role-mark path") == 6
        assert it.count("#picture-1 [data-curve]") == 4


def test_a_solve_shows_what_numpy_finds(browser, pages):
    result, X, y = solved()
    with Opened(browser, pages["solve"]) as it:
        assert it.count("figure") == 4
        details = it.page.locator("#picture-2 details")
        details.locator("summary").click()
        details.locator("tbody tr").first.wait_for()
        cells = details.locator("tbody td:last-child").all_inner_texts()
        np.testing.assert_allclose([float(c) for c in cells], np.linalg.svd(X, compute_uv=False), rtol=1e-4)
        assert f"{result.certificate.value:.2e}" in it.page.inner_text("main")
        assert it.count("#picture-3 .mark-symbol.role-mark path:not([opacity='0'])") == len(y)


@pytest.mark.parametrize("way", ["mouse", "keyboard"])
def test_a_legend_button_hides_its_curve_and_shows_it_again(browser, pages, way):
    with Opened(browser, pages["book"]) as it:
        button = it.page.locator("#picture-1 [data-curve='0']")

        def press():
            if way == "mouse":
                button.click()
            else:
                button.focus()
                it.page.keyboard.press("Enter" if button.get_attribute("aria-pressed") == "true" else "Space")

        shapes = f"[...document.querySelectorAll('{LINES}')].map(e => e.getAttribute('d')).sort().join()"
        before = it.page.evaluate(shapes)
        assert button.get_attribute("aria-pressed") == "true"
        press()
        it.settled(COUNT_LINES, 2)
        assert button.get_attribute("aria-pressed") == "false"
        assert it.count("#picture-1 .mark-area path") == 1, "its band goes with it"
        assert it.count("#picture-3 .mark-rect.role-mark path") == 6, "other charts are as they were"
        press()
        it.settled(COUNT_LINES, 3)
        assert button.get_attribute("aria-pressed") == "true"
        it.page.wait_for_function(f"d => {shapes} === d", arg=before, timeout=15_000)
        for k in range(4):  # an empty chart is no error either
            it.page.locator(f"#picture-1 [data-curve='{k}']").click()
        it.settled(COUNT_LINES, 0)


def test_buttons_the_wheel_and_dragging_zoom(browser, pages):
    with Opened(browser, pages["book"]) as it:
        shape = f"document.querySelector('{LINES}').getAttribute('d')"
        before = it.page.evaluate(shape)

        def length():
            return it.page.eval_on_selector(LINES, "e => e.getTotalLength()")

        whole = length()
        for label, longer in (("Zoom in", True), ("Reset zoom", None), ("Zoom out", False), ("Reset zoom", None)):
            it.page.get_by_role("button", name=f"{label}: Errors").click()
            if longer is None:
                it.page.wait_for_function(f"d => {shape} === d", arg=before, timeout=15_000)
            else:
                it.page.wait_for_function(f"d => {shape} !== d", arg=before, timeout=15_000)
                assert (length() > 1.5 * whole) if longer else (length() < 0.75 * whole)
        it.page.mouse.move(*middle(it, "#picture-1"))
        top = it.page.evaluate("scrollY")
        it.page.mouse.wheel(0, 120)
        it.page.wait_for_function("top => scrollY > top", arg=top)
        assert it.page.evaluate(shape) == before, "a plain wheel scrolls the page"
        it.page.mouse.move(*middle(it, "#picture-1"))
        it.page.keyboard.down("Control")
        it.page.mouse.wheel(0, -120)
        it.page.keyboard.up("Control")
        it.page.wait_for_function(f"d => {shape} !== d", arg=before, timeout=15_000)
        it.page.get_by_role("button", name="Reset zoom: Errors").click()
        it.page.wait_for_function(f"d => {shape} === d", arg=before, timeout=15_000)
        x, y = middle(it, "#picture-1")
        it.page.mouse.move(x, y)
        it.page.mouse.down()
        it.page.mouse.move(x + 60, y + 10, steps=4)
        it.page.mouse.up()
        it.page.wait_for_function(f"d => {shape} !== d", arg=before, timeout=15_000)


def middle(it, figure):
    """Of a chart, once it is in sight and the page no longer moves."""
    still = "e => { document.documentElement.style.scrollBehavior = 'auto'; e.scrollIntoView({ block: 'center' }); }"
    it.page.locator(f"{figure} .chart").evaluate(still)
    box = it.page.locator(f"{figure} .chart").bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def hovered(it, figure):
    """What the page says of the point nearest to the middle of a chart."""
    x, y = middle(it, figure)
    for aside in (0, 15):
        it.page.mouse.move(x + aside, y)
    it.page.wait_for_selector("#tip:not([hidden])", timeout=15_000)
    return it.page.inner_text("#tip")


def test_a_point_tells_its_numbers(browser, pages):
    with Opened(browser, pages["book"]) as it:
        text = hovered(it, "#picture-1")
        name, along, up, *_ = text.splitlines()
        curves = {curve.name: curve for curve in book().pictures[0].curves}
        assert along.startswith("passes: ")
        assert up.startswith("error: ")
        x, y = (float(line.split(": ")[1].replace(",", "").replace("−", "-")) for line in (along, up))
        nearest = np.argmin(np.abs(np.log(curves[name].x / x)))
        np.testing.assert_allclose([x, y], [curves[name].x[nearest], curves[name].y[nearest]], rtol=1e-3)
        it.page.mouse.move(2, 2)
        it.page.wait_for_selector("#tip", state="hidden", timeout=15_000)


# --- light and dark --------------------------------------------------------------------------------------------------


def rgb(colour):
    return "rgb({}, {}, {})".format(*(int(colour[i : i + 2], 16) for i in (1, 3, 5)))


def looks(it):
    text = "#picture-1 .role-axis-title text"
    return it.style("body", "backgroundColor"), it.style(text, "fill"), it.style(LINES, "stroke")


def test_dark_follows_the_system_and_the_button(browser, pages):
    with Opened(browser, pages["book"], color_scheme="light") as it:
        light = looks(it)
        assert light[2] == rgb(LIGHT[0])
        button = it.page.locator("#theme")
        assert button.get_attribute("aria-pressed") == "false"
        button.click()
        dark = looks(it)
        assert button.get_attribute("aria-pressed") == "true"
        assert all(a != b for a, b in zip(light, dark))
        assert dark[2] == rgb(DARK[0])
        button.focus()
        it.page.keyboard.press("Enter")
        assert looks(it) == light
        it.page.emulate_media(color_scheme="dark")
        it.page.wait_for_selector("html[data-theme='dark']")
        assert looks(it) == dark
    with Opened(browser, pages["book"], color_scheme="dark") as it:
        assert looks(it) == dark
        it.page.locator("#theme").click()
        assert looks(it) == light


CONTRAST = """() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const over = (top, below) => {
    const a = top[3] === undefined ? 1 : top[3];
    return [0, 1, 2].map((i) => a * top[i] + (1 - a) * below[i]);
  };
  const light = (c) => {
    const [r, g, b] = c.map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const paper = (e) => {
    if (!e) return [255, 255, 255];
    const own = parse(getComputedStyle(e).backgroundColor);
    return own[3] === 0 ? paper(e.parentElement) : over(own, paper(e.parentElement));
  };
  const found = [];
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.getClientRects().length || e.closest("script, noscript, .hidden, .skip")) continue;
    const style = getComputedStyle(e), svg = e instanceof SVGElement;
    const below = paper(svg ? e.closest(".chart") : e);
    const [a, b] = [light(over(parse(svg ? style.fill : style.color), below)), light(below)].sort((p, q) => p - q);
    found.push([(b + 0.05) / (a + 0.05), e.tagName + "." + (e.getAttribute("class") || "") + " " + e.textContent]);
  }
  return found;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(browser, pages, scheme):
    with Opened(browser, pages["book"], color_scheme=scheme) as it:
        it.page.locator("#picture-1 [data-curve='0']").click()  # a curve that is hidden is read, too
        it.page.locator("#picture-1 summary").click()
        it.page.mouse.move(2, 2)
        found = it.page.evaluate(CONTRAST)
        assert len(found) > 150, "axes, tables, buttons and words"
        assert any(text.startswith("text.") and "1,000" in text for _, text in found)
        assert [one for one in found if one[0] < 4.5] == []


# --- phones, paper, screen readers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["book", "evil", "solve"])
def test_a_phone_scrolls_one_way_only(browser, pages, name):
    with Opened(browser, pages[name], viewport=PHONE, has_touch=True) as it:
        assert it.page.evaluate("document.scrollingElement.scrollWidth") <= 375
        for details in it.page.locator("details").all():
            details.locator("summary").click()
            details.locator("tbody tr").first.wait_for()
        assert it.page.evaluate("document.scrollingElement.scrollWidth") <= 375
        widths = it.page.locator(".chart svg").evaluate_all("all => all.map(e => e.getBoundingClientRect().width)")
        assert min(widths) > 300
        assert max(widths) <= 375
        small = it.page.locator("button").evaluate_all("all => all.filter(e => e.offsetHeight < 24).length")
        assert small == 0, "WCAG 2.5.8"


def test_charts_follow_the_width_of_the_window(browser, pages):
    with Opened(browser, pages["book"]) as it:
        wide = it.page.locator("#picture-1 .chart svg").bounding_box()["width"]
        it.page.set_viewport_size(PHONE)
        it.page.wait_for_function(
            "() => document.querySelector('#picture-1 .chart svg').getBoundingClientRect().width < 376"
        )
        assert wide > 600
        assert it.page.evaluate("document.scrollingElement.scrollWidth") <= 375


def test_a_wide_table_scrolls_in_its_own_box(browser, pages):
    with Opened(browser, pages["book"], viewport=PHONE) as it:
        box = it.page.locator(".table .scroll")
        assert box.evaluate("e => e.scrollWidth > e.clientWidth")
        assert box.get_attribute("tabindex") == "0", "or the keyboard could not scroll it"
        box.focus()
        it.page.keyboard.press("ArrowRight")
        it.page.wait_for_function("() => document.querySelector('.table .scroll').scrollLeft > 0")


def test_paper_has_no_buttons_but_a_legend(browser, pages):
    with Opened(browser, pages["book"], color_scheme="dark") as it:
        it.page.locator("#picture-1 [data-curve='2']").click()
        it.settled(COUNT_LINES, 2)
        assert it.page.locator(".paper-legend").first.is_hidden()
        it.page.emulate_media(media="print", color_scheme="dark")
        assert it.page.locator("button:visible, details:visible, #tip:visible").count() == 0
        names = it.page.locator("#picture-1 .paper-legend li:visible").all_inner_texts()
        assert names == ["rows", "rows, predicted", "looks"], "those that are drawn"
        assert it.style("body", "backgroundColor") == "rgb(255, 255, 255)", "paper is white"
        assert it.style(LINES, "stroke") == rgb(LIGHT[0])
        assert it.page.pdf()[:4] == b"%PDF"


def test_it_can_be_read_without_eyes(browser, pages):
    with Opened(browser, pages["book"]) as it:
        assert it.page.get_attribute("html", "lang") == "en"
        for landmark in ("header", "nav", "main", "footer"):
            assert it.count(landmark) == 1
        levels = it.page.locator("h1, h2, h3, h4").evaluate_all("all => all.map(e => Number(e.tagName[1]))")
        assert levels.count(1) == 1
        assert levels[0] == 1
        assert max(np.diff(levels)) <= 1, "no level is left out"
        told = it.page.locator(".chart").evaluate_all(
            "all => all.map(e => [e.getAttribute('role'), e.getAttribute('aria-label')])"
        )
        assert told == [["img", f"{p.title}. {p.words}"] for p in book().pictures]
        ids = it.page.locator("[id]").evaluate_all("all => all.map(e => e.id)")
        assert len(ids) == len(set(ids))
        named = it.page.locator("[aria-labelledby]").evaluate_all(
            "all => all.map(e => e.getAttribute('aria-labelledby'))"
        )
        assert set(named) <= set(ids)
        links = it.page.locator("nav a").evaluate_all("all => all.map(e => [e.hash.slice(1), e.textContent])")
        assert [it.page.inner_text(f"#{target}") for target, _ in links] == [text for _, text in links]
        assert [text for _, text in links] == ["One", "Two", "Three"]
        marks = it.page.locator(".table tbody tr td:first-child").all_text_contents()
        assert marks == ["✓confirmed", "✗not confirmed", ""]
        nameless = "all => all.filter(e => !(e.getAttribute('aria-label') || e.textContent).trim()).length"
        assert it.page.locator("button, a").evaluate_all(nameless) == 0
        for selector in ("#theme", "nav a", "#picture-1 [data-curve]", ".scroll", "#picture-1 summary"):
            it.page.locator(selector).first.focus()
            it.page.keyboard.press("Shift")  # the keyboard is in use: focus is to be seen
            assert it.style(":focus", "outlineStyle") == "solid"
            assert it.style(":focus", "outlineWidth") == "3px"


def test_the_numbers_of_a_chart_are_a_table(browser, pages):
    with Opened(browser, pages["book"]) as it:
        it.page.locator("#picture-1 summary").focus()
        it.page.keyboard.press("Enter")
        rows = it.page.locator("#picture-1 tbody tr")
        rows.first.wait_for()
        curves = book().pictures[0].curves
        assert rows.count() == sum(len(curve.x) for curve in curves)
        first = rows.first.locator("th, td").all_inner_texts()
        assert first[0] == "rows"
        want = [curves[0].x[0], curves[0].y[0], curves[0].low[0], curves[0].high[0]]
        np.testing.assert_allclose([float(v) for v in first[1:]], want, rtol=1e-4)
        head = it.page.locator("#picture-1 thead th").all_inner_texts()
        assert head == ["curve", "passes", "error", "low", "high"]


# --- hostile text ----------------------------------------------------------------------------------------------------


def test_hostile_text_is_text(browser, pages):
    with Opened(browser, pages["evil"]) as it, Opened(browser, pages["book"]) as tame:
        for one in (it, tame):
            one.page.locator("#picture-1 summary").click()
            one.page.locator("#picture-1 [data-curve='0']").click()
            one.settled(COUNT_LINES, 2)
        assert hovered(it, "#picture-1").count("onerror=alert(1)") == 3, "name, label and label"
        assert hovered(it, "#picture-3").count("onerror=alert(1)") >= 2
        assert hovered(tame, "#picture-1")
        assert it.page.evaluate("window.called") == []
        for selector in ("img", "script", "style", "title", "meta", "iframe", "link"):
            assert it.count(selector) == tame.count(selector)
        kinds = (
            "[...document.querySelectorAll('body *')].filter(e => !e.closest('svg, #tip')).map(e => e.tagName).join()"
        )
        assert it.page.evaluate(kinds) == tame.page.evaluate(kinds), "the same elements, whatever the text"
        bad = "[...document.querySelectorAll('*')].filter(e => [...e.attributes].some(a => a.name.startsWith('on')))"
        assert it.page.evaluate(f"{bad}.length") == 0
        assert it.page.title().startswith("A book</script><img src=x onerror=alert(1)>")
        assert it.page.inner_text("h1").startswith("A book</script>")
        assert "passes</script><img" in it.page.text_content("#picture-1 .role-axis-title text >> nth=0")
        it.page.emulate_media(media="print")
        assert it.page.evaluate("window.called") == []


def test_the_policy_lets_no_other_script_run(browser, pages, folder):
    """Should text ever get through as markup, the page's own policy is what stops it."""
    text = pages["book"].read_text(encoding="utf-8")
    path = folder / "broken.html"
    path.write_text(text.replace("<h1>", "<h1><script>alert(1)</script><img src=x onerror=alert(2)>"), encoding="utf-8")
    it = Opened(browser, path)
    assert it.page.evaluate("window.called") == []
    assert any("Content Security Policy" in line for line in it.said)
    it.context.close()
