"""The build log socket: each viewer reads the stored log by offset, at its own pace."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from asgiref.sync import sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer

from images.models import Build
from images.services.logs import build_log_read
from trailer import sockets
from trailer.events import object_group

if TYPE_CHECKING:
    from trailer.accounts.models import User

_BATCH_BYTES = 64 * 1024
# A hint that the channel layer dropped costs at most this long.
_LOOK_SECONDS = 5.0


class BuildLogConsumer(AsyncWebsocketConsumer):
    """Group messages only say that there is more; the bytes always come from the database."""

    async def connect(self) -> None:
        self.reader: asyncio.Task[None] | None = None
        self.more = asyncio.Event()
        self.group: str | None = None
        user = await sockets.socket_user(self.scope)
        await self.accept()
        if user is None:
            await self.close(code=sockets.NOT_SIGNED_IN)
            return
        build_id = self.scope["url_route"]["kwargs"]["build_id"]
        self.group = object_group("build", build_id)
        await self.channel_layer.group_add(self.group, self.channel_name)
        build = await _visible_build(user, build_id)
        if build is None:
            await self.close(code=sockets.NOT_THERE)
            return
        self.reader = asyncio.create_task(self._follow(build, _offset(self.scope)))

    async def disconnect(self, code: int) -> None:
        if self.reader is not None:
            self.reader.cancel()
        if self.group is not None:
            await self.channel_layer.group_discard(self.group, self.channel_name)

    async def changed(self, event: dict[str, Any]) -> None:
        self.more.set()

    async def _follow(self, build: Build, offset: int) -> None:
        try:
            await self._read(build, offset)
        except Build.DoesNotExist:
            await self.close(code=sockets.NOT_THERE)

    async def _read(self, build: Build, offset: int) -> None:
        clock = asyncio.get_running_loop().time
        look_at = clock() + _LOOK_SECONDS
        while True:
            self.more.clear()
            data, offset, complete = await sync_to_async(build_log_read)(
                build, offset, limit=_BATCH_BYTES
            )
            if data:
                text = data.decode("utf-8", "replace")
                await self.send(text_data=json.dumps({"offset": offset, "text": text}))
            if complete:
                status = await _status(build)
                await self.send(text_data=json.dumps({"complete": True, "status": status}))
                await self.close()
                return
            if len(data) < _BATCH_BYTES // 2:
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(look_at):
                        await self.more.wait()
            # However much there is to read: who lost access meanwhile reads no more of it.
            if clock() >= look_at:
                if refusal := await self._refusal(build):
                    await self.close(code=refusal)
                    return
                look_at = clock() + _LOOK_SECONDS

    async def _refusal(self, build: Build) -> int | None:
        user = await sockets.socket_user(self.scope)
        if user is None:
            return sockets.NOT_SIGNED_IN
        return None if await _visible_build(user, build.pk) else sockets.NOT_THERE


@sync_to_async
def _visible_build(user: User, build_id: Any) -> Build | None:
    return Build.objects.visible_to(user).filter(pk=build_id).first()


@sync_to_async
def _status(build: Build) -> str:
    # nosemgrep: unscoped-read (of a build that was visible just now)
    return Build.objects.values_list("status", flat=True).get(pk=build.pk)


def _offset(scope: Any) -> int:
    text = parse_qs(scope["query_string"].decode("latin-1")).get("offset", ["0"])[0]
    return int(text) if text.isdecimal() and len(text) < 19 else 0
