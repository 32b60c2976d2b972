"""Who works on a stack: a lease in the database, so that a killed worker's place is taken over."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q

from workspaces.stacks.models import Stack, StackQueue

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from django.db.models import QuerySet

# Longer than any step takes that only reads and writes the database.
LEASE: Final = timedelta(seconds=20)
# How much longer than git as a whole may take: names are looked up, results are written.
_GIT_TIMES: Final = 2.5


class LeaseLost(Exception):
    """Somebody else has taken the stack over, or it is gone: whoever sees this stops."""


@dataclass(frozen=True)
class Lease:
    stack_id: UUID
    token: UUID


def claim(now: datetime) -> Lease | None:
    """The stack that has waited longest, or none: nothing is due, or enough are worked on."""
    # Asked every second, mostly for nothing: that must not take the lock of everybody who writes.
    if not is_any_due(now):
        return None
    with transaction.atomic():
        StackQueue.objects.get_or_create(pk=1)
        list(StackQueue.objects.select_for_update().filter(pk=1))
        if Stack.objects.filter(lease_until__gt=now).count() >= settings.TRAILER_STACK_PARALLEL:
            return None
        pk = _due(now).values_list("pk", flat=True).first()
        if pk is None:
            return None
        lease = Lease(stack_id=pk, token=uuid.uuid4())
        Stack.objects.filter(pk=pk).update(lease_token=lease.token, lease_until=now + LEASE)
    return lease


def is_any_due(now: datetime) -> bool:
    return _due(now).exists()


def hold(lease: Lease, now: datetime, *, span: timedelta = LEASE) -> None:
    """Locks the stack's row for the caller's transaction, by writing to it: nobody else works on
    it meanwhile.

    Every write of a sync happens under it, so that a worker that was thought dead and wakes up
    late changes nothing.
    """
    rows = Stack.objects.filter(pk=lease.stack_id, lease_token=lease.token)
    if not rows.update(lease_until=now + span):
        raise LeaseLost


def hold_for_git(lease: Lease, now: datetime) -> None:
    """Before a step that talks to a repository: that may take its time."""
    longest = timedelta(seconds=_GIT_TIMES * settings.TRAILER_GIT_TIMEOUT)
    hold(lease, now, span=max(LEASE, longest))


def leases_forget() -> None:
    """The only server there is starts: whoever held a lease is gone."""
    Stack.objects.filter(lease_token__isnull=False).update(lease_token=None, lease_until=None)


def release(lease: Lease) -> None:
    """Nothing to do for a lease that was lost."""
    Stack.objects.filter(pk=lease.stack_id, lease_token=lease.token).update(
        lease_token=None, lease_until=None
    )


def _due(now: datetime) -> QuerySet[Stack]:
    """Open syncs go before polls. A stack with an open sync is not polled: it is due when that
    sync says so, or waiting for the next try would be no waiting."""
    free = Q(lease_until__isnull=True) | Q(lease_until__lte=now)
    waiting = Q(due_at__lte=now) | Q(due_at=None, poll_at__lte=now, enabled=True)
    return Stack.objects.filter(free, waiting).order_by(
        F("due_at").asc(nulls_last=True), "poll_at", "pk"
    )
