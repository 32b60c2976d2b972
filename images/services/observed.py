"""Ingest of what agents report about builds and images."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from hosts.models import Host
from hosts.services.desired import host_desired_changed
from hosts.services.observed import newer_than_stored, reported_id
from images.choices import (
    TERMINAL_BUILD_STATUSES,
    BuildStatus,
    BuildTrigger,
    ImageKind,
    UpdatePolicy,
)
from images.models import Build, Image
from images.selectors import newest_build, same_digest
from images.services.queue import UNDER_WAY, build_queue
from trailer import events
from trailer.errors import Invalid
from trailer.rows import row_lock
from trailer.validation import stored_number, stored_text

if TYPE_CHECKING:
    from agent.protocol.report import BuildStatus as BuildReport
    from agent.protocol.report import ImageObserved

_MESSAGE_LIMIT: Final = 4096


def build_observed(host: Host, item: BuildReport, epoch: int) -> bool:
    """False when the report says nothing new: older than what is stored, or the build is over.

    A terminal status is taken whatever its number, since it is sent once; it never goes back.
    """
    if item.status not in BuildStatus.values:
        raise Invalid(f"“{stored_text(item.status, 64)}” is not a status of a build.")
    terminal = item.status in TERMINAL_BUILD_STATUSES
    order = Q() if terminal else newer_than_stored(epoch, item.seq)
    with transaction.atomic():
        row_lock(Host.objects.all(), host.pk)
        build = (
            Build.objects.select_related("image")
            .filter(order, pk=reported_id(item.build_id), status__in=UNDER_WAY)
            .filter(image=reported_id(item.image_id), image__host=host)
            .first()
        )
        if build is None:
            return False
        columns = _build_columns(build, item)
        Build.objects.filter(pk=build.pk).update(
            **columns, report_epoch=epoch, report_seq=item.seq
        )
        _copy_to_image(build, item)
        if terminal:
            # The state document says which build is done and which image workspaces want.
            host_desired_changed(host.pk)
        events.publish("build", build.pk)
        events.publish("image", build.image_id)
    return True


def image_observed(host: Host, item: ImageObserved, epoch: int) -> bool:
    """What the engine holds outside a build: it vanished, or the registry has a newer one.

    A look at the registry that failed says so in the message and changes nothing else.
    """
    with transaction.atomic():
        row_lock(Host.objects.all(), host.pk)
        image = (
            Image.objects.filter(newer_than_stored(epoch, item.seq), host=host)
            .filter(pk=reported_id(item.image_id))
            .first()
        )
        if image is None:
            return False
        columns = _image_columns(image, item)
        changed = {k: v for k, v in columns.items() if getattr(image, k) != v}
        Image.objects.filter(pk=image.pk).update(
            **changed, observed_at=timezone.now(), report_epoch=epoch, report_seq=item.seq
        )
        if trigger := _wanted_build(image, item, host):
            build_queue(image, trigger=trigger)
        elif "engine_id" in changed:
            host_desired_changed(host.pk)
        if changed:
            events.publish("image", image.pk)
    return True


def _build_columns(build: Build, item: BuildReport) -> dict[str, Any]:
    now = timezone.now()
    columns: dict[str, Any] = {
        "status": item.status,
        "message": stored_text(item.message, _MESSAGE_LIMIT),
        "progress": _percent(item.progress),
    }
    if item.status != BuildStatus.PENDING and build.started_at is None:
        columns["started_at"] = now
    if item.status in TERMINAL_BUILD_STATUSES:
        columns["finished_at"] = now
        if item.log_bytes is not None:
            columns["log_expected"] = stored_number(item.log_bytes)
    if item.status == BuildStatus.FINISHED:
        columns |= _result(item)
    return columns


def _copy_to_image(build: Build, item: BuildReport) -> None:
    """An image shows its newest build; an overtaken one only changes the history."""
    newest = newest_build(build.image)
    if newest is None or newest.pk != build.pk:
        return
    columns: dict[str, Any] = {
        "status": item.status,
        "message": stored_text(item.message, _MESSAGE_LIMIT),
        "progress": _percent(item.progress),
    }
    if item.status == BuildStatus.FINISHED:
        columns |= _result(item) | {"observed_at": timezone.now()}
        if build.trigger == BuildTrigger.CHANGED:
            # What the registry was seen with belongs to the old reference.
            columns["available_digest"] = ""
    Image.objects.filter(pk=build.image_id).update(**columns)


def _result(item: BuildReport | ImageObserved) -> dict[str, Any]:
    return {
        "digest": stored_text(item.digest, 255),
        "engine_id": stored_text(item.engine_id, 128),
        "size_bytes": None if item.size_bytes is None else stored_number(item.size_bytes),
    }


def _image_columns(image: Image, item: ImageObserved) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    if image.status == BuildStatus.FINISHED:
        columns["message"] = stored_text(item.message, _MESSAGE_LIMIT)
    if not item.present:
        columns |= {"engine_id": "", "size_bytes": None}
        if image.kind == ImageKind.SNAPSHOT and not item.message:
            columns["message"] = "The snapshot is no longer on its host, and can't be made again."
    elif item.engine_id == image.engine_id:
        # What a short report leaves out is no news about an image that is still the same.
        columns |= {name: value for name, value in _result(item).items() if value}
    elif item.engine_id:
        columns |= _result(item)
    if item.available_digest:
        columns["available_digest"] = stored_text(item.available_digest, 255)
    return columns


def _wanted_build(image: Image, item: ImageObserved, host: Host) -> BuildTrigger | None:
    """A failed pull whose registry was seen with something newer is due again at once; see
    `retries` for all others."""
    if not image.enabled or image.kind == ImageKind.SNAPSHOT:
        return None
    if image.status == BuildStatus.FAILED:
        wanted = _differs(image, item) and _has_rested(image, host)
        return BuildTrigger.UPDATE if wanted else None
    if image.status != BuildStatus.FINISHED:
        return None
    if not item.present:
        return BuildTrigger.MISSING
    # Told once per digest: a registry whose digests never match must not cause endless pulls.
    is_news = item.available_digest != image.available_digest
    return BuildTrigger.UPDATE if is_news and _differs(image, item) else None


def _differs(image: Image, item: ImageObserved) -> bool:
    """The policy follows the registry, and the registry has what the host has not."""
    if image.kind != ImageKind.PULL or image.update_policy != UpdatePolicy.ALWAYS:
        return False
    if not item.available_digest:
        return False
    return not item.present or not same_digest(item.available_digest, item.digest or image.digest)


def _has_rested(image: Image, host: Host) -> bool:
    """Retries come no faster than looks at the registry, however often agents report."""
    newest = newest_build(image)
    if newest is None or newest.finished_at is None:
        return False
    return timezone.now() - newest.finished_at >= timedelta(seconds=host.update_interval)


def _percent(progress: int | None) -> int | None:
    return None if progress is None else stored_number(progress, 100)
