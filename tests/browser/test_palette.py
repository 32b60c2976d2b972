"""The command palette: opened, steered and used with the keyboard alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.sync_api import Page, expect

from tests.browser.conftest import assert_no_errors

if TYPE_CHECKING:
    from tests.browser.pretend_agent import PretendAgent


def test_the_palette_finds_goes_and_acts_without_a_mouse(
    signed_in: Page, agent: PretendAgent, page_errors: list[str]
) -> None:
    page = signed_in
    workspace = agent.workspace(name="palette-one")
    agent.workspace(name="palette-two", image=workspace["image"])
    agent.says_workspace(workspace, "running")
    palette = page.get_by_role("dialog", name="Search everything")
    box = palette.get_by_role("combobox")
    chosen = palette.locator('[role="option"][aria-selected="true"]')

    page.keyboard.press("/")
    expect(box).to_be_focused()
    expect(palette.get_by_role("option", name="New workspace")).to_be_visible()
    page.keyboard.press("Escape")
    expect(palette).to_be_hidden()

    page.keyboard.press("Control+k")
    page.keyboard.type("palette")
    expect(palette.get_by_role("option", name="palette-two").first).to_be_visible()
    expect(chosen).to_contain_text("palette-one")
    page.keyboard.press("ArrowDown")
    expect(chosen).to_contain_text("palette-two")
    assert box.get_attribute("aria-activedescendant") == chosen.get_attribute("id")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{agent.trailer.url}/workspaces/{workspace['id']}/")

    page.evaluate("window.notReloaded = true")
    page.keyboard.press("Control+k")
    page.keyboard.type("stop palette-one")
    expect(chosen).to_contain_text("Stop palette-one")
    page.keyboard.press("Enter")
    expect(page.locator(".toast")).to_contain_text("Stop palette-one: requested.")
    shown = page.locator(f'[data-resource="workspace:{workspace["id"]}"]')
    expect(shown).to_have_text("Stopping")
    assert agent.read(f"/workspaces/{workspace['id']}/")["desired_state"] == "stopped"
    assert page.evaluate("window.notReloaded")

    _leaves_fields_alone(page, agent, workspace["id"])
    assert_no_errors([text for text in page_errors if "/ws/workspaces/" not in text])


def _leaves_fields_alone(page: Page, agent: PretendAgent, workspace_id: str) -> None:
    palette = page.get_by_role("dialog", name="Search everything")
    page.keyboard.press("Control+k")
    page.keyboard.type("logs palette-one")
    chosen = palette.locator('[role="option"][aria-selected="true"]')
    expect(chosen).to_contain_text("Logs of palette-one")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{agent.trailer.url}/workspaces/{workspace_id}/?tab=logs")
    page.get_by_label("Search the logs").focus()
    page.keyboard.type("/")
    expect(palette).to_be_hidden()
    page.keyboard.press("Control+k")
    page.keyboard.type("zzz-nothing")
    expect(palette).to_contain_text("Nothing fits")
