"""Rules between an image and the rest of its host; the caller holds the host's lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from images.models import Image
from images.selectors import rollback_users
from trailer.errors import Conflict, Invalid

if TYPE_CHECKING:
    from uuid import UUID


def check_name_is_free(name: str, *, host_id: UUID, other_than: UUID | None = None) -> None:
    others = Image.objects.filter(host=host_id, name=name)
    if other_than is not None:
        others = others.exclude(pk=other_than)
    if others.exists():
        raise Invalid.field(
            "name", f"This host has an image named {name} already. Choose another name."
        )


def check_unused(image: Image) -> None:
    """Neither a workspace, running or stopped, nor a revision it may go back to may need it."""
    if users := list(image.workspaces.order_by("name").values_list("name", flat=True)):
        raise Conflict(
            f"Image {image.name} is used by {', '.join(users)}. Change or delete them first.",
            code="in_use",
        )
    if users := rollback_users(image):
        raise Conflict(
            f"Image {image.name} is needed to roll back {', '.join(users)}: an earlier revision "
            "has it. Delete that workspace first, or keep the image.",
            code="in_use",
        )
