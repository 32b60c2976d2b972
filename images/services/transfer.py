"""Handing an image over to another owner, without the credential and secrets it was made with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import F

from hosts.models import Host
from hosts.services.desired import host_desired_changed
from images.models import Image
from images.services.quota import check_disk_room
from images.services.secrets import secret_names, secrets_write
from trailer import policy
from trailer.access.transfer import check_capable, hand_over, part_of_stack, transfer
from trailer.audit.record import MASK
from trailer.revisions import check_revision
from trailer.rows import row_get, row_lock

if TYPE_CHECKING:
    from trailer.accounts.models import User
    from trailer.policy import Actor


def image_transfer(
    *, actor: Actor, image: Image, owner: str, expected_revision: int | None = None
) -> Image:
    def lock() -> Image:
        row_lock(Host.objects.all(), image.host_id)
        rows = Image.objects.select_related("host", "owner", "registry")
        current = row_get(rows, image.pk)
        check_revision(current.revision, expected_revision)
        return current

    def give(current: Image, user: User) -> None:
        if hasattr(current, "stack_image"):
            raise part_of_stack(current, current.stack_image.stack.name)
        check_disk_room(actor=actor, owner_id=user.pk, images=[current])
        image_hand_over(actor=actor, image=current, user=user)

    return transfer(actor=actor, obj=image, owner=owner, lock=lock, give=give)


def image_hand_over(*, actor: Actor, image: Image, user: User, share: bool = True) -> None:
    """Inside the caller's transaction, under the host's lock, with room in the new owner's quota;
    needs host, owner and registry.

    What it is made from was said by the former owner: their rights go on counting for it, or an
    image could be handed to somebody for what only they may read.
    """
    check_capable(user, "host.images", image.host)
    columns: dict[str, Any] = {"source_by": image.source_by_id or image.owner_id}
    if columns["source_by"] == user.pk:
        columns["source_by"] = None
    changes: list[dict[str, Any]] = []
    registry = image.registry
    if registry is not None and not policy.allows(user, "registry.view", registry):
        # Their credential stays with its owner; the image on the host stays private.
        columns |= {"registry": None, "is_private": True, "revision": F("revision") + 1}
        changes.append({"field": "registry", "from": str(registry), "to": None})
    names = secret_names(image)
    if names and not policy.allows(user, "image.secrets", image):
        # Whoever owns the image says what is built with them, and so could read them.
        secrets_write(image, {})
        columns["revision"] = F("revision") + 1
        changes.append(
            {"field": "build_secrets", "from": dict.fromkeys(sorted(names), MASK), "to": {}}
        )
    Image.objects.filter(pk=image.pk).update(**columns)
    hand_over(actor=actor, obj=image, user=user, share=share, changes=changes)
    # Whose rights decide whether the registry must be asked is part of what the agent is told.
    host_desired_changed(image.host_id)
