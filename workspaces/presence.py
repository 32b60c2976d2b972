"""A host heard or fallen silent: its workspaces turn fresh or stale, and browsers are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils import timezone

from hosts.services.sessions import host_heartbeat, hosts_mark_silent
from trailer import events
from workspaces.metrics import metrics_record
from workspaces.models import Workspace
from workspaces.services.gpus import holds_settle

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from uuid import UUID

    from agent.protocol.session import Heartbeat
    from hosts.models import Host


def host_heard(host: Host, heartbeat: Heartbeat) -> None:
    if host_heartbeat(host, heartbeat):
        _publish_workspaces([host.pk])
    if heartbeat.gpus:
        holds_settle(host)
    if heartbeat.metrics is not None:
        metrics_record(host, heartbeat.metrics, timezone.now())


def hosts_fallen_silent(now: datetime) -> None:
    _publish_workspaces(hosts_mark_silent(now))


def _publish_workspaces(host_ids: Iterable[UUID]) -> None:
    rows = Workspace.objects.filter(host_id__in=list(host_ids)).values_list("id", flat=True)
    for workspace_id in rows:
        events.publish("workspace", workspace_id)
