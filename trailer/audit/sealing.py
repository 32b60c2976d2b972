"""Seals what is settled of the audit, in the order of its rows.

Not in each writing transaction: a chain there would make all of them wait for one another.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.db import IntegrityError, transaction

from trailer.audit.chain import PURPOSE, pack, seal_digest
from trailer.audit.head import head_problem, keep_head
from trailer.audit.horizon import settled_before
from trailer.audit.links import reason_not_to_follow
from trailer.audit.models import AuditEntry, AuditSeal
from trailer.secrets import sign

if TYPE_CHECKING:
    from datetime import datetime

    from django.db.models import QuerySet

logger = logging.getLogger(__name__)

# Rows of one seal: what a check has to hold in memory at once.
_ROWS: Final = 1000
# Time in which nothing happened is sealed too: nobody can write a row into it later.
_QUIET: Final = timedelta(hours=1)
_TICK: Final = timedelta(microseconds=1)


class NotSealed(Exception):
    """The chain ends in something that a seal of ours must not vouch for. Says in what."""


def audit_seal(now: datetime, *, in_any_case: bool = False, over_problems: bool = False) -> int:
    """How many rows were sealed. `in_any_case`: also when there is nothing new, so that the
    present key vouches for everything before. `over_problems`: even if that is not sound."""
    horizon = settled_before(now)
    if not over_problems:
        _keep_what_is_sound()
    sealed = 0
    while (
        seal := _seal_next(horizon, in_any_case=in_any_case, over_problems=over_problems)
    ) is not None:
        in_any_case = over_problems = False
        sealed += seal.count
        # The log is elsewhere than the database: who cuts off the end of both tables is seen.
        logger.info(
            "audit sealed",
            extra={"head": seal.head, "rows": seal.count, "until": seal.until.isoformat()},
        )
    return sealed


def newest_seal() -> AuditSeal | None:
    return AuditSeal.objects.order_by("-number").first()


def rows_between(since: datetime | None, until: datetime) -> QuerySet[AuditEntry]:
    rows = AuditEntry.objects.filter(at__lt=until).order_by("at", "id")
    return rows if since is None else rows.filter(at__gte=since)


def _keep_what_is_sound() -> None:
    """What is written down is a minute old: a database that lost its last moment in a power cut
    must not look like one whose end was cut off."""
    problem = head_problem()
    if problem:
        raise NotSealed(problem)
    last = newest_seal()
    if last is not None:
        _require_sound(last)
        keep_head(last)


def _require_sound(last: AuditSeal) -> None:
    problem = reason_not_to_follow(last)
    if problem:
        raise NotSealed(problem)


def _seal_next(horizon: datetime, *, in_any_case: bool, over_problems: bool) -> AuditSeal | None:
    try:
        # The last seal that is looked at is the one that is built on.
        with transaction.atomic():
            last = newest_seal()
            if last is not None and not over_problems:
                _require_sound(last)
            return _sealed_after(last, horizon, in_any_case=in_any_case)
    except IntegrityError:
        # Another process sealed the same rows under this number; its seal stands.
        return None


def _sealed_after(
    last: AuditSeal | None, horizon: datetime, *, in_any_case: bool
) -> AuditSeal | None:
    since = last.until if last else None
    if since is not None and horizon <= since:
        if not in_any_case:
            return None
        horizon = since
    rows = list(rows_between(since, horizon)[: _ROWS + 1])
    is_quiet = since is None or horizon - since < _QUIET
    if not rows and is_quiet and not in_any_case:
        return None
    if len(rows) > _ROWS:
        # Rows of one moment stay together: a seal is a time.
        horizon = max(rows[_ROWS].at, rows[0].at + _TICK)
        rows = list(rows_between(since, horizon))
    seal = AuditSeal(
        number=last.number + 1 if last else 1,
        previous=last.digest if last else "",
        since=since,
        until=horizon,
        count=len(rows),
        first_id=rows[0].id if rows else None,
        last_id=rows[-1].id if rows else None,
        rows=pack(rows),
    )
    seal.digest = seal_digest(seal)
    seal.key, seal.signature = sign(seal.digest.encode(), PURPOSE)
    seal.save(force_insert=True)
    return seal
