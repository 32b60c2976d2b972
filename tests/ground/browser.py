"""The real browser of the page tests."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.ground.browsernet import program_in_own_network

# The shell is the same engine without a browser's windows and services, for half the work.
PROGRAMS = ("/usr/bin/chromium-headless-shell", "/usr/bin/chromium")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
WINDOW = {"width": 1440, "height": 900}
ARTIFACTS = Path(__file__).resolve().parents[1] / "artifacts"


@contextmanager
def started_browser() -> Iterator[Browser]:
    """Start Chromium, and end it after."""
    program = next(path for path in PROGRAMS if Path(path).exists())
    with program_in_own_network(program) as chromium, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, headless=True, args=ARGUMENTS
        )
        try:
            yield browser
        finally:
            browser.close()


def save_screenshot(page: Page, test: str, *, whole: bool = True) -> Path:
    """Keep what the page, or what is in view of it, looks like, under the name of the test."""
    ARTIFACTS.mkdir(exist_ok=True)
    path = ARTIFACTS / f"{re.sub(r'[^A-Za-z0-9_-]+', '-', test).strip('-')}.png"
    page.screenshot(path=path, full_page=whole)
    return path
