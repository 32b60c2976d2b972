"""Reading stacks with their services, needs and newest sync; nothing here writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Max

from workspaces.models import Workspace
from workspaces.stacks.models import Sync
from workspaces.stacks.needs.catalogue import need_kinds
from workspaces.stacks.sync.names import is_derived

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from workspaces.stacks.models import Stack


@dataclass(frozen=True, kw_only=True)
class StackView:
    """A stack with what is shown beside it."""

    stack: Stack
    services: list[Workspace]
    needs: list[Workspace]
    last_sync: Sync | None


def stack_views(stacks: Iterable[Stack]) -> list[StackView]:
    """In a fixed number of queries."""
    rows = list(stacks)
    ids = [stack.pk for stack in rows]
    members: dict[UUID | None, list[Workspace]] = {pk: [] for pk in ids}
    found = Workspace.objects.filter(stack__in=ids).select_related("image", "host")
    for workspace in found.prefetch_related("mounts__volume").order_by("service"):
        members[workspace.stack].append(workspace)
    newest = Sync.objects.filter(stack__in=ids).values("stack").annotate(last=Max("number"))
    numbers = {row["stack"]: row["last"] for row in newest}
    syncs = {
        sync.stack_id: sync
        for sync in Sync.objects.filter(stack__in=ids, number__in=set(numbers.values()))
        .select_related("actor", "revision")
        .defer("log")
        if numbers[sync.stack_id] == sync.number
    }
    return [_view(stack, members[stack.pk], syncs.get(stack.pk)) for stack in rows]


def _view(stack: Stack, members: list[Workspace], last_sync: Sync | None) -> StackView:
    needs = [workspace for workspace in members if _is_need(workspace, stack)]
    services = [workspace for workspace in members if workspace not in needs]
    return StackView(stack=stack, services=services, needs=needs, last_sync=last_sync)


def _is_need(workspace: Workspace, stack: Stack) -> bool:
    """A need is called like its kind and mounts the volume of that kind."""
    kind = need_kinds().get(workspace.service)
    if kind is None:
        return False
    wanted = f"{stack.name}-{kind.volume}"
    return any(is_derived(mount.volume.name, wanted) for mount in workspace.mounts.all())
