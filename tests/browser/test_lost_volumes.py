"""A volume that somebody removed on its host: the page says so until it is acknowledged."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from docker.errors import APIError, NotFound
from playwright.sync_api import Page, expect

from tests.browser.accessibility import serious_violations
from tests.browser.test_looks import KEEP_PICTURES, THEMES
from tests.e2e.scenario import User
from tests.ground.browser import save_screenshot
from tests.ground.wait import eventually

if TYPE_CHECKING:
    import docker

    from tests.ground.server import RunningTrailer


def test_a_volume_removed_by_hand_is_told_until_somebody_acknowledges_it(
    on_engine: Page, trailer: RunningTrailer, engine_docker: docker.DockerClient
) -> None:
    page, user = on_engine, User(trailer)
    host = user.online_host()["id"]
    volume = user.post("/volumes/", {"name": "precious", "host": host}, status=201)
    mounts = [{"volume": volume["id"], "target": "/data"}]
    workspace = user.running("lost-data", mounts=mounts)
    eventually(lambda: instance_of(engine_docker), 30, "the volume carries no instance")
    page.goto(f"{trailer.url}/workspaces/{workspace['id']}/")
    assert user.get(f"/volumes/{volume['id']}/")["notice"] == ""
    before = instance_of(engine_docker)
    # A volume in use is not removed, and the agent is quick: as by hand, until it works.
    eventually(lambda: removed_with_its_container(engine_docker), 30, "the volume stays in use")
    notice = page.get_by_role("alert").filter(has_text="is gone since")
    expect(notice).to_contain_text("The data of its volume precious is gone since")
    assert instance_of(engine_docker) != before
    events = user.get(f"/workspaces/{workspace['id']}/events/")["results"]
    assert [event["kind"] for event in events].count("data_lost") == 1
    page.goto(f"{trailer.url}/volumes/{volume['id']}/")
    expect(notice).to_contain_text("Its data is gone since")
    problems: list[str] = []
    for width in (390, 1440):
        page.set_viewport_size({"width": width, "height": 800})
        for theme in THEMES:
            page.emulate_media(color_scheme=theme)
            problems += serious_violations(page)
            if KEEP_PICTURES:
                save_screenshot(page, f"lost-data-{width}-{theme}", whole=False)
    assert problems == []
    page.goto(f"{trailer.url}/workspaces/{workspace['id']}/")
    if KEEP_PICTURES:
        save_screenshot(page, "lost-data-workspace", whole=False)
    notice.get_by_role("button", name="Acknowledge").click()
    expect(notice).to_be_hidden()
    assert user.get(f"/workspaces/{workspace['id']}/")["notice"] == ""


def instance_of(client: docker.DockerClient) -> str:
    labels = client.volumes.get("trailer-precious").attrs["Labels"]
    return str(labels["trailer.instance"])


def removed_with_its_container(client: docker.DockerClient) -> bool:
    before = instance_of(client)
    with suppress(NotFound):
        client.containers.get("trailer-lost-data").remove(force=True)
    try:
        client.volumes.get("trailer-precious").remove(force=True)
    except (APIError, NotFound):
        return False
    return before != ""
