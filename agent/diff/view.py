"""Everything a diff may look at, with its look-ups; who owns what is decided only here."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from agent.diff.stored import read_stored
from agent.protocol import image_refs, naming
from agent.steps import NETWORK, PREREQUISITE, VOLUME, WORKSPACE, Attempt

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from agent.observed import (
        ObservedContainer,
        ObservedImage,
        ObservedNetwork,
        ObservedState,
        ObservedVolume,
    )
    from agent.protocol.session import AddressRange
    from agent.protocol.state import (
        DesiredImage,
        DesiredNetwork,
        DesiredVolume,
        DesiredWorkspace,
        HostState,
    )


@dataclass(frozen=True, kw_only=True)
class BuildRecord:
    """How a build that this agent ran ended; status is started, finished, failed or cancelled."""

    status: str
    message: str = ""
    image_id: str = ""


@dataclass(frozen=True, kw_only=True)
class FailedReplace:
    """The same attempt is not made again."""

    attempt: Attempt
    message: str


@dataclass(frozen=True, kw_only=True)
class Knowledge:
    """What only the agent knows: identity, journal, what is in flight and what must wait."""

    host_id: str
    host_key: str = field(repr=False)
    owned_ids: frozenset[str] = frozenset()
    # Workspace id -> container the journal last knew; one that vanished was removed by hand.
    containers: Mapping[str, str] = field(default_factory=dict)
    # Workspace id -> newest desired revision that was once fully in place here.
    applied: Mapping[str, int] = field(default_factory=dict)
    # Containers that this agent stopped itself.
    stopped_ids: frozenset[str] = frozenset()
    # Those of them that were stopped only to be replaced: until that is done they should run.
    stopped_to_replace: frozenset[str] = frozenset()
    # Workspace id -> its last replace that failed after the old container had been stopped.
    failed_replaces: Mapping[str, FailedReplace] = field(default_factory=dict)
    # Containers that have been removing or dead for too long.
    stuck_ids: frozenset[str] = frozenset()
    # Image id -> build in flight; builds that are already being cancelled.
    running_builds: Mapping[str, str] = field(default_factory=dict)
    cancelling: frozenset[str] = frozenset()
    builds: Mapping[str, BuildRecord] = field(default_factory=dict)
    made_images: frozenset[str] = frozenset()
    # Engine id -> image of what this agent pulled and the engine has not refused to give.
    pulled: Mapping[str, str] = field(default_factory=dict)
    # Images of whose builds the engine may have left the containers of steps, and the name that
    # each was to be pushed by.
    loose_steps: Mapping[str, str] = field(default_factory=dict)
    busy: frozenset[str] = frozenset()
    # Object key -> why it waits; only entries whose backoff is still in force.
    held: Mapping[str, str] = field(default_factory=dict)
    # Why nothing may be removed without a tombstone, or empty.
    hold_removals: str = ""
    brake_released: bool = False
    # Workspaces whose removal the brake held before.
    latched: frozenset[str] = frozenset()
    has_kvm: bool = True
    # Ids and indexes of the GPUs that answer now; None while nobody can tell.
    gpus: frozenset[str] | None = None
    # Which router was last given which routes.
    routes: str = ""
    # Why no pull, build or snapshot may begin, or empty.
    disk_low: str = ""
    # Object key -> why this host's own policy refuses it.
    refused: Mapping[str, str] = field(default_factory=dict)
    # What the machine's interfaces and routes take, and why nobody can tell, or empty.
    host_ranges: tuple[AddressRange, ...] = ()
    ranges_unseen: str = ""


def object_key(kind: str, object_id: str) -> str:
    return f"{kind}:{object_id}"


@dataclass(frozen=True)
class View:
    desired: HostState
    observed: ObservedState
    knows: Knowledge
    now: datetime

    def is_busy(self, key: str) -> bool:
        return key in self.knows.busy

    # --- ownership ---------------------------------------------------------------------------

    def labels_for(self, kind: str, label: str, object_id: str) -> dict[str, str]:
        """Labels that mark an object as made by this host's agent."""
        knows = self.knows
        return {
            naming.LABEL_MANAGED: "true",
            naming.LABEL_HOST: knows.host_id,
            label: object_id,
            naming.LABEL_SIGNATURE: naming.signature(
                knows.host_key, kind, object_id, knows.host_id
            ),
        }

    def is_signed(self, labels: Mapping[str, str], kind: str, label: str) -> bool:
        object_id, candidate = labels.get(label, ""), labels.get(naming.LABEL_SIGNATURE, "")
        if not object_id or not candidate:
            return False
        return naming.signature_is_valid(
            self.knows.host_key, kind, object_id, self.knows.host_id, candidate
        )

    def owns_container(self, container: ObservedContainer) -> bool:
        """Id in the journal, or our signature and the name that workspace must have."""
        if container.id in self.knows.owned_ids:
            return True
        if not self.is_signed(container.labels, WORKSPACE, naming.LABEL_WORKSPACE):
            return False
        return container.name in self._expected_names(container)

    def _expected_names(self, container: ObservedContainer) -> set[str]:
        workspace_id = container.labels[naming.LABEL_WORKSPACE]
        expected = {
            naming.aside_container_name(workspace_id),
            naming.spare_container_name(workspace_id),
        }
        expected |= {
            tombstone.name
            for tombstone in self.desired.tombstones
            if tombstone.kind == WORKSPACE and tombstone.object_id == workspace_id
        }
        workspace = self.desired_workspaces.get(workspace_id)
        stored = None if workspace else read_stored(container.labels)
        # Gone from the document: the spec on the container still says how it was called.
        spec = workspace.spec if workspace else stored and stored.spec
        if spec:
            expected |= {naming.container_name(spec.name), naming.next_container_name(spec.name)}
        return expected

    @cached_property
    def owned_containers(self) -> dict[str, tuple[ObservedContainer, ...]]:
        """Workspace id -> its containers (the named one, a left-over `-next`), by name."""
        found: dict[str, list[ObservedContainer]] = {}
        for container in sorted(self.observed.containers, key=lambda c: c.name):
            workspace_id = container.labels.get(naming.LABEL_WORKSPACE, "")
            if workspace_id and self.owns_container(container):
                found.setdefault(workspace_id, []).append(container)
        return {workspace_id: tuple(containers) for workspace_id, containers in found.items()}

    def owns_prerequisite(self, container: ObservedContainer) -> bool:
        """A container of the platform itself; its name follows from its kind."""
        kind = container.labels.get(naming.LABEL_PREREQUISITE, "")
        if not kind or naming.LABEL_WORKSPACE in container.labels:
            return False
        if container.id in self.knows.owned_ids:
            return True
        signed = self.is_signed(container.labels, PREREQUISITE, naming.LABEL_PREREQUISITE)
        return signed and container.name == naming.prerequisite_name(kind)

    def owns_network(self, network: ObservedNetwork) -> bool:
        if network.id in self.knows.owned_ids:
            return True
        return self.is_signed(network.labels, NETWORK, naming.LABEL_NETWORK)

    def is_platform_network(self, network: ObservedNetwork) -> bool:
        """One that was made for a prerequisite."""
        return self.is_signed(network.labels, PREREQUISITE, naming.LABEL_PREREQUISITE)

    def users_of(self, network: ObservedNetwork) -> tuple[str, ...]:
        """Containers on it, by id."""
        return tuple(
            sorted(
                container.id
                for container in self.observed.containers
                if any(place.network_id == network.id for place in container.attachments)
            )
        )

    def owns_volume(self, volume: ObservedVolume) -> bool:
        return self.is_signed(volume.labels, VOLUME, naming.LABEL_VOLUME)

    # --- look-ups ----------------------------------------------------------------------------

    @cached_property
    def containers_by_name(self) -> dict[str, ObservedContainer]:
        return {container.name: container for container in self.observed.containers}

    @cached_property
    def volumes_by_name(self) -> dict[str, ObservedVolume]:
        return {volume.name: volume for volume in self.observed.volumes}

    @cached_property
    def networks_by_id(self) -> dict[str, ObservedNetwork]:
        return {network.id: network for network in self.observed.networks}

    @cached_property
    def images_by_ref(self) -> dict[str, ObservedImage]:
        found: dict[str, ObservedImage] = {}
        for image in sorted(self.observed.images, key=lambda i: i.id):
            for ref in (image.id, *image.tags, *image.digests):
                found.setdefault(ref, image)
        return found

    def image_at(self, ref: str) -> ObservedImage | None:
        return self.images_by_ref.get(ref) or self.images_by_ref.get(image_refs.normal(ref))

    @cached_property
    def prerequisite_keys(self) -> frozenset[str]:
        return frozenset(object_key(PREREQUISITE, p.kind) for p in self.desired.prerequisites)

    @cached_property
    def desired_workspaces(self) -> dict[str, DesiredWorkspace]:
        return {workspace.id: workspace for workspace in self.desired.workspaces}

    @cached_property
    def desired_images(self) -> dict[str, DesiredImage]:
        return {image.id: image for image in self.desired.images}

    @cached_property
    def desired_networks(self) -> dict[str, DesiredNetwork]:
        return {network.id: network for network in self.desired.networks}

    @cached_property
    def desired_volumes(self) -> dict[str, DesiredVolume]:
        return {volume.id: volume for volume in self.desired.volumes}
