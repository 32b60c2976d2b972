"""Endpoints of sign-in, tokens and users: parse, call one service, answer."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.utils import timezone
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from trailer.accounts.api import serializers
from trailer.accounts.login import login_check
from trailer.accounts.models import ApiToken, TokenScope, User
from trailer.accounts.services import (
    token_create,
    token_delete,
    token_update,
    user_create,
    user_delete,
    user_update,
)
from trailer.api.filters import FlagFilter
from trailer.api.permissions import AdminOnly, SignedInWithScope
from trailer.api.views import ResourceViewSet

if TYPE_CHECKING:
    from rest_framework.request import Request

LOGIN_TOKEN_LIFETIME: Final = timedelta(days=30)


class LoginView(APIView):
    """A username and password for a token that may do all that its user may."""

    authentication_classes = ()
    permission_classes = ()

    @extend_schema(request=serializers.LoginInput, responses=serializers.LoginOutput, auth=[])
    def post(self, request: Request) -> Response:
        given = serializers.LoginInput(data=request.data)
        given.is_valid(raise_exception=True)
        user = login_check(request._request, **given.validated_data)
        now = timezone.now()
        token, key = token_create(
            actor=user,
            name=f"Sign-in of {now:%Y-%m-%d %H:%M}",
            scope=TokenScope.ADMIN,
            expires_at=now + LOGIN_TOKEN_LIFETIME,
        )
        answer = serializers.LoginOutput({"token": key, "expires_at": token.expires_at})
        return Response(answer.data)


class TokenFilter(filters.FilterSet):  # type: ignore[misc]
    name = filters.CharFilter()
    scope = filters.ChoiceFilter(choices=TokenScope.choices)


class TokenViewSet(ResourceViewSet[ApiToken]):
    """The caller's own tokens; nobody sees another's."""

    queryset = ApiToken.objects.all()
    serializer_class = serializers.TokenOutput
    filterset_class = TokenFilter
    search_fields: ClassVar = ["name"]
    ordering_fields: ClassVar = ["name", "created_at", "expires_at", "last_used_at"]

    @extend_schema(request=serializers.TokenInput, responses={201: serializers.NewTokenOutput})
    def create(self, request: Request) -> Response:
        own: Any = request.auth
        token, key = token_create(
            actor=request.user, granted_by=own, **self.given(serializers.TokenInput)
        )
        answer = serializers.TokenOutput(token).data | {"key": key}
        return Response(answer, status=201)

    @extend_schema(request=serializers.TokenUpdateInput, responses=serializers.TokenOutput)
    def partial_update(self, request: Request, pk: str) -> Response:
        data = self.given(serializers.TokenUpdateInput)
        token = token_update(actor=request.user, token=self.get_object(), **data)
        return self.answer(token.pk)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        token_delete(actor=request.user, token=self.get_object())
        return Response(status=204)


class UserFilter(filters.FilterSet):  # type: ignore[misc]
    username = filters.CharFilter()
    is_active = FlagFilter()
    is_admin = FlagFilter("is_superuser")


class UserViewSet(ResourceViewSet[User]):
    """For admins."""

    queryset = User.objects.prefetch_related("groups")
    serializer_class = serializers.UserOutput
    permission_classes = (SignedInWithScope, AdminOnly)
    filterset_class = UserFilter
    search_fields: ClassVar = ["username", "email"]
    ordering_fields: ClassVar = ["username", "email", "date_joined", "last_login"]
    ordering: ClassVar = ["username"]

    @extend_schema(request=serializers.UserInput, responses={201: serializers.UserOutput})
    def create(self, request: Request) -> Response:
        user = user_create(actor=request.user, **self.given(serializers.UserInput))
        return self.answer(user.pk, 201)

    @extend_schema(request=serializers.UserInput, responses=serializers.UserOutput)
    def partial_update(self, request: Request, pk: str) -> Response:
        data = self.given(serializers.UserInput)
        user = user_update(actor=request.user, user=self.get_object(), **data)
        return self.answer(user.pk)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        user_delete(actor=request.user, user=self.get_object())
        return Response(status=204)
