"""Reads what a stack file asks for under x-trailer.needs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from workspaces.stacks.file import values
from workspaces.stacks.file.types import DEFAULT_READY_TIMEOUT, NeedSpec
from workspaces.stacks.needs.catalogue import need_kinds
from workspaces.validation.fields import MAX_CPUS, MIN_CPUS, MIN_MEMORY_BYTES

if TYPE_CHECKING:
    from workspaces.stacks.file.nodes import Item
    from workspaces.stacks.needs.kind import NeedKind

_OPTIONS: Final = ("image", "mem_limit", "cpus", "ready_timeout")
_MAX_READY: Final = 3600
_DATABASE: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}")


def read_needs(item: Item) -> tuple[NeedSpec, ...]:
    if item.is_null:
        return ()
    kinds = need_kinds()
    found = item.known(tuple(kinds))
    return tuple(_need(kinds[name], found[name]) for name in sorted(found))


def _need(kind: NeedKind, item: Item) -> NeedSpec:
    options = {} if item.is_null else item.known((*_OPTIONS, *kind.options))
    return NeedSpec(
        kind=kind.name,
        image=options["image"].plain_text() if "image" in options else "",
        database=_database(options["database"]) if "database" in options else "",
        memory_bytes=values.size(options["mem_limit"], least=MIN_MEMORY_BYTES)
        if "mem_limit" in options
        else None,
        cpus=values.number(options["cpus"], least=MIN_CPUS, most=MAX_CPUS)
        if "cpus" in options
        else None,
        ready_timeout=_ready_timeout(options.get("ready_timeout")),
    )


def _ready_timeout(item: Item | None) -> int:
    if item is None:
        return DEFAULT_READY_TIMEOUT
    return max(1, values.whole_seconds(item, most=_MAX_READY))


def _database(item: Item) -> str:
    name = item.plain_text()
    if not _DATABASE.fullmatch(name):
        raise item.wrong("must be a name of a-z, 0-9 and _, not beginning with a digit")
    return name
