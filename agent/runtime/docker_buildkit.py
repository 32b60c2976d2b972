"""Builds with secrets: by the BuildKit of a Docker engine, which asks for them while it builds.

The engine's older builder knows none, and docker-py knows only that builder.
"""

from __future__ import annotations

import json
import re
import threading
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import requests
from urllib3 import HTTPHeaderDict

from agent.errors import EngineError
from agent.runtime.buildkit_output import buildkit_output
from agent.runtime.buildkit_session import METHODS, BuildSession
from agent.runtime.docker_client import CuttableStream
from agent.runtime.docker_connection import Connection
from agent.runtime.docker_requests import DOCKERFILE_NAME, build_context
from agent.runtime.docker_streams import Plain
from agent.runtime.port import Output

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent.engine_requests import BuildRequest, Credential
    from agent.runtime.docker_client import Connections, RecordingClient

# The first whose own Dockerfile frontend mounts secrets: Docker 20.10.
_OLDEST_API: Final = (1, 41)
_NOT_THERE: Final = "not found"


class ServedSession:
    """The connection on which the engine asks, with a thread that answers until it is closed."""

    def __init__(self, engine: Connections, session: BuildSession) -> None:
        self.id = uuid.uuid4().hex
        self._session = session
        client = engine.own_client(None)
        response = engine.run(lambda _: _upgraded(client, self.id))
        self._connection = Connection(client, response, Plain())
        name = f"session-{self.id[:8]}"
        threading.Thread(target=self._serve, name=name, daemon=True).start()

    def close(self) -> None:
        self._connection.close()

    def _serve(self) -> None:
        # A session that breaks ends the build, and that one's stream says so.
        with suppress(EngineError):
            self._connection.write(self._session.begin())
            for data in self._connection:
                self._connection.write(self._session.feed(data))
        self._connection.close()


class BuildKitStream(CuttableStream[Output]):
    """Whoever closes the build ends its session too."""

    def __init__(
        self, items: Iterator[Output], client: RecordingClient, session: ServedSession
    ) -> None:
        super().__init__(items, client)
        self._session = session

    def close(self) -> None:
        super().close()
        self._session.close()


def build_with_secrets(
    engine: Connections,
    request: BuildRequest,
    credential: Credential | None,
    *,
    extra_hosts: tuple[str, ...],
    deadline: int,
) -> BuildKitStream:
    client = engine.own_client(deadline)
    _check_engine(client)
    answers = BuildSession(request.secrets, credential)
    session = ServedSession(engine, answers)
    try:
        raw = engine.run(lambda _: _start(client, request, session.id, extra_hosts, deadline))
    except BaseException:
        session.close()
        client.close()
        raise
    outputs = buildkit_output(raw, request.secrets.values())
    return BuildKitStream(_told(outputs, answers), client, session)


def _told(outputs: Iterator[Output], session: BuildSession) -> Iterator[Output]:
    """The engine's error seldom names the secret that it lacked, and never where to give it. A
    step may also do without, and fail for a reason of its own."""
    for output in outputs:
        missing = _blamed(output.error, session.missing)
        if not missing:
            yield output
            continue
        yield Output(
            error=f"The Dockerfile mounts the build secret {missing}, which this image "
            f"does not have. Give it one of that name. (The engine said: {output.error})"
        )


def _blamed(error: str, missing: Sequence[str]) -> str:
    named = (name for name in missing if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", error))
    fallback = missing[0] if missing and _NOT_THERE in error.lower() else ""
    return next(named, fallback)


def _check_engine(client: RecordingClient) -> None:
    version = str(client.api_version)
    if tuple(int(part) for part in version.split(".")) < _OLDEST_API:
        client.close()
        raise EngineError(
            f"The container engine of this host (API {version}) is too old for build secrets; "
            "they need Docker 20.10 or newer."
        )


def _upgraded(client: Any, session_id: str) -> Any:
    asked = requests.Request(
        "POST",
        client._url("/session"),
        headers={
            "Connection": "Upgrade",
            "Upgrade": "h2c",
            "X-Docker-Expose-Session-Uuid": session_id,
            "X-Docker-Expose-Session-Name": "trailer",
            "X-Docker-Expose-Session-Sharedkey": "",
        },
    )
    prepared = client.prepare_request(asked)
    # One header for each method: a plain mapping holds a name only once.
    headers = HTTPHeaderDict(prepared.headers)
    for method in METHODS:
        headers.add("X-Docker-Expose-Session-Grpc-Method", method)
    prepared.headers = headers
    response = client.send(prepared, stream=True, timeout=client.timeout)
    client._raise_for_status(response)
    return response


def _start(
    client: Any,
    request: BuildRequest,
    session_id: str,
    extra_hosts: tuple[str, ...],
    deadline: int,
) -> Iterator[Any]:
    params = {
        "version": "2",
        "session": session_id,
        "buildid": session_id,
        "t": request.ref,
        "dockerfile": DOCKERFILE_NAME,
        "buildargs": json.dumps(dict(request.build_args)),
        "labels": json.dumps(dict(request.labels)),
        "target": request.target,
        "extrahosts": list(extra_hosts),
        "pull": "1" if request.pull_base else "",
        "rm": "1",
        "forcerm": "1",
    }
    response = client._post(
        client._url("/build"),
        data=build_context(request),
        params={name: value for name, value in params.items() if value},
        headers={"Content-Type": "application/x-tar"},
        stream=True,
        timeout=deadline,
    )
    client._raise_for_status(response)
    answer: Iterator[Any] = client._stream_helper(response, decode=True)
    return answer
