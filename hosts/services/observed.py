"""Ingest of what agents report about networks, volumes, tombstones and cycles."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from uuid import UUID

import msgspec
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from hosts.choices import ResourceStatus
from hosts.models import Cycle, Host, Network, Tombstone, Volume
from hosts.services.desired import host_desired_changed
from trailer import events
from trailer.errors import Invalid
from trailer.validation import LIST_LIMIT, stored_number, stored_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.protocol.report import CycleReport, LeftoversReport, StepReport, TombstoneDone
    from agent.protocol.report import ResourceStatus as ResourceReport

KEPT_CYCLES: Final = 200
KEPT_LEFTOVERS: Final = 1000
_MESSAGE_LIMIT: Final = 4096
_INSTANCE_LIMIT: Final = 64
_KIND: Final = re.compile(r"[a-z0-9-]{1,32}")
_INTEGER: Final = 2**31 - 1


def network_observed(host: Host, item: ResourceReport, epoch: int) -> bool:
    """False when the report is older than what is stored, or the network is gone."""
    return _resource_observed(Network, host, item, epoch)


def volume_observed(
    host: Host,
    item: ResourceReport,
    epoch: int,
    on_data_gone: Callable[[Volume], None] | None = None,
) -> bool:
    """Also marks a volume that was made again, empty; `on_data_gone` is called in the same
    transaction.

    An agent that loses its journal, or the answer to a creation, reports the same instance: it is
    a label of the volume itself.
    """
    with transaction.atomic():
        rows = Volume.objects.select_for_update().filter(
            newer_than_stored(epoch, item.seq), pk=reported_id(item.object_id), host=host
        )
        before = rows.first()
        observed = _resource_observed(Volume, host, item, epoch)
        if before is not None and observed and item.instance:
            is_gone = _instance_observed(before, stored_text(item.instance, _INSTANCE_LIMIT))
            if is_gone and on_data_gone is not None:
                on_data_gone(before)
    return observed


def _instance_observed(before: Volume, instance: str) -> bool:
    """Whether it is another one than was seen before."""
    if before.instance == instance:
        return False
    values: dict[str, object] = {"instance": instance}
    if before.instance:
        values["data_gone_at"] = timezone.now()
        events.publish("volume", before.pk)
    Volume.objects.filter(pk=before.pk).update(**values)
    return bool(before.instance)


def prerequisite_observed(host: Host, item: ResourceReport, epoch: int) -> bool:
    """A container of the platform itself; `object_id` is its kind."""
    if item.status not in ResourceStatus.values or not _KIND.fullmatch(item.object_id):
        raise Invalid(f"“{stored_text(item.status, 64)}” is not a status of a prerequisite.")
    with transaction.atomic():
        row = Host.objects.select_for_update().only("id", "prerequisites").get(pk=host.pk)
        before = row.prerequisites.get(item.object_id, {})
        if (before.get("epoch", 0), before.get("seq", 0)) >= (epoch, item.seq):
            return False
        now = {
            "status": item.status,
            "message": stored_text(item.message, _MESSAGE_LIMIT),
            "epoch": epoch,
            "seq": stored_number(item.seq),
        }
        kinds = {**row.prerequisites, item.object_id: now}
        Host.objects.filter(pk=host.pk).update(prerequisites=kinds)
        if any(before.get(name) != now[name] for name in ("status", "message")):
            events.publish("host", host.pk)
    return True


def tombstone_done(host: Host, item: TombstoneDone) -> bool:
    """The order is carried out and goes; or it can't be yet, and says why."""
    rows = Tombstone.objects.filter(pk=reported_id(item.tombstone_id), host=host)
    with transaction.atomic():
        if not item.done:
            return bool(rows.update(message=stored_text(item.message, _MESSAGE_LIMIT)))
        removed, _ = rows.delete()
        if removed:
            host_desired_changed(host.pk)
    return bool(removed)


def cycle_record(host: Host, item: CycleReport, epoch: int) -> bool:
    """The same cycle reported twice makes one row; the newest 200 of a host are kept."""
    now = timezone.now()
    with transaction.atomic():
        _, created = Cycle.objects.get_or_create(
            host=host,
            epoch=epoch,
            number=stored_number(item.number),
            defaults={
                "trigger": stored_text(item.trigger, 32),
                "started_at": reported_time(item.started_at) or now,
                "finished_at": reported_time(item.finished_at) or now,
                "outcome": stored_text(item.outcome, 32),
                "cleanup": stored_text(item.cleanup, 16),
                "engine_calls": stored_number(item.engine_calls, _INTEGER),
                "steps": [_step(step) for step in item.steps[:LIST_LIMIT]],
                "message": stored_text(item.message, _MESSAGE_LIMIT),
            },
        )
        if created:
            _trim_cycles(host)
            events.publish("host", host.pk)
    return created


def leftovers_observed(host: Host, item: LeftoversReport, epoch: int) -> bool:
    """What the agent found on the host and left alone."""
    newer = Q(leftovers_epoch__lt=epoch) | Q(leftovers_epoch=epoch, leftovers_seq__lt=item.seq)
    rows = [
        {name: stored_text(value, 1024) for name, value in msgspec.structs.asdict(row).items()}
        for row in item.leftovers[:KEPT_LEFTOVERS]
    ]
    return bool(
        Host.objects.filter(newer, pk=host.pk).update(
            leftovers=rows, leftovers_epoch=epoch, leftovers_seq=item.seq
        )
    )


def newer_than_stored(epoch: int, seq: int) -> Q:
    """Reports are ordered by (epoch, seq), never by a clock."""
    return Q(report_epoch__lt=epoch) | Q(report_epoch=epoch, report_seq__lt=seq)


def reported_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise Invalid(f"“{stored_text(text, 64)}” is not the id of an object.") from error


def reported_time(text: str) -> datetime | None:
    """An agent's clock, for people to read; nothing is decided by it."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _resource_observed(
    model: type[Network | Volume], host: Host, item: ResourceReport, epoch: int
) -> bool:
    if item.status not in ResourceStatus.values:
        raise Invalid(f"“{stored_text(item.status, 64)}” is not a status of a {item.resource}.")
    columns = {
        "status": item.status,
        "message": stored_text(item.message, _MESSAGE_LIMIT),
        "engine_id": stored_text(item.engine_id, 128),
    }
    with transaction.atomic():
        row = (
            model.objects.select_for_update()
            .filter(newer_than_stored(epoch, item.seq), pk=reported_id(item.object_id), host=host)
            .first()
        )
        if row is None:
            return False
        shown = (row.status, row.message) != (columns["status"], columns["message"])
        model.objects.filter(pk=row.pk).update(
            **columns, observed_at=timezone.now(), report_epoch=epoch, report_seq=item.seq
        )
        if shown:
            events.publish(item.resource, row.pk)
    return True


def _step(step: StepReport) -> dict[str, object]:
    return {
        name: stored_text(value, _MESSAGE_LIMIT) if isinstance(value, str) else value
        for name, value in msgspec.structs.asdict(step).items()
    }


def _trim_cycles(host: Host) -> None:
    rows = Cycle.objects.filter(host=host).order_by("-epoch", "-number")
    oldest = rows.values_list("epoch", "number")[KEPT_CYCLES - 1 : KEPT_CYCLES]
    for epoch, number in oldest:
        rows.filter(Q(epoch__lt=epoch) | Q(epoch=epoch, number__lt=number)).delete()
