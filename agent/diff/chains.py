"""Chains of steps for one workspace: what can be done with one container, and with what cause."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from agent.diff.container import container_request, network_alias
from agent.diff.current import containers_of
from agent.diff.view import View, object_key
from agent.protocol import naming
from agent.steps import (
    WORKSPACE,
    Attempt,
    ConnectNetwork,
    CreateContainer,
    DisconnectNetwork,
    Ref,
    RemoveContainer,
    RenameContainer,
    StartContainer,
    StopContainer,
    UnpauseContainer,
)

if TYPE_CHECKING:
    from agent.observed import ObservedContainer, ObservedImage
    from agent.plan import PlanBuilder
    from agent.protocol.report import ContainerExit, FieldChange
    from agent.protocol.state import DesiredWorkspace


@dataclass(frozen=True, kw_only=True)
class Parts:
    """All that must be ready before a container of this workspace can be made."""

    image: ObservedImage
    networks: tuple[Ref, ...] = ()
    after: tuple[int, ...] = ()


def attempt_of(workspace: DesiredWorkspace, changes: tuple[FieldChange, ...]) -> Attempt:
    """Which replace this is: another one after every edit, and when anything else differs from
    before (an image that moved, the router's settings, limits changed by hand)."""
    differing = [(change.field, change.new) for change in changes]
    text = msgspec.json.encode((workspace.revision, differing), order="deterministic")
    return Attempt(mark=hashlib.sha256(text).hexdigest(), revision=workspace.revision)


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
    def final_name(self) -> str:
        return naming.container_name(self.name)

    @property
    def spare_name(self) -> str:
        """Of the new container until the old one is gone. Another workspace may be called
        `<name>-next`, or this one was: then it is made of the id. One that is left over there is
        removed first."""
        usual = naming.next_container_name(self.name)
        holder = self.view.containers_by_name.get(usual)
        _, left_over = containers_of(self.view, self.workspace)
        if holder is None or holder in left_over:
            return usual
        return naming.spare_container_name(self.workspace.id)

    @property
    def attempt(self) -> Attempt:
        return attempt_of(self.workspace, self.changes)

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
        self,
        container: Ref,
        *,
        after: tuple[int, ...] = (),
        event: str = "",
        begins: str,
        attempt: Attempt | None = None,
        ended: ContainerExit | None = None,
    ) -> int:
        step = StartContainer(
            key=self.key,
            name=self.name,
            cause=self.cause,
            begins=begins,
            event=event,
            attempt=attempt,
            ended=ended,
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
        attempt: Attempt | None = None,
        to_replace: bool = False,
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
            attempt=attempt,
            container=ref,
            timeout=self.workspace.drain_timeout,
            settle=settle,
            to_replace=to_replace,
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
