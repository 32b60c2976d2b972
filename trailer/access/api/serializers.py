"""Shapes of grants and capabilities."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from trailer.access.grants import NARROWED, ROLES
from trailer.access.models import Capability, Grant, Right, Role
from trailer.api.fields import Choice, Text
from trailer.api.serializers import StrictSerializer

_ONLY_ANSWERED = frozenset({"username", "granted_by", "created_at"})


class GrantInput(StrictSerializer):
    """Either `user` or `group`; what an answer holds may be sent back."""

    user = Text(max_length=150, required=False, allow_null=True, help_text="An id or a username.")
    group = Text(max_length=150, required=False, allow_null=True, help_text="A group's name.")
    role = Choice(choices=[(label, label) for label in ROLES])
    expires_at = serializers.DateTimeField(required=False, allow_null=True)
    rights = serializers.ListField(
        child=Choice(choices=Right.choices),
        max_length=len(Right),
        required=False,
        allow_null=True,
        help_text="Of workspaces and stacks: what the role brings; left out, it stays as it is, "
        "and a new grant has all.",
    )

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict):
            data = {name: value for name, value in data.items() if name not in _ONLY_ANSWERED}
        return super().to_internal_value(data)


class GrantListInput(StrictSerializer):
    """The list under a name, so that errors say which entry they are about."""

    grants = GrantInput(many=True)


class TransferInput(StrictSerializer):
    owner = Text(max_length=150, help_text="An id or a username.")


class EvictInput(StrictSerializer):
    workspace = serializers.UUIDField(help_text="One that uses the object.")


class UserOfObject(serializers.Serializer[Any]):
    """A workspace by name, also for those who may not see it but own what it uses."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    owner = serializers.CharField(source="owner.username")


class EvictOutput(UserOfObject):
    desired_state = serializers.CharField()


class CapabilityInput(StrictSerializer):
    """Either `user` or `group`, and what they may do on the host."""

    user = Text(max_length=150, required=False, allow_null=True, help_text="An id or a username.")
    group = Text(max_length=150, required=False, allow_null=True, help_text="A group's name.")
    capabilities = serializers.ListField(
        child=Choice(choices=Capability.choices), max_length=len(Capability)
    )

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict):
            data = {name: value for name, value in data.items() if name not in _ONLY_ANSWERED}
        return super().to_internal_value(data)


class CapabilityListInput(StrictSerializer):
    access = CapabilityInput(many=True)


class CapabilityOutput(serializers.Serializer[Any]):
    user = serializers.UUIDField(allow_null=True)
    username = serializers.CharField(allow_null=True)
    group = serializers.CharField(allow_null=True)
    capabilities = serializers.ListField(child=serializers.ChoiceField(Capability.choices))


class GrantOutput(serializers.Serializer[Any]):
    user = serializers.UUIDField(source="user_id", allow_null=True)
    username = serializers.CharField(source="user.username", default=None, allow_null=True)
    group = serializers.CharField(source="group.name", default=None, allow_null=True)
    role = serializers.SerializerMethodField()
    rights = serializers.SerializerMethodField()
    expires_at = serializers.DateTimeField(allow_null=True)
    granted_by = serializers.CharField(source="granted_by.username", default=None, allow_null=True)
    created_at = serializers.DateTimeField()

    still_uses = UserOfObject(
        many=True,
        required=False,
        read_only=True,
        help_text="Only after a change, with role null: workspaces that use the object by a right "
        "that this person does not have any more.",
    )

    @extend_schema_field(serializers.ChoiceField(choices=list(ROLES), allow_null=True))
    def get_role(self, grant: Grant) -> str:
        return Role(grant.role).label

    @extend_schema_field(
        serializers.ListField(
            child=serializers.ChoiceField(choices=Right.choices), allow_null=True
        )
    )
    def get_rights(self, grant: Grant) -> list[str] | None:
        """Null where a role is all there is."""
        if grant.kind not in NARROWED:
            return None
        return [right.value for right in Right if getattr(grant, right.value)]
