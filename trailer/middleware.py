"""Request id for logs and errors, and the content security policy of our own pages."""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING

import structlog
from django.conf import settings

from trailer.context import coming_from, request_origin
from trailer.domains import address_under

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse

REQUEST_ID_HEADER = "X-Request-Id"
_SAFE_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "manifest-src 'self'; form-action 'self'"
)
# The admin kit (Alpine) evaluates the expressions of its templates, and sets styles inline.
_RELAXED_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-eval'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; "
    "frame-ancestors 'none'; base-uri 'self'; form-action 'self'"
)
_RELAXED_PATH = "/admin/"
_API_PATH = "/api/"


def url_origins() -> str:
    """All addresses of workspaces' URLs that go through this server, as a source of a policy."""
    domain = settings.TRAILER_URL_DOMAIN
    return address_under(settings.TRAILER_PUBLIC_URL, f"*.{domain}").rstrip("/") if domain else ""


class RequestContextMiddleware:
    """Says who asks, to log lines and audit rows made while answering; returns the request id."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get(REQUEST_ID_HEADER, "")
        request_id = given if _SAFE_ID.fullmatch(given) else uuid.uuid4().hex
        request.META["TRAILER_REQUEST_ID"] = request_id
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=request_id)
        with coming_from(request_origin(request.META, request.path, request_id)):
            response = self.get_response(request)
        response.headers[REQUEST_ID_HEADER] = request_id
        if request.path.startswith(_API_PATH):
            # An answer holds what its caller may see now: no cache may keep it.
            response.headers.setdefault("Cache-Control", "no-store")
        return response


class ContentSecurityPolicyMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        # After signing in, a browser goes on to the workspace's URL it came from.
        self._policy = f"{_POLICY} {url_origins()}".rstrip()

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        relaxed = request.path.startswith(_RELAXED_PATH)
        response.headers.setdefault(
            "Content-Security-Policy", _RELAXED_POLICY if relaxed else self._policy
        )
        return response
