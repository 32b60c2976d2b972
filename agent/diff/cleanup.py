"""Cleanup: removes by id what we own and nobody wants; data only by tombstone; with a brake."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.diff.stored import read_stored
from agent.diff.view import View, object_key
from agent.plan import PlanBuilder, TombstoneFinding
from agent.protocol import naming
from agent.protocol.counting import counted
from agent.steps import (
    IMAGE,
    NETWORK,
    VOLUME,
    WORKSPACE,
    DisconnectNetwork,
    Ref,
    RemoveContainer,
    RemoveImage,
    RemoveNetwork,
    RemoveVolume,
    StopContainer,
    UnpauseContainer,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent.observed import ObservedContainer, ObservedNetwork
    from agent.protocol.state import Tombstone

DRAIN_TIMEOUT = 10.0


class Removals:
    """Decides once per plan which containers go; a workspace that needs a name may pull one
    removal forward, everything else waits for `finish`."""

    def __init__(self, view: View, plan: PlanBuilder) -> None:
        self._view = view
        self._plan = plan
        self._tombstones = {
            (tombstone.kind, tombstone.object_id): tombstone
            for tombstone in view.desired.tombstones
        }
        self._nodes: dict[str, int] = {}
        unwanted = {
            workspace_id: containers
            for workspace_id, containers in sorted(view.owned_containers.items())
            if workspace_id not in view.desired_workspaces
        }
        self._ordered = {i: c for i, c in unwanted.items() if (WORKSPACE, i) in self._tombstones}
        self._vanished = {i: c for i, c in unwanted.items() if i not in self._ordered}
        self._kept_networks = 0
        self._held = self._brake()

    def remove_now(self, container: ObservedContainer) -> tuple[int, ...]:
        """Removal nodes for a container that holds a wanted name; empty if it must stay."""
        workspace_id = container.labels.get(naming.LABEL_WORKSPACE, "")
        if workspace_id not in self._removable() or self._waits(workspace_id):
            return ()
        self._remove_workspace(workspace_id, cleanup=False)
        return (self._nodes[container.id],)

    def finish(self) -> None:
        for workspace_id in sorted(self._removable()):
            if not self._waits(workspace_id):
                self._remove_workspace(workspace_id, cleanup=True)
        for network in sorted(self._view.observed.networks, key=lambda n: (n.name, n.id)):
            self._network(network)
        for tombstone in sorted(self._view.desired.tombstones, key=lambda t: (t.kind, t.id)):
            self._tombstone(tombstone)
        if self._held and (self._vanished or self._kept_networks):
            self._plan.held_workspaces = tuple(sorted(self._vanished))
            self._plan.cleanup = "held"
            self._plan.message = self._held_message()
        elif any(node.cleanup for node in self._plan.nodes):
            self._plan.cleanup = "done"

    # --- containers ------------------------------------------------------------------------------

    def _removable(self) -> dict[str, tuple[ObservedContainer, ...]]:
        return self._ordered if self._held else {**self._ordered, **self._vanished}

    def _brake(self) -> str:
        """More than three and more than half without tombstones is a restored database or a bug,
        not a wish. Once held, what vanished stays held although later fewer are left."""
        knows = self._view.knows
        if knows.brake_released:
            return ""
        if knows.hold_removals:
            return knows.hold_removals
        gone = _count(self._vanished)
        total = _count(self._view.owned_containers)
        all_of_them = counted(total, "container")
        latched = not knows.latched.isdisjoint(self._vanished)
        if latched or (gone > 3 and gone * 2 > total):
            return (
                f"{gone} of {all_of_them} vanished from the state document without an order "
                "to remove them. Nothing was removed; confirm the host's state on the server."
            )
        return ""

    def _held_message(self) -> str:
        if not self._view.knows.hold_removals:
            return self._held
        kinds = (("containers", _count(self._vanished)), ("networks", self._kept_networks))
        waiting = ", ".join(f"{number} {kind}" for kind, number in kinds if number)
        return f"{self._held} Nothing was removed ({waiting} wait)."

    def _waits(self, workspace_id: str) -> bool:
        key = object_key(WORKSPACE, workspace_id)
        held = self._view.knows.held.get(key)
        tombstone = self._tombstones.get((WORKSPACE, workspace_id))
        if held and tombstone:
            self._still_there(tombstone, held)
        return self._view.is_busy(key) or bool(held)

    def _remove_workspace(self, workspace_id: str, *, cleanup: bool) -> None:
        tombstone = self._tombstones.get((WORKSPACE, workspace_id))
        containers = self._removable()[workspace_id]
        previous: tuple[int, ...] = ()
        for container in containers:
            if container.id in self._nodes:
                continue
            last = container is containers[-1]
            previous = (
                self._remove_container(
                    container,
                    tombstone,
                    last=last,
                    after=previous,
                    cleanup=cleanup,
                ),
            )

    def _remove_container(
        self,
        container: ObservedContainer,
        tombstone: Tombstone | None,
        *,
        last: bool,
        after: tuple[int, ...],
        cleanup: bool,
    ) -> int:
        workspace_id = container.labels[naming.LABEL_WORKSPACE]
        key = object_key(WORKSPACE, workspace_id)
        name = container.name.removeprefix("trailer-")
        cause = "workspace was deleted" if tombstone else "no longer in the state document"
        ref = Ref(id=container.id)
        if container.state == "paused":
            unpause = UnpauseContainer(key=key, name=name, cause=cause, container=ref)
            after = (self._plan.add(unpause, after=after, cleanup=cleanup),)
        if container.is_up:
            stop = StopContainer(
                key=key, name=name, cause=cause, container=ref, timeout=DRAIN_TIMEOUT
            )
            after = (self._plan.add(stop, after=after, cleanup=cleanup),)
        remove = RemoveContainer(
            key=key,
            name=name,
            cause=cause,
            event="remove" if last else "",
            container=ref,
            tombstone_id=tombstone.id if tombstone and last else "",
            with_volumes=tombstone is not None,
        )
        node = self._plan.add(remove, after=after, cleanup=cleanup)
        self._nodes[container.id] = node
        return node

    # --- networks --------------------------------------------------------------------------------

    def _network(self, network: ObservedNetwork) -> None:
        network_id = network.labels.get(naming.LABEL_NETWORK, "")
        if not network_id or network_id in self._view.desired_networks:
            return
        tombstone = self._tombstones.get((NETWORK, network_id))
        key = object_key(NETWORK, network_id)
        if not self._view.owns_network(network) or self._view.is_busy(key):
            return
        if self._held and tombstone is None:
            self._kept_networks += 1
            return
        held = self._view.knows.held.get(key, "")
        leaving, staying = self._network_users(network)
        problem = held or (f"Still used by {', '.join(staying)}." if staying else "")
        if problem:
            if tombstone:
                self._still_there(tombstone, problem)
            return
        step = RemoveNetwork(
            key=key,
            name=network.name.removeprefix("trailer-"),
            cause="network was deleted" if tombstone else "no longer in the state document",
            engine_id=network.id,
            tombstone_id=tombstone.id if tombstone else "",
        )
        self._plan.add(step, after=leaving, cleanup=True)

    def _network_users(self, network: ObservedNetwork) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """(steps that take its containers off, names of containers that stay on it)."""
        leaving: list[int] = []
        staying: list[str] = []
        disconnects = {
            (node.step.container.id, node.step.network.id): node.number
            for node in self._plan.nodes
            if isinstance(node.step, DisconnectNetwork)
        }
        for container in self._view.observed.containers:
            if all(place.network_id != network.id for place in container.attachments):
                continue
            node = self._nodes.get(container.id) or disconnects.get((container.id, network.id))
            if node:
                leaving.append(node)
            else:
                staying.append(container.name)
        return tuple(leaving), tuple(sorted(staying))

    # --- tombstones ------------------------------------------------------------------------------

    def _tombstone(self, tombstone: Tombstone) -> None:
        if self._view.is_busy(object_key(tombstone.kind, tombstone.object_id)):
            return
        if tombstone.kind == WORKSPACE:
            gone = tombstone.object_id not in self._view.owned_containers
            if gone and tombstone.object_id not in self._view.desired_workspaces:
                self._is_gone(tombstone)
        elif tombstone.kind == NETWORK:
            known = {
                network.labels.get(naming.LABEL_NETWORK)
                for network in self._view.observed.networks
                if self._view.owns_network(network)
            }
            if tombstone.object_id not in known:
                self._is_gone(tombstone)
        elif tombstone.kind == VOLUME:
            self._volume(tombstone)
        elif tombstone.kind in {IMAGE, "snapshot"}:
            self._image(tombstone)
        else:
            self._still_there(tombstone, f"This agent version cannot remove a {tombstone.kind}.")

    def _volume(self, tombstone: Tombstone) -> None:
        volume = self._view.volumes_by_name.get(tombstone.name)
        ours = (
            volume is not None
            and self._view.owns_volume(volume)
            and volume.labels.get(naming.LABEL_VOLUME) == tombstone.object_id
        )
        if not ours or tombstone.object_id in self._view.desired_volumes:
            self._is_gone(tombstone)
            return
        if self._is_held(tombstone, VOLUME):
            return
        step = RemoveVolume(
            key=object_key(VOLUME, tombstone.object_id),
            name=tombstone.name.removeprefix("trailer-"),
            cause="volume was deleted",
            engine_name=tombstone.name,
            tombstone_id=tombstone.id,
        )
        self._remove_after_users(step, tombstone, self._mounting(tombstone.object_id))

    def _mounting(self, volume_id: str) -> list[ObservedContainer]:
        users = []
        for container in self._view.observed.containers:
            stored = read_stored(container.labels)
            if stored and any(m.volume_id == volume_id for m in stored.spec.mounts):
                users.append(container)
        return users

    def _remove_after_users(
        self,
        step: RemoveVolume | RemoveImage,
        tombstone: Tombstone,
        users: list[ObservedContainer],
    ) -> None:
        """A user that another cycle is still removing, or that stays, is no failure: it waits."""
        staying = sorted(c.name for c in users if c.id not in self._nodes)
        if staying:
            self._still_there(tombstone, f"Still used by {', '.join(staying)}.")
            return
        self._plan.add(step, after=tuple(self._nodes[c.id] for c in users), cleanup=True)

    def _image(self, tombstone: Tombstone) -> None:
        image = self._view.image_at(tombstone.name)
        desired_refs = {wanted.ref for wanted in self._view.desired.images}
        if image is None or tombstone.name in desired_refs:
            self._is_gone(tombstone)
            return
        made = tombstone.object_id in self._view.knows.made_images
        if not made and image.labels.get(naming.LABEL_IMAGE) != tombstone.object_id:
            # It was on the host before Trailer came: not ours to remove.
            self._is_gone(tombstone)
            return
        if self._is_held(tombstone, IMAGE):
            return
        step = RemoveImage(
            key=object_key(IMAGE, tombstone.object_id),
            name=tombstone.name,
            cause="image was deleted",
            ref=tombstone.name,
            tombstone_id=tombstone.id,
        )
        users = [c for c in self._view.observed.containers if c.image_id == image.id]
        self._remove_after_users(step, tombstone, users)

    def _is_held(self, tombstone: Tombstone, kind: str) -> bool:
        held = self._view.knows.held.get(object_key(kind, tombstone.object_id))
        if held:
            self._still_there(tombstone, held)
        return bool(held)

    def _is_gone(self, tombstone: Tombstone) -> None:
        self._plan.findings.append(TombstoneFinding(tombstone_id=tombstone.id, done=True))

    def _still_there(self, tombstone: Tombstone, why: str) -> None:
        self._plan.findings.append(
            TombstoneFinding(tombstone_id=tombstone.id, done=False, message=why)
        )


def _count(containers: Mapping[str, Sequence[ObservedContainer]]) -> int:
    return sum(len(found) for found in containers.values())
