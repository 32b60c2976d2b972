"""Images of a host that nothing needs, with what deleting each would free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from images.models import Image
from images.selectors import unused_images

if TYPE_CHECKING:
    from hosts.models import Host
    from trailer.accounts.models import User


@dataclass(frozen=True)
class UnusedRow:
    image: Image
    # What stays uses the same image of the engine: deleting this name frees nothing.
    is_shared: bool


@dataclass(frozen=True)
class Unused:
    rows: list[UnusedRow]
    total_bytes: int


def unused_on(host: Host, user: User) -> Unused:
    """Largest first."""
    found = unused_images(actor=user, host=host)
    going = {image.pk for image in found.images}
    staying = {
        engine_id
        # nosemgrep: unscoped-read (ids that others' images share)
        for pk, engine_id in Image.objects.filter(host=host).values_list("pk", "engine_id")
        if pk not in going
    }
    rows = [
        UnusedRow(image, is_shared=bool(image.engine_id) and image.engine_id in staying)
        for image in found.images
    ]
    return Unused(rows, found.total_bytes)
