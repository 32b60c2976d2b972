"""Deploying: needs first, then services in the order in which they depend on each other."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from workspaces.choices import WorkspaceStatus
from workspaces.stacks.choices import Phase, SyncOutcome
from workspaces.stacks.file.order import start_order
from workspaces.stacks.sync.apply import (
    Order,
    remove_in_the_way,
    remove_others,
    workspace_of,
    write,
)
from workspaces.stacks.sync.away import AWAY_SECONDS, is_host_away
from workspaces.stacks.sync.desired import desired_of
from workspaces.stacks.sync.places import places_of
from workspaces.stacks.sync.prepare import cause, targets
from workspaces.stacks.sync.work import End, Go, SyncProblem, Wait
from workspaces.status import workspace_status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from workspaces.stacks.file.types import NeedSpec, ServiceSpec
    from workspaces.stacks.models import Stack, Sync
    from workspaces.stacks.sync.places import Places
    from workspaces.stacks.sync.work import Result, Work

# What an agent may take on top of a service's own time to come up: hearing of it, creating it.
_GRACE: Final = timedelta(seconds=60)


def needs(work: Work) -> Result:
    stack, sync = work.stack, work.sync
    if is_host_away(work, stack):
        return Wait(AWAY_SECONDS)
    said = []
    with work.locked() as stack:
        desired, places = targets(stack, sync)
        order = _order(stack, sync, places)
        said += [write(order, service) for service in desired.need_services]
    _tell(work, said)
    for need, service in desired.needs:
        if not is_up(order, service, word="Need", limit=_limit_of(stack, need, service)):
            return Wait()
    return Go(Phase.SERVICES)


def _limit_of(stack: Stack, need: NeedSpec, service: ServiceSpec) -> timedelta:
    """Where there is an old container it stops first, and the agent judges the new one."""
    limit = timedelta(seconds=need.ready_timeout)
    workspace = workspace_of(stack, service.name)
    if workspace is None or workspace.revision == 1:
        return limit
    return limit + timedelta(seconds=service.drain_timeout) + _GRACE


def services(work: Work) -> Result:
    stack, sync = work.stack, work.sync
    if is_host_away(work, stack):
        return Wait(AWAY_SECONDS)
    said: list[str] = []
    with work.locked() as stack:
        desired, places = targets(stack, sync)
        names = {service.name for service in desired.all_services}
        order = _order(stack, sync, places)
        removed = remove_in_the_way(stack, desired.file.services, names)
        up: set[str] = {service.name for service in desired.need_services}
        waiting = False
        for service in _in_order(desired.file.services):
            if not {needed.service for needed in service.depends_on} <= up:
                waiting = True
                continue
            told = write(order, service)
            said.append(told)
            if not told and is_up(order, service, word="Service"):
                up.add(service.name)
            else:
                waiting = True
        if not waiting:
            removed += remove_others(stack, names)
    _tell(work, [*(f"Service {name}: removed." for name in removed), *said])
    if waiting:
        return Wait()
    return End(SyncOutcome.DEPLOYED)


def restore(work: Work) -> Result:
    """The new revision failed: what is written down is the last good one again."""
    repair(work)
    return End(SyncOutcome.FAILED, work.sync.message)


def repair(work: Work) -> None:
    """Writes the last good revision, where anything differs from it; does not wait for services
    to come up."""
    if work.stack.deployed is None:
        return
    with work.locked() as stack:
        if stack.deployed is None:
            return
        desired = desired_of(stack, stack.deployed)
        places = places_of(stack, stack.deployed, desired.file, desired.all_services)
        order = Order(
            stack=stack,
            places=places,
            cause=f"Stack {stack.name} back at {stack.deployed_commit[:8]}:",
            since=work.sync.phase_at,
        )
        names = {service.name for service in desired.all_services}
        removed = remove_others(stack, names)
        said = [write(order, service) for service in desired.all_services]
    _tell(work, [*(f"Service {name}: removed." for name in removed), *said])


def _order(stack: Stack, sync: Sync, places: Places) -> Order:
    return Order(
        stack=stack,
        places=places,
        cause=cause(stack, sync),
        since=sync.phase_at,
        insists=sync.forced,
    )


def is_up(
    order: Order, service: ServiceSpec, *, word: str, limit: timedelta | None = None
) -> bool:
    """False while it is still coming; raises when it will not. Late is what is not there when the
    host is heard after its time: one that died just before would else cost a commit."""
    workspace = workspace_of(order.stack, service.name)
    if workspace is None:
        return False
    status = workspace_status(workspace)
    if status == WorkspaceStatus.ERROR:
        raise SyncProblem(f"{word} {service.name}: {workspace.message}")
    if status in (WorkspaceStatus.RUNNING, WorkspaceStatus.SNAPSHOTTING):
        return True
    allowed = limit or timedelta(seconds=service.startup_timeout) + _GRACE
    heard = order.stack.host.last_heartbeat
    if heard is not None and heard - max(workspace.updated_at, order.since) > allowed:
        seconds = int(allowed.total_seconds())
        reason = f" {workspace.message}" if workspace.message else ""
        raise SyncProblem(f"{word} {service.name} was not ready within {seconds} s.{reason}")
    return False


def _in_order(services: Iterable[ServiceSpec]) -> list[ServiceSpec]:
    return [service for group in start_order(tuple(services)) for service in group]


def _tell(work: Work, sentences: Iterable[str]) -> None:
    for sentence in sentences:
        if sentence:
            work.log(sentence)
