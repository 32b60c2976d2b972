"""A host that turns stale or fresh: one message, and open pages show it of what they follow."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import sync_to_async
from channels.db import database_sync_to_async

from agent.protocol.session import Heartbeat
from hosts.services.sessions import host_heartbeat
from tests.factories import (
    make_host,
    make_image,
    make_network,
    make_token,
    make_user,
    make_volume,
    make_workspace,
)
from tests.live.patient_socket import PatientSocket
from trailer import events
from trailer.asgi import application

if TYPE_CHECKING:
    from hosts.models import Host
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db(transaction=True)


async def _subscribed(user: User, *names: str) -> PatientSocket:
    token = await sync_to_async(make_token)(user)
    headers = [(b"authorization", f"Token {token}".encode())]
    socket = PatientSocket(application, "/ws/live/", headers=headers)
    connected, _ = await socket.connect()
    assert connected
    await socket.send_to(text_data=json.dumps({"subscribe": names}))
    return socket


async def _frames(socket: PatientSocket, count: int) -> dict[str, Any]:
    frames = [json.loads(await socket.receive_from(timeout=5)) for _ in range(count)]
    return {frame["resource"]: frame for frame in frames}


@database_sync_to_async
def _beat(host: Host, silent: str) -> None:
    host_heartbeat(host, Heartbeat(epoch=1, agent_version="1", engine_silent_since=silent))


async def test_all_that_is_followed_on_the_host_is_sent_again() -> None:
    user, host = await sync_to_async(make_user)(), await sync_to_async(make_host)()
    rows = {
        "workspace": await sync_to_async(make_workspace)(host, user),
        "image": await sync_to_async(make_image)(host, user),
        "network": await sync_to_async(make_network)(host, user),
        "volume": await sync_to_async(make_volume)(host, user),
    }
    elsewhere = await sync_to_async(make_workspace)(owner=user)
    names = [f"{kind}:{row.pk}" for kind, row in rows.items()]
    socket = await _subscribed(user, *names, f"workspace:{elsewhere.pk}")
    before = await _frames(socket, 5)
    assert all(frame["fresh"] for frame in before.values())

    await _beat(host, "2026-03-01T12:00:20.000Z")
    stale = await _frames(socket, 4)
    assert set(stale) == set(names)
    for frame in stale.values():
        assert frame["fresh"] is False
        assert frame["stale_since"]
        assert frame["message"].startswith("The engine does not answer since")
    assert await socket.receive_nothing(timeout=0.3)

    await _beat(host, "")
    back = await _frames(socket, 4)
    assert all(frame["fresh"] and not frame["message"] for frame in back.values())
    await socket.disconnect()


async def test_a_follower_of_a_whole_kind_gets_what_it_may_see_and_nothing_else() -> None:
    user, host = await sync_to_async(make_user)(), await sync_to_async(make_host)()
    mine = await sync_to_async(make_workspace)(host, user)
    await sync_to_async(make_workspace)(host)
    await sync_to_async(make_image)(host, user)
    socket = await _subscribed(user, "workspaces")
    await socket.receive_nothing(timeout=0.2)
    await _beat(host, "2026-03-01T12:00:20.000Z")
    assert set(await _frames(socket, 1)) == {f"workspace:{mine.pk}"}
    assert await socket.receive_nothing(timeout=0.3)
    await socket.disconnect()


def test_the_layer_carries_one_message_however_much_runs_on_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host, user = make_host(), make_user()
    for _ in range(5):
        make_workspace(host, user)
    sent: list[tuple[str, ...]] = []
    monkeypatch.setattr(events, "_send", lambda groups, message: sent.append(groups))
    host_heartbeat(
        host,
        Heartbeat(epoch=1, agent_version="1", engine_silent_since="2026-03-01T12:00:20.000Z"),
    )
    assert [groups for groups in sent if not groups[0].startswith("live.host.")] == [
        (events.FRESHNESS_GROUP,)
    ]
