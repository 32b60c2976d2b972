"""What the API answers about workspaces.

The schema is made from these annotations at run time, so they are not postponed here.
"""

from typing import Any
from uuid import UUID

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from agent.protocol import naming
from hosts.status import object_message
from hosts.volume_notice import mounts_notice
from images.models import Image
from trailer import policy
from workspaces.api.parts import (
    GpusSerializer,
    HealthCheckSerializer,
    MountSerializer,
    PortSerializer,
    ScheduleSerializer,
    TimerSerializer,
    UrlSerializer,
)
from workspaces.choices import DesiredState, WorkspaceStatus
from workspaces.models import Revision, Workspace
from workspaces.status import workspace_badge, workspace_is_fresh
from workspaces.timers.told import timer_told

# How it is configured, and what a field says to who may not see that.
_CONFIGURATION: dict[str, Any] = {
    "command": [],
    "env": {},
    "secret_env": {},
    "mounts": [],
    "health_check": None,
    "labels": {},
}


class WorkspaceSerializer(serializers.Serializer[Any]):
    """A workspace: the writable fields first, then what is only answered."""

    id = serializers.UUIDField(read_only=True)
    name = serializers.CharField()
    description = serializers.CharField(allow_blank=True)
    host = serializers.UUIDField(source="host_id")
    image = serializers.UUIDField(source="image_id")
    desired_state = serializers.ChoiceField(choices=DesiredState.choices)
    command = serializers.ListField(child=serializers.CharField(allow_blank=True))
    env = serializers.SerializerMethodField()
    secret_env = serializers.SerializerMethodField(
        help_text="Names of the secret variables; their values are never answered."
    )
    cpus = serializers.FloatField(allow_null=True)
    memory_bytes = serializers.IntegerField(allow_null=True)
    shm_bytes = serializers.IntegerField(allow_null=True)
    gpus = serializers.SerializerMethodField()
    gpu_ids = serializers.SerializerMethodField(
        help_text="The cards it holds, or would like again after a stop."
    )
    nested_virtualization = serializers.BooleanField()
    ports = PortSerializer(many=True)
    mounts = MountSerializer(many=True)
    networks = serializers.SerializerMethodField()
    urls = UrlSerializer(many=True)
    health_check = serializers.SerializerMethodField()
    startup_timeout = serializers.IntegerField()
    drain_timeout = serializers.IntegerField()
    shared_volumes = serializers.BooleanField()
    idle_stop_minutes = serializers.IntegerField(allow_null=True)
    schedule = ScheduleSerializer()
    labels = serializers.DictField(child=serializers.CharField(allow_blank=True))

    timer = serializers.SerializerMethodField(
        help_text="Whether, when and why it would stop by itself; null when nothing would."
    )
    status = serializers.SerializerMethodField()
    status_label = serializers.SerializerMethodField()
    message = serializers.SerializerMethodField()
    notice = serializers.SerializerMethodField(
        help_text="What stays true until somebody acknowledges it, such as that the data of one "
        "of its volumes is gone; or empty."
    )
    fresh = serializers.SerializerMethodField(
        help_text="False while the host's agent is silent, or its engine does not answer; "
        "the status is then the last that was known."
    )
    observed_at = serializers.DateTimeField(read_only=True, allow_null=True)
    allowed_actions = serializers.SerializerMethodField()
    revision = serializers.IntegerField(read_only=True)
    observed_revision = serializers.IntegerField(read_only=True)
    container_id = serializers.CharField(read_only=True)
    container_name = serializers.SerializerMethodField()
    started_at = serializers.DateTimeField(read_only=True, allow_null=True)
    restart_count = serializers.IntegerField(read_only=True)
    health = serializers.CharField(read_only=True)
    exit_code = serializers.IntegerField(read_only=True, allow_null=True)
    owner = serializers.CharField(read_only=True, source="owner.username")
    # Who sees a workspace knows what it is made of by name, whoever owns that.
    host_name = serializers.CharField(read_only=True, source="host.name")
    image_name = serializers.CharField(read_only=True, source="image.name")
    network_names = serializers.SerializerMethodField()
    volume_names = serializers.SerializerMethodField()
    stack = serializers.UUIDField(read_only=True, allow_null=True)
    hidden_fields = serializers.SerializerMethodField(
        help_text="Those that are left empty for a caller without the right inspect."
    )
    created_at = serializers.DateTimeField(read_only=True)
    updated_at = serializers.DateTimeField(read_only=True)

    def to_representation(self, workspace: Workspace) -> dict[str, Any]:
        told = super().to_representation(workspace)
        return {**told, **{name: _CONFIGURATION[name] for name in told["hidden_fields"]}}

    def get_hidden_fields(self, workspace: Workspace) -> list[str]:
        actor = self.context["request"].user
        return [] if policy.allows(actor, "workspace.inspect", workspace) else [*_CONFIGURATION]

    def get_env(self, workspace: Workspace) -> dict[str, str]:
        return {var.name: var.value for var in workspace.env_vars.all() if not var.is_secret}

    @extend_schema_field(
        {"type": "object", "additionalProperties": {"type": "string", "nullable": True}}
    )
    def get_secret_env(self, workspace: Workspace) -> dict[str, None]:
        return {var.name: None for var in workspace.env_vars.all() if var.is_secret}

    @extend_schema_field(GpusSerializer(allow_null=True))
    def get_gpus(self, workspace: Workspace) -> Any:
        return workspace.gpus or None

    def get_gpu_ids(self, workspace: Workspace) -> list[str]:
        return [hold.gpu for hold in workspace.gpu_holds.all()]

    def get_networks(self, workspace: Workspace) -> list[UUID]:
        return [network.pk for network in workspace.networks.all()]

    def get_network_names(self, workspace: Workspace) -> list[str]:
        return [network.name for network in workspace.networks.all()]

    def get_volume_names(self, workspace: Workspace) -> list[str]:
        return list(dict.fromkeys(mount.volume.name for mount in workspace.mounts.all()))

    @extend_schema_field(HealthCheckSerializer(allow_null=True))
    def get_health_check(self, workspace: Workspace) -> Any:
        return workspace.health_check or None

    @extend_schema_field(TimerSerializer(allow_null=True))
    def get_timer(self, workspace: Workspace) -> Any:
        told = timer_told(workspace, timezone.now())
        return None if told is None else TimerSerializer(told).data

    @extend_schema_field(serializers.ChoiceField(choices=WorkspaceStatus.choices))
    def get_status(self, workspace: Workspace) -> str:
        return workspace_badge(workspace).value

    def get_status_label(self, workspace: Workspace) -> str:
        return workspace_badge(workspace).label

    def get_notice(self, workspace: Workspace) -> str:
        return mounts_notice(mount.volume for mount in workspace.mounts.all())

    def get_message(self, workspace: Workspace) -> str:
        return object_message(workspace.host, workspace.message)

    def get_fresh(self, workspace: Workspace) -> bool:
        return workspace_is_fresh(workspace, timezone.now())

    def get_allowed_actions(self, workspace: Workspace) -> list[str]:
        actor = self.context["request"].user
        return policy.allowed_of(actor, workspace, workspace_badge(workspace).actions)

    def get_container_name(self, workspace: Workspace) -> str:
        return naming.container_name(workspace.name)


