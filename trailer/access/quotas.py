"""Quotas of users and groups: read, set by administrators, and compared with what is used.

What is used is counted by the apps that own it; here is what they compare it with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.db.models import Q

from trailer import policy
from trailer.access.models import Quota, held_by
from trailer.accounts.models import User
from trailer.audit.record import differences, record
from trailer.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.db.models import QuerySet

    from trailer.access.subjects import Subject
    from trailer.policy import Actor

RESOURCES: Final = ("workspaces", "cpus", "memory_bytes", "gpus", "disk_bytes")
Limits = dict[str, float | None]
_NOUNS: Final = {
    "workspaces": "workspaces",
    "cpus": "CPUs",
    "memory_bytes": "of memory",
    "gpus": "GPUs",
    "disk_bytes": "of images and snapshots",
}
_COUNTED: Final = ("workspaces", "cpus", "gpus")
_REMEDIES: Final = {
    "workspaces": "Delete one",
    "disk_bytes": "Delete an image that is not needed",
}
_GIBIBYTE: Final = 1024**3


@dataclass(frozen=True)
class Need:
    """How much more of one resource is asked for, beside what is used already."""

    resource: str
    used: float
    wanted: float


def quota_of(subject: Subject) -> Limits:
    """Every resource, with its limit or None."""
    row = Quota.objects.filter(**_who(subject)).first()
    return limits_of(row) if row else dict.fromkeys(RESOURCES)


def limits_of(quota: Quota) -> Limits:
    found: Limits = {name: getattr(quota, name) for name in RESOURCES}
    cpus = found["cpus"]
    return found | {"cpus": None if cpus is None else float(cpus)}


def quota_replace(*, actor: Actor, subject: Subject, limits: Mapping[str, Any]) -> Limits:
    """What is not named has no limit. Nothing that runs is stopped by a lower one."""
    kind = "user" if isinstance(subject, User) else "group"
    policy.require(actor, f"{kind}.modify", subject)
    wanted = {name: limits.get(name) for name in RESOURCES}
    with transaction.atomic():
        before = quota_of(subject)
        if all(value is None for value in wanted.values()):
            Quota.objects.filter(**_who(subject)).delete()
        else:
            Quota.objects.update_or_create(**_who(subject), defaults=wanted)
        after = quota_of(subject)
        if changes := differences(before, after):
            record(f"{kind}.quota", subject, actor=actor, changes=changes)
    return after


def quotas_on(owner_id: Any) -> QuerySet[Quota]:
    """Those that count for what this user owns: the user's own, and those of the groups."""
    return Quota.objects.filter(held_by(owner_id)).order_by("pk")


def quotas_lock(owner_id: Any) -> list[Quota]:
    """Until the caller's transaction ends, nobody else counts against these."""
    return list(quotas_on(owner_id).select_for_update(of=("self",)))


def owned_under(quota: Quota) -> Q:
    """The filter of objects with an owner that count against this quota."""
    return Q(owner=quota.user_id) if quota.user_id else Q(owner__groups=quota.group_id)


def _limit(resource: str, limit: float) -> str:
    """The limit with its noun: `1 workspace`, `2 CPUs`, `3 GiB of memory`."""
    noun = _NOUNS[resource]
    if limit == 1 and resource in _COUNTED:
        noun = noun.removesuffix("s")
    return f"{amount(resource, limit)} {noun}"


def check_need(quota: Quota, need: Need, *, owner_id: Any, actor: Actor) -> None:
    limit = limits_of(quota)[need.resource]
    if limit is None or need.used + need.wanted <= limit:
        return
    name = need.resource
    remedy = _REMEDIES.get(name, "Stop another workspace, or ask for less")
    sentence = (
        f"{_whose(quota, owner_id, actor)} allows {_limit(name, limit)}; "
        f"{amount(name, need.used)} {'is' if need.used == 1 else 'are'} taken and this needs "
        f"{amount(name, need.wanted)} more. "
        f"{remedy}, or ask an administrator for a larger quota."
    )
    field = "name" if name in ("workspaces", "disk_bytes") else name
    raise Invalid(sentence, code="quota_exceeded", fields={field: [sentence]})


def needs_a_size(quota: Quota, resource: str, *, owner_id: Any, actor: Actor) -> Invalid:
    """Without a limit of its own a workspace could take everything."""
    limit = limits_of(quota)[resource] or 0
    sentence = (
        f"{_whose(quota, owner_id, actor)} allows {_limit(resource, limit)}, "
        f"so each workspace must say how much it takes. Set {resource}."
    )
    return Invalid(sentence, code="quota_exceeded", fields={resource: [sentence]})


def amount(resource: str, value: float) -> str:
    if resource.endswith("_bytes"):
        return f"{value / _GIBIBYTE:.3g} GiB"
    return f"{value:g}"


def _whose(quota: Quota, owner_id: Any, actor: Actor) -> str:
    if quota.group_id:
        return f"The quota of the group {quota.group}"
    return "Your quota" if getattr(actor, "pk", None) == owner_id else f"The quota of {quota.user}"


def _who(subject: Subject) -> dict[str, Any]:
    return {"user" if isinstance(subject, User) else "group": subject}
