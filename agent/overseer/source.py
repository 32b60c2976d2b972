"""Where the overseer gets an image from; pure.

An engine takes a name without a registry's host for Docker Hub's, where it may be anybody's, and
an agent is root on its host. Such a name is never pulled: the server hands the image out.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

from agent.protocol import image_refs
from agent.protocol.naming import is_pulled

if TYPE_CHECKING:
    from agent.protocol.session import AgentImage, AgentImages


class Source(Enum):
    """ENGINE: an id, which only the host's own engine can know."""

    ENGINE = auto()
    REGISTRY = auto()
    SERVER = auto()


def source_of(image: str) -> Source:
    if image_refs.engine_id(image):
        return Source.ENGINE
    return Source.REGISTRY if is_pulled(image) else Source.SERVER


def archive_in(offered: AgentImages, image: str, architecture: str) -> AgentImage | None:
    """The archive of this image for this kind of machine."""
    return next(
        (
            each
            for each in offered.images
            if each.architecture == architecture and image_refs.is_same_image(each.image, image)
        ),
        None,
    )
