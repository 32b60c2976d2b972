"""A build that prints without end, watched by a browser: what the agent, the server and the page
make of it. Five minutes are the measure; it takes as long as it is told to.

The page is watched beside a silent build first: a busy machine makes every page pause.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from tests.bench.cost import MIB, agent_of
from tests.bench.table import Row
from tests.e2e.scenario import User
from tests.ground.browser import started_browser
from tests.ground.images import BUSYBOX
from tests.ground.pulse import longest_pause_ms, start_pulse
from tests.ground.server import PASSWORD, USERNAME, RunningTrailer
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

SILENT = f"FROM {BUSYBOX}\nRUN echo begun; sleep 1000\n"
ENDLESS = f"FROM {BUSYBOX}\nRUN echo begun; yes\n"
ROUND = 5.0


def endless_rows(trailer: RunningTrailer, seconds: float) -> list[Row]:
    user = User(trailer)
    user.online_host()
    agent = agent_of(trailer)
    with started_browser() as browser:
        page = browser.new_page()
        _sign_in(page, trailer)
        calm = Watched(user, page, "silent", SILENT).watch(min(seconds, 30), lambda: 0)
        flood = Watched(user, page, "endless", ENDLESS)
        before = agent.memory_info().rss
        flood.watch(seconds, lambda: agent.memory_info().rss)
        held: float = page.evaluate("performance.memory.usedJSHeapSize")
        cancelled = flood.cancel()
        calm.cancel()
    stored = eventually(lambda: _stored_bytes(user, flood.image), 30, "the log is not complete")
    detail = f"{seconds:.0f} s of `yes`"
    pause = f"{detail}; beside a silent build {max(calm.pauses):.0f} ms"
    click = (
        f"the slowest of {len(flood.answers)}; beside a silent build {max(calm.answers):.0f} ms"
    )
    return [
        Row("endless output: agent grew", (flood.peak - before) / MIB, "MiB", 64, detail),
        Row("endless output: stored", stored / MIB, "MiB", 5.001, detail),
        Row("endless output: longest pause of the page", max(flood.pauses), "ms", 1000, pause),
        Row("endless output: a click is answered", max(flood.answers), "ms", 1000, click),
        Row("endless output: the page holds", held / MIB, "MiB", 100),
        Row("endless output: cancelled within", cancelled, "s", 5),
    ]


class Watched:
    """A build that runs until it is cancelled, and a page that shows its log."""

    def __init__(self, user: User, page: Page, name: str, dockerfile: str) -> None:
        self._user = user
        self._page = page
        self.image = user.built_image(name, dockerfile)
        self.pauses: list[float] = []
        self.answers: list[float] = []
        self.peak = 0
        page.goto(f"{user.trailer.url}/images/{self.image['id']}/")
        page.locator("[data-log-text] .line").first.wait_for()
        start_pulse(page)

    def watch(self, seconds: float, memory: Callable[[], int]) -> Watched:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._page.wait_for_timeout(ROUND * 1000)
            self.peak = max(self.peak, memory())
            self.pauses.append(longest_pause_ms(self._page))
            self.answers.append(self._answer_ms())
        return self

    def _answer_ms(self) -> float:
        """Hold the log and follow it again, as a reader does; until the button shows it."""
        begun = time.monotonic()
        for state in ("false", "true"):
            self._page.locator("[data-log-follow]").click()
            self._page.locator(f'[data-log-follow][aria-pressed="{state}"]').wait_for()
        return (time.monotonic() - begun) / 2 * 1000

    def cancel(self) -> float:
        """How many seconds it took."""
        asked = time.monotonic()
        self._user.post(f"/images/{self.image['id']}/cancel/")
        self._user.wait_for_image(self.image, "cancelled")
        return time.monotonic() - asked


def _sign_in(page: Page, trailer: RunningTrailer) -> None:
    page.goto(f"{trailer.url}/login/")
    page.get_by_label("Username").fill(USERNAME)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{trailer.url}/")


def _stored_bytes(user: User, image: Any) -> int:
    text, _, complete = user.build_log(image)
    return len(text.encode()) if complete else 0
