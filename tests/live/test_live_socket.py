"""The live socket: whole small states, only for those who may see them."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import OperationalError, transaction
from django.test import Client
from django.utils import timezone

from hosts.services.revocation import host_revoke
from tests.factories import (
    make_admin,
    make_agent_token,
    make_host,
    make_token,
    make_user,
    make_workspace,
)
from tests.live.patient_socket import PatientSocket
from trailer import events, sockets
from trailer.accounts.models import ApiToken, User
from trailer.asgi import application
from trailer.message_rate import MessageRate
from workspaces import consumers
from workspaces.choices import WorkspaceStatus
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db(transaction=True)


@sync_to_async
def _token(user: User) -> str:
    return make_token(user)


def _socket(token: str | None, *, origin: str | None = None, cookie: str = "") -> PatientSocket:
    headers = [(b"authorization", f"Token {token}".encode())] if token else []
    if cookie:
        headers.append((b"cookie", cookie.encode()))
    if origin is not None:
        headers.append((b"origin", origin.encode()))
    return PatientSocket(application, "/ws/live/", headers=headers)


async def _subscribed(user: User, *names: str) -> PatientSocket:
    socket = _socket(await _token(user))
    connected, _ = await socket.connect()
    assert connected
    await socket.send_to(text_data=json.dumps({"subscribe": names}))
    return socket


@sync_to_async
def _signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


async def _next(socket: PatientSocket) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(await socket.receive_from(timeout=5))
    return message


@sync_to_async
def _observe(workspace: Workspace, status: str) -> None:
    with transaction.atomic():
        Workspace.objects.filter(pk=workspace.pk).update(
            observed_status=status, observed_revision=workspace.revision
        )
        events.publish("workspace", workspace.pk)


async def test_a_subscriber_gets_the_present_state_and_then_each_change() -> None:
    owner = await sync_to_async(make_user)()
    workspace = await sync_to_async(make_workspace)(owner=owner)
    resource = f"workspace:{workspace.pk}"
    socket = await _subscribed(owner, resource)

    first = await _next(socket)
    assert first["resource"] == resource
    assert first["status"] == "deployment_pending"
    assert first["status_label"] == "Deployment pending"
    assert {"message", "revision", "fresh", "allowed_actions"} <= set(first)

    await _observe(workspace, WorkspaceStatus.RUNNING)
    second = await _next(socket)
    assert (second["resource"], second["status"]) == (resource, "running")
    assert "stop" in second["allowed_actions"]
    await socket.disconnect()


async def test_what_a_stranger_may_not_see_is_reported_as_not_found_and_never_sent() -> None:
    owner = await sync_to_async(make_user)()
    stranger = await sync_to_async(make_user)()
    workspace = await sync_to_async(make_workspace)(owner=owner)
    resource = f"workspace:{workspace.pk}"
    socket = await _subscribed(stranger, resource, "workspaces")
    assert await _next(socket) == {"error": "not_found", "resource": resource}

    await _observe(workspace, WorkspaceStatus.RUNNING)
    assert await socket.receive_nothing(timeout=0.5)
    await socket.disconnect()


async def test_whoever_signs_out_elsewhere_is_told_so_and_gets_nothing_more() -> None:
    owner = await sync_to_async(make_user)()
    workspace = await sync_to_async(make_workspace)(owner=owner)
    resource = f"workspace:{workspace.pk}"
    client = await _signed_in(owner)
    name = settings.SESSION_COOKIE_NAME
    cookie = f"{name}={client.cookies[name].value}"
    sockets = []
    for _ in range(2):
        socket = _socket(None, origin=settings.TRAILER_WS_ORIGINS[0], cookie=cookie)
        await socket.connect()
        sockets.append(socket)
    listening, silent = sockets
    await listening.send_to(text_data=json.dumps({"subscribe": [resource]}))
    assert (await _next(listening))["resource"] == resource

    await sync_to_async(client.logout)()
    await _observe(workspace, WorkspaceStatus.RUNNING)
    assert await listening.receive_output(timeout=5) == {"type": "websocket.close", "code": 4401}
    await silent.send_to(text_data=json.dumps({"subscribe": [resource]}))
    assert await silent.receive_output(timeout=5) == {"type": "websocket.close", "code": 4401}


async def test_a_page_can_ask_whether_its_socket_is_alive() -> None:
    socket = await _subscribed(await sync_to_async(make_user)())
    await socket.send_to(text_data=json.dumps({"ping": 7}))
    assert await _next(socket) == {"pong": 7}
    await socket.disconnect()


async def test_a_list_subscriber_learns_of_new_and_deleted_workspaces() -> None:
    owner = await sync_to_async(make_user)()
    socket = await _subscribed(owner, "workspaces")
    workspace = await sync_to_async(make_workspace)(owner=owner)
    await _observe(workspace, WorkspaceStatus.STARTING)
    assert (await _next(socket))["status"] == "starting"

    @sync_to_async
    def delete() -> None:
        with transaction.atomic():
            Workspace.objects.filter(pk=workspace.pk).delete()
            events.publish("workspace", workspace.pk, deleted=True)

    await delete()
    assert await _next(socket) == {"resource": f"workspace:{workspace.pk}", "deleted": True}
    await socket.disconnect()


async def test_a_change_that_is_rolled_back_is_never_announced() -> None:
    owner = await sync_to_async(make_user)()
    workspace = await sync_to_async(make_workspace)(owner=owner)
    socket = await _subscribed(owner, f"workspace:{workspace.pk}")
    await _next(socket)

    @sync_to_async
    def fail() -> None:
        with transaction.atomic():
            events.publish("workspace", workspace.pk)
            transaction.set_rollback(True)

    await fail()
    assert await socket.receive_nothing(timeout=0.4)
    await socket.disconnect()


@pytest.mark.parametrize("loss", ["token", "expired token", "account", "session", "password"])
@pytest.mark.parametrize("subscribes", [True, False])
async def test_an_idle_socket_ends_with_what_it_was_opened_by(
    loss: str, subscribes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a message from either side."""
    monkeypatch.setattr(consumers, "CHECK_SECONDS", 0.2)
    owner = await sync_to_async(make_user)()
    workspace = await sync_to_async(make_workspace)(owner=owner)
    client = await _signed_in(owner)
    if loss in ("session", "password"):
        name = settings.SESSION_COOKIE_NAME
        cookie = f"{name}={client.cookies[name].value}"
        socket = _socket(None, origin=settings.TRAILER_WS_ORIGINS[0], cookie=cookie)
    else:
        socket = _socket(await _token(owner))
    await socket.connect()
    if subscribes:
        resource = f"workspace:{workspace.pk}"
        await socket.send_to(text_data=json.dumps({"subscribe": [resource]}))
        assert (await _next(socket))["resource"] == resource
    assert await socket.receive_nothing(timeout=0.5)

    @sync_to_async
    def lose() -> None:
        tokens = ApiToken.objects.filter(user=owner)
        if loss == "token":
            tokens.delete()
        elif loss == "expired token":
            tokens.update(expires_at=timezone.now())
        elif loss == "account":
            User.objects.filter(pk=owner.pk).update(is_active=False)
        elif loss == "session":
            client.logout()
        else:
            owner.set_password("another one entirely")
            owner.save()

    await lose()
    assert await socket.receive_output(timeout=5) == {"type": "websocket.close", "code": 4401}


