"""Live pages: badges, messages, buttons and lists follow what agents report, without a reload."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.sync_api import Page, expect

from tests.browser.conftest import assert_no_errors
from tests.browser.pretend_agent import PretendAgent

if TYPE_CHECKING:
    from playwright.sync_api import Locator

    from tests.ground.server import RunningTrailer


def badge(page: Page, kind: str, thing: dict[str, str]) -> Locator:
    return page.locator(f'[data-resource="{kind}:{thing["id"]}"]')


def mark_page(page: Page) -> None:
    """A reload would lose this."""
    page.evaluate("window.notReloaded = true")


def assert_not_reloaded(page: Page) -> None:
    assert page.evaluate("window.notReloaded === true")


def test_the_badge_message_and_buttons_follow_the_agent(
    signed_in: Page, agent: PretendAgent, page_errors: list[str]
) -> None:
    page = signed_in
    workspace = agent.workspace()
    page.goto(f"{agent.trailer.url}/workspaces/{workspace['id']}/")
    mark_page(page)
    shown = badge(page, "workspace", workspace)
    expect(shown).to_have_text("Deployment pending")

    agent.says_workspace(workspace, "deploying", message="Creating the container")
    expect(shown).to_have_attribute("data-status", "deploying")
    expect(shown).to_have_class("badge badge-blue is-busy")
    message = page.locator(f'[data-message-for="workspace:{workspace["id"]}"]')
    expect(message).to_have_text("Creating the container")
    expect(page.locator('[data-action="redeploy"]')).to_be_disabled()

    agent.says_workspace(workspace, "running", container_id="f" * 64)
    expect(shown).to_have_text("Running")
    expect(message).to_be_hidden()
    expect(page.locator('[data-action="redeploy"]')).to_be_enabled()
    expect(page.locator('[data-action="start"]')).to_be_disabled()
    # What the message does not carry is fetched anew.
    expect(page.get_by_text("f" * 12, exact=True)).to_be_visible()
    assert_not_reloaded(page)
    assert_no_errors(page_errors)


def test_rows_of_others_makes_appear_and_disappear(signed_in: Page, agent: PretendAgent) -> None:
    page = signed_in
    page.goto(f"{agent.trailer.url}/workspaces/?host={agent.host['id']}")
    mark_page(page)
    expect(page.get_by_text("Nothing matches")).to_be_visible()
    workspace = agent.workspace()
    row = page.locator(f'[data-row="workspace:{workspace["id"]}"]')
    expect(row).to_be_visible()
    agent.says_workspace(workspace, "error", message="No space left on the disk.")
    expect(row).to_contain_text("No space left on the disk.")
    assert agent.trailer.api("DELETE", f"/workspaces/{workspace['id']}/").ok
    expect(row).to_have_count(0)
    expect(page.get_by_text("Nothing matches")).to_be_visible()
    assert_not_reloaded(page)


def test_the_dashboard_counts_along(signed_in: Page, agent: PretendAgent) -> None:
    page = signed_in
    workspace = agent.workspace()
    page.goto(agent.trailer.url)
    mark_page(page)
    agent.says_workspace(workspace, "error", message="The port 80 is taken.")
    expect(badge(page, "workspace", workspace)).to_have_text("Error")
    trouble = page.locator(".trouble", has_text=workspace["name"])
    expect(trouble).to_contain_text("The port 80 is taken.")
    agent.says_workspace(workspace, "running")
    expect(trouble).to_have_count(0)
    assert_not_reloaded(page)


def test_a_page_of_something_deleted_leads_back_to_the_list(
    signed_in: Page, agent: PretendAgent
) -> None:
    page = signed_in
    workspace = agent.workspace()
    page.goto(f"{agent.trailer.url}/workspaces/{workspace['id']}/")
    expect(badge(page, "workspace", workspace)).to_be_visible()
    page.wait_for_function("document.querySelector('#offline').hidden")
    agent.says_workspace(workspace, "running")
    expect(badge(page, "workspace", workspace)).to_have_text("Running")
    assert agent.trailer.api("DELETE", f"/workspaces/{workspace['id']}/").ok
    page.wait_for_url(f"{agent.trailer.url}/workspaces/")
    expect(page.locator(".toast")).to_contain_text("deleted")


def test_what_a_silent_host_left_behind_becomes_stale_and_fresh_again(
    signed_in: Page, pages_server: RunningTrailer
) -> None:
    page = signed_in
    agent = PretendAgent(pages_server, heartbeat_interval=1).connect()
    workspace = agent.workspace()
    agent.says_workspace(workspace, "running")
    agent.beat()
    page.goto(f"{pages_server.url}/workspaces/{workspace['id']}/")
    mark_page(page)
    shown = badge(page, "workspace", workspace)
    stale = page.locator(f'[data-stale-for="workspace:{workspace["id"]}"]')
    expect(stale).to_be_visible(timeout=20_000)
    expect(stale).to_contain_text("stale since")
    expect(shown).to_have_text("Running")
    expect(shown).to_have_attribute("data-status", "running")
    agent.beat()
    expect(stale).to_be_hidden()
    assert_not_reloaded(page)


def test_a_lost_server_is_told_and_its_return_needs_no_reload(
    signed_in: Page, pages_server: RunningTrailer
) -> None:
    page = signed_in
    agent = PretendAgent(pages_server).connect()
    workspace = agent.workspace()
    page.goto(f"{pages_server.url}/workspaces/{workspace['id']}/")
    mark_page(page)
    expect(badge(page, "workspace", workspace)).to_have_text("Deployment pending")
    offline = page.locator("#offline")
    expect(offline).to_be_hidden()
    pages_server.stop()
    expect(offline).to_be_visible()
    pages_server.start()
    agent.connect()
    agent.says_workspace(workspace, "running")
    expect(offline).to_be_hidden(timeout=30_000)
    expect(badge(page, "workspace", workspace)).to_have_text("Running")
    assert_not_reloaded(page)
