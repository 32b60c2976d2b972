"""If-Match: the caller says which revision it saw; a moved one is refused with 409."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trailer.errors import Invalid

if TYPE_CHECKING:
    from rest_framework.request import Request


def expected_revision(request: Request) -> int | None:
    given = request.headers.get("If-Match", "").strip()
    if not given or given == "*":
        return None
    text = given.removeprefix("W/").strip('"')
    if not text.isdecimal() or len(text) > 9:
        raise Invalid("If-Match must hold the revision as a number, for example 3.")
    return int(text)
