"""The fixtures of the page tests: Playwright is loaded here and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.pretend_agent import PretendAgent
from tests.ground.fixtures_browser import browser, browser_context, page, page_errors
from tests.ground.server import PASSWORD, USERNAME, RunningTrailer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

__all__ = ["browser", "browser_context", "page", "page_errors"]


@pytest.fixture(scope="session")
def pages_server() -> Iterator[RunningTrailer]:
    """The product without an agent of its own: tests pretend to be the agents."""
    server = RunningTrailer("unix:///nowhere.sock", {"TRAILER_EMBEDDED_AGENT": "0"})
    try:
        yield server.start()
    finally:
        server.destroy()


@pytest.fixture
def agent(pages_server: RunningTrailer) -> PretendAgent:
    """An online host."""
    return PretendAgent(pages_server).connect()


@pytest.fixture(scope="session")
def session_cookies(browser: Browser, pages_server: RunningTrailer) -> list[Any]:
    """The administrator's session, made once: checking a password is slow by design."""
    context = browser.new_context()
    sign_in(context.new_page(), pages_server)
    cookies = context.cookies()
    context.close()
    return cookies


@pytest.fixture
def signed_in(page: Page, pages_server: RunningTrailer, session_cookies: list[Any]) -> Page:
    """A page of the administrator, on the dashboard."""
    page.context.add_cookies(session_cookies)
    page.goto(f"{pages_server.url}/")
    return page


def sign_in(page: Page, server: RunningTrailer) -> Page:
    page.goto(f"{server.url}/login/")
    page.get_by_label("Username").fill(USERNAME)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{server.url}/")
    return page


def assert_no_errors(page_errors: list[str]) -> None:
    """The engine of another test changes the machine's network, which cuts requests off."""
    assert [text for text in page_errors if "ERR_NETWORK_CHANGED" not in text] == []
