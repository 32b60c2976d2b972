"""Shapes of request bodies, for the schema only: workspaces.validation judges the raw body.

The framework's own fields would coerce (true to 1, 5 to "5"); ours refuse with a sentence.
"""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from workspaces.api.parts import (
    GpusSerializer,
    HealthCheckSerializer,
    MountSerializer,
    PortSerializer,
    ScheduleSerializer,
    UrlSerializer,
)
from workspaces.choices import DesiredState
from workspaces.services.timer import MAX_MINUTES
from workspaces.validation.fields import (
    MAX_CPUS,
    MAX_IDLE_MINUTES,
    MAX_TIMEOUT,
    MIN_CPUS,
    MIN_MEMORY_BYTES,
    MIN_SHM_BYTES,
    NAME_PATTERN,
)
from workspaces.validation.scalars import MAX_ENTRIES, MAX_INTEGER, MAX_TEXT_BYTES

_TEXT: dict[str, Any] = {"allow_blank": True, "max_length": MAX_TEXT_BYTES}
_OPTIONAL: dict[str, Any] = {"required": False, "allow_null": True}
_TIMEOUT: dict[str, Any] = {"min_value": 0, "max_value": MAX_TIMEOUT, "required": False}


_REFUSE_LOSS: dict[str, Any] = {
    "required": False,
    "help_text": "Answer 409 would_lose_files instead of throwing files of the container away.",
}


class ReplaceInput(serializers.Serializer[Any]):
    refuse_loss = serializers.BooleanField(**_REFUSE_LOSS)


class WorkspaceInput(serializers.Serializer[Any]):
    name = serializers.RegexField(f"^{NAME_PATTERN}$", max_length=63)
    description = serializers.CharField(**_TEXT, required=False)
    host = serializers.UUIDField(help_text="Fixed once the workspace exists.")
    image = serializers.UUIDField()
    desired_state = serializers.ChoiceField(choices=DesiredState.choices, required=False)
    command = serializers.ListField(
        child=serializers.CharField(**_TEXT), max_length=MAX_ENTRIES, required=False
    )
    env = serializers.DictField(child=serializers.CharField(**_TEXT), required=False)
    secret_env = serializers.DictField(
        child=serializers.CharField(**_TEXT, allow_null=True),
        required=False,
        help_text="Replaces the map; a null value keeps what is stored under that name.",
    )
    cpus = serializers.FloatField(min_value=MIN_CPUS, max_value=MAX_CPUS, **_OPTIONAL)
    memory_bytes = serializers.IntegerField(
        min_value=MIN_MEMORY_BYTES, max_value=MAX_INTEGER, **_OPTIONAL
    )
    shm_bytes = serializers.IntegerField(
        min_value=MIN_SHM_BYTES, max_value=MAX_INTEGER, **_OPTIONAL
    )
    gpus = GpusSerializer(**_OPTIONAL)
    nested_virtualization = serializers.BooleanField(required=False)
    ports = PortSerializer(many=True, required=False)
    mounts = MountSerializer(many=True, required=False)
    networks = serializers.ListField(
        child=serializers.UUIDField(), max_length=MAX_ENTRIES, required=False
    )
    urls = UrlSerializer(many=True, required=False)
    health_check = HealthCheckSerializer(**_OPTIONAL)
    startup_timeout = serializers.IntegerField(**_TIMEOUT)
    drain_timeout = serializers.IntegerField(**_TIMEOUT)
    shared_volumes = serializers.BooleanField(
        required=False,
        help_text="Whether its program can share its volumes with a second copy of itself, so "
        "that it is replaced without downtime though it writes to them. Databases can't.",
    )
    idle_stop_minutes = serializers.IntegerField(
        min_value=1, max_value=MAX_IDLE_MINUTES, **_OPTIONAL
    )
    schedule = ScheduleSerializer(**_OPTIONAL)
    labels = serializers.DictField(child=serializers.CharField(**_TEXT), required=False)


class WorkspaceUpdateInput(WorkspaceInput):
    refuse_loss = serializers.BooleanField(**_REFUSE_LOSS)


class CloneInput(serializers.Serializer[Any]):
    name = serializers.RegexField(f"^{NAME_PATTERN}$", max_length=63)
    host = serializers.UUIDField(**_OPTIONAL)


class SnapshotInput(serializers.Serializer[Any]):
    name = serializers.CharField(
        max_length=128,
        allow_blank=True,
        **_OPTIONAL,
        help_text="Of the new image; by default the workspace's name and the time.",
    )


class ExtendInput(serializers.Serializer[Any]):
    minutes = serializers.IntegerField(
        min_value=1,
        max_value=MAX_MINUTES,
        **_OPTIONAL,
        help_text="From now on; by default as long as it may be idle, or an hour.",
    )


class RollbackInput(serializers.Serializer[Any]):
    revision = serializers.IntegerField(min_value=1, max_value=2**31 - 1)
    refuse_loss = serializers.BooleanField(**_REFUSE_LOSS)
