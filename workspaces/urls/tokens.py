"""Signed proofs that a user may open one URL: for the way there, and for the visit."""

from __future__ import annotations

from typing import Final

import msgspec
from django.core import signing

ENTRY_SECONDS: Final = 60
VISIT_SECONDS: Final = 3600
_ENTRY: Final = "trailer.url.entry"
_VISIT: Final = "trailer.url.visit"


class Pass(msgspec.Struct, frozen=True, kw_only=True):
    """Bound to one user, their browser session, one workspace and one host name. `state` ties the
    way there to the browser that began it."""

    user_id: str
    session_id: str
    workspace_id: str
    host: str
    state: str = ""


def entry_token(ticket: Pass) -> str:
    return signing.dumps(msgspec.to_builtins(ticket), salt=_ENTRY)


def read_entry(text: str, *, host: str, state: str) -> Pass | None:
    ticket = _read(text, _ENTRY, ENTRY_SECONDS)
    if ticket is None or ticket.host != host or not state or ticket.state != state:
        return None
    return ticket


def visit_token(ticket: Pass) -> str:
    return signing.dumps(msgspec.to_builtins(ticket), salt=_VISIT)


def read_visit(text: str, *, host: str) -> Pass | None:
    ticket = _read(text, _VISIT, VISIT_SECONDS)
    return ticket if ticket is not None and ticket.host == host else None


def is_ageing(text: str) -> bool:
    """A visit that goes on gets a new token in time."""
    return _read(text, _VISIT, VISIT_SECONDS // 2) is None


def _read(text: str, salt: str, most_seconds: int) -> Pass | None:
    if not text or len(text) > 2000:
        return None
    try:
        return msgspec.convert(signing.loads(text, salt=salt, max_age=most_seconds), type=Pass)
    except (signing.BadSignature, msgspec.ValidationError):
        return None
