"""Status of images and builds: label, colour, busy flag, allowed actions."""

from __future__ import annotations

from hosts.status import Badge
from images.choices import BuildStatus

BADGES = {
    BuildStatus.PENDING: Badge("pending", "Pending", "blue", busy=True, actions=("cancel",)),
    BuildStatus.BUILDING: Badge("building", "Building", "blue", busy=True, actions=("cancel",)),
    BuildStatus.FINISHED: Badge("finished", "Finished", "green", actions=("build",)),
    BuildStatus.FAILED: Badge("failed", "Failed", "red", actions=("build",)),
    BuildStatus.CANCELLED: Badge("cancelled", "Cancelled", "grey", actions=("build",)),
}


def image_badge(status: str) -> Badge:
    return BADGES[BuildStatus(status)]
