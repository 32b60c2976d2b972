"""Whose an object is that holds a name of ours and is not ours, in words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agent.protocol import naming

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.diff.view import View

# Anybody can write labels: a text that is no id is not repeated.
_HOST_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def maker(view: View, labels: Mapping[str, str]) -> str:
    """Another Trailer host may be on this engine, or have been before this machine became ours."""
    return "which Trailer did not make" if not _other_host(view, labels) else _belongs(labels)


def held_by(view: View, name: str, holder: str, labels: Mapping[str, str]) -> str:
    """A sentence for a name that has to be freed."""
    there = "delete it there, or " if _other_host(view, labels) else ""
    return (
        f"The name {name} is held by {holder}, {maker(view, labels)}; {there}rename or remove it."
    )


def _other_host(view: View, labels: Mapping[str, str]) -> bool:
    host = labels.get(naming.LABEL_HOST, "")
    return host != view.knows.host_id and _HOST_ID.fullmatch(host) is not None


def _belongs(labels: Mapping[str, str]) -> str:
    return f"which belongs to another Trailer host ({labels[naming.LABEL_HOST]})"
