"""A connection that changes its protocol, as WebSockets do: asked in HTTP, then bytes as they are.

What is inside is between the browser and the program: sizes, compression and pings are theirs.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import h11
from django.conf import settings

from workspaces.urls import headers as fields
from workspaces.urls.tunnel import Tunnel, TunnelBroken, request_of

if TYPE_CHECKING:
    from workspaces.urls.access import Passage
    from workspaces.urls.relay import Visit
    from workspaces.urls.tunnel import Tunnels

_ANSWER_SECONDS: Final = 60.0


class Switch:
    def __init__(self, visit: Visit, way: Passage, receive: Any, send: Any) -> None:
        self._visit = visit
        self._way = way
        self._receive = receive
        self._send = send
        self._tunnel: Tunnel | None = None

    async def run(self, tunnels: Tunnels, layer: Any) -> None:
        tunnel = self._tunnel = await tunnels.take(layer, self._way, may_reuse=False)
        try:
            if await self._ask(tunnel):
                await self._pass(tunnel)
        except TunnelBroken:
            await self._send({"type": "upgrade.close"})
        finally:
            await tunnel.close()

    async def keep_alive(self) -> None:
        if self._tunnel is not None:
            await self._tunnel.link.check()

    async def _ask(self, tunnel: Tunnel) -> bool:
        """Whether the program changed its protocol; any other answer is passed on whole."""
        await tunnel.send(self._request())
        await tunnel.send(h11.EndOfMessage())
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                event = await tunnel.receive()
                while isinstance(event, h11.InformationalResponse) and event.status_code != 101:
                    event = await tunnel.receive()
        except TimeoutError:
            raise TunnelBroken("no answer in time") from None
        if isinstance(event, h11.InformationalResponse):
            extra = [(b"connection", b"upgrade"), (b"upgrade", b"websocket")]
            await self._head(event, extra)
            if tunnel.trailing:
                await self._send({"type": "upgrade.send", "bytes": tunnel.trailing})
            return True
        if not isinstance(event, h11.Response):
            raise TunnelBroken("no answer")
        await self._refused(tunnel, event)
        return False

    async def _refused(self, tunnel: Tunnel, response: h11.Response) -> None:
        kept = [(b"connection", b"close")]
        await self._head(response, kept)
        while isinstance(event := await tunnel.receive(), h11.Data):
            await self._send({"type": "upgrade.send", "bytes": bytes(event.data)})
        await self._send({"type": "upgrade.close"})

    async def _pass(self, tunnel: Tunnel) -> None:
        tasks = {
            asyncio.create_task(self._to_program(tunnel)),
            asyncio.create_task(self._to_browser(tunnel)),
        }
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._send({"type": "upgrade.close"})

    async def _to_program(self, tunnel: Tunnel) -> None:
        while (message := await self._receive())["type"] == "upgrade.receive":
            await tunnel.link.write(message["bytes"])

    async def _to_browser(self, tunnel: Tunnel) -> None:
        while True:
            item = await tunnel.link.receive()
            if item.close is not None:
                return
            if item.data:
                await self._send({"type": "upgrade.send", "bytes": item.data})
                await tunnel.link.used(item.data)

    async def _head(self, response: Any, extra: list[tuple[bytes, bytes]]) -> None:
        kept = fields.from_app(
            response.headers.raw_items(),
            cookies=fields.platform_cookies(
                settings.SESSION_COOKIE_NAME, settings.CSRF_COOKIE_NAME
            ),
            host=self._visit.host,
            is_public=self._way.is_public,
        )
        reason = bytes(response.reason) or b"Answer"
        lines = [b"HTTP/1.1 %d %s" % (response.status_code, reason)]
        lines += [name + b": " + value for name, value in (*kept, *extra)]
        await self._send({"type": "upgrade.send", "bytes": b"\r\n".join(lines) + b"\r\n\r\n"})

    def _request(self) -> h11.Request:
        kept = fields.to_app(
            self._visit.headers,
            cookies=fields.platform_cookies(
                settings.SESSION_COOKIE_NAME, settings.CSRF_COOKIE_NAME
            ),
            client=self._visit.client,
            scheme=self._visit.scheme,
            user=self._way.user.get_username() if self._way.user else "",
        )
        kept += [(b"connection", b"Upgrade"), (b"upgrade", b"websocket")]
        return request_of("GET", self._visit.target, kept)
