"""What a workspace's container should look like: the normalised spec that both sides compare."""

from __future__ import annotations

from typing import Final

import msgspec

# Raised when the meaning of a field changes; a container labelled with an older number is
# compared through its own fields, never recreated only because the format moved on.
SPEC_FORMAT: int = 1
# As the address of a port: each of the host's addresses of IPv4, and none of IPv6.
EVERY_IPV4: Final = "0.0.0.0"  # noqa: S104


class PortSpec(msgspec.Struct, frozen=True, kw_only=True, order=True):
    container_port: int
    protocol: str = "tcp"
    host_port: int | None = None
    host_ip: str = ""


class MountSpec(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """`source` is the engine's volume name for kind `volume`, a host path for kind `bind`."""

    target: str
    kind: str = "volume"
    source: str = ""
    volume_id: str = ""
    read_only: bool = False


class UrlSpec(msgspec.Struct, frozen=True, kw_only=True, order=True):
    subdomain: str
    domain: str
    port: int
    tls: bool = False
    auth: str = "none"


class GpuSpec(msgspec.Struct, frozen=True, kw_only=True):
    count: int = 0
    device_ids: tuple[str, ...] = ()


class HealthCheckSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Durations in seconds, as in the API."""

    test: tuple[str, ...]
    interval: float = 30.0
    timeout: float = 30.0
    retries: int = 3
    start_period: float = 0.0


class WorkspaceSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One workspace's container. Lists are kept sorted and defaults filled in by `normalise`."""

    name: str
    image_ref: str
    image_id: str = ""
    # The engine's id of the wanted image, once known; a rebuild or a moved tag changes it.
    image_engine_id: str = ""
    command: tuple[str, ...] = ()
    env: dict[str, str] = {}
    secret_env: dict[str, str] = {}
    cpus: float | None = None
    memory_bytes: int | None = None
    shm_bytes: int | None = None
    gpus: GpuSpec | None = None
    nested_virtualization: bool = False
    ports: tuple[PortSpec, ...] = ()
    mounts: tuple[MountSpec, ...] = ()
    network_ids: tuple[str, ...] = ()
    urls: tuple[UrlSpec, ...] = ()
    health_check: HealthCheckSpec | None = None
    labels: dict[str, str] = {}
    # Counts `redeploy` requests: a new number replaces the container though nothing else moved.
    generation: int = 0
