"""What may be written about registries and images; shapes as in the contract."""

from __future__ import annotations

from rest_framework import serializers

from images.choices import ImageKind, UpdatePolicy
from images.services.fields import DOCKERFILE_LIMIT
from trailer.api.fields import Choice, Flag, Identifier, OptionalText, Text
from trailer.api.serializers import StrictSerializer
from trailer.validation import LIST_LIMIT


class RegistryInput(StrictSerializer):
    server = Text(max_length=255, help_text="host or host:port")
    username = OptionalText(max_length=255)
    password = OptionalText(max_length=8192, write_only=True)


class RegistryTestInput(StrictSerializer):
    host = Identifier(
        required=False, help_text="Which host tries it; by default one that answers."
    )


class FileInput(StrictSerializer):
    path = Text(max_length=255)
    content = Text(allow_blank=True)


class ImageUpdateInput(StrictSerializer):
    name = Text(max_length=128)
    dockerfile = OptionalText(max_length=DOCKERFILE_LIMIT)
    files = serializers.ListField(child=FileInput(), max_length=LIST_LIMIT, required=False)
    build_args = serializers.DictField(child=Text(allow_blank=True), required=False)
    build_secrets = serializers.DictField(
        child=Text(allow_blank=True, allow_null=True),
        required=False,
        help_text="Replaces the map; a null value keeps what is stored under that name.",
    )
    target = OptionalText(max_length=128)
    pull_base = Flag(required=False)
    reference = OptionalText(max_length=255)
    registry = Identifier(allow_null=True, required=False)
    update_policy = Choice(choices=UpdatePolicy.choices, required=False)
    push = Flag(required=False)
    enabled = Flag(required=False)


class ImageInput(ImageUpdateInput):
    host = Identifier()
    kind = Choice(choices=ImageKind.choices, required=False, help_text="pull by default")
