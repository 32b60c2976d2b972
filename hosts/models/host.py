"""One Docker host: its settings (desired) and what its agent last said (observed)."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.db import models

from hosts.choices import RouterMode
from trailer.sealed import SealedField
from trailer.visibility import VisibleManager


class Host(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=63, unique=True)
    description = models.TextField(blank=True)
    enabled = models.BooleanField(default=True)
    reconcile_interval = models.PositiveIntegerField(default=10, help_text="Seconds.")
    heartbeat_interval = models.PositiveIntegerField(default=15, help_text="Seconds.")
    build_timeout = models.PositiveIntegerField(default=1800, help_text="Seconds.")
    pull_timeout = models.PositiveIntegerField(default=1800, help_text="Seconds.")
    build_idle_timeout = models.PositiveIntegerField(
        default=600, help_text="Seconds without output after which a build is ended."
    )
    build_context_bytes = models.PositiveBigIntegerField(
        default=64 * 1024**2, help_text="Most bytes of an image's Dockerfile and files together."
    )
    build_parallel = models.PositiveIntegerField(
        default=2, help_text="Builds and pulls that run at the same time."
    )
    update_interval = models.PositiveIntegerField(
        default=300, help_text="Seconds between two looks at the registries for newer images."
    )
    disk_free_min_bytes = models.PositiveBigIntegerField(
        default=2 * 1024**3,
        help_text="Free bytes below which no pull, build or snapshot begins.",
    )
    router_mode = models.CharField(max_length=20, choices=RouterMode, default=RouterMode.NONE)
    router_network = models.CharField(max_length=128, blank=True)
    router_entrypoint = models.CharField(max_length=64, blank=True)
    router_certresolver = models.CharField(max_length=64, blank=True)
    router_managed = models.BooleanField(default=False)
    router_image = models.CharField(max_length=255, blank=True)
    router_domains = models.JSONField(
        default=list, blank=True, help_text="Domains of URLs on its router; none allows any."
    )
    nvidia_deploy_driver = models.BooleanField(default=False)
    nvidia_deploy_toolkit = models.BooleanField(default=False)
    nvidia_driver_image = models.CharField(max_length=255, blank=True)
    nvidia_toolkit_image = models.CharField(max_length=255, blank=True)
    metrics_host = models.BooleanField(default=True)
    metrics_gpu = models.BooleanField(default=True)
    metrics_workspace = models.BooleanField(default=True)
    metrics_retention_days = models.PositiveIntegerField(default=7)
    agent_image = models.CharField(max_length=255, blank=True)
    # Set while a rollout waits for this host: its agent compares images, not names.
    agent_order = models.PositiveBigIntegerField(default=0, editable=False)
    maintenance_schedule = models.CharField(max_length=100, blank=True)
    block_metadata = models.BooleanField(
        default=True,
        help_text="Keep the machine's containers from a cloud's metadata addresses.",
    )
    # Windows ordered so far, and when the schedule was looked at with that result.
    maintenance = models.PositiveIntegerField(default=0, editable=False)
    maintenance_at = models.DateTimeField(null=True, blank=True, editable=False)
    revision = models.PositiveIntegerField(default=1, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    # Counts every change of anything the state document holds; the stored document carries the
    # number it was made from, so a poll knows with one look-up whether it is still right.
    desired_version = models.PositiveBigIntegerField(default=1, editable=False)
    state_epoch = models.PositiveBigIntegerField(default=1, editable=False)
    # Set by a restore: this state may be older than what the host has; an admin confirms it.
    state_restored = models.BooleanField(default=False, editable=False)
    # Signs the labels of what this host's agent makes; encrypted.
    host_key = SealedField(blank=True, editable=False)

    # Observed: written only by the heartbeat and the session.
    last_heartbeat = models.DateTimeField(null=True, blank=True, editable=False)
    silent_published = models.BooleanField(default=True, editable=False)
    epoch = models.PositiveBigIntegerField(default=0, editable=False)
    agent_version = models.CharField(max_length=64, blank=True, editable=False)
    # What its container was made from, and what became of the newest try to replace it.
    agent_image_running = models.CharField(max_length=255, blank=True, editable=False)
    agent_image_id = models.CharField(max_length=255, blank=True, editable=False)
    update_order = models.PositiveBigIntegerField(default=0, editable=False)
    update_image = models.CharField(max_length=255, blank=True, editable=False)
    update_message = models.TextField(blank=True, editable=False)
    # Whether containers reach metadata addresses, and why that is not as it should be.
    metadata_guard = models.CharField(max_length=20, blank=True, editable=False)
    metadata_message = models.TextField(blank=True, editable=False)
    engine = models.JSONField(default=dict, blank=True, editable=False)
    capabilities = models.JSONField(default=list, blank=True, editable=False)
    interfaces = models.JSONField(default=list, blank=True, editable=False)
    # Addresses in use there; None while its agent has not said, as one of an older version.
    address_ranges = models.JSONField(null=True, blank=True, editable=False)
    # The cards that answer; who holds them is in the workspaces' GpuHold.
    gpus = models.JSONField(default=list, blank=True, editable=False)
    cpu_count = models.PositiveIntegerField(null=True, blank=True, editable=False)
    memory_bytes = models.PositiveBigIntegerField(null=True, blank=True, editable=False)
    disk_free_bytes = models.PositiveBigIntegerField(null=True, blank=True, editable=False)
    disk_total_bytes = models.PositiveBigIntegerField(null=True, blank=True, editable=False)
    # How far the agent's clock is ahead of the server's.
    clock_skew_seconds = models.IntegerField(null=True, blank=True, editable=False)
    message = models.TextField(blank=True, editable=False)
    # Since when the engine does not answer its agent, by this server's clock.
    engine_silent_since = models.DateTimeField(null=True, blank=True, editable=False)
    # Since when no agent may speak for this host; a new one that is let in ends it.
    agent_revoked_at = models.DateTimeField(null=True, blank=True, editable=False)
    # Kind -> status and message of the platform's own containers.
    prerequisites = models.JSONField(default=dict, blank=True, editable=False)
    leftovers = models.JSONField(default=list, blank=True, editable=False)
    leftovers_epoch = models.PositiveBigIntegerField(default=0, editable=False)
    leftovers_seq = models.PositiveBigIntegerField(default=0, editable=False)

    objects = VisibleManager()

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name
