"""The quick check's third look: the host compares the stack's images with their registries.

Nobody waits for it. A registry that has something newer makes the host pull that and replace the
services that use it; one that does not answer changes nothing.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from images.selectors import check_refusal
from images.services.checks import checks_request
from workspaces.stacks.models import Stack

if TYPE_CHECKING:
    from datetime import datetime

# However often somebody asks.
SHORTEST: Final = timedelta(seconds=10)


def ask_registries(stack: Stack, now: datetime, *, by_hand: bool) -> list[str]:
    """Inside a transaction that holds the stack; the references that will be compared."""
    if not is_due(stack, now, by_hand=by_hand):
        return []
    used = stack.images.filter(image__workspaces__isnull=False).select_related("image").distinct()
    watched = [row for row in used.order_by("reference") if not check_refusal(row.image)]
    if watched:
        checks_request(stack.host_id, [row.image_id for row in watched])
        Stack.objects.filter(pk=stack.pk).update(registries_asked_at=now)
    return [row.reference for row in watched]


def is_due(stack: Stack, now: datetime, *, by_hand: bool) -> bool:
    """A poll leaves it to the host's own looks, unless those are rarer. Needs the stack's host."""
    if stack.registries_asked_at and now - stack.registries_asked_at < SHORTEST:
        return False
    return by_hand or 0 < stack.poll_interval < stack.host.update_interval
