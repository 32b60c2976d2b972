"""Where registries that members name may be, and for whom that is not asked at all.

The server refuses what can be read off a name; agents resolve names and ask the registries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings

from agent.protocol import image_refs
from agent.protocol.bases import dockerfile_bases
from agent.protocol.registries import RegistryRule
from images.models import Registry
from trailer.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from images.models import Image
    from trailer.accounts.models import User


def trusted_servers() -> tuple[str, ...]:
    """Servers that administrators stored: they may be anywhere, for everybody."""
    owned = Registry.objects.filter(owner__is_superuser=True, owner__is_active=True)
    return tuple(owned.order_by("server").values_list("server", flat=True).distinct())


def registry_rule() -> RegistryRule:
    return RegistryRule(allow=tuple(settings.TRAILER_REGISTRY_ALLOW), trusted=trusted_servers())


def source_chooser(image: Image) -> User:
    """Who said what it is made from."""
    return image.source_by or image.owner


def server_problem(server: str, chooser: User) -> str:
    """Why an engine is not sent there for this user, or empty."""
    return "" if chooser.is_admin else registry_rule().problem(server)


def reference_problem(references: Iterable[str], chooser: User) -> str:
    """The same for the registries of images; what is no reference is refused elsewhere."""
    servers = {image_refs.server_of(text): None for text in references}
    # One of Docker Hub needs no query.
    servers.pop(image_refs.DOCKER_HUB, None)
    servers.pop("", None)
    if chooser.is_admin or not servers:
        return ""
    rule = registry_rule()
    return next((problem for server in servers if (problem := rule.problem(server))), "")


def check_registries(image: Image, chooser: User) -> None:
    """Raises Invalid for an image that would be pulled, built or pushed with a registry inside."""
    if problem := reference_problem([image.reference], chooser):
        raise Invalid.field("reference", problem)
    if problem := reference_problem(_bases(image), chooser):
        raise Invalid.field("dockerfile", problem)


def _bases(image: Image) -> Iterator[str]:
    return (base.text for base in dockerfile_bases(image.dockerfile, image.build_args))
