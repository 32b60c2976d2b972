"""Making, changing and deleting workspaces by hand: form, errors, preview, question."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from playwright.sync_api import Page, expect

if TYPE_CHECKING:
    from tests.browser.pretend_agent import PretendAgent


def workspaces_of(agent: PretendAgent) -> list[Any]:
    found: list[Any] = agent.read(f"/workspaces/?host={agent.host['id']}")["results"]
    return found


def open_new(page: Page, agent: PretendAgent) -> None:
    page.goto(f"{agent.trailer.url}/workspaces/new/?host={agent.host['id']}")


def test_a_newcomer_gets_a_workspace_from_a_reference_in_one_form(
    signed_in: Page, agent: PretendAgent, page_errors: list[str]
) -> None:
    page = signed_in
    open_new(page, agent)
    page.get_by_label("Name", exact=True).fill("first")
    page.get_by_label("Image reference").fill("debian:12")
    page.get_by_role("button", name="Create workspace").click()
    page.wait_for_url(re.compile(r"/workspaces/[0-9a-f-]{36}/$"))
    expect(page.get_by_role("heading", level=1)).to_have_text("first")
    [workspace] = workspaces_of(agent)
    shown = page.locator(f'[data-resource="workspace:{workspace["id"]}"]')
    expect(shown).to_have_text("Deployment pending")
    image = agent.read(f"/images/{workspace['image']}/")
    assert (image["kind"], image["reference"]) == ("pull", "debian:12")
    agent.says_workspace(workspace, "running")
    expect(shown).to_have_text("Running")
    assert page_errors == []


def test_every_part_of_the_form_reaches_the_api(signed_in: Page, agent: PretendAgent) -> None:
    page = signed_in
    api = agent.trailer.api
    image = agent.image()
    host = agent.host["id"]
    network = api("POST", "/networks/", {"name": "backend", "host": host}).json()
    volume = api("POST", "/volumes/", {"name": "data", "host": host}).json()
    open_new(page, agent)
    _fill_every_part(page, image["id"])
    page.get_by_role("button", name="Create workspace").click()
    gpus = page.locator("[name='gpus.device_ids']")
    expect(gpus).to_have_attribute("aria-invalid", "true")
    expect(page.locator(".field-error")).to_have_text(re.compile("has no GPU GPU-1"))
    gpus.fill("")
    page.get_by_role("button", name="Create workspace").click()
    page.wait_for_url(re.compile(r"/workspaces/[0-9a-f-]{36}/$"))

    [made] = workspaces_of(agent)
    assert made["name"] == "whole"
    assert (made["cpus"], made["memory_bytes"], made["shm_bytes"]) == (1.5, 512 * 2**20, 2**27)
    assert (made["env"], made["secret_env"]) == ({"COLOUR": "dark blue"}, {"TOKEN": None})
    [port] = made["ports"]
    assert (port["container_port"], port["host_port"], port["protocol"]) == (8080, 18080, "tcp")
    assert made["mounts"] == [{"volume": volume["id"], "target": "/data", "read_only": True}]
    assert made["networks"] == [network["id"]]
    assert made["command"] == ["sh", "-c", 'sleep 1; echo "two words"']
    assert made["health_check"]["test"] == ["CMD-SHELL", "test -e /ready"]
    assert made["gpus"] is None
    address = {"subdomain": "whole", "domain": "example.com", "port": 8080, "tls": True}
    assert made["urls"] == [address | {"auth": "users"}]
    assert (made["schedule"], made["idle_stop_minutes"]) == ({"stop": "0 20 * * *"}, 90)
    assert (made["labels"], made["desired_state"]) == ({"team": "blue"}, "stopped")
    assert "s3cr3t" not in page.content()


def _fill_every_part(page: Page, image_id: str) -> None:
    page.locator("[name=name]").fill("whole")
    page.locator("[name=image]").select_option(image_id)
    page.locator("[name=cpus]").fill("1.5")
    page.locator("[name=memory_bytes]").fill("512 MiB")
    expect(page.get_by_text("= 512 MiB, 536,870,912 bytes")).to_be_visible()
    page.locator("[name=shm_bytes]").fill("134217728")
    page.get_by_role("button", name="Add variable").click()
    page.locator("[name=env_name]").fill("COLOUR")
    page.locator("[name=env_value]").fill("dark blue")
    page.get_by_role("button", name="Add variable").click()
    page.locator("[name=env_name]").nth(1).fill("TOKEN")
    page.locator("[name=env_value]").nth(1).fill("s3cr3t")
    page.get_by_label("Secret").nth(1).check()
    expect(page.locator("[name=env_value]").nth(1)).to_have_attribute("type", "password")
    page.get_by_role("button", name="Add port").click()
    page.locator("[name=container_port]").fill("8080")
    page.locator("[name=host_port]").fill("18080")
    page.get_by_role("button", name="Add mount").click()
    page.locator("[name=target]").fill("/data")
    page.get_by_label("Read-only").check()
    page.get_by_label("Keep the work folder in a new volume").uncheck()
    expect(page.get_by_label("Work folder", exact=True)).to_be_hidden()
    page.get_by_label("backend").check()
    page.locator("[name=command]").fill("sh -c 'sleep 1; echo \"two words\"'")
    page.locator("[name='health_check.test']").fill("test -e /ready")
    page.locator("[name='gpus.device_ids']").fill("GPU-1, GPU-2")
    page.get_by_role("button", name="Add URL").click()
    page.locator("[name=subdomain]").fill("whole")
    page.locator("[name=domain]").fill("example.com")
    page.get_by_label("Container port of the URL").fill("8080")
    page.get_by_label("TLS").check()
    page.locator("[name='schedule.stop']").fill("0 20 * * *")
    page.locator("[name=idle_stop_minutes]").fill("90")
    page.get_by_role("button", name="Add label").click()
    page.get_by_label("Label name").fill("team")
    page.get_by_label("Label value").fill("blue")
    page.locator("[name=desired_state]").select_option("stopped")


def test_the_api_s_sentences_stand_beside_the_inputs(signed_in: Page, agent: PretendAgent) -> None:
    page = signed_in
    image = agent.image()
    open_new(page, agent)
    page.locator("[name=name]").fill("Not Allowed")
    page.locator("[name=image]").select_option(image["id"])
    page.locator("[name=memory_bytes]").fill("1 KiB")
    page.get_by_role("button", name="Add port").click()
    page.locator("[name=container_port]").fill("99999")
    page.get_by_role("button", name="Create workspace").click()
    name = page.locator("[name=name]")
    expect(name).to_have_attribute("aria-invalid", "true")
    expect(name).to_be_focused()
    for field in ("name", "memory_bytes", "container_port"):
        control = page.locator(f"[name={field}]")
        expect(control).to_have_attribute("aria-invalid", "true")
        error = page.locator(f"#{control.get_attribute('aria-errormessage')}")
        expect(error).to_be_visible()
        expect(error).to_have_text(re.compile(r"\.$"))
    expect(page.locator(".toast-error")).to_be_visible()
    name.fill("allowed")
    expect(name).not_to_have_attribute("aria-invalid", "true")
    assert workspaces_of(agent) == []


def test_a_refused_workspace_does_not_pull_its_image_twice(
    signed_in: Page, agent: PretendAgent
) -> None:
    page = signed_in
    open_new(page, agent)
    page.locator("[name=name]").fill("WRONG")
    page.locator("[name=reference]").fill("debian:12")
    page.get_by_role("button", name="Create workspace").click()
    expect(page.locator("[name=name]")).to_have_attribute("aria-invalid", "true")
    page.locator("[name=name]").fill("right")
    page.get_by_role("button", name="Create workspace").click()
    page.wait_for_url(re.compile(r"/workspaces/[0-9a-f-]{36}/$"))
    assert agent.read(f"/images/?host={agent.host['id']}")["count"] == 1


def test_the_form_offers_only_what_is_on_the_chosen_host(
    signed_in: Page, agent: PretendAgent
) -> None:
    page = signed_in
    here = agent.image(name="here")
    open_new(page, agent)
    offered = page.locator("[name=image] option:not([hidden])")
    expect(offered).to_have_count(2)
    expect(page.locator("[name=image]")).to_have_value(here["id"])
    expect(page.locator("[name=reference]")).to_be_hidden()
    page.locator("[name=image]").select_option(label="Pull a new image…")
    expect(page.locator("[name=reference]")).to_be_visible()


def test_an_edit_is_previewed_and_then_saved_as_only_what_changed(
    signed_in: Page, agent: PretendAgent
) -> None:
    page = signed_in
    workspace = agent.workspace(env={"A": "1"}, secret_env={"TOKEN": "s3cr3t"}, cpus=1)
    agent.says_workspace(workspace, "running", container_id="c" * 64)
    page.goto(f"{agent.trailer.url}/workspaces/{workspace['id']}/")
    page.get_by_role("tab", name="Settings").click()
    save = page.get_by_role("button", name="Save changes")
    plan = page.locator("[data-plan-words]")
    expect(plan).to_have_text("Nothing changed.")
    expect(save).to_be_disabled()

    page.locator("[name=description]").fill("Only words")
    expect(plan).to_contain_text("Saving changes nothing on the host.")
    page.locator("[name=cpus]").fill("2")
    expect(plan).to_contain_text("Saving replaces the container, with a brief interruption.")
    expect(plan).to_contain_text("Why it is interrupted: It has no health check.")
    expect(plan.locator(".change").first).to_contain_text("cpus1→2replaces")
    page.get_by_label("Two copies of it may share its volumes").check()
    expect(plan).to_contain_text("shared_volumes")
    page.locator("[name=memory_bytes]").fill("1 KiB")
    expect(page.locator("[name=memory_bytes]")).to_have_attribute("aria-invalid", "true")
    page.locator("[name=memory_bytes]").fill("")
    expect(plan).to_contain_text("Saving replaces the container")

    with page.expect_request(lambda request: request.method == "PATCH") as sent:
        save.click()
    assert json.loads(sent.value.post_data or "") == {
        "description": "Only words",
        "cpus": 2,
        "shared_volumes": True,
        "refuse_loss": True,
    }
    assert sent.value.headers["if-match"] == "1"
    # The agent says nothing of what the container wrote.
    with page.expect_request(lambda request: request.method == "PATCH") as sent:
        page.get_by_role("dialog").get_by_role("button", name="Go on").click()
    assert json.loads(sent.value.post_data or "") == {
        "description": "Only words",
        "cpus": 2,
        "shared_volumes": True,
    }
    assert sent.value.headers["if-match"] == "1"
    expect(page.locator(".toast")).to_contain_text("Saved.")
    after = agent.read(f"/workspaces/{workspace['id']}/")
    assert (after["cpus"], after["description"], after["revision"]) == (2, "Only words", 2)
    assert after["secret_env"] == {"TOKEN": None}


def test_an_edit_over_somebody_else_s_is_told_and_nothing_typed_is_lost(
    signed_in: Page, agent: PretendAgent
) -> None:
    page = signed_in
    workspace = agent.workspace()
    path = f"/workspaces/{workspace['id']}/"
    page.goto(f"{agent.trailer.url}{path}?tab=settings")
    mine = page.locator("[name=description]")
    mine.fill("mine")

    # Neither a live update nor a look at another tab touches what was typed.
    agent.says_workspace(workspace, "running", container_id="d" * 64)
    shown = page.locator(f'[data-resource="workspace:{workspace["id"]}"]')
    expect(shown).to_have_text("Running")
    page.get_by_role("tab", name="Events").click()
    expect(mine).to_have_count(0)
    page.get_by_role("tab", name="Settings").click()
    expect(mine).to_have_value("mine")

    assert agent.trailer.api("PATCH", path, {"description": "theirs"}).ok
    page.get_by_role("button", name="Save changes").click()
    notice = page.locator("[data-conflict]")
    expect(notice).to_contain_text("This was changed while you were editing.")
    expect(notice).to_contain_text("admin changed:")
    expect(notice.locator("ins")).to_have_text("theirs")
    assert agent.read(path)["description"] == "theirs"
    expect(mine).to_have_value("mine")
    notice.get_by_role("button", name="Keep my edits").click()
    expect(page.locator(".toast", has_text="Saved.")).to_be_visible()
    expect(mine).to_have_value("mine")
    expect(page.locator("[data-plan-words]")).to_have_text("Nothing changed.")
    assert agent.read(path)["description"] == "mine"


def test_an_action_on_the_page_is_no_conflict_with_its_edit(
    signed_in: Page, agent: PretendAgent
) -> None:
    page = signed_in
    workspace = agent.workspace()
    agent.says_workspace(workspace, "running")
    path = f"/workspaces/{workspace['id']}/"
    page.goto(f"{agent.trailer.url}{path}?tab=settings")
    page.locator("[name=description]").fill("edited")
    page.locator('[data-action="stop"]').click()
    expect(page.locator(f'[data-resource="workspace:{workspace["id"]}"]')).to_have_text("Stopping")
    page.get_by_role("button", name="Save changes").click()
    expect(page.locator(".toast")).to_contain_text("Saved.")
    assert agent.read(path)["description"] == "edited"


def test_start_and_stop_are_one_press_and_the_badge_answers_at_once(
    signed_in: Page, agent: PretendAgent
) -> None:
    page = signed_in
    workspace = agent.workspace()
    agent.says_workspace(workspace, "running")
    page.goto(f"{agent.trailer.url}/workspaces/{workspace['id']}/")
    shown = page.locator(f'[data-resource="workspace:{workspace["id"]}"]')
    page.locator('[data-action="stop"]').click()
    expect(shown).to_have_text("Stopping")
    agent.says_workspace(workspace, "stopped")
    expect(shown).to_have_text("Stopped")
    expect(page.locator('[data-action="stop"]')).to_be_disabled()
    page.locator('[data-action="start"]').click()
    expect(shown).not_to_have_text("Stopped")
    assert agent.read(f"/workspaces/{workspace['id']}/")["desired_state"] == "running"


def test_a_workspace_is_deleted_only_by_typing_its_name(
    signed_in: Page, agent: PretendAgent
) -> None:
    page = signed_in
    workspace = agent.workspace(name="precious")
    page.goto(f"{agent.trailer.url}/workspaces/{workspace['id']}/?tab=danger")
    page.locator('[data-action="delete"]').click()
    dialog = page.get_by_role("dialog", name="Delete precious?")
    sure = dialog.get_by_role("button", name="Delete")
    expect(sure).to_be_disabled()
    dialog.get_by_role("textbox").fill("wrong")
    expect(sure).to_be_disabled()
    dialog.get_by_role("textbox").fill("precious")
    dialog.get_by_role("textbox").press("Enter")
    page.wait_for_url(f"{agent.trailer.url}/workspaces/")
    expect(page.locator(".toast")).to_contain_text("precious was deleted.")
    assert workspaces_of(agent) == []


def test_escape_keeps_it(signed_in: Page, agent: PretendAgent) -> None:
    page = signed_in
    workspace = agent.workspace()
    page.goto(f"{agent.trailer.url}/workspaces/?host={agent.host['id']}")
    row = page.locator(f'[data-row="workspace:{workspace["id"]}"]')
    row.locator('[data-action="delete"]').click()
    page.keyboard.press("Escape")
    expect(page.locator("#confirm")).to_be_hidden()
    expect(row).to_be_visible()
    assert len(workspaces_of(agent)) == 1