class SnapshotAnswerSerializer(WorkspaceSerializer):
    """The workspace, and the image that its snapshot becomes."""

    snapshot = serializers.UUIDField(read_only=True)


class SnapshotSerializer(serializers.Serializer[Any]):
    """One snapshot of the workspace, by whom it was taken and whose it is."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    owner = serializers.CharField(source="owner.username")
    made_by = serializers.CharField(
        source="made_by.username",
        default=None,
        allow_null=True,
        help_text="Null when that user is gone, and of snapshots taken by older versions.",
    )
    is_others = serializers.SerializerMethodField(
        help_text="It belongs to somebody else than the workspace."
    )
    status = serializers.CharField()
    size_bytes = serializers.IntegerField(allow_null=True)
    created_at = serializers.DateTimeField()

    def get_is_others(self, image: Image) -> bool:
        return bool(image.owner_id != self.context["owner_id"])


class FieldChangeSerializer(serializers.Serializer[Any]):
    """`from` and `to` hold the field's own shape; secret values are masked."""

    field = serializers.CharField()
    effect = serializers.ChoiceField(choices=["none", "in_place", "replace"])

    def get_fields(self) -> dict[str, Any]:
        # `from` is no Python name, so these two can't be class attributes.
        return {
            **super().get_fields(),
            "from": serializers.JSONField(allow_null=True),
            "to": serializers.JSONField(allow_null=True),
        }


