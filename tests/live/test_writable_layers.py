"""What a replace would throw away, over REST: asked from the agent, shown, and refused."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from asgiref.sync import ThreadSensitiveContext, sync_to_async

from agent.protocol.sessions import FrameKind
from agent.protocol.writable_layer import SECONDS, WritableLayer, WrittenPath
from tests.factories import api_client, make_grant, make_user
from tests.live.scripted_agent import ScriptedAgent
from tests.live.session_scene import session_scene
from trailer.access.models import Role
from workspaces.models import Workspace
from workspaces.sessions import layers

pytestmark = pytest.mark.django_db(transaction=True)

LAYER = WritableLayer(
    size_bytes=700,
    file_count=2,
    deleted_count=1,
    paths=(
        WrittenPath(path="/root/large", size_bytes=500),
        WrittenPath(path="/root/small", size_bytes=200),
    ),
)
TOLD = {
    "loses_files": True,
    "writable_layer": {
        "size_bytes": 700,
        "file_count": 2,
        "deleted_count": 1,
        "is_whole": True,
        "paths": [
            {"path": "/root/large", "size_bytes": 500},
            {"path": "/root/small", "size_bytes": 200},
        ],
    },
    "writable_layer_reason": "",
}
MEMORY = {"memory_bytes": 512 * 1024**2}


class Scene:
    """A workspace whose container runs, and an agent that says what it wrote."""

    def __init__(self, owner: Any, workspace: Workspace, agent: ScriptedAgent | None) -> None:
        self.owner, self.workspace, self.agent = owner, workspace, agent
        self.asked: list[str] = []

    @classmethod
    async def build(cls, *, connected: bool = True) -> Scene:
        owner, workspace = await session_scene()
        await Workspace.objects.filter(pk=workspace.pk).aupdate(container_id="c" * 64)
        agent = await ScriptedAgent.connect(workspace.host) if connected else None
        return cls(owner, workspace, agent)

    async def call(self, path: str, body: Any, *, method: str = "post", user: Any = None) -> Any:
        client = await sync_to_async(api_client)(user or self.owner)
        address = f"/api/v1/workspaces/{self.workspace.pk}/{path}"
        async with ThreadSensitiveContext():
            return await sync_to_async(getattr(client, method))(address, body)

    async def answered(self, call: Any, layer: WritableLayer | None = LAYER, **end: Any) -> Any:
        """The call's answer, while the agent answers its one question."""
        assert self.agent is not None
        asking = asyncio.create_task(call)
        stream = await self.agent.opened()
        self.asked.append(stream.request.workspace_id)
        await stream.say(opened=True)
        if layer is not None:
            await stream.send(FrameKind.DATA, msgspec.json.encode(layer))
        await stream.close(**end)
        return await asking

    async def revision(self) -> int:
        row = await Workspace.objects.aget(pk=self.workspace.pk)
        return row.revision


@pytest.mark.parametrize(
    ("path", "body"),
    [("plan/", MEMORY), ("redeploy/plan/", {}), ("plan/", {**MEMORY, "refuse_loss": True})],
)
async def test_a_plan_that_replaces_tells_what_the_writable_layer_holds(
    path: str, body: dict[str, Any]
) -> None:
    scene = await Scene.build()
    answer = (await scene.answered(scene.call(path, body))).json()
    assert answer["action"] == "replace"
    assert {name: answer[name] for name in TOLD} == TOLD
    assert scene.asked == [str(scene.workspace.pk)]


@pytest.mark.parametrize("has_container", [True, False])
async def test_what_replaces_nothing_loses_nothing_and_asks_nobody(has_container: bool) -> None:
    scene = await Scene.build()
    body: dict[str, Any] = {"name": "renamed"}
    if not has_container:
        await Workspace.objects.filter(pk=scene.workspace.pk).aupdate(container_id="")
        body = MEMORY
    answer = (await scene.call("plan/", body)).json()
    assert answer["action"] == ("in_place" if has_container else "create")
    assert (answer["loses_files"], answer["writable_layer"]) == (False, None)
    assert scene.agent is not None
    assert scene.agent.streams == {}


async def test_a_container_that_wrote_nothing_loses_nothing() -> None:
    scene = await Scene.build()
    asked = scene.call("plan/", MEMORY)
    answer = (await scene.answered(asked, WritableLayer(deleted_count=3))).json()
    assert answer["loses_files"] is False
    assert answer["writable_layer"]["deleted_count"] == 3


async def test_a_container_that_is_gone_loses_nothing() -> None:
    scene = await Scene.build()
    asked = scene.call("plan/", MEMORY)
    answer = (await scene.answered(asked, None, code="not_there", error="No container.")).json()
    assert (answer["loses_files"], answer["writable_layer"]) == (False, None)


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ({"code": "unsupported", "error": "?"}, "is too old to look. Update it."),
        ({"code": "busy", "error": "The engine is away."}, "The engine is away."),
        ({"error": ""}, "gave an answer that cannot be read."),
    ],
)
async def test_what_is_not_known_may_be_lost_and_says_why(
    end: dict[str, Any], reason: str
) -> None:
    scene = await Scene.build()
    answer = (await scene.answered(scene.call("plan/", MEMORY), None, **end)).json()
    assert (answer["loses_files"], answer["writable_layer"]) == (True, None)
    assert answer["writable_layer_reason"].endswith(reason)


async def test_an_agent_that_does_not_answer_is_waited_for_no_longer_than_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert SECONDS == 3.0
    monkeypatch.setattr(layers, "SECONDS", 0.2)
    for connected in (True, False):
        scene = await Scene.build(connected=connected)
        answer = (await scene.call("redeploy/plan/", {})).json()
        assert (answer["loses_files"], answer["writable_layer"]) == (True, None)
        assert "did not answer" in answer["writable_layer_reason"]