async def test_a_database_that_is_away_for_a_moment_ends_no_looks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(consumers, "CHECK_SECONDS", 0.05)
    owner = await sync_to_async(make_user)()
    socket = _socket(await _token(owner))
    await socket.connect()
    looks = []

    async def away(_scope: Any) -> None:
        looks.append(1)
        if len(looks) < 4:
            raise OperationalError("the server closed the connection")

    monkeypatch.setattr(sockets, "socket_user", away)
    assert await socket.receive_output(timeout=5) == {"type": "websocket.close", "code": 4401}
    assert len(looks) == 4


@pytest.mark.parametrize("token", [None, "trl_api_wrong"])
async def test_a_socket_without_a_valid_user_is_closed_with_4401(token: str | None) -> None:
    socket = _socket(token, origin="http://evil.example")
    connected, _ = await socket.connect()
    assert connected
    closing = await socket.receive_output(timeout=5)
    assert (closing["type"], closing["code"]) == ("websocket.close", 4401)


@pytest.mark.parametrize("address", ["/ws/nothing/", "/ws/workspaces/no-id/logs/", "/elsewhere/"])
async def test_a_socket_at_an_unknown_address_is_closed_with_4404(address: str) -> None:
    socket = PatientSocket(application, address)
    connected, _ = await socket.connect()
    assert connected
    closing = await socket.receive_output(timeout=5)
    assert (closing["type"], closing["code"]) == ("websocket.close", 4404)


