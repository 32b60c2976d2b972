"""Creating, changing and deleting hosts."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any, Unpack, cast

from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone

from hosts.models import Host
from hosts.rollout import order_problem
from hosts.services.desired import host_desired_changed
from hosts.services.fields import HOST_COLUMNS, HostFields, check_host
from trailer import events, policy
from trailer.access.capabilities import capabilities_forget
from trailer.audit.record import differences, record
from trailer.errors import Conflict, Invalid
from trailer.revisions import check_revision
from trailer.rows import row_lock

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trailer.policy import Actor

_SHOWN_NAMES = 5


def host_create(*, actor: Actor, **fields: Unpack[HostFields]) -> Host:
    policy.require(actor, "host.create")
    values = cast("Mapping[str, Any]", fields)
    host = Host(**values)
    check_host(host, {"name": host.name, **values})
    _check_name_is_free(host)
    try:
        with transaction.atomic():
            host.save(force_insert=True)
            record("host.create", host, actor=actor, changes=differences({}, values))
            events.publish("host", host.pk)
    except IntegrityError as error:
        raise _name_taken(host.name) from error
    return host


def host_confirm_state(*, actor: Actor, host: Host) -> Host:
    """An admin says that the present state is meant, although it would remove many containers.

    The agent holds such removals until the epoch rises: a restored old database looks the same.
    The epoch is a time, so that the same backup, restored again, does not come to one which the
    agent knows from the first time.
    """
    policy.require(actor, "host.modify", host)
    with transaction.atomic():
        current = row_lock(Host.objects.all(), host.pk)
        epoch = max(current.state_epoch, ceil(timezone.now().timestamp())) + 1
        Host.objects.filter(pk=host.pk).update(
            state_epoch=epoch, state_restored=False, revision=F("revision") + 1
        )
        host_desired_changed(host.pk)
        record("host.confirm_state", host, actor=actor)
        events.publish("host", host.pk)
    return Host.objects.get(pk=host.pk)


def host_update(
    *,
    actor: Actor,
    host: Host,
    expected_revision: int | None = None,
    **fields: Unpack[HostFields],
) -> Host:
    """Values equal to the stored ones are no change: no new revision, nothing for the agent."""
    policy.require(actor, "host.modify", host)
    try:
        with transaction.atomic():
            current = row_lock(Host.objects.all(), host.pk)
            check_revision(current.revision, expected_revision)
            before = {name: getattr(current, name) for name in HOST_COLUMNS}
            changed = _apply(current, cast("Mapping[str, Any]", fields))
            if not changed:
                return current
            check_host(current, changed)
            if problem := order_problem(current, changed.get("agent_image", "")):
                raise Invalid.field("agent_image", problem)
            if "name" in changed:
                _check_name_is_free(current)
            # A rollout's order was for the image before.
            order = {"agent_order": 0} if "agent_image" in changed else {}
            Host.objects.filter(pk=current.pk).update(
                **changed, **order, revision=F("revision") + 1, updated_at=timezone.now()
            )
            host_desired_changed(current.pk)
            record("host.update", current, actor=actor, changes=differences(before, changed))
            events.publish("host", current.pk)
    except IntegrityError as error:
        raise _name_taken(str(fields.get("name"))) from error
    return Host.objects.get(pk=host.pk)


def host_delete(*, actor: Actor, host: Host, expected_revision: int | None = None) -> None:
    policy.require(actor, "host.delete", host)
    with transaction.atomic():
        current = row_lock(Host.objects.all(), host.pk)
        check_revision(current.revision, expected_revision)
        if current.enabled:
            raise Conflict(
                f"Host {current.name} is enabled. Disable it first; its workspaces then stop.",
                code="enabled",
            )
        if holds := _contents(current):
            raise Conflict(
                f"Host {current.name} still holds {holds}. Delete them first.", code="in_use"
            )
        capabilities_forget(current.pk)
        record("host.delete", current, actor=actor)
        events.publish("host", current.pk, deleted=True)
        current.delete()


def _apply(host: Host, fields: Mapping[str, Any]) -> dict[str, Any]:
    changed = {}
    for name in HOST_COLUMNS:
        if name in fields and fields[name] != getattr(host, name):
            changed[name] = fields[name]
            setattr(host, name, fields[name])
    return changed


def _contents(host: Host) -> str:
    """What lives on the host, in words; empty when there is nothing."""
    found = []
    for noun in ("workspaces", "images", "networks", "volumes"):
        names = list(getattr(host, noun).order_by("name").values_list("name", flat=True))
        if names:
            more = ", …" if len(names) > _SHOWN_NAMES else ""
            label = noun if len(names) > 1 else noun.removesuffix("s")
            found.append(f"{len(names)} {label} ({', '.join(names[:_SHOWN_NAMES])}{more})")
    return " and ".join(found)


def _check_name_is_free(host: Host) -> None:
    if Host.objects.filter(name=host.name).exclude(pk=host.pk).exists():
        raise _name_taken(host.name)


def _name_taken(name: str) -> Invalid:
    return Invalid.field("name", f"There is a host named {name} already. Choose another name.")
