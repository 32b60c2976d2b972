"""Builds in a browser on a real engine: live lines, a reload half-way, cancel, and a repair."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playwright.sync_api import Page, expect

from tests.e2e.scenario import User
from tests.ground.images import BUSYBOX
from tests.ground.wait import eventually

if TYPE_CHECKING:
    import docker
    from playwright.sync_api import Locator

    from tests.ground.server import RunningTrailer

# Goes on when the test lets it, so that nothing depends on how fast a page loads.
WAITS = "while [ ! -e /go ]; do sleep 0.1; done; rm /go"
TALKS = f"""FROM {BUSYBOX}
RUN for n in 1 2 3; do echo early-$n; done; \\
    {WAITS}; \\
    for n in 1 2 3; do echo middle-$n; done; \\
    {WAITS}; \\
    for n in 1 2 3; do echo late-$n; done
"""
# How a page fares beside a flood is measured in tests/bench.
ENDLESS = f"FROM {BUSYBOX}\nRUN seq 1 5000; echo said-$((2 + 3)); while :; do sleep 1; done\n"
BROKEN = f"# a comment\nFROM {BUSYBOX}\n\nRUN echo trying; \\\n    exit 3\nRUN echo never\n"


def lines(*words: str) -> list[str]:
    return [f"{word}-{number}" for word in words for number in (1, 2, 3)]


def badge(page: Page) -> Locator:
    return page.locator('.title-line [data-resource^="image:"]')


def said(page: Page) -> list[str]:
    """The lines that the build itself printed, as the page shows them."""
    text = page.locator("[data-log-text]").evaluate("body => body.textContent")
    return [line for line in text.splitlines() if re.fullmatch(r"(early|middle|late)-\d", line)]


def let_go(client: docker.DockerClient) -> None:
    [step] = client.containers.list(ignore_removed=True)
    assert step.exec_run(["touch", "/go"]).exit_code == 0


def new_build(page: Page, url: str, name: str, dockerfile: str) -> None:
    page.goto(f"{url}/images/new/?kind=build")
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Dockerfile").fill(dockerfile)
    page.get_by_role("button", name="Build image").click()
    page.wait_for_url(re.compile(r"/images/[0-9a-f-]{36}/$"))


def watch_and_reload(page: Page, user: User, client: docker.DockerClient) -> None:
    new_build(page, user.trailer.url, "talks", TALKS)
    shown = page.locator("[data-log-text]")
    expect(shown).to_contain_text("early-3\n", timeout=30_000)
    expect(badge(page)).to_have_text("Building")
    assert said(page) == lines("early")
    page.reload()
    expect(shown).to_contain_text("early-3\n")
    let_go(client)
    expect(shown).to_contain_text("middle-3\n")
    expect(badge(page)).to_have_text("Building")
    assert said(page) == lines("early", "middle")
    page.reload()
    let_go(client)
    expect(badge(page)).to_have_text("Finished", timeout=30_000)
    expect(page.locator("[data-log-state]")).to_have_text("complete")
    assert said(page) == lines("early", "middle", "late")
    [image] = user.get("/images/?name=talks")["results"]
    assert shown.evaluate("body => body.textContent") == user.build_log(image)[0]


def cancel_another(page: Page, user: User, client: docker.DockerClient) -> None:
    """A build without end: the engine's work ends with the cancel."""
    images = {found["Id"] for found in client.api.images()}
    new_build(page, user.trailer.url, "endless", ENDLESS)
    expect(page.locator("[data-log-text]")).to_contain_text("said-5")
    assert len(client.api.containers()) == 1
    page.locator("[data-log-follow]").click()
    expect(page.locator("[data-log-follow]")).to_have_attribute("aria-pressed", "false")
    page.locator('[data-action="cancel"]').click()
    expect(badge(page)).to_have_text("Cancelled")
    eventually(lambda: client.api.containers(all=True) == [], 20, "it still runs")
    eventually(
        lambda: {found["Id"] for found in client.api.images()} == images, 20, "a step was left"
    )


def repair(page: Page, user: User) -> None:
    new_build(page, user.trailer.url, "repaired", BROKEN)
    expect(badge(page)).to_have_text("Failed", timeout=30_000)
    expect(page.locator(".page-message")).to_contain_text("returned a non-zero code: 3")
    page.reload()
    page.get_by_text("Settings", exact=True).click()
    # The step that failed is marked where it begins, below the comment.
    wrong = page.locator(".editor-line.is-wrong")
    expect(wrong).to_have_text("RUN echo trying; \\")
    expect(page.locator(".editor-numbers .is-wrong")).to_have_text("4")
    page.get_by_label("Dockerfile").fill(BROKEN.replace("exit 3", "true"))
    expect(wrong).to_have_count(0)
    page.get_by_role("button", name="Save changes").click()
    expect(badge(page)).to_have_text("Finished", timeout=30_000)
    rows = page.locator("[data-build]")
    expect(rows.nth(0)).to_contain_text("Finished")
    expect(rows.nth(1)).to_contain_text("Failed")
    expect(page.locator("[data-log-text]")).to_contain_text("never\n")
    page.locator('[data-action="build"]').click()
    expect(rows).to_have_count(3)
    expect(rows.nth(0)).to_contain_text("Finished", timeout=30_000)


def test_a_build_is_watched_reloaded_cancelled_and_repaired(
    on_engine: Page,
    trailer: RunningTrailer,
    engine_docker: docker.DockerClient,
    page_errors: list[str],
) -> None:
    page, client, user = on_engine, engine_docker, User(trailer)
    watch_and_reload(page, user, client)
    cancel_another(page, user, client)
    repair(page, user)
    assert client.api.containers(all=True) == []
    assert page_errors == []
