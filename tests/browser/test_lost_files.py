"""Before a replace throws files away: what they are, a snapshot first, go on, or cancel."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.accessibility import serious_violations
from tests.browser.test_looks import KEEP_PICTURES, THEMES
from tests.e2e.scenario import User
from tests.ground.browser import save_screenshot
from tests.ground.wait import eventually

if TYPE_CHECKING:
    import docker
    from playwright.sync_api import Locator

    from tests.browser.pretend_agent import PretendAgent
    from tests.ground.server import RunningTrailer

LAYER: dict[str, Any] = {
    "size_bytes": 3 * 1024**2,
    "file_count": 34,
    "deleted_count": 0,
    "is_whole": True,
    "paths": [
        {"path": "/home/user/model.bin", "size_bytes": 2 * 1024**2},
        {"path": "/root/.local/share/jupyter/" + "notebooks/" * 9 + "x.ipynb", "size_bytes": 900},
        *({"path": f"/var/cache/{n}", "size_bytes": 100 - n} for n in range(18)),
    ],
}
LOSS: dict[str, Any] = {
    "loses_files": True,
    "writable_layer": LAYER,
    "writable_layer_reason": "",
    "can_snapshot": True,
}
UNKNOWN = {
    "loses_files": True,
    "writable_layer": None,
    "writable_layer_reason": "What its container wrote is not known: Host one is offline.",
    "can_snapshot": False,
}
REFUSED = {"code": "would_lose_files", "message": "Files would be gone.", "fields": {}}


class Api:
    """Answers some of the page's requests in the server's place, and keeps what was asked for."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self.asked: list[tuple[str, Any]] = []

    def loses(self, path: str, loss: dict[str, Any]) -> None:
        """Refuses there what refuses to lose files; the rest goes through."""

        def answer(route: Route) -> None:
            body = self._kept(path, route)
            if body.get("refuse_loss"):
                route.fulfill(status=409, json={**REFUSED, **loss})
            else:
                route.continue_()

        self._page.route(f"**{path}", answer)

    def answers(self, path: str, *bodies: Any) -> None:
        """Each in turn, the last one from then on."""
        left = list(bodies)

        def answer(route: Route) -> None:
            self._kept(path, route)
            route.fulfill(status=200, json=left.pop(0) if len(left) > 1 else left[0])

        self._page.route(f"**{path}", answer)

    def plans(self, workspace: Any, loss: dict[str, Any]) -> None:
        plan = {"action": "replace", "changes": [], "downtime": "brief", **loss}
        self.answers(f"/api/v1/workspaces/{workspace['id']}/redeploy/plan/", plan)

    def _kept(self, path: str, route: Route) -> Any:
        body = json.loads(route.request.post_data or "{}")
        self.asked.append((path, body))
        return body


def running(agent: PretendAgent, name: str) -> Any:
    workspace = agent.workspace(name=name, image=agent.image()["id"])
    agent.says_workspace(workspace, "running")
    return workspace


def redeploy_path(workspace: Any) -> str:
    return f"/api/v1/workspaces/{workspace['id']}/redeploy/"


def revision_of(agent: PretendAgent, workspace: Any) -> int:
    return int(agent.read(f"/workspaces/{workspace['id']}/")["revision"])


def open_page(page: Page, agent: PretendAgent, workspace: Any, rest: str = "") -> None:
    page.goto(f"{agent.trailer.url}/workspaces/{workspace['id']}/{rest}")


def question(page: Page, title: str) -> Locator:
    dialog = page.get_by_role("dialog", name=title)
    expect(dialog).to_be_visible()
    return dialog


