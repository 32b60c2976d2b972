"""A host's own router asks for each request whether its visitor may pass."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http import Http404, HttpResponse
from django.views import View

from agent.protocol.naming import forward_auth_key
from hosts.selectors import host_key
from workspaces.urls import entrance, headers, tokens
from workspaces.urls.access import url_at, visitor
from workspaces.urls.pages import Answer, notice
from workspaces.urls.place import url_address

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest

    from workspaces.models import Url


class ForwardAuthView(View):
    """What is asked about stands in the address, which the agent signed for its router; of what
    the client itself sent only its cookie, its origin and the path count. 200 lets the request
    pass, with the fields that replace the client's own."""

    http_method_names = ("get",)

    def get(self, request: HttpRequest, workspace_id: UUID, host: str) -> HttpResponse:
        url = url_at(host)
        if url is None or url.workspace_id != workspace_id or not _is_signed(request, url, host):
            raise Http404
        path, _, query = request.META.get("HTTP_X_FORWARDED_URI", "/").partition("?")
        cookie = request.META.get("HTTP_COOKIE", "")
        fields = [(b"cookie", cookie.encode("latin-1", "replace"))]
        if path == entrance.ENTER_PATH:
            state = headers.state_value(fields, secure=url.tls)
            base = url_address(url).rstrip("/")
            return _told(entrance.enter(query, host=host, state=state, base=base))
        visit = headers.visit_token(fields, secure=url.tls)
        ticket = tokens.read_visit(visit, host=host)
        user = visitor(ticket, url) if ticket is not None else None
        if ticket is None or user is None:
            return _told(_sign_in(request, url))
        if headers.is_foreign(
            request.META.get("HTTP_ORIGIN", ""), _asked_host(request, url, host)
        ):
            return _told(_not_from_there())
        answer = HttpResponse(status=200)
        for name, value in _for_the_app(request, user.get_username()):
            answer.headers[name] = value
        if tokens.is_ageing(visit):
            answer.headers["Set-Cookie"] = entrance.visit_cookie(ticket, secure=url.tls)
        return answer


def _asked_host(request: HttpRequest, url: Url, host: str) -> str:
    """With the port, as the router tells it. A proxy in front of the server tells the server's own
    name instead; then it is the address that is known for the URL."""
    told = request.META.get("HTTP_X_FORWARDED_HOST", host)
    name = told.partition(":")[0].lower()
    return told if name == host.lower() else urlsplit(url_address(url)).netloc


def _is_signed(request: HttpRequest, url: Url, host: str) -> bool:
    owner = url.workspace.host
    key = forward_auth_key(host_key(owner), str(url.workspace_id), host, str(owner.pk))
    return hmac.compare_digest(key.encode(), request.GET.get("key", "").encode())


def _sign_in(request: HttpRequest, url: Url) -> Answer:
    method = request.META.get("HTTP_X_FORWARDED_METHOD", "GET")
    mode = request.META.get("HTTP_SEC_FETCH_MODE", "")
    accepts_pages = "text/html" in request.META.get("HTTP_ACCEPT", "")
    if method in {"GET", "HEAD"} and (mode == "navigate" or (not mode and accepts_pages)):
        target = request.META.get("HTTP_X_FORWARDED_URI", "/")
        base = url_address(url).rstrip("/")
        return entrance.to_sign_in(base + target)
    sentence = "Open this address in the browser and sign in first."
    return notice(401, "Sign in first", sentence, as_page=False, code="not_signed_in")


def _not_from_there() -> Answer:
    """Reading is refused too: the router passes the app's CORS fields on as they are."""
    sentence = "A page of another address may not do this here."
    return notice(403, "Not allowed", sentence, as_page=False, code="not_allowed")


def _for_the_app(request: HttpRequest, username: str) -> list[tuple[str, str]]:
    sent: list[tuple[bytes, bytes]] = [
        (name, request.META[key].encode("latin-1", "replace"))
        for name, key in ((b"cookie", "HTTP_COOKIE"), (b"authorization", "HTTP_AUTHORIZATION"))
        if request.META.get(key)
    ]
    cookies = headers.platform_cookies(settings.SESSION_COOKIE_NAME, settings.CSRF_COOKIE_NAME)
    kept = headers.to_app(sent, cookies=cookies, client="", scheme="", user=username)
    passed = {b"cookie": "Cookie", b"authorization": "Authorization"}
    passed[headers.USER_HEADER] = "X-Trailer-User"
    return [(passed[name], value.decode("latin-1")) for name, value in kept if name in passed]


def _told(answer: Answer) -> HttpResponse:
    told = HttpResponse(answer.body, status=answer.status)
    for name, value in answer.headers:
        text: Any = value.decode("latin-1")
        if name == b"set-cookie":
            # Several fields of one name: Django keeps cookies apart from other fields.
            told.cookies.load(text)
        else:
            told.headers[name.decode("latin-1").title()] = text
    return told
