"""The command palette and answers that come late; in use it is in test_on_an_engine.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.sync_api import Page, Route, expect

if TYPE_CHECKING:
    from tests.browser.pretend_agent import PretendAgent


def test_an_answer_that_comes_late_leaves_the_choice_where_it_is(
    dashboard: Page, agent: PretendAgent, page_errors: list[str]
) -> None:
    page = dashboard
    workspace = agent.workspace(name="tardy-one")
    agent.workspace(name="tardy-two", image=workspace["image"])
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/search/?q=tardy-", hold)
    palette = page.get_by_role("dialog", name="Search everything")
    chosen = palette.locator('[role="option"][aria-selected="true"]')

    page.keyboard.press("Control+k")
    page.keyboard.type("tardy")
    expect(chosen).to_contain_text("tardy-one")
    with page.expect_request("**/search/?q=tardy-"):
        page.keyboard.type("-")
    page.keyboard.press("ArrowDown")
    expect(chosen).to_contain_text("tardy-two")
    chosen.evaluate("row => row.classList.add('older')")
    held[0].continue_()
    expect(palette.locator(".older")).to_have_count(0)
    expect(chosen).to_contain_text("tardy-two")
    page.keyboard.press("Escape")

    # Enter means what is typed, not what was found for the letters before.
    with page.expect_request("**/search/?q=tardy"):
        page.keyboard.press("Control+k")
        page.keyboard.type("tardy")
    expect(chosen).to_contain_text("tardy-one")
    with page.expect_request("**/search/?q=tardy-"):
        page.keyboard.type("-")
    page.keyboard.type("two")
    page.keyboard.press("Enter")
    page.wait_for_url("**/workspaces/*/")
    expect(page.get_by_role("heading", level=1)).to_have_text("tardy-two")

    assert page_errors == []
    _let_an_error_come_late(page)


def _let_an_error_come_late(page: Page) -> None:
    """It is no answer to what is typed now."""
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/search/?q=tardy-", hold)
    chosen = page.get_by_role("dialog").locator('[role="option"][aria-selected="true"]')
    with page.expect_request("**/search/?q=tardy-"):
        page.keyboard.press("Control+k")
        page.keyboard.type("tardy-")
    page.keyboard.type("two")
    expect(chosen).to_contain_text("tardy-two")
    with page.expect_response("**/search/?q=tardy-"):
        held[-1].fulfill(status=503, json={"message": "Too late."})
    expect(chosen).to_contain_text("tardy-two")
