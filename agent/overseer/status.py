"""What the overseer last had to say, in the folder that it shares with the agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from agent.store.identity import write_private

if TYPE_CHECKING:
    from pathlib import Path

_LONGEST = 1000


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """Empty while no replacement has failed. `order`: the server's order that it is about."""

    image: str = ""
    message: str = ""
    order: int = 0

    @property
    def answered(self) -> int:
        """The order that was fulfilled; one that failed is still open."""
        return 0 if self.message else self.order


def tell_trouble(state_dir: Path, image: str, message: str, order: int) -> None:
    body = Trouble(image=image, message=message[:_LONGEST], order=order)
    write_private(_path(state_dir), msgspec.json.encode(body))


def read_trouble(state_dir: Path) -> Trouble:
    try:
        return msgspec.json.decode(_path(state_dir).read_bytes(), type=Trouble)
    except (OSError, msgspec.MsgspecError):
        return Trouble()


def _path(state_dir: Path) -> Path:
    return state_dir / "overseer.json"
