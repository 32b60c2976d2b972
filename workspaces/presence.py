"""A host's heartbeat: what it says goes to the services that own it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils import timezone

from hosts.services.sessions import host_heartbeat
from workspaces.metrics import metrics_record
from workspaces.services.gpus import holds_settle

if TYPE_CHECKING:
    from agent.protocol.session import Heartbeat
    from hosts.models import Host


def host_heard(host: Host, heartbeat: Heartbeat) -> None:
    host_heartbeat(host, heartbeat)
    if heartbeat.gpus:
        holds_settle(host)
    if heartbeat.metrics is not None:
        metrics_record(host, heartbeat.metrics, timezone.now())
