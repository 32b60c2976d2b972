"""Browser sessions in the database, with what their user wants to know about them.

A row is found by a digest of the cookie, as tokens are: whoever reads the table, or a backup of
it, can't go on with anybody's session.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from asgiref.sync import sync_to_async
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.utils import timezone

from trailer.accounts.models import Session
from trailer.context import origin
from trailer.secrets import digest

# For people; a write on every request would cost more than it tells.
_SEEN_RESOLUTION: Final = timedelta(minutes=5)
_KEPT: Final = ("public_id", "created_at", "last_seen_at", "address", "user_agent")


def stored_key(key: str | None) -> str:
    """What `Session.session_key` holds for a cookie; as long as that column is wide."""
    return digest(key)[:40] if key else ""


class SessionStore(DatabaseStore):
    """Named by SESSION_ENGINE; the rest is Django's own store. The methods for coroutines do the
    same in a thread."""

    _row: Session | None = None

    @classmethod
    def get_model_class(cls) -> type[Session]:
        return Session

    def _get_session_from_db(self) -> Session | None:
        now, key = timezone.now(), stored_key(self.session_key)
        row = Session.objects.filter(session_key=key, expire_date__gt=now).first()
        self._row = row
        if row is None:
            self._session_key = None
        elif now - row.last_seen_at > _SEEN_RESOLUTION:
            Session.objects.filter(pk=row.pk).update(last_seen_at=now, address=origin().address)
        return row

    async def _aget_session_from_db(self) -> Session | None:
        return await sync_to_async(self._get_session_from_db)()

    def exists(self, session_key: str) -> bool:
        return super().exists(stored_key(session_key))

    async def aexists(self, session_key: str) -> bool:
        return await super().aexists(stored_key(session_key))

    def delete(self, session_key: str | None = None) -> None:
        key = session_key or self.session_key
        if key:
            Session.objects.filter(session_key=stored_key(key)).delete()

    async def adelete(self, session_key: str | None = None) -> None:
        await sync_to_async(self.delete)(session_key)

    def create_model_instance(self, data: dict[str, Any]) -> Session:
        """Saving again keeps what the row knew; a new key, as after signing in, is a new row."""
        row: Session = super().create_model_instance(data)  # type: ignore[assignment]
        row.session_key = stored_key(row.session_key)
        row.user_id = data.get(SESSION_KEY)
        if self._row is not None and self._row.session_key == row.session_key:
            for name in _KEPT:
                setattr(row, name, getattr(self._row, name))
        else:
            row.address, row.user_agent = origin().address, origin().user_agent
        return row

    async def acreate_model_instance(self, data: dict[str, Any]) -> Session:
        return await sync_to_async(self.create_model_instance)(data)
