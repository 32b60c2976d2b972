"""The build log socket: everything from an offset on, once, and then the end."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import sync_to_async

from images import consumers
from images.choices import BuildStatus
from images.models import Build
from images.services.logs import build_log_append
from tests.factories import make_image, make_token, make_user
from tests.live.patient_socket import PatientSocket
from trailer import events
from trailer.accounts.models import ApiToken
from trailer.asgi import application

if TYPE_CHECKING:
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db(transaction=True)


async def _open(user: User, build: Build, offset: int = 0) -> PatientSocket:
    token = await sync_to_async(make_token)(user)
    address = f"/ws/builds/{build.pk}/log/?offset={offset}"
    headers = [(b"authorization", f"Token {token}".encode())]
    socket = PatientSocket(application, address, headers=headers)
    assert (await socket.connect())[0]
    return socket


async def _next(socket: PatientSocket) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(await socket.receive_from(timeout=5))
    return message


@sync_to_async
def _building(owner: User) -> Build:
    return make_image(owner=owner, status=BuildStatus.BUILDING).builds.get()


@sync_to_async
def _append(build: Build, data: bytes) -> None:
    build.refresh_from_db()
    build_log_append(build.image.host, build.pk, offset=build.log_bytes, data=data)


@sync_to_async
def _finish(build: Build) -> None:
    Build.objects.filter(pk=build.pk).update(status=BuildStatus.FINISHED)
    events.publish("build", build.pk)


async def test_a_viewer_gets_what_was_written_then_what_is_written_then_the_end() -> None:
    owner = await sync_to_async(make_user)()
    build = await _building(owner)
    await _append(build, b"Step 1\n")
    socket = await _open(owner, build)
    assert await _next(socket) == {"offset": 7, "text": "Step 1\n"}
    await _append(build, "Schritt zwei: für\n".encode())
    second = await _next(socket)
    assert second["text"] == "Schritt zwei: für\n"
    await _finish(build)
    assert await _next(socket) == {"complete": True, "status": "finished"}


async def test_a_viewer_that_comes_back_goes_on_at_its_offset_without_gap_or_double() -> None:
    owner = await sync_to_async(make_user)()
    build = await _building(owner)
    whole = b"".join(b"line %d\n" % number for number in range(20_000))
    await _append(build, whole)
    socket = await _open(owner, build)
    first = await _next(socket)
    await socket.disconnect()
    await _finish(build)
    again = await _open(owner, build, first["offset"])
    text = first["text"]
    while not (frame := await _next(again)).get("complete"):
        text += frame["text"]
    assert text.encode() == whole


async def test_a_character_split_between_two_writes_arrives_whole() -> None:
    owner = await sync_to_async(make_user)()
    build = await _building(owner)
    euro = "€".encode()
    await _append(build, b"5 " + euro[:2])
    socket = await _open(owner, build)
    assert (await _next(socket))["text"] == "5 "
    await _append(build, euro[2:] + b"\n")
    assert (await _next(socket))["text"] == "€\n"
    await socket.disconnect()


async def test_a_stranger_is_closed_out_with_4404() -> None:
    build = await _building(await sync_to_async(make_user)())
    socket = await _open(await sync_to_async(make_user)(), build)
    assert (await socket.receive_output(timeout=5))["code"] == 4404


async def _closed_with(socket: PatientSocket) -> int:
    while True:
        message = await socket.receive_output(timeout=5)
        if message["type"] == "websocket.close":
            return int(message["code"])


async def test_a_reader_of_a_flood_who_loses_access_is_closed_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A log that is never silent gives no pause to look again."""
    monkeypatch.setattr(consumers, "_LOOK_SECONDS", 0.2)
    owner = await sync_to_async(make_user)()
    build = await _building(owner)
    await _append(build, b"Step 1\n")
    socket = await _open(owner, build)
    assert (await _next(socket))["text"] == "Step 1\n"
    await sync_to_async(ApiToken.objects.filter(user=owner).delete)()
    closing = asyncio.create_task(_closed_with(socket))
    async with asyncio.timeout(5):
        while not closing.done():
            await _append(build, b"more\n")
    assert await closing == 4401


async def test_the_reader_of_a_build_that_is_deleted_is_closed_out() -> None:
    owner = await sync_to_async(make_user)()
    build = await _building(owner)
    await _append(build, b"Step 1\n")
    socket = await _open(owner, build)
    assert (await _next(socket))["text"] == "Step 1\n"
    await sync_to_async(Build.objects.filter(pk=build.pk).delete)()
    await sync_to_async(events.publish)("build", build.pk)
    assert await _closed_with(socket) == 4404
