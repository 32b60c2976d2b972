"""Deploy, sync and rollback: each asks the queue for a sync."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction

from trailer import policy
from trailer.audit.record import record
from trailer.errors import Conflict, Invalid
from trailer.revisions import check_revision
from trailer.rows import row_lock
from workspaces.stacks.choices import Trigger
from workspaces.stacks.models import Stack, StackRevision, Sync
from workspaces.stacks.sync.queue import sync_request

if TYPE_CHECKING:
    from uuid import UUID

    from trailer.policy import Actor

_SHORTEST_COMMIT = 7


def stack_deploy(*, actor: Actor, stack: Stack, expected_revision: int | None = None) -> Sync:
    """The newest commit, whatever the quick check would say; images are pulled again. A rollback's
    pin is released."""
    return _ask(actor, stack, Trigger.DEPLOY, expected_revision)


def stack_sync(*, actor: Actor, stack: Stack, expected_revision: int | None = None) -> Sync:
    """The quick check, and a full sync if that finds something."""
    return _ask(actor, stack, Trigger.SYNC, expected_revision)


def stack_rollback(
    *,
    actor: Actor,
    stack: Stack,
    revision: int | None = None,
    commit: str = "",
    sync_id: UUID | None = None,
    expected_revision: int | None = None,
) -> Sync:
    """To that revision, commit or sync; with none of them to the one before. Once there, it stays
    until somebody deploys."""
    policy.require(actor, "stack.modify", stack)
    with transaction.atomic():
        current = _locked(stack, expected_revision)
        target = rollback_target(current, revision=revision, commit=commit, sync_id=sync_id)
        change = {"field": "revision", "from": None, "to": target.number}
        record("stack.rollback", current, actor=actor, changes=[change])
        return sync_request(current.pk, trigger=Trigger.ROLLBACK, actor=actor, target=target)


def _ask(actor: Actor, stack: Stack, trigger: Trigger, expected_revision: int | None) -> Sync:
    policy.require(actor, "stack.modify", stack)
    with transaction.atomic():
        current = _locked(stack, expected_revision)
        if trigger == Trigger.DEPLOY:
            Stack.objects.filter(pk=current.pk).update(pinned=False, failed_commit="")
        record(f"stack.{trigger.value}", current, actor=actor)
        return sync_request(current.pk, trigger=trigger, actor=actor)


def _locked(stack: Stack, expected_revision: int | None) -> Stack:
    current = row_lock(Stack.objects.all(), stack.pk)
    check_revision(current.revision, expected_revision)
    if not current.enabled:
        raise Conflict(f"Stack {current.name} is disabled. Enable it first.", code="disabled")
    return current


def rollback_target(
    stack: Stack, *, revision: int | None, commit: str, sync_id: UUID | None
) -> StackRevision:
    if sum(1 for given in (revision is not None, bool(commit), sync_id is not None) if given) > 1:
        raise Invalid("Name a revision, a commit or a sync; one of them.")
    good = stack.revisions.filter(deployed_at__isnull=False)
    field, wanted = "revision", good
    if revision is not None:
        wanted = good.filter(number=revision)
    elif commit:
        field = "commit"
        if len(commit) < _SHORTEST_COMMIT:
            raise Invalid.field(field, f"Give at least {_SHORTEST_COMMIT} characters of it.")
        wanted = good.filter(commit__startswith=commit.lower())
    elif sync_id is not None:
        field, wanted = "sync", good.filter(syncs=sync_id)
    else:
        wanted = _before(stack, good)
    target = wanted.order_by("-number").first()
    if target is None:
        raise Invalid.field(
            field, "The stack never ran so. Its revisions are listed under revisions/."
        )
    return target


def _before(stack: Stack, good: Any) -> Any:
    if stack.deployed is None:
        raise Conflict(f"Stack {stack.name} was never deployed; there is nothing to go back to.")
    return good.filter(number__lt=stack.deployed.number)
