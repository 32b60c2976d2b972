"""Where a user signed in before: an address, or a browser by its cookie.

Guesses at one name from everywhere are slowed down together; such a place is not, so that whoever
guesses cannot keep the user out.
"""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.core import signing
from django.utils import timezone

from trailer.accounts.models import User
from trailer.audit.models import AuditEntry, Outcome
from trailer.context import client_address

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

MEMORY: Final = timedelta(days=90)
_SALT: Final = "trailer.device"
# What proves that it was the user: the password and its second factor, or a mail that arrived.
_PROOFS: Final = ("user.login", "user.password_reset")


def is_known_place(request: HttpRequest, username: str) -> bool:
    user = User.objects.filter(username=username).only("pk").first()
    if user is None:
        return False
    if device_of(request, username):
        return True
    return AuditEntry.objects.filter(
        action__in=_PROOFS,
        outcome=Outcome.DONE,
        actor_id=user.pk,
        address=client_address(request.META),
        at__gt=timezone.now() - MEMORY,
    ).exists()


def device_of(request: HttpRequest, username: str) -> str:
    """The browser's number if this user has signed in with it; its guesses are counted by it."""
    given = request.COOKIES.get(settings.TRAILER_DEVICE_COOKIE)
    if not given:
        return ""
    try:
        name, number = signing.loads(given, salt=_SALT, max_age=MEMORY)
    except (signing.BadSignature, ValueError, TypeError):
        return ""
    return str(number) if name == username else ""


def remember_device(response: HttpResponse, user: User) -> None:
    """Signs nobody in: it only says that this browser is no stranger."""
    response.set_cookie(
        settings.TRAILER_DEVICE_COOKIE,
        signing.dumps([user.username, secrets.token_urlsafe(16)], salt=_SALT),
        max_age=MEMORY,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
