"""Cancelling, snapshots, restore, clone and unused images by hand."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from playwright.sync_api import Page, expect

if TYPE_CHECKING:
    from tests.browser.pretend_agent import PretendAgent


def running_workspace(agent: PretendAgent, **fields: Any) -> Any:
    workspace = agent.workspace(**fields)
    agent.says_workspace(workspace, "running", container_id="f" * 64)
    return workspace


def test_a_cancel_is_over_only_when_the_host_says_so(
    signed_in: Page, agent: PretendAgent, page_errors: list[str]
) -> None:
    page = signed_in
    image = agent.image(name="tools", kind="build", dockerfile="FROM busybox\n")
    agent.says_build(image, "building", progress=20)
    page.goto(f"{agent.trailer.url}/images/{image['id']}/")
    work = page.get_by_role("region", name="Under way")
    expect(work).to_contain_text("20 %")
    page.locator('[data-action="cancel"]').click()
    expect(page.locator("[data-cancelling]")).to_contain_text("Cancelling build 1.")
    expect(page.locator(f'[data-resource="image:{image["id"]}"]')).to_have_text("Building")
    assert agent.read(f"/builds/{image['current_build']}/")["cancel_requested"] is True
    agent.says_build(image, "cancelled", message="Cancelled: by a user.")
    expect(page.locator(".toast")).to_contain_text("tools: cancelled. The host has ended the work")
    expect(page.locator("[data-cancelling]")).to_have_count(0)
    expect(work).to_be_hidden()
    expect(page.locator('[data-action="cancel"]')).to_be_hidden()
    page.locator('[data-action="build"]').click()
    expect(page.get_by_role("row").nth(1)).to_contain_text("Pending")
    expect(page.get_by_role("row").nth(2)).to_contain_text("Cancelled")
    assert page_errors == []


def test_a_snapshot_is_taken_followed_and_restored(
    signed_in: Page, agent: PretendAgent, page_errors: list[str]
) -> None:
    page = signed_in
    workspace = running_workspace(agent, name="notebook")
    page.goto(f"{agent.trailer.url}/workspaces/{workspace['id']}/")
    page.locator('[data-action="snapshot"]').click()
    dialog = page.get_by_role("dialog", name="Snapshot notebook")
    name = dialog.get_by_label("Name")
    expect(name).to_have_value(re.compile(r"^notebook-\d{8}-\d{6}$"))
    expect(name).to_be_focused()
    name.fill("bad\tname")
    dialog.get_by_role("button", name="Take snapshot").click()
    expect(name).to_have_attribute("aria-invalid", "true")
    name.fill("before-upgrade")
    dialog.get_by_role("button", name="Take snapshot").click()
    expect(dialog).to_be_hidden()
    [snapshot] = agent.read(f"/images/?host={agent.host['id']}&kind=snapshot")["results"]
    assert (snapshot["name"], snapshot["source_workspace"]) == ("before-upgrade", workspace["id"])

    row = page.locator(f'[data-snapshot="{snapshot["id"]}"]')
    agent.says_workspace(workspace, "snapshotting", container_id="f" * 64)
    agent.says_build(snapshot, "building", progress=40)
    expect(row.locator("progress")).to_have_attribute("value", "40")
    expect(page.locator('[data-action="snapshot"]')).to_be_disabled()
    agent.says_build(snapshot, "finished", engine_id="sha256:5", size_bytes=5 * 1024**2)
    agent.says_workspace(workspace, "running", container_id="f" * 64)
    expect(row).to_contain_text("5 MiB")
    assert row.get_by_role("link", name="New workspace").get_attribute("href") == (
        f"/workspaces/new/?image={snapshot['id']}"
    )

    row.get_by_role("button", name="Restore").click()
    dialog = page.get_by_role("dialog", name="Restore notebook")
    expect(dialog).to_contain_text("Restoring replaces the container")
    expect(dialog.locator("ins")).to_have_text("before-upgrade")
    assert agent.read(f"/workspaces/{workspace['id']}/")["image"] == workspace["image"]
    dialog.get_by_role("button", name="Restore").click()
    expect(dialog).to_be_hidden()
    restored = agent.read(f"/workspaces/{workspace['id']}/")
    assert (restored["image"], restored["revision"]) == (snapshot["id"], 2)
    expect(row).to_contain_text("in use")
    # The refused name, and nothing else.
    assert [text for text in page_errors if "400 (Bad Request)" not in text] == []


def test_a_workspace_is_cloned_and_a_taken_name_is_told(
    signed_in: Page, agent: PretendAgent
) -> None:
    page = signed_in
    workspace = running_workspace(agent, name="web", env={"A": "1"})
    page.goto(f"{agent.trailer.url}/workspaces/{workspace['id']}/")
    page.locator('[data-action="clone"]').click()
    dialog = page.get_by_role("dialog", name="Clone web")
    expect(dialog.get_by_label("Name")).to_have_value("web-copy")
    expect(dialog.get_by_label("Host")).to_have_value(agent.host["id"])
    dialog.get_by_label("Name").fill("web")
    dialog.get_by_role("button", name="Clone").click()
    expect(dialog.get_by_label("Name")).to_have_attribute("aria-invalid", "true")
    dialog.get_by_label("Name").fill("web-two")
    dialog.get_by_role("button", name="Clone").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("web-two")
    found = agent.read(f"/workspaces/?host={agent.host['id']}&name=web-two")["results"]
    assert [row["env"] for row in found] == [{"A": "1"}]


def test_unused_images_are_chosen_previewed_and_deleted(
    signed_in: Page, agent: PretendAgent
) -> None:
    page = signed_in
    images = {}
    for name, size in (("large", 3), ("small", 1), ("kept", 2)):
        image = agent.image(name=name, reference=f"example.com/{name}:1")
        gib = size * 1024**3
        agent.says_build(image, "finished", engine_id=f"sha256:{name}", size_bytes=gib)
        images[name] = image["id"]
    page.goto(f"{agent.trailer.url}/hosts/{agent.host['id']}/?tab=images")
    total = page.locator("[data-unused-sum]")
    page.get_by_label("Choose all").check()
    expect(total).to_have_text("3 images chosen, up to 6 GiB freed.")
    page.get_by_label("Choose kept").uncheck()
    expect(total).to_have_text("2 images chosen, up to 4 GiB freed.")
    page.get_by_role("button", name="Delete chosen").click()
    dialog = page.get_by_role("dialog", name="Delete these images?")
    expect(dialog.get_by_role("listitem")).to_have_text(["large3 GiB", "small1 GiB"])
    # Somebody begins to use one of them while the question is open.
    agent.workspace(name="late", image=images["small"])
    dialog.get_by_role("button", name="Delete").click()
    expect(page.locator(".toast-error")).to_contain_text("small is used by late")
    expect(page.locator(f'[data-row="image:{images["large"]}"]')).to_have_count(0)
    left = agent.read(f"/images/?host={agent.host['id']}")["results"]
    assert {image["name"] for image in left} == {"small", "kept"}


def test_an_update_is_offered_and_pulled_and_a_check_asked_for(
    signed_in: Page, agent: PretendAgent
) -> None:
    page = signed_in
    image = agent.image(update_policy="always")
    old, new = f"sha256:{'a' * 64}", f"sha256:{'b' * 64}"
    agent.says_build(image, "finished", engine_id="sha256:1", digest=old)
    page.goto(f"{agent.trailer.url}/images/{image['id']}/")
    page.get_by_role("button", name="Check now").click()
    expect(page.locator(".toast")).to_contain_text("compares the image with its registry")
    agent.sees_image(image, digest=old, engine_id="sha256:1", available_digest=new)
    agent.says_build(image, "failed", message="The registry does not answer.")
    notice = page.locator("[data-update-available]")
    expect(notice).to_contain_text("bbbbbbbbbbbb")
    notice.get_by_role("button", name="Pull now").click()
    expect(page.locator(f'[data-resource="image:{image["id"]}"]')).to_have_text("Pending")
    agent.says_build(image, "finished", engine_id="sha256:2", digest=new)
    expect(notice).to_have_count(0)
