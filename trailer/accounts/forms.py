"""The sign-in forms of the pages and the admin: the same counted check as the API's."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from unfold.forms import AuthenticationForm as UnfoldAuthenticationForm

from trailer.accounts.login import login_check
from trailer.errors import ApplicationError


class LoginForm(AuthenticationForm):
    def clean(self) -> dict[str, Any]:
        username = self.cleaned_data.get("username")
        password = self.cleaned_data.get("password")
        if username and password:
            try:
                self.user_cache = login_check(
                    self.request or HttpRequest(), username=username, password=password
                )
            except ApplicationError as error:
                raise ValidationError(error.message, code=error.code) from error
            self.confirm_login_allowed(self.user_cache)
        return self.cleaned_data


class AdminLoginForm(LoginForm, UnfoldAuthenticationForm):  # type: ignore[misc]
    """In the admin's look, and for staff only."""
