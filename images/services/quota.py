"""How much room a quota leaves for images and snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import Sum

from images.models import Image
from trailer.access.quotas import Need, check_need, owned_under, quotas_lock

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from uuid import UUID

    from trailer.access.models import Quota
    from trailer.policy import Actor


def disk_used(quota: Quota, *, other_than: Collection[UUID] = ()) -> int:
    """Bytes of all images that count against it, as their engines report them."""
    images = Image.objects.filter(owned_under(quota)).exclude(pk__in=other_than).order_by()
    return int(images.aggregate(total=Sum("size_bytes"))["total"] or 0)


def check_disk_quota(*, actor: Actor, owner_id: Any, image_id: UUID | None = None) -> None:
    """Inside the caller's transaction. How large a new image will be is not known before; one that
    is made again (`image_id`) takes the place of its older self."""
    present = () if image_id is None else (image_id,)
    _check(actor, owner_id, present, size=0)


def check_disk_room(*, actor: Actor, owner_id: Any, images: Sequence[Image]) -> None:
    """For images that are to be this user's: how large they are is known. What counts against a
    quota of the group of both owners already is not counted twice."""
    size = sum(image.size_bytes or 0 for image in images)
    _check(actor, owner_id, [image.pk for image in images], size=size)


def _check(actor: Actor, owner_id: Any, present: Collection[UUID], *, size: int) -> None:
    for quota in quotas_lock(owner_id):
        if quota.disk_bytes is not None:
            used = disk_used(quota, other_than=present)
            # A full quota has no room for anything, however small.
            wanted = size or (0 if used < quota.disk_bytes else 1)
            need = Need("disk_bytes", used, wanted)
            check_need(quota, need, owner_id=owner_id, actor=actor)
