"""Where the work at hand comes from: set once per request, read by whatever writes history."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_AGENT_LIMIT: Final = 300
_ADDRESS_LIMIT: Final = 64


@dataclass(frozen=True)
class Origin:
    """`via`: session, token, admin, agent or system; the default is nobody's request."""

    via: str = "system"
    address: str = ""
    request_id: str = ""
    token_name: str = ""
    user_agent: str = ""


# Asgiref carries context variables into the threads that run synchronous code.
_ORIGIN: ContextVar[Origin] = ContextVar("origin", default=Origin())  # noqa: B039 - frozen


def origin() -> Origin:
    return _ORIGIN.get()


@contextmanager
def coming_from(where: Origin) -> Iterator[None]:
    token = _ORIGIN.set(where)
    try:
        yield
    finally:
        _ORIGIN.reset(token)


def by_token(name: str) -> None:
    """The request at hand is signed in by a token; holds until the request ends."""
    _ORIGIN.set(replace(_ORIGIN.get(), via="token", token_name=name))


def client_address(meta: Mapping[str, Any]) -> str:
    """The last forwarded address is what our own proxy wrote; earlier ones anybody can claim."""
    if settings.TRAILER_BEHIND_PROXY:
        forwarded = str(meta.get("HTTP_X_FORWARDED_FOR", "")).rpartition(",")[2].strip()
        if forwarded:
            return forwarded[:_ADDRESS_LIMIT]
    return str(meta.get("REMOTE_ADDR", ""))[:_ADDRESS_LIMIT]


def request_origin(meta: Mapping[str, Any], path: str, request_id: str) -> Origin:
    via = "session"
    if path.startswith("/admin/"):
        via = "admin"
    elif path.startswith("/api/agent/"):
        via = "agent"
    return Origin(
        via=via,
        address=client_address(meta),
        request_id=request_id,
        user_agent=str(meta.get("HTTP_USER_AGENT", ""))[:_AGENT_LIMIT],
    )


def socket_origin(scope: Mapping[str, Any], *, token_name: str = "") -> Origin:
    """For what is done over a WebSocket, which no middleware sees."""
    client = scope.get("client") or ("",)
    headers = {
        f"HTTP_{name.decode('latin-1').upper().replace('-', '_')}": value.decode("latin-1")
        for name, value in scope.get("headers", ())
    }
    found = request_origin({"REMOTE_ADDR": client[0], **headers}, "", "")
    return replace(found, via="token", token_name=token_name) if token_name else found
