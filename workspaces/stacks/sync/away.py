"""Hosts that take no part in a deployment now: silent or disabled ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.utils import timezone

from hosts.choices import HostStatus
from hosts.status import host_status

if TYPE_CHECKING:
    from workspaces.stacks.models import Stack
    from workspaces.stacks.sync.work import Work

# Between two looks whether such a host is back.
AWAY_SECONDS: Final = 2.0


def is_host_disabled(work: Work, stack: Stack) -> bool:
    """Before anything was deployed a silent host only makes an image late; a disabled one is
    waited for."""
    said = stack.message in (_sentence(stack, "is disabled"), _sentence(stack, "does not answer"))
    return (not stack.host.enabled or said) and is_host_away(work, stack)


def is_host_away(work: Work, stack: Stack) -> bool:
    """Of a host that is away nothing can be learned about a commit: it is waited for, and the
    time that services have to come up begins when it is back."""
    now = timezone.now()
    status = host_status(stack.host, now)
    why = "" if status == HostStatus.ONLINE else "does not answer"
    if status == HostStatus.DISABLED:
        why = "is disabled"
    sentence = _sentence(stack, why)
    with work.held():
        if why:
            work.set(phase_at=now)
        if stack.message != (sentence if why else ""):
            work.set_stack(message=sentence if why else "")
    if why and stack.message != sentence:
        work.log(sentence)
    return bool(why)


def _sentence(stack: Stack, why: str) -> str:
    return f"The host {stack.host.name} {why}. The sync goes on when it is back."
