"""What a container's writable layer holds: asked before a replace throws it away.

changes → paths that are no parent of another, outside of mounts → sizes of at most 200 of them.
The engine's own size of the layer, which it may have to count, is asked beside many paths only.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import msgspec

from agent import clock
from agent.errors import EngineError, EngineUnavailable
from agent.protocol.sessions import BUSY, SessionClose, SessionControl
from agent.protocol.writable_layer import (
    MOST_PATHS_LOOKED_AT,
    MOST_PATHS_SHOWN,
    SECONDS,
    WritableLayer,
    WrittenPath,
)
from agent.runtime.session_port import Change, PathFacts
from agent.sessions.containers import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agent.protocol.sessions import SessionOpen
    from agent.runtime.port import Runtime
    from agent.runtime.session_port import ContainerRun, PathChange
    from agent.sessions.channel import Channel
    from agent.sessions.containers import Containers

# The answer has to reach the server before it stops waiting.
_LIMIT: Final = SECONDS - 0.5
_WORKERS: Final = 4
# Looks at different containers at a time: each keeps a few connections to the engine busy.
_AT_ONCE: Final = 3
# What engines put into every container themselves.
_OF_THE_ENGINE: Final = frozenset(
    {"/.dockerenv", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/run/.containerenv"}
)
_OF_THE_KERNEL: Final = ("/dev", "/proc", "/sys")
_GONE: Final = PathFacts(0, is_file=False)
_NOT_ASKED: Final = PathFacts(-1, is_file=False)


class LayerSessions:
    """Those who ask about one container while it is looked at share that look."""

    def __init__(self, runtime: Runtime, containers: Containers) -> None:
        self._runtime = runtime
        self._containers = containers
        self._lock = threading.Lock()
        self._looks: dict[str, Future[WritableLayer]] = {}
        self._turns = threading.Semaphore(_AT_ONCE)

    def serve(self, channel: Channel, request: SessionOpen) -> None:
        run = self._containers.present(request.workspace_id)
        channel.say(SessionControl(opened=True, container=run.id))
        layer = self._shared_look(run, clock.monotonic() + _LIMIT)
        channel.write(msgspec.json.encode(layer))
        channel.close(SessionClose())

    def _shared_look(self, run: ContainerRun, until: float) -> WritableLayer:
        with self._lock:
            look = self._looks.get(run.id)
            is_mine = look is None
            if look is None:
                look = self._looks[run.id] = Future()
        if is_mine:
            try:
                look.set_result(self._look(run, until))
            except Exception as problem:  # noqa: BLE001  those who share the look get it too
                look.set_exception(problem)
            finally:
                with self._lock:
                    del self._looks[run.id]
        return look.result()

    def _look(self, run: ContainerRun, until: float) -> WritableLayer:
        if not self._turns.acquire(timeout=max(0.0, until - clock.monotonic())):
            raise Refused("Many containers are looked at just now. Try again in a moment.", BUSY)
        try:
            return look_at(self._runtime, run, until)
        finally:
            self._turns.release()


def look_at(runtime: Runtime, run: ContainerRun, until: float) -> WritableLayer:
    changes, is_listed = runtime.container_changes(run.id)
    written, deleted = written_paths(changes, run.mount_targets)
    wanted = shallow_first(written)[:MOST_PATHS_LOOKED_AT]
    workers = ThreadPoolExecutor(_WORKERS, thread_name_prefix="layer")
    try:
        many = len(written) > MOST_PATHS_SHOWN
        size = workers.submit(runtime.writable_size, run.id) if many else None
        found = list(workers.map(lambda path: _facts(runtime, run.id, path, until), wanted))
        is_whole = is_listed and len(found) == len(written) and _NOT_ASKED not in found
        total = 0 if is_whole or size is None else size.result()
    finally:
        workers.shutdown(wait=False, cancel_futures=True)
    if not is_whole and size is None:
        raise EngineUnavailable("The container engine did not answer in time.")
    files = [
        WrittenPath(path=path, size_bytes=facts.size_bytes)
        for path, facts in zip(wanted, found, strict=True)
        if facts.is_file
    ]
    files.sort(key=lambda file: (-file.size_bytes, file.path))
    return WritableLayer(
        size_bytes=max(total, sum(file.size_bytes for file in files)),
        file_count=len(written)
        - sum(not facts.is_file for facts in found)
        + found.count(_NOT_ASKED),
        deleted_count=deleted,
        paths=tuple(files[:MOST_PATHS_SHOWN]),
        is_whole=is_whole,
    )


def written_paths(
    changes: Iterable[PathChange], mount_targets: Sequence[str]
) -> tuple[list[str], int]:
    """Added and changed paths that may be files, and how many paths of the image were deleted;
    what lies below a mount stays, and so is left out."""
    changes = list(changes)
    parents = {path.rpartition("/")[0] for path, _ in changes}
    hidden = (*_OF_THE_KERNEL, *(target.rstrip("/") or "/" for target in mount_targets))
    written: list[str] = []
    deleted = 0
    for path, change in changes:
        if path in _OF_THE_ENGINE or any(_is_below(path, folder) for folder in hidden):
            continue
        if change is Change.DELETED:
            deleted += 1
        elif path not in parents:
            written.append(path)
    return written, deleted


def shallow_first(paths: Iterable[str]) -> list[str]:
    """People keep their own files near the root; what programs install lies deep."""
    return sorted(paths, key=lambda path: (path.count("/"), path))


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder if folder == "/" else f"{folder}/")


def _facts(runtime: Runtime, container_id: str, path: str, until: float) -> PathFacts:
    if clock.monotonic() >= until:
        return _NOT_ASKED
    try:
        return runtime.path_facts(container_id, path)
    except EngineUnavailable:
        return _NOT_ASKED
    except EngineError:
        # Gone since, or a name that the engine cannot be asked about.
        return _GONE
