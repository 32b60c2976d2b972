"""Pages of hosts: charts, bars, the waterfall of cycles and settings, live."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from playwright.sync_api import Page, Route, expect

from agent.protocol.report import Leftover, LeftoversReport
from tests.browser.accessibility import serious_violations
from tests.browser.host_figures import GIB, cycle, drawn, metrics, sampled, step
from tests.browser.pretend_agent import PretendAgent
from tests.browser.server_rows import mark_restored

if TYPE_CHECKING:
    from tests.ground.server import RunningTrailer

# Of what these pages draw; the frame of every page has its own test.
RULES = ("color-contrast", "aria-meter-name", "role-img-alt", "svg-img-alt", "summary-name")


def test_a_host_shows_what_is_in_use_and_follows_its_agent(
    signed_in: Page, agent: PretendAgent, page_errors: list[str]
) -> None:
    page, workspace = signed_in, agent.workspace(memory_bytes=4 * GIB)
    sampled(agent, 2, cpu=25.0, workspace=workspace)
    page.goto(f"{agent.trailer.url}/hosts/{agent.host['id']}/")
    bars = page.locator(f'[data-usage="host:{agent.host["id"]}"]')
    expect(bars.locator('[data-meter="cpu"]')).to_contain_text("25 %")
    expect(bars.locator('[data-meter="memory"]')).to_contain_text("4 GiB")
    expect(bars.locator('[data-meter="disk"]')).to_have_class("meter is-full")
    charts = page.locator(f'[data-chart="host:{agent.host["id"]}"] figure')
    expect(charts).to_have_count(7)
    cpu = charts.filter(has_text="CPU")
    expect(cpu.locator(".chart-values")).to_contain_text("25 %")
    expect(cpu.locator("[role=img]")).to_have_attribute(
        "aria-label", "CPU over the last hour: now 25 %, from 25 % to 25 %"
    )
    assert drawn(page), "nothing is drawn on the canvas"
    assert serious_violations(page, *RULES) == []

    # A new sample moves bars and charts without a reload.
    page.evaluate("window.notReloaded = true")
    sampled(agent, 3, cpu=75.0, workspace=workspace)
    expect(bars.locator('[data-meter="cpu"]')).to_contain_text("75 %")
    expect(cpu.locator(".chart-values")).to_contain_text("75 %")

    # Other ranges, by keyboard, keep the charts.
    page.get_by_role("button", name="1 h", exact=True).focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="6 h")).to_have_attribute("aria-pressed", "true")
    expect(cpu.locator("[role=img]")).to_have_attribute("aria-label", re.compile("last 6 hours"))
    page.get_by_role("tab", name="Workspaces").click()
    row = page.locator(f'[data-usage="workspace:{workspace["id"]}"]')
    expect(row.locator('[data-meter="cpu"]')).to_contain_text("150 %")
    expect(row.locator('[data-meter="memory"]')).to_contain_text("1 GiB")
    assert page.evaluate("window.notReloaded === true")
    assert page_errors == []


def test_the_waterfall_shows_each_step_and_stays_open_when_more_comes(
    signed_in: Page, agent: PretendAgent, page_errors: list[str]
) -> None:
    page, now = signed_in, datetime.now(UTC)
    agent.says(
        cycle(
            7,
            step("stop_container", now, 0.0, 1000),
            step("create_container", now, 1.0, 3000, outcome="failed", message="No such image."),
            began=now,
            seconds=4,
        )
    )
    page.goto(f"{agent.trailer.url}/hosts/{agent.host['id']}/?tab=cycles")
    shown = page.locator("details.cycle", has_text="#7")
    expect(shown).to_contain_text("1 failed")
    shown.locator("summary").focus()
    page.keyboard.press("Enter")
    lanes = shown.locator(".lane")
    expect(lanes).to_have_count(2)
    expect(lanes.nth(0)).to_contain_text("image changed from app:1 to app:2")
    expect(lanes.nth(1)).to_contain_text("No such image.")
    expect(lanes.nth(1)).to_be_visible()
    # All at once: the list may be drawn anew between two questions.
    first, second = shown.locator(".lane rect").evaluate_all(
        "bars => bars.map((bar) => bar.getBoundingClientRect().toJSON())"
    )
    assert abs(second["x"] - (first["x"] + first["width"])) < 3, "the second begins at its end"
    assert 2.8 < second["width"] / first["width"] < 3.2

    agent.says(cycle(8, step("start", now, 0, 10), began=now, seconds=1))
    expect(page.locator("details.cycle", has_text="#8")).to_be_visible()
    expect(lanes.nth(1)).to_be_visible()
    expect(shown.locator("summary")).to_be_focused()
    assert serious_violations(page, *RULES) == []
    assert page_errors == []


def test_leftovers_are_listed_with_the_reason(signed_in: Page, agent: PretendAgent) -> None:
    left = Leftover(resource="container", name="postgres", engine_id="ab" * 32, reason="foreign")
    agent.says(LeftoversReport(seq=0, leftovers=(left,)))
    signed_in.goto(f"{agent.trailer.url}/hosts/{agent.host['id']}/?tab=leftovers")
    row = signed_in.get_by_role("row", name="postgres")
    expect(row).to_contain_text("Made by somebody else.")
    expect(row).to_contain_text("abababababab")


def test_settings_are_saved_and_reach_the_agent(signed_in: Page, agent: PretendAgent) -> None:
    page = signed_in
    page.goto(f"{agent.trailer.url}/hosts/{agent.host['id']}/?tab=settings")
    page.get_by_label("Of workspaces").uncheck()
    page.get_by_label("Keep containers from metadata addresses").uncheck()
    page.get_by_label("Kept for").fill("30")
    page.get_by_label("Maintenance").fill("0 4 * * 0")
    page.get_by_label("Mode").select_option("traefik-files")
    page.get_by_role("button", name="Save changes").click()
    expect(page.locator(".toast")).to_contain_text("Saved")
    settings = agent.state()["settings"]
    assert settings["metrics"] == {
        "host": True,
        "gpu": True,
        "workspace": False,
        "retention_days": 30,
    }
    assert settings["maintenance_schedule"] == "0 4 * * 0"
    assert settings["router"]["mode"] == "traefik-files"
    assert settings["block_metadata"] is False


def test_a_silent_host_and_a_wrong_clock_say_so(
    signed_in: Page, pages_server: RunningTrailer
) -> None:
    page = signed_in
    agent = PretendAgent(pages_server, heartbeat_interval=1).connect()
    ahead = datetime.now(UTC) + timedelta(minutes=10)
    agent.beat(metrics=metrics(5.0), agent_time=ahead.isoformat())
    page.goto(f"{pages_server.url}/hosts/{agent.host['id']}/")
    expect(page.locator('[data-notice="clock"]')).to_contain_text("ahead")
    silent = page.locator('[data-notice="silent"]')
    expect(silent).to_be_visible(timeout=20_000)
    expect(silent).to_contain_text("Silent; last heard")
    page.goto(f"{pages_server.url}/hosts/")
    row = page.locator(f'[data-row="host:{agent.host["id"]}"]')
    expect(row).to_have_class("is-silent")
    expect(row.locator(".usage")).to_have_class("usage is-stale")
    agent.beat(metrics=metrics(5.0), agent_time=datetime.now(UTC).isoformat())
    expect(row.locator(".usage")).to_have_class("usage")


def test_an_update_of_agents_is_begun_stopped_and_halted_by_a_failure(
    signed_in: Page, pages_server: RunningTrailer, page_errors: list[str]
) -> None:
    page = signed_in
    agents = [PretendAgent(pages_server).connect() for _ in range(2)]
    for agent in agents:
        agent.beat(agent_image="trailer/agent:1")
    first, second = sorted(agents, key=lambda agent: str(agent.host["name"]))
    page.goto(f"{pages_server.url}/hosts/")
    page.evaluate("window.notReloaded = true")
    update = page.locator("#rollout")
    _begin_update(page, "not an image")
    wrong = page.get_by_role("dialog").locator("[name=image]")
    expect(wrong).to_have_attribute("aria-invalid", "true")
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()

    _begin_update(page, "trailer/agent:2")
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(update).to_contain_text(f"{first.host['name']} (wave 1, ordered)")
    expect(update).to_contain_text(f"{second.host['name']} (wave 2, waiting)")
    assert first.state()["settings"]["agent_image"] == "trailer/agent:2"
    update.get_by_role("button", name="Stop").click()
    expect(update.locator("[data-rollout]")).to_have_attribute("data-rollout", "stopped")
    expect(update.get_by_role("button", name="Stop")).to_have_count(0)
    assert second.state()["settings"]["agent_image"] == ""

    # The one that goes first could not start the new image: nobody else is asked to.
    _begin_update(page, "trailer/agent:3")
    expect(update.locator("[data-rollout]")).to_have_attribute("data-rollout", "running")
    failure = {"update_image": "trailer/agent:3", "update_message": "The new agent ended."}
    first.beat(agent_image="trailer/agent:1", **failure)
    halted = update.locator("[data-rollout=halted]")
    expect(halted).to_contain_text(f"{first.host['name']}: The new agent ended.", timeout=30_000)
    assert second.state()["settings"]["agent_image"] == ""
    assert page.evaluate("window.notReloaded === true")
    # The wrong name was answered with 400, which browsers call an error.
    assert [text for text in page_errors if "400" not in text] == []
    for agent in agents:
        agent.beat()


def test_an_update_that_another_administrator_begins_shows_on_an_open_page(
    signed_in: Page, agent: PretendAgent
) -> None:
    page, trailer = signed_in, agent.trailer
    agent.beat(agent_image="trailer/agent:1")
    with page.expect_websocket() as live:
        page.goto(f"{trailer.url}/hosts/", wait_until="commit")
    live.value.wait_for_event("framereceived", lambda frame: agent.host["id"] in str(frame))
    page.evaluate("window.notReloaded = true")
    body = {"image": "trailer/agent:4", "hosts": [agent.host["id"]]}
    assert trailer.api("POST", "/agent-rollouts/", json=body).status_code == 201
    shown = page.locator("#rollout [data-rollout]")
    expect(shown).to_contain_text(f"{agent.host['name']} (wave 1, ordered)")
    assert trailer.api("POST", "/agent-rollouts/stop/").status_code == 202
    expect(shown).to_have_attribute("data-rollout", "stopped")
    assert page.evaluate("window.notReloaded === true")


def _begin_update(page: Page, image: str) -> None:
    page.get_by_role("button", name="Update agents").first.click()
    dialog = page.get_by_role("dialog", name="Update all agents")
    dialog.locator("[name=image]").fill(image)
    dialog.get_by_role("button", name="Update agents").click()


def test_a_line_for_a_host_that_is_online_does_not_claim_to_have_worked(
    signed_in: Page, agent: PretendAgent
) -> None:
    page = signed_in
    page.goto(f"{agent.trailer.url}/hosts/{agent.host['id']}/")
    page.get_by_role("button", name="Connect agent").click()
    told = page.locator("[data-enrol-wait]")
    expect(told).to_contain_text("online already")
    agent.beat(message="The engine is slow.")
    expect(page.locator(".page-message")).to_contain_text("The engine is slow.")
    expect(told).to_have_class("notice")


def test_the_enrolment_dialog_names_a_useless_address_and_takes_another(
    signed_in: Page, agent: PretendAgent, page_errors: list[str]
) -> None:
    page, trailer = signed_in, agent.trailer
    page.set_viewport_size({"width": 390, "height": 900})
    page.goto(f"{trailer.url}/hosts/{agent.host['id']}/")
    page.get_by_role("button", name="Connect agent").click()
    dialog = page.get_by_role("dialog", name="Connect the agent")
    address = dialog.get_by_label("Address at which the machine reaches this server")
    warning = dialog.locator("[data-enrol-warning]")
    line = dialog.locator("[data-enrol-command]")
    expect(address).to_have_value(trailer.url)
    expect(warning).to_contain_text("leads an agent on another machine to that machine itself")
    first = line.inner_text()
    renew = dialog.get_by_role("button", name="New line")

    address.fill("trailer.example.org/way")
    renew.click()
    expect(dialog.locator(".field-error")).to_contain_text("This is no address of a server.")
    expect(line).to_have_text(first)

    address.fill("https://trailer.example.org")
    address.press("Enter")
    expect(warning).to_contain_text("no request for trailer.example.org")
    expect(line).to_contain_text("TRAILER_SERVER_URL=https://trailer.example.org")
    expect(dialog.locator(".field-error")).to_have_count(0)

    def reached(route: Route) -> None:
        answer = route.fetch()
        good = {"server_warning": "", "server_answers": True, "server_url": "https://good.test"}
        good |= {"digests": {"amd64": "a" * 64, "arm64": "b" * 64}, "problem": ""}
        route.fulfill(response=answer, json=answer.json() | good)

    page.route("**/enrolment/", reached)
    renew.click()
    expect(dialog.locator("[data-enrol-answers]")).to_be_visible()
    expect(warning).to_be_hidden()
    expect(address).to_have_value("https://good.test")
    loaded = dialog.locator("[data-enrol-loaded]")
    expect(loaded).to_contain_text("This server has it for amd64 and arm64 machines")
    expect(loaded).to_contain_text("TRAILER_AGENT_IMAGE")
    page.unroute("**/enrolment/")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    # A refused address is answered with 400, which browsers call an error.
    assert [text for text in page_errors if "400" not in text] == []


def test_a_restored_state_is_confirmed_on_the_hosts_page(
    signed_in: Page, agent: PretendAgent, page_errors: list[str]
) -> None:
    page = signed_in
    mark_restored(agent.trailer, agent.host)
    before = agent.state()
    assert before["restored"] is True
    page.goto(f"{agent.trailer.url}/hosts/{agent.host['id']}/")
    page.evaluate("window.notReloaded = true")
    notice = page.locator('[data-notice="restored"]')
    expect(notice).to_contain_text("Restored from a backup.")
    notice.get_by_role("button", name="Confirm this state").click()
    expect(page.locator(".toast")).to_contain_text("The host follows this state.")
    expect(notice).to_have_count(0)
    after = agent.state()
    assert after["restored"] is False
    assert after["state_epoch"] > before["state_epoch"]
    assert page.evaluate("window.notReloaded === true")
    assert page_errors == []
