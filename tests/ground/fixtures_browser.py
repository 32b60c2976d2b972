"""Fixtures of the browser; imported by the page tests alone, since Playwright is slow to load."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Error, Page

from tests.ground.browser import WINDOW, save_screenshot, started_browser
from tests.ground.outcome import has_failed

ROOT = Path(__file__).resolve().parents[2]
# Beside three busy engines a page that takes half a second alone takes ten.
PATIENCE_MS = 30_000


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for the whole run; it is shown the scripts as they are now."""
    subprocess.run([sys.executable, ROOT / "deploy" / "setup_bundle.py"], check=True)
    with started_browser() as chromium:
        yield chromium


def new_window(browser: Browser) -> BrowserContext:
    """Cookies, storage and clock that nobody else has."""
    # Drawing a moving badge sixty times a second takes a core that the tests need.
    return browser.new_context(
        viewport={"width": WINDOW["width"], "height": WINDOW["height"]}, reduced_motion="reduce"
    )


@pytest.fixture
def browser_context(browser: Browser) -> Iterator[BrowserContext]:
    """The window of one test."""
    context = new_window(browser)
    yield context
    context.close()


@pytest.fixture
def page_errors() -> list[str]:
    """What the page's scripts and console reported as errors; for tests to assert on."""
    return []


@contextmanager
def watched_page(
    context: BrowserContext, page_errors: list[str], test: pytest.Item
) -> Iterator[Page]:
    """Open a page that notes its errors; a failed test leaves a picture in tests/artifacts."""

    def note_console(message: ConsoleMessage) -> None:
        if message.type == "error":
            page_errors.append(message.text)

    def note_error(error: Error) -> None:
        page_errors.append(str(error))

    opened = context.new_page()
    opened.set_default_timeout(PATIENCE_MS)
    opened.on("console", note_console)
    opened.on("pageerror", note_error)
    yield opened
    if has_failed(test):
        print(f"screenshot: {save_screenshot(opened, test.nodeid)}")
        print(f"errors of the page: {page_errors}")


@pytest.fixture
def page(
    browser_context: BrowserContext, page_errors: list[str], request: pytest.FixtureRequest
) -> Iterator[Page]:
    """A page in a window of 1440x900 that shares nothing with other tests."""
    with watched_page(browser_context, page_errors, request.node) as opened:
        yield opened
