"""Creating, changing and deleting stacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack, cast

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from hosts.models import Host
from hosts.services.networks import network_delete
from trailer import events, policy
from trailer.access.grants import grants_forget
from trailer.audit.record import differences, record
from trailer.errors import Invalid
from trailer.revisions import check_revision
from trailer.rows import row_lock
from trailer.sealed import seal, unseal_mapping
from workspaces.models import Workspace
from workspaces.services.delete import workspace_remove
from workspaces.services.locking import workspace_lock
from workspaces.stacks.choices import Trigger
from workspaces.stacks.file.identity import new_identity
from workspaces.stacks.git.address import is_same_server
from workspaces.stacks.models import Stack
from workspaces.stacks.services.fields import (
    ORIGIN,
    PLAIN,
    SOURCE,
    StackFields,
    check_stack,
    write_fields,
)
from workspaces.stacks.sync.queue import next_poll, sync_request

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trailer.policy import Actor

_TOKENS = ("credential_token", "webhook_secret_token", "secret_variables_token")


def stack_create(*, actor: Actor, host: Host, name: str, **fields: Unpack[StackFields]) -> Stack:
    """Its first sync is queued at once."""
    policy.require(actor, "stack.create")
    policy.require(actor, "host.workspaces", host)
    identity = new_identity()
    stack = Stack(
        owner=actor,
        source_by=actor,
        host=host,
        name=name,
        recipient=identity.recipient,
    )
    stack.identity_token = seal(stack, "identity_token", identity.private.reveal())
    write_fields(stack, fields)
    check_stack(stack)
    with transaction.atomic():
        row_lock(Host.objects.all(), host.pk)
        _check_name_is_free(stack)
        stack.save(force_insert=True)
        record("stack.create", stack, actor=actor, changes=differences({}, _told(stack, fields)))
        events.publish("stack", stack.pk)
        if stack.enabled:
            sync_request(stack.pk, trigger=Trigger.CREATED, actor=actor)
    return Stack.objects.get(pk=stack.pk)


def stack_update(
    *,
    actor: Actor,
    stack: Stack,
    expected_revision: int | None = None,
    **fields: Unpack[StackFields],
) -> Stack:
    """What it is made from changed: a sync follows. Name and host stay as they are."""
    policy.require(actor, "stack.modify", stack)
    with transaction.atomic():
        current = row_lock(Stack.objects.all(), stack.pk)
        # It may have been handed over meanwhile.
        policy.require(actor, "stack.modify", current)
        check_revision(current.revision, expected_revision)
        before = {name: getattr(current, name) for name in PLAIN}
        origin = current.origin
        changed = write_fields(current, fields)
        if not changed:
            return current
        if changed & ORIGIN:
            policy.require(actor, "stack.source", current)
        check_stack(current)
        if "credential" not in fields:
            _check_credential_stays(current, before["repository"])
        now = timezone.now()
        columns = {name: getattr(current, name) for name in (*PLAIN, *_TOKENS)}
        if "poll_interval" in changed or "enabled" in changed:
            columns["poll_at"] = next_poll(current, now) if current.enabled else None
        if changed & ORIGIN:
            columns["source_by"] = actor
        if current.origin != origin:
            # What came up badly came from somewhere else.
            columns["failed_commit"] = ""
        Stack.objects.filter(pk=current.pk).update(
            **columns, revision=F("revision") + 1, updated_at=now
        )
        changes = differences(before, _told(current, fields, changed))
        record("stack.update", current, actor=actor, changes=changes)
        events.publish("stack", current.pk)
        if current.enabled and (changed & SOURCE or "enabled" in changed):
            sync_request(current.pk, trigger=Trigger.CHANGED, actor=actor)
    return Stack.objects.get(pk=stack.pk)


def stack_delete(*, actor: Actor, stack: Stack, expected_revision: int | None = None) -> None:
    """Containers and networks of the stack go; volumes, with the data of its needs, and images
    stay: they have deletions of their own."""
    policy.require(actor, "stack.delete", stack)
    with transaction.atomic():
        current = row_lock(Stack.objects.select_related("host", "owner"), stack.pk)
        policy.require(actor, "stack.delete", current)
        check_revision(current.revision, expected_revision)
        row_lock(Host.objects.all(), current.host_id)
        for workspace in Workspace.objects.filter(stack=current.pk).order_by("name"):
            locked = workspace_lock(workspace, expected_revision=None)
            workspace_remove(locked, actor=actor)
        for row in current.networks.select_related("network"):
            if not row.network.workspaces.exists():
                network_delete(actor=current.owner, network=row.network)
        grants_forget(current)
        record("stack.delete", current, actor=actor)
        events.publish("stack", current.pk, deleted=True)
        current.delete()


def _check_credential_stays(stack: Stack, before: str) -> None:
    """It was given for one server; whoever may name another must not have it sent there."""
    if unseal_mapping(stack, "credential_token") and not is_same_server(stack.repository, before):
        raise Invalid.field(
            "credential",
            "The stored credential is for the server of the repository before. Give one for the "
            "new server, or forget it (null).",
        )


def _check_name_is_free(stack: Stack) -> None:
    if Stack.objects.filter(host=stack.host_id, name=stack.name).exists():
        raise Invalid.field(
            "name", f"This host has a stack named {stack.name} already. Choose another name."
        )


def _told(
    stack: Stack, fields: StackFields, changed: Iterable[str] | None = None
) -> dict[str, Any]:
    """For the audit, which masks what is secret by its name."""
    given = cast("dict[str, Any]", fields)
    names = set(given) if changed is None else set(changed)
    plain = {name: getattr(stack, name) for name in PLAIN if name in names}
    return plain | {name: given[name] for name in names if name not in PLAIN}
