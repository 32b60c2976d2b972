"""Who is calling the API: a token (digest look-up) or the browser's session with CSRF."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.utils import timezone
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework import authentication, exceptions

from trailer.accounts.models import ApiToken
from trailer.api.rate import rate_check
from trailer.context import by_token
from trailer.secrets import digest

if TYPE_CHECKING:
    from rest_framework.request import Request

    from trailer.accounts.models import User

# last_used_at is for people; a write on every request would cost more than it tells.
_LAST_USED_RESOLUTION = timedelta(minutes=1)


def user_for_key(key: str) -> tuple[User, ApiToken] | None:
    """The active user behind a live token, shared by REST and sockets."""
    token = ApiToken.objects.select_related("user").filter(digest=digest(key)).first()
    now = timezone.now()
    if token is None or not token.user.is_active:
        return None
    if token.expires_at is not None and token.expires_at <= now:
        return None
    if token.last_used_at is None or now - token.last_used_at > _LAST_USED_RESOLUTION:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    return token.user, token


class TokenAuthentication(authentication.BaseAuthentication):
    keyword = "Token"

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        keyword, _, key = request.headers.get("Authorization", "").partition(" ")
        if keyword != self.keyword:
            return None
        found = user_for_key(key.strip())
        if found is None:
            raise exceptions.AuthenticationFailed(
                "This token is unknown, expired or revoked. Make a new one."
            )
        rate_check(str(found[1].pk))
        by_token(found[1].name)
        return found

    def authenticate_header(self, request: Request) -> str:
        return self.keyword


class SessionAuthentication(authentication.SessionAuthentication):
    """The browser's session; CSRF is enforced by the parent class."""


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        return {"type": "apiKey", "in": "header", "name": "Authorization"}


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = SessionAuthentication
    name = "session"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        return {"type": "apiKey", "in": "cookie", "name": "sessionid"}
