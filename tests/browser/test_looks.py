"""Every page at a desk and on a phone, light and dark; pictures of all are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.accessibility import serious_violations
from tests.browser.conftest import assert_no_errors, sign_in
from tests.ground.browser import save_screenshot
from tests.ground.server import PASSWORD

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.browser.pretend_agent import PretendAgent
    from tests.ground.server import RunningTrailer

WIDE = 1440
LONG = "a-very-long-name-that-somebody-chose-for-a-workspace-of-theirs-0"
PAGES = {
    "dashboard": "/",
    "workspaces": "/workspaces/",
    "nothing-found": "/workspaces/?search=zzz",
    "new-workspace": "/workspaces/new/",
    "workspace": "/workspaces/{workspace}/",
    "logs": "/workspaces/{workspace}/?tab=logs",
    "terminal": "/workspaces/{workspace}/?tab=terminal",
    "metrics": "/workspaces/{workspace}/?tab=metrics",
    "events": "/workspaces/{workspace}/?tab=events",
    "settings": "/workspaces/{workspace}/?tab=settings",
    "access": "/workspaces/{workspace}/?tab=access",
    "images": "/images/",
    "new-image": "/images/new/",
    "new-build": "/images/new/?kind=build",
    "image": "/images/{image}/",
    "hosts": "/hosts/",
    "host": "/hosts/{host}/",
    "host-workspaces": "/hosts/{host}/?tab=workspaces",
    "host-images": "/hosts/{host}/?tab=images",
    "host-cycles": "/hosts/{host}/?tab=cycles",
    "host-leftovers": "/hosts/{host}/?tab=leftovers",
    "host-settings": "/hosts/{host}/?tab=settings",
    "networks": "/networks/",
    "volumes": "/volumes/",
    "registries": "/registries/",
    "users": "/users/",
    "profile": "/profile/",
    "audit": "/audit/",
}


@pytest.fixture
def ids(agent: PretendAgent) -> dict[str, str]:
    image = agent.image(name=LONG, reference=f"registry.example.com/{'deep/' * 20}image:tag")
    agent.says_build(image, "failed", message=f"The registry refused {'x' * 200}.")
    workspace = agent.workspace(
        name=LONG[:63],
        image=image["id"],
        description="long " * 80,
        env={"A" * 60: "b" * 300},
        ports=[{"container_port": 8000 + number} for number in range(12)],
        command=["sh", "-c", "x" * 400],
    )
    agent.says_workspace(workspace, "error", message=f"No space left on {'/very/long/path' * 20}.")
    for kind in ("networks", "volumes"):
        body = {"name": LONG[:60], "host": agent.host["id"]}
        assert agent.trailer.api("POST", f"/{kind}/", body).ok
    return {"workspace": workspace["id"], "image": image["id"], "host": agent.host["id"]}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [WIDE, 390])
def test_every_page_fits_and_everybody_can_use_it(
    width: int,
    theme: str,
    browser: Browser,
    session_cookies: list[Any],
    agent: PretendAgent,
    ids: dict[str, str],
) -> None:
    errors: list[str] = []
    problems: list[str] = []
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if theme == "dark" else "light",
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
    context.add_cookies(session_cookies)
    for name, address in PAGES.items():
        page.goto(agent.trailer.url + address.format(**ids))
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert page.locator("html").get_attribute("data-theme") == theme
        save_screenshot(page, f"page-{name}-{width}-{theme}")
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"{name} is {wide} wide"
        if width == WIDE:
            # The other theme is the same page in other colours.
            rules = ("color-contrast",) if theme == "dark" else ()
            problems += [f"{name}: {found}" for found in serious_violations(page, *rules)]
    context.close()
    assert problems == []
    assert_no_errors(errors)


def test_the_choice_of_colours_is_kept(signed_in: Page, pages_server: RunningTrailer) -> None:
    page = signed_in
    root = page.locator("html")
    expect(root).to_have_attribute("data-theme", "light")
    page.get_by_label("Colours").click()
    page.get_by_role("menuitemradio", name="Dark").click()
    expect(root).to_have_attribute("data-theme", "dark")
    page.goto(f"{pages_server.url}/images/")
    expect(root).to_have_attribute("data-theme", "dark")
    page.get_by_label("Colours").click()
    expect(page.get_by_role("menuitemradio", name="Dark")).to_be_checked()
    page.get_by_role("menuitemradio", name="As the system").click()
    expect(root).to_have_attribute("data-theme", "light")
    page.emulate_media(color_scheme="dark")
    expect(root).to_have_attribute("data-theme", "dark")


def test_the_navigation_opens_on_a_phone(signed_in: Page, pages_server: RunningTrailer) -> None:
    page = signed_in
    page.set_viewport_size({"width": 390, "height": 800})
    link = page.get_by_role("navigation", name="Main").get_by_role("link", name="Images")
    expect(link).to_be_hidden()
    page.get_by_role("button", name="Navigation").click()
    expect(link).to_be_visible()
    page.keyboard.press("Escape")
    expect(link).to_be_hidden()
    page.get_by_role("button", name="Navigation").click()
    link.click()
    page.wait_for_url(f"{pages_server.url}/images/")


def test_the_first_tab_stop_skips_to_the_content(signed_in: Page) -> None:
    page = signed_in
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#content")).to_be_focused()


def test_a_search_narrows_the_list_and_its_address(signed_in: Page, agent: PretendAgent) -> None:
    page = signed_in
    image = agent.image()["id"]
    agent.workspace(name="findme-one", image=image)
    agent.workspace(name="other-two", image=image)
    page.goto(f"{agent.trailer.url}/workspaces/?host={agent.host['id']}")
    expect(page.locator("[data-row]")).to_have_count(2)
    page.get_by_label("Search workspaces").fill("findme")
    expect(page.locator("[data-row]")).to_have_count(1)
    page.wait_for_url("**/workspaces/?**search=findme**")
    page.reload()
    expect(page.locator("[data-row]")).to_have_count(1)
    expect(page.get_by_label("Search workspaces")).to_have_value("findme")


def test_tabs_open_in_place_and_the_way_back_works(signed_in: Page, agent: PretendAgent) -> None:
    page = signed_in
    workspace = agent.workspace()
    address = f"{agent.trailer.url}/workspaces/{workspace['id']}/"
    page.goto(address)
    page.evaluate("window.notReloaded = true")
    page.get_by_role("tab", name="Events").click()
    page.wait_for_url(f"{address}?tab=events")
    expect(page.get_by_role("tab", name="Events")).to_have_attribute("aria-selected", "true")
    assert page.evaluate("window.notReloaded")
    page.go_back()
    expect(page.get_by_role("tab", name="Overview")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("heading", name="Specification")).to_be_visible()


def test_signing_out_ends_it(page: Page, pages_server: RunningTrailer) -> None:
    # A session of its own: the other tests share theirs.
    sign_in(page, pages_server)
    page.get_by_label("Account of admin").click()
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(f"{pages_server.url}/login/")
    page.goto(f"{pages_server.url}/hosts/")
    page.wait_for_url(f"{pages_server.url}/login/?next=/hosts/")


def test_a_wrong_password_is_told_in_a_sentence(page: Page, pages_server: RunningTrailer) -> None:
    page.goto(f"{pages_server.url}/login/?next=/images/")
    page.get_by_label("Username").fill("admin")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("do not match an account")
    expect(page.get_by_label("Username")).to_have_value("admin")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{pages_server.url}/images/")
