"""Enrolment, session and heartbeat messages."""

from __future__ import annotations

from typing import Final

import msgspec

from agent.protocol.metrics import Metrics
from agent.protocol.state import HostSettings

# In an agent's capabilities: its overseer loads images from the server, and pulls no name that
# does not say which registry it is from.
AGENT_ARCHIVES: Final = "agent_archives"
# In an agent's capabilities: it tells every end of a container, so that nobody has to count.
TELLS_EXITS: Final = "exits"


class EnrolRequest(msgspec.Struct, frozen=True, kw_only=True):
    token: str
    agent_version: str = ""
    engine_id: str = ""
    hostname: str = ""


class EnrolReply(msgspec.Struct, frozen=True, kw_only=True):
    """`host_key` signs the labels of what this host's agent makes."""

    token: str
    host_id: str
    host_name: str
    host_key: str


class TokenRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Of an agent whose token is due; only the session at work may ask."""

    epoch: int


class TokenReply(msgspec.Struct, frozen=True, kw_only=True):
    """The old token is good until this one is used for the first time."""

    token: str


class SessionRequest(msgspec.Struct, frozen=True, kw_only=True):
    agent_version: str
    protocol: int
    engine_id: str = ""
    hostname: str = ""
    capabilities: tuple[str, ...] = ()


class SessionReply(msgspec.Struct, frozen=True, kw_only=True):
    epoch: int
    host_id: str
    host_name: str
    settings: HostSettings


class EngineInfo(msgspec.Struct, frozen=True, kw_only=True):
    id: str = ""
    name: str = ""
    version: str = ""
    api_version: str = ""
    runtimes: tuple[str, ...] = ()
    storage_driver: str = ""
    live_restore: bool = False


class NetworkInterface(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    addresses: tuple[str, ...] = ()
    mac: str = ""
    up: bool = True


class AddressRange(msgspec.Struct, frozen=True, kw_only=True):
    """Addresses that are in use on a host, so that no new network may have them.

    Either what an interface has or a route leads to (`interface`; `direct` without a gateway in
    between), or what a network of the engine has (`network` is its name there, `network_id`
    Trailer's id where Trailer made it, and `interface` the bridge that the engine made for it).
    """

    cidr: str
    interface: str = ""
    direct: bool = False
    network: str = ""
    network_id: str = ""


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    memory_bytes: int = 0
    index: int = 0


class Heartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """`message` is the engine's trouble in words; empty while all is well. `engine_silent_since`
    is a time while the engine answers no pings, and empty while it does; None, as from older
    agents, says nothing."""

    epoch: int
    agent_version: str
    engine: EngineInfo | None = None
    capabilities: tuple[str, ...] = ()
    interfaces: tuple[NetworkInterface, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    cpu_count: int = 0
    memory_bytes: int = 0
    disk_free_bytes: int = 0
    disk_total_bytes: int = 0
    agent_time: str = ""
    message: str = ""
    metrics: Metrics | None = None
    # What the agent's container was made from; empty for one that is no container.
    agent_image: str = ""
    # Why the newest try to replace the agent failed, and with which image.
    update_image: str = ""
    update_message: str = ""
    # By id, since a name may mean another image tomorrow; and the order that the newest try was
    # for. With an order and no message: that one is fulfilled.
    agent_image_id: str = ""
    update_order: int = 0
    # Whether containers reach a cloud's metadata addresses: `blocked`, `open`, or empty while
    # nobody knows; and why it is not as it should be.
    metadata_guard: str = ""
    metadata_message: str = ""
    # What the host's interfaces, routes and the engine's networks take. None, as from older
    # agents, says nothing.
    address_ranges: tuple[AddressRange, ...] | None = None
    engine_silent_since: str | None = None


class HeartbeatReply(msgspec.Struct, frozen=True, kw_only=True):
    """`next_beat`: seconds until the server wants to hear again, so that agents never beat
    together; 0 leaves it to the interval. `token_due`: the agent's token is old, it should ask
    for a new one."""

    settings: HostSettings
    server_time: str = ""
    next_beat: float = 0.0
    token_due: bool = False


class AgentImage(msgspec.Struct, frozen=True, kw_only=True):
    """An archive of the agent's image that the server hands out: `GET images/<digest>` has it.
    `digest` is the SHA-256 of the archive, `architecture` the engine's word for it. `config` is
    the SHA-256 of the image's configuration, which many engines use as the image's id; empty:
    unknown."""

    image: str
    architecture: str
    digest: str
    size: int = 0
    config: str = ""


class AgentImages(msgspec.Struct, frozen=True, kw_only=True):
    images: tuple[AgentImage, ...] = ()
