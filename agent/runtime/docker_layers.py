"""What a container wrote into its own layer, as a Docker engine tells it: changes and sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from docker.utils import decode_json_header

from agent.errors import EngineError
from agent.runtime.session_port import Change, PathChange, PathFacts

if TYPE_CHECKING:
    from agent.runtime.docker_client import Connections

_DEADLINE: Final = 3
# A container may have written millions of files, and their list would be larger than the agent.
_MOST_BYTES: Final = 8 * 1024 * 1024
_CUT_TRIES: Final = 10
_FACTS: Final = "X-Docker-Container-Path-Stat"
_KINDS: Final = (Change.CHANGED, Change.ADDED, Change.DELETED)
# Go's os.FileMode: folder, named pipe, socket, device.
_NO_FILE: Final = 1 << 31 | 1 << 26 | 1 << 25 | 1 << 24


class _RawChange(msgspec.Struct):
    path: str = msgspec.field(name="Path")
    kind: int = msgspec.field(name="Kind", default=0)


class DockerLayers:
    """The engine's health is not judged by these calls: counting a large layer takes its time."""

    _engine: Connections

    def container_changes(self, container_id: str) -> tuple[list[PathChange], bool]:
        def ask(api: Any) -> tuple[bytes, bool]:
            url = api._url("/containers/{0}/changes", container_id)
            response = api._get(url, stream=True)
            try:
                api._raise_for_status(response)
                return _read(response)
            finally:
                response.close()

        data, is_whole = self._engine.run(ask, deadline=_DEADLINE)
        return [
            PathChange(raw.path, _KINDS[raw.kind])
            for raw in _decoded(data, is_whole=is_whole)
            if 0 <= raw.kind < len(_KINDS)
        ], is_whole

    def writable_size(self, container_id: str) -> int:
        def ask(api: Any) -> Any:
            url = api._url("/containers/{0}/json", container_id)
            return api._result(api._get(url, params={"size": 1}), True)

        raw = self._engine.run(ask, deadline=_DEADLINE)
        return int(raw.get("SizeRw") or 0)

    def path_facts(self, container_id: str, path: str) -> PathFacts:
        def ask(api: Any) -> Any:
            url = api._url("/containers/{0}/archive", container_id)
            response = api.head(url, params={"path": path}, timeout=_DEADLINE)
            api._raise_for_status(response)
            return decode_json_header(response.headers[_FACTS])

        facts = self._engine.run(ask, deadline=_DEADLINE)
        return PathFacts(int(facts["size"]), not int(facts["mode"]) & _NO_FILE)


def _read(response: Any) -> tuple[bytes, bool]:
    data = bytearray()
    for piece in response.iter_content(65536):
        data += piece
        if len(data) > _MOST_BYTES:
            return bytes(data), False
    return bytes(data), True


def _decoded(data: bytes, *, is_whole: bool) -> list[_RawChange]:
    """Of a list that was cut off: what comes before its last whole entry's end."""
    end = len(data)
    for _ in range(1 if is_whole else _CUT_TRIES):
        text = data
        if not is_whole:
            end = data.rfind(b"},{", 0, end)
            text = data[:end] + b"}]"
        try:
            return msgspec.json.decode(text, type=list[_RawChange] | None) or []
        except msgspec.MsgspecError:
            # Not the end of an entry: a file may be named so.
            continue
    raise EngineError("The engine's list of changed files cannot be read.")
