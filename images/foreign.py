"""What somebody fetched onto a host with a credential: the registry must let others in too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.protocol.bases import dockerfile_bases
from images.choices import ImageKind
from images.refs import parse_reference
from trailer import policy
from trailer.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from images.models import Image


def must_ask(image: Image, others: Sequence[Image]) -> bool:
    """Whether the copies on the host would give this image's owner what they may not read.

    `others` are the images of the same host. Needs `image.owner` loaded.
    """
    names = set(_names(image))
    if not names:
        return False
    return any(
        other.kind == ImageKind.PULL
        and other.registry_id is not None
        and other.owner_id != image.owner_id
        and parse_reference(other.reference).name in names
        and not policy.allows(image.owner, "image.view", other)
        for other in others
    )


def _names(image: Image) -> Iterable[str]:
    """Repositories that it is made from; an access right counts for all tags of one."""
    if image.kind == ImageKind.PULL:
        yield parse_reference(image.reference).name
    elif image.kind == ImageKind.BUILD:
        for base in dockerfile_bases(image.dockerfile, image.build_args):
            try:
                yield parse_reference(base.text).name
            except Invalid:
                # No engine takes it either.
                continue
