"""Steps as data: one frozen dataclass per engine verb, each with its cause; no behaviour."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.engine_requests import (
        BuildRequest,
        ContainerRequest,
        Credential,
        NetworkRequest,
        VolumeRequest,
    )
    from agent.protocol.registries import RegistryRule
    from agent.protocol.report import ContainerExit, FieldChange

WORKSPACE: Final = "workspace"
NETWORK: Final = "network"
VOLUME: Final = "volume"
IMAGE: Final = "image"
PREREQUISITE: Final = "prerequisite"


@dataclass(frozen=True)
class Ref:
    """An engine object: known by id already, or the result of an earlier node."""

    id: str = ""
    node: int | None = None

    def __str__(self) -> str:
        return f"#{self.node}" if self.node is not None else self.id[:12]


@dataclass(frozen=True)
class Attempt:
    """One replace: what the new container was to be, and at which revision of its workspace."""

    mark: str
    revision: int


@dataclass(frozen=True, kw_only=True)
class BaseStep:
    """`key` names the object the step works for; `begins` is the status shown when it starts;
    `event` is the ledger row written once it succeeded."""

    key: str
    name: str
    cause: str
    begins: str = ""
    event: str = ""
    # Set on the steps of a replace for which the old container stands still: which attempt it is.
    # If one of them fails, that is remembered, and the same is not tried again.
    attempt: Attempt | None = None
    changes: tuple[FieldChange, ...] = ()
    # How the container ended that this puts right, for the ledger's row.
    ended: ContainerExit | None = None

    @property
    def verb(self) -> str:
        words = "".join(f"_{c.lower()}" if c.isupper() else c for c in type(self).__name__)
        return words.lstrip("_")

    @property
    def claims(self) -> tuple[str, ...]:
        """Keys of the objects nobody else may work on meanwhile."""
        return (self.key,)

    def detail(self) -> str:
        return ""


@dataclass(frozen=True, kw_only=True)
class CreateNetwork(BaseStep):
    request: NetworkRequest


@dataclass(frozen=True, kw_only=True)
class RemoveNetwork(BaseStep):
    engine_id: str
    tombstone_id: str = ""

    def detail(self) -> str:
        return self.engine_id[:12]


@dataclass(frozen=True, kw_only=True)
class CreateVolume(BaseStep):
    request: VolumeRequest


@dataclass(frozen=True, kw_only=True)
class RemoveVolume(BaseStep):
    engine_name: str
    tombstone_id: str

    def detail(self) -> str:
        return self.engine_name


@dataclass(frozen=True, kw_only=True)
class PullImage(BaseStep):
    """Long work. `build_id` is empty when a vanished image is fetched again by itself."""

    image_id: str
    build_id: str
    ref: str
    credential: Credential | None = None
    # True: an image that is already on the host will do, the registry is not asked.
    accept_present: bool = False
    # Where its registry may be; None: whoever chose it may choose any.
    registries: RegistryRule | None = None

    def detail(self) -> str:
        return self.ref


@dataclass(frozen=True, kw_only=True)
class BuildImage(BaseStep):
    """Long work."""

    image_id: str
    build_id: str
    request: BuildRequest
    credential: Credential | None = None
    # The reference that the result is pushed to; empty: it stays on this host.
    push_to: str = ""
    push_credential: Credential | None = None
    # It was begun before and broken off: what is left of that goes first.
    resumed: bool = False
    # Where the registries of its bases and of `push_to` may be; None: anywhere.
    registries: RegistryRule | None = None

    def detail(self) -> str:
        return self.request.ref


@dataclass(frozen=True, kw_only=True)
class SnapshotImage(BaseStep):
    """Long work on a workspace's container. `resumed`: an agent that died had begun it, so it is
    looked for before it is done; `cancelled`: only what is left of it goes."""

    image_id: str
    build_id: str
    ref: str
    workspace_id: str
    workspace_name: str
    revision: int
    # Empty when the workspace has no container.
    container_id: str
    labels: Mapping[str, str] = field(default_factory=dict, repr=False)
    blank_env: tuple[str, ...] = ()
    resumed: bool = False
    cancelled: bool = False

    @property
    def claims(self) -> tuple[str, ...]:
        return (self.key, f"{WORKSPACE}:{self.workspace_id}")

    def detail(self) -> str:
        source = self.container_id[:12] or "nothing"
        return f"{source} to {self.ref}" + (", resumed" if self.resumed else "")


@dataclass(frozen=True, kw_only=True)
class CancelBuild(BaseStep):
    image_id: str
    build_id: str


@dataclass(frozen=True, kw_only=True)
class ClearBuild(BaseStep):
    """The engine removes the containers of a build's steps by itself, unless it dies over them;
    the name `push_to` goes with the push, unless the agent dies over that."""

    image_id: str
    mark: str
    push_to: str = ""


@dataclass(frozen=True, kw_only=True)
class RemoveImage(BaseStep):
    ref: str
    tombstone_id: str

    def detail(self) -> str:
        return self.ref


@dataclass(frozen=True, kw_only=True)
class RemoveSuperseded(BaseStep):
    """An older pull of an image that stays: `key` names this very one, so that the image itself
    does not count as being removed; `image_key` is nobody else's to pull meanwhile."""

    image_key: str
    engine_id: str

    @property
    def claims(self) -> tuple[str, ...]:
        return (self.key, self.image_key)

    def detail(self) -> str:
        return self.engine_id[:19]


