"""The story of a workspace over the live socket: as the API answers it, for who may see it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from tests.factories import make_token, make_user, make_workspace
from tests.live.patient_socket import PatientSocket
from trailer import events
from trailer.asgi import application
from workspaces.models import Event, Workspace

if TYPE_CHECKING:
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db(transaction=True)


async def subscribed(user: User, *names: str) -> PatientSocket:
    token = await sync_to_async(make_token)(user)
    headers = [(b"authorization", f"Token {token}".encode())]
    socket = PatientSocket(application, "/ws/live/", headers=headers)
    connected, _ = await socket.connect()
    assert connected
    await socket.send_to(text_data=json.dumps({"subscribe": names}))
    return socket


async def heard(socket: PatientSocket) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(await socket.receive_from(timeout=5))
    return message


@sync_to_async
def crash(workspace: Workspace) -> None:
    Event.objects.create(
        workspace=workspace,
        at=timezone.now(),
        kind="crashed",
        cause="ended by itself",
        actor_name="engine",
        report_epoch=1,
        report_seq=1,
        exit={"code": 3, "signal": "", "oom": False},
        last_lines="bye",
    )
    events.publish("workspace", workspace.pk)


async def test_a_subscriber_of_events_gets_the_newest_ones_with_each_change() -> None:
    owner = await sync_to_async(make_user)()
    workspace = await sync_to_async(make_workspace)(owner=owner)
    socket = await subscribed(owner, f"events:{workspace.pk}")
    assert await heard(socket) == {"resource": f"events:{workspace.pk}", "events": []}
    await crash(workspace)
    frame = await heard(socket)
    assert frame["resource"] == f"events:{workspace.pk}"
    (event,) = frame["events"]
    assert (event["kind"], event["exit"]["code"], event["last_lines"]) == ("crashed", 3, "bye")
    assert event["summary"] == "The container crashed with code 3."
    await socket.disconnect()


async def test_a_strangers_events_are_not_there() -> None:
    owner, stranger = await sync_to_async(make_user)(), await sync_to_async(make_user)("other")
    workspace = await sync_to_async(make_workspace)(owner=owner)
    resource = f"events:{workspace.pk}"
    socket = await subscribed(stranger, resource)
    assert await heard(socket) == {"error": "not_found", "resource": resource}
    await socket.disconnect()
