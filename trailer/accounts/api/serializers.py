"""Shapes of sign-in, tokens, sessions, users and groups; as in the contract."""

from __future__ import annotations

from typing import Any, Final

from django.contrib.auth.models import Group
from rest_framework import serializers

from trailer.accounts.models import ApiToken, Session, TokenScope, User
from trailer.accounts.sessions import stored_key
from trailer.api.fields import Choice, Flag, OptionalText, Text
from trailer.api.serializers import StrictSerializer
from trailer.validation import LIST_LIMIT

MEMBERS_LIMIT: Final = 10_000


class LoginInput(StrictSerializer):
    username = Text(max_length=150)
    password = Text(max_length=4096)
    code = OptionalText(max_length=40, help_text="Of the second factor, where there is one.")


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
            "is_sign_in",
        )
        read_only_fields = fields


class NewTokenOutput(TokenOutput):
    """The only answer that carries the key."""

    key = serializers.CharField()

    class Meta(TokenOutput.Meta):
        fields = (*TokenOutput.Meta.fields, "key")
        read_only_fields = fields


class SessionOutput(serializers.ModelSerializer[Session]):
    id = serializers.UUIDField(source="public_id")
    expires_at = serializers.DateTimeField(source="expire_date")
    current = serializers.SerializerMethodField(help_text="Whether it is the one that asks.")

    class Meta:
        model = Session
        fields = (
            *("id", "address", "user_agent", "created_at", "last_seen_at", "expires_at"),
            "current",
        )
        read_only_fields = fields

    def get_current(self, session: Session) -> bool:
        own = getattr(self.context["request"].session, "session_key", None)
        return session.session_key == stored_key(own)


class EndedOutput(serializers.Serializer[Any]):
    sessions = serializers.IntegerField()
    tokens = serializers.IntegerField(help_text="Those that signing in with a password made.")


class ProfileInput(StrictSerializer):
    email = OptionalText(max_length=254)
    current_password = OptionalText(
        max_length=4096, write_only=True, help_text="Needed to change the mail address."
    )


class PasswordInput(StrictSerializer):
    current_password = Text(max_length=4096, write_only=True)
    password = Text(max_length=4096, write_only=True)


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


class GroupInput(StrictSerializer):
    name = Text(max_length=150)
    users = serializers.ListField(
        child=Text(max_length=150),
        max_length=MEMBERS_LIMIT,
        required=False,
        help_text="Usernames; the whole list.",
    )


class GroupOutput(serializers.ModelSerializer[Group]):
    id = serializers.CharField()
    users = serializers.SerializerMethodField()

    class Meta:
        model = Group
        fields = ("id", "name", "users")
        read_only_fields = fields

    def get_users(self, group: Group) -> list[str]:
        return sorted(user.username for user in group.user_set.all())
