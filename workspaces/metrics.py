"""The metrics of one heartbeat, and the series of one workspace."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db import IntegrityError, connection, transaction

from hosts.metrics.families import Family
from hosts.metrics.record import (
    counted,
    gpu_samples_record,
    host_sample_record,
    measured,
    usage_record,
)
from workspaces.models import Workspace, WorkspaceSample

if TYPE_CHECKING:
    from datetime import datetime

    from agent.protocol.metrics import Metrics
    from agent.protocol.metrics import WorkspaceSample as WorkspaceReport
    from hosts.models import Host

logger = logging.getLogger(__name__)

WORKSPACES: Final = Family(
    "workspace",
    WorkspaceSample,
    ("workspace_id",),
    lambda hosts: Workspace.objects.filter(host__in=hosts).order_by(),
)
_MOST: Final = 5000
_PROCESSES: Final = 2**31 - 1


def metrics_record(host: Host, metrics: Metrics, now: datetime) -> None:
    """`now` is the server's: an agent's clock decides nothing. Families switched off are dropped,
    also when the agent has not heard of the switch yet."""
    sample = metrics.host if host.metrics_host else None
    reports = metrics.workspaces if host.metrics_workspace else None
    workspaces = _by_id(reports or ())
    try:
        with transaction.atomic():
            if sample is not None:
                host_sample_record(host, sample, now)
            if host.metrics_gpu and metrics.gpus:
                gpu_samples_record(host, metrics.gpus, now)
            if workspaces:
                _workspace_samples_record(host, workspaces, int(now.timestamp()))
            usage_record(host, sample, {str(i): r for i, r in workspaces.items()}, now)
    except IntegrityError:
        # Something was deleted at this very moment; the next heartbeat is not far.
        logger.info("samples dropped", extra={"host": str(host.pk)})


def _by_id(reports: tuple[WorkspaceReport, ...]) -> dict[UUID, WorkspaceReport]:
    found = {}
    for report in reports[:_MOST]:
        try:
            found[UUID(report.workspace_id)] = report
        except ValueError:
            continue
    return found


def _workspace_samples_record(host: Host, reports: dict[UUID, WorkspaceReport], at: int) -> None:
    """One statement for all; workspaces that are not of this host, or gone, are left out."""
    names = [field.attname for field in WORKSPACES.values]
    columns = ", ".join(f'"{name}"' for name in names)
    slots = ", ".join(["%s"] * len(names))
    statement = f"""
        INSERT INTO "{WorkspaceSample._meta.db_table}"
        ("workspace_id", "resolution", "at", {columns})
        SELECT "id", 0, %s, {slots} FROM "{Workspace._meta.db_table}"
        WHERE "id" = %s AND "host_id" = %s ON CONFLICT DO NOTHING
    """  # noqa: S608
    key = Workspace._meta.pk
    owner = key.get_db_prep_value(host.pk, connection)
    with connection.cursor() as cursor:
        cursor.executemany(
            statement,
            [
                (at, *_values(report, names), key.get_db_prep_value(pk, connection), owner)
                for pk, report in sorted(reports.items())
            ],
        )


def _values(report: WorkspaceReport, names: list[str]) -> list[Any]:
    columns = {
        "cpu_percent": measured(report.cpu_percent),
        "memory_bytes": counted(report.memory_bytes),
        "memory_limit_bytes": counted(report.memory_limit_bytes),
        "disk_read_rate": counted(report.disk_read_rate),
        "disk_write_rate": counted(report.disk_write_rate),
        "network_rx_rate": counted(report.network_rx_rate),
        "network_tx_rate": counted(report.network_tx_rate),
        "processes": counted(report.processes, _PROCESSES),
        "connections": measured(report.connections),
    }
    return [columns[name] for name in names]
