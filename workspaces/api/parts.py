"""Shapes of ports, mounts, URLs, GPUs, health checks and schedules, for answers and schema."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from workspaces.choices import PortProtocol, UrlAuth

_PORT: dict[str, Any] = {"min_value": 1, "max_value": 65535}
_SECONDS: dict[str, Any] = {"min_value": 0.001, "max_value": 86_400, "required": False}


class PortSerializer(serializers.Serializer[Any]):
    container_port = serializers.IntegerField(**_PORT)
    protocol = serializers.ChoiceField(choices=PortProtocol.choices, required=False)
    host_port = serializers.IntegerField(
        **_PORT, allow_null=True, required=False, help_text="Null: the engine picks a free one."
    )
    host_ip = serializers.CharField(
        allow_blank=True, max_length=45, required=False, help_text="Empty: all addresses."
    )


class MountSerializer(serializers.Serializer[Any]):
    volume = serializers.UUIDField(source="volume_id")
    target = serializers.RegexField(r"^/", max_length=1024)

    def get_fields(self) -> dict[str, Any]:
        # `read_only` is taken by the serializer itself.
        return {**super().get_fields(), "read_only": serializers.BooleanField(required=False)}


class UrlSerializer(serializers.Serializer[Any]):
    subdomain = serializers.RegexField(r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", max_length=63)
    domain = serializers.CharField(max_length=253)
    port = serializers.IntegerField(**_PORT)
    tls = serializers.BooleanField(required=False)
    auth = serializers.ChoiceField(choices=UrlAuth.choices, required=False)


class GpusSerializer(serializers.Serializer[Any]):
    """Either `count` or `device_ids`; a card is one workspace's alone unless all share it."""

    count = serializers.IntegerField(min_value=0, max_value=1024, required=False)
    device_ids = serializers.ListField(
        child=serializers.CharField(max_length=128), max_length=256, required=False
    )
    shared = serializers.BooleanField(required=False)


class HealthCheckSerializer(serializers.Serializer[Any]):
    """Durations in seconds; `test` begins with CMD, CMD-SHELL or NONE."""

    test = serializers.ListField(
        child=serializers.CharField(allow_blank=True), min_length=1, max_length=256
    )
    interval = serializers.FloatField(**_SECONDS)
    timeout = serializers.FloatField(**_SECONDS)
    retries = serializers.IntegerField(min_value=1, max_value=1000, required=False)
    start_period = serializers.FloatField(min_value=0, max_value=86_400, required=False)


class ScheduleSerializer(serializers.Serializer[Any]):
    """Cron lines of five fields, in UTC."""

    start = serializers.CharField(max_length=256, required=False)
    stop = serializers.CharField(max_length=256, required=False)


class TimerSerializer(serializers.Serializer[Any]):
    """What would stop or start a workspace without a person. Times are UTC."""

    kind = serializers.ChoiceField(choices=["", "idle", "schedule"])
    in_use = serializers.BooleanField()
    idle_since = serializers.DateTimeField(allow_null=True)
    stops_at = serializers.DateTimeField(allow_null=True)
    because = serializers.CharField()
    warned = serializers.BooleanField(help_text="It stops within minutes.")
    extended_until = serializers.DateTimeField(allow_null=True)
    starts_at = serializers.DateTimeField(allow_null=True)
