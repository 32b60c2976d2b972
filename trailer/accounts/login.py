"""Checking a password, with guesses counted per user and address; for the API and the pages."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from django.contrib.auth import authenticate
from django.core.cache import cache

from trailer.accounts.models import User
from trailer.audit.models import Outcome
from trailer.audit.record import record
from trailer.context import client_address
from trailer.errors import ApplicationError, Invalid, Throttled
from trailer.secrets import digest

if TYPE_CHECKING:
    from django.http import HttpRequest

FAILURES_PER_WINDOW: Final = 5
_WINDOW: Final = 60


class LoginRefused(ApplicationError):
    code = "not_signed_in"
    status = 401


def login_check(request: HttpRequest, *, username: str, password: str) -> User:
    """The active user with this password, or a refusal that does not say which was wrong."""
    key = _key(username, client_address(request.META))
    _count_attempt(key)
    user = authenticate(request, username=username, password=password)
    if not isinstance(user, User):
        record("user.login", actor_name=username, outcome=Outcome.REFUSED)
        raise LoginRefused(
            "This username and password do not match an account. Check both and try again."
        )
    cache.delete_many([key, f"{key}:since"])
    record("user.login", user, actor=user)
    return user


def check_present_password(request: HttpRequest, user: User, password: str) -> None:
    """For changes that a borrowed session must not make; guesses count like sign-ins."""
    key = _key(user.username, client_address(request.META))
    _count_attempt(key)
    if not user.check_password(password):
        raise Invalid.field("current_password", "This is not your present password.")
    cache.delete_many([key, f"{key}:since"])


def _count_attempt(key: str) -> None:
    """Counted before the password is looked at: parallel guesses don't slip past the limit."""
    now = time.time()
    if cache.add(key, 0, timeout=_WINDOW):
        cache.set(f"{key}:since", now, timeout=_WINDOW)
    try:
        attempts = cache.incr(key)
    except ValueError:
        # The window ended between the two calls: this is the first attempt of the next one.
        attempts = 1
        cache.set(key, attempts, timeout=_WINDOW)
    if attempts > FAILURES_PER_WINDOW:
        since = cache.get(f"{key}:since", now)
        wait = max(1, int(since + _WINDOW - now) + 1)
        raise Throttled(
            f"Too many failed sign-ins. Try again in {wait} seconds.", retry_after=wait
        )


def _key(username: str, address: str) -> str:
    """A digest, so that any text makes a valid key."""
    return "login:" + digest(f"{username.casefold()}\0{address}")
