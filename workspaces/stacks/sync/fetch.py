"""Fetching: the stack's files at the branch's newest commit become a revision to deploy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Max
from django.utils import timezone

from trailer.sealed import seal_mapping, unseal_mapping
from workspaces.stacks.choices import Phase, SyncOutcome, Trigger
from workspaces.stacks.git.types import GitError, GitRefused
from workspaces.stacks.models import StackRevision
from workspaces.stacks.sync import deploy
from workspaces.stacks.sync.check import newer_images, services_down
from workspaces.stacks.sync.lease import hold_for_git
from workspaces.stacks.sync.repository import checkout
from workspaces.stacks.sync.work import End, Go, SyncProblem

if TYPE_CHECKING:
    from workspaces.stacks.file.types import Checkout
    from workspaces.stacks.models import Stack, Sync
    from workspaces.stacks.sync.work import Result, Work

KEPT_REVISIONS = 50


def fetch(work: Work) -> Result:
    stack, sync = work.stack, work.sync
    hold_for_git(work.lease, timezone.now())
    try:
        found = checkout(stack)
    except GitError as error:
        if sync.attempt == 0 and stack.deployed_id:
            # Whatever git does: what was good stays up.
            deploy.repair(work)
        raise SyncProblem(error.message, retry=not isinstance(error, GitRefused)) from error
    work.log(f"Commit {found.commit_id[:8]} by {found.author}: {_first_line(found.message)}")
    with work.held():
        work.set_stack(available_commit=found.commit_id)
    if stack.pinned:
        return _stay(work, stack, "Pinned by a rollback. Deploy to follow the branch again.")
    if found.commit_id == stack.failed_commit and sync.trigger != Trigger.CHANGED:
        return _stay(work, stack, "This commit came up badly before. Deploy to try it again.")
    return _take(work, stack, sync, found)


def _take(work: Work, stack: Stack, sync: Sync, found: Checkout) -> Result:
    deployed = stack.deployed
    same = (
        deployed is not None
        # Else what is deployed would go on being judged by the rights of who chose it before.
        and deployed.source_by_id == stack.source_by_id
        and is_same(stack, deployed, found)
    )
    due = sync.forced or services_down(stack, timezone.now()) or newer_images(stack)
    is_quiet = same and not due
    with work.held():
        revision = deployed if same and deployed else revision_for(stack, found)
        work.set(
            revision=revision,
            commit=found.commit_id,
            author=found.author[:255],
            commit_message=found.message,
        )
        if is_quiet:
            # A commit that leaves this path alone is deployed by having been looked at.
            work.set_stack(deployed_commit=found.commit_id)
    if is_quiet:
        return End(SyncOutcome.UNCHANGED, "This commit changes nothing here.")
    return Go(Phase.PREPARING)


def is_same(stack: Stack, deployed: StackRevision, found: Checkout) -> bool:
    """The files, where they are from and the operator's variables are those that are deployed."""
    return (
        deployed.origin == stack.origin
        and deployed.fingerprint == found.fingerprint
        and deployed.variables == stack.variables
        and unseal_mapping(deployed, "secret_variables_token")
        == unseal_mapping(stack, "secret_variables_token")
    )


def _stay(work: Work, stack: Stack, why: str) -> Result:
    """Nothing newer is deployed; what is deployed is kept up."""
    if not services_down(stack, timezone.now()):
        return End(SyncOutcome.UNCHANGED, why)
    with work.held():
        work.set(revision=stack.deployed, commit=stack.deployed_commit)
    return Go(Phase.PREPARING)


def revision_for(stack: Stack, found: Checkout) -> StackRevision:
    """One per content: a try that failed and is tried again makes no second one."""
    newest = stack.revisions.order_by("-number").first()
    if (
        newest is not None
        and newest.commit == found.commit_id
        and newest.source_by_id == stack.source_by_id
        and is_same(stack, newest, found)
    ):
        return newest
    number = (stack.revisions.aggregate(last=Max("number"))["last"] or 0) + 1
    old = stack.revisions.filter(number__lte=number - KEPT_REVISIONS)
    old.exclude(pk__in=[stack.deployed_id]).delete()
    made = StackRevision(
        stack=stack,
        number=number,
        commit=found.commit_id,
        author=found.author[:255],
        message=found.message,
        committed_at=found.committed_at,
        file_name=found.file_name,
        file_text=found.text,
        variables_text=found.variables_text,
        fingerprint=found.fingerprint,
        origin=stack.origin,
        source_by_id=stack.source_by_id,
        variables=stack.variables,
    )
    secret = unseal_mapping(stack, "secret_variables_token")
    made.secret_variables_token = seal_mapping(made, "secret_variables_token", secret)
    made.save(force_insert=True)
    return made


def _first_line(message: str) -> str:
    return message.strip().partition("\n")[0]
