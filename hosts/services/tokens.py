"""An agent's token is changed while it works: a new one is issued beside it and ends it when used.

Never more than two are good. Until the first use of the new one the old one works, so an answer
that was lost, or an agent that died before it had stored the new one, locks nobody out.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from hosts.models import AgentToken, Host
from trailer import events, secrets
from trailer.audit.record import record
from trailer.errors import Conflict
from trailer.rows import row_lock

if TYPE_CHECKING:
    from datetime import datetime

AGENT_NAME: Final = "agent"


def agent_token_is_due(token: AgentToken, now: datetime) -> bool:
    age: float = settings.TRAILER_AGENT_TOKEN_AGE
    return age > 0 and now - token.created_at >= timedelta(seconds=age)


def agent_token_issue(token: AgentToken) -> str:
    """A new one beside this one, which is in use. One that was issued before and never used is
    worth nothing any more: its holder never got it, or asks again because it was not stored."""
    if not agent_token_is_due(token, timezone.now()):
        raise Conflict("This agent token is not old enough to be replaced.", code="not_due")
    new = secrets.new_token("agent")
    with transaction.atomic():
        row_lock(Host.objects.all(), token.host_id)
        live = AgentToken.objects.filter(host_id=token.host_id, revoked_at__isnull=True)
        if not live.filter(pk=token.pk).exists():
            raise Conflict("This agent token was revoked meanwhile.", code="revoked")
        live.filter(is_unused=True).delete()
        AgentToken.objects.create(
            host_id=token.host_id, digest=secrets.digest(new), is_unused=True
        )
    return new


def agent_token_first_use(token: AgentToken) -> bool:
    """False when it was revoked, or another one was issued in its place, meanwhile."""
    with transaction.atomic():
        host = row_lock(Host.objects.all(), token.host_id)
        live = AgentToken.objects.filter(host=host, revoked_at__isnull=True)
        if live.filter(pk=token.pk, is_unused=True).update(is_unused=False):
            # Those that died earlier say nothing any more; a host has three rows at most.
            AgentToken.objects.filter(host=host, revoked_at__isnull=False).delete()
            live.exclude(pk=token.pk).update(revoked_at=timezone.now())
            record("host.token", host, actor_name=AGENT_NAME)
            events.renew(host.pk)
            return True
        # Another request of the same agent may have been first.
        return live.filter(pk=token.pk).exists()
