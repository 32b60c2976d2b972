"""Deliveries that were heard before: in the database, so that every web process knows them.

The sender's number is not signed: whoever caught a delivery can send it again under another. The
signed body is remembered too, when it names a commit; git servers never sign the same push twice.
A body without a commit says only "look", and its sender may say so as often as they like.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.utils import timezone

from workspaces.stacks.choices import SyncOutcome
from workspaces.stacks.models import WebhookDelivery

if TYPE_CHECKING:
    from workspaces.stacks.deliveries import Delivery
    from workspaces.stacks.models import Stack, Sync

WINDOW: Final = timedelta(days=7)
# Rows per stack; a delivery makes one or two.
KEPT: Final = 2000


def marks_of(delivery: Delivery) -> tuple[str, ...]:
    names = []
    if delivery.delivery_id:
        names.append(f"id\0{delivery.delivery_id}")
    if delivery.commit_id and delivery.signed_digest:
        names.append(f"body\0{delivery.signed_digest}")
    return tuple(hashlib.sha256(name.encode()).hexdigest() for name in names)


def delivery_before(stack: Stack, delivery: Delivery) -> WebhookDelivery | None:
    """The same one, heard within the window. One whose sync failed does not count: sending it
    again is how a person tries again. The caller holds the stack's lock."""
    since = timezone.now() - WINDOW
    rows = stack.deliveries.filter(mark__in=marks_of(delivery), received_at__gt=since)
    return rows.exclude(sync__outcome=SyncOutcome.FAILED).select_related("sync").first()


def delivery_remember(stack: Stack, delivery: Delivery, sync: Sync) -> None:
    """Together with its sync: what was not accepted may be sent again."""
    now = timezone.now()
    for mark in marks_of(delivery):
        WebhookDelivery.objects.update_or_create(
            stack=stack, mark=mark, defaults={"sync": sync, "received_at": now}
        )
    stack.deliveries.filter(received_at__lte=now - WINDOW).delete()
    newest = stack.deliveries.order_by("-pk").values_list("pk", flat=True)
    for last in newest[KEPT : KEPT + 1]:
        stack.deliveries.filter(pk__lte=last).delete()
