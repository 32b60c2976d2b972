"""Who is at the other end of a browser socket: session or token, and an exact origin."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from channels.auth import get_user
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings

from trailer.accounts.models import TokenScope, User
from trailer.api.authentication import user_for_key

if TYPE_CHECKING:
    from collections.abc import Mapping

NOT_SIGNED_IN = 4401
NOT_ALLOWED = 4403
NOT_THERE = 4404
BUSY = 1013


def header(scope: Mapping[str, Any], name: str) -> str:
    wanted = name.lower().encode()
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == wanted), "")


class PromptBytes(AsyncWebsocketConsumer):
    """Channels looks after the database before it hands over any message, in one thread for all
    sockets of a process. Bytes of a session need no database and do not wait for it."""

    async def dispatch(self, message: Any) -> None:
        if message["type"] == "websocket.receive" and message.get("bytes") is not None:
            await self.receive(bytes_data=message["bytes"])
        else:
            await super().dispatch(message)


class NothingHere(AsyncWebsocketConsumer):
    """Any address without a socket: a close code says so, where a refused handshake is a fault."""

    async def connect(self) -> None:
        await self.accept()
        await self.close(code=NOT_THERE)


@dataclass(frozen=True)
class Caller:
    """`may_write` is False for tokens that were made for reading only."""

    user: User
    may_write: bool = True
    token_name: str = ""


async def socket_caller(scope: Any) -> Caller | None:
    """A token in the header needs no origin: no browser can be tricked into sending it.

    A cookie is sent by any page, so then the origin must be one of ours, exactly. Asked again
    while a socket is open, this sees what was revoked, expired or signed out since.
    """
    keyword, _, key = header(scope, "Authorization").partition(" ")
    if keyword == "Token":
        found = await database_sync_to_async(user_for_key)(key.strip())
        if found is None:
            return None
        user, token = found
        return Caller(user, token.scope != TokenScope.READ, token.name)
    if header(scope, "Origin") not in settings.TRAILER_WS_ORIGINS:
        return None
    # The session of the scope was read when the socket opened and would not change any more.
    store = import_module(settings.SESSION_ENGINE).SessionStore
    cookie = scope.get("cookies", {}).get(settings.SESSION_COOKIE_NAME)
    fresh: Any = {**scope, "session": store(cookie)}
    signed_in = await get_user(fresh)
    return Caller(signed_in) if isinstance(signed_in, User) and signed_in.is_active else None


async def socket_user(scope: Any) -> User | None:
    caller = await socket_caller(scope)
    return caller.user if caller else None
