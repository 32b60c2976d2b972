"""Every page at a desk and on a phone, light and dark; `make pictures` keeps a picture of each."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import pytest
from playwright.sync_api import Page, expect

from agent.protocol.report import Leftover, LeftoversReport
from tests.browser.accessibility import serious_violations
from tests.browser.conftest import sign_in
from tests.browser.host_figures import GIB, cycle, sampled, step
from tests.browser.pretend_agent import PretendAgent
from tests.ground.browser import save_screenshot
from tests.ground.server import PASSWORD

if TYPE_CHECKING:
    from tests.ground.server import RunningTrailer

# The last width is that in which the whole page is examined.
WIDTHS = (390, 1440)
THEMES: tuple[Literal["light"], Literal["dark"]] = ("light", "dark")
# For people to look at; no test reads them, and drawing all takes as long as examining all.
KEEP_PICTURES = os.environ.get("TRAILER_TEST_PICTURES") == "1"
# One test of all pages would take minutes.
PARTS = 4
GROUP = "a group with quite a long name"
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
    "revisions": "/workspaces/{workspace}/?tab=revisions",
    "settings": "/workspaces/{workspace}/?tab=settings",
    "access": "/workspaces/{workspace}/?tab=access",
    "danger": "/workspaces/{workspace}/?tab=danger",
    "stacks": "/stacks/",
    "new-stack": "/stacks/new/",
    "stack": "/stacks/{stack}/",
    "stack-history": "/stacks/{stack}/?tab=history",
    "stack-changes": "/stacks/{stack}/?tab=changes",
    "stack-settings": "/stacks/{stack}/?tab=settings",
    "stack-access": "/stacks/{stack}/?tab=access",
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
    "host-access": "/hosts/{host}/?tab=access",
    "networks": "/networks/",
    "network": "/networks/{networks}/",
    "volumes": "/volumes/",
    "volume": "/volumes/{volumes}/",
    "registries": "/registries/",
    "users": "/users/",
    "nobody": "/users/?search=zzz",
    "profile": "/profile/",
    "audit": "/audit/",
    "unknown": "/nowhere/",
}
# What a button of a page opens.
DIALOGS = {
    "update-agents": ("/hosts/", "Update agents"),
    "enrol": ("/hosts/{host}/", "Connect agent"),
    "clone": ("/workspaces/{workspace}/", "Clone"),
    "quota": ("/users/", "Quota of admin"),
    "new-token": ("/profile/", "New token"),
    "search": ("/", "Search everything"),
}
SIGNED_OUT = {
    "login": "/login/",
    "reset": "/login/reset/",
    "reset-sent": "/login/reset/sent/",
    "reset-done": "/login/reset/done/",
}

# A list that is being asked for anew is paler meanwhile, which may be just now.
_AT_REST = """() => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(".htmx-request .table, .table.htmx-request { opacity: 1 !important; }");
  document.adoptedStyleSheets.push(sheet);
}"""


@pytest.fixture(scope="module")
def ids(pages_server: RunningTrailer) -> dict[str, str]:
    """One of everything, with long names and long messages."""
    agent = PretendAgent(pages_server).connect()
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
    ids = {"workspace": workspace["id"], "image": image["id"], "host": agent.host["id"]}
    for kind in ("networks", "volumes"):
        body = {"name": LONG[:60], "host": agent.host["id"]}
        ids[kind] = agent.trailer.api("POST", f"/{kind}/", body).json()["id"]
    _share_with_long_names(agent, ids)
    _report_much(agent, workspace)
    stack = {
        "name": LONG[:40],
        "host": agent.host["id"],
        "repository": f"https://127.0.0.1/{'deep/' * 30}shop.git",
        "variables": {"A" * 60: "b" * 300},
        "secret_variables": {"KEY": "s3cret"},
    }
    ids["stack"] = agent.trailer.api("POST", "/stacks/", stack).json()["id"]
    return ids


def _report_much(agent: PretendAgent, workspace: Any) -> None:
    """Figures, a cycle with a failure, something left over, and changes with their reasons."""
    now = datetime.now(UTC)
    failed = step("create", now, 1, 3000, outcome="failed", message=f"No {'/such/path' * 20}.")
    agent.says(cycle(1, step("stop", now, 0, 1000), failed, began=now, seconds=4))
    left = Leftover(resource="container", name=LONG, engine_id="ab" * 32, reason="foreign")
    agent.says(LeftoversReport(seq=0, leftovers=(left,)))
    change = {"cpus": 2, "memory_bytes": 4 * GIB, "env": {"B" * 60: "c" * 300}}
    assert agent.trailer.api("PATCH", f"/workspaces/{workspace['id']}/", change).ok
    agent.says_workspace(workspace, "error", message=f"No space left on {'/very/long/path' * 20}.")
    for number, cpu in ((1, 20.0), (2, 70.0)):
        sampled(agent, number, cpu, workspace)


def _share_with_long_names(agent: PretendAgent, ids: dict[str, str]) -> None:
    api = agent.trailer.api
    if not api("GET", f"/users/?username={LONG}").json()["count"]:
        body = {"username": LONG, "password": PASSWORD, "email": f"{LONG[:50]}@example.com"}
        assert api("POST", "/users/", body).ok
        assert api("POST", "/groups/", {"name": GROUP, "users": [LONG]}).ok
    grants = [
        {"user": LONG, "role": "editor", "expires_at": "2099-01-01T00:00:00Z"},
        {"group": GROUP, "role": "viewer"},
    ]
    assert api("PUT", f"/workspaces/{ids['workspace']}/grants/", grants).ok
    assert api("PUT", f"/volumes/{ids['volumes']}/grants/", grants).ok
    access = [{"user": LONG, "capabilities": ["bind"]}, {"group": GROUP, "capabilities": ["view"]}]
    assert api("PUT", f"/hosts/{ids['host']}/access/", access).ok


@pytest.mark.parametrize("part", range(PARTS))
def test_every_page_fits_and_everybody_can_use_it(
    part: int,
    signed_in: Page,
    pages_server: RunningTrailer,
    ids: dict[str, str],
    page_errors: list[str],
) -> None:
    problems: list[str] = []
    for name, address in list(PAGES.items())[part::PARTS]:
        problems += _examine(signed_in, name, pages_server.url + address.format(**ids))
    assert problems == []
    assert [text for text in page_errors if "404" not in text] == []


def test_every_dialog_fits_and_everybody_can_use_it(
    signed_in: Page, pages_server: RunningTrailer, ids: dict[str, str], page_errors: list[str]
) -> None:
    problems: list[str] = []
    for name, (address, button) in DIALOGS.items():
        where = pages_server.url + address.format(**ids)
        problems += _examine(signed_in, f"dialog-{name}", where, button)
    assert problems == []
    assert page_errors == []


def test_who_is_not_signed_in_sees_pages_that_fit(
    page: Page, pages_server: RunningTrailer
) -> None:
    problems: list[str] = []
    for name, address in SIGNED_OUT.items():
        problems += _examine(page, name, pages_server.url + address)
    assert problems == []


def _examine(page: Page, name: str, address: str, button: str = "") -> list[str]:
    """What is wrong with a page, or what a button on it opens."""
    problems: list[str] = []
    page.set_viewport_size({"width": WIDTHS[0], "height": 900})
    page.goto(address)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    if button:
        page.get_by_role("button", name=button).first.click()
        expect(page.get_by_role("dialog")).to_be_visible()
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        if not button:
            # Bars that stick to the window's edge would cover a part of the picture.
            height = page.evaluate("document.documentElement.scrollHeight")
            page.set_viewport_size({"width": width, "height": height})
        for theme in THEMES if KEEP_PICTURES else ():
            _colour(page, theme)
            save_screenshot(page, f"page-{name}-{width}-{theme}", whole=not button)
        wide = page.evaluate("document.documentElement.scrollWidth")
        if wide > width:
            problems.append(f"{name} is {wide} wide at {width}")
    page.evaluate(_AT_REST)
    # The other theme is the same page in other colours.
    _colour(page, "dark")
    part = "dialog[open]" if button else "html"
    problems += [f"{name}: {found}" for found in serious_violations(page, within=part)]
    _colour(page, "light")
    in_light = serious_violations(page, "color-contrast", within=part)
    return problems + [f"{name}, light: {found}" for found in in_light]


def _colour(page: Page, theme: Literal["light", "dark"]) -> None:
    page.emulate_media(color_scheme=theme)
    expect(page.locator("html")).to_have_attribute("data-theme", theme)


def test_a_page_takes_a_handful_of_requests(signed_in: Page, pages_server: RunningTrailer) -> None:
    asked: list[str] = []
    signed_in.on("request", lambda request: asked.append(request.url))
    signed_in.goto(f"{pages_server.url}/workspaces/new/", wait_until="networkidle")
    assert f"{pages_server.url}/static/bundle/app.js" in asked
    assert len(asked) < 12, asked


def test_the_choice_of_colours_is_kept(dashboard: Page, pages_server: RunningTrailer) -> None:
    page = dashboard
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


def test_the_first_tab_stop_skips_to_the_content(dashboard: Page) -> None:
    page = dashboard
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
