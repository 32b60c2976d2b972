"""Users, profile, audit and the access tab, by hand."""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING, Any

from playwright.sync_api import Page, expect

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.browser.pretend_agent import PretendAgent
    from tests.ground.server import RunningTrailer

PASSWORD = "a long enough secret"
LONG = "a-person-with-a-name-that-is-far-too-long-for-any-column-of-any-table"


def _name(noun: str) -> str:
    return f"{noun}-{uuid.uuid4().hex[:6]}"


def _user(server: RunningTrailer, name: str = "", **fields: Any) -> Any:
    body = {"username": name or _name("user"), "password": PASSWORD, **fields}
    answer = server.api("POST", "/users/", body)
    assert answer.ok, answer.text
    return answer.json()


def _signed_in(browser: Browser, server: RunningTrailer, username: str) -> Page:
    page = browser.new_context().new_page()
    page.goto(f"{server.url}/login/")
    page.get_by_label("Username").fill(username)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{server.url}/")
    return page


def test_users_and_groups_are_made_changed_switched_off_and_deleted(
    dashboard: Page, pages_server: RunningTrailer, page_errors: list[str]
) -> None:
    page, name, team = dashboard, _name("eva"), _name("team")
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Users").click()
    page.get_by_role("button", name="New group").click()
    page.get_by_role("dialog").locator("[name=name]").fill(team)
    page.get_by_role("dialog").get_by_role("button", name="Add group").click()
    expect(page.locator("#groups")).to_contain_text(team)

    page.get_by_role("button", name="New user").click()
    dialog = page.get_by_role("dialog", name="New user")
    dialog.locator("[name=username]").fill(name)
    dialog.locator("[name=password]").fill("123")
    dialog.get_by_role("button", name="Add user").click()
    expect(dialog.locator("[name=password]")).to_have_attribute("aria-invalid", "true")
    dialog.locator("[name=password]").fill(PASSWORD)
    dialog.get_by_label(team).check()
    dialog.get_by_role("button", name="Add user").click()
    expect(dialog).to_be_hidden()
    [user] = pages_server.api("GET", f"/users/?username={name}").json()["results"]
    assert (user["groups"], user["is_active"], user["is_admin"]) == ([team], True, False)

    row = page.locator(f'[data-row="user:{user["id"]}"]')
    row.get_by_role("button", name=f"Edit {name}").click()
    dialog = page.get_by_role("dialog", name=f"Edit {name}")
    expect(dialog.get_by_label(team)).to_be_checked()
    dialog.locator("[name=email]").fill("eva@example.com")
    dialog.get_by_role("button", name="Save changes").click()
    expect(row).to_contain_text("eva@example.com")

    row.get_by_role("button", name=f"Deactivate {name}").click()
    page.get_by_role("dialog").get_by_role("button", name="Deactivate").click()
    expect(row).to_contain_text("Deactivated")
    row.get_by_role("button", name=f"Delete {name}").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(row).to_have_count(0)
    assert pages_server.api("GET", f"/users/?username={name}").json()["count"] == 0
    # The refused password was answered with 400, which browsers call an error.
    assert [text for text in page_errors if "400" not in text] == []


def test_a_token_is_shown_once_and_a_password_changed(
    browser: Browser, pages_server: RunningTrailer
) -> None:
    user = _user(pages_server)
    page = _signed_in(browser, pages_server, user["username"])
    other = _signed_in(browser, pages_server, user["username"])
    page.get_by_label(f"Account of {user['username']}").click()
    page.get_by_role("link", name="Profile and tokens").click()
    expect(page.locator("#sessions [data-row]")).to_have_count(2)

    page.get_by_role("button", name="New token").first.click()
    form = page.get_by_role("dialog", name="New token")
    form.get_by_role("button", name="Make token").click()
    expect(form.locator("[name=name]")).to_have_attribute("aria-invalid", "true")
    form.locator("[name=name]").fill("nightly build")
    form.locator("[name=scope]").select_option("read")
    assert form.locator("[name=scope] option").count() == 2
    form.get_by_role("button", name="Make token").click()
    expect(page.locator("[data-token-key]")).not_to_be_empty()
    key = page.locator("[data-token-key]").text_content() or ""
    assert pages_server.api("GET", "/workspaces/", token=key).status_code == 200
    assert pages_server.api("POST", "/networks/", {}, token=key).status_code == 403
    page.get_by_role("dialog").get_by_role("button", name="Done").click()
    expect(page.locator("[data-token-key]")).to_be_empty()
    assert key not in page.content()
    row = page.locator("#tokens [data-row]", has_text="nightly build")
    expect(row).to_contain_text("Read")
    row.get_by_role("button", name="Revoke nightly build").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(row).to_have_count(0)
    assert pages_server.api("GET", "/workspaces/", token=key).status_code == 401

    form = page.locator("form[data-api='/api/v1/me/password/']")
    form.locator("[name=current_password]").fill("wrong")
    page.locator("[name=password]").fill("another long secret")
    page.get_by_role("button", name="Change password").click()
    expect(form.locator("[name=current_password]")).to_have_attribute("aria-invalid", "true")
    form.locator("[name=current_password]").fill(PASSWORD)
    page.get_by_role("button", name="Change password").click()
    expect(page.locator(".toast").last).to_contain_text("Your password was changed.")
    expect(page.locator("#sessions [data-row]")).to_have_count(1)
    other.goto(f"{pages_server.url}/hosts/")
    other.wait_for_url(re.compile("/login/"))
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text(user["username"])
    page.context.close()
    other.context.close()


