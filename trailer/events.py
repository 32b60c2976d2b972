"""Broadcasts: the only user of the channel layer. A message is a hint, never content."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction

if TYPE_CHECKING:
    from uuid import UUID

    from channels.layers import BaseChannelLayer

logger = logging.getLogger(__name__)

FRESHNESS_GROUP: Final = "live.freshness"


@dataclass(frozen=True)
class Changed:
    """One object's state moved: consumers that follow it read it again and send it whole."""

    kind: str
    object_id: str
    deleted: bool = False

    @property
    def resource(self) -> str:
        return f"{self.kind}:{self.object_id}"

    @property
    def groups(self) -> tuple[str, ...]:
        return (object_group(self.kind, self.object_id), kind_group(self.kind))


def object_group(kind: str, object_id: UUID | str) -> str:
    return f"live.{kind}.{object_id}"


def kind_group(kind: str) -> str:
    """Followers of all objects of a kind; each consumer filters by what its user may see."""
    return f"live.{kind}s"


def agent_group(host_id: UUID | str) -> str:
    return f"agent.{host_id}"


def publish(kind: str, object_id: UUID | str, *, deleted: bool = False) -> None:
    """Tell the browsers, once the transaction at hand is really committed."""
    event = Changed(kind=kind, object_id=str(object_id), deleted=deleted)
    message = {"type": "changed", "resource": event.resource, "deleted": event.deleted}
    transaction.on_commit(lambda: _send(event.groups, message))


def publish_freshness(host_id: UUID | str) -> None:
    """One message for all that runs on a host, when it turns fresh or stale: each consumer looks
    up what it shows of it."""
    message: dict[str, object] = {"type": "freshness", "host": str(host_id)}
    transaction.on_commit(lambda: _send((FRESHNESS_GROUP,), message))


def nudge(host_id: UUID | str) -> None:
    """Hint to a host's agent that its desired state moved; polling remains the truth."""
    transaction.on_commit(lambda: _send((agent_group(host_id),), {"type": "nudge"}))


def dismiss(host_id: UUID | str) -> None:
    """Hang up on a host's agent, whose token is no longer good."""
    transaction.on_commit(lambda: _send((agent_group(host_id),), {"type": "agent.dismissed"}))


def renew(host_id: UUID | str) -> None:
    """Its agent uses a new token: whoever is connected by the old one must show the new one."""
    transaction.on_commit(lambda: _send((agent_group(host_id),), {"type": "agent.renewed"}))


def channel_layer() -> BaseChannelLayer:
    layer = get_channel_layer()
    if layer is None:
        raise ImproperlyConfigured("Trailer needs a channel layer; see CHANNEL_LAYERS.")
    return layer


def _send(groups: tuple[str, ...], message: dict[str, object]) -> None:
    """A broken channel layer costs speed only: the page and the agent also poll."""
    layer = channel_layer()
    for group in groups:
        try:
            async_to_sync(layer.group_send)(group, message)
        except Exception:
            logger.warning("broadcast failed", extra={"group": group}, exc_info=True)
