"""Background jobs of stacks; each finds its own work in the database."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from celery import shared_task
from celery.signals import worker_ready

from trailer.jobs import Job, send
from trailer.leases.lease import run_leased
from workspaces.stacks.git.folder import folders_sweep
from workspaces.stacks.sync.engine import work_once
from workspaces.stacks.sync.queue import polls_bring_forward

# Workers of one start come up within it; whoever starts later looks again.
_ONE_START: Final = timedelta(seconds=10)


@shared_task(name=Job.WORK_STACKS.value)
def work_stacks() -> None:
    work_once()


@shared_task(name=Job.CHECK_STACKS.value)
def check_stacks() -> None:
    """A worker started, one of several perhaps: one look at each stack is enough."""
    run_leased(Job.CHECK_STACKS, polls_bring_forward, every=_ONE_START, at_most=_ONE_START)


@worker_ready.connect
def look_at_stacks(**_: Any) -> None:
    """Whatever was pushed while no worker ran. Celery's only word for "a worker is here"; the one
    inside the standalone process does not say it and sends the job by itself."""
    folders_sweep()
    send(Job.CHECK_STACKS)