@dataclass(frozen=True, kw_only=True)
class CreateContainer(BaseStep):
    """`network` is joined at creation, with `alias` unless that is empty."""

    request: ContainerRequest
    network: Ref | None = None
    alias: str = ""

    def detail(self) -> str:
        return self.request.name + (f" on {self.network}" if self.network else "")


@dataclass(frozen=True, kw_only=True)
class ContainerStep(BaseStep):
    container: Ref

    def detail(self) -> str:
        return str(self.container)


@dataclass(frozen=True, kw_only=True)
class StartContainer(ContainerStep):
    pass


@dataclass(frozen=True, kw_only=True)
class StopContainer(ContainerStep):
    """`settle`: seconds before the signal, in which what was on its way to it still arrives.
    `to_replace`: if its replacement does not come up, it is started again."""

    timeout: float = 10.0
    settle: float = 0.0
    to_replace: bool = False


@dataclass(frozen=True, kw_only=True)
class UnpauseContainer(ContainerStep):
    pass


@dataclass(frozen=True, kw_only=True)
class UpdateContainer(ContainerStep):
    """What is 0 or empty stays as it is."""

    nano_cpus: int = 0
    memory_bytes: int = 0
    restart_policy: str = ""


@dataclass(frozen=True, kw_only=True)
class RenameContainer(ContainerStep):
    to: str

    def detail(self) -> str:
        return f"{self.container} to {self.to}"


@dataclass(frozen=True, kw_only=True)
class RemoveContainer(ContainerStep):
    """Anonymous volumes are data: they go only when the user ordered the removal."""

    tombstone_id: str = ""
    with_volumes: bool = False


@dataclass(frozen=True, kw_only=True)
class ConnectNetwork(ContainerStep):
    """`address`: the one it had there before, so that nobody who talks to it notices."""

    network: Ref
    alias: str = ""
    address: str = ""

    def detail(self) -> str:
        return f"{self.container} to {self.network}" + (f" as {self.alias}" if self.alias else "")


@dataclass(frozen=True, kw_only=True)
class DisconnectNetwork(ContainerStep):
    network: Ref

    def detail(self) -> str:
        return f"{self.container} from {self.network}"


@dataclass(frozen=True, kw_only=True)
class WriteRoutes(ContainerStep):
    """The router reads the file by itself. `mark` is remembered as what it was given."""

    content: bytes = field(repr=False)
    mark: str


@dataclass(frozen=True, kw_only=True)
class WaitHealthy(ContainerStep):
    """Without a health check it is enough to be up for `steady` seconds; without those a health
    check must answer. `otherwise`: what happens if it does not come up, for the message."""

    timeout: float = 60.0
    steady: float | None = None
    otherwise: str = ""


Step = (
    CreateNetwork
    | RemoveNetwork
    | CreateVolume
    | RemoveVolume
    | PullImage
    | BuildImage
    | SnapshotImage
    | CancelBuild
    | ClearBuild
    | RemoveImage
    | RemoveSuperseded
    | CreateContainer
    | StartContainer
    | StopContainer
    | UnpauseContainer
    | UpdateContainer
    | RenameContainer
    | RemoveContainer
    | ConnectNetwork
    | DisconnectNetwork
    | WaitHealthy
    | WriteRoutes
)
