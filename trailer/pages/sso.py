"""Single sign-on: away to the provider, and back; only where one is set up."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import requests
from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.http import Http404, HttpResponseRedirect
from mozilla_django_oidc.views import (
    OIDCAuthenticationCallbackView,
    OIDCAuthenticationRequestView,
)

from trailer.accounts.oidc import provider_setting

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

log = logging.getLogger(__name__)


class _ProviderNeeded:
    get_settings = staticmethod(provider_setting)

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not settings.TRAILER_OIDC_ISSUER:
            raise Http404
        try:
            answer: HttpResponseBase = super().dispatch(request, *args, **kwargs)  # type: ignore[misc]
        except requests.RequestException as problem:
            log.warning("the identity provider does not answer: %s", type(problem).__name__)
            return HttpResponseRedirect(settings.LOGIN_REDIRECT_URL_FAILURE)
        except SuspiciousOperation:
            # A stale tab or a forged answer: the sign-in starts anew.
            return HttpResponseRedirect(settings.LOGIN_REDIRECT_URL_FAILURE)
        return answer


class SsoBeginView(_ProviderNeeded, OIDCAuthenticationRequestView):  # type: ignore[misc]
    def __init__(self, **kwargs: Any) -> None:
        """The provider is asked when the request comes, not when the view is made."""
        super(OIDCAuthenticationRequestView, self).__init__(**kwargs)

    def get(self, request: HttpRequest) -> HttpResponseBase:
        self.OIDC_OP_AUTH_ENDPOINT = self.get_settings("OIDC_OP_AUTHORIZATION_ENDPOINT")
        self.OIDC_RP_CLIENT_ID = self.get_settings("OIDC_RP_CLIENT_ID")
        answer: HttpResponseBase = super().get(request)
        return answer


class SsoCallbackView(_ProviderNeeded, OIDCAuthenticationCallbackView):  # type: ignore[misc]
    """Where the provider sends the browser back to."""
