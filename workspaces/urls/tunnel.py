"""One connection to a port inside a workspace, through its agent, spoken to in HTTP/1.1.

The parser is h11, for what is sent as for what comes back: nothing is passed on whose length two
readers could understand differently.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import h11

from agent.protocol.sessions import LOST, PROXY, REFUSED, WIDE_WINDOW, SessionOpen
from trailer.errors import Unavailable
from workspaces.sessions.link import AgentLink

if TYPE_CHECKING:
    from uuid import UUID

    from workspaces.urls.access import Passage

    Key = tuple[UUID, int]

_OPEN_SECONDS: Final = 15.0
_HEAD_LIMIT: Final = 128 * 1024
# Shorter than most servers keep an idle connection themselves.
_IDLE_SECONDS: Final = 4.0
_MOST_IDLE: Final = 16
_AT_ONCE: Final = 64 * 1024


class TunnelRefused(Exception):
    """The agent cannot reach the program; `is_closed`: nothing listens on the port."""

    def __init__(self, sentence: str, *, is_closed: bool = False) -> None:
        super().__init__(sentence)
        self.is_closed = is_closed


class TunnelBroken(Exception):
    """It ended where no answer ends."""


class Unsendable(Exception):
    """A request that cannot be said to the program in one way only."""


class Tunnel:
    def __init__(self, link: AgentLink) -> None:
        self.link = link
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD_LIMIT)
        self.was_used = False
        self.idle_since = 0.0

    @classmethod
    async def open(cls, layer: Any, way: Passage) -> Tunnel:
        request = SessionOpen(
            kind=PROXY,
            workspace_id=str(way.workspace_id),
            user=str(way.user.pk) if way.user else "",
            port=way.port,
            window=WIDE_WINDOW,
        )
        try:
            link = await AgentLink.open(layer, way.place, request)
        except Unavailable as problem:
            raise TunnelRefused(problem.message) from problem
        try:
            async with asyncio.timeout(_OPEN_SECONDS):
                first = await link.receive()
        except TimeoutError:
            await link.close()
            raise TunnelRefused("The host's agent did not answer in time.") from None
        except BaseException:
            await link.close()
            raise
        if first.close is not None:
            raise TunnelRefused(
                first.close.error or "The host's agent ended the connection.",
                is_closed=first.close.code == REFUSED,
            )
        return cls(link)

    async def send(self, event: Any) -> None:
        data = self._http.send(event)
        if data:
            await self.link.write(data)

    async def receive(self) -> Any:
        """The next event of the answer."""
        while (event := self.next_event()) is None:
            item = await self.link.receive()
            if item.data:
                await self._take(item.data)
            elif item.close is not None:
                if item.close.code == LOST:
                    raise TunnelBroken(item.close.error)
                self._http.receive_data(b"")
        return event

    def next_event(self) -> Any:
        """Of what is here already; None where one has to wait."""
        try:
            event = self._http.next_event()
        except h11.RemoteProtocolError as problem:
            raise TunnelBroken(str(problem)) from problem
        if event is h11.PAUSED:
            raise TunnelBroken("more was sent than asked for")
        if isinstance(event, h11.Response) and _has_two_lengths(event):
            # A reader behind us could take the shorter one, and the rest for another answer.
            raise TunnelBroken("its length was told in two ways")
        return None if event is h11.NEED_DATA else event

    async def _take(self, data: bytes) -> None:
        """With what came behind it, so that a head and its body go on as one; not much of it,
        for it is credited before the visitor has it."""
        size = 0
        while data:
            size += len(data)
            self._http.receive_data(data)
            await self.link.used(data)
            data = self.link.next_bytes() if size < _AT_ONCE else b""

    @property
    def trailing(self) -> bytes:
        """What came behind a switch of protocols."""
        return bytes(self._http.trailing_data[0])

    def may_be_kept(self) -> bool:
        """Not with bytes behind the answer, which would be taken for the next one's."""
        is_over = self._http.our_state is h11.DONE and self._http.their_state is h11.DONE
        return is_over and not self.trailing

    def next_request(self) -> None:
        self._http.start_next_cycle()
        self.was_used = True

    async def close(self) -> None:
        await self.link.close()


def request_of(method: str, target: bytes, headers: list[tuple[bytes, bytes]]) -> h11.Request:
    """Raises Unsendable."""
    try:
        return h11.Request(method=method.encode(), target=target, headers=headers)
    except h11.LocalProtocolError as problem:
        raise Unsendable(str(problem)) from problem


def _has_two_lengths(response: h11.Response) -> bool:
    names = {name for name, _ in response.headers}
    return {b"content-length", b"transfer-encoding"} <= names


class Tunnels:
    """Idle connections of one process, for the next request to the same port."""

    def __init__(self) -> None:
        self._idle: dict[Key, list[Tunnel]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    async def take(self, layer: Any, way: Passage, *, may_reuse: bool) -> Tunnel:
        waiting = self._idle.get((way.workspace_id, way.port), [])
        while may_reuse and waiting:
            tunnel = waiting.pop()
            if tunnel.link.is_quiet():
                return tunnel
            await tunnel.close()
        return await Tunnel.open(layer, way)

    async def give_back(self, way: Passage, tunnel: Tunnel) -> None:
        key = (way.workspace_id, way.port)
        waiting = self._idle.setdefault(key, [])
        if not tunnel.may_be_kept() or len(waiting) >= _MOST_IDLE:
            await tunnel.close()
            return
        tunnel.next_request()
        waiting.append(tunnel)
        loop = asyncio.get_running_loop()
        tunnel.idle_since = loop.time()
        loop.call_later(_IDLE_SECONDS, self._expire, key)

    def _expire(self, key: Key) -> None:
        loop = asyncio.get_running_loop()
        waiting = self._idle.pop(key, [])
        young = [t for t in waiting if loop.time() - t.idle_since < _IDLE_SECONDS]
        if young:
            self._idle[key] = young
        for tunnel in waiting:
            if tunnel not in young:
                task = loop.create_task(tunnel.close())
                self._closing.add(task)
                task.add_done_callback(self._closing.discard)
