"""One row per change, sign-in or session, and seals over them: append-only, no foreign keys."""

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


class WrittenOnceRows:
    """For a query set: none of its rows is changed or deleted. Triggers say so as well."""

    def update(self, **kwargs: Any) -> NoReturn:
        _refuse()

    def delete(self) -> NoReturn:
        _refuse()

    def bulk_update(self, *args: Any, **kwargs: Any) -> NoReturn:
        _refuse()


class WrittenOnce(models.Model):
    """The same for one row."""

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            _refuse()
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        _refuse()


class AuditQuerySet(WrittenOnceRows, VisibleQuerySet["AuditEntry"]):
    pass


class AuditManager(VisibleManager["AuditEntry"]):
    def get_queryset(self) -> AuditQuerySet:
        return AuditQuerySet(self.model, using=self._db)


class AuditEntry(WrittenOnce):
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


class SealQuerySet(WrittenOnceRows, models.QuerySet["AuditSeal"]):
    pass


class AuditSeal(WrittenOnce):
    """What was in the audit from `since` to before `until`; the number decides between two
    processes that seal at once. How it is computed: trailer/audit/chain.py."""

    number = models.PositiveBigIntegerField(primary_key=True)
    format = models.PositiveSmallIntegerField(default=1)
    sealed_at = models.DateTimeField(default=timezone.now)
    since = models.DateTimeField(null=True)
    until = models.DateTimeField(db_index=True)
    count = models.PositiveIntegerField()
    first_id = models.UUIDField(null=True)
    last_id = models.UUIDField(null=True)
    # The id and the digest of each row.
    rows = models.BinaryField()
    # The digest of the seal before, and of this one.
    previous = models.CharField(max_length=64, blank=True)
    digest = models.CharField(max_length=64)
    # Which of the operator's keys signed the digest.
    key = models.CharField(max_length=16)
    signature = models.CharField(max_length=64)

    objects = SealQuerySet.as_manager()

    def __str__(self) -> str:
        return f"seal {self.number}"

    @property
    def head(self) -> str:
        return f"{self.number}:{self.digest}"
