"""A forgotten password, by mail; nobody learns from it who has an account."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.forms import PasswordResetForm, SetPasswordForm
from django.contrib.auth.views import PasswordResetConfirmView, PasswordResetView
from django.http import Http404
from django.urls import reverse_lazy

from trailer.accounts.attempts import Attempts, neighbourhood
from trailer.accounts.services import password_reset
from trailer.context import client_address
from trailer.errors import Throttled

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse
    from django.http.response import HttpResponseBase

    from trailer.accounts.models import User

    _SetPasswordForm = SetPasswordForm[User]
else:
    # Django's own class takes no type parameter when the program runs.
    _SetPasswordForm = SetPasswordForm

_REQUESTS_PER_ADDRESS: Final = 5
_MAILS_PER_PERSON: Final = 3


class ResetForm(PasswordResetForm):
    def save(self, **options: Any) -> None:  # type: ignore[override]
        """The address in the mail is ours, whatever host the request named."""
        public = urlsplit(settings.TRAILER_PUBLIC_URL)
        options |= {"domain_override": public.netloc, "use_https": public.scheme == "https"}
        super().save(**options)


class NewPasswordForm(_SetPasswordForm):
    def save(self, commit: bool = True) -> User:
        return password_reset(user=self.user, password=self.cleaned_data["new_password1"])


class _MailNeeded:
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not settings.EMAIL_HOST_SET:
            raise Http404
        answer: HttpResponseBase = super().dispatch(request, *args, **kwargs)  # type: ignore[misc]
        return answer


class ResetView(_MailNeeded, PasswordResetView):
    template_name = "reset/ask.html"
    email_template_name = "reset/mail.txt"
    subject_template_name = "reset/subject.txt"
    form_class = ResetForm
    success_url = reverse_lazy("reset-sent")

    def form_valid(self, form: Any) -> HttpResponse:
        address = client_address(self.request.META)
        try:
            limits = {
                f"reset\0{neighbourhood(address)}": _REQUESTS_PER_ADDRESS,
                # Whoever has many addresses must not fill one person's mailbox.
                f"reset to\0{form.cleaned_data['email'].casefold()}": _MAILS_PER_PERSON,
            }
            Attempts(limits, noun="requests for a new password").count()
        except Throttled as error:
            form.add_error(None, error.message)
            return self.form_invalid(form)
        return super().form_valid(form)


class ResetConfirmView(_MailNeeded, PasswordResetConfirmView):
    template_name = "reset/choose.html"
    form_class = NewPasswordForm
    success_url = reverse_lazy("reset-done")
