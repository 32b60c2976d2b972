"""Pages made by kits, the API browser and the admin pages, work under their content policies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.ground.server import RunningTrailer

REFUSED = """
window.refused = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.refused.push(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`));
"""


def test_the_api_browser_renders_and_asks_without_breaking_the_policy(
    signed_in: Page, pages_server: RunningTrailer, page_errors: list[str]
) -> None:
    signed_in.add_init_script(REFUSED)
    signed_in.emulate_media(color_scheme="dark")
    answer = signed_in.goto(f"{pages_server.url}/api/docs/")
    assert answer is not None
    assert "script-src 'self';" in answer.headers["content-security-policy"]
    assert "unsafe" not in answer.headers["content-security-policy"]
    # One at the top: of a long list only what is in view is drawn.
    route = signed_in.locator("#operations-audit-audit_list")
    expect(route).to_be_visible(timeout=20_000)
    background = "getComputedStyle(document.body).backgroundColor"
    assert signed_in.evaluate(background) == "rgb(28, 32, 34)"
    route.get_by_role("button").first.click()
    route.get_by_role("button", name="Try it out").click()
    route.get_by_role("button", name="Execute").click()
    expect(route.locator(".live-responses-table .response-col_status").last).to_contain_text("200")
    signed_in.emulate_media(color_scheme="light")
    expect(signed_in.locator("html.dark-mode")).to_have_count(0)
    assert signed_in.evaluate("window.refused") == []
    assert page_errors == []


def test_the_admin_pages_need_no_inline_script(
    signed_in: Page, pages_server: RunningTrailer, page_errors: list[str]
) -> None:
    signed_in.add_init_script(REFUSED)
    for address in (
        "/admin/",
        "/admin/auth/group/",
        "/admin/auth/group/add/",
        "/admin/audit/auditentry/",
    ):
        answer = signed_in.goto(f"{pages_server.url}{address}")
        assert answer is not None
        assert answer.status == 200
        policy = answer.headers["content-security-policy"]
        assert "script-src 'self' 'unsafe-eval';" in policy
        # Alpine is at work: it takes this mark off everything it has set up.
        signed_in.wait_for_function("window.Alpine && !document.querySelector('[x-cloak]')")
        assert signed_in.evaluate("window.refused") == [], address
    assert page_errors == []
