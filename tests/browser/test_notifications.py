"""Notifications of the browser: only for who asked, only of news, only while nobody looks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.sync_api import Page, expect

if TYPE_CHECKING:
    from tests.browser.pretend_agent import PretendAgent

# The browser's own would appear outside of the page.
RECORDER = """
  window.notes = [];
  window.Notification = class extends EventTarget {
    static permission = "default";
    static async requestPermission() { Notification.permission = "granted"; return "granted"; }
    constructor(title, options) { super(); notes.push([title, options.body]); }
  };
"""


def test_failures_and_finished_builds_are_told_to_who_asked(
    signed_in: Page, agent: PretendAgent
) -> None:
    page = signed_in
    page.add_init_script(RECORDER)
    workspace = agent.workspace()
    agent.says_workspace(workspace, "running")
    image = agent.image(name="told-image")
    # Neither is on this page.
    page.goto(f"{agent.trailer.url}/volumes/")
    switch = page.get_by_role("switch", name="Notifications")
    page.get_by_label("Account of admin").click()
    expect(switch).not_to_be_checked()
    switch.click()
    expect(page.locator(".toast")).to_contain_text("You will be told")
    expect(switch).to_be_checked()

    page.evaluate("""
      Object.defineProperty(document, "visibilityState", {value: "hidden", configurable: true})
    """)
    agent.says_build(image, "building")
    agent.says_build(image, "finished")
    page.wait_for_function("() => notes.length === 1")
    agent.says_workspace(workspace, "error", message="The disk is full.")
    page.wait_for_function("() => notes.length === 2")
    assert page.evaluate("notes") == [
        ["told-image is ready", ""],
        [f"{workspace['name']} has failed", "The disk is full."],
    ]

    page.evaluate("delete document.visibilityState")
    agent.says_workspace(workspace, "running")
    agent.says_workspace(workspace, "error", message="Once more.")
    page.goto(f"{agent.trailer.url}/workspaces/{workspace['id']}/")
    expect(page.get_by_text("Once more.", exact=True)).to_be_visible()
    assert page.evaluate("notes") == []
