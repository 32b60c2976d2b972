"""How registries, images and builds are read; shapes as in the contract."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework import serializers

from hosts.status import is_fresh
from images.models import Build, Image, Registry
from images.status import image_badge


class RegistryOutput(serializers.ModelSerializer[Registry]):
    """The password is never read, only whether there is one."""

    owner = serializers.CharField(source="owner.username")
    has_password = serializers.SerializerMethodField()

    class Meta:
        model = Registry
        fields = (
            *("id", "server", "username", "has_password", "owner", "created_at", "updated_at"),
        )
        read_only_fields = fields

    def get_has_password(self, registry: Registry) -> bool:
        return bool(registry.password_token)


class FileOutput(serializers.Serializer[Any]):
    path = serializers.CharField()
    content = serializers.CharField()


class ImageOutput(serializers.ModelSerializer[Image]):
    files = FileOutput(many=True)
    build_args = serializers.DictField(child=serializers.CharField())
    owner = serializers.CharField(source="owner.username")
    current_build = serializers.UUIDField(source="current_build_id", allow_null=True)
    status_label = serializers.SerializerMethodField()
    fresh = serializers.SerializerMethodField()
    allowed_actions = serializers.SerializerMethodField()

    class Meta:
        model = Image
        fields = (
            *("id", "name", "host", "kind", "dockerfile", "files", "build_args", "target"),
            *("pull_base", "reference", "registry", "update_policy", "push", "enabled"),
            *("status", "status_label", "message", "progress", "fresh", "allowed_actions"),
            *("digest", "engine_id", "size_bytes", "source_workspace", "current_build"),
            *("available_digest", "observed_at", "owner", "revision", "created_at", "updated_at"),
        )
        read_only_fields = fields

    def get_status_label(self, image: Image) -> str:
        return image_badge(image.status).label

    def get_fresh(self, image: Image) -> bool:
        return is_fresh(image.host, timezone.now())

    def get_allowed_actions(self, image: Image) -> list[str]:
        return list(image_badge(image.status).actions)


class BuildOutput(serializers.ModelSerializer[Build]):
    actor = serializers.CharField(source="actor.username", default=None, allow_null=True)
    status_label = serializers.SerializerMethodField()

    class Meta:
        model = Build
        fields = (
            *("id", "image", "number", "trigger", "actor", "status", "status_label", "message"),
            *("progress", "cancel_requested", "digest", "engine_id", "size_bytes", "log_bytes"),
            *("created_at", "started_at", "finished_at"),
        )
        read_only_fields = fields

    def get_status_label(self, build: Build) -> str:
        return image_badge(build.status).label
