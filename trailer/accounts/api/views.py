"""Endpoints of sign-in and of one's own account: tokens, sessions, profile, password."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.contrib.auth import update_session_auth_hash
from django.utils import timezone
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.response import Response
from rest_framework.views import APIView

from trailer.accounts.api import serializers
from trailer.accounts.login import check_present_password, login_check
from trailer.accounts.models import ApiToken, Session, TokenScope
from trailer.accounts.services import (
    password_change,
    profile_update,
    session_end,
    sessions_end_others,
    token_create,
    token_delete,
    token_update,
)
from trailer.accounts.sessions import stored_key
from trailer.api.serializers import NoInput
from trailer.api.views import ResourceViewSet
from trailer.context import by_token

if TYPE_CHECKING:
    from django.db.models import QuerySet
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
        by_token("")
        user = login_check(request._request, **given.validated_data)
        now = timezone.now()
        token, key = token_create(
            actor=user,
            name=f"Sign-in of {now:%Y-%m-%d %H:%M}",
            scope=TokenScope.ADMIN,
            expires_at=now + LOGIN_TOKEN_LIFETIME,
            is_sign_in=True,
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


class SessionViewSet(ResourceViewSet[Session]):
    """The caller's own signed-in browsers."""

    queryset = Session.objects.all()
    serializer_class = serializers.SessionOutput
    lookup_field = "public_id"
    # Not "pk", which the schema would call by the name of the column: the secret key.
    lookup_url_kwarg = "id"
    filter_backends = ()

    def get_queryset(self) -> QuerySet[Session]:
        return super().get_queryset().filter(expire_date__gt=timezone.now())

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, **kwargs: str) -> Response:
        session_end(actor=request.user, session=self.get_object())
        return Response(status=204)

    @extend_schema(request=NoInput, responses=serializers.EndedOutput)
    @action(detail=False, methods=["post"], url_path="end-others")
    def end_others(self, request: Request) -> Response:
        """Sign out everywhere but here."""
        self.given(NoInput)
        token: Any = request.auth
        sessions, tokens = sessions_end_others(
            actor=request.user,
            session_key=_session_key(request),
            token=token if isinstance(token, ApiToken) else None,
        )
        return Response({"sessions": sessions, "tokens": tokens})


class ProfileView(APIView):
    """The caller's own account."""

    @extend_schema(responses=serializers.UserOutput)
    def get(self, request: Request) -> Response:
        actor: Any = request.user
        return Response(serializers.UserOutput(actor).data)

    @extend_schema(request=serializers.ProfileInput, responses=serializers.UserOutput)
    def patch(self, request: Request) -> Response:
        given = serializers.ProfileInput(data=request.data, partial=True)
        given.is_valid(raise_exception=True)
        actor: Any = request.user
        email = given.validated_data.get("email", actor.email)
        if email != actor.email:
            proof = given.validated_data.get("current_password", "")
            check_present_password(request._request, actor, proof)
            actor = profile_update(actor=actor, email=email)
        return Response(serializers.UserOutput(actor).data)


class PasswordView(APIView):
    @extend_schema(request=serializers.PasswordInput, responses={204: None})
    def post(self, request: Request) -> Response:
        """Change one's own password; every other session and sign-in token ends."""
        given = serializers.PasswordInput(data=request.data)
        given.is_valid(raise_exception=True)
        actor: Any = request.user
        check_present_password(request._request, actor, given.validated_data["current_password"])
        user = password_change(
            actor=actor,
            password=given.validated_data["password"],
            session_key=_session_key(request),
        )
        if _session_key(request) is not None:
            # The session carries a digest of the password: without this it would end too.
            update_session_auth_hash(request._request, user)
        return Response(status=204)


def _session_key(request: Request) -> str | None:
    """Only of a session that signed this request in: a token ignores cookies. As it is stored."""
    return None if request.auth is not None else stored_key(request.session.session_key)
