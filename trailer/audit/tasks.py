"""Background jobs of the audit."""

from __future__ import annotations

from datetime import datetime, timedelta

from celery import shared_task
from django.db import DatabaseError

from trailer.audit.head import kept_head
from trailer.audit.horizon import not_ahead
from trailer.audit.models import AuditSeal
from trailer.audit.sealing import NotSealed, audit_seal
from trailer.audit.verify import tell_once, verify_and_record
from trailer.jobs import Job
from trailer.leases.lease import run_leased


@shared_task(name=Job.SEAL_AUDIT.value)
def seal_audit() -> None:
    run_leased(Job.SEAL_AUDIT, _seal_or_tell, every=timedelta(minutes=1))


@shared_task(name=Job.VERIFY_AUDIT.value)
def verify_audit() -> None:
    """Once a day; nothing was sealed yet in a server's first minutes."""
    if AuditSeal.objects.exists() or kept_head() is not None:
        day, hour = timedelta(days=1), timedelta(hours=1)
        run_leased(Job.VERIFY_AUDIT, lambda _: verify_and_record(), every=day, at_most=hour)


def _seal_or_tell(now: datetime) -> None:
    try:
        audit_seal(not_ahead(now))
    except NotSealed as problem:
        tell_once(str(problem))
    except DatabaseError:
        raise
    except Exception as error:
        tell_once(f"The audit could not be sealed: {type(error).__name__}.")
        raise
