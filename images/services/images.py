"""Creating, changing, building, cancelling, checking and deleting images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack, cast

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from agent.protocol import image_refs
from hosts.choices import TombstoneKind
from hosts.models import Host
from hosts.services.desired import host_desired_changed, tombstone_create
from images.choices import BuildTrigger, ImageKind
from images.models import Image
from images.registries import check_registries, source_chooser
from images.selectors import check_refusal, engine_ref, newest_build
from images.services.checks import checks_request
from images.services.fields import (
    CONTEXT_COLUMNS,
    IMAGE_COLUMNS,
    SOURCE_COLUMNS,
    ImageFields,
    check_context,
    check_image,
    check_sources,
)
from images.services.queue import UNDER_WAY, build_end, build_queue
from images.services.quota import check_disk_quota
from images.services.rules import check_name_is_free, check_unused
from images.services.secrets import (
    SecretsChange,
    check_agent,
    check_secrets,
    check_use,
    secret_names,
    secrets_change,
    secrets_given,
    secrets_write,
)
from images.services.snapshots import check_snapshot_retry
from trailer import events, policy
from trailer.access.grants import grants_forget
from trailer.audit.record import differences, record
from trailer.errors import Conflict, Invalid, NotAllowed
from trailer.revisions import check_revision
from trailer.rows import row_get, row_lock

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trailer.accounts.models import User
    from trailer.policy import Actor


def image_create(
    *,
    actor: Actor,
    host: Host,
    kind: str = ImageKind.PULL,
    source_by: User | None = None,
    **fields: Unpack[ImageFields],
) -> Image:
    """The first build or pull is queued at once. `source_by` says what it is made from, where
    that is not the actor."""
    policy.require(actor, "image.create")
    policy.require(actor, "host.images", host)
    if kind == ImageKind.SNAPSHOT:
        raise Invalid.field(
            "kind",
            "A snapshot is made from a running workspace, with its snapshot action: "
            "POST /api/v1/workspaces/{id}/snapshot/.",
        )
    values = cast("dict[str, Any]", dict(fields))
    secrets = secrets_given(values.pop("build_secrets", {}), {})
    image = Image(owner=actor, host=host, kind=kind, source_by=source_by, **values)
    if image.registry is not None:
        policy.require(actor, "registry.view", image.registry)
    check_image(image)
    check_sources(image)
    check_registries(image, source_chooser(image))
    check_secrets(image, secrets)
    check_context(image)
    check_agent(host, secrets)
    with transaction.atomic():
        # The host's row is the lock: two requests can't both find the name free.
        row_lock(Host.objects.all(), host.pk)
        check_name_is_free(image.name, host_id=host.pk)
        check_disk_quota(actor=actor, owner_id=actor.pk)
        image.save(force_insert=True)
        secrets_write(image, secrets)
        build_queue(image, trigger=BuildTrigger.CREATED, actor=actor)
        record("image.create", image, actor=actor, changes=differences({}, _told(fields)))
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
        policy.require(actor, "image.modify", current)
        check_revision(current.revision, expected_revision)
        before = {name: getattr(current, name) for name in IMAGE_COLUMNS}
        changed = _apply(current, cast("Mapping[str, Any]", fields))
        secrets = secrets_change(current, fields.get("build_secrets"))
        if not changed and not secrets.is_change:
            return current
        _check_change(actor, current, set(changed), secrets)
        columns = changed | _origin(actor, current, before, set(changed))
        Image.objects.filter(pk=current.pk).update(
            **columns, revision=F("revision") + 1, updated_at=timezone.now()
        )
        if secrets.is_change:
            secrets_write(current, secrets.after)
        if secrets.is_change or set(changed) & SOURCE_COLUMNS:
            check_disk_quota(actor=actor, owner_id=current.owner_id, image_id=current.pk)
            build_queue(current, trigger=BuildTrigger.CHANGED, actor=actor)
        host_desired_changed(current.host_id)
        changes = [*differences(_told(before), _told(changed)), *secrets.told()]
        record("image.update", current, actor=actor, changes=changes)
        events.publish("image", current.pk)
    return Image.objects.get(pk=image.pk)


def image_build(*, actor: Actor, image: Image, expected_revision: int | None = None) -> Image:
    """Build or pull again; the history is kept."""
    policy.require(actor, "image.modify", image)
    with transaction.atomic():
        current = _locked(image)
        check_revision(current.revision, expected_revision)
        if not current.enabled:
            raise Conflict(f"Image {current.name} is disabled. Enable it first.")
        _check_host(current)
        build = newest_build(current)
        if build is not None and build.status in UNDER_WAY:
            raise Conflict(
                f"Build {build.number} of image {current.name} is under way. "
                "Wait for it, or cancel it.",
                code="under_way",
            )
        if current.kind == ImageKind.SNAPSHOT:
            check_snapshot_retry(actor, current)
        check_agent(current.host, secret_names(current))
        check_disk_quota(actor=actor, owner_id=current.owner_id, image_id=current.pk)
        build_queue(current, trigger=BuildTrigger.REQUESTED, actor=actor)
        record("image.build", current, actor=actor)
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
        build_end(current, build)
        record("image.cancel", current, actor=actor)
    return Image.objects.get(pk=image.pk)


def image_check(*, actor: Actor, image: Image, expected_revision: int | None = None) -> Image:
    """Have the agent compare the image with its registry now, not only when the timer says."""
    policy.require(actor, "image.modify", image)
    with transaction.atomic():
        current = _locked(image)
        check_revision(current.revision, expected_revision)
        _check_host(current)
        if reason := check_refusal(current):
            raise Conflict(reason, code="not_watched")
        checks_request(current.host_id, [current.pk])
        record("image.check", current, actor=actor)
        events.publish("image", current.pk)
    return Image.objects.get(pk=image.pk)


def image_delete(*, actor: Actor, image: Image, expected_revision: int | None = None) -> None:
    policy.require(actor, "image.delete", image)
    with transaction.atomic():
        current = _locked(image)
        policy.require(actor, "image.delete", current)
        check_revision(current.revision, expected_revision)
        check_unused(current)
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
        grants_forget(current)
        record("image.delete", current, actor=actor)
        events.publish("image", current.pk, deleted=True)
        # The last lines of a build may arrive at this moment: those wait, and find no build.
        list(current.builds.select_for_update().values_list("pk"))
        current.delete()


def _check_host(image: Image) -> None:
    """What is only created or edited waits for its host, and says so; what is asked for by itself
    is not to wait for somebody to enable it."""
    if not image.host.enabled:
        raise Conflict(
            f"Host {image.host.name} is disabled, so nothing is done there. Enable it first.",
            code="host_disabled",
        )


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


def _check_change(actor: Actor, image: Image, changed: set[str], secrets: SecretsChange) -> None:
    """The image as it would be saved, and whether the actor may have it so."""
    _check_credential(actor, image, changed)
    if image.kind == ImageKind.SNAPSHOT and changed & SOURCE_COLUMNS:
        raise Invalid(
            "What a snapshot holds can't be changed. Take another one from the workspace."
        )
    check_image(image)
    if changed & (SOURCE_COLUMNS | {"push"}):
        check_sources(image)
        # Whoever changes what it is made from answers for all of it.
        check_registries(image, actor if changed & SOURCE_COLUMNS else source_chooser(image))
    if secrets.is_change or changed & SOURCE_COLUMNS:
        check_secrets(image, secrets.names)
        check_agent(image.host, secrets.names)
    if changed & SOURCE_COLUMNS:
        check_use(actor, image, secrets.kept)
    if changed & CONTEXT_COLUMNS:
        check_context(image)
    if "name" in changed:
        check_name_is_free(image.name, host_id=image.host_id, other_than=image.pk)


def _check_credential(actor: Actor, image: Image, changed: set[str]) -> None:
    """Who may change what is pulled or pushed with a credential uses it: editing is not enough."""
    if image.registry is None or not changed & (SOURCE_COLUMNS | {"registry", "push"}):
        return
    if not policy.allows(actor, "registry.view", image.registry):
        raise NotAllowed(
            f"The image {image.name} uses a credential for {image.registry.server} that is not "
            "yours. Ask its owner for this change, or choose another registry."
        )


def _origin(
    actor: Actor, image: Image, before: Mapping[str, Any], changed: set[str]
) -> dict[str, Any]:
    """Whose rights what it is made from is judged by, and whether that was fetched in private: a
    credential that is taken away makes nothing public that is on the host already."""
    if not changed & SOURCE_COLUMNS:
        return {}
    columns: dict[str, Any] = {"source_by": None if actor.pk == image.owner_id else actor}
    if image.kind == ImageKind.PULL:
        stays = image_refs.name_of(before["reference"]) == image_refs.name_of(image.reference)
        was_private = image.is_private or before["registry"] is not None
        columns["is_private"] = stays and was_private
    return columns


def _told(fields: Mapping[str, Any]) -> dict[str, Any]:
    """For the audit: references by their text, files by their paths."""
    told = dict(fields)
    if told.get("registry") is not None:
        told["registry"] = str(told["registry"])
    if "files" in told:
        told["files"] = [str(item.get("path")) for item in told["files"] or []]
    return told


def _is_shared(image: Image, ref: str) -> bool:
    """Two pulled images of one reference are one on the engine; the other one still needs it."""
    if image.kind != ImageKind.PULL:
        return False
    others = Image.objects.filter(host=image.host_id, kind=ImageKind.PULL).exclude(pk=image.pk)
    return any(engine_ref(other) == ref for other in others)
