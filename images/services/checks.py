"""Asks agents to compare images with their registries now, not only when their timer says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import F

from hosts.models import Host
from hosts.services.desired import host_desired_changed
from images.models import Image
from trailer.rows import row_lock

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID


def checks_request(host_id: UUID, image_ids: Iterable[UUID]) -> None:
    """Inside the caller's transaction; all of them are images of this host."""
    row_lock(Host.objects.all(), host_id)
    Image.objects.filter(host=host_id, pk__in=list(image_ids)).update(
        check_requested=F("check_requested") + 1
    )
    host_desired_changed(host_id)
