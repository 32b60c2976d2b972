"""Gathers heartbeats into minutes and minutes into hours, and drops what is old; idempotent.

Each pass is a few statements per family, carried out inside the database. A mark says how far the
rows of a resolution reach, so that a pass that was missed is made up for and none counts twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db import connection, models, transaction

from hosts.metrics.families import HOUR, MINUTE, RAW
from hosts.models import Host, RollupMark

if TYPE_CHECKING:
    from hosts.metrics.families import Family

RAW_KEPT: Final = 2 * HOUR
MINUTES_KEPT: Final = 48 * HOUR
_DAY: Final = 24 * HOUR
# A sample carries the time at which its transaction began; it is committed a moment later.
_GRACE: Final = 10


def roll_up(family: Family, now: int) -> None:
    """One pass; any number of them at once, in any process, come to the same rows."""
    minutes = _gather(family, RAW, MINUTE, now - _GRACE)
    hours = _gather(family, MINUTE, HOUR, minutes)
    _trim(family, RAW, min(now - RAW_KEPT, minutes))
    _trim_by_retention(family, now, minutes_until=hours)


def _gather(family: Family, source: int, target: int, now: int) -> int:
    """Whole buckets only; returns the end of the last one."""
    end = now - now % target
    with transaction.atomic():
        RollupMark.objects.get_or_create(family=family.name, resolution=target)
        mark = RollupMark.objects.select_for_update().get(family=family.name, resolution=target)
        if end <= mark.until:
            return mark.until
        # The last bucket once more: a transaction may have taken longer than the grace.
        with connection.cursor() as cursor:
            cursor.execute(_statement(family, source, target), [mark.until - target, end])
        RollupMark.objects.filter(pk=mark.pk).update(until=end)
    return end


def _statement(family: Family, source: int, target: int) -> str:
    """Names come from the models and numbers from this file; only times are given from outside."""
    table = f'"{family.model._meta.db_table}"'
    owner = family.subject[0]
    owners = family.owners(Host.objects.order_by()).model._meta
    subject = ", ".join(f'"{name}"' for name in family.subject)
    names = [field.column for field in family.values]
    columns = ", ".join(f'"{name}"' for name in names)
    averages = ", ".join(_average(field) for field in family.values)
    updates = ", ".join(f'"{name}" = excluded."{name}"' for name in names)
    bucket = f'"at" - "at" %% {target}'
    return f"""
        INSERT INTO {table} ({subject}, "resolution", "at", {columns})
        SELECT {subject}, {target}, {bucket}, {averages} FROM {table}
        WHERE "{owner}" IN (SELECT "id" FROM "{owners.db_table}")
        AND "resolution" = {source} AND "at" >= %s AND "at" < %s
        GROUP BY {subject}, {bucket} ORDER BY {subject}, {bucket}
        ON CONFLICT ({subject}, "resolution", "at") DO UPDATE SET {updates}
    """  # noqa: S608


def _average(field: models.Field[object, object]) -> str:
    average = f'AVG("{field.column}")'
    if isinstance(field, models.FloatField):
        return average
    return f"CAST(ROUND({average}) AS bigint)"


def _trim(family: Family, resolution: int, before: int) -> None:
    _delete(family, Host.objects.order_by(), resolution, before)


def _trim_by_retention(family: Family, now: int, *, minutes_until: int) -> None:
    """Each host has its own; hosts that keep samples equally long are trimmed together."""
    kept = Host.objects.order_by().values_list("metrics_retention_days", flat=True).distinct()
    for days in kept:
        hosts = Host.objects.order_by().filter(metrics_retention_days=days)
        minutes_before = now - min(MINUTES_KEPT, days * _DAY)
        _delete(family, hosts, MINUTE, min(minutes_before, minutes_until))
        _delete(family, hosts, HOUR, now - days * _DAY)


def _delete(family: Family, hosts: models.QuerySet[Host], resolution: int, before: int) -> None:
    owners = family.owners(hosts).values("pk")
    family.model._default_manager.filter(
        **{f"{family.subject[0]}__in": owners}, resolution=resolution, at__lt=before
    ).delete()
