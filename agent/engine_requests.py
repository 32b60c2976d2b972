"""What the agent asks an engine to make: plain values built by the planner, read by an adapter."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.protocol.prerequisites import PrerequisiteMount
    from agent.protocol.spec import GpuSpec, HealthCheckSpec, MountSpec, PortSpec


# Of every container of a workspace.
RESTART_POLICY: Final = "unless-stopped"


@dataclass(frozen=True, kw_only=True)
class NetworkRequest:
    name: str
    driver: str = "bridge"
    internal: bool = False
    parent_interface: str = ""
    subnet: str = ""
    gateway: str = ""
    ip_range: str = ""
    # How small it shall be; the engine, left to itself, takes one of its few large ranges.
    prefix: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class VolumeRequest:
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ContainerRequest:
    """`env` holds secrets in the clear: it is never shown in a repr, a log or a plan."""

    name: str
    image: str
    hostname: str
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    labels: Mapping[str, str] = field(default_factory=dict, repr=False)
    nano_cpus: int = 0
    memory_bytes: int = 0
    shm_bytes: int = 0
    ports: tuple[PortSpec, ...] = ()
    mounts: tuple[MountSpec, ...] = ()
    # Of a container of the platform itself.
    platform_mounts: tuple[PrerequisiteMount, ...] = ()
    entrypoint: tuple[str, ...] = ()
    privileged: bool = False
    host_pid: bool = False
    gpus: GpuSpec | None = None
    nested_virtualization: bool = False
    health_check: HealthCheckSpec | None = None


@dataclass(frozen=True, kw_only=True)
class BuildRequest:
    ref: str
    dockerfile: str
    files: tuple[tuple[str, str], ...] = ()
    build_args: Mapping[str, str] = field(default_factory=dict, repr=False)
    # In the clear, like a container's: never shown in a repr, a log or a plan.
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    # Another one whenever a secret is another one: what was made with the old stays unused.
    secrets_mark: str = ""
    target: str = ""
    pull_base: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    # Seconds without output after which the build is given up.
    idle_timeout: int = 600
    most_bytes: int = 64 * 1024 * 1024
    # By this the containers of the build's steps are known again, if the engine dies over them.
    mark: str = ""
    # By base image, names of ARGs that were filled in here: an ENV of the image counts more.
    filled_in: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        texts = (self.dockerfile, *(content for _, content in self.files))
        return sum(len(text.encode()) for text in texts)


@dataclass(frozen=True, kw_only=True)
class CommitRequest:
    """An image of a container's files. An engine cannot leave out what the container's own
    configuration has: `blank_env` are left empty, `labels` take the place of those there."""

    container_id: str
    ref: str
    labels: Mapping[str, str] = field(default_factory=dict)
    blank_env: tuple[str, ...] = ()
    # Seconds until the caller stops waiting; the engine goes on.
    patience: float = 1800.0


@dataclass(frozen=True, kw_only=True)
class Credential:
    server: str
    username: str
    password: str = field(repr=False)
