"""One request and its reply on their way through the Docker API proxy."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.ground.faults import Call, Fault, KillPoint, Moment, Rule
from tests.ground.http1 import HEAD_LIMIT, Head, read_body, read_head, read_until_closed

WATCH_INTERVAL_S = 0.02
NO_BODY = Head(b"", ("", "", ""), {})


class Cut(Exception):
    """The connection to the caller breaks now."""


class Ended(Exception):
    """The connection to the caller closes once everything written has gone out."""


@dataclass
class Exchange:
    """One call with the fault and the kill points that meet it."""

    head: Head
    call: Call
    rule: Rule | None
    points: list[KillPoint]
    engine_socket: Path
    hold: Callable[[], Awaitable[None]]
    hijacked: bool = False

    async def perform(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry the exchange through; raise Cut or Ended where the connection is over."""
        self.reader = reader
        self.writer = writer
        await self._reach(Moment.BEFORE_FORWARD)
        if await self._is_settled_without_engine():
            return
        engine, to_engine = await asyncio.open_unix_connection(
            str(self.engine_socket), limit=HEAD_LIMIT
        )
        try:
            work = self._forward(engine, to_engine)
            # A late call is one the engine executes even though its caller gave up.
            late = self.rule is not None and self.rule.fault is Fault.DELAY
            is_over = await (work if late else self._while_caller_is_there(work))
        finally:
            to_engine.transport.abort()
        await self._reach(Moment.AFTER_REPLY)
        if is_over:
            raise Ended

    async def _is_settled_without_engine(self) -> bool:
        rule = self.rule
        if rule is None:
            return False
        match rule.fault:
            case Fault.CUT:
                raise Cut
            case Fault.HANG:
                await self._while_caller_is_there(self._hang())
                raise Cut
            case Fault.DELAY:
                await asyncio.sleep(rule.seconds)
            case Fault.RESPOND:
                async for _ in read_body(self.reader, self.head):
                    pass
                self.call.status = rule.status
                length = f"Content-Length: {len(rule.body)}\r\nContent-Type: application/json"
                first = f"HTTP/1.1 {rule.status} Fault\r\n{length}\r\n\r\n"
                await self._send(first.encode() + rule.body)
                return True
        return False

    async def _hang(self) -> bool:
        await self.hold()
        return True

    async def _forward(
        self, engine: asyncio.StreamReader, to_engine: asyncio.StreamWriter
    ) -> bool:
        """Send the request and relay the reply; tell whether the connection ends with it."""
        to_engine.write(self.head.raw)
        request = asyncio.ensure_future(_pump(read_body(self.reader, self.head), to_engine))
        try:
            reply = await read_head(engine)
            while reply is not None and reply.status == 100:
                reply = await read_head(engine)
            if reply is None:
                raise Cut
            self.call.status = reply.status
            is_bounded = reply.is_chunked or reply.length is not None
            if reply.status == 101 or self._is_raw_stream(reply):
                self.hijacked = True
                await request
                await self._relay_both_ways(reply, engine, to_engine)
                return True
            if self.call.method == "HEAD" or reply.status in (204, 304):
                await self._relay_reply(reply, read_body(engine, NO_BODY))
                return False
            body = read_body(engine, reply) if is_bounded else read_until_closed(engine)
            await self._relay_reply(reply, body)
            return not is_bounded
        finally:
            request.cancel()

    def _is_raw_stream(self, reply: Head) -> bool:
        """Tell whether the engine took over the connection without the ceremony of status 101."""
        if self.call.method != "POST" or reply.is_chunked or reply.length is not None:
            return False
        return reply.headers.get("content-type", "").startswith("application/vnd.docker.")

    async def _relay_reply(self, reply: Head, body: AsyncIterator[bytes]) -> None:
        """Pass the reply on as it comes; hold it back whole if the caller must not have it."""
        fault = self.rule.fault if self.rule else None
        if fault is Fault.DROP_REPLY or self._awaits(Moment.AFTER_EXECUTE):
            parts = [part async for part in body]
            await self._reach(Moment.AFTER_EXECUTE)
            if fault is Fault.DROP_REPLY:
                raise Cut
            await self._send(reply.raw + b"".join(parts))
            return
        await self._send(reply.raw)
        await self._relay_parts(body)

    async def _relay_parts(self, body: AsyncIterator[bytes]) -> None:
        """Pass on what comes, up to where it is to be cut."""
        is_cut = self.rule is not None and self.rule.fault is Fault.CUT_STREAM
        left = self.rule.after_bytes if self.rule and is_cut else None
        async for part in body:
            await self._send(part if left is None else part[:left])
            if left is not None:
                left -= len(part)
                if left <= 0:
                    raise Ended

    async def _relay_both_ways(
        self, reply: Head, engine: asyncio.StreamReader, to_engine: asyncio.StreamWriter
    ) -> None:
        """Join the two connections until the engine ends; a half-closed input is passed on."""
        if self.rule and self.rule.fault is Fault.DROP_REPLY:
            raise Cut
        await self._reach(Moment.AFTER_EXECUTE)
        await self._send(reply.raw)

        async def pass_input_on() -> None:
            with suppress(OSError):
                await _pump(read_until_closed(self.reader), to_engine)
                to_engine.write_eof()

        upward = asyncio.ensure_future(pass_input_on())
        try:
            await self._relay_parts(read_until_closed(engine))
        finally:
            upward.cancel()

    async def _while_caller_is_there(self, work: Coroutine[None, None, bool]) -> bool:
        """Do the work, but give it up when the caller goes: the engine then cancels a build too.

        On a hijacked connection the end of the input is not the end of the caller.
        """
        task = asyncio.ensure_future(work)
        try:
            while not task.done():
                await asyncio.wait([task], timeout=WATCH_INTERVAL_S)
                if self._caller_left() and not self.hijacked and not task.done():
                    raise Cut
            return await task
        finally:
            task.cancel()

    def _caller_left(self) -> bool:
        """Who leaves a part of the reply unread resets the connection instead of ending it."""
        return self.reader.at_eof() or self.reader.exception() is not None

    def _awaits(self, moment: Moment) -> bool:
        return any(point.moment is moment for point in self.points)

    async def _reach(self, moment: Moment) -> None:
        for point in self.points:
            if point.moment is moment:
                await asyncio.to_thread(point.callback, self.call)
                if point.cut:
                    raise Cut

    async def _send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()


async def _pump(source: AsyncIterator[bytes], target: asyncio.StreamWriter) -> None:
    async for data in source:
        target.write(data)
        await target.drain()
