"""How much room a quota leaves for images and snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import Sum

from images.models import Image
from trailer.access.quotas import Need, check_need, owned_under, quotas_lock

if TYPE_CHECKING:
    from uuid import UUID

    from trailer.access.models import Quota
    from trailer.policy import Actor


def disk_used(quota: Quota, *, other_than: UUID | None = None) -> int:
    """Bytes of all images that count against it, as their engines report them."""
    images = Image.objects.filter(owned_under(quota)).order_by()
    if other_than is not None:
        images = images.exclude(pk=other_than)
    return int(images.aggregate(total=Sum("size_bytes"))["total"] or 0)


def check_disk_quota(*, actor: Actor, owner_id: Any, image_id: UUID | None = None) -> None:
    """Inside the caller's transaction. How large a new image will be is not known before; one that
    is made again (`image_id`) takes the place of its older self."""
    for quota in quotas_lock(owner_id):
        if quota.disk_bytes is not None:
            used = disk_used(quota, other_than=image_id)
            wanted = 0 if used < quota.disk_bytes else 1
            need = Need("disk_bytes", used, wanted)
            check_need(quota, need, owner_id=owner_id, actor=actor)
