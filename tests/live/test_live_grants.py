"""Grants on the live socket: whoever is let in gets frames, whoever is put out is told so."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import sync_to_async
from django.db import transaction
from django.utils import timezone

from tests.factories import (
    make_build,
    make_grant,
    make_group,
    make_image,
    make_token,
    make_user,
    make_workspace,
)
from tests.live.patient_socket import PatientSocket
from trailer import events
from trailer.access.grants import grants_replace
from trailer.access.models import Grant, Role
from trailer.asgi import application

if TYPE_CHECKING:
    from trailer.accounts.models import User
    from workspaces.models import Workspace

pytestmark = pytest.mark.django_db(transaction=True)


async def _open(user: User, path: str, *names: str) -> PatientSocket:
    token = await sync_to_async(make_token)(user)
    headers = [(b"authorization", f"Token {token}".encode())]
    socket = PatientSocket(application, path, headers=headers)
    assert (await socket.connect())[0]
    if names:
        await socket.send_to(text_data=json.dumps({"subscribe": names}))
    return socket


async def _next(socket: PatientSocket) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(await socket.receive_from(timeout=5))
    return message


@sync_to_async
def _scene() -> tuple[User, User, Workspace]:
    owner = make_user()
    return owner, make_user("stan"), make_workspace(owner=owner)


@sync_to_async
def _share(workspace: Workspace, owner: User, *entries: dict[str, Any]) -> None:
    grants_replace(actor=owner, obj=workspace, entries=entries)


@sync_to_async
def _touch(workspace: Workspace) -> None:
    with transaction.atomic():
        events.publish("workspace", workspace.pk)


async def test_a_grant_opens_an_open_socket_and_its_end_closes_it() -> None:
    owner, stan, workspace = await _scene()
    resource = f"workspace:{workspace.pk}"
    socket = await _open(stan, "/ws/live/", "workspaces", resource)
    assert await _next(socket) == {"error": "not_found", "resource": resource}

    await _share(workspace, owner, {"user": "stan", "role": "viewer"})
    seen = await _next(socket)
    assert (seen["resource"], seen["allowed_actions"]) == (resource, [])
    await _share(workspace, owner, {"user": "stan", "role": "manager"})
    assert "delete" in (await _next(socket))["allowed_actions"]
    await _share(workspace, owner)
    assert await _next(socket) == {"resource": resource, "deleted": True}
    await _touch(workspace)
    assert await socket.receive_nothing(timeout=0.3)
    await socket.disconnect()


async def test_a_grant_that_expires_or_a_group_that_is_left_ends_the_frames() -> None:
    owner, stan, workspace = await _scene()
    group = await sync_to_async(make_group)(stan)
    await sync_to_async(make_grant)(workspace, group, Role.EDITOR)
    other = await sync_to_async(make_workspace)(owner=owner)
    await sync_to_async(make_grant)(other, stan, Role.EDITOR)
    names = [f"workspace:{workspace.pk}", f"workspace:{other.pk}"]
    socket = await _open(stan, "/ws/live/", *names)
    assert {(await _next(socket))["resource"] for _ in names} == set(names)

    past = timezone.now() - timedelta(seconds=1)
    await sync_to_async(Grant.objects.filter(user=stan).update)(expires_at=past)
    await sync_to_async(stan.groups.clear)()
    for row, name in zip((workspace, other), names, strict=True):
        await _touch(row)
        assert await _next(socket) == {"resource": name, "deleted": True}
    await socket.disconnect()


async def test_a_viewer_of_an_image_reads_its_build_log_and_a_stranger_does_not() -> None:
    image = await sync_to_async(make_image)()
    build = await sync_to_async(make_build)(image, status="finished")
    viewer, stranger = await sync_to_async(make_user)(), await sync_to_async(make_user)()
    await sync_to_async(make_grant)(image, viewer, Role.VIEWER)
    socket = await _open(viewer, f"/ws/builds/{build.pk}/log/")
    assert (await _next(socket))["complete"] is True
    socket = await _open(stranger, f"/ws/builds/{build.pk}/log/")
    assert (await socket.receive_output(timeout=5))["code"] == 4404
