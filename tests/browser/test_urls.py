"""A workspace's URL in a real browser: its owner gets in, a stranger does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.scenario import User
from tests.e2e.url_scene import Visitor, serving
from tests.ground.browser import save_screenshot
from tests.ground.server import PASSWORD, USERNAME, RunningTrailer
from tests.ground.url_image import ensure_app
from tests.ground.wait import eventually

if TYPE_CHECKING:
    import docker

PHRASE = "a long pass phrase 9"
ASK_THE_API = """(address) => fetch(address, {credentials: "include"})
    .then((answer) => answer.text(), () => "refused")"""


@pytest.fixture
def workspace(engine_docker: docker.DockerClient, trailer: RunningTrailer) -> Any:
    ensure_app(engine_docker)
    user = User(trailer)
    user.post("/users/", {"username": "stranger", "password": PHRASE}, status=201)
    made = serving(user, "book", {"subdomain": "book", "auth": "owner"}, {"subdomain": "open"})
    visitor = Visitor(trailer)
    eventually(lambda: visitor.get("open").ok, 20, "the application does not answer")
    return made


def sign_in(page: Page, name: str, password: str) -> None:
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()


def test_the_owner_signs_in_and_is_back_at_the_url_and_a_stranger_is_not(
    workspace: Any, trailer: RunningTrailer, page: Page, browser: Browser
) -> None:
    address = f"http://book.localhost:{trailer.port}/?tab=2"
    page.goto(address)
    assert page.url.startswith(f"{trailer.url}/login/")
    sign_in(page, USERNAME, PASSWORD)
    expect(page).to_have_url(address)
    expect(page.get_by_role("heading", name="hello from the app")).to_be_visible()
    expect(page.locator("#heard")).to_have_text("echo from the page")
    names = {cookie["name"]: cookie["domain"] for cookie in page.context.cookies()}
    assert (names["sessionid"], names["trailer_url"]) == ("127.0.0.1", "book.localhost")
    asked = page.evaluate(ASK_THE_API, f"{trailer.url}/api/v1/workspaces/")
    assert asked == "refused", "a page of an app reads the API as its visitor"

    page.goto(f"{trailer.url}/workspaces/{workspace['id']}/")
    link = page.get_by_role("link", name="book.localhost").first
    expect(link).to_have_attribute("href", f"http://book.localhost:{trailer.port}/")

    other = browser.new_context()
    stranger = other.new_page()
    stranger.goto(address)
    sign_in(stranger, "stranger", PHRASE)
    expect(stranger.get_by_role("heading", name="There is nothing here")).to_be_visible()
    assert stranger.url.startswith(f"{trailer.url}/urls/enter/")
    other.close()

    page.goto(f"http://nobody.localhost:{trailer.port}/")
    expect(page.get_by_role("heading", name="There is no such workspace URL")).to_be_visible()
    save_screenshot(page, "url-notice")
