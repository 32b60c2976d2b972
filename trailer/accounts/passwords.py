"""Judging a new password, with the validators' sentences under its field."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError

from trailer.errors import Invalid

if TYPE_CHECKING:
    from trailer.accounts.models import User


def set_password(user: User, password: str) -> None:
    """On the row in memory; the caller saves it."""
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise Invalid(error.messages[0], fields={"password": error.messages}) from error
    user.set_password(password)
