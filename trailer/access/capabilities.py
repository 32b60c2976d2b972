"""What users and groups may do on a host: read and replaced as a whole, by administrators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction

from trailer import events, policy
from trailer.access.models import Capability, HostCapability
from trailer.access.reliance import hosts_judge_again
from trailer.access.subjects import subjects_of
from trailer.accounts.models import User
from trailer.audit.record import record
from trailer.errors import Invalid
from trailer.rows import row_lock
from trailer.validation import LIST_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from uuid import UUID

    from django.db.models import Model, QuerySet

    from trailer.policy import Actor

FIELD = "access"


def capabilities_of(*, actor: Actor, host: Model) -> list[dict[str, Any]]:
    """One entry for each user or group, in the shape of the API."""
    policy.require(actor, "host.modify", host)
    return _entries(_rows(host))


def capabilities_replace(
    *, actor: Actor, host: Model, entries: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """`entries` hold user or group, and capabilities; who is not in them keeps none."""
    policy.require(actor, "host.modify", host)
    if len(entries) > LIST_LIMIT:
        raise Invalid.field(FIELD, f"A host has at most {LIST_LIMIT} entries. Use groups.")
    subjects = subjects_of(entries, field=FIELD)
    with transaction.atomic():
        row_lock(type(host)._default_manager.all(), host.pk)
        before = _words(_rows(host))
        HostCapability.objects.filter(host_id=host.pk).delete()
        for entry, subject in zip(entries, subjects, strict=True):
            who: dict[str, Any] = {"user" if isinstance(subject, User) else "group": subject}
            HostCapability.objects.bulk_create(
                HostCapability(host_id=host.pk, capability=name, granted_by=actor, **who)
                for name in dict.fromkeys(entry["capabilities"])
            )
        after = _words(_rows(host))
        if before != after:
            change = {"field": FIELD, "from": before, "to": after}
            record("host.share", host, actor=actor, changes=[change])
            events.publish("host", host.pk)
            hosts_judge_again([host.pk])
    return _entries(_rows(host))


def capabilities_forget(host_id: UUID) -> None:
    """With the host that is being deleted."""
    HostCapability.objects.filter(host_id=host_id).delete()


def _rows(host: Model) -> QuerySet[HostCapability]:
    return HostCapability.objects.filter(host_id=host.pk).select_related("user", "group")


def _entries(rows: Iterable[HostCapability]) -> list[dict[str, Any]]:
    order = list(Capability)
    found: dict[Any, dict[str, Any]] = {}
    for row in rows:
        entry = found.setdefault(
            (row.user_id, row.group_id),
            {
                "user": str(row.user_id) if row.user_id else None,
                "username": row.user.username if row.user else None,
                "group": row.group.name if row.group else None,
                "capabilities": [],
            },
        )
        entry["capabilities"].append(row.capability)
    for entry in found.values():
        entry["capabilities"].sort(key=order.index)
    return sorted(found.values(), key=lambda entry: entry["username"] or entry["group"])


def _words(rows: Iterable[HostCapability]) -> list[str]:
    return [
        f"{entry['username'] or 'group ' + entry['group']}: {', '.join(entry['capabilities'])}"
        for entry in _entries(rows)
    ]
