"""Parts of a workspace's spec that have identity rules of their own: ports, mounts, URLs, env; and
by whose right it is on its networks."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models

from hosts.models import Network, Volume
from trailer.sealed import SealedField
from workspaces.choices import PortProtocol, UrlAuth
from workspaces.models.workspace import Workspace


class Port(models.Model):
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="ports")
    container_port = models.PositiveIntegerField()
    protocol = models.CharField(max_length=3, choices=PortProtocol, default=PortProtocol.TCP)
    # Empty: the engine picks a free one.
    host_port = models.PositiveIntegerField(null=True, blank=True)
    host_ip = models.CharField(max_length=45, blank=True)

    class Meta:
        ordering: ClassVar = ["container_port", "protocol", "host_port"]

    def __str__(self) -> str:
        return f"{self.host_port or ''}:{self.container_port}/{self.protocol}"


class Mount(models.Model):
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="mounts")
    volume = models.ForeignKey(Volume, on_delete=models.PROTECT, related_name="mounts")
    target = models.CharField(max_length=1024)
    read_only = models.BooleanField(default=False)
    # By whose right it is there (workspaces/rights.py); empty: the workspace's owner's.
    attached_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    # The volume's owner put the workspace out: it stays down until this mount goes.
    evicted = models.BooleanField(default=False)

    class Meta:
        ordering: ClassVar = ["target"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "target"], name="mount_target_once")
        ]

    def __str__(self) -> str:
        return self.target


class NetworkAttachment(models.Model):
    """Beside each row of `Workspace.networks`: the same two facts that a mount has."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="attachments")
    network = models.ForeignKey(Network, on_delete=models.CASCADE, related_name="attachments")
    attached_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    evicted = models.BooleanField(default=False)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "network"], name="attachment_once")
        ]

    def __str__(self) -> str:
        return f"{self.workspace_id} on {self.network_id}"


class Url(models.Model):
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="urls")
    subdomain = models.CharField(max_length=63)
    domain = models.CharField(max_length=253)
    port = models.PositiveIntegerField()
    tls = models.BooleanField(default=False)
    auth = models.CharField(max_length=10, choices=UrlAuth, default=UrlAuth.USERS)

    class Meta:
        ordering: ClassVar = ["domain", "subdomain"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["subdomain", "domain"], name="one_workspace_per_url")
        ]

    def __str__(self) -> str:
        return f"{self.subdomain}.{self.domain}"


class EnvVar(models.Model):
    """A plain value in `value`, or a secret one encrypted in `secret_token`; never both."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="env_vars")
    name = models.CharField(max_length=255)
    value = models.TextField(blank=True)
    is_secret = models.BooleanField(default=False)
    secret_token = SealedField(of=("workspace_id", "name"), blank=True, editable=False)

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "name"], name="env_name_once")
        ]

    def __str__(self) -> str:
        return self.name
