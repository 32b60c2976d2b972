"""One HTTP request and its answer, streamed both ways through a tunnel."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

import h11
from django.conf import settings

from workspaces.urls import headers as fields
from workspaces.urls.pages import notice, send_answer
from workspaces.urls.tunnel import Tunnel, TunnelBroken, request_of

if TYPE_CHECKING:
    from workspaces.urls.access import Passage
    from workspaces.urls.headers import Header
    from workspaces.urls.relay import Visit
    from workspaces.urls.tunnel import Tunnels

logger = logging.getLogger(__name__)

# Until the first line of an answer; what comes behind may take its time.
_ANSWER_SECONDS: Final = 300.0
_REPEATABLE: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class VisitorLeft(Exception):
    """Before the answer was whole, as they may."""


class Exchange:
    def __init__(self, visit: Visit, way: Passage, receive: Any, send: Any) -> None:
        self._visit = visit
        self._way = way
        self._receive = receive
        self._send = send
        self._tunnel: Tunnel | None = None
        self._has_begun = False
        self.extra_headers: list[Header] = []

    async def run(self, tunnels: Tunnels, layer: Any) -> None:
        request, has_body = request_to_app(self._visit, self._way)
        may_repeat = not has_body and self._visit.method in _REPEATABLE
        while True:
            self._tunnel = await tunnels.take(layer, self._way, may_reuse=may_repeat)
            try:
                await self._talk(self._tunnel, request, has_body=has_body)
            except TunnelBroken as problem:
                await self._tunnel.close()
                if may_repeat and self._tunnel.was_used and not self._has_begun:
                    # An idle connection that the program closed just then.
                    may_repeat = False
                    continue
                await self._broken(problem)
                return
            except BaseException:
                await self._tunnel.close()
                raise
            await tunnels.give_back(self._way, self._tunnel)
            return

    async def keep_alive(self) -> None:
        if self._tunnel is not None:
            await self._tunnel.link.check()

    async def _talk(self, tunnel: Tunnel, request: h11.Request, *, has_body: bool) -> None:
        """Asking and answering run beside each other: a program may answer before it has read
        everything, and a browser may leave at any time."""
        asking = asyncio.create_task(self._ask(tunnel, request, has_body=has_body))
        answering = asyncio.create_task(self._answer(tunnel))
        try:
            await asyncio.wait({asking, answering}, return_when=asyncio.FIRST_COMPLETED)
            if not answering.done() and asking.exception() is None:
                raise VisitorLeft
            if answering.done():
                answering.result()
            else:
                # Whoever does not take the request any more may still have answered it.
                async with asyncio.timeout(_ANSWER_SECONDS):
                    await answering
        finally:
            for task in (asking, answering):
                task.cancel()
            await asyncio.gather(asking, answering, return_exceptions=True)

    async def _ask(self, tunnel: Tunnel, request: h11.Request, *, has_body: bool) -> None:
        """Returns when the visitor is gone."""
        await tunnel.send(request)
        if not has_body:
            await tunnel.send(h11.EndOfMessage())
        asking = has_body
        while True:
            message = await self._receive()
            if message["type"] != "http.request":
                return
            if not asking:
                continue
            if message.get("body"):
                await tunnel.send(h11.Data(data=message["body"]))
            if not message.get("more_body", False):
                await tunnel.send(h11.EndOfMessage())
                asking = False

    async def _answer(self, tunnel: Tunnel) -> None:
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                event = await tunnel.receive()
                while isinstance(event, h11.InformationalResponse):
                    event = await tunnel.receive()
        except TimeoutError:
            raise TunnelBroken("no answer in time") from None
        if not isinstance(event, h11.Response):
            raise TunnelBroken("no answer")
        await self._begin(event)
        event = await tunnel.receive()
        while isinstance(event, h11.Data):
            parts = []
            while isinstance(event, h11.Data):
                parts.append(event.data)
                event = tunnel.next_event()
            is_last = isinstance(event, h11.EndOfMessage)
            # Returns when the browser has room: that is what the agent's credit waits for.
            await self._body(b"".join(parts), more=not is_last)
            if is_last:
                return
            event = event or await tunnel.receive()
        if not isinstance(event, h11.EndOfMessage):
            raise TunnelBroken("broke off")
        await self._body(b"", more=False)

    async def _begin(self, response: h11.Response) -> None:
        self._has_begun = True
        kept = fields.from_app(
            response.headers.raw_items(),
            cookies=_platform_cookies(),
            host=self._visit.host,
            is_public=self._way.is_public,
        )
        await self._send(
            {
                "type": "http.response.start",
                "status": response.status_code,
                "headers": [*kept, *self.extra_headers],
            }
        )

    async def _body(self, data: bytes, *, more: bool) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": more})

    async def _broken(self, problem: TunnelBroken) -> None:
        logger.info("answer of %s broke off: %s", self._visit.host, problem)
        if self._has_begun:
            # The only way to say it now: an end where none was announced.
            await self._send({"type": "http.response.cut"})
            return
        sentence = (
            f"{self._way.workspace_name} ended the connection without a proper answer. "
            "Its logs may say why."
        )
        answer = notice(502, "The answer broke off", sentence, as_page=self._visit.is_navigation)
        await send_answer(self._send, answer, is_head=self._visit.method == "HEAD")


def request_to_app(visit: Visit, way: Passage) -> tuple[h11.Request, bool]:
    """And whether a body follows. Its length is said in one way, whatever the visitor said."""
    kept = fields.to_app(
        visit.headers,
        cookies=_platform_cookies(),
        client=visit.client,
        scheme=visit.scheme,
        user=way.user.get_username() if way.user else "",
    )
    length = fields.header(visit.headers, b"content-length")
    chunked = bool(fields.header(visit.headers, b"transfer-encoding"))
    if chunked:
        kept.append((b"transfer-encoding", b"chunked"))
    elif length:
        kept.append((b"content-length", (length.lstrip("0") or "0").encode()))
    return request_of(visit.method, visit.target, kept), chunked or bool(length.strip("0"))


def _platform_cookies() -> frozenset[str]:
    return fields.platform_cookies(settings.SESSION_COOKIE_NAME, settings.CSRF_COOKIE_NAME)
