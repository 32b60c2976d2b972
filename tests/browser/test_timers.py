"""A stop that is near is shown with its reason, and one click puts it off."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from playwright.sync_api import Page, expect

from tests.browser.accessibility import serious_violations

if TYPE_CHECKING:
    from tests.browser.pretend_agent import PretendAgent


def test_a_near_stop_is_announced_and_put_off_by_one_click(
    signed_in: Page, agent: PretendAgent, page_errors: list[str]
) -> None:
    page = signed_in
    due = datetime.now(UTC) + timedelta(minutes=6)
    workspace = agent.workspace(schedule={"stop": f"{due:%H:%M}"})
    agent.says_workspace(workspace, "running", container_id="f" * 64)
    page.goto(f"{agent.trailer.url}/workspaces/{workspace['id']}/")
    notice = page.locator(f'[data-timer="workspace:{workspace["id"]}"]')
    expect(notice).to_contain_text(f"Stops at {due:%H:%M} UTC")
    # Within six minutes of midnight the day is said, too.
    reason = rf"because its schedule stops it at (?:{due:%Y-%m-%d} )?{due:%H:%M} UTC"
    expect(notice).to_contain_text(re.compile(reason))
    assert serious_violations(page) == []
    notice.locator('[data-action="extend"]').click()
    later = datetime.now(UTC) + timedelta(minutes=60)
    near = {f"{later + timedelta(minutes=n):%H:%M}" for n in (-1, 0, 1)}
    expect(notice).not_to_contain_text(f"Stops at {due:%H:%M} UTC")
    assert any(f"Would stop at {moment} UTC" in notice.inner_text() for moment in near)
    seen = agent.trailer.api("GET", f"/workspaces/{workspace['id']}/").json()["timer"]
    assert seen["extended_until"]
    assert page_errors == []
