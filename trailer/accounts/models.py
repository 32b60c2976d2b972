"""Users, the API tokens they hand to scripts, and their browser sessions."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.contrib.auth.models import AbstractUser
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models
from django.utils import timezone

from trailer.sealed import SealedField


class User(AbstractUser):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    # Given by an administrator, or proved by a mail that arrived; not merely typed by the user.
    mail_is_vouched = models.BooleanField(default=False, editable=False)

    @property
    def is_admin(self) -> bool:
        return self.is_active and self.is_superuser


class TokenScope(models.TextChoices):
    READ = "read", "Read"
    WRITE = "write", "Read and write"
    ADMIN = "admin", "Everything"


class ApiToken(models.Model):
    """Only the digest of the key is stored; the key is shown once, when it is made."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    scope = models.CharField(max_length=10, choices=TokenScope, default=TokenScope.WRITE)
    expires_at = models.DateTimeField(null=True, blank=True)
    # Made by signing in with a password: ends with the other sessions, and goes when it expires.
    is_sign_in = models.BooleanField(default=False, editable=False)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["-created_at"]

    def __str__(self) -> str:
        return self.name


class Session(AbstractBaseSession):
    """A signed-in browser. `session_key` is a digest of the cookie, which is stored nowhere;
    people name sessions by `public_id`."""

    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    user = models.ForeignKey(
        User, null=True, blank=True, on_delete=models.CASCADE, related_name="sessions"
    )
    address = models.CharField(max_length=64, blank=True)
    user_agent = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    last_seen_at = models.DateTimeField(default=timezone.now)

    class Meta(AbstractBaseSession.Meta):
        ordering: ClassVar = ["-last_seen_at"]

    def __str__(self) -> str:
        return f"session from {self.address or 'somewhere'}"


class SecondFactor(models.Model):
    """The secret of an app that shows codes; it counts once a first code was confirmed."""

    user = models.OneToOneField(User, on_delete=models.CASCADE, related_name="second_factor")
    secret_token = SealedField(of=("user_id",), editable=False)
    confirmed_at = models.DateTimeField(null=True, blank=True, editable=False)
    # The newest half minute whose code was used: no code works twice.
    last_step = models.PositiveBigIntegerField(default=0, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"second factor of {self.user}"


class RecoveryCode(models.Model):
    """Works once, instead of a code of the app."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="recovery_codes")
    digest = models.CharField(max_length=64, editable=False)
    used_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["user", "digest"], name="recovery_code_once")
        ]

    def __str__(self) -> str:
        return f"recovery code of {self.user}"


class ExternalIdentity(models.Model):
    """Who a user is at an identity provider. A mail address may change hands, a subject not."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="identities")
    issuer = models.CharField(max_length=300)
    subject = models.CharField(max_length=255)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "external identities"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["issuer", "subject"], name="one_user_per_identity")
        ]

    def __str__(self) -> str:
        return f"{self.subject} at {self.issuer}"
