"""Signing in: the password, then perhaps the code of a second factor."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.views import LoginView, RedirectURLMixin
from django.http import HttpResponseRedirect
from django.urls import reverse
from django.utils.crypto import constant_time_compare
from django.utils.http import urlencode
from django.views.generic import FormView

from trailer.accounts.forms import CodeForm, LoginForm
from trailer.accounts.login import second_factor_check
from trailer.accounts.models import User
from trailer.accounts.places import remember_device
from trailer.errors import ApplicationError

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse
    from django.http.response import HttpResponseBase

    _CodeFormView = FormView[CodeForm]
else:
    # Django's own class takes no type parameter when the program runs.
    _CodeFormView = FormView

_PENDING: Final = "second_factor"
# Seconds between the password and the code.
_PATIENCE: Final = 300
_BACKEND: Final = "django.contrib.auth.backends.ModelBackend"


class SignInView(LoginView):
    template_name = "login.html"
    redirect_authenticated_user = True
    authentication_form = LoginForm

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            may_reset=bool(settings.EMAIL_HOST_SET), sso_name=settings.TRAILER_OIDC_NAME, **kwargs
        )

    def form_valid(self, form: Any) -> HttpResponse:
        response = super().form_valid(form)
        remember_device(response, form.get_user())
        return response

    def form_invalid(self, form: Any) -> HttpResponse:
        user = form.second_factor_of
        if user is None:
            return super().form_invalid(form)
        self.request.session.cycle_key()
        self.request.session[_PENDING] = {
            "user": str(user.pk),
            "until": time.time() + _PATIENCE,
            # A password that is changed meanwhile ends this too.
            "hash": user.get_session_auth_hash(),
        }
        onward = {self.redirect_field_name: self.get_redirect_url()}
        return HttpResponseRedirect(f"{reverse('login-code')}?{urlencode(onward)}")


class SecondFactorView(RedirectURLMixin, _CodeFormView):
    template_name = "login_code.html"
    form_class = CodeForm
    next_page = settings.LOGIN_REDIRECT_URL

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        user = _pending_user(request)
        if user is None:
            return HttpResponseRedirect(reverse("login"))
        self.user = user
        return super().dispatch(request, *args, **kwargs)

    def form_valid(self, form: CodeForm) -> HttpResponse:
        try:
            second_factor_check(self.request, self.user, form.cleaned_data["code"])
        except ApplicationError as error:
            form.add_error(None, error.message)
            return self.form_invalid(form)
        del self.request.session[_PENDING]
        login(self.request, self.user, backend=_BACKEND)
        response = HttpResponseRedirect(self.get_success_url())
        remember_device(response, self.user)
        return response

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(next=self.get_redirect_url(), **kwargs)


def _pending_user(request: HttpRequest) -> User | None:
    """Who gave the right password in this browser a moment ago."""
    pending = request.session.get(_PENDING)
    if not isinstance(pending, dict) or time.time() > pending.get("until", 0):
        return None
    user = User.objects.filter(pk=str(pending.get("user")), is_active=True).first()
    if user is None or not constant_time_compare(
        pending.get("hash", ""), user.get_session_auth_hash()
    ):
        return None
    return user
