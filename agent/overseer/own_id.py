"""The id of the container that this process runs in."""

from __future__ import annotations

import re
from pathlib import Path

# The engine keeps the files of a container's name and addresses in a folder of its id. In the
# container they lie below /etc; outside, where others' can be seen for a moment, they do not.
_FOLDER = re.compile(r"/containers/([0-9a-f]{64})/(hostname|hosts|resolv\.conf) /etc/\2 ")


def container_id_in(mounts: str) -> str:
    """Empty when the mounts are not a container's. The engine has the last word on the id."""
    found = _FOLDER.search(mounts)
    return found.group(1) if found else ""


def own_container_id() -> str:
    try:
        return container_id_in(Path("/proc/self/mountinfo").read_text())
    except OSError:
        return ""
