"""A log session: what a workspace's container says, run after run, for as long as one listens."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from agent.errors import EngineError, NotFound
from agent.protocol.sessions import ALL_LINES, NOT_THERE, SessionClose, SessionControl, SessionOpen
from agent.runtime.session_port import LogRequest
from agent.sessions.containers import Refused

if TYPE_CHECKING:
    from agent.runtime.port import Runtime
    from agent.runtime.session_port import ContainerRun
    from agent.sessions.channel import Channel
    from agent.sessions.containers import Containers
    from agent.store.previous_logs import PreviousLogs

# An engine event that was missed costs at most this long.
_LOOK: Final = 2.0


class Changes:
    """Wakes those who wait for a container to come (back)."""

    def __init__(self) -> None:
        self._turn = threading.Condition()
        self._count = 0

    def tell(self) -> None:
        with self._turn:
            self._count += 1
            self._turn.notify_all()

    def count(self) -> int:
        with self._turn:
            return self._count

    def wait(self, count: int, seconds: float) -> None:
        """Until there is news since `count`, or the time is up."""
        with self._turn:
            self._turn.wait_for(lambda: self._count != count, seconds)


class LogSessions:
    def __init__(
        self, runtime: Runtime, containers: Containers, previous: PreviousLogs, changes: Changes
    ) -> None:
        self._runtime = runtime
        self._containers = containers
        self._previous = previous
        self._changes = changes

    def serve(self, channel: Channel, request: SessionOpen) -> None:
        tail = None if request.tail == ALL_LINES else max(0, request.tail)
        if request.previous:
            self._serve_previous(channel, request, tail)
            return
        run = self._containers.present(request.workspace_id)
        opening = SessionControl(opened=True, container=run.id)
        wanted = LogRequest(tail=tail, follow=request.follow, timestamps=request.timestamps)
        while True:
            self._copy(channel, opening, wanted)
            if not request.follow:
                channel.close(SessionClose())
            following = self._next_run(channel, request.workspace_id, run)
            if following is None:
                return
            opening = SessionControl(container=following.id)
            wanted = LogRequest(
                # The end of the last run: the first words of this one may come before it is said
                # to have started.
                since=following.finished_at if following.id == run.id else "",
                follow=True,
                timestamps=request.timestamps,
            )
            run = following

    def _serve_previous(self, channel: Channel, request: SessionOpen, tail: int | None) -> None:
        kept = self._previous.read(request.workspace_id, tail=tail, timestamps=request.timestamps)
        if kept is None:
            raise Refused(
                "There is no log of an earlier container: this workspace was not replaced yet.",
                NOT_THERE,
            )
        channel.say(SessionControl(opened=True))
        channel.write(kept)
        channel.close(SessionClose())

    def _copy(self, channel: Channel, opening: SessionControl, wanted: LogRequest) -> None:
        """`opening` is said once the engine's stream is there, and not before."""
        try:
            stream = self._runtime.container_logs(opening.container, wanted)
        except NotFound:
            # Replaced since we looked.
            return
        channel.say(opening)
        channel.on_end = stream.close
        try:
            if channel.end is not None:
                return
            for data in stream:
                if not channel.write(data):
                    return
        finally:
            stream.close()

    def _next_run(
        self, channel: Channel, workspace_id: str, last: ContainerRun
    ) -> ContainerRun | None:
        """The same container started again, or another one; None when nobody listens any more."""
        channel.on_end = self._changes.tell
        while channel.end is None:
            count = self._changes.count()
            try:
                run = self._containers.current(workspace_id)
            except EngineError:
                run = None
            other = run is not None and (run.id, run.started_at) != (last.id, last.started_at)
            if run is not None and other and run.is_running:
                return run
            self._changes.wait(count, _LOOK)
        return None
