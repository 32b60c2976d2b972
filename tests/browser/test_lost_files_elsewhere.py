"""The question about lost files before a stack is deployed or an image is made again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playwright.sync_api import Page, expect

from tests.browser.accessibility import serious_violations
from tests.browser.test_looks import KEEP_PICTURES
from tests.browser.test_lost_files import LOSS, UNKNOWN, Api, question
from tests.ground.browser import save_screenshot

if TYPE_CHECKING:
    from tests.browser.pretend_agent import PretendAgent


def losing(name: str, why: str, loss: dict[str, Any]) -> dict[str, Any]:
    return {"workspace": name, "name": f"shop-{name}", "service": name, "why": why, **loss}


def test_a_deploy_of_a_stack_tells_which_services_lose_files(
    signed_in: Page, agent: PretendAgent
) -> None:
    page, api = signed_in, Api(signed_in)
    body = {
        "name": f"s{agent.host['id'][:8]}",
        "host": agent.host["id"],
        "repository": "https://127.0.0.1/shop.git",
    }
    stack = agent.trailer.api("POST", "/stacks/", body).json()
    path = f"/api/v1/stacks/{stack['id']}/deploy/"
    services = [losing("web", "changed", LOSS), losing("worker", "pulled_again", UNKNOWN)]
    api.answers(f"{path}plan/", {"workspaces": services, "problem": ""})
    api.answers(path, {**stack, "allowed_actions": ["deploy"]})
    page.goto(f"{agent.trailer.url}/stacks/{stack['id']}/")
    page.get_by_role("button", name="Deploy", exact=True).click()
    dialog = question(page, f"Deploy {stack['name']}?")
    expect(dialog.get_by_role("listitem")).to_have_count(2)
    expect(dialog).to_contain_text("web3 MiB in 34 files")
    expect(dialog).to_contain_text("Only if its image has moved. What its container wrote is not")
    assert serious_violations(page, within="dialog[open]") == []
    if KEEP_PICTURES:
        save_screenshot(page, "lost-files-stack", whole=False)
    dialog.get_by_role("button", name="Cancel").click()
    assert [asked for asked, _ in api.asked] == [f"{path}plan/"]
    page.get_by_role("button", name="Deploy", exact=True).click()
    expect(dialog).to_be_visible()
    with page.expect_request(lambda request: request.url.endswith(path)):
        dialog.get_by_role("button", name="Go on").click()
    expect(dialog).to_be_hidden()


def test_other_settings_of_a_stack_tell_which_services_may_lose_files(
    signed_in: Page, agent: PretendAgent
) -> None:
    page, api = signed_in, Api(signed_in)
    body = {
        "name": f"t{agent.host['id'][:8]}",
        "host": agent.host["id"],
        "repository": "https://127.0.0.1/shop.git",
    }
    stack = agent.trailer.api("POST", "/stacks/", body).json()
    asked = f"/api/v1/stacks/{stack['id']}/settings/plan/"
    services = [losing("web", "may_change", LOSS)]
    api.answers(asked, {"workspaces": services, "problem": ""})
    page.goto(f"{agent.trailer.url}/stacks/{stack['id']}/?tab=settings")
    page.locator("[name=description]").fill("Only words")
    page.get_by_role("button", name="Save changes").click()
    expect(page.locator(".toast")).to_contain_text("Saved.")
    assert api.asked == []
    page.locator("[name=branch]").fill("next")
    page.get_by_role("button", name="Save changes").click()
    dialog = question(page, f"Change {stack['name']}?")
    expect(dialog).to_contain_text("Only if the new settings change it.")
    dialog.get_by_role("button", name="Cancel").click()
    assert agent.read(f"/stacks/{stack['id']}/")["branch"] != "next"
    page.get_by_role("button", name="Save changes").click()
    with page.expect_response(lambda answer: answer.request.method == "PATCH") as saved:
        dialog.get_by_role("button", name="Go on").click()
    assert saved.value.status == 200
    assert agent.read(f"/stacks/{stack['id']}/")["branch"] == "next"


def test_an_image_that_is_made_again_tells_whose_files_it_costs(
    signed_in: Page, agent: PretendAgent
) -> None:
    page, api = signed_in, Api(signed_in)
    image = agent.image()
    agent.says_build(image, "finished")
    path = f"/api/v1/images/{image['id']}/build/"
    found = [losing("box", "image", LOSS)]
    api.answers(f"{path}plan/", {"workspaces": found, "problem": ""})
    page.goto(f"{agent.trailer.url}/images/{image['id']}/")
    page.get_by_role("button", name="Pull again").click()
    dialog = question(page, f"Make again {image['name']}?")
    expect(dialog).to_contain_text("box3 MiB in 34 files")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Pull again")).to_be_focused()
    assert agent.read(f"/images/{image['id']}/")["status"] == "finished"

    page.get_by_text("Settings").click()
    page.get_by_label("Reference").fill("busybox:2")
    page.get_by_role("button", name="Save changes").click()
    question(page, f"Change {image['name']}?").get_by_role("button", name="Go on").click()
    expect(page.locator(".toast")).to_contain_text("Saved.")
    assert agent.read(f"/images/{image['id']}/")["reference"] == "busybox:2"


def test_a_change_that_makes_nothing_again_asks_nothing(
    signed_in: Page, agent: PretendAgent
) -> None:
    page, api = signed_in, Api(signed_in)
    image = agent.image()
    agent.says_build(image, "finished")
    plan = f"/api/v1/images/{image['id']}/build/plan/"
    api.answers(plan, {"workspaces": [losing("box", "image", LOSS)], "problem": ""})
    page.goto(f"{agent.trailer.url}/images/{image['id']}/")
    page.get_by_text("Settings").click()
    page.get_by_label("Name", exact=True).fill(f"{image['name']}-2")
    page.get_by_role("button", name="Save changes").click()
    expect(page.locator(".toast")).to_contain_text("Saved.")
    assert api.asked == []
