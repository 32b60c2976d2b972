"""A TCP relay: whoever connects here talks to a port elsewhere, byte for byte."""

import asyncio
import threading
from contextlib import suppress
from typing import Self

_PIECE = 64 * 1024


class Relay:
    """Passes both directions on, each with its own end: half-closed connections stay so."""

    def __init__(self, listen: tuple[str, int], target: tuple[str, int]) -> None:
        self._listen, self._target = listen, target
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="relay", daemon=True)

    def start(self) -> Self:
        self._thread.start()
        server = asyncio.start_server(self._connected, *self._listen)
        asyncio.run_coroutine_threadsafe(server, self._loop).result(10)
        return self

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    async def _connected(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        try:
            far, there = await asyncio.open_connection(*self._target)
        except OSError:
            back.transport.abort()
            return
        await asyncio.gather(_pass_on(near, there, back), _pass_on(far, back, there))
        for end in (back, there):
            end.close()


async def _pass_on(
    source: asyncio.StreamReader, sink: asyncio.StreamWriter, origin: asyncio.StreamWriter
) -> None:
    """A broken end breaks the other one as well; neither waits for a peer that is gone."""
    try:
        while data := await source.read(_PIECE):
            sink.write(data)
            await sink.drain()
        with suppress(OSError):
            sink.write_eof()
    except OSError:
        sink.transport.abort()
        origin.transport.abort()
