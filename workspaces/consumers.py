"""The live socket: a browser subscribes to resources and receives their whole small states."""

from __future__ import annotations

import asyncio
import json
import random
from typing import TYPE_CHECKING, Any
from uuid import UUID

from asgiref.sync import sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import Error as DatabaseProblem
from django.utils import timezone

from trailer import sockets
from trailer.events import FRESHNESS_GROUP, kind_group, object_group
from trailer.message_rate import MessageRate
from workspaces.live import KINDS, live_states, parse_resource, resources_on

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trailer.accounts.models import User

# Changes within this time become one look at the database and one batch of frames.
_COALESCE_SECONDS = 0.05
_MAX_SUBSCRIPTIONS = 2000
_MAX_FRAME = 256 * 1024
_MAX_MESSAGES = 100
_RATE_SECONDS = 10.0
# Who is at the other end is asked again this often, also while nothing happens.
CHECK_SECONDS = 15.0


class LiveConsumer(AsyncWebsocketConsumer):
    """Group messages are hints; each state is read anew, through what this user may see."""

    async def connect(self) -> None:
        self.pending: dict[str, bool] = {}
        self.known: set[str] = set()
        # Workspaces whose events are followed: they change with their workspace.
        self.stories: set[str] = set()
        self.groups_joined: set[str] = set()
        self.flusher: asyncio.Task[None] | None = None
        self.checker: asyncio.Task[None] | None = None
        self.rate = MessageRate(most=_MAX_MESSAGES, seconds=_RATE_SECONDS)
        self.user: User | None = await sockets.socket_user(self.scope)
        await self.accept()
        if self.user is None:
            await self.close(code=sockets.NOT_SIGNED_IN)
            return
        await self._join(FRESHNESS_GROUP)
        self.checker = asyncio.create_task(self._check())

    async def disconnect(self, code: int) -> None:
        for task in (self.flusher, self.checker):
            if task is not None:
                task.cancel()
        for group in self.groups_joined:
            await self.channel_layer.group_discard(group, self.channel_name)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if self.user is None:
            return
        if not self.rate.allows(asyncio.get_running_loop().time()):
            self.user = None
            if self.flusher is not None:
                self.flusher.cancel()
            await self.close(code=sockets.BUSY)
            return
        message = _message(text_data)
        if "ping" in message:
            # A page cannot see the protocol's own pings, nor that its network is gone.
            await self._send({"pong": message["ping"]})
        elif (names := _subscription(message)) is not None:
            await self._subscribe(names)
        else:
            await self._send({"error": "invalid", "message": 'Send {"subscribe": [names]}.'})

    async def changed(self, event: dict[str, Any]) -> None:
        resource = event["resource"]
        kind, _, object_id = resource.partition(":")
        if kind == "workspace" and object_id in self.stories:
            self.pending[f"events:{object_id}"] = event["deleted"]
            if resource not in self.known and kind_group(kind) not in self.groups_joined:
                self._schedule()
                return
        self.pending[resource] = self.pending.get(resource, False) or event["deleted"]
        self._schedule()

    async def freshness(self, event: dict[str, Any]) -> None:
        if self.user is None:
            return
        kinds = frozenset(kind for kind in KINDS if kind_group(kind) in self.groups_joined)
        for resource in await sync_to_async(resources_on)(
            self.user, UUID(event["host"]), kinds=kinds, known=frozenset(self.known)
        ):
            self.pending.setdefault(resource, False)
        self._schedule()

    async def _subscribe(self, names: list[str]) -> None:
        wanted = []
        for name in names:
            if name.removesuffix("s") in KINDS and name.endswith("s"):
                await self._join(kind_group(name.removesuffix("s")))
            elif (parsed := parse_resource(name)) is not None:
                # Joined before the look-up: a change in between is then sent twice, never lost.
                if parsed[0] == "events":
                    self.stories.add(str(parsed[1]))
                await self._join(_group_of(parsed[0], parsed[1]))
                wanted.append(f"{parsed[0]}:{parsed[1]}")
            else:
                await self._send({"error": "not_found", "resource": name})
        states = await self._load(wanted)
        if self.user is None:
            await self.close(code=sockets.NOT_SIGNED_IN)
            return
        for resource in wanted:
            state = states.get(resource)
            if state is None:
                kind, _, object_id = resource.partition(":")
                await self._leave(_group_of(kind, object_id))
                await self._send({"error": "not_found", "resource": resource})
            else:
                self.known.add(resource)
                await self._send(state)

    def _schedule(self) -> None:
        if self.flusher is None or self.flusher.done():
            self.flusher = asyncio.create_task(self._flush())

    async def _flush(self) -> None:
        while self.pending:
            await asyncio.sleep(_COALESCE_SECONDS)
            pending, self.pending = self.pending, {}
            states = await self._load(pending)
            if self.user is None:
                await self.close(code=sockets.NOT_SIGNED_IN)
                return
            for resource in pending:
                await self._tell(resource, states.get(resource))

    async def _check(self) -> None:
        """An open socket that hears and says nothing ends with its token, session or account. At
        random moments, so that all of a server that came back do not ask at once."""
        while True:
            await asyncio.sleep(CHECK_SECONDS * random.uniform(0.5, 1.0))  # noqa: S311
            if self.user is None:
                return
            try:
                still_there = await sockets.socket_user(self.scope)
            except DatabaseProblem:
                # It says nothing about anybody; the next look does.
                continue
            if still_there is None:
                self.user = None
                await self.close(code=sockets.NOT_SIGNED_IN)
                return

    async def _tell(self, resource: str, state: dict[str, Any] | None) -> None:
        if state is not None:
            self.known.add(resource)
            await self._send(state)
        elif resource in self.known:
            # Gone, or no longer visible: for this user that is the same.
            self.known.discard(resource)
            await self._send({"resource": resource, "deleted": True})

    async def _load(self, resources: Iterable[str]) -> dict[str, dict[str, Any]]:
        if self.user is None:
            return {}
        # Signed out, revoked or disabled since: an open socket must not outlive that.
        self.user = await sockets.socket_user(self.scope)
        if self.user is None:
            return {}
        return await sync_to_async(live_states)(self.user, list(resources), timezone.now())

    async def _join(self, group: str) -> None:
        if group not in self.groups_joined and len(self.groups_joined) <= _MAX_SUBSCRIPTIONS:
            self.groups_joined.add(group)
            await self.channel_layer.group_add(group, self.channel_name)

    async def _leave(self, group: str) -> None:
        self.groups_joined.discard(group)
        await self.channel_layer.group_discard(group, self.channel_name)

    async def _send(self, message: dict[str, Any]) -> None:
        await self.send(text_data=json.dumps(message))


def _group_of(kind: str, object_id: UUID | str) -> str:
    """Where changes of a resource are told: those of events with their workspace."""
    return object_group("workspace" if kind == "events" else kind, object_id)


def _message(text: str | None) -> dict[str, Any]:
    """What a frame says; nothing when it is no object, or too long to be one of ours."""
    if text is None or len(text) > _MAX_FRAME:
        return {}
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _subscription(message: dict[str, Any]) -> list[str] | None:
    names = message.get("subscribe")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return None
    return names if len(names) <= _MAX_SUBSCRIPTIONS else None
