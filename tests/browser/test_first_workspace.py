"""The whole product in a real browser on a real engine: from nothing to a running workspace."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from playwright.sync_api import Page, expect

from tests.ground.images import BUSYBOX
from tests.ground.wait import eventually

if TYPE_CHECKING:
    import docker
    from playwright.sync_api import Locator

    from tests.ground.server import RunningTrailer


SAYS_HELLO = 'echo "hello $GREETING"; trap "exit 0" TERM; while true; do sleep 1 & wait; done'


def change_with_preview(page: Page, badge: Locator) -> None:
    """An edit that replaces the container, told before it is saved and recorded after."""
    page.get_by_role("tab", name="Settings").click()
    page.get_by_role("button", name="Add variable").click()
    page.locator("[name=env_name]").last.fill("GREETING")
    page.locator("[name=env_value]").last.fill("reader")
    plan = page.locator("[data-plan-words]")
    expect(plan).to_contain_text("Saving replaces the container, with a brief interruption.")
    expect(plan.locator(".change")).to_contain_text("GREETING")
    page.get_by_role("button", name="Save changes").click()
    expect(page.locator(".toast", has_text="Saved.")).to_be_visible()
    page.get_by_role("tab", name="Events").click()
    replaced = page.locator(".story-entry", has_text="the container was replaced")
    expect(replaced.first).to_contain_text("GREETING", timeout=60_000)
    expect(badge).to_have_text("Running", timeout=60_000)


def read_and_type(page: Page) -> None:
    """What the container printed, and a shell in it that follows the window."""
    page.get_by_role("tab", name="Logs").click()
    log = page.locator("[data-log^='workspace:'] [data-log-text]")
    expect(log).to_contain_text("hello reader", timeout=30_000)
    page.get_by_role("tab", name="Terminal").click()
    terminal = page.locator("[data-terminal]")
    rows = terminal.locator(".xterm-rows")
    expect(terminal.locator("[data-terminal-state]")).to_have_text("connected", timeout=30_000)
    page.keyboard.type("echo answer=$((6*7))\n")
    expect(rows).to_contain_text("answer=42")
    page.keyboard.type("stty size\n")
    expect(rows).to_contain_text(re.compile(r"\d+ 1\d\d"))
    page.set_viewport_size({"width": 800, "height": 700})
    page.keyboard.type("clear; stty size\n")
    expect(rows).to_contain_text(re.compile(r"\d+ [5-9]\d\D"))
    page.set_viewport_size({"width": 1440, "height": 900})


def reload_and_return(page: Page) -> None:
    """The same shell, with what its screen showed."""
    terminal = page.locator("[data-terminal]")
    rows = terminal.locator(".xterm-rows")
    page.keyboard.type("clear; echo shell=$$.\n")
    expect(rows).to_contain_text(re.compile(r"shell=\d+\."))
    [shell] = re.findall(r"shell=(\d+)\.", rows.inner_text())
    page.reload()
    expect(rows).to_contain_text(f"shell={shell}.", timeout=30_000)
    expect(terminal.locator("[data-terminal-state]")).to_have_text("connected")
    terminal.locator(".xterm").click()
    page.keyboard.type("echo still=$$.\n")
    expect(rows).to_contain_text(f"still={shell}.")
    page.keyboard.type("exit 3\n")
    expect(terminal.get_by_role("alert")).to_contain_text("ended with exit code 3")
    terminal.get_by_label("What to open").select_option("attach")
    expect(terminal.locator("[data-terminal-state]")).to_have_text("connected")
    expect(terminal.get_by_label("Terminal input")).to_be_focused()


def test_a_new_user_watches_the_first_workspace_come_to_life(
    on_engine: Page, trailer: RunningTrailer, engine_docker: docker.DockerClient
) -> None:
    page, client = on_engine, engine_docker
    expect(page.get_by_text("First steps")).to_be_visible()
    expect(page.locator('[data-resource^="host:"]')).to_have_text("Online", timeout=30_000)
    page.get_by_role("link", name="New workspace").first.click()
    page.get_by_label("Name", exact=True).fill("hello")
    page.get_by_label("Image reference").fill(BUSYBOX)
    page.get_by_label("Command").fill(json.dumps(["sh", "-c", SAYS_HELLO]))
    page.get_by_role("button", name="Create workspace").click()
    page.wait_for_url(re.compile(r"/workspaces/[0-9a-f-]{36}/$"))
    page.evaluate("window.notReloaded = true")
    badge = page.locator('[data-resource^="workspace:"]')
    expect(badge).to_have_text("Running", timeout=60_000)
    container = client.containers.get("trailer-hello")
    assert container.status == "running"
    expect(page.get_by_text(container.short_id[:12], exact=True)).to_be_visible()

    page.locator('[data-action="stop"]').click()
    expect(badge).to_have_text("Stopped", timeout=60_000)
    page.locator('[data-action="start"]').click()
    expect(badge).to_have_text("Running", timeout=60_000)
    change_with_preview(page, badge)
    assert client.containers.get("trailer-hello").id != container.id
    read_and_type(page)
    assert page.evaluate("window.notReloaded")
    reload_and_return(page)

    page.get_by_role("tab", name="Danger zone").click()
    page.locator('[data-action="delete"]').click()
    page.get_by_role("dialog").get_by_role("textbox").fill("hello")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.wait_for_url(f"{trailer.url}/workspaces/")
    expect(page.get_by_text("No workspaces yet")).to_be_visible()
    eventually(
        lambda: (
            not client.containers.list(
                all=True, ignore_removed=True, filters={"name": "trailer-hello"}
            )
        ),
        30,
        "the container of the deleted workspace is still there",
    )
