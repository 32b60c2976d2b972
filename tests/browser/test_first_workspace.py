"""The whole product in a real browser on a real engine: from nothing to a running workspace."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from playwright.sync_api import Page, expect

from tests.browser.conftest import sign_in
from tests.ground.images import BUSYBOX, RUN_UNTIL_STOPPED
from tests.ground.wait import eventually

if TYPE_CHECKING:
    import docker

    from tests.ground.server import RunningTrailer


def test_a_new_user_watches_the_first_workspace_come_to_life(
    page: Page, running_trailer: RunningTrailer, engine_client: docker.DockerClient
) -> None:
    sign_in(page, running_trailer)
    expect(page.get_by_text("First steps")).to_be_visible()
    expect(page.locator('[data-resource^="host:"]')).to_have_text("Online", timeout=30_000)
    page.get_by_role("link", name="New workspace").first.click()
    page.get_by_label("Name", exact=True).fill("hello")
    page.get_by_label("Image reference").fill(BUSYBOX)
    page.get_by_label("Command").fill(json.dumps(RUN_UNTIL_STOPPED))
    page.get_by_role("button", name="Create workspace").click()
    page.wait_for_url(re.compile(r"/workspaces/[0-9a-f-]{36}/$"))
    page.evaluate("window.notReloaded = true")
    badge = page.locator('[data-resource^="workspace:"]')
    expect(badge).to_have_text("Running", timeout=60_000)
    container = engine_client.containers.get("trailer-hello")
    assert container.status == "running"
    expect(page.get_by_text(container.short_id[:12], exact=True)).to_be_visible()

    page.locator('[data-action="stop"]').click()
    expect(badge).to_have_text("Stopped", timeout=60_000)
    page.locator('[data-action="start"]').click()
    expect(badge).to_have_text("Running", timeout=60_000)
    assert page.evaluate("window.notReloaded")

    page.get_by_role("tab", name="Settings").click()
    page.locator('[data-action="delete"]').click()
    page.get_by_role("dialog").get_by_role("textbox").fill("hello")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.wait_for_url(f"{running_trailer.url}/workspaces/")
    expect(page.get_by_text("No workspaces yet")).to_be_visible()
    eventually(
        lambda: not engine_client.containers.list(all=True, filters={"name": "trailer-hello"}),
        30,
        "the container of the deleted workspace is still there",
    )
