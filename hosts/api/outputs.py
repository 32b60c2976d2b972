"""How hosts, networks, volumes and cycles are read; shapes as in the contract."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from hosts.choices import HostStatus, RouterMode
from hosts.models import Cycle, Host, Network, Volume
from hosts.prerequisites import router_warning
from hosts.selectors import HoldersSeen, gpus_with_holders, prerequisites_shown
from hosts.status import (
    host_badge,
    host_message,
    is_fresh,
    is_heard,
    object_message,
    resource_badge,
)
from hosts.volume_notice import volume_notice
from trailer import policy


class RouterOutput(serializers.Serializer[Host]):
    mode = serializers.ChoiceField(source="router_mode", choices=RouterMode.choices)
    network = serializers.CharField(source="router_network")
    entrypoint = serializers.CharField(source="router_entrypoint")
    certresolver = serializers.CharField(source="router_certresolver")
    managed = serializers.BooleanField(source="router_managed")
    image = serializers.CharField(source="router_image")
    domains = serializers.ListField(source="router_domains", child=serializers.CharField())
    warning = serializers.SerializerMethodField(
        help_text="Why these settings serve no URL; empty when they do."
    )

    def get_warning(self, host: Host) -> str:
        return router_warning(mode=host.router_mode, managed=host.router_managed)


class NvidiaOutput(serializers.Serializer[Host]):
    deploy_driver = serializers.BooleanField(source="nvidia_deploy_driver")
    deploy_toolkit = serializers.BooleanField(source="nvidia_deploy_toolkit")
    driver_image = serializers.CharField(source="nvidia_driver_image")
    toolkit_image = serializers.CharField(source="nvidia_toolkit_image")


class MetricsOutput(serializers.Serializer[Host]):
    host = serializers.BooleanField(source="metrics_host")
    gpu = serializers.BooleanField(source="metrics_gpu")
    workspace = serializers.BooleanField(source="metrics_workspace")
    retention_days = serializers.IntegerField(source="metrics_retention_days")


class EngineOutput(serializers.Serializer[Any]):
    """Empty values until the agent has told."""

    name = serializers.CharField(default="")
    version = serializers.CharField(default="")
    api_version = serializers.CharField(default="")
    runtimes = serializers.ListField(child=serializers.CharField(), default=list)
    storage_driver = serializers.CharField(default="")
    live_restore = serializers.BooleanField(default=False)


class GpuOutput(serializers.Serializer[Any]):
    id = serializers.CharField(default="")
    name = serializers.CharField(default="")
    memory_bytes = serializers.IntegerField(default=0)
    index = serializers.IntegerField(default=0)
    held_by = serializers.ListField(
        child=serializers.CharField(),
        help_text="Names of the workspaces that hold it; `another workspace` for one that the "
        "caller may not see.",
    )
    lost = serializers.BooleanField(help_text="Held, but the host has it no more.")


class InterfaceOutput(serializers.Serializer[Any]):
    name = serializers.CharField(default="")
    addresses = serializers.ListField(child=serializers.CharField(), default=list)
    mac = serializers.CharField(default="")
    up = serializers.BooleanField(default=True)


class PrerequisiteOutput(serializers.Serializer[Any]):
    kind = serializers.CharField()
    image = serializers.CharField()
    status = serializers.CharField()
    message = serializers.CharField()


class MetadataGuardOutput(serializers.Serializer[Host]):
    state = serializers.CharField(
        source="metadata_guard",
        help_text="Whether containers reach metadata addresses, as the agent says: `blocked`, "
        "`open`, or empty while nobody knows.",
    )
    message = serializers.CharField(
        source="metadata_message", help_text="Why that is not as `block_metadata` wants it."
    )


class HostOutput(serializers.ModelSerializer[Host]):
    router = RouterOutput(source="*")
    nvidia = NvidiaOutput(source="*")
    metrics = MetricsOutput(source="*")
    metadata_guard = MetadataGuardOutput(source="*")
    engine = EngineOutput()
    gpus = serializers.SerializerMethodField()
    interfaces = InterfaceOutput(many=True)
    capabilities = serializers.ListField(child=serializers.CharField())
    status = serializers.SerializerMethodField()
    status_label = serializers.SerializerMethodField()
    fresh = serializers.SerializerMethodField()
    allowed_actions = serializers.SerializerMethodField()
    prerequisites = serializers.SerializerMethodField()
    message = serializers.SerializerMethodField()

    class Meta:
        model = Host
        fields = (
            *("id", "name", "description", "enabled", "reconcile_interval"),
            *("heartbeat_interval", "build_timeout", "pull_timeout", "build_idle_timeout"),
            *("build_context_bytes", "build_parallel", "update_interval"),
            *("disk_free_min_bytes", "router", "nvidia"),
            *("metrics", "agent_image", "maintenance_schedule", "status", "status_label"),
            *("block_metadata", "metadata_guard"),
            *("fresh", "allowed_actions", "message", "last_heartbeat", "agent_version", "engine"),
            *("agent_image_running", "agent_image_id", "update_image", "update_message"),
            "state_restored",
            *("capabilities", "cpu_count", "memory_bytes", "disk_free_bytes"),
            *("disk_total_bytes", "clock_skew_seconds", "gpus", "interfaces"),
            "prerequisites",
            *("revision", "created_at", "updated_at"),
        )
        read_only_fields = fields

    def get_message(self, host: Host) -> str:
        return host_message(host)

    @extend_schema_field(GpuOutput(many=True))
    def get_gpus(self, host: Host) -> list[dict[str, Any]]:
        return gpus_with_holders(host, self._holders_seen)

    @cached_property
    def _holders_seen(self) -> HoldersSeen:
        return HoldersSeen(self.context["request"].user)

    @extend_schema_field(serializers.ChoiceField(choices=HostStatus.choices))
    def get_status(self, host: Host) -> str:
        return host_badge(host, timezone.now()).value

    def get_status_label(self, host: Host) -> str:
        return host_badge(host, timezone.now()).label

    def get_fresh(self, host: Host) -> bool:
        return is_heard(host, timezone.now())

    @extend_schema_field(PrerequisiteOutput(many=True))
    def get_prerequisites(self, host: Host) -> list[dict[str, str]]:
        return prerequisites_shown(host)

    def get_allowed_actions(self, host: Host) -> list[str]:
        actor = self.context["request"].user
        return policy.allowed_of(actor, host, host_badge(host, timezone.now()).actions)


class EnrolmentOutput(serializers.Serializer[Any]):
    token = serializers.CharField()
    expires_at = serializers.DateTimeField()
    command = serializers.CharField(help_text="The line to paste on the host.")
    image = serializers.CharField(help_text="What the agent's container is made of.")
    digests = serializers.DictField(
        child=serializers.CharField(),
        help_text="SHA-256 of the archive that the line loads from this server, by architecture; "
        "empty when the image comes from elsewhere.",
    )
    problem = serializers.CharField(
        help_text="What the administrator must know of the image before pasting; empty: nothing."
    )
    server_url = serializers.CharField(help_text="Where the line lets the agent find this server.")
    server_warning = serializers.CharField(
        help_text="Why an agent on another machine would not find it there; empty: none is known."
    )
    server_answers = serializers.BooleanField(
        allow_null=True,
        help_text="Whether this server answered at the `server_url` that was given, asked from "
        "itself; null: it was not asked.",
    )


class StepOutput(serializers.Serializer[Any]):
    step = serializers.CharField()
    resource = serializers.CharField()
    name = serializers.CharField()
    cause = serializers.CharField()
    outcome = serializers.CharField()
    started_at = serializers.CharField()
    duration_ms = serializers.IntegerField()
    message = serializers.CharField()


class CycleOutput(serializers.ModelSerializer[Cycle]):
    cleanup = serializers.ChoiceField(choices=["done", "deferred", "held", "skipped"])
    steps = StepOutput(many=True)

    class Meta:
        model = Cycle
        fields = (
            *("id", "number", "epoch", "trigger", "started_at", "finished_at", "outcome"),
            *("cleanup", "engine_calls", "steps", "message"),
        )
        read_only_fields = fields


class LeftoverOutput(serializers.Serializer[Any]):
    resource = serializers.CharField()
    name = serializers.CharField()
    engine_id = serializers.CharField()
    reason = serializers.CharField()
    message = serializers.CharField()


class ResourceOutput(serializers.Serializer[Any]):
    """What networks and volumes show of their state."""

    owner = serializers.CharField(source="owner.username", read_only=True)
    status_label = serializers.SerializerMethodField()
    fresh = serializers.SerializerMethodField()
    message = serializers.SerializerMethodField()

    def get_message(self, row: Network | Volume) -> str:
        return object_message(row.host, row.message)

    def get_status_label(self, row: Network | Volume) -> str:
        return resource_badge(row.status).label

    def get_fresh(self, row: Network | Volume) -> bool:
        return is_fresh(row.host, timezone.now())


_STATE = ("status", "status_label", "message", "fresh", "observed_at", "owner", "revision")
_TIMES = ("created_at", "updated_at")


class NetworkOutput(ResourceOutput, serializers.ModelSerializer[Network]):
    class Meta:
        model = Network
        fields = (
            *("id", "name", "host", "driver", "internal", "parent_interface", "subnet"),
            *("gateway", "ip_range", *_STATE, *_TIMES),
        )
        read_only_fields = fields


class VolumeOutput(ResourceOutput, serializers.ModelSerializer[Volume]):
    data_gone_since = serializers.DateTimeField(
        source="data_gone_at",
        allow_null=True,
        read_only=True,
        help_text="It was missing on the host and was made again, empty. Null once acknowledged.",
    )
    notice = serializers.SerializerMethodField(help_text="The same as a sentence, or empty.")

    class Meta:
        model = Volume
        fields = (
            *("id", "name", "host", "kind", "source", *_STATE),
            *("data_gone_since", "notice", *_TIMES),
        )
        read_only_fields = fields

    def get_notice(self, volume: Volume) -> str:
        return volume_notice(volume)
