"""The events of a workspace as one story: its columns, its filters, and why it is as it is."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Page, expect

from agent.protocol.report import ContainerExit, FieldChange, WorkspaceEvent
from tests.browser.accessibility import serious_violations
from tests.browser.test_looks import KEEP_PICTURES, THEMES
from tests.ground.browser import save_screenshot

if TYPE_CHECKING:
    from tests.browser.pretend_agent import PretendAgent
    from tests.ground.server import RunningTrailer

MIB = 1024**2


def told(workspace: Any, kind: str, **fields: Any) -> WorkspaceEvent:
    now = datetime.now(UTC).isoformat()
    given = {"cause": kind, "at": now, "last_at": now, "cycle": 1, **fields}
    return WorkspaceEvent(seq=0, workspace_id=workspace["id"], event=kind, **given)


@pytest.fixture
def workspace(agent: PretendAgent, pages_server: RunningTrailer) -> Any:
    """Made, changed, drifted and in a loop of crashes."""
    made = agent.workspace()
    agent.says(told(made, "create", revision=1))
    agent.says_workspace(made, "running", container_id="c" * 64)
    path = f"/workspaces/{made['id']}/"
    pages_server.api("PATCH", path, {"memory_bytes": 96 * MIB})
    change = FieldChange(field="memory_bytes", old=None, new=96 * MIB, effect="replace")
    agent.says(told(made, "replace", revision=2, changes=(change,), cycle=2))
    agent.says(told(made, "heal", cause="paused outside Trailer", revision=2, cycle=3))
    agent.says(
        told(
            made,
            "crashed",
            cause="ended by itself",
            exit=ContainerExit(code=137, signal="SIGKILL", oom=True),
            count=7,
            last_lines="allocating\nallocating more\nbye",
        )
    )
    agent.says_workspace(made, "error", message="It keeps exiting.", restart_count=7)
    return made


def lefts(page: Page, column: str) -> set[int]:
    boxes = [place.bounding_box() for place in page.locator(f".story-entry {column}").all()]
    return {round(box["x"]) for box in boxes if box}


def test_the_story_lines_up_can_be_filtered_and_says_why(
    signed_in: Page, pages_server: RunningTrailer, workspace: Any, page_errors: list[str]
) -> None:
    page = signed_in
    page.goto(f"{pages_server.url}/workspaces/{workspace['id']}/")
    page.get_by_role("link", name="why?").click()
    why = page.locator("#why")
    expect(why).to_contain_text("The container crashed 7 times with code 137 (SIGKILL)")
    expect(page.locator(".story-entry")).to_have_count(4)
    expect(page.locator(".story-entry").nth(2)).to_contain_text(
        "changed memory from no limit to 96 MiB; the container was replaced in"
    )
    problems: list[str] = []
    for width in (390, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        for scheme in THEMES:
            page.emulate_media(color_scheme=scheme)
            problems += serious_violations(page)
            if KEEP_PICTURES:
                save_screenshot(page, f"story-{width}-{scheme}", whole=False)
        for column in (".story-what", ".story-when", ".story-outcome"):
            assert len(lefts(page, column)) == 1
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width
    assert problems == []
    why.get_by_text("Details").click()
    expect(why.get_by_text("allocating more")).to_be_visible()
    page.get_by_label("Kind").select_option("crashed")
    expect(page.locator(".story-entry")).to_have_count(1)
    page.get_by_label("Kind").select_option("")
    page.get_by_label("Outcome").select_option("failed")
    expect(page.get_by_text("Nothing matches")).to_be_visible()
    assert page_errors == []
