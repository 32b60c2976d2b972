"""Checking a password and a second factor, with guesses counted; for the API and the pages."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from django.contrib.auth import authenticate

from trailer.accounts.attempts import Attempts, SpreadAttempts, neighbourhood
from trailer.accounts.models import User
from trailer.accounts.places import device_of, is_known_place
from trailer.accounts.second_factor import code_is_right, is_on
from trailer.audit.models import Outcome
from trailer.audit.record import record
from trailer.context import client_address
from trailer.errors import ApplicationError, Invalid

if TYPE_CHECKING:
    from django.http import HttpRequest

FAILURES_PER_WINDOW: Final = 5
# From one address, whoever is tried: one password for many names is a guess too.
FAILURES_PER_ADDRESS: Final = 20


class LoginRefused(ApplicationError):
    code = "not_signed_in"
    status = 401


class SecondFactorNeeded(ApplicationError):
    """The password was right; `user` is who may go on with a code."""

    code = "second_factor_required"
    status = 401

    def __init__(self, user: User) -> None:
        super().__init__(
            "This account has a second factor. Send the code of its app, or a recovery code, too.",
            fields={"code": ["A code is needed."]},
        )
        self.user = user


def login_check(request: HttpRequest, *, username: str, password: str, code: str = "") -> User:
    """The active user with this password, or a refusal that does not say which was wrong."""
    attempts, spread = _attempts(request, username), _spread(request, username)
    attempts.count()
    spread.count()
    user = authenticate(request, username=username, password=password)
    if not isinstance(user, User):
        record("user.login", actor_name=username, outcome=Outcome.REFUSED)
        raise LoginRefused(
            "This username and password do not match an account. Check both and try again."
        )
    if is_on(user):
        if not code:
            # Not a failure, but the count stays until the code is right.
            raise SecondFactorNeeded(user)
        _check_code(user, code)
    spread.forget()
    return _signed_in(user, attempts)


def second_factor_check(request: HttpRequest, user: User, code: str) -> User:
    """The second step of a page's sign-in; the first was `login_check`."""
    attempts, spread = _attempts(request, user.username), _spread(request, user.username)
    attempts.count()
    spread.count()
    _check_code(user, code)
    spread.forget()
    return _signed_in(user, attempts)


def check_present_password(request: HttpRequest, user: User, password: str) -> None:
    """For changes that a borrowed session must not make; guesses count like sign-ins."""
    attempts = _attempts(request, user.username)
    attempts.count()
    if not user.check_password(password):
        raise Invalid.field("current_password", "This is not your present password.")
    attempts.forget()


def _check_code(user: User, code: str) -> None:
    if code_is_right(user, code):
        return
    record("user.login", actor_name=user.username, outcome=Outcome.REFUSED)
    sentence = "This code is not right, or was used already. Wait for the next one and try again."
    raise LoginRefused(sentence, fields={"code": [sentence]})


def _signed_in(user: User, attempts: Attempts) -> User:
    attempts.forget()
    record("user.login", user, actor=user)
    return user


def _attempts(request: HttpRequest, username: str) -> Attempts:
    address = neighbourhood(client_address(request.META))
    limits = {
        f"{username.casefold()}\0{address}": FAILURES_PER_WINDOW,
        f"address\0{address}": FAILURES_PER_ADDRESS,
    }
    if device := device_of(request, username):
        # A cookie that was carried off to many addresses counts as the one browser that it is.
        limits[f"device\0{device}"] = FAILURES_PER_WINDOW
    return Attempts(limits)


def _spread(request: HttpRequest, username: str) -> SpreadAttempts:
    return SpreadAttempts(username, partial(is_known_place, request, username))
