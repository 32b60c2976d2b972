"""Sharing from the pages of images, volumes, networks and hosts; revisions and the way back."""

from __future__ import annotations

import uuid
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.pretend_agent import PretendAgent

PASSWORD = "correct horse battery"


def some_user(agent: PretendAgent) -> str:
    name = f"user-{uuid.uuid4().hex[:8]}"
    body = {"username": name, "password": PASSWORD}
    assert agent.trailer.api("POST", "/users/", json=body).ok
    return name


def made(agent: PretendAgent, kind: str, **fields: Any) -> str:
    body = {"name": f"a-{uuid.uuid4().hex[:8]}", "host": agent.host["id"], **fields}
    answer = agent.trailer.api("POST", f"/{kind}/", json=body)
    assert answer.ok, answer.text
    return str(answer.json()["id"])


def save(page: Page) -> None:
    with page.expect_response("**/grants/") as answer:
        page.get_by_role("button", name="Save access").click()
    assert answer.value.ok


def changed_workspace(agent: PretendAgent) -> Any:
    workspace = agent.workspace(env={"MODE": "old"})
    agent.says_workspace(workspace, "running", container_id="a" * 64)
    body = {"env": {"MODE": "new"}, "secret_env": {"KEY": "hidden"}}
    assert agent.trailer.api("PATCH", f"/workspaces/{workspace['id']}/", json=body).ok
    return workspace


def test_images_volumes_and_networks_are_shared_from_their_own_pages(
    signed_in: Page, agent: PretendAgent, page_errors: list[str]
) -> None:
    page, user = signed_in, some_user(agent)
    ids = {"images": agent.image()["id"]}
    ids |= {kind: made(agent, kind) for kind in ("volumes", "networks")}
    for kind, object_id in ids.items():
        page.goto(f"{agent.trailer.url}/{kind}/{object_id}/")
        expect(page.locator("[data-nobody]")).to_be_visible()
        page.get_by_role("button", name="Add person or group").click()
        page.locator("[name=user]:visible").fill(user)
        save(page)
        expect(page.get_by_role("button", name=f"Remove {user}")).to_be_visible()
        [grant] = agent.read(f"/{kind}/{object_id}/grants/")
        assert (grant["username"], grant["role"]) == (user, "viewer")
        page.get_by_role("button", name=f"Remove {user}").click()
        save(page)
        expect(page.locator("[data-nobody]")).to_be_visible()
        assert agent.read(f"/{kind}/{object_id}/grants/") == []
    assert page_errors == []


def test_a_viewer_of_a_workspace_is_led_to_its_parts_and_told_why(
    page: Page, agent: PretendAgent, page_errors: list[str]
) -> None:
    user = some_user(agent)
    image = agent.image(kind="build", dockerfile="FROM busybox\nRUN true\n")
    volume, network = made(agent, "volumes"), made(agent, "networks")
    mounts = [{"volume": volume, "target": "/data"}]
    workspace = agent.workspace(image=image["id"], mounts=mounts, networks=[network])
    address = f"/workspaces/{workspace['id']}/"
    grants = [{"user": user, "role": "viewer"}]
    assert agent.trailer.api("PUT", f"{address}grants/", json=grants).ok
    page.goto(f"{agent.trailer.url}/login/")
    page.get_by_label("Username").fill(user)
    page.locator("[name=password]").fill("correct horse battery")
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{agent.trailer.url}/")
    for kind, part in (("images", image["id"]), ("volumes", volume), ("networks", network)):
        page.goto(f"{agent.trailer.url}{address}")
        page.locator(f"[aria-labelledby=spec] a[href='/{kind}/{part}/']").click()
        expect(page.locator("[data-through]")).to_contain_text("Ask admin to share it with you")
        expect(page.get_by_role("link", name="New workspace from this image")).to_have_count(0)
    assert page_errors == []


def test_images_and_stacks_are_handed_over_from_their_own_pages(
    signed_in: Page, agent: PretendAgent
) -> None:
    page, user = signed_in, some_user(agent)
    stack = made(agent, "stacks", repository="https://git.test/shop.git", enabled=False)
    for kind, object_id in (("images", agent.image()["id"]), ("stacks", stack)):
        page.goto(f"{agent.trailer.url}/{kind}/{object_id}/?tab=access")
        page.get_by_role("button", name="Hand over").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("New owner").fill("nobody-of-this-name")
        dialog.get_by_role("button", name="Hand over").click()
        expect(dialog.get_by_label("New owner")).to_have_attribute("aria-invalid", "true")
        dialog.get_by_label("New owner").fill(user)
        dialog.get_by_role("button", name="Hand over").click()
        expect(page.get_by_role("region", name="Owner")).to_contain_text(user)
        assert agent.read(f"/{kind}/{object_id}/")["owner"] == user
        [grant] = agent.read(f"/{kind}/{object_id}/grants/")
        assert (grant["username"], grant["role"]) == ("admin", "manager")


