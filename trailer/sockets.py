"""Who is at the other end of a browser socket: session or token, and an exact origin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async
from channels.auth import get_user
from django.conf import settings

from trailer.accounts.models import User
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


async def socket_user(scope: Any) -> User | None:
    """A token in the header needs no origin: no browser can be tricked into sending it.

    A cookie is sent by any page, so then the origin must be one of ours, exactly.
    """
    keyword, _, key = header(scope, "Authorization").partition(" ")
    if keyword == "Token":
        found = await sync_to_async(user_for_key)(key.strip())
        return found[0] if found else None
    if header(scope, "Origin") not in settings.TRAILER_WS_ORIGINS:
        return None
    user = await get_user(scope)
    return user if isinstance(user, User) and user.is_active else None


@sync_to_async
def still_active(user_id: Any) -> User | None:
    """Read again during the session: a disabled account must not keep its open sockets."""
    return User.objects.filter(pk=user_id, is_active=True).first()
