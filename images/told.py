"""What an image says of itself, and to whom: what a builder printed holds lines of its source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hosts.choices import HostStatus
from hosts.status import host_status
from images.choices import BuildStatus
from trailer import policy

if TYPE_CHECKING:
    from datetime import datetime

    from images.models import Build, Image
    from trailer.policy import Actor

_IN_GENERAL: Final = {
    BuildStatus.PENDING: "Waiting for its host.",
    BuildStatus.BUILDING: "Building.",
    BuildStatus.FINISHED: "",
    BuildStatus.FAILED: "The build failed. Only who may see its source can read why.",
    BuildStatus.CANCELLED: "The build was cancelled.",
}


def image_message(actor: Actor, image: Image, now: datetime) -> str:
    """The message itself only for who may see what the image is made from. Lists annotate roles
    (`with_role`), so that this asks nothing more. Needs `image.host` loaded."""
    if policy.allows(actor, "image.source", image):
        return own_message(image, now)
    return _waits_for(image, now) or _IN_GENERAL[BuildStatus(image.status)]


def own_message(image: Image, now: datetime) -> str:
    """What its host's agent said last, unless nobody works on a build that waits."""
    return _waits_for(image, now) or image.message


def build_message(build: Build, now: datetime) -> str:
    """As `own_message`, of one build. Needs `build.image.host` loaded."""
    if build.status == BuildStatus.PENDING:
        return _waits_for(build.image, now) or build.message
    return build.message


def _waits_for(image: Image, now: datetime) -> str:
    """Why no agent takes up a build that waits; empty when one does, or nothing waits."""
    if image.status != BuildStatus.PENDING:
        return ""
    if not image.enabled:
        return f"Image {image.name} is disabled; this begins when it is enabled."
    host = image.host
    return {
        HostStatus.DISABLED: f"Host {host.name} is disabled; this begins when it is enabled.",
        HostStatus.PENDING: f"Waiting for host {host.name}, which was never connected.",
        HostStatus.OFFLINE: f"Waiting for host {host.name}, which is offline.",
        HostStatus.ONLINE: "",
    }[host_status(host, now)]