@pytest.mark.parametrize(
    "frame", ["nonsense", "[]", '{"subscribe": 3}', '{"subscribe": [1]}', "[" * 50_000]
)
async def test_a_malformed_frame_is_answered_and_the_socket_stays_open(frame: str) -> None:
    owner = await sync_to_async(make_user)()
    host = await sync_to_async(make_host)()
    socket = await _subscribed(owner, f"host:{host.pk}")
    assert (await _next(socket))["status"] == "online"
    await socket.send_to(text_data=frame)
    assert (await _next(socket))["error"] == "invalid"
    await socket.send_to(text_data=json.dumps({"subscribe": ["nothing:1", f"host:{host.pk}"]}))
    assert await _next(socket) == {"error": "not_found", "resource": "nothing:1"}
    assert (await _next(socket))["resource"] == f"host:{host.pk}"
    await socket.disconnect()


async def test_an_account_that_is_disabled_loses_its_open_socket() -> None:
    owner = await sync_to_async(make_user)()
    workspace = await sync_to_async(make_workspace)(owner=owner)
    socket = await _subscribed(owner, f"workspace:{workspace.pk}")
    await _next(socket)
    await sync_to_async(User.objects.filter(pk=owner.pk).update)(is_active=False)
    await _observe(workspace, WorkspaceStatus.RUNNING)
    assert (await socket.receive_output(timeout=5))["type"] == "websocket.close"


async def test_an_agent_is_nudged_and_hung_up_on_by_its_own_socket_only() -> None:
    host, other = await sync_to_async(make_host)(), await sync_to_async(make_host)()
    sockets = []
    for each in (host, other):
        token = await sync_to_async(make_agent_token)(each)
        header = (b"authorization", f"Bearer {token}".encode())
        socket = PatientSocket(application, "/ws/agent/", headers=[header])
        assert (await socket.connect())[0]
        sockets.append(socket)

    @sync_to_async
    def nudge() -> None:
        with transaction.atomic():
            events.nudge(host.pk)

    await nudge()
    assert json.loads(await sockets[0].receive_from(timeout=5)) == {"nudge": True}
    assert await sockets[1].receive_nothing(timeout=0.3)
    admin = await sync_to_async(make_admin)()
    await sync_to_async(host_revoke)(actor=admin, host=host)
    closed = await sockets[0].receive_output(timeout=20)
    assert (closed["type"], closed["code"]) == ("websocket.close", 4401)
    assert await sockets[1].receive_nothing(timeout=0.3)
    await sockets[1].disconnect()


async def test_a_user_token_does_not_open_the_agents_socket() -> None:
    owner = await sync_to_async(make_user)()
    header = (b"authorization", f"Bearer {await _token(owner)}".encode())
    socket = PatientSocket(application, "/ws/agent/", headers=[header])
    await socket.connect()
    assert (await socket.receive_output(timeout=5))["code"] == 4401


async def test_a_flood_of_messages_ends_the_socket_and_no_other() -> None:
    owner, other = await sync_to_async(make_user)(), await sync_to_async(make_user)()
    flooding, quiet = await _subscribed(owner), await _subscribed(other)
    for _ in range(200):
        await flooding.send_to(text_data=json.dumps({"subscribe": ["nothing"]}))
    answers = 0
    while (output := await flooding.receive_output(timeout=5))["type"] != "websocket.close":
        answers += 1
    assert output["code"] == 1013
    assert answers < 200
    await quiet.send_to(text_data=json.dumps({"subscribe": ["nothing"]}))
    assert (await _next(quiet))["error"] == "not_found"
    await quiet.disconnect()


async def test_more_names_than_a_page_has_are_refused_at_once() -> None:
    owner = await sync_to_async(make_user)()
    socket = await _subscribed(owner, *(f"workspace:{uuid.uuid4()}" for _ in range(2001)))
    assert (await _next(socket))["error"] == "invalid"
    assert await socket.receive_nothing()
    await socket.disconnect()


def test_the_rate_is_of_any_span_of_time() -> None:
    rate = MessageRate(most=2, seconds=10)
    assert [rate.allows(now) for now in (0, 9, 9.5, 10, 10.5, 19)] == [
        *(True, True, False, True, False, True)
    ]
