"""Chains of steps for one workspace: make a container, and swap one for another.

A new container is always created beside the old one first: whatever the engine can refuse, it
refuses while the old one still runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agent.diff.container import container_request, network_alias
from agent.diff.view import View, object_key
from agent.protocol import naming
from agent.routing.routes import LABELS
from agent.steps import (
    WORKSPACE,
    ConnectNetwork,
    CreateContainer,
    DisconnectNetwork,
    Ref,
    RemoveContainer,
    RenameContainer,
    StartContainer,
    StopContainer,
    UnpauseContainer,
    WaitHealthy,
)

if TYPE_CHECKING:
    from agent.observed import ObservedContainer, ObservedImage
    from agent.plan import PlanBuilder
    from agent.protocol.report import FieldChange
    from agent.protocol.state import DesiredWorkspace

# A caller whose first packet was lost while the old container changed its name repeats it after a
# second.
_SETTLE_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True)
class Parts:
    """All that must be ready before a container of this workspace can be made."""

    image: ObservedImage
    networks: tuple[Ref, ...] = ()
    after: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Chain:
    """Adds the steps of one workspace; every step carries the same cause."""

    view: View
    plan: PlanBuilder
    workspace: DesiredWorkspace
    cause: str
    changes: tuple[FieldChange, ...] = field(default=())

    @property
    def key(self) -> str:
        return object_key(WORKSPACE, self.workspace.id)

    @property
    def name(self) -> str:
        return self.workspace.spec.name

    @property
    def alias(self) -> str:
        return network_alias(self.workspace)

    def create(
        self,
        parts: Parts,
        *,
        container_name: str,
        alias: str,
        event: str,
        after: tuple[int, ...] = (),
    ) -> tuple[Ref, tuple[int, ...]]:
        """Create and join all networks; (the new container, what a start must wait for)."""
        first, *others = parts.networks or (None,)
        step = CreateContainer(
            key=self.key,
            name=self.name,
            cause=self.cause,
            begins="deploying",
            event=event,
            changes=self.changes if event else (),
            request=container_request(self.view, self.workspace, parts.image, name=container_name),
            network=first,
            alias=alias if first else "",
        )
        node = self.plan.add(step, after=parts.after + after)
        container = Ref(node=node)
        joins = tuple(
            self.connect(container, network, alias=alias, after=(node,))
            for network in others
            if network
        )
        return container, (node, *joins)

    def connect(
        self,
        container: Ref,
        network: Ref,
        *,
        alias: str,
        address: str = "",
        after: tuple[int, ...] = (),
        event: str = "",
    ) -> int:
        step = ConnectNetwork(
            key=self.key,
            name=self.name,
            cause=self.cause,
            event=event,
            changes=self.changes if event else (),
            container=container,
            network=network,
            alias=alias,
            address=address,
        )
        return self.plan.add(step, after=after)

    def disconnect(
        self, container: Ref, network: Ref, *, after: tuple[int, ...] = (), event: str = ""
    ) -> int:
        step = DisconnectNetwork(
            key=self.key,
            name=self.name,
            cause=self.cause,
            event=event,
            changes=self.changes if event else (),
            container=container,
            network=network,
        )
        return self.plan.add(step, after=after)

    def start(
        self, container: Ref, *, after: tuple[int, ...] = (), event: str = "", begins: str
    ) -> int:
        step = StartContainer(
            key=self.key,
            name=self.name,
            cause=self.cause,
            begins=begins,
            event=event,
            container=container,
        )
        return self.plan.add(step, after=after)

    def stop(
        self,
        container: ObservedContainer,
        *,
        begins: str = "",
        event: str = "",
        after: tuple[int, ...] = (),
        settle: float = 0.0,
    ) -> tuple[int, ...]:
        """Nothing for a container without a process; a paused one cannot hear a signal."""
        if not container.is_up:
            return after
        ref = Ref(id=container.id)
        if container.state == "paused":
            step = UnpauseContainer(
                key=self.key, name=self.name, cause="paused, cannot stop", container=ref
            )
            after = (self.plan.add(step, after=after),)
        stop = StopContainer(
            key=self.key,
            name=self.name,
            cause=self.cause,
            begins=begins,
            event=event,
            container=ref,
            timeout=self.workspace.drain_timeout,
            settle=settle,
        )
        return (self.plan.add(stop, after=after),)

    def remove(self, container: Ref, *, after: tuple[int, ...] = ()) -> int:
        step = RemoveContainer(key=self.key, name=self.name, cause=self.cause, container=container)
        return self.plan.add(step, after=after)

    def rename(
        self, container: Ref, to: str, *, after: tuple[int, ...] = (), event: str = ""
    ) -> int:
        step = RenameContainer(
            key=self.key,
            name=self.name,
            cause=self.cause,
            event=event,
            changes=self.changes if event else (),
            container=container,
            to=to,
        )
        return self.plan.add(step, after=after)


def replace_briefly(chain: Chain, parts: Parts, old: ObservedContainer) -> None:
    """Create beside the old one, then stop, remove, rename, start. A taken `-next` name leaves
    only the plain order: stop, remove, create, start."""
    final = naming.container_name(chain.name)
    spare = naming.next_container_name(chain.name)
    if spare in chain.view.containers_by_name:
        stopped = chain.stop(old, begins="deploying")
        removed = chain.remove(Ref(id=old.id), after=(*parts.after, *stopped))
        new, joined = chain.create(
            parts, container_name=final, alias=chain.alias, event="replace", after=(removed,)
        )
        chain.start(new, after=joined, begins="starting")
        return
    new, joined = chain.create(parts, container_name=spare, alias=chain.alias, event="")
    swap(chain, new, old, joined)


def swap(chain: Chain, new: Ref, old: ObservedContainer, joined: tuple[int, ...] = ()) -> None:
    """The new container stands ready under the spare name: stop, remove, rename, start."""
    final = naming.container_name(chain.name)
    stopped = chain.stop(old, after=joined)
    removed = chain.remove(Ref(id=old.id), after=(*joined, *stopped))
    renamed = chain.rename(new, final, after=(removed,), event="replace")
    chain.start(new, after=(renamed,), begins="starting")
    if joined:
        _undo(chain, new, (*joined, *stopped))


def replace_without_downtime(chain: Chain, parts: Parts, old: ObservedContainer) -> None:
    final = naming.container_name(chain.name)
    spare = naming.next_container_name(chain.name)
    new, joined = chain.create(parts, container_name=spare, alias="", event="")
    started = chain.start(new, after=joined, begins="")
    wait = WaitHealthy(
        key=chain.key,
        name=chain.name,
        cause=chain.cause,
        begins="starting",
        container=new,
        timeout=chain.workspace.startup_timeout,
    )
    healthy = chain.plan.add(wait, after=(started,))
    handed: tuple[int, ...] = (healthy,)
    for network in parts.networks:
        left = chain.disconnect(new, network, after=handed)
        handed = (chain.connect(new, network, alias=chain.alias, after=(left,)),)
    handed = _withdraw(chain, old, handed)
    stopped = chain.stop(
        old, after=handed, settle=min(_SETTLE_SECONDS, chain.workspace.drain_timeout)
    )
    removed = chain.remove(Ref(id=old.id), after=stopped)
    chain.rename(new, final, after=(removed,), event="replace")
    before_stop = [node.number for node in chain.plan.nodes if joined[0] < node.number < removed]
    _undo(chain, new, tuple(sorted({*joined, *before_stop} - set(stopped))))


def _withdraw(chain: Chain, old: ObservedContainer, after: tuple[int, ...]) -> tuple[int, ...]:
    """Take the alias off the old container before it is told to stop: a name that still led to a
    closing server would fail every new caller until its end. It stays on the network to drain, at
    the same address, so that requests under way go on; unless its hostname is the alias: the
    engine would give it the name again."""
    here = Ref(id=old.id)
    router = chain.view.desired.settings.router
    # There the routes know a container by its address, not by this name.
    by_address = router.network if router.mode == LABELS else ""
    for place in old.attachments:
        if chain.alias not in place.aliases or place.network_name == by_address:
            continue
        network = Ref(id=place.network_id)
        after = (chain.disconnect(here, network, after=after),)
        if old.hostname != chain.alias:
            same = place.address
            after = (chain.connect(here, network, alias="", address=same, after=after),)
    return after


def _undo(chain: Chain, new: Ref, failed: tuple[int, ...]) -> None:
    """If the new container cannot take over, it goes and the old one stays as it is."""
    step = RemoveContainer(
        key=chain.key,
        name=chain.name,
        cause="the replacement did not come up; the old container stays",
        container=new,
    )
    chain.plan.add(step, rescues=failed)