def test_a_redeploy_that_loses_files_says_which_and_asks_once(
    signed_in: Page, agent: PretendAgent, page_errors: list[str]
) -> None:
    page, workspace = signed_in, running(agent, "loses")
    api, before = Api(page), revision_of(agent, workspace)
    api.loses(redeploy_path(workspace), LOSS)
    open_page(page, agent, workspace)
    button = page.get_by_role("button", name="Redeploy")
    button.click()
    dialog = question(page, "Redeploy loses?")
    expect(dialog).to_contain_text("3 MiB in 34 files")
    expect(dialog.get_by_role("listitem").first).to_contain_text("/home/user/model.bin2 MiB")
    expect(dialog).to_contain_text("and 14 more")
    expect(dialog.get_by_role("button", name="Snapshot first")).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(button).to_be_focused()
    assert revision_of(agent, workspace) == before

    page.keyboard.press("Enter")
    question(page, "Redeploy loses?").get_by_role("button", name="Cancel").click()
    assert revision_of(agent, workspace) == before
    button.click()
    question(page, "Redeploy loses?").get_by_role("button", name="Go on").click()
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(page.locator(f'[data-resource="workspace:{workspace["id"]}"]')).not_to_have_text(
        "Running"
    )
    assert revision_of(agent, workspace) == before + 1
    refusing = {"refuse_loss": True}
    assert [body for _, body in api.asked] == [refusing, refusing, refusing, {}]
    assert [text for text in page_errors if "409" not in text] == []


def test_a_redeploy_that_loses_nothing_asks_nothing(
    signed_in: Page, agent: PretendAgent, page_errors: list[str]
) -> None:
    page, workspace = signed_in, running(agent, "harmless")
    before = revision_of(agent, workspace)
    open_page(page, agent, workspace)
    page.get_by_role("button", name="Redeploy").click()
    shown = page.locator(f'[data-resource="workspace:{workspace["id"]}"]')
    expect(shown).not_to_have_text("Running")
    expect(page.get_by_role("dialog")).to_be_hidden()
    assert revision_of(agent, workspace) == before + 1
    assert page_errors == []


def test_what_is_not_known_is_asked_about_with_the_reason(
    signed_in: Page, agent: PretendAgent
) -> None:
    page, workspace = signed_in, running(agent, "unknown")
    Api(page).loses(redeploy_path(workspace), UNKNOWN)
    open_page(page, agent, workspace)
    page.get_by_role("button", name="Redeploy").click()
    dialog = question(page, "Redeploy unknown?")
    expect(dialog).to_contain_text("Host one is offline.")
    expect(dialog.get_by_role("button", name="Snapshot first")).to_be_hidden()
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()


def test_snapshot_first_waits_for_the_snapshot_and_then_replaces(
    signed_in: Page, agent: PretendAgent
) -> None:
    page, workspace = signed_in, running(agent, "keeps")
    api, before = Api(page), revision_of(agent, workspace)
    api.loses(redeploy_path(workspace), LOSS)
    image = f"/api/v1/images/{workspace['image']}/"
    snapshot = f"/api/v1/workspaces/{workspace['id']}/snapshot/"
    api.answers(snapshot, {"snapshot": workspace["image"]})
    failed = {"status": "failed", "message": "The disk is full."}
    building = {"status": "building", "message": ""}
    api.answers(image, building, failed, building, {"status": "finished", "message": ""})
    open_page(page, agent, workspace)
    page.get_by_role("button", name="Redeploy").click()
    dialog = question(page, "Redeploy keeps?")
    dialog.get_by_role("button", name="Snapshot first").click()
    told = dialog.get_by_role("status")
    expect(told).to_contain_text("Taking a snapshot of keeps.")
    expect(dialog.get_by_role("button", name="Go on")).to_be_disabled()
    expect(told).to_contain_text("The snapshot of keeps failed. The disk is full.")
    assert revision_of(agent, workspace) == before
    expect(dialog.get_by_role("button", name="Go on")).to_be_enabled()
    dialog.get_by_role("button", name="Snapshot first").click()
    expect(dialog).to_be_hidden()
    shown = page.locator(f'[data-resource="workspace:{workspace["id"]}"]')
    expect(shown).not_to_have_text("Running")
    assert revision_of(agent, workspace) == before + 1
    paths = [path for path, _ in api.asked]
    assert paths.index(image) > paths.index(snapshot)
    assert paths[-1] == redeploy_path(workspace)


