"""The agent's own socket: it dials out, we send nudges and carry sessions over it."""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async

from agent.protocol.sessions import FrameKind, decode_frame
from hosts.agent_streams import AgentStream
from hosts.authentication import AgentRefused, epoch_of, host_for_bearer
from hosts.streams import StreamEnd
from trailer import sockets
from trailer.events import agent_group

if TYPE_CHECKING:
    from hosts.models import Host

_WATCH_SECONDS = 10.0
_LOOKS_FOR_A_NEW_TOKEN = 2


class AgentConsumer(sockets.PromptBytes):
    """Of two connections of one agent the newer one carries the sessions."""

    async def connect(self) -> None:
        self.group: str | None = None
        self.streams: dict[int, AgentStream] = {}
        self.numbers = itertools.count(1)
        self.is_replaced = False
        self.watch: asyncio.Task[None] | None = None
        self.bearer = sockets.header(self.scope, "Authorization")
        # Looks left until an agent that has a new token must have shown it; 0: nothing is due.
        self.looks_left = 0
        self.epoch = epoch_of({"Trailer-Epoch": sockets.header(self.scope, "Trailer-Epoch")})
        host = await self._host()
        if host is None:
            await self.accept()
            await self.close(code=sockets.NOT_SIGNED_IN)
            return
        self.group = agent_group(host.id)
        await self.channel_layer.group_add(self.group, self.channel_name)
        # From here on the agent takes itself for connected: it must be found already.
        await self.accept()
        self.watch = asyncio.create_task(self._watch())
        await self.channel_layer.group_send(
            self.group,
            {"type": "agent.connected", "epoch": self.epoch, "channel": self.channel_name},
        )

    async def disconnect(self, code: int) -> None:
        if self.watch is not None:
            self.watch.cancel()
        if self.group is not None:
            await self.channel_layer.group_discard(self.group, self.channel_name)
        for stream in list(self.streams.values()):
            await stream.lost()

    async def nudge(self, event: dict[str, Any]) -> None:
        await self.send(text_data=json.dumps({"nudge": True}))

    async def agent_connected(self, event: dict[str, Any]) -> None:
        """The same agent dialled again: this connection is dead, whatever it looks like."""
        if event["channel"] != self.channel_name and event["epoch"] == self.epoch:
            self.is_replaced = True
            await self.close()

    async def agent_dismissed(self, event: dict[str, Any]) -> None:
        """Its token was revoked, or another agent has come in its place meanwhile."""
        if await self._host() is None:
            self.is_replaced = True
            await self.close(code=sockets.NOT_SIGNED_IN)

    async def agent_renewed(self, event: dict[str, Any]) -> None:
        """An agent tells its new token within a second. Who can't had only the old one."""
        self.looks_left = _LOOKS_FOR_A_NEW_TOKEN

    async def _show(self, text: str) -> None:
        """The agent's new token, so that its sessions need not end for it."""
        try:
            told = json.loads(text)
        except ValueError:
            return
        if not isinstance(told, dict) or not isinstance(told.get("token"), str):
            return
        bearer = f"Bearer {told['token']}"
        host = await self._host(bearer)
        if host is not None and self.group == agent_group(host.id):
            self.bearer = bearer

    # --- sessions -----------------------------------------------------------------------------

    async def session_open(self, event: dict[str, Any]) -> None:
        if self.is_replaced or event["epoch"] != self.epoch:
            return
        if agent_group(event["host"]) != self.group:
            # Redis says who is in a group, and somebody else may write there.
            return
        number = next(self.numbers)
        end = await StreamEnd.create(self.channel_layer, peer=event["reply"])
        stream = AgentStream(number, end, send=self._send_frame, on_over=self._forget)
        self.streams[number] = stream
        await stream.start(event["request"])

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if text_data and self.group is not None:
            await self._show(text_data)
            return
        frame = decode_frame(bytes_data) if bytes_data else None
        stream = self.streams.get(frame.stream) if frame else None
        if frame is not None and stream is not None and frame.kind is not FrameKind.OPEN:
            await stream.from_agent(frame)

    async def _send_frame(self, data: bytes) -> None:
        await self.send(bytes_data=data)

    def _forget(self, stream: AgentStream) -> None:
        self.streams.pop(stream.number, None)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            for stream in list(self.streams.values()):
                if stream.end.is_silent():
                    await stream.left()
            if self.looks_left:
                self.looks_left -= 1
                if not self.looks_left:
                    await self.agent_dismissed({})

    async def _host(self, bearer: str = "") -> Host | None:
        try:
            return await sync_to_async(host_for_bearer)(bearer or self.bearer)
        except AgentRefused:
            return None
