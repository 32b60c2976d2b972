"""How an agent gets in: a one-time token is made, pasted, and exchanged for the agent's own."""

from __future__ import annotations

import secrets as entropy
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from hosts.agent_images.offer import agent_offer
from hosts.models import AgentToken, Enrolment, Host
from hosts.server_address import own_address_warning, reach, read_server_url
from hosts.services.tokens import AGENT_NAME
from trailer import policy, secrets
from trailer.audit.record import record
from trailer.errors import NotAllowed
from trailer.rows import row_lock
from trailer.sealed import seal

if TYPE_CHECKING:
    from trailer.policy import Actor

LIFETIME: Final = timedelta(minutes=15)


@dataclass(frozen=True)
class NewEnrolment:
    """Shown once; the database keeps only the token's digest. `digests`: of the archives that the
    line loads from this server, by architecture. `problem`: what is wrong with the image.
    `server_warning`: why an agent on another machine would not find this server at `server_url`;
    `server_answers`: whether it answered there, None where nobody asked."""

    token: str
    expires_at: datetime
    command: str
    image: str
    digests: dict[str, str]
    problem: str
    server_url: str
    server_warning: str
    server_answers: bool | None


def enrolment_create(*, actor: Actor, host: Host, server_url: str = "") -> NewEnrolment:
    """`server_url`: the address at which that machine reaches this server, which is asked there
    whether it is this one; default: the public one."""
    policy.require(actor, "host.modify", host)
    url = read_server_url(server_url) if server_url else settings.TRAILER_PUBLIC_URL
    offer = agent_offer()
    token = secrets.new_token("enrol")
    now = timezone.now()
    with transaction.atomic():
        # Used and expired ones say nothing any more.
        Enrolment.objects.filter(host=host, expires_at__lt=now).delete()
        row = Enrolment.objects.create(
            host=host, digest=secrets.digest(token), expires_at=now + LIFETIME, created_by=actor
        )
        record("host.enrol", host, actor=actor)
    warning, answers = own_address_warning(url), None
    if server_url and not warning:
        warning = reach(url, token)
        answers = not warning
    return NewEnrolment(
        token=token,
        expires_at=row.expires_at,
        command=offer.line(token, url),
        image=offer.image,
        digests=offer.digests,
        problem=offer.problem,
        server_url=url,
        server_warning=warning,
        server_answers=answers,
    )


def enrolment_is_open(token: str) -> bool:
    """True while the token may still be redeemed; asking spends nothing."""
    return Enrolment.objects.filter(
        digest=secrets.digest(token), used_at__isnull=True, expires_at__gt=timezone.now()
    ).exists()


def enrolment_redeem(token: str) -> tuple[str, Host]:
    """A one-time token for an agent token; the guarded update lets exactly one through."""
    now = timezone.now()
    with transaction.atomic():
        taken = Enrolment.objects.filter(
            digest=secrets.digest(token), used_at__isnull=True, expires_at__gt=now
        ).update(used_at=now)
        if taken != 1:
            raise NotAllowed(
                "This enrolment token is unknown, used or expired. "
                "Make a new one on the host's page.",
                code="enrolment_refused",
            )
        enrolment = Enrolment.objects.select_related("host").get(digest=secrets.digest(token))
        # Whoever holds the token acts; the one who made it is on the row that says so.
        record("host.enrolled", enrolment.host, actor_name=AGENT_NAME)
        return agent_token_create(enrolment.host), Host.objects.get(pk=enrolment.host_id)


def agent_token_create(host: Host) -> str:
    """A new token for the host's one agent; earlier ones stop working. Makes the key if needed."""
    token = secrets.new_token("agent")
    with transaction.atomic():
        current = row_lock(Host.objects.all(), host.pk)
        if not current.host_key:
            key = seal(current, "host_key", entropy.token_urlsafe(32))
            Host.objects.filter(pk=host.pk, host_key="").update(host_key=key)
        Host.objects.filter(pk=host.pk).update(agent_revoked_at=None)
        AgentToken.objects.filter(host=current, revoked_at__isnull=True).update(
            revoked_at=timezone.now()
        )
        AgentToken.objects.create(host=current, digest=secrets.digest(token))
    return token
