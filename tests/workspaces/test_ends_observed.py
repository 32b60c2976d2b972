"""Ends of containers at the server: counted into one row, once, and never somebody's act."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent.protocol.report import ContainerExit, WorkspaceEvent
from tests.factories import api_client
from tests.workspaces.scene import URL, observe
from workspaces.models import Event
from workspaces.services import workspace_event_record

if TYPE_CHECKING:
    from tests.workspaces.scene import Scene
    from workspaces.models import Workspace


def report(
    workspace: Workspace, second: int, *, epoch: int = 1, seq: int | None = None, **fields: Any
) -> bool:
    at = f"2026-01-31T08:00:{second:02}.123456789Z"
    given: dict[str, Any] = {
        "event": "crashed",
        "cause": "ended by itself",
        "exit": ContainerExit(code=3),
        "at": at,
        "last_at": at,
        "last_lines": f"line {second}",
        **fields,
    }
    item = WorkspaceEvent(
        seq=second if seq is None else seq, workspace_id=str(workspace.pk), **given
    )
    return workspace_event_record(workspace.host, item, epoch)


def ends(workspace: Workspace) -> list[tuple[str, Any, int]]:
    rows = workspace.events.filter(kind__in=("crashed", "restarted")).order_by("received_at")
    return [(row.kind, row.exit and row.exit["code"], row.count) for row in rows]


def test_a_loop_of_equal_crashes_is_one_row_with_a_count(scene: Scene) -> None:
    workspace = scene.create()
    for second in range(1, 8):
        assert report(workspace, second)
    assert ends(workspace) == [("crashed", 3, 7)]
    row = Event.objects.get(kind="crashed")
    assert (row.actor, row.actor_name, row.last_lines) == (None, "engine", "line 7")
    assert (row.at.second, row.last_at and row.last_at.second) == (1, 7)


def test_the_same_report_twice_counts_once_also_from_an_agent_that_was_started_anew(
    scene: Scene,
) -> None:
    workspace = scene.create()
    for second in (1, 2, 3):
        report(workspace, second)
    assert not report(workspace, 2)
    assert not report(workspace, 3)
    assert not report(workspace, 3, epoch=2, seq=1)
    assert ends(workspace) == [("crashed", 3, 3)]
    assert report(workspace, 4, epoch=2, seq=2, count=5)
    assert ends(workspace) == [("crashed", 3, 8)]


def test_another_end_or_another_row_begins_a_new_one(scene: Scene) -> None:
    workspace = scene.create()
    report(workspace, 1)
    report(workspace, 2, exit=ContainerExit(code=137, signal="SIGKILL", oom=True))
    report(workspace, 3, event="heal", cause="paused outside Trailer", exit=None)
    report(workspace, 4, exit=ContainerExit(code=137, signal="SIGKILL", oom=True))
    assert ends(workspace) == [("crashed", 3, 1), ("crashed", 137, 1), ("crashed", 137, 1)]


def test_the_api_shows_an_end_and_its_last_lines_only_to_who_may_read_the_logs(
    scene: Scene,
) -> None:
    workspace = scene.create()
    report(workspace, 1, exit=ContainerExit(code=137, signal="SIGKILL", oom=True))
    (newest, *_) = scene.client().get(f"{URL}{workspace.pk}/events/").json()["results"]
    assert newest["exit"] == {"code": 137, "signal": "SIGKILL", "oom": True}
    assert (newest["kind"], newest["count"], newest["last_lines"]) == ("crashed", 1, "line 1")
    assert newest["by"] == {"type": "engine", "name": ""}
    assert newest["summary"] == "The container crashed with code 137 (SIGKILL), out of memory."
    admin = api_client(scene.admin)
    grant = [{"user": scene.stranger.username, "role": "viewer"}]
    admin.put(f"{URL}{workspace.pk}/grants/", grant, format="json")
    viewer = api_client(scene.stranger)
    shown = viewer.get(f"{URL}{workspace.pk}/events/").json()["results"][0]
    assert shown["exit"] == newest["exit"]
    allowed = viewer.get(f"{URL}{workspace.pk}/logs/").status_code != 403
    assert bool(shown["last_lines"]) == allowed


def test_an_agent_that_tells_no_exits_has_its_restarts_counted(scene: Scene) -> None:
    workspace = scene.create()
    observe(workspace, seq=1, restart_count=2)
    assert ends(workspace) == []
    observe(workspace, seq=2, restart_count=5)
    observe(workspace, seq=3, restart_count=6)
    observe(workspace, seq=4, restart_count=6)
    assert ends(workspace) == [("restarted", None, 4)]
    observe(workspace, seq=5, restart_count=9, container_id="d" * 64)
    assert ends(workspace) == [("restarted", None, 4)]


def test_an_agent_that_tells_exits_counts_by_itself(scene: Scene) -> None:
    workspace = scene.create()
    workspace.host.capabilities = ["exits"]
    observe(workspace, seq=1, restart_count=2)
    observe(workspace, seq=2, restart_count=5)
    assert ends(workspace) == []


def test_filters_find_what_they_name_and_refuse_what_means_nothing(scene: Scene) -> None:
    workspace = scene.create()
    report(workspace, 1)
    client, address = scene.client(), f"{URL}{workspace.pk}/events/"

    def kinds(**query: str) -> list[str]:
        return [event["kind"] for event in client.get(address, query).json()["results"]]

    assert kinds() == ["crashed", "created"]
    assert kinds(kind="crashed") == ["crashed"]
    assert kinds(outcome="asked") == ["created"]
    assert kinds(by="engine") == ["crashed"]
    assert kinds(why="true") == ["crashed"]
    answer = client.get(address, {"outcome": "lost"})
    assert (answer.status_code, list(answer.json()["fields"])) == (400, ["outcome"])
