"""What the agent needs of a container engine, in its own types; errors are `EngineError`s."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from agent.runtime.session_port import SessionRuntime

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from agent.engine_requests import (
        BuildRequest,
        CommitRequest,
        ContainerRequest,
        Credential,
        NetworkRequest,
        VolumeRequest,
    )
    from agent.observed import ObservedContainer, ObservedImage, ObservedState
    from agent.protocol.session import EngineInfo


@dataclass(frozen=True, kw_only=True)
class Look:
    """What an observation must see in detail. `full` forgets every remembered inspection."""

    container_names: frozenset[str] = frozenset()
    container_ids: frozenset[str] = frozenset()
    host_id: str = ""
    changed_ids: frozenset[str] = frozenset()
    full: bool = True


@dataclass(frozen=True, kw_only=True)
class EngineEvent:
    """A hint that something happened; `workspace_id` is known when the labels say so. `at` is the
    engine's time in nanoseconds; `exit_code` belongs to `die`, `signal` to `kill`."""

    kind: str
    action: str
    id: str
    container_id: str = ""
    workspace_id: str = ""
    at: int = 0
    exit_code: int | None = None
    signal: int | None = None


@dataclass(frozen=True, kw_only=True)
class Output:
    """One piece of a pull's, push's or build's output; an `error` ends it. Only one that `is_last`
    means success: a dying engine ends its stream without a word. A push says at its end which
    `digest` the registry gave. `labels_step` is the image of the step that the labels made."""

    text: str = ""
    progress: int | None = None
    error: str = ""
    digest: str = ""
    is_last: bool = False
    labels_step: str = ""


@dataclass(frozen=True, kw_only=True)
class ContainerStats:
    """Totals since the container's start; what the engine does not tell is None."""

    cpu_seconds: float | None = None
    memory_bytes: int | None = None
    disk_read_bytes: int | None = None
    disk_write_bytes: int | None = None
    network_rx_bytes: int | None = None
    network_tx_bytes: int | None = None
    processes: int | None = None


T_co = TypeVar("T_co", covariant=True)


class Stream(Protocol[T_co]):
    """An iterator that another thread may close."""

    def __iter__(self) -> Iterator[T_co]: ...

    def close(self) -> None: ...


class Runtime(SessionRuntime, Protocol):
    """Calls are safe from several threads. 304, and 404 on removal, count as success."""

    def observe(self, look: Look) -> ObservedState: ...

    def inspect_container(self, container_id: str) -> ObservedContainer: ...

    def log_tail(self, container_id: str) -> str:
        """The last lines it wrote; empty where they cannot be read."""
        ...

    def container_stats(self, container_id: str) -> ContainerStats:
        """Slow on older engines: only where the container's own files cannot be read."""
        ...

    def inspect_image(self, ref: str) -> ObservedImage: ...

    def create_container(
        self, request: ContainerRequest, *, network_id: str, alias: str
    ) -> str: ...

    def start_container(self, container_id: str) -> None: ...

    def stop_container(self, container_id: str, *, timeout: float) -> None: ...

    def unpause_container(self, container_id: str) -> None: ...

    def update_container(
        self, container_id: str, *, nano_cpus: int, memory_bytes: int, restart_policy: str = ""
    ) -> None:
        """What is 0 or empty stays as it is."""
        ...

    def write_file(self, container_id: str, folder: str, name: str, data: bytes) -> None:
        """Into a folder that the container has; over what is there."""
        ...

    def rename_container(self, container_id: str, name: str) -> None: ...

    def remove_container(self, container_id: str, *, with_volumes: bool) -> None: ...

    def connect_network(
        self, network_id: str, container_id: str, *, alias: str, address: str = ""
    ) -> None:
        """With the address, if the network can give a certain one; otherwise with any."""
        ...

    def disconnect_network(self, network_id: str, container_id: str) -> None: ...

    def create_network(self, request: NetworkRequest) -> str: ...

    def remove_network(self, network_id: str) -> None: ...

    def create_volume(self, request: VolumeRequest) -> str: ...

    def remove_volume(self, name: str) -> None: ...

    def remove_image(self, ref: str) -> None: ...

    def remove_unnamed_images(self, labels: Mapping[str, str]) -> None:
        """Those with all of these labels that nothing is made of: an engine that dies between an
        image and its name leaves one."""
        ...

    def tag_image(self, ref: str, target: str) -> None: ...

    def pull_image(self, ref: str, credential: Credential | None) -> Stream[Output]: ...

    def push_image(self, ref: str, credential: Credential | None) -> Stream[Output]: ...

    def build_image(
        self, request: BuildRequest, credential: Credential | None
    ) -> Stream[Output]: ...

    def import_files(self, ref: str, archive: Iterable[bytes]) -> None:
        """Makes an image of the files in a tar archive, which is read as it is sent."""
        ...

    def remove_build_containers(self, mark: str) -> bool:
        """What is left of a build with that mark, by an engine that died over it or has not heard
        of its end. Tells whether there was anything."""
        ...

    def drop_step(self, image_id: str, *, patience: float) -> bool:
        """The image of a build's step, unless something was made of it. False while a container
        of the build still holds it, for longer than these seconds."""
        ...

    def commit_container(self, request: CommitRequest) -> None:
        """Blocks. The engine pauses the container meanwhile; it goes on without its caller."""
        ...

    def seal_image(self, source: str, target: str) -> None:
        """The same files and configuration as `target`, without what an engine notes beside a
        committed image: the whole environment of its container."""
        ...

    def recalls_pause(self, container_id: str) -> bool | None:
        """False: the engine was started anew since the container was paused. None: so much has
        happened on it since that it cannot say."""
        ...

    def registry_digest(self, ref: str, credential: Credential | None) -> str: ...

    def sign_in(self, credential: Credential) -> None:
        """Raises unless the registry lets the engine in; nothing is kept of it."""
        ...

    def events(self, since: int = 0) -> Stream[EngineEvent]:
        """From now on, or from that time of the engine (in nanoseconds) on, as far back as the
        engine remembers: few hundred events, and none from before its own start."""
        ...

    def info(self) -> EngineInfo: ...

    def ping(self, *, deadline: float) -> None:
        """Raises EngineUnavailable unless the engine answers within these seconds. Has its own
        connection, counts as no call, and is for one thread."""
        ...

    @property
    def data_root(self) -> str:
        """Where the engine keeps its data; empty until it has said so."""
        ...

    @property
    def calls(self) -> int: ...
