"""Takes syncs forward: one stack at a time per worker, one durable phase after the other."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.utils import timezone

from trailer.errors import ApplicationError
from trailer.jobs import Job, enqueue
from workspaces.stacks.choices import Phase, StackStatus, SyncOutcome, Trigger
from workspaces.stacks.models import Sync
from workspaces.stacks.sync import check, deploy, fetch, finish, leftovers, prepare
from workspaces.stacks.sync.digests import ask_registries
from workspaces.stacks.sync.lease import LeaseLost, claim, hold_for_git, is_any_due, release
from workspaces.stacks.sync.queue import next_poll, running_sync, sync_insert_poll
from workspaces.stacks.sync.work import End, Go, SyncProblem, Wait, Work

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from workspaces.stacks.models import Stack
    from workspaces.stacks.sync.lease import Lease
    from workspaces.stacks.sync.work import Result

logger = logging.getLogger(__name__)

STEPS: Final[dict[str, Callable[[Work], Result]]] = {
    Phase.CHECKING: check.check,
    Phase.FETCHING: fetch.fetch,
    Phase.PREPARING: prepare.prepare,
    Phase.PULLING: prepare.pull,
    Phase.NEEDS: deploy.needs,
    Phase.SERVICES: deploy.services,
    Phase.RESTORING: deploy.restore,
}


def work_once() -> bool:
    """Claims one stack that is due and takes it as far as it goes without waiting."""
    lease = claim(timezone.now())
    if lease is None:
        return False
    try:
        advance(lease)
    except LeaseLost:
        logger.warning("sync taken over", extra={"stack": str(lease.stack_id)})
    finally:
        release(lease)
    if is_any_due(timezone.now()):
        enqueue(Job.WORK_STACKS)
    return True


def advance(lease: Lease) -> None:
    sync = _begin(lease) or _poll(lease)
    if sync is None:
        return
    work = Work(lease=lease, sync_id=sync.pk)
    phase = sync.phase
    while True:
        result = _step(work, phase)
        match result:
            case Go(next_phase):
                phase = next_phase
                with work.held():
                    work.set(phase=phase, phase_at=timezone.now(), attempt=0)
                work.log(f"{Phase(phase).label}.")
            case Wait(seconds):
                _pause(work, seconds)
                return
            case End(outcome, message):
                finish.finish(work, outcome, message)
                if outcome == SyncOutcome.DEPLOYED:
                    leftovers.collect_images(work)
                return


def _begin(lease: Lease) -> Sync | None:
    """The sync that runs, or the one that waits; None when only a look at git is due."""
    now = timezone.now()
    probe = Work(lease=lease, sync_id=None)
    with probe.locked() as stack:
        sync = running_sync(stack)
        if sync is not None:
            return sync
        sync = stack.syncs.filter(phase=Phase.QUEUED).first()
        if sync is None:
            probe.set_stack(due_at=None)
            return None
        first = Phase.FETCHING if sync.forced or not stack.deployed_id else Phase.CHECKING
        if sync.trigger == Trigger.CHANGED:
            first = Phase.FETCHING
        if sync.target_id:
            first = Phase.PREPARING
            Sync.objects.filter(pk=sync.pk).update(revision=sync.target_id)
        Sync.objects.filter(pk=sync.pk).update(phase=first, phase_at=now, started_at=now)
        probe.set_stack(status=StackStatus.SYNCING, message="")
    sync.refresh_from_db()
    work = Work(lease=lease, sync_id=sync.pk)
    work.log(f"{Trigger(sync.trigger).label}. {Phase(sync.phase).label}.")
    return sync


def _poll(lease: Lease) -> Sync | None:
    """A look without a row in the history, unless it finds something to do."""
    probe = Work(lease=lease, sync_id=None)
    stack = probe.stack
    now = timezone.now()
    if stack.poll_at is None or stack.poll_at > now:
        return None
    hold_for_git(lease, now)
    verdict = _look(stack, now)
    with probe.locked() as current:
        probe.set_stack(checked_at=now, poll_at=next_poll(current, now))
        if verdict.commit:
            probe.set_stack(available_commit=verdict.commit)
        if not verdict.reason:
            finish.show_standing(probe.stack)
            ask_registries(stack, now, by_hand=False)
            return None
        if current.syncs.filter(phase=Phase.QUEUED).exists():
            # Somebody asked meanwhile: that one comes next, and does more.
            return None
        sync = sync_insert_poll(current, Trigger.POLL)
        Sync.objects.filter(pk=sync.pk).update(phase=Phase.FETCHING, phase_at=now, started_at=now)
        probe.set_stack(status=StackStatus.SYNCING, due_at=now)
    sync.refresh_from_db()
    Work(lease=lease, sync_id=sync.pk).log(f"{verdict.reason} {Phase.FETCHING.label}.")
    return sync


def _look(stack: Stack, now: datetime) -> check.Verdict:
    """Whatever goes wrong becomes a sync, which tells it and ends: a poll that only raised would
    stay the next one due, before those of all other stacks."""
    try:
        return check.look(stack, now)
    except ApplicationError as error:
        return check.Verdict(reason=error.message)
    except Exception as error:
        logger.exception("poll failed", extra={"stack": str(stack.pk)})
        return check.Verdict(reason=_inside(error))


def _step(work: Work, phase: str) -> Result:
    """A problem either has another try coming, or ends the sync."""
    try:
        return STEPS[phase](work)
    except LeaseLost:
        raise
    except SyncProblem as problem:
        return _failed(work, phase, problem)
    except ApplicationError as error:
        return _failed(work, phase, SyncProblem(error.message))
    except Exception as error:
        logger.exception("sync step failed", extra={"stack": str(work.lease.stack_id)})
        return _failed(work, phase, SyncProblem(_inside(error), retry=True))


def _inside(error: Exception) -> str:
    return f"Something went wrong inside Trailer ({type(error).__name__}); see its log."


def _failed(work: Work, phase: str, problem: SyncProblem) -> Result:
    delays = settings.TRAILER_STACK_RETRY_SECONDS
    sync = work.sync
    if problem.retry and sync.attempt < len(delays):
        delay = float(delays[sync.attempt])
        work.log(f"{problem.message} Next try in {delay:g} s.")
        with work.held():
            work.set(attempt=sync.attempt + 1)
            work.set_stack(message=problem.message)
        return Wait(delay)
    if phase in (Phase.NEEDS, Phase.SERVICES) and work.stack.deployed_id:
        work.log(problem.message)
        with work.held():
            work.set(message=problem.message)
        return Go(Phase.RESTORING)
    if phase == Phase.RESTORING and sync.message:
        return End(SyncOutcome.FAILED, f"{sync.message} {problem.message}")
    return End(SyncOutcome.FAILED, problem.message)


def _pause(work: Work, seconds: float) -> None:
    with work.held():
        work.set_stack(due_at=timezone.now() + timedelta(seconds=seconds))
        # A little later than that, so that it is due when the job looks.
        enqueue(Job.WORK_STACKS, delay=seconds + 0.05)
