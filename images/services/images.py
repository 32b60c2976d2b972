"""Creating, changing, building, cancelling and deleting images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack, cast

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from hosts.choices import TombstoneKind
from hosts.models import Host
from hosts.services.desired import host_desired_changed, tombstone_create
from hosts.status import is_fresh
from images.choices import BuildStatus, BuildTrigger, ImageKind
from images.models import Build, Image
from images.selectors import engine_ref, newest_build
from images.services.fields import IMAGE_COLUMNS, SOURCE_COLUMNS, ImageFields, check_image
from images.services.queue import UNDER_WAY, build_queue
from trailer import events, policy
from trailer.errors import Conflict, Invalid
from trailer.revisions import check_revision
from trailer.rows import row_get, row_lock

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trailer.policy import Actor


def image_create(
    *, actor: Actor, host: Host, kind: str = ImageKind.PULL, **fields: Unpack[ImageFields]
) -> Image:
    """The first build or pull is queued at once."""
    policy.require(actor, "image.create")
    policy.require(actor, "host.view", host)
    if kind == ImageKind.SNAPSHOT:
        raise Invalid.field("kind", "A snapshot is made from a workspace, with its own action.")
    image = Image(owner=actor, host=host, kind=kind, **cast("dict[str, Any]", fields))
    if image.registry is not None:
        policy.require(actor, "registry.view", image.registry)
    check_image(image)
    with transaction.atomic():
        # The host's row is the lock: two requests can't both find the name free.
        row_lock(Host.objects.all(), host.pk)
        _check_name_is_free(image)
        image.save(force_insert=True)
        build_queue(image, trigger=BuildTrigger.CREATED, actor=actor)
        events.publish("image", image.pk)
    return Image.objects.get(pk=image.pk)


def image_update(
    *,
    actor: Actor,
    image: Image,
    expected_revision: int | None = None,
    **fields: Unpack[ImageFields],
) -> Image:
    """A change of what the image is made from queues a new build; the rest is only stored."""
    policy.require(actor, "image.modify", image)
    with transaction.atomic():
        current = _locked(image)
        check_revision(current.revision, expected_revision)
        changed = _apply(current, cast("Mapping[str, Any]", fields))
        if not changed:
            return current
        if changed.get("registry") is not None:
            policy.require(actor, "registry.view", current.registry)
        if current.kind == ImageKind.SNAPSHOT and set(changed) & SOURCE_COLUMNS:
            raise Invalid("A snapshot can't be changed, only renamed, pushed or deleted.")
        check_image(current)
        if "name" in changed:
            _check_name_is_free(current)
        Image.objects.filter(pk=current.pk).update(
            **changed, revision=F("revision") + 1, updated_at=timezone.now()
        )
        if set(changed) & SOURCE_COLUMNS:
            build_queue(current, trigger=BuildTrigger.CHANGED, actor=actor)
        host_desired_changed(current.host_id)
        events.publish("image", current.pk)
    return Image.objects.get(pk=image.pk)


def image_build(*, actor: Actor, image: Image, expected_revision: int | None = None) -> Image:
    """Build or pull again; the history is kept."""
    policy.require(actor, "image.modify", image)
    with transaction.atomic():
        current = _locked(image)
        check_revision(current.revision, expected_revision)
        if current.kind == ImageKind.SNAPSHOT:
            raise Conflict(f"Image {current.name} is a snapshot; there is nothing to build.")
        if not current.enabled:
            raise Conflict(f"Image {current.name} is disabled. Enable it first.")
        build = newest_build(current)
        if build is not None and build.status in UNDER_WAY:
            raise Conflict(
                f"Build {build.number} of image {current.name} is under way. "
                "Wait for it, or cancel it.",
                code="under_way",
            )
        build_queue(current, trigger=BuildTrigger.REQUESTED, actor=actor)
        events.publish("image", current.pk)
    return Image.objects.get(pk=image.pk)


def image_cancel(*, actor: Actor, image: Image, expected_revision: int | None = None) -> Image:
    """Ask the agent to end the work; only its confirmation makes the build cancelled."""
    policy.require(actor, "image.modify", image)
    with transaction.atomic():
        current = _locked(image)
        check_revision(current.revision, expected_revision)
        build = newest_build(current)
        if build is None or build.status not in UNDER_WAY:
            raise Conflict(
                f"Image {current.name} has no build under way; there is nothing to cancel.",
                code="nothing_under_way",
            )
        Build.objects.filter(pk=build.pk).update(cancel_requested=True)
        if build.status == BuildStatus.PENDING and not is_fresh(current.host, timezone.now()):
            _cancel_without_agent(current, build)
        host_desired_changed(current.host_id)
        events.publish("build", build.pk)
        events.publish("image", current.pk)
    return Image.objects.get(pk=image.pk)


def image_delete(*, actor: Actor, image: Image, expected_revision: int | None = None) -> None:
    policy.require(actor, "image.delete", image)
    with transaction.atomic():
        current = _locked(image)
        check_revision(current.revision, expected_revision)
        users = list(current.workspaces.order_by("name").values_list("name", flat=True))
        if users:
            raise Conflict(
                f"Image {current.name} is used by {', '.join(users)}. "
                "Change or delete them first.",
                code="in_use",
            )
        ref = engine_ref(current)
        if _is_shared(current, ref):
            host_desired_changed(current.host_id)
        else:
            tombstone_create(
                host_id=current.host_id,
                kind=TombstoneKind.IMAGE,
                object_id=current.pk,
                name=ref,
            )
        events.publish("image", current.pk, deleted=True)
        current.delete()


def _locked(image: Image) -> Image:
    """Host before image, like everywhere: two services never wait for each other."""
    row_lock(Host.objects.all(), image.host_id)
    return row_get(Image.objects.select_related("host", "registry"), image.pk)


def _apply(image: Image, fields: Mapping[str, Any]) -> dict[str, Any]:
    changed = {}
    for name in IMAGE_COLUMNS:
        if name in fields and fields[name] != getattr(image, name):
            changed[name] = fields[name]
            setattr(image, name, fields[name])
    return changed


def _cancel_without_agent(image: Image, build: Build) -> None:
    """Nobody listens and nothing has begun: waiting for a confirmation would take for ever."""
    columns = {"status": BuildStatus.CANCELLED, "message": "Cancelled before it began."}
    Build.objects.filter(pk=build.pk).update(**columns, finished_at=timezone.now())
    Image.objects.filter(pk=image.pk).update(**columns, progress=None)


def _is_shared(image: Image, ref: str) -> bool:
    """Two pulled images of one reference are one on the engine; the other one still needs it."""
    if image.kind != ImageKind.PULL:
        return False
    others = Image.objects.filter(host=image.host_id, kind=ImageKind.PULL).exclude(pk=image.pk)
    return any(engine_ref(other) == ref for other in others)


def _check_name_is_free(image: Image) -> None:
    if Image.objects.filter(host=image.host_id, name=image.name).exclude(pk=image.pk).exists():
        raise Invalid.field(
            "name", f"This host has an image named {image.name} already. Choose another name."
        )
