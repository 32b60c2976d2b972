"""The sign-in forms of the pages and the admin: the same counted check as the API's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from unfold.forms import AuthenticationForm as UnfoldAuthenticationForm

from trailer.accounts.login import SecondFactorNeeded, login_check
from trailer.errors import ApplicationError

if TYPE_CHECKING:
    from trailer.accounts.models import User


class LoginForm(AuthenticationForm):
    """`second_factor_of` is set when the password was right and a code is needed."""

    second_factor_of: User | None = None
    second_factor_sentence = "A code is needed."

    def clean(self) -> dict[str, Any]:
        username = self.cleaned_data.get("username")
        password = self.cleaned_data.get("password")
        if username and password:
            try:
                self.user_cache = login_check(
                    self.request or HttpRequest(), username=username, password=password
                )
            except SecondFactorNeeded as needed:
                self.second_factor_of = needed.user
                raise ValidationError(self.second_factor_sentence, code=needed.code) from needed
            except ApplicationError as error:
                raise ValidationError(error.message, code=error.code) from error
            self.confirm_login_allowed(self.user_cache)
        return self.cleaned_data


class AdminLoginForm(LoginForm, UnfoldAuthenticationForm):  # type: ignore[misc]
    """In the admin's look, and for staff only."""

    second_factor_sentence = (
        "Your account has a second factor. Sign in on Trailer's own sign-in page, then come back."
    )


class CodeForm(forms.Form):
    """The second step of signing in."""

    code = forms.CharField(label="Code", max_length=40)
