"""The query of a session's address, read and checked."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final

from agent.protocol.sessions import ALL_LINES, ATTACH, EXEC, LOGS, SessionOpen
from trailer.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    Query = Mapping[str, Sequence[str]]

MOST_LINES: Final = 1_000_000
_MOST_WORDS: Final = 256
# Escaped as JSON it must still fit one frame of the agent's socket.
_MOST_TEXT: Final = 16 * 1024
_LARGEST_WINDOW: Final = 10_000
_SESSION: Final = re.compile(r"[0-9a-f]{32}")
_YES: Final = frozenset({"1", "true", "yes"})
_NO: Final = frozenset({"", "0", "false", "no"})


def session_request(
    kind: str, query: Query, *, workspace_id: UUID | str, user_id: UUID | str
) -> SessionOpen:
    parts: dict[str, object] = {}
    if kind == LOGS:
        parts = {
            "tail": lines_wanted(query, default=200),
            "timestamps": flag(query, "timestamps"),
            "previous": flag(query, "previous"),
        }
    elif kind == EXEC:
        parts = {"command": _command(query), "resume": _resume(query), "size": _size(query)}
    elif kind == ATTACH:
        parts = {"size": _size(query)}
    return SessionOpen(
        kind=kind,
        workspace_id=str(workspace_id),
        user=str(user_id),
        **parts,  # type: ignore[arg-type]
    )


def lines_wanted(query: Query, *, default: int) -> int:
    text = _last(query, "tail")
    if not text:
        return default
    if text == "all":
        return ALL_LINES
    if text.isascii() and text.isdecimal() and len(text) < 12:
        return min(int(text), MOST_LINES)
    raise Invalid.field("tail", 'tail must be a number of lines, or "all".')


def flag(query: Query, name: str) -> bool:
    text = _last(query, name).lower()
    if text in _YES:
        return True
    if text in _NO:
        return False
    raise Invalid.field(name, f"{name} must be 1 or 0.")


def resize(value: object) -> tuple[int, int] | None:
    """Columns and rows of a control frame; None when they are none."""
    if not isinstance(value, list) or len(value) != 2:
        return None
    columns, rows = value
    for number in (columns, rows):
        if type(number) is not int or not 1 <= number <= _LARGEST_WINDOW:
            return None
    return columns, rows


def _command(query: Query) -> tuple[str, ...]:
    """Repeated `cmd` is the list as it is; a single one is split as a shell would."""
    given = list(query.get("cmd", ()))
    if sum(map(len, given)) > _MOST_TEXT or any("\0" in word for word in given):
        raise Invalid.field("cmd", "cmd is too long, or holds a NUL character.")
    if len(given) == 1:
        try:
            given = shlex.split(given[0])
        except ValueError:
            raise Invalid.field("cmd", "cmd has a quote that is not closed.") from None
    if len(given) > _MOST_WORDS:
        raise Invalid.field("cmd", f"cmd has more than {_MOST_WORDS} words.")
    if given and not given[0]:
        raise Invalid.field("cmd", "The first word of cmd must name a program.")
    return tuple(given)


def _resume(query: Query) -> str:
    text = _last(query, "session")
    if text and not _SESSION.fullmatch(text):
        raise Invalid.field("session", "session must be the id that an earlier socket was given.")
    return text


def _size(query: Query) -> tuple[int, int] | None:
    texts = (_last(query, "cols"), _last(query, "rows"))
    if not all(text.isascii() and text.isdecimal() and len(text) < 6 for text in texts):
        return None
    return resize([int(text) for text in texts])


def _last(query: Query, name: str) -> str:
    return (query.get(name) or [""])[-1].strip()
