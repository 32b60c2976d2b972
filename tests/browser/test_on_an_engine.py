"""Charts, palette, search, a phone's menu and enrolment in a browser, on a real engine."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Page, expect

from tests.browser.host_figures import drawn
from tests.e2e.scenario import User
from tests.ground import process
from tests.ground.server import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import docker

    from tests.ground.server import RunningTrailer

COUNTS = "i=0; while [ $i -lt 999 ]; do i=$((i+1)); done; sleep 0.2"
BURNS = ["sh", "-c", f"trap 'exit 0' TERM; while :; do {COUNTS}; done"]


@pytest.fixture
def user(trailer: RunningTrailer) -> User:
    return User(trailer)


def test_what_a_container_uses_is_drawn_and_follows(
    on_engine: Page, user: User, page_errors: list[str]
) -> None:
    page, host = on_engine, user.online_host()
    user.patch(f"/hosts/{host['id']}/", {"heartbeat_interval": 1})
    workspace = user.running("burner", command=BURNS, memory_bytes=64 * 1024**2)
    page.goto(f"{user.trailer.url}/workspaces/{workspace['id']}/?tab=metrics")
    charts = page.locator(f'[data-chart="workspace:{workspace["id"]}"] figure')
    memory = charts.filter(has_text="Memory")
    expect(memory.locator(".chart-values")).to_contain_text(re.compile(r"\d+ [KM]iB"))
    cpu = charts.filter(has_text="CPU")
    expect(cpu.locator("[role=img]")).to_have_attribute(
        "aria-label", re.compile(r"^CPU over the last hour: now (0\.0*)?[1-9]")
    )
    assert drawn(page), "nothing is drawn on the canvas"
    page.get_by_role("tab", name="Overview").click()
    bars = page.locator(f'[data-usage="workspace:{workspace["id"]}"]')
    expect(bars.locator('[data-meter="memory"]')).to_contain_text("iB")

    page.goto(f"{user.trailer.url}/hosts/{host['id']}/")
    bars = page.locator(f'[data-usage="host:{host["id"]}"]')
    expect(bars.locator('[data-meter="disk"]')).to_contain_text("iB")
    assert drawn(page), "nothing is drawn on the canvas"
    page.get_by_role("tab", name="Cycles").click()
    lane = page.locator(".lane", has_text="burner")
    page.locator("details.cycle", has=lane).first.locator("summary").click()
    expect(lane.first).to_be_visible()
    user.patch(f"/hosts/{host['id']}/", {"heartbeat_interval": host["heartbeat_interval"]})
    assert page_errors == []


def test_the_palette_finds_goes_and_stops_a_container_without_a_mouse(
    on_engine: Page, user: User, engine_docker: docker.DockerClient, page_errors: list[str]
) -> None:
    page = on_engine
    workspace = user.running("palette-one")
    user.workspace("palette-two", image=workspace["image"], desired_state="stopped")
    palette = page.get_by_role("dialog", name="Search everything")
    box = palette.get_by_role("combobox")
    chosen = palette.locator('[role="option"][aria-selected="true"]')

    page.keyboard.press("/")
    expect(box).to_be_focused()
    expect(palette.get_by_role("option", name="New workspace")).to_be_visible()
    page.keyboard.press("Escape")
    expect(palette).to_be_hidden()

    page.keyboard.press("Control+k")
    page.keyboard.type("palette")
    expect(palette.get_by_role("option", name="palette-two").first).to_be_visible()
    expect(chosen).to_contain_text("palette-one")
    page.keyboard.press("ArrowDown")
    expect(chosen).to_contain_text("palette-two")
    assert box.get_attribute("aria-activedescendant") == chosen.get_attribute("id")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{user.trailer.url}/workspaces/{workspace['id']}/")

    page.evaluate("window.notReloaded = true")
    page.keyboard.press("Control+k")
    page.keyboard.type("stop palette-one")
    expect(chosen).to_contain_text("Stop palette-one")
    page.keyboard.press("Enter")
    expect(page.locator(".toast")).to_contain_text("Stop palette-one: requested.")
    shown = page.locator(f'[data-resource="workspace:{workspace["id"]}"]')
    expect(shown).to_have_text("Stopped")
    assert engine_docker.containers.get("trailer-palette-one").status == "exited"
    assert page.evaluate("window.notReloaded")

    _leaves_fields_alone(page, user.trailer, workspace["id"])
    assert [text for text in page_errors if "/ws/workspaces/" not in text] == []


def _leaves_fields_alone(page: Page, trailer: RunningTrailer, workspace_id: str) -> None:
    palette = page.get_by_role("dialog", name="Search everything")
    page.keyboard.press("Control+k")
    page.keyboard.type("logs palette-one")
    chosen = palette.locator('[role="option"][aria-selected="true"]')
    expect(chosen).to_contain_text("Logs of palette-one")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{trailer.url}/workspaces/{workspace_id}/?tab=logs")
    page.get_by_label("Search the logs").focus()
    page.keyboard.type("/")
    expect(palette).to_be_hidden()
    page.keyboard.press("Control+k")
    page.keyboard.type("zzz-nothing")
    expect(palette).to_contain_text("Nothing fits")


def test_on_a_phone_the_menu_leads_to_a_list_that_lives_and_is_searched(
    on_engine: Page, user: User
) -> None:
    page = on_engine
    workspace = user.running("mobile-a")
    user.workspace("mobile-b", image=workspace["image"], desired_state="stopped")
    page.set_viewport_size({"width": 390, "height": 800})
    link = page.get_by_role("navigation", name="Main").get_by_role("link", name="Workspaces")
    expect(link).to_be_hidden()
    page.get_by_role("button", name="Navigation").click()
    expect(link).to_be_visible()
    page.keyboard.press("Escape")
    expect(link).to_be_hidden()
    page.get_by_role("button", name="Navigation").click()
    link.click()
    page.wait_for_url(f"{user.trailer.url}/workspaces/")
    expect(page.locator("[data-row]")).to_have_count(2)
    page.get_by_label("Search workspaces").fill("ile-a")
    expect(page.locator("[data-row]")).to_have_count(1)
    page.wait_for_url("**/workspaces/?**search=ile-a**")
    page.evaluate("window.notReloaded = true")
    row = page.locator(f'[data-row="workspace:{workspace["id"]}"]')
    shown = row.locator(f'[data-resource="workspace:{workspace["id"]}"]')
    row.locator('[data-action="stop"]').click()
    expect(shown).to_have_text("Stopped")
    row.locator('[data-action="start"]').click()
    expect(shown).to_have_text("Running")
    assert page.evaluate("window.notReloaded")


@pytest.fixture
def start_agent(trailer: RunningTrailer, tmp_path: Path) -> Iterator[Callable[[str], None]]:
    """Start an agent as the pasted line does, only without the container around it."""
    started: list[process.Child] = []

    def start(token: str) -> None:
        ours = {
            "TRAILER_SERVER_URL": trailer.url,
            "TRAILER_AGENT_STATE_DIR": str(tmp_path / "agent"),
            "TRAILER_ENROLMENT_TOKEN": token,
            "DOCKER_HOST": trailer.docker_host,
        }
        command = [sys.executable, "-m", "agent", "run"]
        environment = {**os.environ, **ours}
        started.append(process.start(command, tmp_path / "log", env=environment, cwd=ROOT))

    yield start
    for child in started:
        process.stop(child)


def test_a_host_is_added_and_its_line_turns_green_when_its_agent_comes(
    on_engine: Page,
    user: User,
    engine_docker: docker.DockerClient,
    start_agent: Callable[[str], None],
    page_errors: list[str],
) -> None:
    page = on_engine
    page.goto(f"{user.trailer.url}/hosts/")
    page.get_by_role("button", name="Add host").first.click()
    dialog = page.get_by_role("dialog", name="Add a host")
    dialog.locator("[name=name]").fill("second")
    dialog.get_by_role("button", name="Add host").click()
    page.wait_for_url(re.compile(r"/hosts/[0-9a-f-]{36}/$"))
    host_id = page.url.rstrip("/").rpartition("/")[2]
    expect(page.get_by_text("Not connected yet")).to_be_visible()
    page.get_by_role("button", name="Connect agent").click()
    command = page.locator("[data-enrol-command]")
    expect(command).to_contain_text("docker run -d --name trailer-agent")
    with page.expect_response(re.compile("/enrolment/")) as answered:
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Connect agent").click()
    expect(command).to_have_text(answered.value.json()["command"])
    wait = page.locator("[data-enrol-wait]")
    expect(wait).to_contain_text("Waiting")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy", exact=True).click()
    expect(page.locator(".toast", has_text="Copied.")).to_be_visible()
    line = page.evaluate("navigator.clipboard.readText()")
    assert line == command.inner_text()
    start_agent(line.split("TRAILER_ENROLMENT_TOKEN=")[1].split()[0])
    expect(wait).to_contain_text("Connected: the agent of this host is online.")
    expect(wait).to_have_class("notice notice-green")
    # Behind the dialog the page has become that of a connected host.
    expect(page.locator(f'[data-resource="host:{host_id}"]')).to_have_text("Online")
    page.keyboard.press("Escape")
    expect(page.get_by_text(f"Docker {engine_docker.version()['Version']}")).to_be_visible()
    expect(page.locator(f'[data-chart="host:{host_id}"]')).to_have_count(1)
    # What the page draws again after the host was disabled may find it deleted.
    assert page_errors == []
    user.patch(f"/hosts/{host_id}/", {"enabled": False})
    user.delete(f"/hosts/{host_id}/")
    page.wait_for_url(f"{user.trailer.url}/hosts/")
