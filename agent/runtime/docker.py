"""The Docker engine behind the port: observation and verbs; 304 and a 404 on removal succeed."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.errors import EngineError, NotFound
from agent.observed import ObservedContainer, ObservedState
from agent.protocol import naming
from agent.runtime import docker_parse as parse
from agent.runtime.docker_client import (
    CHANGE,
    Connections,
    CuttableStream,
)
from agent.runtime.docker_images import DockerImages
from agent.runtime.docker_layers import DockerLayers
from agent.runtime.docker_networks import DockerNetworks
from agent.runtime.docker_ping import DockerPing
from agent.runtime.docker_requests import KVM_COMPANIONS, container_config, single_file
from agent.runtime.docker_sessions import DockerSessions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.engine_requests import ContainerRequest, VolumeRequest
    from agent.protocol.session import EngineInfo
    from agent.runtime.port import ContainerStats, EngineEvent, Look

_EVENTS = {
    "type": ["container", "network", "volume", "image", "daemon"],
    "event": [
        *("start", "die", "kill", "destroy", "oom", "health_status", "pause", "unpause", "rename"),
        *("update", "connect", "disconnect", "delete", "untag", "reload"),
    ],
}
_TAIL_LINES = 10


class DockerRuntime(DockerImages, DockerNetworks, DockerSessions, DockerLayers):
    def __init__(self, environment: Mapping[str, str]) -> None:
        self._engine = Connections(dict(environment))
        self._ping = DockerPing(environment)
        self._lock = threading.Lock()
        self._making_network = threading.Lock()
        self._network_ids: dict[str, str] = {}
        self._inspected: dict[str, tuple[tuple[object, ...], ObservedContainer]] = {}
        self._data_root = ""

    @property
    def calls(self) -> int:
        return self._engine.calls

    def ping(self, *, deadline: float) -> None:
        self._ping.ping(deadline=deadline)

    def info(self) -> EngineInfo:
        info = self._engine.run(lambda api: api.info())
        version = self._engine.run(lambda api: api.version())
        self._data_root = str(info.get("DockerRootDir") or "")
        return parse.engine_info(info, version)

    @property
    def data_root(self) -> str:
        return self._data_root

    # --- observation --------------------------------------------------------------------------

    def observe(self, look: Look) -> ObservedState:
        """Whole or not at all: an error leaves through the exception, never as an empty list."""
        run = self._engine.run
        networks = tuple(parse.network(raw) for raw in run(lambda api: api.networks()))
        volumes = run(lambda api: api.volumes()).get("Volumes") or ()
        images = run(lambda api: api.images())
        listed = run(lambda api: api.containers(all=True))
        network_ids = {network.name: network.id for network in networks}
        self._network_ids = network_ids
        return ObservedState(
            containers=self._containers(listed, look, network_ids),
            networks=networks,
            volumes=tuple(parse.volume(raw) for raw in volumes),
            images=tuple(parse.listed_image(raw) for raw in images),
        )

    def _containers(
        self, listed: list[Mapping[str, Any]], look: Look, network_ids: Mapping[str, str]
    ) -> tuple[ObservedContainer, ...]:
        found = []
        remembered: dict[str, tuple[tuple[object, ...], ObservedContainer]] = {}
        for raw in listed:
            container = parse.listed_container(raw)
            if not _matters(container, look):
                found.append(container)
                continue
            mark = parse.list_fingerprint(raw)
            known = self._inspected.get(container.id)
            stale = look.full or container.id in look.changed_ids
            if known and known[0] == mark and not stale:
                inspected = known[1]
            else:
                try:
                    inspected = self._inspect(container.id, network_ids)
                except NotFound:
                    # Removed since it was listed: that is what the next look would say.
                    continue
            remembered[container.id] = (mark, inspected)
            found.append(inspected)
        with self._lock:
            self._inspected = remembered
        return tuple(found)

    def inspect_container(self, container_id: str) -> ObservedContainer:
        return self._inspect(container_id, self._network_ids)

    def container_stats(self, container_id: str) -> ContainerStats:
        raw = self._engine.run(lambda api: api.stats(container_id, stream=False, one_shot=True))
        return parse.container_stats(raw)

    def _inspect(self, container_id: str, network_ids: Mapping[str, str]) -> ObservedContainer:
        raw = self._engine.run(lambda api: api.inspect_container(container_id))
        container = parse.inspected_container(raw, network_ids)
        troubled = container.state == "restarting" or container.health == "unhealthy"
        if troubled or container.restart_count or container.error:
            return parse.with_log_tail(container, self.log_tail(container_id))
        return container

    def log_tail(self, container_id: str) -> str:
        try:
            raw = self._engine.run(lambda api: api.logs(container_id, tail=_TAIL_LINES))
        except EngineError:
            # A message is poorer without its log; the observation is still whole.
            return ""
        return bytes(raw).decode(errors="replace").strip()

    def events(self, since: int = 0) -> CuttableStream[EngineEvent]:
        client = self._engine.own_client(None)
        # In whole seconds: what is heard again, the caller knows by its time.
        begin = since // 10**9 or None
        raw = self._engine.run(lambda _: client.events(since=begin, decode=True, filters=_EVENTS))
        return CuttableStream((parse.event(item) for item in raw), client)

    # --- containers ---------------------------------------------------------------------------

    def create_container(self, request: ContainerRequest, *, network_id: str, alias: str) -> str:
        config = container_config(
            request, network_id=network_id, alias=alias, companions=_kvm_companions()
        )
        created = self._engine.run(
            lambda api: api.create_container_from_config(config, name=request.name),
            deadline=CHANGE,
        )
        return str(created["Id"])

    def start_container(self, container_id: str) -> None:
        self._engine.run(lambda api: api.start(container_id), deadline=CHANGE)

    def stop_container(self, container_id: str, *, timeout: float) -> None:
        # The client adds the grace to its own deadline.
        grace = max(0, round(timeout))
        self._engine.run(lambda api: api.stop(container_id, timeout=grace), deadline=15)

    def unpause_container(self, container_id: str) -> None:
        try:
            self._engine.run(lambda api: api.unpause(container_id), deadline=CHANGE)
        except EngineError as problem:
            if "not paused" not in str(problem):
                raise

    def update_container(
        self, container_id: str, *, nano_cpus: int, memory_bytes: int, restart_policy: str = ""
    ) -> None:
        data: dict[str, Any] = {}
        if restart_policy:
            data["RestartPolicy"] = {"Name": restart_policy}
        if nano_cpus:
            data["NanoCpus"] = nano_cpus
        if memory_bytes:
            data.update({"Memory": memory_bytes, "MemorySwap": memory_bytes * 2})
        self._engine.run(
            lambda api: api._result(
                api._post_json(api._url("/containers/{0}/update", container_id), data=data), True
            ),
            deadline=CHANGE,
        )

    def write_file(self, container_id: str, folder: str, name: str, data: bytes) -> None:
        archive = single_file(name, data)
        self._engine.run(
            lambda api: api.put_archive(container_id, folder, archive), deadline=CHANGE
        )

    def rename_container(self, container_id: str, name: str) -> None:
        self._engine.run(lambda api: api.rename(container_id, name), deadline=CHANGE)

    def remove_container(self, container_id: str, *, with_volumes: bool) -> None:
        self._engine.remove_container(container_id, with_volumes=with_volumes)

    # --- volumes ------------------------------------------------------------------------------

    def create_volume(self, request: VolumeRequest) -> str:
        created = self._engine.run(
            lambda api: api.create_volume(request.name, labels=dict(request.labels)),
            deadline=CHANGE,
        )
        return str(created["Name"])

    def remove_volume(self, name: str) -> None:
        try:
            self._engine.run(lambda api: api.remove_volume(name), deadline=CHANGE)
        except NotFound:
            return


def _matters(container: ObservedContainer, look: Look) -> bool:
    """Ours by label or journal, or the holder of a name we want."""
    return (
        container.id in look.container_ids
        or container.name in look.container_names
        or container.labels.get(naming.LABEL_HOST) == look.host_id != ""
    )


def _kvm_companions() -> tuple[str, ...]:
    """An agent in a container sees none, and then a machine has the network of its container."""
    return tuple(path for path in KVM_COMPANIONS if Path(path).exists())
