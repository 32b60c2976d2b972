"""The volume for the work folder that the form of a new workspace offers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from playwright.sync_api import Page, expect

from tests.browser.test_workspace_forms import open_new, workspaces_of

if TYPE_CHECKING:
    from tests.browser.pretend_agent import PretendAgent

TICK = "Keep the work folder in a new volume"
CREATE = "Create workspace"


def volumes_of(agent: PretendAgent) -> dict[str, str]:
    found: list[Any] = agent.read(f"/volumes/?host={agent.host['id']}")["results"]
    return {volume["name"]: volume["id"] for volume in found}


def fill(page: Page, agent: PretendAgent, name: str) -> None:
    image = agent.image()["id"]
    open_new(page, agent)
    page.locator("[name=name]").fill(name)
    page.locator("[name=image]").select_option(image)


def test_a_new_workspace_keeps_its_work_folder_in_a_volume(
    signed_in: Page, agent: PretendAgent, page_errors: list[str]
) -> None:
    page = signed_in
    fill(page, agent, "keeper")
    expect(page.get_by_label(TICK)).to_be_checked()
    expect(page.locator("[data-work-volume]")).to_contain_text("It is called keeper-data")
    page.get_by_role("button", name=CREATE).click()
    page.wait_for_url(re.compile(r"/workspaces/[0-9a-f-]{36}/$"))
    [made] = workspaces_of(agent)
    volume = volumes_of(agent)["keeper-data"]
    assert made["mounts"] == [{"volume": volume, "target": "/workspace", "read_only": False}]
    assert page_errors == []


def test_a_taken_name_is_not_shared_and_the_folder_can_be_chosen(
    signed_in: Page, agent: PretendAgent
) -> None:
    page = signed_in
    body = {"name": "second-data", "host": agent.host["id"]}
    taken = agent.trailer.api("POST", "/volumes/", body).json()["id"]
    fill(page, agent, "second")
    page.get_by_label("Work folder", exact=True).fill("/home/me")
    page.get_by_role("button", name=CREATE).click()
    page.wait_for_url(re.compile(r"/workspaces/[0-9a-f-]{36}/$"))
    [made] = workspaces_of(agent)
    assert set(volumes_of(agent)) == {"second-data", "second-data-2"}
    [mount] = made["mounts"]
    assert (mount["target"], mount["volume"] != taken) == ("/home/me", True)


def test_without_the_tick_no_volume_is_made(signed_in: Page, agent: PretendAgent) -> None:
    page = signed_in
    fill(page, agent, "without")
    page.get_by_label(TICK).uncheck()
    page.get_by_role("button", name=CREATE).click()
    page.wait_for_url(re.compile(r"/workspaces/[0-9a-f-]{36}/$"))
    assert (workspaces_of(agent)[0]["mounts"], volumes_of(agent)) == ([], {})


def test_a_refused_workspace_leaves_no_volume(signed_in: Page, agent: PretendAgent) -> None:
    page = signed_in
    fill(page, agent, "refused")
    page.locator("[name=cpus]").fill("5000")
    folder = page.get_by_label("Work folder", exact=True)
    folder.fill("relative")
    page.get_by_role("button", name=CREATE).click()
    expect(folder).to_have_attribute("aria-invalid", "true")
    assert (workspaces_of(agent), volumes_of(agent)) == ([], {})
    folder.fill("/work")
    page.get_by_role("button", name=CREATE).click()
    expect(page.locator("[name=cpus]")).to_have_attribute("aria-invalid", "true")
    assert (workspaces_of(agent), volumes_of(agent)) == ([], {})
    page.locator("[name=cpus]").fill("2")
    page.get_by_role("button", name=CREATE).click()
    page.wait_for_url(re.compile(r"/workspaces/[0-9a-f-]{36}/$"))
    assert list(volumes_of(agent)) == ["refused-data"]
