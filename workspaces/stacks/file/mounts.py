"""Reads what a service mounts, in Compose's short and long form."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from workspaces.stacks.file.types import VolumeMount

if TYPE_CHECKING:
    from workspaces.stacks.file.nodes import Item


def read_mounts(item: Item) -> tuple[VolumeMount, ...]:
    mounts: list[VolumeMount] = []
    for entry in item.entries():
        mount = _long(entry) if entry.is_map else _short(entry)
        if any(mount.target == other.target for other in mounts):
            raise entry.wrong(f"{mount.target} is mounted twice")
        mounts.append(mount)
    return tuple(mounts)


def _short(item: Item) -> VolumeMount:
    parts = item.plain_text().split(":")
    if len(parts) == 1:
        raise item.wrong("needs a source; name a volume, for example data:/data")
    options = set(parts[2].split(",")) if len(parts) == 3 else set()
    if len(parts) > 3 or options - {"ro", "rw"} or {"ro", "rw"} <= options:
        raise item.wrong("must be source:target or source:target:ro")
    return _mount(item, parts[0], parts[1], read_only="ro" in options)


def _long(item: Item) -> VolumeMount:
    known = item.known(("type", "source", "target", "read_only"))
    for key in ("type", "source", "target"):
        if key not in known:
            raise item.wrong(f"needs {key}")
    kind = known["type"].choice(("volume", "bind"))
    source = known["source"].plain_text()
    if (kind == "bind") != source.startswith(("/", ".", "~")):
        raise known["source"].wrong(
            "a bind has an absolute path of the host as source, a volume has a name"
        )
    read_only = "read_only" in known and known["read_only"].boolean()
    return _mount(item, source, known["target"].plain_text(), read_only=read_only)


def _mount(item: Item, source: str, target: str, *, read_only: bool) -> VolumeMount:
    if source.startswith((".", "~")):
        raise item.wrong(
            "paths beside the file are not there on the host; use a named volume or an "
            "absolute path"
        )
    clean = _absolute(item, target)
    if source.startswith("/"):
        return VolumeMount(
            target=clean, host_path=_absolute(item, source, root=True), read_only=read_only
        )
    if not source:
        raise item.wrong("needs a source; name a volume, for example data:/data")
    return VolumeMount(target=clean, volume=source, read_only=read_only)


def _absolute(item: Item, path: str, *, root: bool = False) -> str:
    if not path.startswith("/") or ".." in path.split("/") or len(path) > 1024:
        raise item.wrong(f"{path[:80]} must be an absolute path without '..'")
    clean = "/" + posixpath.normpath(path).lstrip("/")
    if clean == "/" and not root:
        raise item.wrong("the target may not be the root folder of the container")
    return clean
