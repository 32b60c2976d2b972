"""Background jobs of hosts; each finds its own work in the database."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from hosts.services.maintenance import maintenance_order_due
from hosts.services.rollouts import rollouts_advance
from trailer.jobs import Job


@shared_task(name=Job.ADVANCE_ROLLOUTS.value)
def advance_rollouts() -> None:
    rollouts_advance(timezone.now())


@shared_task(name=Job.ORDER_MAINTENANCE.value)
def order_maintenance() -> None:
    maintenance_order_due(timezone.now())
