"""Shapes of sign-in, tokens and users; shapes as in the contract."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rest_framework import serializers

from trailer.accounts.models import ApiToken, TokenScope, User
from trailer.api.fields import Choice, Flag, OptionalText, Text
from trailer.api.serializers import StrictSerializer
from trailer.validation import LIST_LIMIT

if TYPE_CHECKING:
    from django.contrib.auth.models import Group


class LoginInput(StrictSerializer):
    username = Text(max_length=150)
    password = Text(max_length=4096)


class LoginOutput(serializers.Serializer[Any]):
    token = serializers.CharField()
    expires_at = serializers.DateTimeField()


class TokenUpdateInput(StrictSerializer):
    name = Text(max_length=100)
    expires_at = serializers.DateTimeField(required=False, allow_null=True)


class TokenInput(TokenUpdateInput):
    scope = Choice(choices=TokenScope.choices, required=False)


class TokenOutput(serializers.ModelSerializer[ApiToken]):
    class Meta:
        model = ApiToken
        fields: tuple[str, ...] = (
            "id",
            "name",
            "scope",
            "expires_at",
            "last_used_at",
            "created_at",
        )
        read_only_fields = fields


class NewTokenOutput(TokenOutput):
    """The only answer that carries the key."""

    key = serializers.CharField()

    class Meta(TokenOutput.Meta):
        fields = (*TokenOutput.Meta.fields, "key")
        read_only_fields = fields


class UserInput(StrictSerializer):
    username = Text(max_length=150)
    email = OptionalText(max_length=254)
    password = OptionalText(max_length=4096, write_only=True)
    is_admin = Flag(required=False)
    is_active = Flag(required=False)
    groups = serializers.ListField(
        child=Text(max_length=150), max_length=LIST_LIMIT, required=False
    )


class UserOutput(serializers.ModelSerializer[User]):
    is_admin = serializers.BooleanField(source="is_superuser")
    groups: serializers.SlugRelatedField[Group] = serializers.SlugRelatedField(
        "name", many=True, read_only=True
    )

    class Meta:
        model = User
        fields = (
            *("id", "username", "email", "is_admin", "is_active", "groups"),
            *("date_joined", "last_login"),
        )
        read_only_fields = fields
