"""Images, hosts, networks, volumes and registries by hand."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playwright.sync_api import Page, expect

if TYPE_CHECKING:
    from tests.browser.pretend_agent import PretendAgent
    from tests.ground.server import RunningTrailer


def test_a_build_is_started_followed_and_cancelled(
    signed_in: Page, agent: PretendAgent, page_errors: list[str]
) -> None:
    page = signed_in
    page.goto(f"{agent.trailer.url}/images/new/?kind=build&host={agent.host['id']}")
    page.locator("[name=name]").fill("tools")
    page.locator("[name=dockerfile]").fill("FROM busybox\nCOPY start.sh /\n")
    page.get_by_role("button", name="Add file").click()
    page.locator("[name=path]").fill("start.sh")
    page.locator("[name=content]").fill("#!/bin/sh\n")
    page.get_by_role("button", name="Add argument").click()
    page.locator("[name=pair_name]").fill("VERSION")
    page.locator("[name=pair_value]").fill("2")
    page.get_by_label("Push after each build").check()
    page.get_by_role("button", name="Build image").click()
    expect(page.get_by_text("Give the reference to push the build to.").first).to_be_visible()
    assert [error for error in page_errors if "400 (Bad Request)" not in error] == []
    page_errors.clear()
    page.get_by_label("Push to").fill("registry.example.com/team/tools:1")
    page.get_by_role("button", name="Build image").click()
    page.wait_for_url(re.compile(r"/images/[0-9a-f-]{36}/$"))
    [image] = agent.read(f"/images/?host={agent.host['id']}")["results"]
    assert image["files"] == [{"path": "start.sh", "content": "#!/bin/sh\n"}]
    assert image["build_args"] == {"VERSION": "2"}
    assert (image["push"], image["reference"]) == (True, "registry.example.com/team/tools:1")

    shown = page.locator(f'[data-resource="image:{image["id"]}"]')
    expect(shown).to_have_text("Pending")
    agent.says_build(image, "building", progress=30)
    expect(shown).to_have_text("Building")
    expect(page.locator("progress")).to_have_attribute("value", "30")
    log = page.locator(f'[data-log="build:{image["current_build"]}"] [data-log-text]')
    first = "Step 1/2 : FROM busybox\n\x1b[31m<img src=x onerror=alert(1)>\x1b[0m\n"
    agent.writes_log(image, 0, first)
    expect(log).to_have_text("Step 1/2 : FROM busybox\n<img src=x onerror=alert(1)>\n")
    agent.writes_log(image, len(first.encode()), "Step 2/2 : COPY – done\n")
    expect(log).to_contain_text("COPY – done")
    assert log.locator("img").count() == 0

    page.locator('[data-action="cancel"]').click()
    agent.says_build(image, "cancelled", message="Cancelled by admin.")
    expect(shown).to_have_text("Cancelled")
    expect(page.locator("progress")).to_be_hidden()
    expect(page.locator("[data-log-state]")).to_have_text("complete")
    page.locator('[data-action="build"]').click()
    expect(shown).to_have_text("Pending")
    newest = agent.read(f"/images/{image['id']}/")["current_build"]
    expect(page.locator(f'[data-log="build:{newest}"]')).to_be_visible()
    expect(page.locator("[data-log-number]")).to_have_text("2")
    assert page_errors == []


def test_a_build_secret_is_given_kept_and_never_shown(
    signed_in: Page, agent: PretendAgent, page_errors: list[str]
) -> None:
    page = signed_in
    page.goto(f"{agent.trailer.url}/images/new/?kind=build&host={agent.host['id']}")
    page.locator("[name=name]").fill("secretive")
    page.locator("[name=dockerfile]").fill("FROM busybox\nRUN --mount=type=secret,id=key true\n")
    page.get_by_role("button", name="Add secret").click()
    page.get_by_label("Secret name").fill("key")
    page.get_by_label("Secret value").fill("first-line-of-key\nsecond\n")
    page.get_by_role("button", name="Build image").click()
    page.wait_for_url(re.compile(r"/images/[0-9a-f-]{36}/$"))
    [image] = agent.read(f"/images/?host={agent.host['id']}")["results"]
    assert image["build_secrets"] == {"key": None}
    page.locator("summary", has_text="Settings").click()
    assert "first-line-of-key" not in page.content()
    expect(page.get_by_label("Secret value")).to_have_attribute("placeholder", "unchanged")
    page.get_by_role("button", name="Add secret").click()
    page.get_by_label("Secret name").last.fill("other")
    page.get_by_label("Secret value").last.fill("more")
    with page.expect_navigation():
        page.get_by_role("button", name="Save changes").click()
    after = agent.read(f"/images/{image['id']}/")
    assert (after["build_secrets"], after["revision"]) == ({"key": None, "other": None}, 2)
    assert page_errors == []


def test_an_image_in_use_says_by_what(signed_in: Page, agent: PretendAgent) -> None:
    page = signed_in
    image = agent.image()
    workspace = agent.workspace(image=image["id"])
    page.goto(f"{agent.trailer.url}/images/{image['id']}/")
    page.locator('[data-action="delete"]').click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.locator(".toast-error")).to_contain_text(workspace["name"])
    assert agent.read(f"/images/{image['id']}/")["id"] == image["id"]


def test_a_host_is_named_disabled_enabled_and_set(
    signed_in: Page, pages_server: RunningTrailer
) -> None:
    page = signed_in
    page.goto(f"{pages_server.url}/hosts/")
    page.get_by_role("button", name="Add host").first.click()
    dialog = page.get_by_role("dialog", name="Add a host")
    dialog.get_by_role("button", name="Add host").click()
    expect(dialog.locator("[name=name]")).to_have_attribute("aria-invalid", "true")
    dialog.locator("[name=name]").fill("made-by-hand")
    dialog.get_by_role("button", name="Add host").click()
    page.wait_for_url(re.compile(r"/hosts/[0-9a-f-]{36}/$"))
    address = page.url
    path = address.removeprefix(pages_server.url)
    page.goto(f"{address}?tab=settings")
    page.locator("[name=reconcile_interval]").fill("7")
    page.locator("[name='metrics.gpu']").uncheck()
    page.get_by_role("button", name="Save changes").click()
    expect(page.locator(".toast")).to_contain_text("Saved.")
    host = pages_server.api("GET", path).json()
    assert (host["reconcile_interval"], host["metrics"]["gpu"]) == (7, False)
    assert host["metrics"]["host"] is True

    page.locator('[data-action="disable"]').click()
    page.get_by_role("dialog").get_by_role("button", name="Disable").click()
    expect(page.locator(f'[data-resource="host:{host["id"]}"]')).to_have_text("Disabled")
    page.locator('[data-action="enable"]').click()
    expect(page.locator(f'[data-resource="host:{host["id"]}"]')).to_have_text("Pending")


def test_networks_come_and_go_and_bad_ones_are_told_inline(
    signed_in: Page, agent: PretendAgent
) -> None:
    page = signed_in
    page.goto(f"{agent.trailer.url}/networks/")
    page.get_by_role("button", name="New network").first.click()
    dialog = page.get_by_role("dialog", name="New network")
    dialog.locator("[name=name]").fill("office")
    dialog.locator("[name=host]").select_option(agent.host["id"])
    dialog.locator("[name=subnet]").fill("10.1.2.3/33")
    dialog.get_by_role("button", name="Create network").click()
    expect(dialog.locator("[name=subnet]")).to_have_attribute("aria-invalid", "true")
    dialog.locator("[name=subnet]").fill("10.1.2.0/24")
    dialog.get_by_role("button", name="Create network").click()
    expect(dialog).to_be_hidden()
    [network] = agent.read(f"/networks/?host={agent.host['id']}")["results"]
    row = page.locator(f'[data-row="network:{network["id"]}"]')
    expect(row).to_contain_text("10.1.2.0/24")
    row.locator('[data-action="delete"]').click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(row).to_have_count(0)
    assert agent.read(f"/networks/?host={agent.host['id']}")["count"] == 0


def test_a_volume_goes_only_with_its_name(signed_in: Page, agent: PretendAgent) -> None:
    page = signed_in
    page.goto(f"{agent.trailer.url}/volumes/")
    page.get_by_role("button", name="New volume").first.click()
    dialog = page.get_by_role("dialog", name="New volume")
    dialog.locator("[name=name]").fill("papers")
    dialog.locator("[name=host]").select_option(agent.host["id"])
    dialog.get_by_role("button", name="Create volume").click()
    expect(dialog).to_be_hidden()
    [volume] = agent.read(f"/volumes/?host={agent.host['id']}")["results"]
    row = page.locator(f'[data-row="volume:{volume["id"]}"]')
    row.locator('[data-action="delete"]').click()
    question = page.get_by_role("dialog", name="Delete papers?")
    expect(question.get_by_role("button", name="Delete")).to_be_disabled()
    question.get_by_role("textbox").fill("papers")
    question.get_by_role("button", name="Delete").click()
    expect(row).to_have_count(0)
    assert agent.read(f"/volumes/?host={agent.host['id']}")["count"] == 0


def test_a_registry_password_is_never_shown_again(
    signed_in: Page, pages_server: RunningTrailer
) -> None:
    page = signed_in
    page.goto(f"{pages_server.url}/registries/")
    page.get_by_role("button", name="Add credential").first.click()
    dialog = page.get_by_role("dialog", name="Add a registry credential")
    dialog.locator("[name=server]").fill("registry.example.com:5000")
    dialog.locator("[name=username]").fill("robot")
    dialog.locator("[name=password]").fill("s3cr3t-pass")
    dialog.get_by_role("button", name="Add credential").click()
    expect(page.get_by_role("cell", name="registry.example.com:5000", exact=True)).to_be_visible()
    for field in page.locator("[name=password]").all():
        expect(field).to_have_value("")
    page.reload()
    assert "s3cr3t-pass" not in page.content()
    page.locator('[data-action="delete"]').click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No registry credentials")).to_be_visible()
