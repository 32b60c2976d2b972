"""A stack file as plain values. Every number is checked, every default filled in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from agent.protocol.spec import GpuSpec, HealthCheckSpec, PortSpec
    from workspaces.stacks.file.secret import Secret

DEFAULT_NETWORK: Final = "default"
DEFAULT_READY_TIMEOUT: Final = 45


@dataclass(frozen=True, kw_only=True)
class VolumeMount:
    """`volume` is a key of StackFile.volumes, `host_path` an absolute path: one of both."""

    target: str
    volume: str = ""
    host_path: str = ""
    read_only: bool = False


@dataclass(frozen=True, kw_only=True)
class VolumeSpec:
    """`external_name` names a volume of the host that exists already; empty: the stack's own."""

    key: str
    external_name: str = ""


@dataclass(frozen=True, kw_only=True)
class NetworkSpec:
    """`external_name` names a network of the host that exists already; empty: the stack's own."""

    key: str
    external_name: str = ""
    internal: bool = False


@dataclass(frozen=True, kw_only=True)
class DomainSpec:
    """One address under which a service is reached; `host_name` is whole: app.example.com."""

    host_name: str
    port: int
    tls: bool = False
    auth: str = "public"


@dataclass(frozen=True, kw_only=True)
class Dependency:
    service: str
    healthy: bool = False


@dataclass(frozen=True, kw_only=True)
class ServiceSpec:
    """One service, or one need written as a service.

    Before `resolve` the texts may hold `${...}`; afterwards they do not, and every environment
    value that a secret went into stands in `secret_environment` only.
    """

    name: str
    image: str
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    secret_environment: Mapping[str, Secret] = field(default_factory=dict)
    ports: tuple[PortSpec, ...] = ()
    mounts: tuple[VolumeMount, ...] = ()
    # Keys of StackFile.networks; DEFAULT_NETWORK is the stack's own and needs no entry there.
    networks: tuple[str, ...] = (DEFAULT_NETWORK,)
    health_check: HealthCheckSpec | None = None
    cpus: float | None = None
    memory_bytes: int | None = None
    shm_bytes: int | None = None
    gpus: GpuSpec | None = None
    depends_on: tuple[Dependency, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    domains: tuple[DomainSpec, ...] = ()
    update_policy: str = "always"
    # Seconds.
    startup_timeout: int = 60
    drain_timeout: int = 10
    # Whether an old and a new container of it may have its volumes open at the same time.
    shared_volumes: bool = False


@dataclass(frozen=True, kw_only=True)
class NeedSpec:
    """What the file asks of one need; `needs.catalogue` makes a ServiceSpec of it."""

    kind: str
    image: str = ""
    database: str = ""
    memory_bytes: int | None = None
    cpus: float | None = None
    # Seconds that it may take to become healthy before the sync fails.
    ready_timeout: int = DEFAULT_READY_TIMEOUT


@dataclass(frozen=True, kw_only=True)
class StackFile:
    """`services` in the file's order; `start_order` of file.order gives the order to start in."""

    file_name: str
    services: tuple[ServiceSpec, ...]
    needs: tuple[NeedSpec, ...] = ()
    volumes: Mapping[str, VolumeSpec] = field(default_factory=dict)
    networks: Mapping[str, NetworkSpec] = field(default_factory=dict)
    # "services.web.image" -> line number, for sentences about a value that is read later.
    lines: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, kw_only=True)
class Variables:
    """What `${config.NAME}` and `${secret.NAME}` stand for."""

    config: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, Secret] = field(default_factory=dict)

    def over(self, base: Variables) -> Variables:
        """These win: what an operator sets on the page goes before the file's values."""
        return Variables(
            config={**base.config, **self.config}, secrets={**base.secrets, **self.secrets}
        )


@dataclass(frozen=True, kw_only=True)
class Commit:
    """The newest commit of a branch, as `git ls-remote` names it."""

    id: str
    branch: str


@dataclass(frozen=True, kw_only=True)
class Checkout:
    """The stack's files at one commit.

    `fingerprint` changes only when one of these files changes: keep it with the deployed revision
    and hand it to the next `fetch`; `changed` says whether it moved.
    """

    commit_id: str
    author: str
    message: str
    committed_at: datetime
    file_name: str
    text: str
    variables_text: str
    fingerprint: str
    changed: bool