def test_ones_own_mail_address_is_changed_with_the_password(
    browser: Browser, pages_server: RunningTrailer
) -> None:
    user = _user(pages_server)
    page = _signed_in(browser, pages_server, user["username"])
    page.goto(f"{pages_server.url}/profile/")
    form = page.locator("form[data-api='/api/v1/me/']")
    mail, password = form.locator("[name=email]"), form.locator("[name=current_password]")
    save = form.get_by_role("button", name="Save")
    expect(save).to_be_disabled()
    mail.fill("one@example.com")
    save.click()
    expect(password).to_have_attribute("aria-invalid", "true")
    # More than once: each change asks for the password anew.
    for address in ("one@example.com", "two@example.com"):
        mail.fill(address)
        password.fill(PASSWORD)
        save.click()
        expect(save).to_be_disabled()
        expect(password).to_have_value("")
        assert pages_server.api("GET", f"/users/{user['id']}/").json()["email"] == address
    mail.fill("no address")
    password.fill(PASSWORD)
    save.click()
    expect(mail).to_have_attribute("aria-invalid", "true")
    page.reload()
    expect(mail).to_have_value("two@example.com")
    page.context.close()


def test_a_workspace_is_shared_from_its_access_tab_and_seen_by_the_other(
    browser: Browser, signed_in: Page, agent: PretendAgent
) -> None:
    server, page = agent.trailer, signed_in
    user = _user(server)
    workspace = agent.workspace()
    other = _signed_in(browser, server, user["username"])
    other.goto(f"{server.url}/workspaces/")
    row = other.locator(f'[data-row="workspace:{workspace["id"]}"]')
    expect(row).to_have_count(0)

    page.goto(f"{server.url}/workspaces/{workspace['id']}/?tab=access")
    page.get_by_role("button", name="Add person or group").click()
    page.locator("[name=user]:visible").fill("nobody-of-this-name")
    page.get_by_role("button", name="Save access").click()
    expect(page.locator("[name=user]:visible")).to_have_attribute("aria-invalid", "true")
    page.locator("[name=user]:visible").fill(user["username"])
    page.get_by_role("button", name="Save access").click()
    expect(page.locator(".toast").last).to_contain_text("Access saved.")
    expect(row).to_have_count(1)

    other.goto(f"{server.url}/workspaces/{workspace['id']}/")
    expect(other.get_by_role("heading", level=1)).to_have_text(workspace["name"])
    expect(other.locator('[data-action="start"], [data-action="stop"]').first).to_be_disabled()
    expect(other.get_by_role("tab", name="Settings")).to_have_count(0)

    page.get_by_role("button", name=f"Remove {user['username']}").click()
    page.get_by_role("button", name="Save access").click()
    expect(page.locator("[data-nobody]")).to_be_visible()
    other.wait_for_url(f"{server.url}/workspaces/")
    expect(row).to_have_count(0)

    page.get_by_role("button", name="Hand over").click()
    page.get_by_role("dialog").locator("[name=owner]").fill(user["username"])
    page.get_by_role("dialog").get_by_role("button", name="Hand over").click()
    expect(page.locator("[name=user]:visible")).to_have_value("admin")
    expect(row).to_have_count(1)
    other.context.close()


def test_the_audit_is_searched_and_exported(signed_in: Page, agent: PretendAgent) -> None:
    page, name = signed_in, _name("net")
    body = {"name": name, "host": agent.host["id"]}
    network = agent.trailer.api("POST", "/networks/", body).json()
    page.goto(f"{agent.trailer.url}/audit/")
    page.get_by_label("Search the audit").fill(name)
    rows = page.locator("#rows [data-row]")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("Created network")
    expect(rows).to_contain_text("admin")
    with page.expect_download() as download:
        page.get_by_role("link", name="Export as CSV").click()
    lines = download.value.path().read_text().splitlines()
    assert len(lines) == 2
    assert network["id"] in lines[1]
    page.get_by_label("By whom").fill("somebody else")
    expect(page.get_by_text("Nothing matches")).to_be_visible()
