"""The fixtures of the page tests: Playwright is loaded here and nowhere else.

There are two servers. `pages_server` has no engine: tests pretend to be its agents. `trailer` has
a real one. Starting is slow, so each is started once, and each has one window for all tests.
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.pretend_agent import PretendAgent
from tests.e2e.scenario import User
from tests.ground.fixtures_browser import (
    PATIENCE_MS,
    browser,
    browser_context,
    new_window,
    page,
    page_errors,
    watched_page,
)
from tests.ground.gitserver import GitServer
from tests.ground.server import PASSWORD, USERNAME, RunningTrailer

if TYPE_CHECKING:
    from collections.abc import Iterator

    import docker
    from playwright.sync_api import Browser, BrowserContext, Locator, Page

    from tests.ground.engine import PrivateEngine

__all__ = ["browser", "browser_context", "page", "page_errors"]

expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="session")
def pages_server() -> Iterator[RunningTrailer]:
    """The product without an agent of its own: tests pretend to be the agents. Mail is printed."""
    env = {"TRAILER_EMBEDDED_AGENT": "0", "TRAILER_SMTP_URL": "consolemail://"}
    server = RunningTrailer("unix:///nowhere.sock", env)
    try:
        yield server.start()
    finally:
        server.destroy()


@pytest.fixture
def agent(pages_server: RunningTrailer) -> PretendAgent:
    """An online host."""
    return PretendAgent(pages_server).connect()


@pytest.fixture(scope="session")
def pages_window(browser: Browser, pages_server: RunningTrailer) -> Iterator[Window]:
    with Window.opened(browser, pages_server) as window:
        yield window


@pytest.fixture
def signed_in(
    pages_window: Window, page_errors: list[str], request: pytest.FixtureRequest
) -> Iterator[Page]:
    """An empty page of the administrator, whose agents are pretended."""
    with pages_window.page(page_errors, request.node) as opened:
        yield opened


@pytest.fixture
def with_own_clock(
    browser: Browser,
    pages_window: Window,
    page_errors: list[str],
    request: pytest.FixtureRequest,
) -> Iterator[Page]:
    """As `signed_in`, in a window of its own: a clock that is set is that of all its pages."""
    context = new_window(browser)
    context.add_cookies(pages_window.cookies)  # type: ignore[arg-type]
    with watched_page(context, page_errors, request.node) as opened:
        yield opened
    context.close()


@pytest.fixture
def dashboard(signed_in: Page, pages_server: RunningTrailer) -> Page:
    """The administrator's page, on the dashboard."""
    signed_in.goto(f"{pages_server.url}/")
    return signed_in


@pytest.fixture(scope="session")
def git_server() -> Iterator[GitServer]:
    server = GitServer()
    try:
        yield server.start()
    finally:
        server.destroy()


@pytest.fixture(scope="session")
def engine_server(engine: PrivateEngine, git_server: GitServer) -> Iterator[RunningTrailer]:
    server = RunningTrailer(engine.url, {"TRAILER_GIT_ALLOW": git_server.allow})
    try:
        yield server.start()
    finally:
        server.destroy()


@pytest.fixture(scope="session")
def engine_docker(engine: PrivateEngine) -> Iterator[docker.DockerClient]:
    """A client of the engine that `trailer` works on."""
    with closing(engine.client()) as client:
        yield client


@pytest.fixture
def trailer(
    engine_server: RunningTrailer, engine_docker: docker.DockerClient
) -> Iterator[RunningTrailer]:
    """The whole product on a real engine; what a test makes is gone after it."""
    user = User(engine_server)
    user.online_host()
    yield engine_server
    user.clear(engine_docker)


@pytest.fixture(scope="session")
def engine_window(browser: Browser, engine_server: RunningTrailer) -> Iterator[Window]:
    with Window.opened(browser, engine_server) as window:
        yield window


@pytest.fixture
def on_engine(
    engine_window: Window,
    trailer: RunningTrailer,
    page_errors: list[str],
    request: pytest.FixtureRequest,
) -> Iterator[Page]:
    """The administrator's page of the product on a real engine, on the dashboard."""
    with engine_window.page(page_errors, request.node) as opened:
        opened.goto(f"{trailer.url}/")
        yield opened


class Window:
    """Pages of one signed-in administrator: a new window each time would fetch every script anew,
    and check the password, which is slow by design.
    """

    def __init__(self, context: BrowserContext, server: RunningTrailer) -> None:
        self._context = context
        self._server = server
        sign_in(context.new_page(), server).close()
        self.cookies = context.cookies()

    @classmethod
    @contextmanager
    def opened(cls, browser: Browser, server: RunningTrailer) -> Iterator[Window]:
        context = new_window(browser)
        yield cls(context, server)
        context.close()

    @contextmanager
    def page(self, page_errors: list[str], test: pytest.Item) -> Iterator[Page]:
        """A page that remembers nothing of those before it, but that somebody is signed in."""
        self._context.clear_cookies()
        self._context.add_cookies(self.cookies)  # type: ignore[arg-type]
        with watched_page(self._context, page_errors, test) as opened:
            forget = {"origin": self._server.url, "storageTypes": "local_storage"}
            self._context.new_cdp_session(opened).send("Storage.clearDataForOrigin", forget)
            yield opened
        opened.close()


def sign_in(page: Page, server: RunningTrailer) -> Page:
    page.goto(f"{server.url}/login/")
    page.get_by_label("Username").fill(USERNAME)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{server.url}/")
    return page


def scroll(body: Locator, pixels: int) -> None:
    """As a wheel does, whose own event waits for a frame: on a busy machine one came only with the
    picture of the failure, half a minute later."""
    body.evaluate("(body, pixels) => body.scrollBy(0, pixels)", pixels)
