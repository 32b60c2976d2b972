"""The end of a sync: what it came to, and what the stack shows from then on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.utils import timezone

from workspaces.stacks.choices import Phase, StackStatus, SyncOutcome
from workspaces.stacks.models import Stack, StackRevision
from workspaces.stacks.sync.leftovers import note_images
from workspaces.stacks.sync.queue import next_poll

if TYPE_CHECKING:
    from workspaces.stacks.models import Sync
    from workspaces.stacks.sync.work import Work


def finish(work: Work, outcome: SyncOutcome, message: str) -> None:
    now = timezone.now()
    # What stands at the sync already is in its log, from before the last good one was restored.
    news = message.removeprefix(work.sync.message).strip()
    work.log(news or f"{SyncOutcome(outcome).label}.")
    with work.locked() as stack:
        sync = work.sync
        work.set(phase=Phase.DONE, outcome=outcome, message=message, finished_at=now)
        # Without polls there may still be the one of a start, which waited for this sync.
        poll_at = next_poll(stack, now) or stack.poll_at
        columns: dict[str, Any] = {"poll_at": poll_at if stack.enabled else None}
        if outcome == SyncOutcome.DEPLOYED and sync.revision is not None:
            if sync.revision.deployed_at is None:
                StackRevision.objects.filter(pk=sync.revision.pk).update(deployed_at=now)
            columns |= {
                "deployed": sync.revision,
                "deployed_commit": sync.commit or sync.revision.commit,
            }
            note_images(stack, sync.revision.number)
            if sync.forced or sync.commit != stack.deployed_commit:
                columns["failed_commit"] = ""
            if sync.target_id is not None:
                columns["pinned"] = True
        if outcome == SyncOutcome.FAILED:
            columns |= {"status": StackStatus.FAILED, "message": message}
            if _is_to_blame(stack, sync):
                columns["failed_commit"] = sync.commit
        waiting = stack.syncs.filter(phase=Phase.QUEUED).exists()
        columns["due_at"] = now if waiting else None
        work.set_stack(**columns)
        if outcome != SyncOutcome.FAILED:
            work.set_stack(status=StackStatus.SYNCED, message="")
            show_standing(Stack.objects.get(pk=stack.pk))
        if waiting:
            work.set_stack(status=StackStatus.SYNCING)


def _is_to_blame(stack: Stack, sync: Sync) -> bool:
    """The commit brought something new, and that came up badly. What ran before and broke by
    itself says nothing against its commit."""
    is_new = sync.revision_id != stack.deployed_id
    return sync.phase == Phase.RESTORING and sync.target_id is None and is_new


def show_standing(stack: Stack) -> None:
    """A stack that is deployed, but not what its branch says: it is out of sync, and says why."""
    recovered = stack.deployed_commit == stack.available_commit != stack.failed_commit
    is_deployed = stack.deployed is not None and stack.deployed.origin == stack.origin
    if stack.status == StackStatus.FAILED and not (is_deployed and recovered):
        return
    if stack.status in (StackStatus.PENDING, StackStatus.SYNCING):
        return
    status, message = StackStatus.SYNCED, ""
    if stack.available_commit and stack.available_commit != stack.deployed_commit:
        status = StackStatus.OUT_OF_SYNC
        message = f"The branch {stack.branch} is at {stack.available_commit[:8]}."
        if stack.available_commit == stack.failed_commit:
            message = (
                f"Commit {stack.failed_commit[:8]} came up badly and was set back. "
                "Deploy to try it again."
            )
        if stack.pinned:
            message = (
                f"Pinned to {stack.deployed_commit[:8]} by a rollback. "
                f"The branch {stack.branch} is at {stack.available_commit[:8]}; "
                "deploy to follow it again."
            )
    if (stack.status, stack.message) != (status, message):
        Stack.objects.filter(pk=stack.pk).update(status=status, message=message)
