"""What workspaces take of their owner's quotas, and whether there is room for more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db.models import Count, Sum

from images.services.quota import disk_used
from trailer.access.quotas import (
    RESOURCES,
    Need,
    check_need,
    limits_of,
    needs_a_size,
    owned_under,
    quotas_lock,
    quotas_on,
)
from workspaces.choices import DesiredState
from workspaces.models import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from trailer.access.models import Quota
    from trailer.policy import Actor
    from workspaces.fields import WorkspaceFields

# None: runs without a limit of its own, and so may take everything.
Demand = dict[str, float | None]
_NOTHING: Final[Demand] = dict.fromkeys(("workspaces", "cpus", "memory_bytes", "gpus"), 0)


def demand_of_fields(fields: WorkspaceFields) -> Demand:
    gpus = fields.gpus
    return _demand(
        fields.desired_state,
        cpus=fields.cpus,
        memory_bytes=fields.memory_bytes,
        gpus=0 if gpus is None else len(gpus.device_ids) or gpus.count,
    )


def demand_of_row(workspace: Workspace) -> Demand:
    return _demand(
        workspace.desired_state,
        cpus=None if workspace.cpus is None else float(workspace.cpus),
        memory_bytes=workspace.memory_bytes,
        gpus=_gpu_count(workspace.gpus),
    )


def check_quota(
    *,
    actor: Actor,
    owner_id: Any,
    wanted: Demand,
    before: Demand = _NOTHING,
    workspace_id: UUID | None = None,
) -> None:
    """Inside the caller's transaction: whoever else counts against the same quotas waits.

    Only what rises is judged, so a quota that was lowered never blocks asking for less.
    """
    _check(quotas_lock(owner_id), actor, owner_id, wanted, before, workspace_id)


def preview_quota(
    *, actor: Actor, owner_id: Any, wanted: Demand, before: Demand, workspace_id: UUID
) -> None:
    """The same answer without a lock, for a plan."""
    _check(quotas_on(owner_id), actor, owner_id, wanted, before, workspace_id)


def usage_of(quota: Quota, *, other_than: UUID | None = None) -> dict[str, float]:
    """What is taken of each resource."""
    owned = Workspace.objects.filter(owned_under(quota)).order_by()
    if other_than is not None:
        owned = owned.exclude(pk=other_than)
    running = owned.filter(desired_state=DesiredState.RUNNING)
    sums = running.aggregate(cpus=Sum("cpus"), memory_bytes=Sum("memory_bytes"))
    with_gpus = running.exclude(gpus={}).values_list("gpus", flat=True)
    return {
        "workspaces": owned.aggregate(count=Count("pk", distinct=True))["count"],
        "cpus": float(sums["cpus"] or 0),
        "memory_bytes": int(sums["memory_bytes"] or 0),
        "gpus": sum(_gpu_count(gpus) for gpus in with_gpus),
        "disk_bytes": disk_used(quota),
    }


def quotas_told(owner_id: Any) -> list[dict[str, Any]]:
    """Every quota that counts for this user, with what is taken; for pages and the API."""
    return [
        {
            "subject": "user" if quota.user_id else "group",
            "name": str(quota.user or quota.group),
            "limits": limits_of(quota),
            "used": usage_of(quota),
        }
        for quota in quotas_on(owner_id).select_related("user", "group")
    ]


def _check(
    quotas: Iterable[Quota],
    actor: Actor,
    owner_id: Any,
    wanted: Demand,
    before: Demand,
    workspace_id: UUID | None,
) -> None:
    rising = [name for name in RESOURCES if name in wanted and _rises(name, wanted, before)]
    if not rising:
        return
    for quota in quotas:
        limits = limits_of(quota)
        limited = [name for name in rising if limits[name] is not None]
        used = usage_of(quota, other_than=workspace_id) if limited else {}
        for name in limited:
            asked = wanted[name]
            if asked is None:
                raise needs_a_size(quota, name, owner_id=owner_id, actor=actor)
            check_need(quota, Need(name, used[name], asked), owner_id=owner_id, actor=actor)


def _rises(name: str, wanted: Demand, before: Demand) -> bool:
    new, old = wanted[name], before[name]
    if new is None or old is None:
        return new is None and old is not None
    return new > old


def _demand(state: str, *, cpus: float | None, memory_bytes: int | None, gpus: int) -> Demand:
    if state != DesiredState.RUNNING:
        return {**_NOTHING, "workspaces": 1}
    return {"workspaces": 1, "cpus": cpus, "memory_bytes": memory_bytes, "gpus": gpus}


def _gpu_count(gpus: dict[str, Any]) -> int:
    return len(gpus.get("device_ids") or ()) or int(gpus.get("count") or 0)
