"""One row per change, sign-in or session; append-only, and no foreign key that could change it."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar, NoReturn

from django.db import models
from django.utils import timezone

from trailer.visibility import VisibleManager, VisibleQuerySet


class Via(models.TextChoices):
    SESSION = "session", "Browser"
    TOKEN = "token", "Token"
    ADMIN = "admin", "Admin pages"
    AGENT = "agent", "Agent"
    SYSTEM = "system", "Trailer itself"


class Outcome(models.TextChoices):
    DONE = "done", "Done"
    REFUSED = "refused", "Refused"
    FAILED = "failed", "Failed"


class AppendOnly(TypeError):
    """A bug: somebody tried to rewrite history."""


def _refuse() -> NoReturn:
    raise AppendOnly("Audit rows are written once; they can be neither changed nor deleted.")


class AuditQuerySet(VisibleQuerySet["AuditEntry"]):
    def update(self, **kwargs: Any) -> int:
        _refuse()

    def delete(self) -> tuple[int, dict[str, int]]:
        _refuse()

    def bulk_update(self, *args: Any, **kwargs: Any) -> int:
        _refuse()


class AuditManager(VisibleManager["AuditEntry"]):
    def get_queryset(self) -> AuditQuerySet:
        return AuditQuerySet(self.model, using=self._db)


class AuditEntry(models.Model):
    """Names are copied: a user or an object that is gone stays readable here."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    at = models.DateTimeField(default=timezone.now, db_index=True)
    actor_id = models.UUIDField(null=True, blank=True, db_index=True)
    actor_name = models.CharField(max_length=150, blank=True)
    via = models.CharField(max_length=10, choices=Via)
    token_name = models.CharField(max_length=100, blank=True)
    address = models.CharField(max_length=64, blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    # noun.verb, like workspace.update or user.login.
    action = models.CharField(max_length=64, db_index=True)
    kind = models.CharField(max_length=32, blank=True)
    object_id = models.CharField(max_length=64, blank=True, db_index=True)
    object_name = models.CharField(max_length=255, blank=True)
    # [{field, from, to}]; secret values are masked, long ones cut.
    changes = models.JSONField(default=list, blank=True)
    outcome = models.CharField(max_length=10, choices=Outcome, default=Outcome.DONE)

    objects = AuditManager()

    class Meta:
        ordering: ClassVar = ["-at", "-id"]
        verbose_name = "audit entry"
        verbose_name_plural = "audit"

    def __str__(self) -> str:
        return f"{self.action} by {self.actor_name or 'nobody'}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            _refuse()
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        _refuse()
