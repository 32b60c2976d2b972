"""Browser sessions in the database, with what their user wants to know about them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.utils import timezone

from trailer.accounts.models import Session
from trailer.context import origin

# For people; a write on every request would cost more than it tells.
_SEEN_RESOLUTION: Final = timedelta(minutes=5)
_KEPT: Final = ("public_id", "created_at", "last_seen_at", "address", "user_agent")


class SessionStore(DatabaseStore):
    """Named by SESSION_ENGINE; the rest is Django's own store."""

    _row: Session | None = None

    @classmethod
    def get_model_class(cls) -> type[Session]:
        return Session

    def _get_session_from_db(self) -> Session | None:
        row: Session | None = super()._get_session_from_db()  # type: ignore[misc]
        self._row = row
        now = timezone.now()
        if row is not None and now - row.last_seen_at > _SEEN_RESOLUTION:
            Session.objects.filter(pk=row.pk).update(last_seen_at=now, address=origin().address)
        return row

    def create_model_instance(self, data: dict[str, Any]) -> Session:
        """Saving again keeps what the row knew; a new key, as after signing in, is a new row."""
        row: Session = super().create_model_instance(data)  # type: ignore[assignment]
        row.user_id = data.get(SESSION_KEY)
        if self._row is not None and self._row.session_key == row.session_key:
            for name in _KEPT:
                setattr(row, name, getattr(self._row, name))
        else:
            row.address, row.user_agent = origin().address, origin().user_agent
        return row
