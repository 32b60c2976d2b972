"""Pulls and builds on a Docker engine, each on a connection of its own so that it can be cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent.image_refs import split_tag
from agent.runtime.docker_client import Connections, CuttableStream, RecordingClient
from agent.runtime.docker_output import build_output, pull_output
from agent.runtime.docker_requests import DOCKERFILE_NAME, build_context

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent.engine_requests import BuildRequest, Credential
    from agent.runtime.port import Output

# Seconds without a byte after which a pull is given up.
PULL_IDLE = 120


def open_pull(
    engine: Connections, ref: str, credential: Credential | None
) -> CuttableStream[Output]:
    client = engine.own_client(PULL_IDLE)
    repository, tag = split_tag(ref)
    # An empty login, not None: otherwise the client sends what it finds in its user's home.
    auth = {} if credential is None else _auth(credential)
    raw = engine.run(
        lambda _: client.pull(repository, tag=tag, stream=True, decode=True, auth_config=auth)
    )
    return CuttableStream(pull_output(raw), client)


def open_build(
    engine: Connections, request: BuildRequest, credential: Credential | None
) -> CuttableStream[Output]:
    client = engine.own_client(request.idle_timeout)
    if credential is not None:
        client.build_credentials = {credential.server: _auth(credential)}
    raw = engine.run(lambda _: _start_build(client, request))
    return CuttableStream(build_output(raw), client)


def _start_build(client: RecordingClient, request: BuildRequest) -> Iterator[Any]:
    answer: Iterator[Any] = client.build(
        fileobj=build_context(request),
        custom_context=True,
        dockerfile=DOCKERFILE_NAME,
        tag=request.ref,
        buildargs=dict(request.build_args),
        target=request.target or None,
        pull=request.pull_base,
        labels=dict(request.labels),
        rm=True,
        forcerm=True,
        decode=True,
        timeout=request.idle_timeout,
    )
    return answer


def _auth(credential: Credential) -> dict[str, str]:
    return {
        "username": credential.username,
        "password": credential.password,
        "serveraddress": credential.server,
    }
