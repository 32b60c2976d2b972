"""Prerequisites: containers of the platform itself, made first, replaced and pruned as wished."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from agent.diff.holders import held_by
from agent.diff.never_started import can_never_start
from agent.diff.view import View, object_key
from agent.engine_requests import ContainerRequest, NetworkRequest
from agent.plan import PlanBuilder, ResourceFinding
from agent.protocol import naming
from agent.protocol.prerequisites import ROUTER, DesiredPrerequisite, network_problem
from agent.steps import (
    PREREQUISITE,
    CreateContainer,
    CreateNetwork,
    PullImage,
    Ref,
    RemoveContainer,
    RemoveNetwork,
    StartContainer,
    StopContainer,
    UnpauseContainer,
)

if TYPE_CHECKING:
    from agent.observed import ObservedContainer, ObservedImage

_DRAIN = 10.0


def diff_prerequisites(view: View, plan: PlanBuilder) -> None:
    wanted = {item.kind: item for item in view.desired.prerequisites}
    for kind in sorted(wanted):
        if not view.is_busy(object_key(PREREQUISITE, kind)):
            _Diff(view, plan, wanted[kind]).run()
    _prune(view, plan, frozenset(wanted))


def owned_prerequisites(view: View, kind: str) -> tuple[ObservedContainer, ...]:
    """The one with the right name first; others are what an interrupted cycle left."""
    found = [
        container
        for container in view.observed.containers
        if container.labels.get(naming.LABEL_PREREQUISITE) == kind
        and view.owns_prerequisite(container)
    ]
    name = naming.prerequisite_name(kind)
    return tuple(sorted(found, key=lambda c: (c.name != name, c.id)))


class _Diff:
    """One prerequisite in one plan."""

    def __init__(self, view: View, plan: PlanBuilder, wanted: DesiredPrerequisite) -> None:
        self._view = view
        self._plan = plan
        self._wanted = wanted
        self._key = object_key(PREREQUISITE, wanted.kind)
        self._name = naming.prerequisite_name(wanted.kind)

    def run(self) -> None:
        found = owned_prerequisites(self._view, self._wanted.kind)
        current = found[0] if found else None
        knows = self._view.knows
        held = knows.refused.get(self._key) or knows.held.get(self._key, "")
        if held:
            self._find("error", held, current)
            return
        is_right = current is not None and _stored(current) == self._wanted
        if current is not None and is_right and not can_never_start(current):
            self._run_state(current)
            return
        if problem := network_problem(self._wanted.spec.network):
            self._find("error", problem, current)
            return
        image = self._view.image_at(self._wanted.image)
        if image is None:
            self._fetch(current)
            return
        holder = self._view.containers_by_name.get(self._name)
        if holder is not None and not self._view.owns_prerequisite(holder):
            what = f"container {holder.short_id}"
            message = held_by(self._view, self._name, what, holder.labels)
            self._find("error", message, None)
            return
        self._make(image, found)

    def _fetch(self, current: ObservedContainer | None) -> None:
        """The old one goes on until the image is here."""
        if self._view.knows.disk_low:
            self._find("pending", self._view.knows.disk_low, current)
            return
        step = PullImage(
            key=self._key,
            name=self._wanted.kind,
            cause="its image is not on this host",
            image_id=self._key,
            build_id="",
            ref=self._wanted.image,
        )
        self._plan.add(step)
        self._find("pending", f"Fetching image {self._wanted.image}.", current)

    def _make(self, image: ObservedImage, old: tuple[ObservedContainer, ...]) -> None:
        cause = "settings changed" if old else "not on the engine"
        if any(can_never_start(container) for container in old):
            cause = "the engine was interrupted while it started the container"
        network, after = self._network(cause)
        for container in old:
            after = (_remove(self._plan, container, self._key, cause, after=after),)
        spec = self._wanted.spec
        labels = self._view.labels_for(PREREQUISITE, naming.LABEL_PREREQUISITE, self._wanted.kind)
        labels[naming.LABEL_SPEC] = _essence(self._wanted)
        request = ContainerRequest(
            name=self._name,
            image=self._wanted.image,
            hostname=self._wanted.kind,
            entrypoint=spec.entrypoint,
            command=spec.command,
            env=spec.env,
            labels=labels,
            ports=spec.ports,
            platform_mounts=spec.mounts,
            privileged=spec.privileged,
            host_pid=spec.host_pid,
        )
        create = CreateContainer(
            key=self._key, name=self._wanted.kind, cause=cause, request=request, network=network
        )
        made = self._plan.add(create, after=after)
        start = StartContainer(
            key=self._key, name=self._wanted.kind, cause=cause, container=Ref(node=made)
        )
        self._plan.add(start, after=(made,))

    def _network(self, cause: str) -> tuple[Ref | None, tuple[int, ...]]:
        name = self._wanted.spec.network
        if not name:
            return None, ()
        found = next((n for n in self._view.observed.networks if n.name == name), None)
        if found is not None:
            return Ref(id=found.id), ()
        labels = self._view.labels_for(PREREQUISITE, naming.LABEL_PREREQUISITE, self._wanted.kind)
        step = CreateNetwork(
            key=self._key,
            name=self._wanted.kind,
            cause=cause,
            request=NetworkRequest(name=name, labels=labels),
        )
        node = self._plan.add(step)
        return Ref(node=node), (node,)

    def _run_state(self, current: ObservedContainer) -> None:
        ref = Ref(id=current.id)
        if current.state == "paused":
            self._plan.add(
                UnpauseContainer(
                    key=self._key,
                    name=self._wanted.kind,
                    cause="paused outside Trailer",
                    container=ref,
                )
            )
        elif current.state in {"created", "exited"}:
            self._plan.add(
                StartContainer(
                    key=self._key, name=self._wanted.kind, cause="not running", container=ref
                )
            )
        elif current.state == "restarting":
            tail = f" Its last words: {current.log_tail}" if current.log_tail else ""
            self._find("error", f"It ends again and again.{tail}", current)
        else:
            self._find("created", "", current)

    def _find(self, status: str, message: str, container: ObservedContainer | None) -> None:
        self._plan.findings.append(
            ResourceFinding(
                resource=PREREQUISITE,
                object_id=self._wanted.kind,
                status=status,
                message=message,
                engine_id=container.id if container else "",
            )
        )


def _prune(view: View, plan: PlanBuilder, wanted: frozenset[str]) -> None:
    """Switched off: the container goes, and the network that was made for it once it is empty."""
    if view.knows.hold_removals:
        return
    removed: dict[str, int] = {}
    for container in sorted(view.observed.containers, key=lambda c: c.name):
        kind = container.labels.get(naming.LABEL_PREREQUISITE, "")
        key = object_key(PREREQUISITE, kind)
        gone = kind not in wanted and view.owns_prerequisite(container)
        if gone and not view.is_busy(key) and key not in view.knows.held:
            removed[container.id] = _remove(plan, container, key, "switched off", cleanup=True)
    names = {item.spec.network for item in view.desired.prerequisites}
    for network in view.observed.networks:
        if network.name in names or not view.is_platform_network(network):
            continue
        if ROUTER in wanted and naming.is_link_name(network.name):
            # The standing router leaves it first, see links.py.
            continue
        users = view.users_of(network)
        kind = network.labels[naming.LABEL_PREREQUISITE]
        key = object_key(PREREQUISITE, kind)
        if set(users) <= set(removed) and not view.is_busy(key):
            step = RemoveNetwork(key=key, name=kind, cause="switched off", engine_id=network.id)
            plan.add(step, after=tuple(removed[user] for user in users), cleanup=True)


def _remove(
    plan: PlanBuilder,
    container: ObservedContainer,
    key: str,
    cause: str,
    *,
    after: tuple[int, ...] = (),
    cleanup: bool = False,
) -> int:
    name, ref = key.partition(":")[2], Ref(id=container.id)
    if container.state == "paused":
        step = UnpauseContainer(key=key, name=name, cause=cause, container=ref)
        after = (plan.add(step, after=after, cleanup=cleanup),)
    if container.is_up:
        stop = StopContainer(key=key, name=name, cause=cause, container=ref, timeout=_DRAIN)
        after = (plan.add(stop, after=after, cleanup=cleanup),)
    remove = RemoveContainer(key=key, name=name, cause=cause, container=ref)
    return plan.add(remove, after=after, cleanup=cleanup)


def _essence(wanted: DesiredPrerequisite) -> str:
    return msgspec.json.encode(wanted, order="deterministic").decode()


def _stored(container: ObservedContainer) -> DesiredPrerequisite | None:
    """Read back, not compared as text: a field that came with an upgrade has its default."""
    try:
        return msgspec.json.decode(
            container.labels.get(naming.LABEL_SPEC, ""), type=DesiredPrerequisite
        )
    except msgspec.MsgspecError:
        return None
