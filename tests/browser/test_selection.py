"""Several workspaces at once: chosen, acted on, each answering for itself."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playwright.sync_api import Page, Route, expect

if TYPE_CHECKING:
    from tests.browser.pretend_agent import PretendAgent


def test_chosen_rows_are_acted_on_together_and_told_apart(
    signed_in: Page, agent: PretendAgent
) -> None:
    page = signed_in
    image = agent.image()["id"]
    made = [agent.workspace(name=f"bulk-{name}", image=image) for name in ("a", "b", "c")]
    for workspace in made:
        agent.says_workspace(workspace, "running")
    page.goto(f"{agent.trailer.url}/workspaces/?host={agent.host['id']}")
    page.evaluate("window.notReloaded = true")
    bar = page.get_by_role("region", name="Selected workspaces")
    expect(bar).to_be_hidden()
    page.get_by_label("Select bulk-a").check()
    page.get_by_label("Select bulk-b").check()
    expect(bar).to_contain_text("2 selected")

    # The list is redrawn by somebody else's change; the choice stays.
    agent.workspace(name="bulk-later", image=image)
    expect(page.get_by_label("Select bulk-later")).to_be_visible()
    expect(page.get_by_label("Select bulk-b")).to_be_checked()

    def refuse(route: Route) -> None:
        route.fulfill(status=409, json={"code": "conflict", "message": "It is busy. Wait."})

    page.route(f"**/api/v1/workspaces/{made[1]['id']}/stop/", refuse)
    bar.get_by_role("button", name="Stop").click()
    expect(page.locator(".toast", has_text="bulk-a will be stopped.")).to_be_visible()
    expect(page.locator(".toast-error")).to_contain_text("bulk-b: It is busy. Wait.")
    shown = page.locator(f'[data-resource="workspace:{made[0]["id"]}"]')
    expect(shown).to_have_text("Stopping")
    assert agent.read(f"/workspaces/{made[0]['id']}/")["desired_state"] == "stopped"
    assert agent.read(f"/workspaces/{made[1]['id']}/")["desired_state"] == "running"
    expect(bar).to_contain_text("1 selected")

    page.get_by_label("Select all on this page").check()
    expect(bar).to_contain_text("4 selected")
    bar.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog", name="Delete 4 workspaces?")
    expect(dialog.get_by_role("button", name="Delete")).to_be_disabled()
    dialog.get_by_role("textbox").fill("delete 4")
    dialog.get_by_role("button", name="Delete").click()
    # On a server with other hosts' workspaces the filter matches nothing; without, there are none.
    expect(page.get_by_text(re.compile("Nothing matches|No workspaces yet"))).to_be_visible()
    assert agent.read(f"/workspaces/?host={agent.host['id']}")["count"] == 0
    assert page.evaluate("window.notReloaded")


def test_the_list_is_ordered_in_place_and_a_change_touches_one_row(
    signed_in: Page, agent: PretendAgent
) -> None:
    page = signed_in
    image = agent.image()["id"]
    first = agent.workspace(name="order-a", image=image)
    other = agent.workspace(name="order-b", image=image)
    for workspace in (first, other):
        agent.says_workspace(workspace, "running")
    page.goto(f"{agent.trailer.url}/workspaces/?host={agent.host['id']}")
    page.evaluate("window.notReloaded = true")
    names = page.locator("[data-row] .cell-name a")
    expect(names).to_have_text(["order-a", "order-b"])
    heading = page.get_by_role("columnheader", name="Name")
    heading.get_by_role("link").click()
    expect(heading).to_have_attribute("aria-sort", "ascending")
    heading.get_by_role("link").click()
    expect(heading).to_have_attribute("aria-sort", "descending")
    expect(names).to_have_text(["order-b", "order-a"])
    # The address changes before the rows do, and these rows stay the same: wait for their swap.
    page.evaluate("""
      void (window.searched = new Promise((done) => document.addEventListener("htmx:afterSettle",
        ({detail}) => detail.pathInfo?.finalRequestPath.includes("search=order") && done(true))));
    """)
    page.get_by_label("Search workspaces").fill("order")
    assert page.evaluate("() => window.searched") is True
    page.wait_for_url("**search=order**")
    expect(names).to_have_text(["order-b", "order-a"])

    page.evaluate("""
      window.touched = new Set();
      new MutationObserver((changes) => changes.forEach((change) => {
        const at = change.target.nodeType === 1 ? change.target : change.target.parentElement;
        touched.add(at?.closest("[data-row]")?.dataset.row ?? "outside");
      })).observe(document.querySelector("#rows"), {subtree: true, childList: true,
        attributes: true, characterData: true});
    """)
    agent.says_workspace(first, "error", message="The port is taken.")
    expect(page.locator(f'[data-row="workspace:{first["id"]}"]')).to_contain_text("port is taken")
    assert page.evaluate("[...touched]") == [f"workspace:{first['id']}"]
    assert page.evaluate("window.notReloaded")
