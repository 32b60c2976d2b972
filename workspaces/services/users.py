"""Who uses a volume, network or image, and taking it away from a workspace: for its owner."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction

from hosts.services.desired import host_desired_changed
from trailer import events, policy
from trailer.access.models import ObjectKind
from trailer.accounts.models import User
from trailer.audit.record import record
from trailer.errors import Conflict, Invalid, NotFound
from workspaces.choices import DesiredState
from workspaces.fields import fields_of
from workspaces.models import Workspace
from workspaces.rights import lost_by, problems_of
from workspaces.selectors import with_parts, workspace_get
from workspaces.services.change import change_prepare, change_save
from workspaces.services.ledger import UserEvent, event_write
from workspaces.services.locking import workspace_lock
from workspaces.services.rights import rights_problem, standing_for, uses_of

if TYPE_CHECKING:
    from uuid import UUID

    from django.db.models import QuerySet

    from trailer.policy import Actor

# How a workspace is found by what it uses.
_PATHS: Final = {
    ObjectKind.VOLUME.value: "mounts__volume",
    ObjectKind.NETWORK.value: "networks",
    ObjectKind.IMAGE.value: "image",
}


@dataclass(frozen=True, kw_only=True)
class ObjectUser:
    """`problem`: why this workspace gets no new container with the object; `lost` is who may not
    use it any more."""

    workspace: Workspace
    problem: str = ""
    evicted: bool = False
    lost: User | None = None


def users_of(obj: Any) -> list[ObjectUser]:
    """All workspaces with it, whoever may see them: for those who may share it."""
    rows = list(with_parts(_using(obj)).prefetch_related("attachments").order_by("name", "pk"))
    uses = []
    for row in rows:
        every = uses_of(row, row.host)
        same = tuple(use for use in every.objects if (use.kind, use.id) == (_kind(obj), obj.pk))
        uses.append(replace(every, objects=same, claims=()))
    standing = standing_for(uses, obj.host_id)
    found = []
    for row, one in zip(rows, uses, strict=True):
        lost = next(filter(None, (lost_by(use, standing) for use in one.objects)), None)
        found.append((row, one, lost))
    people = User.objects.in_bulk([lost for _, _, lost in found if lost is not None])
    return [
        ObjectUser(
            workspace=row,
            problem=" ".join(problems_of(one, standing)),
            evicted=any(use.evicted for use in one.objects),
            lost=people.get(lost) if lost is not None else None,
        )
        for row, one, lost in found
    ]


def still_using(obj: Any) -> list[tuple[User, list[Workspace]]]:
    """Those without a right to the object any more, and the workspaces that have it by theirs."""
    if _kind(obj) not in _PATHS:
        return []
    found: dict[Any, tuple[User, list[Workspace]]] = {}
    for user in users_of(obj):
        if user.lost is not None:
            found.setdefault(user.lost.pk, (user.lost, []))[1].append(user.workspace)
    return list(found.values())


def image_problem(workspace: Workspace) -> str:
    """Why its image may not be used for anything new; empty when it may. A snapshot would carry it
    along."""
    uses = uses_of(workspace, workspace.host)
    images = tuple(use for use in uses.objects if use.kind == ObjectKind.IMAGE)
    return rights_problem(replace(uses, objects=images, claims=()), workspace.host_id)


def evict(*, actor: Actor, obj: Any, workspace_id: UUID) -> Workspace:
    """The workspace stops, and gets no container before the object is out of it; its own data and
    settings stay. Also a service of a stack, and for somebody who may not see the workspace."""
    kind = _kind(obj)
    policy.require(actor, f"{kind}.evict", obj)
    with transaction.atomic():
        using = _using(obj).filter(pk=workspace_id).first()
        if using is None:
            raise Invalid.field("workspace", f"No such workspace uses the {kind} {obj.name}.")
        current = _locked(using)
        # It may have been handed over, or the workspace changed, while this waited.
        policy.require(actor, f"{kind}.evict", type(obj)._default_manager.get(pk=obj.pk))
        if not _mark(current, obj):
            raise Conflict(
                f"Workspace {current.name} is evicted from the {kind} {obj.name} already, or "
                "does not use it any more."
            )
        cause = f"Evicted from the {kind} {obj.name}."
        if current.desired_state == DesiredState.RUNNING:
            stopped = replace(fields_of(current), desired_state=DesiredState.STOPPED.value)
            change = change_prepare(actor=actor, workspace=_again(current), fields=stopped)
            change_save(change, actor=actor, kind=UserEvent.EVICTED, cause=cause)
        else:
            event_write(current, actor=actor, kind=UserEvent.EVICTED, cause=cause)
            host_desired_changed(current.host_id)
            events.publish("workspace", current.pk)
        told = {"field": "used_by", "from": f"{current.name} ({current.pk})", "to": None}
        record(f"{kind}.evict", obj, actor=actor, changes=[told])
        events.publish(kind, obj.pk)
        return workspace_get(current.pk)


def evicted_let_go(*, actor: Actor, obj: Any) -> None:
    """The object is being deleted: workspaces that were evicted from it go on without. Inside the
    caller's transaction, under the host's lock."""
    kind = _kind(obj)
    for user in _using(obj).order_by("pk"):
        current = _locked(user)
        fields = fields_of(current)
        if kind == ObjectKind.VOLUME:
            kept = tuple(mount for mount in fields.mounts if mount.volume_id != obj.pk)
            fields = replace(fields, mounts=kept)
        else:
            fields = replace(fields, networks=fields.networks - {obj.pk})
        change = change_prepare(actor=actor, workspace=current, fields=fields)
        cause = f"The {kind} {obj.name}, from which it was evicted, was deleted."
        change_save(change, actor=actor, kind=UserEvent.CHANGED, cause=cause)


def _mark(workspace: Workspace, obj: Any) -> bool:
    kind = _kind(obj)
    if kind == ObjectKind.VOLUME:
        return bool(workspace.mounts.filter(volume=obj.pk, evicted=False).update(evicted=True))
    if kind == ObjectKind.IMAGE:
        rows = Workspace.objects.filter(pk=workspace.pk, image=obj.pk, image_evicted=False)
        return bool(rows.update(image_evicted=True))
    if not workspace.networks.filter(pk=obj.pk).exists():
        return False
    row, _ = workspace.attachments.get_or_create(network_id=obj.pk)
    return bool(workspace.attachments.filter(pk=row.pk, evicted=False).update(evicted=True))


def _again(workspace: Workspace) -> Workspace:
    return workspace_get(workspace.pk)


def _locked(workspace: Workspace) -> Workspace:
    try:
        return workspace_lock(workspace, expected_revision=None)
    except NotFound as gone:
        raise Invalid.field("workspace", gone.message) from gone


def _using(obj: Any) -> QuerySet[Workspace]:
    # nosemgrep: unscoped-read (of whoever may share the object, who may know who uses it)
    return Workspace.objects.filter(**{_PATHS[_kind(obj)]: obj.pk}).distinct()


def _kind(obj: Any) -> str:
    return obj._meta.model_name or ""
