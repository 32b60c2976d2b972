"""A proxy between a client and a Docker engine, which counts calls and makes them fail."""

import asyncio
import json
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

from tests.ground.exchange import Cut, Ended, Exchange
from tests.ground.faults import Call, Fault, KillPoint, Moment, Rule
from tests.ground.http1 import HEAD_LIMIT, Head, read_head


class DockerApiProxy:
    """Unix socket to Unix socket, in a thread of its own; one engine connection per call.

    `calls` and `mutating_calls` list what passed, without pings. The fault methods take a method
    ("*" for any) and a pattern for the whole path without the version, such as
    `/containers/[^/]+/start`; `times=None` means for ever. Earlier rules win.
    """

    def __init__(self, engine_socket: Path, socket: Path) -> None:
        self.engine_socket = engine_socket
        self.socket = socket
        self.url = f"unix://{socket}"
        self._lock = threading.Lock()
        self._calls: list[Call] = []
        self._rules: list[Rule] = []
        self._kill_points: list[KillPoint] = []
        self._hung: set[asyncio.Event] = set()
        self._connections: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="docker-api-proxy", daemon=True)
        self._listening = threading.Event()

    # For tests

    def start(self) -> Self:
        """Listen; the socket exists when this returns."""
        self._thread.start()
        self._listening.wait(10)
        return self

    def stop(self) -> None:
        """Close every connection and the socket."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self.socket.unlink(missing_ok=True)

    @property
    def calls(self) -> list[Call]:
        """The calls since the start or the last reset, in order of arrival."""
        with self._lock:
            return list(self._calls)

    @property
    def mutating_calls(self) -> list[Call]:
        """The calls that can change something on the engine."""
        return [call for call in self.calls if call.mutating]

    def reset(self) -> None:
        """Forget calls, rules and kill points, and let go of the callers that hang."""
        with self._lock:
            self._calls.clear()
            self._rules.clear()
            self._kill_points.clear()
        self._loop.call_soon_threadsafe(self._release_the_hung)

    def forget_calls(self) -> None:
        """Start counting anew; rules and kill points stay."""
        with self._lock:
            self._calls.clear()

    def delay(self, method: str, path: str, seconds: float, times: int | None = None) -> None:
        """Forward matching calls late."""
        self._add(Rule(method, re.compile(path), Fault.DELAY, times, seconds=seconds))

    def fail(
        self, method: str, path: str, status: int = 500, message: str = "", times: int | None = 1
    ) -> None:
        """Answer matching calls with an error, as the engine words it."""
        said = {"message": message or f"fault made by the proxy: {status}"}
        self.answer(method, path, said, status, times)

    def answer(
        self, method: str, path: str, said: object, status: int = 200, times: int | None = 1
    ) -> None:
        """Answer matching calls in the engine's place."""
        body = json.dumps(said).encode()
        self._add(Rule(method, re.compile(path), Fault.RESPOND, times, status=status, body=body))

    def hang(self, method: str, path: str, times: int | None = 1) -> None:
        """Keep matching calls waiting; the engine never sees them."""
        self._add(Rule(method, re.compile(path), Fault.HANG, times))

    def cut(self, method: str, path: str, times: int | None = 1) -> None:
        """Close the connection of matching calls; the engine never sees them."""
        self._add(Rule(method, re.compile(path), Fault.CUT, times))

    def drop_reply(self, method: str, path: str, times: int | None = 1) -> None:
        """Let the engine execute matching calls, but close the connection without a reply."""
        self._add(Rule(method, re.compile(path), Fault.DROP_REPLY, times))

    def cut_stream(self, method: str, path: str, after_bytes: int, times: int | None = 1) -> None:
        """Close the connection of matching calls in the middle of the reply."""
        rule = Rule(method, re.compile(path), Fault.CUT_STREAM, times, after_bytes=after_bytes)
        self._add(rule)

    def kill_point(
        self,
        n: int,
        moment: Moment,
        callback: Callable[[Call], object],
        cut: bool = True,
        only: str = "",
    ) -> KillPoint:
        """Call back at a moment of the n-th mutating call from now; `reached` tells whether.

        The callback runs in a worker thread and typically kills the caller. `cut` then closes
        the connection, so that nothing more happens in the dead caller's name. `only` counts
        calls of one kind, such as "POST /containers/create".
        """
        point = KillPoint(n, moment, callback, cut, only)
        with self._lock:
            self._kill_points.append(point)
        return point

    # Inside the proxy's thread

    def _add(self, rule: Rule) -> None:
        with self._lock:
            self._rules.append(rule)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            asyncio.start_unix_server(self._serve, str(self.socket), limit=HEAD_LIMIT)
        )
        self._listening.set()
        self._loop.run_forever()
        server.close()
        for task in self._connections:
            task.cancel()
        closing = asyncio.gather(*self._connections, return_exceptions=True)
        self._loop.run_until_complete(closing)
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def _release_the_hung(self) -> None:
        for event in self._hung:
            event.set()

    def _record(self, head: Head) -> tuple[Call, Rule | None, list[KillPoint]]:
        with self._lock:
            call = Call.of(len(self._calls) + 1, head.first[0], head.first[1])
            if call.path != "/_ping":
                self._calls.append(call)
            rule = next((rule for rule in self._rules if rule.applies(call)), None)
            points = [point for point in self._kill_points if point.counts_down_to(call)]
        return call, rule, points

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while head := await read_head(reader):
                call, rule, points = self._record(head)
                exchange = Exchange(head, call, rule, points, self.engine_socket, self._hold)
                await exchange.perform(reader, writer)
        except Ended:
            with suppress(OSError):
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (Cut, OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(task)
            # An abort makes a cut look like one: nothing more comes out of the buffer.
            writer.transport.abort()

    async def _hold(self) -> None:
        """Wait until the proxy is reset."""
        event = asyncio.Event()
        self._hung.add(event)
        try:
            await event.wait()
        finally:
            self._hung.discard(event)
