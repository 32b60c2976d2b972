"""The OpenID Connect client: mozilla-django-oidc, with the checks that it leaves to its users."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

import jwt
import requests
from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.core.cache import caches
from django.core.exceptions import SuspiciousOperation
from mozilla_django_oidc.auth import OIDCAuthenticationBackend
from mozilla_django_oidc.utils import import_from_settings

from trailer.accounts.external import GroupMapping, external_sign_in

if TYPE_CHECKING:
    from django.http import HttpRequest

    from trailer.accounts.models import User

log = logging.getLogger(__name__)

_ENDPOINTS: Final = {
    "OIDC_OP_AUTHORIZATION_ENDPOINT": "authorization_endpoint",
    "OIDC_OP_TOKEN_ENDPOINT": "token_endpoint",
    "OIDC_OP_USER_ENDPOINT": "userinfo_endpoint",
    "OIDC_OP_JWKS_ENDPOINT": "jwks_uri",
}
_KEPT: Final = 600


def provider_setting(name: str, *default: Any) -> Any:
    """What the library asks for; addresses come from the provider's own description."""
    if name in _ENDPOINTS:
        return provider()[_ENDPOINTS[name]]
    return import_from_settings(name, *default)


def provider() -> dict[str, Any]:
    issuer = settings.TRAILER_OIDC_ISSUER
    # Of this process: whoever could change the keys' address would be anybody here.
    cache = caches["process"]
    known: dict[str, Any] | None = cache.get(f"oidc:{issuer}")
    if known is None:
        answer = requests.get(
            f"{issuer}/.well-known/openid-configuration", timeout=settings.OIDC_TIMEOUT
        )
        answer.raise_for_status()
        known = answer.json()
        if known.get("issuer", "").rstrip("/") != issuer:
            raise SuspiciousOperation("The provider describes another issuer than itself.")
        cache.set(f"oidc:{issuer}", known, timeout=_KEPT)
    return known


class SingleSignOn(OIDCAuthenticationBackend):  # type: ignore[misc]
    """Signs in whom the provider names by a code that was asked for in this browser."""

    def __init__(self) -> None:
        """Nothing is asked of the provider until somebody comes back from there."""

    get_settings = staticmethod(provider_setting)

    def get_user(self, user_id: Any) -> User | None:
        """As Django does it: the library's own lets deactivated users go on."""
        found: User | None = ModelBackend.get_user(self, user_id)
        return found

    def authenticate(self, request: HttpRequest | None, **given: Any) -> User | None:
        # Every sign-in with a password passes here too: only the callback brings a nonce.
        if request is None or not given.get("nonce"):
            return None
        try:
            super().__init__()
            found: User | None = super().authenticate(request, **given)
        except (
            *(requests.RequestException, jwt.PyJWTError, SuspiciousOperation),
            *(KeyError, ValueError, TypeError),
        ) as problem:
            log.warning("single sign-on failed: %s", type(problem).__name__)
            return None
        return found

    def verify_token(self, token: str, **given: Any) -> dict[str, Any]:
        """Signature and nonce are the library's; who it is from and for is not."""
        payload: dict[str, Any] = super().verify_token(token, **given)
        audience = payload.get("aud")
        audiences = audience if isinstance(audience, list) else [audience]
        if str(payload.get("iss", "")).rstrip("/") != settings.TRAILER_OIDC_ISSUER:
            raise SuspiciousOperation("The token is of another issuer.")
        if self.OIDC_RP_CLIENT_ID not in audiences or "exp" not in payload:
            raise SuspiciousOperation("The token is not for Trailer, or has no end.")
        if payload.get("azp", self.OIDC_RP_CLIENT_ID) != self.OIDC_RP_CLIENT_ID:
            raise SuspiciousOperation("The token was made for somebody else.")
        return payload

    def get_or_create_user(
        self, access_token: str, id_token: str, payload: dict[str, Any]
    ) -> User | None:
        told = self.get_userinfo(access_token, id_token, payload)
        if not payload.get("sub") or told.get("sub") != payload["sub"]:
            raise SuspiciousOperation("The provider tells of another person than its token.")
        return external_sign_in(
            issuer=settings.TRAILER_OIDC_ISSUER,
            claims={**payload, **told},
            mapping=GroupMapping(
                groups=settings.TRAILER_OIDC_GROUPS,
                groups_claim=settings.TRAILER_OIDC_GROUPS_CLAIM,
                admin_group=settings.TRAILER_OIDC_ADMIN_GROUP,
                links_by_mail=settings.TRAILER_OIDC_LINK_BY_MAIL,
            ),
        )
