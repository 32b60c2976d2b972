"""Maintenance windows: a host's cron expression becomes a number that its agent sees rise."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from celery.schedules import ParseException, crontab
from django.db import transaction
from django.db.models import F

from hosts.models import Host
from hosts.services.desired import host_desired_changed
from trailer.audit.record import record

if TYPE_CHECKING:
    from datetime import datetime

logger = logging.getLogger(__name__)


def maintenance_order_due(now: datetime) -> int:
    """Every host whose window has begun since it was looked at last; how many there were. The
    guarded update lets one of several workers through."""
    ordered = 0
    for host in Host.objects.filter(enabled=True).exclude(maintenance_schedule=""):
        since = host.maintenance_at
        if since is not None and not _begins(host.maintenance_schedule, since, now):
            continue
        with transaction.atomic():
            rows = Host.objects.filter(pk=host.pk, maintenance_at=since)
            if since is None:
                # Counted from here: a schedule that was just set has no window in the past.
                rows.update(maintenance_at=now)
            elif rows.update(maintenance_at=now, maintenance=F("maintenance") + 1):
                host_desired_changed(host.pk)
                record("host.maintenance", host)
                ordered += 1
    return ordered


def _begins(schedule: str, since: datetime, now: datetime) -> bool:
    try:
        minute, hour, day, month, weekday = schedule.split()
        window = crontab(
            minute=minute,
            hour=hour,
            day_of_month=day,
            month_of_year=month,
            day_of_week=weekday,
            nowfun=lambda: now,
        )
    except (ParseException, ValueError, TypeError):
        logger.warning("not a cron expression", extra={"schedule": schedule})
        return False
    return bool(window.is_due(since).is_due)
