"""A workspace on a host whose agent is connected, for tests of session sockets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async

from tests.factories import make_host, make_user, make_workspace
from tests.live.scripted_agent import ScriptedAgent

if TYPE_CHECKING:
    from trailer.accounts.models import User
    from workspaces.models import Workspace


@sync_to_async
def session_scene(**host_fields: Any) -> tuple[User, Workspace]:
    owner = make_user()
    host = make_host(capabilities=["sessions"], **host_fields)
    return owner, make_workspace(host, owner)


async def started() -> tuple[User, Workspace, ScriptedAgent]:
    owner, workspace = await session_scene()
    return owner, workspace, await ScriptedAgent.connect(workspace.host)
