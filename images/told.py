"""What an image says of itself, and to whom: what a builder printed holds lines of its source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from images.choices import BuildStatus
from trailer import policy

if TYPE_CHECKING:
    from images.models import Image
    from trailer.policy import Actor

_IN_GENERAL: Final = {
    BuildStatus.PENDING: "Waiting for its host.",
    BuildStatus.BUILDING: "Building.",
    BuildStatus.FINISHED: "",
    BuildStatus.FAILED: "The build failed. Only who may see its source can read why.",
    BuildStatus.CANCELLED: "The build was cancelled.",
}


def image_message(actor: Actor, image: Image) -> str:
    """The message itself only for who may see what the image is made from. Lists annotate roles
    (`with_role`), so that this asks nothing more."""
    if policy.allows(actor, "image.source", image):
        return image.message
    return _IN_GENERAL[BuildStatus(image.status)]
