"""Taking and giving back GPUs; every write happens under the host's lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from hosts.models import Host
from hosts.services.desired import host_desired_changed
from trailer import events
from trailer.errors import Invalid
from workspaces.choices import DesiredState
from workspaces.fields import fields_of
from workspaces.gpus import Held, cards_of, choose, fits
from workspaces.models import GpuHold, Workspace
from workspaces.selectors import with_parts

if TYPE_CHECKING:
    from uuid import UUID

    from workspaces.fields import WorkspaceFields


def gpus_for(
    fields: WorkspaceFields, host: Host, workspace: Workspace | None, *, judge: bool
) -> tuple[str, ...]:
    """The cards this workspace is to have, written by nobody yet. Without `judge` what it has
    stays: a card that broke must not block an unrelated edit. A host that was never heard has no
    known cards; its first heartbeat settles who gets them."""
    wish = fields.gpus
    present = () if workspace is None else held_by(workspace)
    cards = cards_of(host.gpus)
    if wish is None or host.last_heartbeat is None:
        return ()
    if fields.desired_state == DesiredState.STOPPED:
        if judge:
            # It takes none, so nobody is in its way; but the host has to have what it asks for.
            choose(wish, cards, (), host_name=host.name)
        return present if fits(wish, present, cards) else ()
    if not judge:
        return present
    others = holds_of_others(host.pk, None if workspace is None else workspace.pk)
    return choose(wish, cards, others, host_name=host.name, before=present)


def held_by(workspace: Workspace) -> tuple[str, ...]:
    return tuple(sorted(hold.gpu for hold in workspace.gpu_holds.all()))


def holds_of_others(host_id: UUID, workspace_id: UUID | None) -> list[Held]:
    rows = GpuHold.objects.active().filter(host_id=host_id)
    if workspace_id is not None:
        rows = rows.exclude(workspace_id=workspace_id)
    told = rows.order_by("gpu", "workspace__name").values_list("gpu", "workspace__name", "shared")
    return [Held(gpu=gpu, workspace=name, shared=shared) for gpu, name, shared in told]


def holds_write(workspace: Workspace, gpu_ids: tuple[str, ...], *, shared: bool) -> None:
    present = {(hold.gpu, hold.shared) for hold in workspace.gpu_holds.all()}
    if present == {(gpu, shared) for gpu in gpu_ids}:
        return
    workspace.gpu_holds.all().delete()
    GpuHold.objects.bulk_create(
        GpuHold(host_id=workspace.host_id, workspace=workspace, gpu=gpu, shared=shared)
        for gpu in gpu_ids
    )


def gpu_problem(fields: WorkspaceFields, host: Host, workspace: Workspace) -> str:
    """Why a workspace that should run may not: it has no card, and nobody gives one up."""
    running = fields.desired_state == DesiredState.RUNNING
    if not running or fields.gpus is None or host.last_heartbeat is None or held_by(workspace):
        return ""
    try:
        gpus_for(fields, host, workspace, judge=True)
    except Invalid as refusal:
        return refusal.message
    return ""


def holds_settle(host: Host) -> int:
    """Cards for those that should run and have none yet: made before the host was heard, or in
    want of a card that is free by now. Oldest first; who gets none goes on waiting."""
    waiting = (
        Workspace.objects.filter(
            host_id=host.pk, desired_state=DesiredState.RUNNING, gpu_holds__isnull=True
        )
        .exclude(gpus={})
        .order_by("created_at", "pk")
    )
    if not waiting.exists():
        return 0
    settled = 0
    with transaction.atomic():
        current = Host.objects.select_for_update().get(pk=host.pk)
        for workspace in with_parts(waiting):
            fields = fields_of(workspace)
            try:
                gpu_ids = gpus_for(fields, current, workspace, judge=True)
            except Invalid:
                continue
            if gpu_ids and fields.gpus is not None:
                holds_write(workspace, gpu_ids, shared=fields.gpus.shared)
                events.publish("workspace", workspace.pk)
                settled += 1
        if settled:
            host_desired_changed(host.pk)
    return settled
