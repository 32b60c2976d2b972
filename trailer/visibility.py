"""`visible_to(actor)`: the only way requests get at objects; scope lives in the queryset."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

from django.db import models

from trailer.policy import permitted, role_columns, visible

if TYPE_CHECKING:
    from trailer.policy import Actor

M = TypeVar("M", bound=models.Model)


class VisibleQuerySet(models.QuerySet[M]):
    def visible_to(self, actor: Actor) -> VisibleQuerySet[M]:
        """Rows this actor may see; what is left out answers 404, like what is not there."""
        return self.filter(visible(self.model._meta.model_name or "", actor))

    def usable_by(self, actor: Actor) -> VisibleQuerySet[M]:
        """Rows this actor may make something with; some others are only seen."""
        return self.filter(permitted(f"{self.model._meta.model_name}.use", actor))

    def with_role(self, actor: Actor) -> VisibleQuerySet[M]:
        """For lists that show what may be done: each row then brings the actor's role along."""
        columns = role_columns(self.model._meta.model_name or "", actor)
        return cast("VisibleQuerySet[M]", self.annotate(**columns))


class VisibleManager(models.Manager[M]):
    """Shared by every model with an owner or an audience of its own."""

    def get_queryset(self) -> VisibleQuerySet[M]:
        return VisibleQuerySet(self.model, using=self._db)

    def visible_to(self, actor: Actor) -> VisibleQuerySet[M]:
        return self.get_queryset().visible_to(actor)

    def usable_by(self, actor: Actor) -> VisibleQuerySet[M]:
        return self.get_queryset().usable_by(actor)
