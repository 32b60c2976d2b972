"""Terminals and roles: who may open one, and the audit rows of its opening and end."""

from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async

from tests.factories import make_grant, make_host, make_user, make_workspace
from tests.live.scripted_agent import ScriptedAgent
from tests.live.session_client import code, open_session, words
from trailer.access.models import Role
from trailer.audit.models import AuditEntry
from workspaces.sessions import link

pytestmark = pytest.mark.django_db(transaction=True)

NOT_ALLOWED, NOT_THERE = 4403, 4404


@pytest.fixture(autouse=True)
def _quick_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "_FIND", 0.5)


@sync_to_async
def _told() -> list[tuple[str, str, str, str]]:
    rows = AuditEntry.objects.order_by("at")
    return [(row.action, row.actor_name, row.token_name, row.object_name) for row in rows]


async def test_a_terminal_is_written_down_when_it_opens_and_when_it_ends() -> None:
    host = await sync_to_async(make_host)(capabilities=["sessions"])
    workspace = await sync_to_async(make_workspace)(host, name="box")
    editor = await sync_to_async(make_user)("eddy")
    await sync_to_async(make_grant)(workspace, editor, Role.EDITOR)
    agent = await ScriptedAgent.connect(host)
    for kind in ("exec", "attach", "logs"):
        socket = await open_session(kind, workspace, editor)
        stream = await agent.opened()
        named = {"session": "f" * 32} if kind == "exec" else {"container": "c" * 64}
        await stream.say(opened=True, **named)
        await words(socket)
        await socket.disconnect()
    await agent.leave()
    assert await _told() == [
        (f"workspace.{kind}_{event}", "eddy", "test", "box")
        for kind in ("exec", "attach")
        for event in ("opened", "closed")
    ]


@pytest.mark.parametrize(
    ("role", "expected"),
    [(None, [NOT_THERE] * 3), (Role.VIEWER, [NOT_ALLOWED, NOT_ALLOWED, None])],
)
async def test_logs_take_a_viewer_and_terminals_an_editor(
    role: Role | None, expected: list[int | None]
) -> None:
    host = await sync_to_async(make_host)(capabilities=["sessions"])
    workspace = await sync_to_async(make_workspace)(host)
    user = await sync_to_async(make_user)()
    if role is not None:
        await sync_to_async(make_grant)(workspace, user, role)
    agent = await ScriptedAgent.connect(host)
    for kind, refusal in zip(("exec", "attach", "logs"), expected, strict=True):
        socket = await open_session(kind, workspace, user)
        if refusal is None:
            assert (await agent.opened()).request.kind == kind
            await socket.disconnect()
        else:
            assert await code(socket) == refusal
    await agent.leave()
    assert await _told() == []
