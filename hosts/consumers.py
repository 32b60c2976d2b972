"""The agent's own socket: it dials out, we send nudges. Losing it costs speed only."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer

from hosts.authentication import AgentRefused, host_for_bearer
from trailer import sockets
from trailer.events import agent_group

if TYPE_CHECKING:
    from hosts.models import Host


class AgentConsumer(AsyncWebsocketConsumer):
    async def connect(self) -> None:
        self.group: str | None = None
        host = await self._host()
        await self.accept()
        if host is None:
            await self.close(code=sockets.NOT_SIGNED_IN)
            return
        self.group = agent_group(host.id)
        await self.channel_layer.group_add(self.group, self.channel_name)

    async def disconnect(self, code: int) -> None:
        if self.group is not None:
            await self.channel_layer.group_discard(self.group, self.channel_name)

    async def nudge(self, event: dict[str, Any]) -> None:
        await self.send(text_data=json.dumps({"nudge": True}))

    async def _host(self) -> Host | None:
        try:
            return await sync_to_async(host_for_bearer)(
                sockets.header(self.scope, "Authorization")
            )
        except AgentRefused:
            return None
