"""Terminals: a process that outlives a cut socket for a moment, and never longer."""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import TYPE_CHECKING, Final

from agent import clock
from agent.errors import EngineError
from agent.protocol.sessions import ENDED, SessionClose, SessionControl

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.runtime.port import Runtime
    from agent.runtime.session_port import ExecTerminal, Terminal
    from agent.sessions.channel import Channel
    from agent.store.terminals import TerminalFiles

log = logging.getLogger(__name__)

RECENT_BYTES: Final = 64 * 1024


class Recent:
    """The last bytes of an output, for whoever comes back."""

    def __init__(self, limit: int = RECENT_BYTES) -> None:
        self._limit = limit
        self._pieces: deque[bytes] = deque()
        self._size = 0

    def add(self, data: bytes) -> None:
        self._pieces.append(data)
        self._size += len(data)
        while self._size - len(self._pieces[0]) >= self._limit:
            self._size -= len(self._pieces.popleft())

    def bytes(self) -> bytes:
        return b"".join(self._pieces)[-self._limit :]


class ExecSession:
    """One process and whoever watches it now. Nobody: the output goes to `Recent` alone."""

    def __init__(
        self,
        *,
        session_id: str,
        workspace_id: str,
        user: str,
        terminal: ExecTerminal,
        runtime: Runtime,
        files: TerminalFiles,
        on_over: Callable[[ExecSession], None],
    ) -> None:
        self.id = session_id
        self.workspace_id = workspace_id
        self.user = user
        self.started_at = clock.monotonic()
        self.left_at: float | None = None
        self.is_ending = False
        self._terminal = terminal
        self._runtime = runtime
        self._files = files
        self._on_over = on_over
        self._lock = threading.Lock()
        self._ending = threading.Lock()
        self._channel: Channel | None = None
        self._recent = Recent()
        self._reader = threading.Thread(
            target=self._pump, name=f"exec-{session_id[:8]}", daemon=True
        )

    @property
    def channel(self) -> Channel | None:
        with self._lock:
            return self._channel

    def resize(self, columns: int, rows: int) -> None:
        self._terminal.resize(columns, rows)

    def serve(self, channel: Channel) -> None:
        """The input of one socket, until that socket is gone."""
        self._join(channel)
        if self._reader.ident is None:
            self._reader.start()
        take_input(channel, self._terminal)
        with self._lock:
            if self._channel is not channel:
                # Somebody else watches already, or the process is over.
                return
            self._channel = None
            self.left_at = clock.monotonic()
            self.is_ending = channel.end is None or not channel.end.hold
        if self.is_ending:
            self.kill()

    def _join(self, channel: Channel) -> None:
        with self._lock:
            before, self._channel = self._channel, channel
            self.left_at = None
            replay = self._recent.bytes()
            channel.say(SessionControl(opened=True, session=self.id, replay=len(replay)))
            # Less than a fresh stream's window: it does not block.
            channel.write(replay)
        if before is not None:
            before.close(SessionClose(error="This terminal was opened elsewhere.", code=ENDED))

    def kill(self) -> None:
        """Every process of the terminal. What cannot be ended now is tried again at next start."""
        self.is_ending = True
        with self._ending:
            try:
                ended = self._runtime.end_exec(self._terminal.record)
            except EngineError as problem:
                log.warning("terminal %s could not be ended: %s", self.id, problem)
                ended = False
            if ended:
                self._files.forget(self.id)
        self._terminal.close()

    def _pump(self) -> None:
        try:
            while data := self._terminal.read():
                with self._lock:
                    self._recent.add(data)
                    channel = self._channel
                if channel is not None:
                    channel.write(data)
        except EngineError as problem:
            log.debug("terminal %s broke off: %s", self.id, problem)
        self._over()

    def _over(self) -> None:
        with self._lock:
            channel, self._channel = self._channel, None
        if channel is not None:
            channel.close(exit_of(self._terminal))
        # Background jobs of a shell that ended are part of its session too.
        self.kill()
        self._on_over(self)


def attach(channel: Channel, terminal: Terminal) -> None:
    """The container's own process: leaving it changes nothing there."""

    def pump() -> None:
        try:
            while data := terminal.read():
                if not channel.write(data):
                    return
        except EngineError as problem:
            log.debug("attached stream broke off: %s", problem)
        channel.close(exit_of(terminal))

    reader = threading.Thread(target=pump, name=f"attach-{channel.number}", daemon=True)
    reader.start()
    channel.on_end = terminal.close
    take_input(channel, terminal)
    terminal.close()
    reader.join()


def take_input(channel: Channel, terminal: Terminal) -> None:
    while (item := channel.read()) is not None:
        try:
            if isinstance(item, SessionControl):
                if item.resize is not None:
                    terminal.resize(*item.resize)
            else:
                terminal.write(item)
                channel.used(item)
        except EngineError as problem:
            # The reading side sees the end of the process and tells it.
            log.debug("input of stream %d broke off: %s", channel.number, problem)


def exit_of(terminal: Terminal) -> SessionClose:
    try:
        code = terminal.exit_code()
    except EngineError:
        code = None
    if code is None:
        return SessionClose(error="The process ended; its exit code is not known.")
    return SessionClose(exit=code)
