"""A browser for the tests that look at pages: Debian's chromium, driven by Playwright."""

import os
import shutil
from contextlib import contextmanager
from functools import partial

import pytest

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
FLAGS += ["--disable-background-networking", "--disable-component-update"]
PHONE, SCREEN = {"width": 375, "height": 720}, {"width": 1100, "height": 800}


@contextmanager
def chromium():
    """The browser. None is a failure, not a reason to skip."""
    from playwright.sync_api import sync_playwright

    path = os.environ.get("ROWCOL_CHROMIUM") or shutil.which("chromium")
    if path is None:
        pytest.fail(
            "there is no chromium: apt-get install chromium, or set ROWCOL_CHROMIUM to the path of one; "
            "`make test` installs it where it can"
        )
    with sync_playwright() as playwright:
        one = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield one
        one.close()


def answer(data, route, request):
    route.fulfill(json=data)


class Opened:
    """A page, and all it asked for, said and failed at since. `home` is where it may ask, `instead` other answers."""

    def __init__(self, browser, url, ready="html[data-ready]", home="file://", instead=None, **options):
        self.context = browser.new_context(**({"viewport": SCREEN} | options))
        self.page = self.context.new_page()
        self.home, self.ready = home, ready
        self.requests, self.said, self.failed = [], [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.failed.append(str(error)))
        self.page.add_init_script("window.called = []; window.alert = (x) => window.called.push(x);")
        for pattern, data in (instead or {}).items():
            self.page.route(pattern, partial(answer, data))
        self.goto(url)

    def goto(self, url):
        response = self.page.goto(url if isinstance(url, str) else url.as_uri(), timeout=30_000)
        self.page.wait_for_selector(self.ready, timeout=30_000, state="attached")
        return response

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.context.close()
        if kind is None:
            self.silent()

    def silent(self):
        """Nothing failed, nothing was said, nothing was asked for elsewhere."""
        assert self.failed == []
        assert self.said == []
        assert [url for url in self.requests if not url.startswith((self.home, "data:", "blob:"))] == []

    def count(self, selector):
        return self.page.locator(selector).count()

    def style(self, selector, name):
        return self.page.eval_on_selector(selector, f"e => getComputedStyle(e).{name}")

    def settled(self, script, value):
        """Wait until the page says so; Vega draws after the click returns."""
        self.page.wait_for_function(f"() => ({script}) === {value}", timeout=15_000)
