"""Failed pulls are tried again by themselves: a registry comes back, a tag is pushed, a disk gets
room. Failed builds are not: they cost much, and most would only fail again."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import transaction

from hosts.models import Host
from hosts.status import is_fresh
from images.choices import BuildStatus, BuildTrigger, ImageKind
from images.models import Image
from images.services.queue import build_queue
from trailer import events
from trailer.rows import row_lock

if TYPE_CHECKING:
    from datetime import datetime

    from images.models import Build, Registry
    from trailer.policy import Actor

LONGEST_WAIT: Final = timedelta(seconds=300)
# More of them in a row tell nothing, and would push the rest out of the history.
KEPT_RETRIES: Final = 6


def pulls_retry(now: datetime) -> int:
    """Queue every failed pull whose turn it is, on hosts that answer; how many there were."""
    failed = Image.objects.select_related("host").filter(
        kind=ImageKind.PULL, status=BuildStatus.FAILED, enabled=True, host__enabled=True
    )
    due = [image for image in failed if is_fresh(image.host, now) and _is_due(image, now)]
    return sum(_retry(image) for image in due)


def pulls_retry_with(registry: Registry, actor: Actor) -> None:
    """Its credential was changed: what failed with the old one need not wait for its turn."""
    failed = registry.images.filter(
        kind=ImageKind.PULL, status=BuildStatus.FAILED, enabled=True
    ).order_by("host_id", "pk")
    for image in failed:
        _retry(image, actor)


def _retry(image: Image, actor: Actor = None) -> bool:
    """False when somebody else was quicker."""
    with transaction.atomic():
        row_lock(Host.objects.all(), image.host_id)
        current = Image.objects.filter(pk=image.pk, status=BuildStatus.FAILED).first()
        if current is None:
            return False
        build_queue(current, trigger=BuildTrigger.RETRY, actor=actor)
        # Why it failed stays in sight until there is something newer to say.
        Image.objects.filter(pk=current.pk).update(message=current.message)
        retried = current.builds.filter(trigger=BuildTrigger.RETRY, status=BuildStatus.FAILED)
        kept = retried.order_by("-number").values_list("pk", flat=True)[:KEPT_RETRIES]
        retried.exclude(pk__in=list(kept)).delete()
        events.publish("image", current.pk)
    return True


def _is_due(image: Image, now: datetime) -> bool:
    builds = list(image.builds.order_by("-number")[: KEPT_RETRIES + 1])
    if not builds or builds[0].finished_at is None:
        return False
    return now - builds[0].finished_at >= _wait(builds)


def _wait(builds: list[Build]) -> timedelta:
    """Twice as long after each try; anything but a retry begins anew."""
    tries = 0
    while tries < len(builds) and builds[tries].trigger == BuildTrigger.RETRY:
        tries += 1
    first: float = settings.TRAILER_PULL_RETRY_SECONDS
    return min(timedelta(seconds=first * 2**tries), LONGEST_WAIT)
