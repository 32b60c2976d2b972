"""Who was given what: roles on single objects, capabilities on hosts; to users or groups.

Objects are named by kind and id, not by foreign key: this app lies below those that own them.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, ClassVar

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.db.models import Q
from django.utils import timezone

if TYPE_CHECKING:
    from datetime import datetime

    from django.db.models import QuerySet


class ObjectKind(models.TextChoices):
    WORKSPACE = "workspace", "Workspace"
    IMAGE = "image", "Image"
    VOLUME = "volume", "Volume"
    NETWORK = "network", "Network"
    STACK = "stack", "Stack"


class Role(models.IntegerChoices):
    """Each includes the ones below it."""

    VIEWER = 1, "viewer"
    EDITOR = 2, "editor"
    MANAGER = 3, "manager"


class Right(models.TextChoices):
    """What a role on a workspace or a stack brings unless the grant leaves it out."""

    LOGS = "logs", "Read the logs"
    INSPECT = "inspect", "See how it is configured"
    TERMINAL = "terminal", "Run commands and attach"


class Capability(models.TextChoices):
    """What may be done on one host; whoever holds any of them sees the host."""

    VIEW = "view", "See the host"
    WORKSPACES = "workspaces", "Create workspaces"
    IMAGES = "images", "Create images"
    VOLUMES = "volumes", "Create volumes"
    NETWORKS = "networks", "Create networks"
    ADDRESSES = "addresses", "Choose addresses and interfaces of networks"
    BIND = "bind", "Mount folders of the host"
    PRIVILEGED = "privileged", "Turn on what gives a container the host"


_ONE_SUBJECT = Q(user__isnull=False, group__isnull=True) | Q(
    user__isnull=True, group__isnull=False
)


def held_by(actor_id: Any) -> Q:
    """Rows of this user, or of a group that the user belongs to."""
    return Q(user=actor_id) | Q(group__in=Group.objects.filter(user=actor_id).values("pk"))


class Grant(models.Model):
    """One subject's role on one object."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="grants",
    )
    group = models.ForeignKey(
        Group, null=True, blank=True, on_delete=models.CASCADE, related_name="grants"
    )
    kind = models.CharField(max_length=10, choices=ObjectKind)
    object_id = models.UUIDField()
    role = models.PositiveSmallIntegerField(choices=Role)
    # One column for each Right: they narrow the role, and never widen it.
    logs = models.BooleanField(default=True)
    inspect = models.BooleanField(default=True)
    terminal = models.BooleanField(default=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    granted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["created_at", "id"]
        constraints: ClassVar = [
            models.CheckConstraint(condition=_ONE_SUBJECT, name="grant_has_one_subject"),
            models.UniqueConstraint(fields=["user", "kind", "object_id"], name="grant_per_user"),
            models.UniqueConstraint(fields=["group", "kind", "object_id"], name="grant_per_group"),
        ]
        indexes: ClassVar = [models.Index(fields=["kind", "object_id"], name="grants_of_object")]

    def __str__(self) -> str:
        return f"{Role(self.role).label} of {self.kind} {self.object_id}"


def live_grants(actor_id: Any, kind: str, **conditions: Any) -> QuerySet[Grant]:
    """An expired grant counts for nothing from that moment on; nobody has to remove it.

    In one filter: every request puts several of these together.
    """
    live = unexpired(timezone.now())
    return Grant.objects.order_by().filter(held_by(actor_id), live, kind=kind, **conditions)


def unexpired(now: datetime) -> Q:
    return Q(expires_at__isnull=True) | Q(expires_at__gt=now)


class HostCapability(models.Model):
    """One capability of one subject on one host."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="host_capabilities",
    )
    group = models.ForeignKey(
        Group, null=True, blank=True, on_delete=models.CASCADE, related_name="host_capabilities"
    )
    host_id = models.UUIDField(db_index=True)
    capability = models.CharField(max_length=32, choices=Capability)
    granted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["created_at", "id"]
        verbose_name_plural = "host capabilities"
        constraints: ClassVar = [
            models.CheckConstraint(condition=_ONE_SUBJECT, name="capability_has_one_subject"),
            models.UniqueConstraint(
                fields=["user", "host_id", "capability"], name="capability_per_user"
            ),
            models.UniqueConstraint(
                fields=["group", "host_id", "capability"], name="capability_per_group"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.capability} on {self.host_id}"


def capabilities_held(actor_id: Any) -> QuerySet[HostCapability]:
    return HostCapability.objects.filter(held_by(actor_id)).order_by()


class Quota(models.Model):
    """How much one user may own, or all members of a group together; empty means no limit."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="quota",
    )
    group = models.OneToOneField(
        Group, null=True, blank=True, on_delete=models.CASCADE, related_name="quota"
    )
    workspaces = models.PositiveIntegerField(null=True, blank=True)
    # Of workspaces that run or shall run.
    cpus = models.DecimalField(max_digits=8, decimal_places=3, null=True, blank=True)
    memory_bytes = models.PositiveBigIntegerField(null=True, blank=True)
    gpus = models.PositiveIntegerField(null=True, blank=True)
    # Of images and snapshots.
    disk_bytes = models.PositiveBigIntegerField(null=True, blank=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=_ONE_SUBJECT, name="quota_has_one_subject")
        ]

    def __str__(self) -> str:
        return f"quota of {self.user or f'the group {self.group}'}"
