"""Chains of steps that replace a workspace's container by another one.

A new container is always created beside the old one first: whatever the engine can refuse, it
refuses while the old one still runs. Side by side the two *run* only where neither can write to a
volume of the other.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from agent.routing.routes import LABELS
from agent.steps import Ref, RemoveContainer, StartContainer, StopContainer, WaitHealthy

if TYPE_CHECKING:
    from agent.diff.chains import Chain, Parts
    from agent.observed import ObservedContainer

# A caller whose first packet was lost while the old container changed its name repeats it after a
# second.
_SETTLE_SECONDS = 2.0
# What has no health check counts as up when it has run for so long.
STEADY_SECONDS = 10.0


def replace_briefly(
    chain: Chain, parts: Parts, old: ObservedContainer, *, after: tuple[int, ...] = ()
) -> None:
    """create `-next` → stop old → start `-next` → wait → remove old → rename. The two never run at
    once, so that they cannot write to one volume; and the old one, which is known to work, stays
    until the new one is up. Removing the old one first was rejected: a start that fails would
    then leave nothing."""
    new, joined = chain.create(
        parts, container_name=chain.spare_name, alias=chain.alias, event="", after=after
    )
    take_over(chain, new, old, joined=joined)


def take_over(
    chain: Chain,
    new: Ref,
    old: ObservedContainer,
    *,
    joined: tuple[int, ...] = (),
    is_started: bool = False,
) -> None:
    """The new container stands ready under the spare name, or (`is_started`) has begun to run
    already: stop old → start → wait → remove old → rename; on a failure, back to the old one."""
    stopped = chain.stop(old, after=joined, attempt=chain.attempt, to_replace=True)
    started = stopped
    if not is_started:
        started = (chain.start(new, after=stopped, begins="starting", attempt=chain.attempt),)
    waited = chain.plan.add(_wait(chain, new), after=started)
    removed = chain.remove(Ref(id=old.id), after=(waited,))
    chain.rename(new, chain.final_name, after=(removed,), event="replace")
    untouched = joined if old.is_up else ()
    if untouched:
        _undo(chain, new, untouched)
    _go_back(
        chain, new, old, tried=tuple(sorted({*joined, *stopped, *started, waited} - {*untouched}))
    )


def _wait(chain: Chain, new: Ref) -> WaitHealthy:
    return WaitHealthy(
        key=chain.key,
        name=chain.name,
        cause=chain.cause,
        begins="starting",
        attempt=chain.attempt,
        container=new,
        timeout=chain.workspace.startup_timeout,
        steady=STEADY_SECONDS,
        otherwise="Trailer goes back to the old container and tries again after the next change.",
    )


def _go_back(chain: Chain, new: Ref, old: ObservedContainer, *, tried: tuple[int, ...]) -> None:
    """stop `-next` → remove it → start old. One that could not start either stays as it is."""
    chain = replace(chain, cause="the replacement did not come up", changes=())
    stop = StopContainer(
        key=chain.key,
        name=chain.name,
        cause=chain.cause,
        container=new,
        timeout=chain.workspace.drain_timeout,
    )
    stopped = chain.plan.add(stop, rescues=tried)
    remove = RemoveContainer(key=chain.key, name=chain.name, cause=chain.cause, container=new)
    removed = chain.plan.add(remove, after=(stopped,), rescues=tried)
    if old.is_up or not old.error:
        start = StartContainer(
            key=chain.key,
            name=chain.name,
            cause=chain.cause,
            event="heal",
            container=Ref(id=old.id),
        )
        chain.plan.add(start, after=(removed,), rescues=tried)


def replace_without_downtime(
    chain: Chain, parts: Parts, old: ObservedContainer, *, after: tuple[int, ...] = ()
) -> None:
    """create `-next` without the public alias → start → healthy → hand the alias over → stop old →
    remove → rename. Only where both may run at once: see `replaces_without_downtime`."""
    new, joined = chain.create(
        parts, container_name=chain.spare_name, alias="", event="", after=after
    )
    started = chain.start(new, after=joined, begins="")
    wait = WaitHealthy(
        key=chain.key,
        name=chain.name,
        cause=chain.cause,
        begins="starting",
        container=new,
        timeout=chain.workspace.startup_timeout,
        otherwise="The old one keeps running.",
    )
    healthy = chain.plan.add(wait, after=(started,))
    handed: tuple[int, ...] = (healthy,)
    for network in parts.networks:
        left = chain.disconnect(new, network, after=handed)
        handed = (chain.connect(new, network, alias=chain.alias, after=(left,)),)
    handed = _withdraw(chain, old, handed)
    stopped = chain.stop(
        old,
        after=handed,
        settle=min(_SETTLE_SECONDS, chain.workspace.drain_timeout),
        to_replace=True,
    )
    removed = chain.remove(Ref(id=old.id), after=stopped)
    chain.rename(new, chain.final_name, after=(removed,), event="replace")
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
