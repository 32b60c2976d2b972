"""Differences of a living container that need no new one: name, networks, limits, run state."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from agent.diff.container import nano_cpus
from agent.diff.current import was_edited
from agent.diff.ends import exit_of
from agent.diff.names import rename
from agent.engine_requests import RESTART_POLICY
from agent.protocol import naming
from agent.protocol.compare import IN_PLACE, REPLACE, normalise
from agent.protocol.report import FieldChange
from agent.steps import Ref, UnpauseContainer, UpdateContainer

if TYPE_CHECKING:
    from agent.diff.chains import Chain
    from agent.observed import Attachment, ObservedContainer
    from agent.protocol.state import DesiredWorkspace

_DEFAULT_NETWORK = "bridge"


def in_place(
    chain: Chain,
    container: ObservedContainer,
    networks: tuple[Ref, ...],
    *,
    after: tuple[int, ...] = (),
    limits: bool = True,
) -> None:
    """`networks` are the engine networks the workspace wants; it starts only `after` those steps.
    Edits and hand-made drift look the same on the engine; the applied revision tells them
    apart. Without `limits` those stay as they are."""
    if limits:
        _limits(chain, container)
    _restart_policy(chain, container)
    joined = _attachments(chain, container, networks, rename(chain, container))
    run_state(chain, container, after=(*joined, *after))


def _edited(chain: Chain, container: ObservedContainer) -> bool:
    return was_edited(chain.view, chain.workspace, container)


def _attachments(
    chain: Chain, container: ObservedContainer, networks: tuple[Ref, ...], after: tuple[int, ...]
) -> tuple[int, ...]:
    edited = _edited(chain, container)
    here = Ref(id=container.id)
    by_id = {place.network_id: place for place in container.attachments}
    chain = replace(
        chain,
        cause="networks changed" if edited else "network cut outside Trailer",
        changes=_network_changes(chain, container),
    )
    event = "connect" if edited else "heal"
    for network in networks:
        place = by_id.get(network.id) if network.id else None
        if place and chain.alias in place.aliases:
            continue
        told = event
        if place:
            after = (chain.disconnect(here, network, after=after),)
            # A new alias is part of a rename, which has its own row.
            told = "" if edited else event
        waits = after if network.node is None else (*after, network.node)
        after = (chain.connect(here, network, alias=chain.alias, after=waits, event=told),)
        event = event if not told else ""
    if not networks and _default(chain) and not _on_default(container):
        # Without networks of its own a workspace sits on the engine's default bridge.
        after = (chain.connect(here, Ref(id=_default(chain)), alias="", after=after),)
    return _leave(chain, container, networks, after)


def _leave(
    chain: Chain, container: ObservedContainer, networks: tuple[Ref, ...], after: tuple[int, ...]
) -> tuple[int, ...]:
    edited = _edited(chain, container)
    chain = replace(chain, cause="networks changed" if edited else "joined outside Trailer")
    event = "disconnect" if edited else "heal"
    wanted = {network.id for network in networks}
    for place in container.attachments:
        if place.network_id in wanted or not _may_leave(chain, place, networks):
            continue
        gone = Ref(id=place.network_id)
        after = (chain.disconnect(Ref(id=container.id), gone, after=after, event=event),)
        event = ""
    return after


def _network_changes(chain: Chain, container: ObservedContainer) -> tuple[FieldChange, ...]:
    """Networks by the server's ids; one that is not Trailer's by its name on the engine."""
    known = chain.view.networks_by_id
    before = []
    for place in container.attachments:
        network = known.get(place.network_id)
        label = network.labels.get(naming.LABEL_NETWORK, "") if network else ""
        shared = chain.view.desired.settings.router.network
        if network is not None and chain.view.is_platform_network(network):
            continue
        if label or place.network_name not in (_DEFAULT_NETWORK, shared):
            before.append(label or place.network_name)
    after = sorted(set(chain.workspace.spec.network_ids))
    return (FieldChange(field="networks", old=sorted(before), new=after, effect="in_place"),)


def _may_leave(chain: Chain, place: Attachment, networks: tuple[Ref, ...]) -> bool:
    """Not the default bridge of a workspace without networks, nor the router's network, nor one
    that is gone."""
    if place.network_id not in chain.view.networks_by_id:
        return False
    if place.network_name == _DEFAULT_NETWORK:
        return bool(networks)
    if chain.view.is_platform_network(chain.view.networks_by_id[place.network_id]):
        return True
    return place.network_name != chain.view.desired.settings.router.network


def _default(chain: Chain) -> str:
    found = (n.id for n in chain.view.observed.networks if n.name == _DEFAULT_NETWORK)
    return next(found, "")


def _on_default(container: ObservedContainer) -> bool:
    return any(place.network_name == _DEFAULT_NETWORK for place in container.attachments)


def limits_to_lift(
    workspace: DesiredWorkspace, container: ObservedContainer
) -> tuple[FieldChange, ...]:
    """Changed limits of which one should not be there at all: it cannot be lifted from a living
    container, which is replaced then."""
    spec = normalise(workspace.spec)
    cpus, memory = nano_cpus(spec), spec.memory_bytes or 0
    lifted = (container.nano_cpus and not cpus) or (container.memory_bytes and not memory)
    if not lifted:
        return ()
    return _limit_changes(container, cpus=cpus, memory=memory, effect=REPLACE)


def _limits(chain: Chain, container: ObservedContainer) -> None:
    """Limits moved by `docker update`: put back in place."""
    spec = normalise(chain.workspace.spec)
    cpus, memory = nano_cpus(spec), spec.memory_bytes or 0
    changes = _limit_changes(container, cpus=cpus, memory=memory)
    if not changes:
        return
    step = UpdateContainer(
        key=chain.key,
        name=chain.name,
        cause="limits were changed outside Trailer",
        event="heal",
        changes=changes,
        container=Ref(id=container.id),
        nano_cpus=cpus,
        memory_bytes=memory,
    )
    chain.plan.add(step)


def _restart_policy(chain: Chain, container: ObservedContainer) -> None:
    """Moved by `docker update`: put back in place, or the next crash would be the end."""
    found = container.restart_policy
    if found in ("", RESTART_POLICY):
        return
    change = FieldChange(field="restart_policy", old=found, new=RESTART_POLICY, effect="in_place")
    step = UpdateContainer(
        key=chain.key,
        name=chain.name,
        cause="the restart policy was changed outside Trailer",
        event="heal",
        changes=(change,),
        container=Ref(id=container.id),
        restart_policy=RESTART_POLICY,
    )
    chain.plan.add(step)


def _limit_changes(
    container: ObservedContainer, *, cpus: int, memory: int, effect: str = IN_PLACE
) -> tuple[FieldChange, ...]:
    pairs = (("cpus", container.nano_cpus, cpus), ("memory_bytes", container.memory_bytes, memory))
    return tuple(
        FieldChange(field=field, old=old or None, new=new or None, effect=effect)
        for field, old, new in pairs
        if old != new
    )


def run_state(chain: Chain, container: ObservedContainer, *, after: tuple[int, ...] = ()) -> None:
    ref = Ref(id=container.id)
    if container.state == "paused":
        step = UnpauseContainer(
            key=chain.key,
            name=chain.name,
            cause="paused outside Trailer",
            event="heal",
            container=ref,
        )
        chain.plan.add(step, after=after)
    elif container.state == "created":
        replace(chain, cause="created but never started").start(
            ref, after=after, event="start", begins="starting"
        )
    elif container.state == "exited":
        if container.id in chain.view.knows.stopped_to_replace:
            back = replace(chain, cause="back after a replace that was not finished")
            back.start(ref, after=after, event="heal", begins="starting")
            return
        by_us = container.id in chain.view.knows.stopped_ids or _edited(chain, container)
        code = "" if container.exit_code is None else f" (exit code {container.exit_code})"
        cause = "start requested" if by_us else f"stopped outside Trailer{code}"
        replace(chain, cause=cause).start(
            ref,
            after=after,
            event="start" if by_us else "heal",
            begins="starting",
            ended=None if by_us else exit_of(container),
        )
