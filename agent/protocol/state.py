"""The state document: everything one host should have, sent whole and validated whole."""

from __future__ import annotations

import msgspec

from agent.protocol.prerequisites import DesiredPrerequisite
from agent.protocol.spec import WorkspaceSpec


class RouterSettings(msgspec.Struct, frozen=True, kw_only=True):
    mode: str = "none"
    network: str = ""
    entrypoint: str = ""
    certresolver: str = ""
    managed: bool = False
    image: str = ""
    # URLs of this domain go through the server, not through the host's router.
    relay_domain: str = ""
    # Where the router asks whether a visitor may pass.
    forward_auth: str = ""


class NvidiaSettings(msgspec.Struct, frozen=True, kw_only=True):
    deploy_driver: bool = False
    deploy_toolkit: bool = False
    driver_image: str = ""
    toolkit_image: str = ""


class MetricsSettings(msgspec.Struct, frozen=True, kw_only=True):
    host: bool = True
    gpu: bool = True
    workspace: bool = True
    retention_days: int = 7


class HostSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Per-host switches; travel in the session, heartbeat and state answers, applied at once."""

    enabled: bool = True
    reconcile_interval: float = 10.0
    heartbeat_interval: float = 15.0
    build_timeout: float = 1800.0
    pull_timeout: float = 1800.0
    # A build that prints nothing for so long is ended.
    build_idle_timeout: float = 600.0
    build_context_bytes: int = 64 * 1024 * 1024
    build_parallel: int = 2
    # How often images with update_policy `always` are compared with their registry.
    update_interval: float = 300.0
    # Below this no pull, build or snapshot begins; stopping and removing go on.
    disk_free_min_bytes: int = 2 * 1024**3
    router: RouterSettings = RouterSettings()
    nvidia: NvidiaSettings = NvidiaSettings()
    metrics: MetricsSettings = MetricsSettings()
    agent_image: str = ""
    # Another number than was answered last asks for the image that the name means today.
    agent_order: int = 0
    maintenance_schedule: str = ""
    # Counts maintenance windows; a higher number than before asks for one.
    maintenance: int = 0
    # Containers must not reach a cloud's metadata addresses. None, as from older servers, orders
    # nothing: what is set stays.
    block_metadata: bool | None = None
    # Where registries that members name may be beside the internet. None, as from older servers,
    # judges none of them.
    registry_allow: tuple[str, ...] | None = None
    # Where builds may fetch from beside the internet; entries as in `agent.protocol.addresses`.
    build_allow: tuple[str, ...] = ()


class DesiredNetwork(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    driver: str = "bridge"
    internal: bool = False
    parent_interface: str = ""
    subnet: str = ""
    gateway: str = ""
    ip_range: str = ""
    revision: int = 1


class DesiredVolume(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    kind: str = "volume"
    source: str = ""
    revision: int = 1


class RegistryCredential(msgspec.Struct, frozen=True, kw_only=True):
    server: str
    username: str
    password: str


class DesiredRegistryTest(msgspec.Struct, frozen=True, kw_only=True):
    """A user asks whether this host can sign in with the credential; told once."""

    id: str
    credential: RegistryCredential


class BuildFile(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    content: str


class DesiredBuild(msgspec.Struct, frozen=True, kw_only=True):
    """The newest build row of an image. `cancel` asks the agent to end it."""

    id: str
    number: int
    cancel: bool = False
    # The user asked for a pull again: an image that is already there does not end it at once.
    force: bool = False
    # True once the server has a terminal result: the agent has nothing to run for it.
    done: bool = False


class DesiredImage(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    kind: str
    # What the engine calls the result: the reference for kind pull, `build_ref(id)` otherwise.
    ref: str
    reference: str = ""
    dockerfile: str = ""
    files: tuple[BuildFile, ...] = ()
    build_args: dict[str, str] = {}
    # In the clear, and only while a build is to be made with them.
    build_secrets: dict[str, str] = {}
    target: str = ""
    pull_base: bool = False
    update_policy: str = "if_missing"
    push: bool = False
    enabled: bool = True
    credential: RegistryCredential | None = None
    # Kind snapshot: whose container is committed.
    source_workspace_id: str = ""
    # Counts requests to compare with the registry now; a new number asks for one look.
    check: int = 0
    # Kind pull: the engine ids that stay; whatever else the agent pulled for this image is to go
    # once nothing uses or names it. None, as from older servers, orders nothing.
    keep: tuple[str, ...] | None = None
    build: DesiredBuild | None = None
    # An administrator said what it is made from: its registries may be anywhere.
    trusted_source: bool = False
    revision: int = 1


class DesiredWorkspace(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    revision: int
    desired_state: str
    spec: WorkspaceSpec
    startup_timeout: float = 60.0
    drain_timeout: float = 10.0
    stack_id: str = ""
    service: str = ""
    # Its program is made to share its volumes with another container of its own: it may then be
    # replaced without downtime though it writes to them.
    shared_volumes: bool = False
    # Why nothing may be made or started for it now (a GPU that is not free, a right that was taken
    # back); what runs, runs on.
    blocked: str = ""


class Tombstone(msgspec.Struct, frozen=True, kw_only=True):
    """A user's explicit order to remove one object (and, for volumes and images, its data)."""

    id: str
    kind: str
    object_id: str
    # The engine's name of the object: container, network or volume name, or image reference.
    name: str


class HostState(msgspec.Struct, frozen=True, kw_only=True):
    host_id: str
    protocol: int
    # Rises only when an admin confirms a restored database; see the agent's removal brake.
    state_epoch: int
    # Rises with every change; a lower one than seen before means a restored database.
    version: int
    settings: HostSettings
    networks: tuple[DesiredNetwork, ...] = ()
    volumes: tuple[DesiredVolume, ...] = ()
    images: tuple[DesiredImage, ...] = ()
    workspaces: tuple[DesiredWorkspace, ...] = ()
    tombstones: tuple[Tombstone, ...] = ()
    registry_tests: tuple[DesiredRegistryTest, ...] = ()
    # The server was restored from a backup: nothing is removed until an admin confirms its state.
    restored: bool = False
    # Containers of the platform itself, made before anything else.
    prerequisites: tuple[DesiredPrerequisite, ...] = ()
    # For the agent's own image, where that is private.
    agent_credential: RegistryCredential | None = None
    # Servers of the registries that administrators stored: they may be anywhere, for everybody.
    trusted_registries: tuple[str, ...] = ()


def decode_state(body: bytes) -> HostState:
    """Raise msgspec.ValidationError (or DecodeError) unless the whole document is well formed."""
    return msgspec.json.decode(body, type=HostState)


def encode_state(state: HostState) -> bytes:
    """Deterministic bytes: equal states encode alike, whatever order the server read them in."""
    return msgspec.json.encode(state, order="deterministic")
