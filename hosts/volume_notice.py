"""The notice on a volume whose data was lost on its host, until somebody acknowledges it."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from hosts.models import Volume

_WHY: Final = "the volume was missing on the host and was made again, empty."


def volume_notice(volume: Volume) -> str:
    """Empty when nothing is to be told."""
    if volume.data_gone_at is None:
        return ""
    return f"Its data is gone since {_since(volume.data_gone_at)}: {_WHY}"


def mounts_notice(volumes: Iterable[Volume]) -> str:
    """The same for a workspace, naming those of its volumes that it is about."""
    return " ".join(
        f"The data of its volume {volume.name} is gone since {_since(volume.data_gone_at)}: {_WHY}"
        for volume in sorted(set(volumes), key=lambda volume: volume.name)
        if volume.data_gone_at is not None
    )


def _since(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