class WrittenPathSerializer(serializers.Serializer[Any]):
    path = serializers.CharField()
    size_bytes = serializers.IntegerField()


class WritableLayerSerializer(serializers.Serializer[Any]):
    """What a container wrote outside its volumes."""

    size_bytes = serializers.IntegerField()
    file_count = serializers.IntegerField()
    deleted_count = serializers.IntegerField(help_text="Files of the image that were deleted.")
    is_whole = serializers.BooleanField(
        help_text="Whether every path was looked at; at most 200 are."
    )
    paths = WrittenPathSerializer(
        many=True, help_text="Largest first, at most 20; empty without the right to a terminal."
    )


class LossSerializer(serializers.Serializer[Any]):
    """What a replace would throw away, asked from the host's agent now."""

    loses_files = serializers.BooleanField(
        help_text="Whether a replace would throw written files away, or nobody can say."
    )
    writable_layer = WritableLayerSerializer(allow_null=True)
    writable_layer_reason = serializers.CharField(
        allow_blank=True, help_text="Why there is none, or why its paths are left out."
    )
    can_snapshot = serializers.BooleanField(
        help_text="Whether you may keep the files in a snapshot now. False where none are lost."
    )


class ReplaceLossSerializer(LossSerializer):
    """One of several workspaces that would be replaced."""

    workspace = serializers.UUIDField()
    name = serializers.CharField()
    service = serializers.CharField(help_text="Of a stack; or empty.")
    why = serializers.ChoiceField(
        choices=["image", "changed", "removed", "newer_image", "pulled_again"],
        help_text="With pulled_again it is replaced only if its tag has moved.",
    )


class ReplaceLossesSerializer(serializers.Serializer[Any]):
    """Only the workspaces that would lose files."""

    workspaces = ReplaceLossSerializer(many=True)
    problem = serializers.CharField(
        help_text="Why it is not known what would be replaced; then nothing will be. Or empty."
    )


class PlanSerializer(LossSerializer):
    action = serializers.ChoiceField(
        choices=["none", "create", "in_place", "replace", "start", "stop"]
    )
    changes = FieldChangeSerializer(many=True)
    downtime = serializers.ChoiceField(choices=["none", "brief"])
    downtime_reason = serializers.CharField(
        allow_blank=True, help_text="Why a replace can't do without downtime."
    )
    notes = serializers.ListField(
        child=serializers.CharField(), help_text="What else is to be known, as sentences."
    )


class RevisionSerializer(serializers.Serializer[Any]):
    revision = serializers.IntegerField()
    actor = serializers.SerializerMethodField()
    created_at = serializers.DateTimeField()

    def get_fields(self) -> dict[str, Any]:
        # `fields` is taken by the serializer itself.
        return {
            **super().get_fields(),
            "fields": serializers.DictField(
                help_text="The writable fields as they were, without secret_env."
            ),
        }

    def get_actor(self, revision: Revision) -> str | None:
        return revision.actor.username if revision.actor else None
