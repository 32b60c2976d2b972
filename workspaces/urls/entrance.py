"""The way in: from a workspace's host name to the sign-in page, and back with a proof.

The browser that began is the one that must come back: a link with somebody else's proof leads
nowhere.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, urlencode

from django.conf import settings

from agent.protocol.identity import VISIT_COOKIE, cookie_name
from workspaces.urls import tokens
from workspaces.urls.access import url_at, visitor
from workspaces.urls.headers import STATE_COOKIE
from workspaces.urls.pages import Answer, notice, redirect
from workspaces.urls.place import url_address

if TYPE_CHECKING:
    from workspaces.urls.tokens import Pass

ENTER_PATH: Final = "/.trailer/enter"
SIGN_IN_PATH: Final = "/urls/enter/"
_STATE_SECONDS: Final = 600


def to_sign_in(address: str) -> Answer:
    """`address` is what the browser asked for."""
    state = secrets.token_urlsafe(24)
    query = urlencode({"to": address, "state": state})
    secure = address.startswith("https:")
    cookie = _cookie(STATE_COOKIE, state, seconds=_STATE_SECONDS, secure=secure)
    return redirect(f"{settings.TRAILER_PUBLIC_URL}{SIGN_IN_PATH}?{query}", cookies=[cookie])


def visit_cookie(ticket: Pass, *, secure: bool) -> str:
    token = tokens.visit_token(ticket)
    return _cookie(VISIT_COOKIE, token, seconds=tokens.VISIT_SECONDS, secure=secure)


def enter(query: str, *, host: str, state: str, base: str = "") -> Answer:
    """Back from the sign-in page. A router takes a mere path for one of the server, so that `base`
    has to stand before it."""
    given = parse_qs(query)
    target = (given.get("to") or ["/"])[-1]
    if not is_own_path(target):
        target = "/"
    ticket = tokens.read_entry((given.get("token") or [""])[-1], host=host, state=state)
    url = url_at(host)
    if ticket is None or url is None or visitor(ticket, url) is None:
        return notice(
            400,
            "This link is over",
            "A link from the sign-in page works once, for a minute, in the browser that asked for "
            "it. Open the address again.",
            as_page=True,
        )
    secure = url_address(url).startswith("https:")
    over = _cookie(STATE_COOKIE, "", seconds=0, secure=secure)
    cookies = [visit_cookie(ticket, secure=secure), over]
    return redirect(base + target, cookies=cookies)


def is_own_path(target: str) -> bool:
    """A path of this very host: never `//elsewhere`, which a browser takes for another one."""
    plain = target.isascii() and target.isprintable() and "\\" not in target
    return plain and target.startswith("/") and not target.startswith("//")


def _cookie(plain: str, value: str, *, seconds: int, secure: bool) -> str:
    end = "; Secure" if secure else ""
    name = cookie_name(plain, secure=secure)
    return f"{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{end}"
