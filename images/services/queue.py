"""Queueing and ending of builds; shared by what users ask for and what agents report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db.models import Max
from django.utils import timezone

from hosts.services.desired import host_desired_changed
from hosts.status import is_heard
from images.choices import BuildStatus
from images.models import Build, Image
from trailer import events

if TYPE_CHECKING:
    from images.choices import BuildTrigger
    from trailer.policy import Actor

UNDER_WAY: Final = frozenset({BuildStatus.PENDING, BuildStatus.BUILDING})
KEPT_BUILDS: Final = 50


def build_queue(image: Image, *, trigger: BuildTrigger, actor: Actor = None) -> Build:
    """The next build of an image, inside the caller's transaction with the host's row locked."""
    number = (image.builds.aggregate(last=Max("number"))["last"] or 0) + 1
    _overtake(image, number)
    build = Build.objects.create(image=image, number=number, trigger=trigger, actor=actor)
    _forget_old(image, number)
    Image.objects.filter(pk=image.pk).update(status=BuildStatus.PENDING, message="", progress=None)
    host_desired_changed(image.host_id)
    events.publish("build", build.pk)
    return build


def build_end(image: Image, build: Build) -> None:
    """Ask the agent to end a build, inside the caller's transaction with the host's row locked.

    Only the agent's confirmation makes it cancelled, unless nobody listens and nothing has begun:
    waiting would then take for ever. Needs `image.host` loaded.
    """
    Build.objects.filter(pk=build.pk).update(cancel_requested=True)
    if build.status == BuildStatus.PENDING and not is_heard(image.host, timezone.now()):
        columns = {"status": BuildStatus.CANCELLED, "message": "Cancelled before it began."}
        Build.objects.filter(pk=build.pk).update(**columns, finished_at=timezone.now())
        Image.objects.filter(pk=image.pk).update(**columns, progress=None)
    host_desired_changed(image.host_id)
    events.publish("build", build.pk)
    events.publish("image", image.pk)


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


def _forget_old(image: Image, number: int) -> None:
    """The history has an end, logs included; what still runs stays until it is over."""
    old = image.builds.filter(number__lte=number - KEPT_BUILDS)
    old.exclude(status__in=UNDER_WAY).delete()