def test_who_leaves_while_a_snapshot_is_taken_replaces_nothing(
    signed_in: Page, agent: PretendAgent
) -> None:
    page, workspace = signed_in, running(agent, "leaves")
    api, before = Api(page), revision_of(agent, workspace)
    api.loses(redeploy_path(workspace), LOSS)
    api.answers(f"/api/v1/workspaces/{workspace['id']}/snapshot/", {"snapshot": "some"})
    api.answers("/api/v1/images/some/", {"status": "building", "message": ""})
    open_page(page, agent, workspace)
    page.get_by_role("button", name="Redeploy").click()
    dialog = question(page, "Redeploy leaves?")
    dialog.get_by_role("button", name="Snapshot first").click()
    expect(dialog.get_by_role("status")).to_contain_text("Taking a snapshot")
    dialog.get_by_role("button", name="Cancel").click()
    expect(page.locator(".toast")).to_contain_text(
        "leaves was not replaced. The snapshot goes on."
    )
    assert revision_of(agent, workspace) == before


def test_an_edit_says_beside_the_form_what_it_loses_and_asks_when_saved(
    signed_in: Page, agent: PretendAgent
) -> None:
    page, workspace = signed_in, running(agent, "edited")
    api, before = Api(page), revision_of(agent, workspace)
    change = {"field": "memory_bytes", "from": None, "to": 2**29, "effect": "replace"}
    plan = {"action": "replace", "changes": [change], "downtime": "brief", **LOSS}
    api.answers(f"/api/v1/workspaces/{workspace['id']}/plan/", plan)
    api.loses(f"/api/v1/workspaces/{workspace['id']}/", LOSS)
    open_page(page, agent, workspace, "?tab=settings")
    page.get_by_label("Memory", exact=True).fill("512 MiB")
    preview = page.locator("form[data-plan] [data-plan-words]")
    expect(preview).to_contain_text("with a brief interruption")
    expect(preview).to_contain_text("Lost with it: 3 MiB in 34 files")
    save = page.get_by_role("button", name="Save changes")
    save.click()
    dialog = question(page, "Save edited?")
    dialog.get_by_role("button", name="Cancel").click()
    expect(save).to_be_enabled()
    expect(page.get_by_label("Memory", exact=True)).to_have_value("512 MiB")
    assert revision_of(agent, workspace) == before
    save.click()
    question(page, "Save edited?").get_by_role("button", name="Go on").click()
    expect(page.locator(".toast")).to_contain_text("Saved.")
    assert agent.read(f"/workspaces/{workspace['id']}/")["memory_bytes"] == 2**29


def test_a_rollback_shows_the_loss_in_its_own_dialog_and_asks_no_more(
    signed_in: Page, agent: PretendAgent
) -> None:
    page, workspace = signed_in, running(agent, "goes-back")
    path = f"/workspaces/{workspace['id']}/"
    assert agent.trailer.api("PATCH", path, json={"memory_bytes": 2**29}).ok
    agent.says_workspace(workspace, "running")
    api = Api(page)
    change = {"field": "memory_bytes", "from": 2**29, "to": None, "effect": "replace"}
    plan = {"action": "replace", "changes": [change], "downtime": "brief", **LOSS}
    api.answers(f"/api/v1{path}rollback/plan/", plan)
    api.loses(f"/api/v1{path}rollback/", LOSS)
    open_page(page, agent, workspace, "?tab=revisions")
    page.get_by_role("button", name="Roll back").click()
    dialog = question(page, "Roll goes-back back")
    expect(dialog).to_contain_text("/home/user/model.bin")
    expect(dialog.get_by_role("button", name="Snapshot first")).to_be_visible()
    dialog.get_by_role("button", name="Roll back").click()
    expect(page.locator(".toast")).to_contain_text("returns to the earlier revision")
    assert agent.read(path)["memory_bytes"] is None
    assert [body for asked, body in api.asked if asked.endswith("rollback/")] == [{"revision": 1}]


