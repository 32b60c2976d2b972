"""Header fields on their way to an app and back: what may pass; pure.

Two sides are kept apart: whatever identifies the user to the platform stays with the platform, and
what an app says reaches its own host name only.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agent.protocol.identity import CLAIMS, VISIT_COOKIE, cookie_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    Header = tuple[bytes, bytes]

STATE_COOKIE: Final = "trailer_url_state"
USER_HEADER: Final = b"x-trailer-user"

_HOP_BY_HOP: Final = frozenset(
    {
        *(b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization"),
        *(b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade", b"expect"),
    }
)
# Who somebody is, or where a request comes from, is for us to say; also in words that no list has.
_NAMED: Final = frozenset(name.lower().encode() for name in CLAIMS)
_CLAIMS: Final = re.compile(
    rb"x-trailer-.*|trailer-.*|x-forwarded(-.*)?|forwarded|x-real-ip|x-original-.*|x-rewrite-url|"
    rb"(x-)?(remote|auth|authenticated|webauth|token|authentik|goog-authenticated)-"
    rb"(user|user-.*|username|email|groups?|name|request-.*)|x-auth|x-user|x-email|remote-user|"
    rb"true-client-ip|cf-connecting-ip|client-ip|x-client-ip|x-cluster-client-ip|via"
)
_ALIAS: Final = re.compile(rb"[_. ]")
_OUR_TOKEN: Final = re.compile(rb"(?i)\s*(token|bearer|basic)\s+trl_")
# An app speaks for its own host name, not for its neighbours or for the time after it.
_NOT_FOR_APPS: Final = frozenset(
    {
        *(b"strict-transport-security", b"public-key-pins", b"clear-site-data", b"alt-svc"),
        *(b"service-worker-allowed", b"expect-ct", b"nel", b"report-to", b"reporting-endpoints"),
        # Orders to a proxy in front of us, and what only the platform says.
        *(b"x-accel-redirect", b"x-sendfile", b"x-lighttpd-send-file", b"x-reproxy-url"),
        *(b"x-trailer-user", b"x-trailer-relay", b"set-cookie2"),
    }
)
_COOKIES_OF_OLD: Final = frozenset({b"cookie2", b"set-cookie", b"set-cookie2"})


def platform_cookies(*names: str) -> frozenset[str]:
    ours = [
        cookie_name(plain, secure=secure)
        for plain in (VISIT_COOKIE, STATE_COOKIE)
        for secure in (True, False)
    ]
    return frozenset(name.lower() for name in (*names, *ours))


def to_app(
    headers: Iterable[Header],
    *,
    cookies: frozenset[str],
    client: str,
    scheme: str,
    user: str = "",
) -> list[Header]:
    """Without `content-length`: the caller says how a body is framed."""
    given = list(headers)
    listed = _connection_options(given)
    kept: list[Header] = []
    host = b""
    for name, value in given:
        plain = _ALIAS.sub(b"-", name.lower())
        if plain in _HOP_BY_HOP or plain in listed or plain == b"content-length":
            continue
        if plain == b"host":
            host = value
            continue
        if plain in _NAMED or _CLAIMS.fullmatch(plain):
            continue
        if plain in _COOKIES_OF_OLD or (plain == b"authorization" and _OUR_TOKEN.match(value)):
            continue
        if plain == b"cookie":
            rest = _without(value, cookies)
            kept += [(name, rest)] if rest else []
            continue
        kept.append((name, value))
    kept = [(b"host", host), *kept]
    kept += [
        (b"x-forwarded-for", client.encode("latin-1", "replace")),
        (b"x-forwarded-proto", scheme.encode()),
        (b"x-forwarded-host", host),
    ]
    if user:
        kept.append((USER_HEADER, _ascii(user)))
    return kept


def from_app(
    headers: Iterable[Header], *, cookies: frozenset[str], host: str, is_public: bool
) -> list[Header]:
    given = list(headers)
    listed = _connection_options(given)
    kept: list[Header] = []
    for name, value in given:
        plain = name.lower()
        if plain in _HOP_BY_HOP or plain in listed or plain in _NOT_FOR_APPS:
            continue
        if plain.startswith(b"access-control-") and not is_public:
            # Pages of other apps must not read this one with its visitor's cookie.
            continue
        if plain == b"set-cookie":
            own = _own_cookie(value, cookies=cookies, host=host)
            kept += [(name, own)] if own is not None else []
            continue
        kept.append((name, value))
    return kept


def visit_token(headers: Iterable[Header], *, secure: bool) -> str:
    return _cookie_value(headers, cookie_name(VISIT_COOKIE, secure=secure))


def state_value(headers: Iterable[Header], *, secure: bool) -> str:
    return _cookie_value(headers, cookie_name(STATE_COOKIE, secure=secure))


def is_foreign(origin: str, asked_host: str) -> bool:
    """Sent by a page of another host or port, whose visitor's cookie came along."""
    return bool(origin) and origin.partition("://")[2].lower() != asked_host.lower()


def header(headers: Iterable[Header], name: bytes) -> str:
    return next((v.decode("latin-1") for k, v in headers if k.lower() == name), "")


def _cookie_value(headers: Iterable[Header], name: str) -> str:
    """Empty where two say different things: one of them is somebody else's."""
    found = {
        part.partition("=")[2]
        for key, value in headers
        if key.lower() == b"cookie"
        for part in map(str.strip, value.decode("latin-1").split(";"))
        if part.partition("=")[0] == name
    }
    return found.pop() if len(found) == 1 else ""


def _connection_options(headers: list[Header]) -> frozenset[bytes]:
    return frozenset(
        word.strip().lower()
        for name, value in headers
        if name.lower() == b"connection"
        for word in value.split(b",")
    ) - {b"host", b"cookie", b"authorization"}


def _without(value: bytes, cookies: frozenset[str]) -> bytes:
    kept = [
        part.strip()
        for part in value.split(b";")
        if part.strip()
        and part.partition(b"=")[0].strip().decode("latin-1").lower() not in cookies
    ]
    return b"; ".join(kept)


def _own_cookie(value: bytes, *, cookies: frozenset[str], host: str) -> bytes | None:
    """A cookie for a parent domain would reach the server and other apps."""
    first, *attributes = value.split(b";")
    # Browsers send a cookie without a name by its value alone, which may look like a name.
    name = first.strip(b" \t=").partition(b"=")[0].strip().decode("latin-1").lower()
    if name in cookies:
        return None
    kept = [first]
    for attribute in attributes:
        key, _, text = attribute.partition(b"=")
        if key.strip().lower() != b"domain":
            kept.append(attribute)
        elif text.strip().decode("latin-1").lower().lstrip(".") != host:
            return None
    return b";".join(kept)


def _ascii(text: str) -> bytes:
    return text.encode("ascii", "backslashreplace").replace(b"\r", b"").replace(b"\n", b"")
