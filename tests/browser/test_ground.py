"""Proof that the page tests' browser works: scripts run, and errors and pictures are kept."""

from playwright.sync_api import Page, expect

from tests.ground.browser import WINDOW, save_screenshot


def test_scripts_run_and_their_errors_are_collected(page: Page, page_errors: list[str]) -> None:
    page.set_content("<h1>before</h1>")
    page.evaluate("document.querySelector('h1').textContent = 'after'")
    expect(page.get_by_role("heading")).to_have_text("after")
    assert page.viewport_size == WINDOW
    page.evaluate("console.error('broken'); setTimeout(() => { throw new Error('thrown') })")
    page.wait_for_event("pageerror")
    assert page_errors == ["broken", "thrown"]


def test_a_picture_of_the_page_is_kept(page: Page) -> None:
    page.set_content("<h1>picture</h1>")
    picture = save_screenshot(page, "tests/browser/test_ground.py::a picture [x]")
    assert picture.name == "tests-browser-test_ground-py-a-picture-x.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    picture.unlink()
