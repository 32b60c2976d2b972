"""The rule for snapshots: who took one may use it while they may copy its workspace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import Q

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.models import Model


@dataclass(frozen=True)
class FromSource:
    """A snapshot of a workspace whose files the actor may copy; with `only_maker`, one that the
    actor took. The right to copy is judged now, since what the snapshot holds was gained by it.
    `copyable` gives those workspaces of an actor; `path` leads from the object to the image."""

    copyable: Callable[[Any], Any]
    only_maker: bool
    path: str = ""

    def allows(self, actor: Any, obj: Model | None) -> bool:
        image: Any = getattr(obj, self.path) if obj is not None and self.path else obj
        source = getattr(image, "source_workspace", None)
        if source is None or not _signed_in(actor):
            return False
        if self.only_maker and image.made_by_id != actor.pk:
            return False
        if getattr(image, "granted_to", None) == actor.pk and hasattr(image, "granted_source"):
            # Read together with the row, as roles are.
            return bool(image.granted_source)
        return bool(self.copyable(actor).filter(pk=source).exists())

    def q(self, actor: Any) -> Q:
        if not _signed_in(actor):
            return Q(pk__in=[])
        prefix = f"{self.path}__" if self.path else ""
        condition = Q(**{f"{prefix}source_workspace__in": self.copyable(actor).values("pk")})
        return condition & Q(**{f"{prefix}made_by": actor.pk}) if self.only_maker else condition


def _signed_in(actor: Any) -> bool:
    return bool(actor.is_authenticated and actor.is_active)
