"""A Dockerfile whose ADD lines take what was fetched from an image beside it. Pure.

Not from the build's own files: `COPY . /app` would take it along from there. Each source has a
folder of its own in that image, with one file in it: which name that has does not matter here.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from agent.protocol.dockerfile import escape_sign, split_lines
from agent.protocol.expansion import escaped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent.protocol.remote_sources import Add


def with_sources(dockerfile: str, found: Sequence[Add], image: str) -> str:
    """As many lines as before, so that what the engine says about one is about the same line."""
    lines = split_lines(dockerfile)
    escape, number = escape_sign(lines), 0
    for add in found:
        places = range(number, number + len(add.remote))
        number += len(add.remote)
        for blank in range(add.first, add.last + 1):
            lines[blank] = "#"
        lines[add.first] = _copied(add, image, places) if add.remote else _literal(add, escape)
    return "\n".join(lines)


def folder_of(number: int) -> str:
    """Of the source with this number, counted over all ADD lines."""
    return f"source{number}"


def _copied(add: Add, image: str, places: Sequence[int]) -> str:
    """COPY, for an ADD would unpack an archive."""
    sources = [f"/{folder_of(place)}/*" for place in places]
    return _line("COPY", (*add.flags, f"--from={image}"), sources, add.destination)


def _literal(add: Add, escape: str) -> str:
    """With the names that were judged: the engine has nothing left to fill in."""
    names = [escaped(source, escape) for source in add.sources if isinstance(source, str)]
    return _line("ADD", add.flags, names, add.destination)


def _line(verb: str, flags: Sequence[str], sources: Sequence[str], destination: str) -> str:
    return " ".join((verb, *flags, json.dumps([*sources, destination])))
