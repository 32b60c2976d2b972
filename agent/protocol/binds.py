"""Which folders of a host may never be mounted: the same rule on the server and on the agent."""

from __future__ import annotations

import posixpath
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

# A bind of these, of anything in them or of what holds them hands out the host itself.
FORBIDDEN: Final = (
    *("/proc", "/sys", "/dev", "/etc", "/boot", "/run", "/var/run"),
    *("/var/lib/docker", "/var/lib/containerd"),
)


def canonical_path(source: str) -> str:
    return "/" + posixpath.normpath(source).lstrip("/")


def bind_problem(source: str, *, also: Iterable[str] = ()) -> str:
    """Why this folder may not be mounted, or empty; `also` are further folders to keep."""
    if not source.startswith("/"):
        return "A bind mount needs the absolute path of a folder."
    if ".." in source.split("/") or ":" in source or "\0" in source:
        return "The path of a bind mount may hold neither .. nor a colon."
    path = PurePosixPath(canonical_path(source))
    kept = [PurePosixPath(canonical_path(other)) for other in (*FORBIDDEN, *also) if other]
    if path.name == "docker.sock" or any(_overlap(path, other) for other in kept):
        return f"{path} may not be mounted: it would hand out the host itself."
    return ""


def _overlap(path: PurePosixPath, other: PurePosixPath) -> bool:
    return path.is_relative_to(other) or other.is_relative_to(path)
