"""What somebody fetched onto a host with a credential: the registry must let others in too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.protocol import image_refs
from agent.protocol.bases import dockerfile_bases
from images.choices import ImageKind
from trailer import policy

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from images.models import Image


def must_ask(image: Image, others: Sequence[Image]) -> bool:
    """Whether the copies on the host would give this image's owner, or who said what it is made
    from, what they may not read.

    `others` are the images of the same host. Needs `owner` and `source_by` loaded.
    """
    names = set(_names(image)) - {""}
    if not names:
        return False
    people = [person for person in (image.owner, image.source_by) if person is not None]
    return any(
        other.pk != image.pk
        and other.kind == ImageKind.PULL
        and (other.registry_id is not None or other.is_private)
        and image_refs.name_of(other.reference) in names
        and not all(policy.allows(person, "image.use", other) for person in people)
        for other in others
    )


def _names(image: Image) -> Iterable[str]:
    """Repositories that it is made from; an access right counts for all tags of one."""
    if image.kind == ImageKind.PULL:
        yield image_refs.name_of(image.reference)
    elif image.kind == ImageKind.BUILD:
        for base in dockerfile_bases(image.dockerfile, image.build_args):
            # Empty: no engine takes it either.
            yield image_refs.name_of(base.text)
