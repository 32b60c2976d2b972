"""What may be written about stacks; shapes as in the contract."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from trailer.api.fields import Flag, Identifier, OptionalText, Text, Whole
from trailer.api.serializers import StrictSerializer


class CredentialInput(StrictSerializer):
    """A token for HTTPS, or a deploy key for SSH. A plain text is taken as a token."""

    username = OptionalText(max_length=255)
    token = OptionalText(max_length=8192)
    deploy_key = OptionalText(max_length=16384)
    known_hosts = OptionalText(max_length=16384)

    def to_internal_value(self, data: Any) -> Any:
        return super().to_internal_value({"token": data} if isinstance(data, str) else data)


class StackInput(StrictSerializer):
    name = Text(max_length=40, help_text="Fixed once the stack exists.")
    description = OptionalText()
    host = Identifier(help_text="Fixed once the stack exists.")
    repository = Text(max_length=1024)
    branch = OptionalText(max_length=255, allow_blank=False)
    path = OptionalText(max_length=512)
    poll_interval = Whole(required=False, help_text="Seconds, 300 by default; 0 turns it off.")
    credential = CredentialInput(required=False, allow_null=True, write_only=True)
    enabled = Flag(required=False)
    webhook_secret = OptionalText(
        max_length=1024, write_only=True, help_text="At least 32 characters; empty: no webhook."
    )
    variables = serializers.DictField(child=Text(allow_blank=True), required=False)
    secret_variables = serializers.DictField(
        child=Text(allow_blank=True, allow_null=True),
        required=False,
        write_only=True,
        help_text="Replaces the map; a null value keeps what is stored under that name.",
    )


class StackRollbackInput(StrictSerializer):
    """One of them; none: the revision before the one that is deployed."""

    revision = Whole(required=False, min_value=1)
    commit = OptionalText(max_length=64)
    sync = Identifier(required=False)


class StackRollbackPlanInput(StrictSerializer):
    """None: the revision before the one that is deployed."""

    revision = Whole(required=False, min_value=1)
