"""One's own account: password, colours, tokens, sessions."""

from __future__ import annotations

from typing import Any, ClassVar

from django.utils import timezone

from trailer.accounts.models import ApiToken, Session, TokenScope
from trailer.accounts.second_factor import codes_left, is_on
from trailer.accounts.sessions import stored_key
from trailer.pages.page import PageView
from trailer.pages.quota import quota_bars

_LIFETIMES = (("30", "30 days"), ("90", "90 days"), ("365", "A year"), ("", "Never"))


class ProfileView(PageView):
    template_name = "profile/profile.html"
    parts: ClassVar = {"tokens": "profile/_tokens.html", "sessions": "profile/_sessions.html"}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        now = timezone.now()
        scopes = [
            (value, words)
            for value, words in TokenScope.choices
            if value != TokenScope.ADMIN or self.user.is_admin
        ]
        return super().get_context_data(
            tokens=ApiToken.objects.filter(user=self.user),
            sessions=Session.objects.filter(user=self.user, expire_date__gt=now),
            current_key=stored_key(self.request.session.session_key),
            groups=self.user.groups.order_by("name"),
            scopes=scopes,
            second_factor=is_on(self.user),
            codes_left=codes_left(self.user),
            quotas=quota_bars(self.user),
            lifetimes=_LIFETIMES,
            now=now,
            **kwargs,
        )
