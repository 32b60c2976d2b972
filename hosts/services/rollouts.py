"""Bringing a new agent image to the fleet: one host, some, all; a failure ends it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone

from hosts.choices import RolloutHostStatus, RolloutStatus
from hosts.models import AgentRollout, Host, RolloutHost
from hosts.rollout import order_number, order_problem, outcome, waves_of
from hosts.services.desired import host_desired_changed
from hosts.services.fields import check_image_reference
from trailer import events, policy
from trailer.audit.record import record
from trailer.errors import Conflict, Invalid

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from trailer.policy import Actor


def rollout_create(*, actor: Actor, image: str, hosts: Sequence[UUID] = ()) -> AgentRollout:
    """To the hosts named, or to every enabled one whose agent is a container."""
    policy.require(actor, "host.create")
    check_image_reference("image", image)
    rows = Host.objects.filter(enabled=True).exclude(agent_image_running="")
    chosen = list((rows.filter(pk__in=hosts) if hosts else rows).order_by("name"))
    if not chosen:
        raise Invalid.field(
            "hosts", "No enabled host of these has an agent in a container that could be replaced."
        )
    problems = [problem for host in chosen if (problem := order_problem(host, image))]
    if problems:
        raise Invalid(problems[0], fields={"image": problems})
    try:
        with transaction.atomic():
            rollout = AgentRollout.objects.create(image=image, created_by=actor)
            for host, wave in zip(chosen, waves_of(len(chosen)), strict=True):
                RolloutHost.objects.create(
                    rollout=rollout, host=host, wave=wave, previous_image=host.agent_image
                )
            record("rollout.create", rollout, actor=actor)
            _advance(rollout, timezone.now())
    except IntegrityError as error:
        raise Conflict(
            "Another rollout of agents is under way. Wait for its end, or stop it.", code="in_use"
        ) from error
    return AgentRollout.objects.get(pk=rollout.pk)


def rollout_stop(*, actor: Actor) -> AgentRollout | None:
    """No further host is ordered; those that have the new agent keep it."""
    policy.require(actor, "host.create")
    with transaction.atomic():
        rollout = AgentRollout.objects.select_for_update().filter(status="running").first()
        if rollout is None:
            raise Conflict("No rollout of agents is under way.")
        record("rollout.stop", rollout, actor=actor)
        _end(rollout, RolloutStatus.STOPPED, "Stopped by hand.")
        # Pages that show how it goes follow its hosts, on which nothing else changes now.
        for host_id in rollout.hosts.values_list("host_id", flat=True):
            events.publish("host", host_id)
    return AgentRollout.objects.get(pk=rollout.pk)


def rollouts_advance(now: datetime) -> None:
    """Called every few seconds, by any number of workers: the row's lock lets one through."""
    if not AgentRollout.objects.filter(status=RolloutStatus.RUNNING).exists():
        return
    with transaction.atomic():
        rollout = AgentRollout.objects.select_for_update().filter(status="running").first()
        if rollout is not None:
            _judge(rollout, now)
            _advance(rollout, now)


def _judge(rollout: AgentRollout, now: datetime) -> None:
    rows = rollout.hosts.select_related("host").filter(status=RolloutHostStatus.ORDERED)
    for row in rows:
        status, message = outcome(row.host, rollout.image, row.ordered_at or now, now)
        if status == row.status:
            continue
        RolloutHost.objects.filter(pk=row.pk).update(status=status, message=message)
        # The order is taken back, so that the host's overseer ends; its old agent goes on.
        failed = status == RolloutHostStatus.FAILED
        _settle(row, row.previous_image if failed else rollout.image)


def _advance(rollout: AgentRollout, now: datetime) -> None:
    rows = list(rollout.hosts.select_related("host"))
    failed = [row for row in rows if row.status == RolloutHostStatus.FAILED]
    if failed:
        names = ", ".join(row.host.name for row in failed)
        _end(rollout, RolloutStatus.HALTED, f"{names}: {failed[0].message}")
        return
    if any(row.status == RolloutHostStatus.ORDERED for row in rows):
        return
    waiting = [row for row in rows if row.status == RolloutHostStatus.WAITING]
    if not waiting:
        _end(rollout, RolloutStatus.DONE, "")
        return
    wave = min(row.wave for row in waiting)
    for row in waiting:
        if row.wave == wave:
            RolloutHost.objects.filter(pk=row.pk).update(
                status=RolloutHostStatus.ORDERED, ordered_at=now
            )
            _set(row.host_id, image=rollout.image, number=order_number(now))


def _settle(row: RolloutHost, image: str) -> None:
    """No order any more, unless an administrator has chosen another image meanwhile."""
    if row.ordered_at and row.host.agent_order == order_number(row.ordered_at):
        _set(row.host_id, image=image, number=0)


def _set(host_id: UUID, *, image: str, number: int) -> None:
    Host.objects.filter(pk=host_id).update(
        agent_image=image, agent_order=number, revision=F("revision") + 1
    )
    host_desired_changed(host_id)
    events.publish("host", host_id)


def _end(rollout: AgentRollout, status: RolloutStatus, message: str) -> None:
    AgentRollout.objects.filter(pk=rollout.pk).update(
        status=status, message=message, finished_at=timezone.now()
    )
    if status != RolloutStatus.STOPPED:
        record(f"rollout.{status}", rollout)
