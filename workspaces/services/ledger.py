"""Ledger rows of what users did: one revision with the fields as they then were, one event."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec
from django.utils import timezone

from trailer.audit.record import record
from trailer.sealed import seal_mapping
from workspaces.fields import body_of
from workspaces.models import Event, Revision

if TYPE_CHECKING:
    from agent.protocol.report import FieldChange
    from trailer.policy import Actor
    from workspaces.fields import WorkspaceFields
    from workspaces.models import Workspace


class UserEvent(StrEnum):
    """What a person asked for; what the agent then did has kinds of its own (create, replace…)."""

    CREATED = "created"
    CLONED = "cloned"
    CHANGED = "changed"
    START = "start_requested"
    STOP = "stop_requested"
    REDEPLOY = "redeploy_requested"
    ROLLBACK = "rolled_back"
    SNAPSHOT = "snapshot_requested"
    TRANSFER = "transferred"
    EXTEND = "extended"
    EVICTED = "evicted"


class TimerEvent(StrEnum):
    """What schedules and idle stops tell beside starting and stopping."""

    WARNING = "stop_warning"
    REFUSED = "start_refused"


# The words of the audit, which are the same for every kind of object. An eviction is written down
# with the object that the workspace was evicted from.
_AUDITED = {
    UserEvent.CREATED: "workspace.create",
    UserEvent.CLONED: "workspace.clone",
    UserEvent.CHANGED: "workspace.update",
    UserEvent.START: "workspace.start",
    UserEvent.STOP: "workspace.stop",
    UserEvent.REDEPLOY: "workspace.redeploy",
    UserEvent.ROLLBACK: "workspace.rollback",
    UserEvent.SNAPSHOT: "workspace.snapshot",
    UserEvent.TRANSFER: "workspace.transfer",
    UserEvent.EXTEND: "workspace.extend",
}


def ledger_write(
    workspace: Workspace,
    fields: WorkspaceFields,
    *,
    actor: Actor,
    kind: UserEvent,
    cause: str,
    changes: tuple[FieldChange, ...] = (),
    by: str = "",
) -> None:
    """`by` names who it was when there is no actor."""
    revision = Revision(
        workspace=workspace,
        revision=workspace.revision,
        fields=body_of(fields),
        actor=actor,
        kind=kind.value,
    )
    revision.secret_env_token = seal_mapping(revision, "secret_env_token", fields.secret_env)
    revision.save(force_insert=True)
    event_write(workspace, actor=actor, kind=kind, cause=cause, changes=changes, by=by)


def event_write(
    workspace: Workspace,
    *,
    actor: Actor,
    kind: UserEvent,
    cause: str,
    changes: tuple[FieldChange, ...] = (),
    by: str = "",
) -> None:
    """For what leaves the fields as they are, and so makes no revision.

    Everything that a person does to a workspace but delete it passes here, and so is audited.
    """
    told = msgspec.to_builtins(changes)
    if kind in _AUDITED:
        record(_AUDITED[kind], workspace, actor=actor, changes=told, actor_name=by)
    Event.objects.create(
        workspace=workspace,
        at=timezone.now(),
        kind=kind.value,
        cause=cause,
        changes=told,
        actor=actor,
        actor_name=by,
        revision=workspace.revision,
    )


def timer_event_write(workspace: Workspace, kind: TimerEvent, *, cause: str, by: str) -> None:
    """Told, but nothing was done: no audit."""
    Event.objects.create(
        workspace=workspace,
        at=timezone.now(),
        kind=kind.value,
        cause=cause,
        actor_name=by,
        revision=workspace.revision,
    )
