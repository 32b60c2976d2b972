"""Waves of a rollout, and when one host has got through; pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from agent.protocol import image_refs
from agent.protocol.image_refs import is_same_image
from agent.protocol.naming import is_pulled
from agent.protocol.session import AGENT_ARCHIVES
from hosts.choices import RolloutHostStatus
from hosts.status import is_heard

if TYPE_CHECKING:
    from hosts.models import Host

# A host that says nothing for so long after its order counts as failed.
PATIENCE: Final = timedelta(minutes=10)
_SOME: Final = 4


def waves_of(count: int) -> list[int]:
    """The wave of each host: one, then a quarter, then all the rest."""
    some = max(1, count // _SOME)
    return [1 if n == 0 else 2 if n <= some else 3 for n in range(count)]


def order_problem(host: Host, image: str) -> str:
    """Why this host's agent must not be told to become this image, or empty.

    Agents of earlier versions pull whatever name they are given. One that has not said what it
    can do is none that could be judged.
    """
    if not image or is_pulled(image) or image_refs.engine_id(image):
        return ""
    if (
        not host.agent_image_running
        or not host.capabilities
        or AGENT_ARCHIVES in host.capabilities
    ):
        return ""
    return (
        f"The agent of {host.name} is of an earlier version and would ask Docker Hub for {image}, "
        "where the name may be anybody's. Replace it with a new line from the host's page, or "
        "take an image whose name has its registry's host in front."
    )


def order_number(ordered_at: datetime) -> int:
    """Never the same twice, also after a restored backup: agents compare it with their last."""
    return round(ordered_at.timestamp() * 1000)


def outcome(
    host: Host, image: str, ordered_at: datetime, now: datetime
) -> tuple[RolloutHostStatus, str]:
    """What the host's own word makes of its order."""
    is_answered, problem = _answer(host, image, ordered_at)
    if problem:
        return RolloutHostStatus.FAILED, problem
    if is_answered and is_heard(host, now):
        return RolloutHostStatus.DONE, ""
    if now - ordered_at > PATIENCE:
        minutes = round(PATIENCE.total_seconds() / 60)
        return RolloutHostStatus.FAILED, f"The host said nothing for {minutes} minutes."
    return RolloutHostStatus.ORDERED, ""


def _answer(host: Host, image: str, ordered_at: datetime) -> tuple[bool, str]:
    """(the order is fulfilled, why it could not be). The name of what runs proves nothing: it may
    mean another image by now. Only agents of earlier versions have no better word."""
    if host.agent_image_id:
        mine = host.update_order == order_number(ordered_at)
        return mine, host.update_message if mine else ""
    failed = host.update_message and is_same_image(host.update_image, image)
    return is_same_image(host.agent_image_running, image), host.update_message if failed else ""
