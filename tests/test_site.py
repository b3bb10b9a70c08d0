"""The documentation as a site, in a browser: it builds strictly, needs no network, and its links lead somewhere."""

import functools
import os
import re
import subprocess
import sys
import threading
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from markdown_it import MarkdownIt

import rowcol
from browsing import PHONE, Opened

ROOT = Path(__file__).parent.parent
PAGES = sorted(path.name for path in (ROOT / "docs").glob("*.md"))
WRAPPED = (
    "[...document.querySelectorAll('article table:not([class])')].every(t => t.closest('.md-typeset__scrollwrap'))"
)
SEEN = """() => ({
  links: [...document.querySelectorAll('a[href]')].map((a) => a.href),
  sources: [...document.querySelectorAll('img[src]')].map((i) => [i.src, i.alt, i.naturalWidth]),
  ids: [...document.querySelectorAll('[id]')].map((e) => e.id),
  title: document.title,
  h1: document.querySelectorAll('article h1').length,
  width: document.scrollingElement.scrollWidth,
})"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The site, built as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    ended = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return folder


@pytest.fixture(scope="module")
def home(built):
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=built))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def opened(browser, home, page="index.html", search=False, **options):
    """A page of the site; unless it is to search, with an empty index: each page reads it anew, for a second."""
    empty = {"config": {"lang": ["en"], "separator": r"[\s\-]+", "pipeline": [], "fields": {}}, "docs": []}
    instead = {} if search else {"**/search_index.json": empty}
    return Opened(browser, home + page, ready="article", home=home, instead=instead, **options)


@pytest.fixture(scope="module")
def crawled(browser, home):
    """Every page that a reader can get to from the first, as a phone shows it, and how wide that is."""
    found, waiting = {}, [home + "index.html"]
    with opened(browser, home, viewport=PHONE) as it:
        for url in waiting:  # which grows
            assert it.goto(url).status == 200
            it.page.wait_for_function(f"() => {WRAPPED}", timeout=30_000)
            found[url] = seen = it.page.evaluate(SEEN)
            for link in seen["links"]:
                target = urldefrag(link).url
                if target.startswith(home) and target.endswith(".html") and target not in waiting:
                    waiting.append(target)
            it.silent()
    return found


def test_every_page_is_reached_and_has_one_title(built, home, crawled):
    files = {home + path.relative_to(built).as_posix() for path in built.rglob("*.html")} - {home + "404.html"}
    assert set(crawled) == files
    assert {home + name.replace(".md", ".html") for name in PAGES} <= files
    assert {url for url, seen in crawled.items() if seen["h1"] != 1} == set()
    titles = [seen["title"] for seen in crawled.values()]
    assert len(set(titles)) == len(titles)


def test_no_link_is_dead(built, home, crawled):
    dead = []
    for url, seen in crawled.items():
        for link in seen["links"]:
            target, anchor = urldefrag(link)
            if not target.startswith(home):
                continue
            exists = (built / unquote(target.removeprefix(home))).is_file()
            if not exists or (anchor and target in crawled and unquote(anchor) not in crawled[target]["ids"]):
                dead.append((url.removeprefix(home), link.removeprefix(home)))
    assert dead == []


def test_pictures_are_there_and_told_in_words(crawled):
    pictures = [one for seen in crawled.values() for one in seen["sources"] if "/pictures/" in one[0]]
    assert len(pictures) >= 11
    assert [source for source, alt, width in pictures if len(alt) < 60 or width == 0] == []


def test_a_phone_scrolls_one_way_only(crawled):
    assert {url: seen["width"] for url, seen in crawled.items() if seen["width"] > 375} == {}


def test_every_public_name_is_in_the_reference(home, crawled):
    listed = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "api.md").read_text(), re.M)
    assert sorted(listed) == sorted(rowcol.__all__)
    linked = {link.split("#")[1] for link in crawled[home + "api.html"]["links"] if "#rowcol." in link}
    shown = {one for url, seen in crawled.items() if "/api/" in url for one in seen["ids"]}
    for name in rowcol.__all__:
        assert f"rowcol.{name}" in linked
        assert f"rowcol.{name}" in shown


@pytest.mark.parametrize("viewport", [None, PHONE])
def test_search_finds_minimum_norm(browser, home, viewport):
    with opened(browser, home, search=True, **({"viewport": viewport} if viewport else {})) as it:
        if viewport:
            it.page.locator("header label[for='__search']").first.click()
        it.page.locator(".md-search__input").click()
        it.page.locator(".md-search__input").press_sequentially("minimum norm")
        best = it.page.locator(".md-search-result__item").first
        best.locator("mark", has_text="norm").first.wait_for(timeout=30_000)  # results come while one types
        assert best.locator("mark").all_inner_texts()[:2] == ["minimum", "norm"]
        best.get_by_text("How do I get the minimum norm solution?").click()
        it.page.wait_for_url("**/faq.html?h=*#how-do-i-get-the-minimum-norm-solution", timeout=30_000)
        assert it.page.locator("#how-do-i-get-the-minimum-norm-solution").is_visible()


def test_dark_follows_the_system_and_the_button(browser, home):
    def looks(it):
        return it.page.get_attribute("body", "data-md-color-scheme"), it.style("body", "backgroundColor")

    with opened(browser, home, color_scheme="light") as it:
        light = looks(it)
        it.page.locator("label[title='Switch to dark']").click()
        it.page.wait_for_selector("body[data-md-color-scheme='slate']")
        dark = looks(it)
        assert light[0] == "default"
        assert light[1] != dark[1]
        it.goto(home + "ridge.html")
        it.page.wait_for_selector("body[data-md-color-scheme='slate']")
        it.page.locator("label[title='Switch to light']").click()
        it.page.wait_for_selector("body[data-md-color-scheme='default']")
    with opened(browser, home, color_scheme="dark") as it:
        it.page.wait_for_selector("body[data-md-color-scheme='slate']")
        assert looks(it) == dark


def test_an_example_is_copied_without_its_prompts(browser, home):
    with opened(browser, home, "first-solve.html", permissions=["clipboard-read", "clipboard-write"]) as it:
        it.page.locator(".highlight button[data-clipboard-target], .highlight .md-clipboard").nth(1).click()
        it.page.wait_for_function("async () => (await navigator.clipboard.readText()).includes('rowcol')")
        text = it.page.evaluate("navigator.clipboard.readText()")
        assert text.startswith("import numpy as np, rowcol\nrng = ")
        assert ">>>" not in text
        assert "[1.0, -2.0, 0.5, 3.0]" not in text.splitlines()
        assert "doctest" not in it.page.inner_text("article")


# --- what GitHub shows and what the site shows ------------------------------------------------------------------------


class Marked(HTMLParser):
    """What is emphasised, and how many lists, tables and examples there are, in the body of a page."""

    def __init__(self, within):
        super().__init__()
        self.within, self.deep, self.open, self.words = within, 0 if within else 1, [], []
        self.counts = dict.fromkeys(("table", "tr", "li", "pre", "blockquote", "h2", "h3"), 0)

    def handle_starttag(self, tag, attributes):
        self.deep += tag == self.within
        if self.deep:
            if tag in self.counts:
                self.counts[tag] += 1
            if tag in ("em", "strong"):
                self.open.append("")

    def handle_endtag(self, tag):
        if self.deep and tag in ("em", "strong"):
            self.words.append(" ".join(self.open.pop().split()))
        self.deep -= tag == self.within

    def handle_data(self, data):
        self.open = [text + data for text in self.open]


@pytest.mark.parametrize("name", ["README.md", *PAGES])
def test_a_page_is_the_same_on_github_and_in_the_site(built, name):
    source = (ROOT / name if name == "README.md" else ROOT / "docs" / name).read_text()
    there, here = Marked(None), Marked("article")
    there.feed(MarkdownIt("commonmark").enable("table").render(source))
    here.feed((built / name.replace("README", "index").replace(".md", ".html")).read_text())
    assert here.words == there.words
    assert here.counts == there.counts
