"""When the agent calls for an overseer; pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agent.overseer.traefik import derived_labels
from agent.protocol import image_refs
from agent.protocol.naming import LABEL_CREATED_AT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.overseer.order import Order


@dataclass(frozen=True, kw_only=True)
class Self:
    """The agent's own container as the engine describes it."""

    id: str
    image: str
    image_id: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


def difference(own: Self, desired_image: str) -> str:
    """Why the running container is not the one that is wanted; empty when it is."""
    if LABEL_CREATED_AT not in own.labels:
        return "this container was not made by an overseer"
    wanted = derived_labels(own.environment)
    if any(own.labels.get(name) != value for name, value in wanted.items()):
        return "its labels do not follow from its environment"
    if desired_image and not image_refs.is_same_image(desired_image, own.image):
        return f"the server wants the image {desired_image}"
    return ""


def reason_to_spawn(
    own: Self, *, order: Order, answered: int, leftovers: bool, maintained: bool
) -> str:
    """Empty: nothing to do. `leftovers`: an earlier replacement was interrupted. `answered`: the
    number of the order that was fulfilled last."""
    if leftovers:
        return "an earlier replacement was interrupted"
    if maintained:
        return "the maintenance is over"
    if order.number and order.number != answered:
        return f"the server ordered the image {order.image} (order {order.number})"
    return difference(own, order.image)