async def test_a_host_that_is_away_is_not_asked() -> None:
    scene = await Scene.build()
    host = scene.workspace.host
    host.last_heartbeat = None
    await host.asave(update_fields=["last_heartbeat"])
    answer = (await scene.call("plan/", MEMORY)).json()
    assert (answer["loses_files"], answer["writable_layer"]) == (True, None)
    assert host.name in answer["writable_layer_reason"]
    assert scene.agent is not None
    assert scene.agent.streams == {}


@pytest.mark.parametrize(
    ("path", "method", "body"),
    [("", "patch", MEMORY), ("redeploy/", "post", {})],
)
async def test_a_change_that_refuses_loss_answers_409_with_what_would_be_lost(
    path: str, method: str, body: dict[str, Any]
) -> None:
    scene = await Scene.build()
    before = await scene.revision()
    refusing = scene.call(path, {**body, "refuse_loss": True}, method=method)
    answer = await scene.answered(refusing)
    assert (answer.status_code, answer.json()["code"]) == (409, "would_lose_files")
    assert {name: answer.json()[name] for name in TOLD} == TOLD
    assert await scene.revision() == before
    harmless = scene.call(path, {**body, "refuse_loss": True}, method=method)
    assert (await scene.answered(harmless, WritableLayer())).status_code in (200, 202)
    assert await scene.revision() == before + 1


async def test_without_refuse_loss_nobody_is_asked_and_the_change_goes_on() -> None:
    scene = await Scene.build()
    assert (await scene.call("", MEMORY, method="patch")).status_code == 200
    assert (await scene.call("redeploy/", {"refuse_loss": False})).status_code == 202
    assert scene.agent is not None
    assert scene.agent.streams == {}


async def test_a_rollback_and_its_plan_tell_and_refuse_the_same() -> None:
    scene = await Scene.build()
    assert (await scene.call("", MEMORY, method="patch")).status_code == 200
    first = {"revision": await scene.revision()}
    more = {"memory_bytes": 1024**3}
    assert (await scene.call("", more, method="patch")).status_code == 200
    plan = (await scene.answered(scene.call("rollback/plan/", first))).json()
    assert {name: plan[name] for name in TOLD} == TOLD
    refused = await scene.answered(scene.call("rollback/", {**first, "refuse_loss": True}))
    assert refused.json()["code"] == "would_lose_files"
    assert (await scene.call("rollback/", first)).status_code == 202


async def test_what_moved_while_the_agent_was_asked_is_not_saved() -> None:
    scene = await Scene.build()
    assert scene.agent is not None
    asking = asyncio.create_task(scene.call("", {**MEMORY, "refuse_loss": True}, method="patch"))
    stream = await scene.agent.opened()
    assert (await scene.call("", {"cpus": 1}, method="patch")).status_code == 200
    await stream.say(opened=True)
    await stream.send(FrameKind.DATA, msgspec.json.encode(WritableLayer()))
    await stream.close()
    answer = await asking
    assert (answer.status_code, answer.json()["code"]) == (409, "revision_moved")


@pytest.mark.parametrize("value", ["true", 1, None])
@pytest.mark.parametrize("path", ["", "redeploy/", "rollback/", "plan/"])
async def test_refuse_loss_is_true_or_false(path: str, value: Any) -> None:
    scene = await Scene.build()
    method = "post" if path else "patch"
    answer = await scene.call(path, {"refuse_loss": value}, method=method)
    assert (answer.status_code, list(answer.json()["fields"])) == (400, ["refuse_loss"])


async def test_names_of_files_are_shown_only_with_the_right_to_a_terminal() -> None:
    scene = await Scene.build()
    editor = await sync_to_async(make_user)()
    grant = sync_to_async(make_grant)
    await grant(scene.workspace, editor, Role.EDITOR, terminal=False)
    asked = scene.call("redeploy/plan/", {}, user=editor)
    answer = (await scene.answered(asked)).json()
    assert (answer["loses_files"], answer["writable_layer"]["size_bytes"]) == (True, 700)
    assert answer["writable_layer"]["paths"] == []
    assert "terminal" in answer["writable_layer_reason"]


async def test_a_snapshot_is_offered_to_those_who_may_take_one_now() -> None:
    scene = await Scene.build()
    running = {"observed_status": "running", "pending_status": ""}
    await Workspace.objects.filter(pk=scene.workspace.pk).aupdate(**running)
    editor = await sync_to_async(make_user)()
    await sync_to_async(make_grant)(scene.workspace, editor, Role.EDITOR, terminal=False)

    async def offered(user: Any) -> Any:
        asked = scene.call("redeploy/plan/", {}, user=user)
        return (await scene.answered(asked)).json()["can_snapshot"]

    assert await offered(scene.owner) is True
    assert await offered(editor) is False
    await Workspace.objects.filter(pk=scene.workspace.pk).aupdate(observed_status="stopped")
    assert await offered(scene.owner) is False


async def test_what_an_agent_claims_is_bounded() -> None:
    scene = await Scene.build()
    paths = tuple(WrittenPath(path=f"/{n}\0" + "x" * 9000, size_bytes=n) for n in range(50))
    claimed = WritableLayer(size_bytes=-5, file_count=50, paths=paths[:3])
    answer = (await scene.answered(scene.call("plan/", MEMORY), claimed)).json()
    layer = answer["writable_layer"]
    assert (layer["size_bytes"], len(layer["paths"][0]["path"])) == (0, 4096)
    assert [path["size_bytes"] for path in layer["paths"]] == [2, 1, 0]
