"""Hosts to put something on: those that answer come first, and each says if it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils import timezone

from hosts.choices import HostStatus
from hosts.models import Host
from hosts.status import host_badge
from trailer import policy

if TYPE_CHECKING:
    from trailer.accounts.models import User


def hosts_to_choose(user: User, action: str) -> list[tuple[str, str]]:
    """Id and label of every enabled host on which the user may do this."""
    now = timezone.now()
    hosts = Host.objects.filter(policy.permitted(action, user), enabled=True)
    badges = [(host_badge(host, now), host) for host in hosts]
    badges.sort(key=lambda pair: pair[0].value != HostStatus.ONLINE)
    return [
        (
            str(host.pk),
            host.name if badge.value == HostStatus.ONLINE else f"{host.name} ({badge.label})",
        )
        for badge, host in badges
    ]
