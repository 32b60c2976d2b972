"""Status of images and builds: label, colour, busy flag, allowed actions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hosts.status import Badge
from images.choices import BuildStatus, ImageKind
from images.selectors import check_refusal

if TYPE_CHECKING:
    from images.models import Image

BADGES = {
    BuildStatus.PENDING: Badge("pending", "Pending", "blue", busy=True, actions=("cancel",)),
    BuildStatus.BUILDING: Badge("building", "Building", "blue", busy=True, actions=("cancel",)),
    BuildStatus.FINISHED: Badge("finished", "Finished", "green", actions=("build",)),
    BuildStatus.FAILED: Badge("failed", "Failed", "red", actions=("build",)),
    BuildStatus.CANCELLED: Badge("cancelled", "Cancelled", "grey", actions=("build",)),
}


def image_badge(status: str) -> Badge:
    return BADGES[BuildStatus(status)]


def image_badge_of(image: Image) -> Badge:
    """With the actions that this very image offers, not only its status."""
    badge = image_badge(image.status)
    actions = list(badge.actions)
    if image.kind == ImageKind.SNAPSHOT and image.status == BuildStatus.FINISHED:
        actions.remove("build")
    if not check_refusal(image):
        actions.append("check")
    return replace(badge, actions=tuple(actions))
