"""Reading images, builds and registries; nothing here writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import OuterRef, Subquery

from agent.protocol import naming
from images.choices import ImageKind
from images.models import Build, Image, Registry
from images.refs import normalise_reference
from trailer.errors import Invalid

if TYPE_CHECKING:
    from uuid import UUID

    from django.db.models import QuerySet

    from trailer.policy import Actor


def engine_ref(image: Image) -> str:
    """What the engine calls this image: the normal form of a pulled reference, or our own tag."""
    if image.kind == ImageKind.PULL:
        return normalise_reference(image.reference)
    return naming.build_ref(str(image.pk))


def newest_build(image: Image) -> Build | None:
    return image.builds.order_by("-number").first()


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
