"""The queue of syncs: at most one runs and one waits per stack; asking again joins the latter."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Max, Q
from django.utils import timezone

from trailer import events
from trailer.jobs import Job, enqueue
from trailer.rows import row_lock
from workspaces.stacks.choices import FORCING_TRIGGERS, Phase, StackStatus, Trigger
from workspaces.stacks.models import Stack, Sync

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from trailer.policy import Actor
    from workspaces.stacks.models import StackRevision

KEPT_SYNCS = 100


def sync_request(
    stack_id: UUID,
    *,
    trigger: Trigger,
    actor: Actor = None,
    target: StackRevision | None = None,
) -> Sync:
    """Inside or outside a transaction. While a sync runs, the new one waits behind it: a commit
    that arrives after the files were fetched is not lost."""
    forced = trigger in FORCING_TRIGGERS
    with transaction.atomic():
        stack = row_lock(Stack.objects.all(), stack_id)
        waiting = stack.syncs.select_for_update().filter(phase=Phase.QUEUED).first()
        if waiting is None:
            waiting = _insert(stack, trigger=trigger, actor=actor, target=target, forced=forced)
        else:
            _join(waiting, trigger=trigger, actor=actor, target=target, forced=forced)
        if not running_sync(stack):
            # Until its turn comes; a sync under way finds the waiting one when it ends.
            Stack.objects.filter(pk=stack.pk).update(
                due_at=timezone.now(), status=StackStatus.SYNCING
            )
        events.publish("stack", stack.pk)
        enqueue(Job.WORK_STACKS)
    return Sync.objects.get(pk=waiting.pk)


def running_sync(stack: Stack) -> Sync | None:
    return stack.syncs.exclude(phase__in=[Phase.QUEUED, Phase.DONE]).first()


def polls_bring_forward(now: datetime) -> int:
    """The server starts: every stack is looked at again, whatever its interval says."""
    return Stack.objects.filter(enabled=True).update(poll_at=now)


def next_poll(stack: Stack, now: datetime) -> datetime | None:
    return now + timedelta(seconds=stack.poll_interval) if stack.poll_interval else None


def sync_insert_poll(stack: Stack, trigger: Trigger) -> Sync:
    """A look found something: the poll becomes a sync, under the caller's lease and lock."""
    return _insert(stack, trigger=trigger, actor=None, target=None, forced=False)


def _insert(
    stack: Stack,
    *,
    trigger: Trigger,
    actor: Actor,
    target: StackRevision | None,
    forced: bool,
) -> Sync:
    number = (stack.syncs.aggregate(last=Max("number"))["last"] or 0) + 1
    old = Q(number__lte=number - KEPT_SYNCS, phase=Phase.DONE)
    stack.syncs.filter(old).delete()
    return Sync.objects.create(
        stack=stack,
        number=number,
        trigger=trigger,
        actor=actor,
        target=target,
        forced=forced,
        phase_at=timezone.now(),
    )


def _join(
    waiting: Sync,
    *,
    trigger: Trigger,
    actor: Actor,
    target: StackRevision | None,
    forced: bool,
) -> None:
    """What a person asked last decides where to; what was forced stays forced. A push never takes
    the place of a rollback: after that nothing newer is deployed anyway."""
    if waiting.target_id and trigger not in (Trigger.DEPLOY, Trigger.ROLLBACK):
        return
    columns: dict[str, object] = {"forced": waiting.forced or forced}
    if trigger in FORCING_TRIGGERS or trigger == Trigger.ROLLBACK:
        columns |= {"trigger": trigger, "actor": actor, "target": target}
    Sync.objects.filter(pk=waiting.pk).update(**columns)