def test_many_at_once_are_asked_about_in_one_dialog(signed_in: Page, agent: PretendAgent) -> None:
    page = signed_in
    made = [running(agent, f"many-{name}") for name in ("a", "b", "c")]
    api = Api(page)
    nothing: dict[str, Any] = {"loses_files": False}
    for workspace, loss in zip(made, (LOSS, UNKNOWN, nothing), strict=True):
        api.plans(workspace, loss)
    before = [revision_of(agent, workspace) for workspace in made]
    page.goto(f"{agent.trailer.url}/workspaces/?host={agent.host['id']}")
    page.get_by_label("Select all on this page").check()
    bar = page.get_by_role("region", name="Selected workspaces")
    bar.get_by_role("button", name="Redeploy").click()
    dialog = question(page, "Redeploy 2 workspaces?")
    expect(dialog.get_by_role("listitem")).to_have_count(2)
    expect(dialog).to_contain_text("A snapshot keeps the files of 1 of them")
    expect(dialog).to_contain_text("many-a3 MiB in 34 filesLargest: /home/user/model.bin")
    expect(dialog).to_contain_text("many-bnot known")
    dialog.get_by_role("button", name="Cancel").click()
    expect(bar).to_contain_text("3 selected")
    assert [revision_of(agent, workspace) for workspace in made] == before
    bar.get_by_role("button", name="Redeploy").click()
    question(page, "Redeploy 2 workspaces?").get_by_role("button", name="Go on").click()
    expect(page.locator(".toast")).to_contain_text("3 will be redeployed")
    assert [revision_of(agent, workspace) for workspace in made] == [n + 1 for n in before]


def test_on_an_engine_a_snapshot_keeps_what_the_redeploy_throws_away(
    on_engine: Page, trailer: RunningTrailer, engine_docker: docker.DockerClient
) -> None:
    page, user = on_engine, User(trailer)
    workspace = user.running("wrote-much")
    container = engine_docker.containers.get("trailer-wrote-much")
    write = ["sh", "-c", "mkdir /work && head -c 2097152 /dev/zero > /work/model.bin"]
    assert container.exec_run(write).exit_code == 0
    page.goto(f"{trailer.url}/workspaces/{workspace['id']}/")
    page.get_by_role("button", name="Redeploy").click()
    dialog = question(page, "Redeploy wrote-much?")
    expect(dialog.get_by_role("listitem")).to_have_text(["/work/model.bin2 MiB"])
    dialog.get_by_role("button", name="Snapshot first").click()
    expect(dialog).to_be_hidden()

    def replaced() -> Any:
        seen = user.get(f"/workspaces/{workspace['id']}/")
        settled = seen["status"] == "running" and seen["container_id"] != container.id
        return settled and seen["observed_revision"] == seen["revision"]

    eventually(replaced, 60, "the workspace was not replaced")
    check = ["ls", "/work/model.bin"]
    now = engine_docker.containers.get("trailer-wrote-much")
    assert now.exec_run(check).exit_code != 0
    [snapshot] = user.get("/images/?kind=snapshot")["results"]
    kept = user.running("kept-much", image=snapshot["id"])
    assert engine_docker.containers.get(kept["container_id"]).exec_run(check).exit_code == 0


@pytest.mark.parametrize("several", [False, True])
def test_the_question_fits_and_everybody_can_use_it(
    several: bool, signed_in: Page, agent: PretendAgent
) -> None:
    page = signed_in
    names = [f"fits-{n}-" + "long-name-" * 4 for n in range(14 if several else 1)]
    made = [running(agent, name.strip("-")) for name in names]
    api = Api(page)
    for number, workspace in enumerate(made):
        api.plans(workspace, UNKNOWN if number == 1 else LOSS)
        api.loses(redeploy_path(workspace), LOSS)
    if several:
        page.goto(f"{agent.trailer.url}/workspaces/?host={agent.host['id']}")
        page.get_by_label("Select all on this page").check()
        bar = page.get_by_role("region", name="Selected workspaces")
        bar.get_by_role("button", name="Redeploy").click()
    else:
        open_page(page, agent, made[0])
        page.get_by_role("button", name="Redeploy").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    problems: list[str] = []
    for width in (390, 1440):
        page.set_viewport_size({"width": width, "height": 800})
        for theme in THEMES:
            page.emulate_media(color_scheme=theme)
            expect(page.locator("html")).to_have_attribute("data-theme", theme)
            problems += serious_violations(page, within="dialog[open]")
            if KEEP_PICTURES:
                save_screenshot(page, f"lost-files-{several}-{width}-{theme}", whole=False)
        box = dialog.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert box["y"] + box["height"] <= 800
        for name in ("Cancel", "Go on", "Snapshot first"):
            expect(dialog.get_by_role("button", name=name)).to_be_in_viewport()
    assert problems == []
