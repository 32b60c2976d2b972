"""Images on a Docker engine; a long call has its own connection, so that it can be cut."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from docker.errors import APIError

from agent import clock
from agent.errors import Conflict, EngineError, NotFound
from agent.protocol import image_refs, naming
from agent.runtime import docker_parse as parse
from agent.runtime.base_images import check_bases
from agent.runtime.docker_client import CHANGE, Connections, CuttableStream, RecordingClient
from agent.runtime.docker_output import build_output, pull_output, push_output
from agent.runtime.docker_requests import DOCKERFILE_NAME, build_context, commit_config
from agent.runtime.docker_sealing import sealed_archive
from agent.runtime.dockerfile_labels import labelled, told_as_written

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from agent.engine_requests import BuildRequest, CommitRequest, Credential
    from agent.observed import ObservedImage
    from agent.runtime.port import Output

# Seconds a registry has to say which digest a tag means.
DIGEST_DEADLINE = 30
# Seconds without a byte; more than the caller's own limit, so that the caller says what happened.
_TRANSFER = 180
_BACKSTOP = 60
# The engine keeps its last 256 events; with fewer it has forgotten none.
_RECALLED_EVENTS = 250
# The address of a build's mark: nobody asks for it.
_NOWHERE = "127.0.0.1"


class DockerImages:
    """The image part of the port."""

    _engine: Connections

    def inspect_image(self, ref: str) -> ObservedImage:
        return parse.listed_image(self._engine.run(lambda api: api.inspect_image(ref)))

    def remove_image(self, ref: str) -> None:
        try:
            self._engine.run(lambda api: api.remove_image(ref), deadline=CHANGE)
        except NotFound:
            return

    def remove_unnamed_images(self, labels: Mapping[str, str]) -> None:
        filters = {"dangling": True, "label": [f"{key}={value}" for key, value in labels.items()]}
        for found in self._engine.run(lambda api: api.images(filters=filters)):
            try:
                self.remove_image(str(found["Id"]))
            except Conflict:
                # Somebody made a container of it: theirs.
                continue

    def tag_image(self, ref: str, target: str) -> None:
        repository, tag = image_refs.pull_parts(target)
        self._engine.run(lambda api: api.tag(ref, repository, tag, force=True), deadline=CHANGE)

    def pull_image(self, ref: str, credential: Credential | None) -> CuttableStream[Output]:
        client = self._engine.own_client(_TRANSFER)
        repository, tag = image_refs.pull_parts(ref)
        raw = self._engine.run(
            lambda _: client.pull(
                repository, tag=tag, stream=True, decode=True, auth_config=auth(credential)
            ),
        )
        return CuttableStream(pull_output(raw), client)

    def push_image(self, ref: str, credential: Credential | None) -> CuttableStream[Output]:
        client = self._engine.own_client(_TRANSFER)
        repository, tag = image_refs.pull_parts(ref)
        raw = self._engine.run(
            lambda _: client.push(
                repository, tag=tag, stream=True, decode=True, auth_config=auth(credential)
            ),
        )
        return CuttableStream(push_output(raw), client)

    def build_image(
        self, request: BuildRequest, credential: Credential | None
    ) -> CuttableStream[Output]:
        check_bases(self._engine, request)
        if request.secrets:
            # Four megabytes for HTTP/2, which most agents never need.
            from agent.runtime.docker_buildkit import build_with_secrets  # noqa: PLC0415

            marks = filter(None, (request.mark, request.secrets_mark))
            return build_with_secrets(
                self._engine,
                request,
                credential,
                extra_hosts=tuple(f"{mark}:{_NOWHERE}" for mark in marks),
                deadline=request.idle_timeout + _BACKSTOP,
            )
        client = self._engine.own_client(request.idle_timeout + _BACKSTOP)
        if credential is not None:
            client.build_credentials = {credential.server: auth(credential)}
        text = labelled(request.dockerfile, request.labels, target=request.target)
        sent = request if text is None else replace(request, dockerfile=text, labels={})
        raw = self._engine.run(lambda _: _start_build(client, sent))
        return CuttableStream(_built(raw, sent.dockerfile, request.dockerfile), client)

    def import_files(self, ref: str, archive: Iterable[bytes]) -> None:
        client = self._engine.own_client(_TRANSFER)
        repository, tag = image_refs.pull_parts(ref)
        try:
            answer = self._engine.run(
                lambda _: client.import_image_from_stream(archive, repository, tag)
            )
        finally:
            client.close()
        lines = (json.loads(line) for line in str(answer).splitlines() if line.strip())
        if problem := next((line["error"] for line in lines if "error" in line), ""):
            raise EngineError(f"The engine did not take what was fetched: {problem}")

    def remove_build_containers(self, mark: str) -> bool:
        """The engine removes them by itself, unless it dies over them or misses that its caller
        left."""
        any_found = False
        for found in self._engine.run(lambda api: api.containers(all=True)):
            if naming.LABEL_WORKSPACE in (found.get("Labels") or {}):
                continue
            try:
                any_found |= self._remove_if_marked(str(found["Id"]), mark)
            except (NotFound, Conflict):
                # The engine was faster.
                continue
        return any_found

    def _remove_if_marked(self, container_id: str, mark: str) -> bool:
        seen = self._engine.run(lambda api: api.inspect_container(container_id))
        if f"{mark}:{_NOWHERE}" not in (seen["HostConfig"].get("ExtraHosts") or ()):
            return False
        self._engine.run(
            lambda api: api.remove_container(container_id, force=True), deadline=CHANGE
        )
        return True

    def drop_step(self, image_id: str, *, patience: float) -> bool:
        deadline = clock.monotonic() + patience
        while True:
            try:
                self._engine.run(
                    lambda api: api.remove_image(image_id, noprune=True), deadline=CHANGE
                )
            except NotFound:
                return True
            except Conflict as problem:
                # Otherwise another image was made of it.
                is_held = "container" in str(problem)
                if not is_held or clock.monotonic() > deadline:
                    return not is_held
                clock.sleep(0.1)
            else:
                return True

    def commit_container(self, request: CommitRequest) -> None:
        """Returns when the image is there. The engine pauses the container meanwhile, and goes on
        when its caller is gone."""
        seen = self._engine.run(lambda api: api.inspect_container(request.container_id))
        repository, tag = image_refs.pull_parts(request.ref)
        client = self._engine.own_client(round(request.patience) + 1)
        try:
            self._engine.run(
                lambda _: client.commit(
                    request.container_id,
                    repository=repository,
                    tag=tag,
                    pause=True,
                    conf=commit_config(seen["Config"], request),
                ),
            )
        finally:
            client.close()

    def seal_image(self, source: str, target: str) -> None:
        """By loading an archive without files: the engine has every layer already. A newer engine
        notes nothing beside the image, so that its name is all there is to change."""
        seen = self._engine.run(lambda api: api.inspect_image(source))
        if not seen.get("ContainerConfig"):
            self.tag_image(source, target)
            return
        history = self._engine.run(lambda api: api.history(source))
        archive = sealed_archive(seen, history, target)
        answers = self._engine.run(lambda api: list(api.load_image(archive)), deadline=CHANGE)
        if problem := next((line["error"] for line in answers if "error" in line), ""):
            raise EngineError(f"The image could not be freed of its secrets: {problem}")

    def recalls_pause(self, container_id: str) -> bool | None:
        """Whether this very engine process paused it. A daemon that was started anew since has
        forgotten, and with it whatever it was committing."""
        until = clock.utc_now().timestamp()
        events = self._engine.run(
            lambda api: list(api.events(since="1", until=f"{until:.9f}", decode=True))
        )
        if any(
            event.get("Action") == "pause" and event["Actor"]["ID"] == container_id
            for event in events
        ):
            return True
        return None if len(events) >= _RECALLED_EVENTS else False

    def registry_digest(self, ref: str, credential: Credential | None) -> str:
        """What the reference means in its registry now."""
        answer = self._engine.run(
            lambda api: api.inspect_distribution(ref, auth_config=auth(credential)),
            deadline=DIGEST_DEADLINE,
        )
        return str((answer.get("Descriptor") or {}).get("digest") or "")

    def sign_in(self, credential: Credential) -> None:
        client = self._engine.own_client(DIGEST_DEADLINE)
        try:
            self._engine.run(
                lambda _: client.login(
                    credential.username,
                    credential.password,
                    registry=credential.server,
                    reauth=True,
                ),
            )
        finally:
            client.close()


def _built(raw: Iterator[Any], text: str, dockerfile: str) -> Iterator[Output]:
    """What the engine finds wrong is told by the lines that the user wrote."""
    try:
        yield from build_output(raw)
    except APIError as problem:
        told = str(problem.explanation or "")
        problem.explanation = told_as_written(told, text=text, dockerfile=dockerfile)
        raise


def _start_build(client: RecordingClient, request: BuildRequest) -> Iterator[Any]:
    answer: Iterator[Any] = client.build(
        fileobj=build_context(request),
        custom_context=True,
        dockerfile=DOCKERFILE_NAME,
        tag=request.ref,
        buildargs=dict(request.build_args),
        target=request.target or None,
        extra_hosts={request.mark: _NOWHERE} if request.mark else None,
        pull=request.pull_base,
        labels=dict(request.labels) or None,
        rm=True,
        forcerm=True,
        decode=True,
        timeout=request.idle_timeout + _BACKSTOP,
    )
    return answer


def auth(credential: Credential | None) -> dict[str, str]:
    """Empty, not None: otherwise the client sends what it finds in its user's home."""
    if credential is None:
        return {}
    return {
        "username": credential.username,
        "password": credential.password,
        "serveraddress": credential.server,
    }
