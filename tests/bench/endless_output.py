"""A build that prints without end, watched by a browser: what the agent, the server and the page
make of it. Five minutes are the measure; it takes as long as it is told to."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tests.bench.cost import MIB, agent_of
from tests.bench.table import Row, percentile
from tests.e2e.scenario import User
from tests.ground.browser import started_browser
from tests.ground.images import BUSYBOX
from tests.ground.pulse import longest_pause_ms, start_pulse
from tests.ground.server import PASSWORD, USERNAME, RunningTrailer
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from typing import Any

    from playwright.sync_api import Page

DOCKERFILE = f"FROM {BUSYBOX}\nRUN yes\n"
ROUND = 5.0


def endless_rows(trailer: RunningTrailer, seconds: float) -> list[Row]:
    user = User(trailer)
    user.online_host()
    agent = agent_of(trailer)
    with started_browser() as browser:
        page = browser.new_page()
        _sign_in(page, trailer)
        image = user.built_image("endless", DOCKERFILE)
        page.goto(f"{trailer.url}/images/{image['id']}/")
        page.locator("[data-log-dropped]").wait_for()
        start_pulse(page)
        before, peak = agent.memory_info().rss, 0
        pauses, answers = [], []
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            page.wait_for_timeout(ROUND * 1000)
            peak = max(peak, agent.memory_info().rss)
            pauses.append(longest_pause_ms(page))
            answers.append(_answer_ms(page))
        held: float = page.evaluate("performance.memory.usedJSHeapSize")
        asked = time.monotonic()
        user.post(f"/images/{image['id']}/cancel/")
        user.wait_for_image(image, "cancelled")
        cancelled = time.monotonic() - asked
    stored = eventually(lambda: _stored_bytes(user, image), 30, "the log is not complete")
    detail = f"{seconds:.0f} s of `yes`"
    return [
        Row("endless output: agent grew", (peak - before) / MIB, "MiB", 64, detail),
        Row("endless output: stored", stored / MIB, "MiB", 5.1, detail),
        Row("endless output: longest pause of the page", max(pauses), "ms", 500, detail),
        Row("endless output: a click is answered, p99", percentile(answers, 99), "ms", 500),
        Row("endless output: the page holds", held / MIB, "MiB", 100),
        Row("endless output: cancelled within", cancelled, "s", 5),
    ]


def _sign_in(page: Page, trailer: RunningTrailer) -> None:
    page.goto(f"{trailer.url}/login/")
    page.get_by_label("Username").fill(USERNAME)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{trailer.url}/")


def _answer_ms(page: Page) -> float:
    """Pause the log and follow it again, as a reader does; until the button shows it."""
    begun = time.monotonic()
    for state in ("false", "true"):
        page.locator("[data-log-follow]").click()
        page.locator(f'[data-log-follow][aria-pressed="{state}"]').wait_for()
    return (time.monotonic() - begun) / 2 * 1000


def _stored_bytes(user: User, image: Any) -> int:
    text, _, complete = user.build_log(image)
    return len(text.encode()) if complete else 0
