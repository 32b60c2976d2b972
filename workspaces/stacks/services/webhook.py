"""A push that a git server tells of: checked by its signature, then a sync like any other."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from django.db import transaction

from trailer.audit.record import record
from trailer.errors import ApplicationError, NotFound, Unavailable
from trailer.rows import row_lock
from trailer.sealed import unseal
from workspaces.stacks.choices import Trigger
from workspaces.stacks.deliveries import Verdict, read_delivery
from workspaces.stacks.file.secret import Secret
from workspaces.stacks.models import Stack
from workspaces.stacks.services.replays import delivery_before, delivery_remember
from workspaces.stacks.sync.queue import sync_request

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from workspaces.stacks.models import Sync, WebhookDelivery


logger = logging.getLogger(__name__)


class BadSignature(ApplicationError):
    code = "bad_signature"
    status = 401


def webhook_receive(
    stack_id: UUID, headers: Mapping[str, str], body: bytes
) -> tuple[Sync | None, str]:
    """The sync that was asked for, or why none was, perhaps with the earlier one."""
    stack = Stack.objects.filter(pk=stack_id).first()
    if stack is None:
        raise NotFound("There is no such stack.")
    if not stack.webhook_secret_token:
        raise Unavailable("This stack has no webhook secret. Set one first.", code="no_secret")
    secret = Secret(unseal(stack, "webhook_secret_token"))
    delivery = read_delivery(headers, body, secret=secret, branch=stack.branch)
    if delivery.verdict == Verdict.BAD_SIGNATURE:
        # In the log, not in the audit: whoever knows the address could write that full.
        logger.warning("webhook with a bad signature", extra={"stack": str(stack.pk)})
        raise BadSignature(delivery.reason)
    if delivery.verdict == Verdict.IGNORED:
        return None, delivery.reason
    if not stack.enabled:
        return None, f"The stack {stack.name} is disabled."
    with transaction.atomic():
        # One at a time: the same delivery may reach two processes at once.
        stack = row_lock(Stack.objects.all(), stack.pk)
        before = delivery_before(stack, delivery)
        if before is not None:
            return before.sync, f"This delivery was received already, at {_at(before)}."
        record("stack.webhook", stack, actor_name="webhook")
        sync = sync_request(stack.pk, trigger=Trigger.WEBHOOK)
        delivery_remember(stack, delivery, sync)
        return sync, ""


def _at(delivery: WebhookDelivery) -> str:
    return f"{delivery.received_at:%Y-%m-%d %H:%M:%S} UTC"
