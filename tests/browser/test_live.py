"""Live pages: badges, messages, buttons and lists follow what agents report, without a reload."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Page, WebSocketRoute, expect

from tests.browser.pretend_agent import PretendAgent
from tests.browser.server_rows import workspaces_like
from tests.ground.wait import eventually

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


def starting(page: Page, agent: PretendAgent) -> tuple[dict[str, str], Locator]:
    """A workspace on its page, which is live: it follows."""
    workspace = agent.workspace()
    page.goto(f"{agent.trailer.url}/workspaces/{workspace['id']}/")
    agent.says_workspace(workspace, "starting")
    shown = badge(page, "workspace", workspace)
    expect(shown).to_have_text("Starting")
    return workspace, shown


def test_a_change_in_the_moment_in_which_facts_are_drawn_is_drawn_too(
    signed_in: Page, agent: PretendAgent
) -> None:
    page = signed_in
    workspace, shown = starting(page, agent)
    # What htmx has put in hears nothing before it is settled; that moment is longer here.
    page.evaluate("htmx.config.defaultSettleDelay = 1500")
    agent.says_workspace(workspace, "deploying")
    page.locator("[data-follows].htmx-added [data-usage]").first.wait_for(state="attached")
    agent.says_workspace(workspace, "running", container_id="f" * 64)
    expect(shown).to_have_text("Running")
    expect(page.get_by_text("f" * 12, exact=True)).to_be_visible()


def test_facts_that_could_not_be_fetched_are_fetched_again(
    signed_in: Page, agent: PretendAgent
) -> None:
    page = signed_in
    workspace, shown = starting(page, agent)
    page.route("**/*part=facts", lambda route: route.fulfill(status=502))
    with page.expect_response("**/*part=facts"):
        agent.says_workspace(workspace, "running", container_id="f" * 64)
    expect(shown).to_have_text("Running")
    page.unroute("**/*part=facts")
    expect(page.get_by_text("f" * 12, exact=True)).to_be_visible()


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
    assert page_errors == []


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
    # The machine's network went and came while the socket lived on.
    page.evaluate("dispatchEvent(new Event('offline'))")
    expect(offline).to_be_visible()
    page.evaluate("dispatchEvent(new Event('online'))")
    expect(offline).to_be_hidden()
    pages_server.stop()
    expect(offline).to_be_visible()
    page.get_by_role("tab", name="Events").click()
    expect(page.locator(".toast-error")).to_contain_text("The server does not answer.")
    expect(page.get_by_role("tab", name="Overview")).to_have_attribute("aria-selected", "true")
    assert "tab=events" not in page.url
    pages_server.start()
    agent.connect()
    agent.says_workspace(workspace, "running")
    expect(offline).to_be_hidden(timeout=30_000)
    expect(badge(page, "workspace", workspace)).to_have_text("Running")
    assert_not_reloaded(page)


def test_a_socket_that_is_dead_without_knowing_it_is_replaced(
    with_own_clock: Page, agent: PretendAgent
) -> None:
    page = with_own_clock
    opened: list[WebSocketRoute] = []
    lost: list[str | bytes] = []

    def lose(message: str | bytes) -> None:
        lost.append(message)

    def carry(socket: WebSocketRoute) -> None:
        opened.append(socket)
        server = socket.connect_to_server()
        if len(opened) == 1:
            # As after a laptop's sleep: nothing more arrives, on either side.
            server.on_message(lambda message: None)
            socket.on_message(lose)

    page.route_web_socket("**/ws/live/", carry)
    page.clock.install()
    workspace = agent.workspace()
    page.goto(f"{agent.trailer.url}/workspaces/{workspace['id']}/")
    agent.says_workspace(workspace, "running")
    # Only a socket that is open can fall silent; asking the page lets its events come in.
    eventually(lambda: page.evaluate("true") and lost, 15, "the page opened no socket")
    page.clock.fast_forward(60_000)
    page.clock.fast_forward(60_000)
    expect(badge(page, "workspace", workspace)).to_have_text("Running")
    assert len(opened) == 2


def test_changes_of_what_a_list_does_not_show_leave_the_list_alone(
    with_own_clock: Page, agent: PretendAgent
) -> None:
    page = with_own_clock
    opened: list[WebSocketRoute] = []

    def carry(socket: WebSocketRoute) -> None:
        opened.append(socket)
        socket.connect_to_server()

    page.route_web_socket("**/ws/live/", carry)
    fetched: list[str] = []
    page.on("request", lambda request: fetched.append(request.url))
    workspace = agent.workspace()
    page.clock.install()
    page.goto(agent.trailer.url)
    row = page.locator(f'[data-row="workspace:{workspace["id"]}"]')
    row.evaluate("row => row.setAttribute('data-same', '')")

    # What is on the page changes alone, in place.
    agent.says_workspace(workspace, "running")
    expect(badge(page, "workspace", workspace)).to_have_text("Running")
    page.clock.fast_forward(5_000)
    expect(page.locator(f'[data-same][data-row="workspace:{workspace["id"]}"]')).to_be_visible()
    assert not any("part=workspaces" in url for url in fetched)

    # Half a minute of a busy fleet, most of which is on other pages.
    for second in range(30):
        for number in range(20):
            state = {"resource": f"workspace:{uuid.UUID(int=number)}", "status": f"s{second}"}
            opened[-1].send(json.dumps(state | {"allowed_actions": [], "revision": 1}))
        page.clock.run_for(1_000)
        expect(page.locator(".htmx-request")).to_have_count(0)
        page.clock.run_for(100)
    lists = [url for url in fetched if "part=workspaces" in url]
    assert 1 <= len(lists) <= 8, f"the list was fetched {len(lists)} times"


# Rows of any list that a change touched, by what they show.
WATCH_ROWS = """() => {
  window.touched = new Set();
  const row = (node) => node.parentElement?.closest("[data-row]") ?? null;
  const all = { attributes: true, characterData: true, childList: true, subtree: true };
  new MutationObserver((records) => {
    // Clocks go on by themselves.
    const changes = records.filter(({ target }) => !target.closest?.("time"));
    for (const { target, addedNodes, removedNodes } of changes) {
      const inside = [...addedNodes, ...removedNodes].filter((node) => node.querySelectorAll);
      const rows = inside.flatMap((node) => [...node.querySelectorAll("[data-row]"), node]);
      const own = target.closest?.("[data-row]") ?? row(target);
      for (const one of [own, ...rows.filter((node) => node.matches("[data-row]"))]) {
        one?.dataset.row.startsWith("workspace:") && window.touched.add(one.dataset.row);
      }
    }
  }).observe(document.body, all);
}"""


@pytest.mark.parametrize("address", ["/", "/workspaces/"])
def test_among_500_workspaces_one_change_touches_one_row(
    address: str, signed_in: Page, agent: PretendAgent
) -> None:
    page, first = signed_in, agent.workspace()
    told: list[str | bytes] = []

    def hear(frame: str | bytes) -> None:
        told.append(frame)

    page.on("websocket", lambda socket: socket.on("framereceived", hear))
    with workspaces_like(agent.trailer, first, 499):
        page.goto(agent.trailer.url + address)
        rows = page.locator('[data-row^="workspace:"]')
        resource = rows.filter(has_text="many-").nth(2).get_attribute("data-row") or ""
        shown = page.locator(f'[data-row="{resource}"] [data-resource="{resource}"]')
        # The first word about each row is no change.
        eventually(lambda: _all_told(page, told), 30, "the page did not hear of all its rows")
        before = rows.count()
        page.evaluate("document.querySelector('.figures')?.setAttribute('data-old', '')")
        page.evaluate(WATCH_ROWS)
        agent.says_workspace({"id": resource.split(":")[1]}, "error", message="It ended.")
        expect(shown).to_have_text("Error")
        if address == "/":
            # Figures stand elsewhere; they are drawn after the row.
            expect(page.locator(".figures[data-old]")).to_have_count(0)
        expect(page.locator(".htmx-request")).to_have_count(0)
        assert rows.count() == before >= 15
        assert page.evaluate("[...window.touched]") == [resource]


def _all_told(page: Page, frames: list[str | bytes]) -> bool:
    rows = page.evaluate(
        """() => [...document.querySelectorAll('[data-row^="workspace:"]')]
          .map((row) => row.dataset.row)"""
    )
    return set(rows) <= {json.loads(frame).get("resource") for frame in frames}