def test_a_right_is_left_out_on_the_access_tab(signed_in: Page, agent: PretendAgent) -> None:
    page, user = signed_in, some_user(agent)
    address = f"/workspaces/{agent.workspace()['id']}/"
    page.goto(f"{agent.trailer.url}{address}?tab=access")
    page.get_by_role("button", name="Add person or group").click()
    page.locator("[name=user]:visible").fill(user)
    page.get_by_role("checkbox", name="logs").uncheck()
    save(page)
    expect(page.get_by_role("button", name=f"Remove {user}")).to_be_visible()
    expect(page.get_by_role("checkbox", name="logs")).not_to_be_checked()
    [grant] = agent.read(f"{address}grants/")
    assert (grant["role"], grant["rights"]) == ("viewer", ["inspect", "terminal"])


def test_capabilities_are_given_on_the_hosts_page(signed_in: Page, agent: PretendAgent) -> None:
    page, user = signed_in, some_user(agent)
    address = f"/hosts/{agent.host['id']}/"
    page.goto(f"{agent.trailer.url}{address}?tab=access")
    page.get_by_role("button", name="Add person or group").click()
    page.locator("[name=user]:visible").fill("nobody-of-this-name")
    page.get_by_role("checkbox", name="bind").check()
    page.get_by_role("button", name="Save access").click()
    expect(page.locator("[name=user]:visible")).to_have_attribute("aria-invalid", "true")
    page.locator("[name=user]:visible").fill(user)
    page.get_by_role("button", name="Save access").click()
    expect(page.get_by_role("button", name=f"Remove {user}")).to_be_visible()
    [entry] = agent.read(f"{address}access/")
    assert (entry["username"], entry["capabilities"]) == (user, ["bind"])


def test_addresses_of_a_network_are_chosen_where_one_may(page: Page, agent: PretendAgent) -> None:
    elsewhere, user = PretendAgent(agent.trailer).connect(), some_user(agent)
    access = [{"user": user, "capabilities": ["addresses"]}]
    agent.trailer.api("PUT", f"/hosts/{agent.host['id']}/access/", json=access)
    page.goto(f"{agent.trailer.url}/login/")
    page.locator("[name=username]").fill(user)
    page.locator("[name=password]").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{agent.trailer.url}/")
    page.goto(f"{agent.trailer.url}/networks/")
    page.get_by_role("button", name="New network").first.click()
    dialog = page.get_by_role("dialog", name="New network")
    subnet, hosts = dialog.locator("[name=subnet]"), dialog.locator("[name=host]")
    hosts.select_option(agent.host["id"])
    subnet.fill("10.1.2.0/24")
    hosts.select_option(elsewhere.host["id"])
    expect(subnet).to_be_hidden()
    dialog.locator("[name=name]").fill("lab")
    dialog.get_by_role("button", name="Create network").click()
    expect(dialog).to_be_hidden()
    [left] = elsewhere.read(f"/networks/?host={elsewhere.host['id']}")["results"]
    assert left["subnet"] == ""
    page.get_by_role("button", name="New network").first.click()
    hosts.select_option(agent.host["id"])
    dialog.locator("[name=name]").fill("lab")
    subnet.fill("10.1.2.0/24")
    dialog.get_by_role("button", name="Create network").click()
    expect(dialog).to_be_hidden()
    [chosen] = agent.read(f"/networks/?host={agent.host['id']}")["results"]
    assert chosen["subnet"] == "10.1.2.0/24"


def test_a_rollback_is_previewed_carried_out_and_listed(
    signed_in: Page, agent: PretendAgent
) -> None:
    page, workspace = signed_in, changed_workspace(agent)
    page.goto(f"{agent.trailer.url}/workspaces/{workspace['id']}/")
    page.get_by_role("tab", name="Revisions").click()
    revisions = page.locator(".revision")
    expect(revisions).to_have_count(2)
    expect(revisions.first.locator(".change")).to_have_count(2)
    expect(revisions.first).not_to_contain_text("hidden")
    revisions.last.get_by_role("button", name="Roll back").click()
    plan = page.locator("dialog [data-plan-words]")
    expect(plan).to_contain_text("Rolling back replaces the container")
    expect(plan.locator(".change").first).to_contain_text("old")
    page.get_by_role("dialog").get_by_role("button", name="Roll back").click()
    expect(revisions).to_have_count(3)
    expect(revisions.first).to_contain_text("Rolled back to revision 1.")
    after = agent.read(f"/workspaces/{workspace['id']}/")
    assert (after["revision"], after["env"], after["secret_env"]) == (3, {"MODE": "old"}, {})
