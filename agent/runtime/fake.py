"""A container engine in memory, behind the port and held to the same contract as the real one.

Tests reach into its dictionaries to do by hand what a user would do with `docker`.
"""

from __future__ import annotations

import itertools
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from agent.engine_requests import RESTART_POLICY
from agent.errors import Conflict, EngineError, EngineUnavailable, NotFound
from agent.observed import (
    Attachment,
    ObservedContainer,
    ObservedMount,
    ObservedNetwork,
    ObservedState,
    ObservedVolume,
)
from agent.protocol.session import EngineInfo
from agent.protocol.spec import EVERY_IPV4
from agent.runtime.fake_images import FakeImages
from agent.runtime.fake_sessions import FakeSessions
from agent.runtime.fake_streams import FakeEvents
from agent.runtime.port import ContainerStats, EngineEvent, Look

if TYPE_CHECKING:
    from agent.engine_requests import ContainerRequest, NetworkRequest, VolumeRequest

BRIDGE = ObservedNetwork(id="net-bridge", name="bridge")


class FakeRuntime(FakeImages, FakeSessions):
    def __init__(self) -> None:
        self.containers: dict[str, ObservedContainer] = {}
        self.networks: dict[str, ObservedNetwork] = {BRIDGE.id: BRIDGE}
        self.volumes: dict[str, ObservedVolume] = {}
        FakeImages.__init__(self)
        FakeSessions.__init__(self)
        self.requests: dict[str, ContainerRequest] = {}
        self.files: dict[tuple[str, str], bytes] = {}
        # Verb -> how many calls of it fail from now on.
        self.failing: dict[str, int] = {}
        # At the first call of one of these verbs the engine goes away.
        self.deadly: set[str] = set()
        self.first_health = "healthy"
        self.stats: dict[str, ContainerStats] = {}
        # Whether ports without an address are published on IPv6 as well.
        self.publishes_ipv6 = True
        # The last output of a container.
        self.tails: dict[str, str] = {}
        self.away = False
        self.calls = 0
        self.mutations: list[str] = []
        self._numbers = itertools.count(1)
        self._streams: list[FakeEvents] = []
        # What the engine remembers for whoever asks for the past.
        self.past_events: list[EngineEvent] = []
        self._lock = threading.RLock()

    # --- by hand ---

    def add_container(self, name: str, *, state: str = "running", **fields: object) -> str:
        container_id = f"{next(self._numbers):064x}"
        self.containers[container_id] = ObservedContainer(
            id=container_id,
            name=name,
            state=state,
            **fields,  # type: ignore[arg-type]
        )
        return container_id

    def named(self, name: str) -> ObservedContainer | None:
        return next((c for c in self.containers.values() if c.name == name), None)

    # --- the port ---

    def observe(self, look: Look) -> ObservedState:
        self._call("observe")
        with self._lock:
            return ObservedState(
                containers=tuple(self.containers.values()),
                networks=tuple(self.networks.values()),
                volumes=tuple(self.volumes.values()),
                images=tuple(self.images.values()),
            )

    def inspect_container(self, container_id: str) -> ObservedContainer:
        self._call("inspect")
        return self._get(container_id)

    def log_tail(self, container_id: str) -> str:
        self._call("logs")
        return self.tails.get(container_id, "")

    def container_stats(self, container_id: str) -> ContainerStats:
        self._call("stats")
        self._get(container_id)
        return self.stats.get(container_id, ContainerStats())

    def create_container(self, request: ContainerRequest, *, network_id: str, alias: str) -> str:
        self._change("create_container")
        with self._lock:
            if self.named(request.name):
                raise Conflict(f"The container name {request.name} is already in use.")
            image = self.inspect_image(request.image)
            network = self.networks.get(network_id or BRIDGE.id)
            if network is None:
                raise NotFound(f"network {network_id} not found")
            container_id = f"{next(self._numbers):064x}"
            self.requests[container_id] = request
            self.containers[container_id] = ObservedContainer(
                id=container_id,
                name=request.name,
                state="created",
                image_id=image.id,
                hostname=request.hostname,
                labels=dict(request.labels),
                nano_cpus=request.nano_cpus,
                memory_bytes=request.memory_bytes,
                restart_policy=RESTART_POLICY,
                attachments=(_place(network, alias, request.hostname),),
                mounts=tuple(
                    ObservedMount(
                        target=mount.target,
                        kind=mount.kind,
                        source=mount.source,
                        read_only=mount.read_only,
                    )
                    for mount in request.mounts
                ),
            )
            return container_id

    def start_container(self, container_id: str) -> None:
        self._change("start_container")
        container = self._get(container_id)
        health = self.first_health if self._has_health_check(container_id) else ""
        self._set(container, "start", state="running", health=health, error="", exit_code=0)
        ipv4 = {EVERY_IPV4} if self.publishes_ipv6 else {EVERY_IPV4, ""}
        request = self.requests.get(container_id)
        published = frozenset(
            (port.container_port, port.protocol)
            for port in (request.ports if request else ())
            if port.host_port is not None and port.host_ip in ipv4
        )
        running = self._get(container_id)
        self.containers[container_id] = replace(running, ipv4_only_ports=published)

    def stop_container(self, container_id: str, *, timeout: float) -> None:
        self._change("stop_container")
        self._set(self._get(container_id), "die", state="exited", health="", exit_code=0)

    def unpause_container(self, container_id: str) -> None:
        self._change("unpause_container")
        container = self._get(container_id)
        if container.state == "paused":
            self._set(container, "unpause", state="running")

    def update_container(
        self, container_id: str, *, nano_cpus: int, memory_bytes: int, restart_policy: str = ""
    ) -> None:
        self._change("update_container")
        container = self._get(container_id)
        self._set(
            container,
            "update",
            nano_cpus=nano_cpus or container.nano_cpus,
            memory_bytes=memory_bytes or container.memory_bytes,
            restart_policy=restart_policy or container.restart_policy,
        )

    def write_file(self, container_id: str, folder: str, name: str, data: bytes) -> None:
        self._change("write_file")
        self.files[self._get(container_id).id, f"{folder}/{name}"] = data

    def rename_container(self, container_id: str, name: str) -> None:
        self._change("rename_container")
        if self.named(name):
            raise Conflict(f"The container name {name} is already in use.")
        self._set(self._get(container_id), "rename", name=name)

    def remove_container(self, container_id: str, *, with_volumes: bool) -> None:
        self._change("remove_container")
        container = self.containers.pop(container_id, None)
        if container is not None:
            self._emit("container", "destroy", container)

    def connect_network(
        self, network_id: str, container_id: str, *, alias: str, address: str = ""
    ) -> None:
        self._change("connect_network")
        container, network = self._get(container_id), self.networks.get(network_id)
        if network is None:
            raise NotFound(f"network {network_id} not found")
        if all(place.network_id != network_id for place in container.attachments):
            places = (*container.attachments, _place(network, alias, container.hostname))
            self._set(container, "connect", attachments=places)

    def disconnect_network(self, network_id: str, container_id: str) -> None:
        self._change("disconnect_network")
        container = self._get(container_id)
        places = tuple(p for p in container.attachments if p.network_id != network_id)
        self._set(container, "disconnect", attachments=places)

    def create_network(self, request: NetworkRequest) -> str:
        self._change("create_network")
        if any(network.name == request.name for network in self.networks.values()):
            raise Conflict(f"network with name {request.name} already exists")
        network_id = f"net-{next(self._numbers)}"
        self.networks[network_id] = ObservedNetwork(
            id=network_id,
            name=request.name,
            driver=request.driver,
            labels=dict(request.labels),
            subnets=(request.subnet,) if request.subnet else (),
        )
        return network_id

    def remove_network(self, network_id: str) -> None:
        self._change("remove_network")
        for container in self.containers.values():
            if any(place.network_id == network_id for place in container.attachments):
                raise EngineError(f"network {network_id} has active endpoints")
        self.networks.pop(network_id, None)

    def create_volume(self, request: VolumeRequest) -> str:
        self._change("create_volume")
        volume = ObservedVolume(name=request.name, labels=dict(request.labels))
        return self.volumes.setdefault(request.name, volume).name

    def remove_volume(self, name: str) -> None:
        self._change("remove_volume")
        for container_id in self.containers:
            request = self.requests.get(container_id)
            if request and any(mount.source == name for mount in request.mounts):
                raise Conflict(f"remove {name}: volume is in use")
        self.volumes.pop(name, None)

    def events(self, since: int = 0) -> FakeEvents:
        self._call("events")
        stream = FakeEvents()
        for event in self.past_events:
            if since and event.at >= since:
                stream.queue.put(event)
        self._streams.append(stream)
        return stream

    def info(self) -> EngineInfo:
        self._call("info")
        return EngineInfo(id="fake", name="fake", version="1", api_version="1.41")

    def ping(self, *, deadline: float) -> None:
        if self.away:
            raise EngineUnavailable("The container engine cannot be reached.")

    # --- inside ---

    def _call(self, verb: str) -> None:
        with self._lock:
            self.calls += 1
            if verb in self.deadly:
                self.deadly.discard(verb)
                self.away = True
            if self.away:
                raise EngineUnavailable("The container engine cannot be reached.")
            if self.failing.get(verb, 0):
                self.failing[verb] -= 1
                raise EngineError(f"{verb} was made to fail")

    def _change(self, verb: str) -> None:
        self._call(verb)
        with self._lock:
            self.mutations.append(verb)

    def _get(self, container_id: str) -> ObservedContainer:
        try:
            return self.containers[container_id]
        except KeyError:
            raise NotFound(f"No such container: {container_id}") from None

    def _set(self, container: ObservedContainer, action: str, **fields: object) -> None:
        with self._lock:
            self.containers[container.id] = replace(container, **fields)  # type: ignore[arg-type]
        self._emit("container", action, container)

    def _emit(self, kind: str, action: str, container: ObservedContainer) -> None:
        event = EngineEvent(
            kind=kind,
            action=action,
            id=container.id,
            container_id=container.id,
            workspace_id=container.labels.get("trailer.workspace", ""),
        )
        for stream in self._streams:
            stream.queue.put(event)

    def _has_health_check(self, container_id: str) -> bool:
        request = self.requests.get(container_id)
        return request is not None and request.health_check is not None


def _place(network: ObservedNetwork, alias: str, hostname: str) -> Attachment:
    """Like the engine: a hostname is a name on the network too, except on the default one."""
    names = {alias, hostname} - {""} if network is not BRIDGE else set()
    return Attachment(
        network_id=network.id, network_name=network.name, aliases=tuple(sorted(names))
    )
