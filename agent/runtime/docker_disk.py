"""How full the engine's disk is, and removing what nobody can use any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent.errors import NotFound
from agent.protocol.counting import counted
from agent.protocol.naming import LABEL_MANAGED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent.runtime.docker_client import Connections

# Adding up all layers takes a while on a full disk.
_PATIENCE = 120
_CACHE_DAYS = 7
# The first that prunes by age.
_CACHE_API = (1, 39)
_UNITS = ("B", "kB", "MB", "GB", "TB")


class DockerDisk:
    _engine: Connections

    def disk_report(self) -> str:
        raw = self._engine.run(lambda api: api.df(), deadline=_PATIENCE)
        return describe_usage(raw)

    def prune_images(self) -> str:
        """What no build needs any more; each part in words."""
        return ", ".join(filter(None, (self._prune_untagged(), self._prune_build_cache())))

    def _prune_untagged(self) -> str:
        """Untagged images that Trailer built and no container uses: what a newer build of the same
        image left behind. Tagged ones, and those of others, only a user's deletion removes."""
        only = {"dangling": True, "label": [f"{LABEL_MANAGED}=true"]}
        raw = self._engine.run(lambda api: api.prune_images(only), deadline=_PATIENCE)
        count = sum(1 for row in raw.get("ImagesDeleted") or () if "Deleted" in row)
        if not count:
            return ""
        size = _size(raw.get("SpaceReclaimed") or 0)
        return f"{counted(count, 'layer')} of older builds removed, {size}"

    def _prune_build_cache(self) -> str:
        """BuildKit keeps the steps of builds with secrets as long as nobody says otherwise."""
        try:
            raw = self._engine.run(_prune_cache, deadline=_PATIENCE)
        except NotFound:
            # An engine without BuildKit.
            return ""
        size = raw.get("SpaceReclaimed") or 0
        return f"build cache unused for {_CACHE_DAYS} days removed, {_size(size)}" if size else ""


def _prune_cache(api: Any) -> Mapping[str, Any]:
    version = tuple(int(part) for part in str(api.api_version).split("."))
    if version < _CACHE_API:
        return {}
    raw: Mapping[str, Any] = api.prune_builds(filters={"until": f"{_CACHE_DAYS * 24}h"})
    return raw


def describe_usage(raw: Mapping[str, Any]) -> str:
    volumes = (row.get("UsageData") or {} for row in raw.get("Volumes") or ())
    parts = {
        "images": raw.get("LayersSize") or 0,
        "containers": _sum(raw.get("Containers"), "SizeRw"),
        "volumes": _sum(volumes, "Size"),
        "build cache": _sum(raw.get("BuildCache"), "Size"),
    }
    return "disk: " + ", ".join(f"{name} {_size(size)}" for name, size in parts.items())


def _sum(rows: Iterable[Mapping[str, Any]] | None, key: str) -> int:
    """-1 stands for a size that the engine did not look for."""
    return sum(max(0, int(row.get(key) or 0)) for row in rows or ())


def _size(size: float) -> str:
    for unit in _UNITS:
        if size < 1000 or unit == _UNITS[-1]:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return ""
