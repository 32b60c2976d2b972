"""What the engine says there is: one whole, lossless snapshot in the agent's own types."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

# The name that engines give to a volume that nobody named: no other container gets it.
_UNNAMED: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class Attachment:
    """One container's place on one network."""

    network_id: str
    network_name: str
    aliases: tuple[str, ...] = ()
    address: str = ""


@dataclass(frozen=True, kw_only=True)
class ObservedMount:
    """What outlives the container or is seen by others too: a volume (also one that the engine
    made for its image) or a folder of the host. `source` is the volume's name or the path."""

    target: str
    kind: str = "volume"
    source: str = ""
    read_only: bool = False

    @property
    def can_be_shared(self) -> bool:
        """False for what the engine made for this one container, because its image asks for it."""
        return self.kind != "volume" or _UNNAMED.fullmatch(self.source) is None


@dataclass(frozen=True, kw_only=True)
class ObservedContainer:
    """`inspected` is False for containers known only from the list (never ours)."""

    id: str
    name: str
    state: str
    image_id: str = ""
    hostname: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    exit_code: int | None = None
    error: str = ""
    oom_killed: bool = False
    started_at: str = ""
    restart_count: int = 0
    # Of its first process, as the host numbers it; 0 while none runs.
    pid: int = 0
    health: str = ""
    health_output: str = ""
    nano_cpus: int = 0
    memory_bytes: int = 0
    # Empty where it was not looked at.
    restart_policy: str = ""
    attachments: tuple[Attachment, ...] = ()
    mounts: tuple[ObservedMount, ...] = ()
    # Its ports that the host has on 0.0.0.0 and on no address of IPv6; empty while it is down.
    ipv4_only_ports: frozenset[tuple[int, str]] = frozenset()
    log_tail: str = ""
    inspected: bool = True

    @property
    def writable_targets(self) -> tuple[str, ...]:
        """Where it can write to something that another container could hold at the same time."""
        return tuple(
            mount.target for mount in self.mounts if mount.can_be_shared and not mount.read_only
        )

    @property
    def is_up(self) -> bool:
        """A process exists: paused and restarting count, created and exited do not."""
        return self.state in {"running", "paused", "restarting"}

    @property
    def short_id(self) -> str:
        return self.id[:12]


@dataclass(frozen=True, kw_only=True)
class ObservedNetwork:
    """`interface` is the bridge that the engine made for it on the machine, where it makes one."""

    id: str
    name: str
    driver: str = "bridge"
    labels: Mapping[str, str] = field(default_factory=dict)
    subnets: tuple[str, ...] = ()
    interface: str = ""


@dataclass(frozen=True, kw_only=True)
class ObservedVolume:
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ObservedImage:
    id: str
    tags: tuple[str, ...] = ()
    digests: tuple[str, ...] = ()
    size_bytes: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ObservedState:
    containers: tuple[ObservedContainer, ...] = ()
    networks: tuple[ObservedNetwork, ...] = ()
    volumes: tuple[ObservedVolume, ...] = ()
    images: tuple[ObservedImage, ...] = ()
