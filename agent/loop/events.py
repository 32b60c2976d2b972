"""The engine listener: events only request a look; a gap in the stream requests a full one."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from agent import clock
from agent.clock import Backoff
from agent.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.runtime.port import EngineEvent, Runtime, Stream

log = logging.getLogger(__name__)
# A stream that has been silent for this long is opened anew: its end may have gone unnoticed.
SILENCE = 600.0


class EngineListener:
    """`on_connected` gets whether this is a return: False for a first try that succeeds."""

    def __init__(
        self,
        runtime: Runtime,
        *,
        on_event: Callable[[EngineEvent], None],
        on_connected: Callable[[bool], None],
        on_lost: Callable[[str], None],
        since: Callable[[], int] = lambda: 0,
    ) -> None:
        self._runtime = runtime
        self._on_event = on_event
        self._on_connected = on_connected
        self._on_lost = on_lost
        self._since = since
        self._lock = threading.Lock()
        self._stream: Stream[EngineEvent] | None = None
        self._heard_at = clock.monotonic()
        self._tries = 0

    def run(self, stop: threading.Event) -> None:
        watchdog = threading.Thread(
            target=self._watch, args=(stop,), name="events-watchdog", daemon=True
        )
        watchdog.start()
        backoff = Backoff(first=0.25, limit=5.0)
        while not stop.is_set():
            try:
                self._listen(backoff)
            except EngineError as problem:
                self._on_lost(str(problem))
            stop.wait(backoff.next_delay())

    def close(self) -> None:
        with self._lock:
            stream = self._stream
        if stream is not None:
            stream.close()

    def _listen(self, backoff: Backoff) -> None:
        self._tries += 1
        stream = self._runtime.events(self._since())
        with self._lock:
            self._stream = stream
        self._heard_at = clock.monotonic()
        # Whatever happened before this moment was missed, but for what the engine remembers.
        self._on_connected(self._tries > 1)
        try:
            for event in stream:
                backoff.reset()
                self._heard_at = clock.monotonic()
                self._on_event(event)
        finally:
            stream.close()
        log.info("event stream ended")

    def _watch(self, stop: threading.Event) -> None:
        while not stop.wait(5.0):
            if clock.monotonic() - self._heard_at > SILENCE:
                self._heard_at = clock.monotonic()
                self.close()
