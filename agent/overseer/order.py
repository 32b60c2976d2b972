"""What the server wants of an agent's container."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.protocol.state import HostSettings


@dataclass(frozen=True, kw_only=True)
class Order:
    """Without an image: the same as now. A `number` asks for the image that the name means today,
    although the name may be the one that runs; it is answered once. 0: nothing of the kind."""

    image: str = ""
    number: int = 0


def order_in(settings: HostSettings) -> Order:
    return Order(image=settings.agent_image, number=settings.agent_order)
