"""Queueing of builds; shared by what users ask for and what agents report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db.models import Max
from django.utils import timezone

from hosts.services.desired import host_desired_changed
from images.choices import BuildStatus
from images.models import Build, Image
from trailer import events

if TYPE_CHECKING:
    from images.choices import BuildTrigger
    from trailer.policy import Actor

UNDER_WAY: Final = frozenset({BuildStatus.PENDING, BuildStatus.BUILDING})


def build_queue(image: Image, *, trigger: BuildTrigger, actor: Actor = None) -> Build:
    """The next build of an image, inside the caller's transaction with the host's row locked."""
    number = (image.builds.aggregate(last=Max("number"))["last"] or 0) + 1
    _overtake(image, number)
    build = Build.objects.create(image=image, number=number, trigger=trigger, actor=actor)
    Image.objects.filter(pk=image.pk).update(status=BuildStatus.PENDING, message="", progress=None)
    host_desired_changed(image.host_id)
    events.publish("build", build.pk)
    return build


def _overtake(image: Image, number: int) -> None:
    """An older build that has not begun never will; one that runs is asked to end."""
    message = f"Overtaken by build {number}."
    for build in image.builds.filter(status__in=UNDER_WAY):
        columns: dict[str, object] = {"cancel_requested": True}
        if build.status == BuildStatus.PENDING:
            columns |= {
                "status": BuildStatus.CANCELLED,
                "message": message,
                "finished_at": timezone.now(),
            }
        Build.objects.filter(pk=build.pk).update(**columns)
        events.publish("build", build.pk)
