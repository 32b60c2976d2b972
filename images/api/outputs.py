"""How registries, images and builds are read; shapes as in the contract."""

from __future__ import annotations

from typing import Any, Final

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from hosts.status import is_fresh, object_message
from images.models import Build, Image, Registry, RegistryTest
from images.selectors import update_available
from images.status import (
    image_badge,
    image_badge_of,
    newest_test,
    registry_badge,
    registry_message,
)
from images.told import build_message, image_message, own_message
from trailer import policy


class RegistryTestOutput(serializers.ModelSerializer[RegistryTest]):
    class Meta:
        model = RegistryTest
        fields = ("host", "created_at", "finished_at")
        read_only_fields = fields


class RegistryOutput(serializers.ModelSerializer[Registry]):
    """The password is never read, only whether there is one."""

    owner = serializers.CharField(source="owner.username")
    has_password = serializers.SerializerMethodField()
    status = serializers.SerializerMethodField()
    status_label = serializers.SerializerMethodField()
    message = serializers.SerializerMethodField()
    test = serializers.SerializerMethodField(help_text="The newest try; null before the first.")

    class Meta:
        model = Registry
        fields = (
            *("id", "server", "username", "has_password", "owner", "created_at", "updated_at"),
            *("status", "status_label", "message", "test"),
        )
        read_only_fields = fields

    def get_status(self, registry: Registry) -> str:
        return registry_badge(registry, timezone.now()).value

    def get_status_label(self, registry: Registry) -> str:
        return registry_badge(registry, timezone.now()).label

    def get_message(self, registry: Registry) -> str:
        return registry_message(registry, timezone.now())

    @extend_schema_field(RegistryTestOutput(allow_null=True))
    def get_test(self, registry: Registry) -> Any:
        test = newest_test(registry)
        return None if test is None else RegistryTestOutput(test).data

    def get_has_password(self, registry: Registry) -> bool:
        return bool(registry.password_token)


class FileOutput(serializers.Serializer[Any]):
    path = serializers.CharField()
    content = serializers.CharField()


# What an image is made from, and what it says to whoever may not know.
_SOURCE: Final[dict[str, Any]] = {
    "dockerfile": "",
    "files": [],
    "build_args": {},
    "build_secrets": {},
    "target": "",
    "registry": None,
    "current_build": None,
    # Not empty: told in general words.
    "message": None,
}


class ImageOutput(serializers.ModelSerializer[Image]):
    files = FileOutput(many=True)
    build_args = serializers.DictField(child=serializers.CharField())
    build_secrets = serializers.SerializerMethodField(
        help_text="The names; values are written, never read."
    )
    owner = serializers.CharField(source="owner.username")
    current_build = serializers.UUIDField(source="current_build_id", allow_null=True)
    status_label = serializers.SerializerMethodField()
    message = serializers.SerializerMethodField()
    fresh = serializers.SerializerMethodField()
    allowed_actions = serializers.SerializerMethodField()
    update_available = serializers.SerializerMethodField(
        help_text="The registry was seen with another digest than the one on the host."
    )

    hidden_fields = serializers.SerializerMethodField(
        help_text="Those that are left empty for a caller who sees the image through a workspace; "
        "the message is told in general words."
    )

    class Meta:
        model = Image
        fields = (
            *("id", "name", "host", "kind", "dockerfile", "files", "build_args"),
            *("build_secrets", "target"),
            *("pull_base", "reference", "registry", "update_policy", "push", "enabled"),
            *("status", "status_label", "message", "progress", "fresh", "allowed_actions"),
            *("digest", "engine_id", "size_bytes", "source_workspace", "source_image"),
            *("current_build", "available_digest", "update_available", "observed_at", "owner"),
            *("revision", "hidden_fields", "created_at", "updated_at"),
        )
        read_only_fields = fields

    def to_representation(self, image: Image) -> dict[str, Any]:
        told = super().to_representation(image)
        hidden = {name: _SOURCE[name] for name in told["hidden_fields"]}
        if "message" in hidden:
            hidden["message"] = object_message(
                image.host, image_message(self.context["request"].user, image, timezone.now())
            )
        return {**told, **hidden}

    def get_hidden_fields(self, image: Image) -> list[str]:
        actor = self.context["request"].user
        return [] if policy.allows(actor, "image.source", image) else [*_SOURCE]

    @extend_schema_field(
        {"type": "object", "additionalProperties": {"type": "string", "nullable": True}}
    )
    def get_build_secrets(self, image: Image) -> dict[str, None]:
        return {row.name: None for row in image.build_secrets.all()}

    def get_status_label(self, image: Image) -> str:
        return image_badge(image.status).label

    def get_message(self, image: Image) -> str:
        return object_message(image.host, own_message(image, timezone.now()))

    def get_fresh(self, image: Image) -> bool:
        return is_fresh(image.host, timezone.now())

    def get_allowed_actions(self, image: Image) -> list[str]:
        actor = self.context["request"].user
        return policy.allowed_of(actor, image, image_badge_of(image).actions)

    def get_update_available(self, image: Image) -> bool:
        return update_available(image)


class UnusedImageOutput(serializers.ModelSerializer[Image]):
    class Meta:
        model = Image
        fields = ("id", "name", "kind", "size_bytes", "created_at")
        read_only_fields = fields


class UnusedImagesOutput(serializers.Serializer[Any]):
    """A page of a list, and what deleting the whole list frees."""

    count = serializers.IntegerField()
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    total_bytes = serializers.IntegerField(
        help_text="Of all pages; at most this much is freed, since images share layers."
    )
    results = UnusedImageOutput(many=True)


class BuildOutput(serializers.ModelSerializer[Build]):
    actor = serializers.CharField(source="actor.username", default=None, allow_null=True)
    status_label = serializers.SerializerMethodField()
    message = serializers.SerializerMethodField()
    duration_s = serializers.SerializerMethodField(
        help_text="Seconds it took, or has taken so far; null before it began."
    )

    class Meta:
        model = Build
        fields = (
            *("id", "image", "number", "trigger", "actor", "status", "status_label", "message"),
            *("progress", "cancel_requested", "digest", "engine_id", "size_bytes", "log_bytes"),
            *("created_at", "started_at", "finished_at", "duration_s"),
        )
        read_only_fields = fields

    def get_status_label(self, build: Build) -> str:
        return image_badge(build.status).label

    def get_message(self, build: Build) -> str:
        return build_message(build, timezone.now())

    def get_duration_s(self, build: Build) -> float | None:
        if build.started_at is None:
            return None
        end = build.finished_at or timezone.now()
        return round(max(0.0, (end - build.started_at).total_seconds()), 3)
