"""What earlier revisions of a stack left behind: images that nothing goes back to any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from images.selectors import KEPT_REVISIONS
from images.services.images import image_delete
from trailer.errors import ApplicationError
from workspaces.stacks.models import StackImage

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from workspaces.stacks.models import Stack
    from workspaces.stacks.sync.work import Work


def note_images(stack: Stack, number: int) -> None:
    """Revision `number` runs: its images are those that the stack's services use."""
    used = StackImage.objects.filter(stack=stack, image__workspaces__stack=stack.pk)
    StackImage.objects.filter(pk__in=used.values("pk"), last_revision__lt=number).update(
        last_revision=number
    )


def collect_images(work: Work) -> None:
    """After a deploy. Deleted like by a person, so that the host removes them by tombstone; one
    that somebody else uses, or that a workspace may go back to, stays."""
    collected = []
    with work.locked() as stack:
        for row in _unneeded(stack).select_related("image").order_by("reference"):
            try:
                with transaction.atomic():
                    image_delete(actor=stack.owner, image=row.image)
            except ApplicationError:
                continue
            collected.append(row.reference)
    for reference in collected:
        work.log(f"Image {reference}: removed, no revision goes back to it.")


def _unneeded(stack: Stack) -> QuerySet[StackImage]:
    ran = stack.revisions.filter(deployed_at__isnull=False).order_by("-number")
    kept = ran.values_list("number", flat=True)[:KEPT_REVISIONS]
    oldest = min(kept, default=0)
    return stack.images.filter(last_revision__lt=oldest, image__workspaces__isnull=True)
