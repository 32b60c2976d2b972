"""Reading images, builds and registries; nothing here writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.db.models import F, OuterRef, Q, Subquery

from agent.protocol import image_refs, naming
from images.choices import TERMINAL_BUILD_STATUSES, ImageKind, UpdatePolicy
from images.models import Build, Image, Registry
from trailer import policy
from trailer.errors import Invalid

if TYPE_CHECKING:
    from uuid import UUID

    from django.db.models import QuerySet

    from hosts.models import Host
    from trailer.policy import Actor

# How many of the newest revisions of a stack, and of its services, keep their images.
KEPT_REVISIONS: Final = 10


def engine_ref(image: Image) -> str:
    """What the engine calls this image: the normal form of a pulled reference, or our own tag."""
    if image.kind == ImageKind.PULL:
        return image_refs.normal(image.reference)
    return naming.build_ref(str(image.pk))


def newest_build(image: Image) -> Build | None:
    return image.builds.order_by("-number").first()


def builds_of(*, actor: Actor, image: Image) -> QuerySet[Build]:
    """Newest first."""
    policy.require(actor, "image.source", image)
    return image.builds.select_related("actor", "image__host").order_by("-number")


def with_current_build(images: QuerySet[Image]) -> QuerySet[Image]:
    """Adds `current_build_id`: the id of the newest build, without a query per image."""
    newest = Build.objects.filter(image=OuterRef("pk")).order_by("-number").values("pk")[:1]
    return images.annotate(current_build_id=Subquery(newest))


def registry_for(*, actor: Actor, registry_id: UUID) -> Registry:
    """The registry that a body names; one that may not be seen is answered as absent."""
    registry = Registry.objects.visible_to(actor).filter(pk=registry_id).first()
    if registry is None:
        raise Invalid.field("registry", "There is no such registry, or you may not see it.")
    return registry


def agent_registry(host: Host) -> Registry | None:
    """What opens the registry of the host's agent image: the newest that an administrator has for
    that very server."""
    server = image_refs.server_of(host.agent_image or host.agent_image_running)
    if not server:
        # No image, or one that the engine knows by its id.
        return None
    owned = Registry.objects.filter(owner__is_superuser=True, owner__is_active=True)
    found = owned.exclude(password_token="").filter(server=image_refs.server_key(server))
    return found.order_by("-updated_at", "pk").first()


def same_digest(one: str, other: str) -> bool:
    """`name@sha256:…` and `sha256:…` say the same."""
    return one.rpartition("@")[2] == other.rpartition("@")[2]


def update_available(image: Image) -> bool:
    """The registry was seen with another digest than the one on the host."""
    return bool(image.engine_id and image.available_digest) and not same_digest(
        image.available_digest, image.digest
    )


def check_refusal(image: Image) -> str:
    """Why this image is never compared with a registry; empty when it is."""
    if image.kind != ImageKind.PULL:
        return f"Image {image.name} is of kind {image.kind}; only pulled images have a registry."
    if image.update_policy != UpdatePolicy.ALWAYS:
        return (
            f"Image {image.name} has the policy if_missing, which never looks at the registry. "
            "Choose the policy always, or pull the image again."
        )
    if image_refs.is_pinned(image.reference):
        return f"Image {image.name} is pinned to a digest, which never moves."
    if not image.enabled:
        return f"Image {image.name} is disabled. Enable it first."
    return ""


def _remembered() -> Q:
    """Revisions whose image is kept: all that a workspace can be rolled back to. A stack's service
    is never rolled back by itself, and its stack fetches what it goes back to."""
    newest = Q(revisions__revision__gt=F("revision") - KEPT_REVISIONS)
    return Q(stack__isnull=True) | newest


def rollback_users(image: Image) -> list[str]:
    """Names of the workspaces that one of their revisions would bring back to this image."""
    found = image.host.workspaces.filter(_remembered(), revisions__fields__image=str(image.pk))
    return list(found.order_by("name").values_list("name", flat=True).distinct())


@dataclass(frozen=True)
class UnusedImages:
    """Largest first. Images share layers, so at most `total_bytes` go with them."""

    images: list[Image]
    total_bytes: int


def unused_images(*, actor: Actor, host: Host) -> UnusedImages:
    """What nothing on the host refers to: no workspace, no revision that one may go back to, no
    work under way."""
    policy.require(actor, "host.view", host)
    workspaces = host.workspaces.filter(_remembered()).order_by()
    remembered = set(workspaces.values_list("revisions__fields__image", flat=True).distinct())
    rows = Image.objects.visible_to(actor).filter(
        host=host, workspaces__isnull=True, status__in=TERMINAL_BUILD_STATUSES
    )
    unused = [image for image in rows if str(image.pk) not in remembered]
    unused.sort(key=lambda image: (-(image.size_bytes or 0), image.name))
    going = {image.pk for image in unused}
    # Two rows of one reference are one image on the engine: it goes only with the last of them.
    staying = {
        engine_id
        for pk, engine_id in Image.objects.filter(host=host).values_list("pk", "engine_id")
        if pk not in going
    }
    sizes = {image.engine_id: image.size_bytes or 0 for image in unused if image.engine_id}
    total = sum(size for engine_id, size in sizes.items() if engine_id not in staying)
    return UnusedImages(images=unused, total_bytes=total)
