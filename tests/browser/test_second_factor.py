"""A second factor set up, used and asked for; a quota set and seen: by hand, in the browser."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING

import pyotp
from playwright.sync_api import Page, expect

from tests.browser.accessibility import serious_violations
from tests.ground.browser import save_screenshot

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.ground.server import RunningTrailer

PASSWORD = "a long enough secret"


def _sign_in(page: Page, server: RunningTrailer, username: str) -> None:
    page.goto(f"{server.url}/login/")
    page.get_by_label("Username").fill(username)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()


def test_a_second_factor_is_set_up_and_asked_for_and_a_quota_is_seen(
    browser: Browser, signed_in: Page, pages_server: RunningTrailer, page_errors: list[str]
) -> None:
    name = f"eva-{uuid.uuid4().hex[:6]}"
    made = pages_server.api("POST", "/users/", {"username": name, "password": PASSWORD})
    assert made.ok
    signed_in.goto(f"{pages_server.url}/users/?search={name}")
    signed_in.get_by_role("button", name=f"Quota of {name}").click()
    dialog = signed_in.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Save quota")).to_be_enabled()
    dialog.locator("[name=workspaces]").fill("3")
    dialog.locator("[name=memory_bytes]").fill("16 GiB")
    save_screenshot(signed_in, "quota-dialog")
    assert serious_violations(signed_in) == []
    dialog.get_by_role("button", name="Save quota").click()
    expect(dialog).to_be_hidden()

    page = browser.new_context().new_page()
    _sign_in(page, pages_server, name)
    page.wait_for_url(f"{pages_server.url}/")
    page.goto(f"{pages_server.url}/profile/")
    expect(page.locator("[data-quota=memory_bytes]")).to_contain_text("0 GiB of 16 GiB")
    factor = page.locator("[data-second-factor]")
    factor.get_by_label("Present password").fill(PASSWORD)
    factor.get_by_role("button", name="Set up").click()
    secret = page.locator("[data-factor-secret]")
    expect(secret).to_be_visible()
    phone = pyotp.TOTP(secret.inner_text())
    save_screenshot(page, "second-factor-begin")
    page.locator("[data-factor-confirm] [name=code]").fill(phone.at(int(time.time()) - 30))
    page.get_by_role("button", name="Turn on").click()
    codes = page.locator("[data-factor-codes]")
    expect(codes).to_be_visible()
    assert len(codes.inner_text().split()) == 10
    page.get_by_role("button", name="Done").click()
    expect(page.locator("[data-second-factor=on]")).to_contain_text("10 recovery codes left")
    save_screenshot(page, "profile-with-quota-and-second-factor")

    again = browser.new_context().new_page()
    _sign_in(again, pages_server, name)
    again.wait_for_url("**/login/code/**")
    save_screenshot(again, "second-factor-asked")
    assert serious_violations(again) == []
    again.get_by_label("Code of your app").fill(phone.now())
    again.get_by_role("button", name="Go on").click()
    again.wait_for_url(f"{pages_server.url}/")
    assert page_errors == []
