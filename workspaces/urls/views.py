"""The sign-in side of workspaces' URLs: who is signed in gets a proof, and goes back with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlencode, urlsplit

from django.contrib.auth.mixins import LoginRequiredMixin
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.views import View

from trailer.accounts.models import Session, User
from trailer.accounts.sessions import stored_key
from trailer.domains import host_name
from workspaces.choices import UrlAuth
from workspaces.urls import tokens
from workspaces.urls.access import may_open, url_at
from workspaces.urls.entrance import ENTER_PATH, is_own_path
from workspaces.urls.place import is_relayed, url_address

if TYPE_CHECKING:
    from django.http import HttpRequest


class EnterView(LoginRequiredMixin, View):
    """Leads only to addresses that workspaces have, under the domain of this server."""

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        wanted = _split(request.GET.get("to", ""))
        state = request.GET.get("state", "")
        name = host_name(wanted.netloc)
        url, user = url_at(name), request.user
        if url is None or not isinstance(user, User) or not may_open(user, url):
            raise Http404
        target = (wanted.path or "/") + (f"?{wanted.query}" if wanted.query else "")
        if not is_own_path(target):
            target = "/"
        base = url_address(url).rstrip("/")
        if url.auth == UrlAuth.PUBLIC:
            if not is_relayed(name):
                # Nobody signs in for it: only a link that borrows our good name leads here.
                raise Http404
            return _onward(base + target)
        key = stored_key(request.session.session_key)
        session = Session.objects.filter(session_key=key).first()
        if session is None or not 0 < len(state) <= 64:
            raise Http404
        token = tokens.entry_token(
            tokens.Pass(
                user_id=str(user.pk),
                session_id=str(session.public_id),
                workspace_id=str(url.workspace_id),
                host=name,
                state=state,
            )
        )
        query = urlencode({"token": token, "to": target})
        return _onward(f"{base}{ENTER_PATH}?{query}")


def _split(address: str) -> SplitResult:
    try:
        return urlsplit(address)
    except ValueError:
        raise Http404 from None


def _onward(address: str) -> HttpResponse:
    """A form that was sent may lead only to addresses that the page's policy names; those of a
    host's own router are not among them, so a browser goes there from a page of its own."""
    answer: HttpResponse
    if is_relayed(urlsplit(address).netloc):
        answer = HttpResponseRedirect(address)
    else:
        answer = HttpResponse("Signed in. Going on to the workspace.", content_type="text/plain")
        answer.headers["Refresh"] = f"0; url={address}"
    answer.headers["Referrer-Policy"] = "no-referrer"
    answer.headers["Cache-Control"] = "no-store"
    return answer
