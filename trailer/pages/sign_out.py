"""Signing out, written down like signing in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth.views import LogoutView

from trailer.audit.record import record

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


class SignOutView(LogoutView):
    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.user.is_authenticated:
            record("user.logout", request.user, actor=request.user)
        return super().post(request, *args, **kwargs)
