"""Registry credentials by hand: added, tried on a host, changed and tried again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playwright.sync_api import Page, Route, expect

if TYPE_CHECKING:
    from tests.browser.pretend_agent import PretendAgent


def test_a_credential_is_added_tried_changed_and_tried_again(
    signed_in: Page, agent: PretendAgent, page_errors: list[str]
) -> None:
    page, server = signed_in, f"{agent.host['name']}.example.com"
    page.goto(f"{agent.trailer.url}/registries/")
    page.get_by_role("button", name="Add credential").first.click()
    dialog = page.get_by_role("dialog", name="Add a registry credential")
    dialog.get_by_label("Server").fill(server)
    dialog.get_by_label("Username").fill("robot")
    dialog.get_by_label("Password or token").fill("guess")
    dialog.get_by_role("button", name="Add credential").click()
    row = page.locator("tr", has_text=server)
    badge = row.locator('[data-resource^="registry:"]')
    expect(badge).to_have_text("Not tested")

    try_it(page, agent, server)
    expect(badge).to_have_text("Testing")
    expect(row).to_contain_text(f"Host {agent.host['name']} signs in.")
    expect(row.locator('[data-action="test"]')).to_be_disabled()
    agent.says_registry(wished(agent, server)["id"], accepted=False, message="It said no.")
    expect(badge).to_have_text("Failed")
    expect(row).to_contain_text(f"It said no. (Tried by host {agent.host['name']}.)")

    row.get_by_role("button", name="Change").click()
    dialog = page.get_by_role("dialog", name=f"Change robot@{server}")
    save = dialog.get_by_role("button", name="Save changes")
    expect(save).to_be_disabled()
    dialog.get_by_label("New password or token").fill("right")
    save.click()
    expect(dialog).to_be_hidden()
    expect(badge).to_have_text("Not tested")
    try_it(page, agent, server)
    expect(row).to_contain_text("signs in.")
    wish = wished(agent, server)
    assert (wish["credential"]["username"], wish["credential"]["password"]) == ("robot", "right")
    agent.says_registry(wish["id"], accepted=True)
    expect(badge).to_have_text("Accepted")
    expect(row).to_contain_text(f"Host {agent.host['name']} signed in.")
    assert page_errors == []


def try_it(page: Page, agent: PretendAgent, server: str) -> None:
    """With several hosts the page asks which; other tests leave theirs behind."""
    page.locator("tr", has_text=server).get_by_role("button", name="Test").click()
    dialog = page.get_by_role("dialog", name=f"Test robot@{server}")
    if page.locator("dialog[open]").count():
        dialog.get_by_label("Host").select_option(agent.host["id"])
        dialog.get_by_role("button", name="Test", exact=True).click()
        expect(dialog).to_be_hidden()


def wished(agent: PretendAgent, server: str) -> Any:
    [found] = [
        wish for wish in agent.state()["registry_tests"] if wish["credential"]["server"] == server
    ]
    return found


def test_a_dialog_that_opens_while_the_list_is_drawn_anew_stays(
    signed_in: Page, agent: PretendAgent
) -> None:
    page, server = signed_in, f"late-{agent.host['name']}.example.com"
    body = {"server": server, "username": "robot", "password": "guess"}
    assert agent.trailer.api("POST", "/registries/", body).ok
    page.goto(f"{agent.trailer.url}/registries/")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/registries/?part=rows*", hold)
    page.locator("#rows").dispatch_event("trailer:refresh")
    page.locator("tr", has_text=server).get_by_role("button", name="Change").click()
    dialog = page.get_by_role("dialog", name=f"Change robot@{server}")
    expect(dialog).to_be_visible()
    with page.expect_response("**/registries/?part=rows*"):
        held[0].continue_()
    page.wait_for_function("() => !document.querySelector('#rows.htmx-request')")
    expect(dialog).to_be_visible()
    # Then it is drawn after all.
    with page.expect_request("**/registries/?part=rows*"):
        page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
