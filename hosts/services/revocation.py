"""Shuts a host's agent out: a machine that was stolen, or lent, must not hear from us again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from django.utils import timezone

from hosts.models import AgentToken, Enrolment, Host
from trailer import events, policy
from trailer.audit.record import record
from trailer.rows import row_lock

if TYPE_CHECKING:
    from trailer.policy import Actor


def host_revoke(*, actor: Actor, host: Host) -> Host:
    """Its token, and lines to paste that nobody used yet, are worth nothing from now on. An agent
    that is refused touches nothing; a new enrolment brings the host back with all it runs."""
    policy.require(actor, "host.modify", host)
    with transaction.atomic():
        current = row_lock(Host.objects.all(), host.pk)
        now = timezone.now()
        Enrolment.objects.filter(host=current, used_at__isnull=True).delete()
        AgentToken.objects.filter(host=current, revoked_at__isnull=True).update(revoked_at=now)
        Host.objects.filter(pk=current.pk).update(agent_revoked_at=now)
        record("host.revoke", current, actor=actor)
        events.publish("host", current.pk)
        events.publish_freshness(current.pk)
        events.dismiss(current.pk)
    return Host.objects.get(pk=current.pk)
