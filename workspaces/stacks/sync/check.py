"""The quick check: is there anything to do at all? No clone, no change on the host."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from django.utils import timezone

from hosts.status import is_fresh
from images.selectors import update_available
from trailer.sealed import unseal_mapping
from workspaces.choices import WorkspaceStatus
from workspaces.models import Workspace
from workspaces.stacks.choices import Phase, SyncOutcome
from workspaces.stacks.git.types import GitError
from workspaces.stacks.sync.digests import ask_registries
from workspaces.stacks.sync.lease import hold_for_git
from workspaces.stacks.sync.repository import newest_commit
from workspaces.stacks.sync.work import End, Go
from workspaces.status import workspace_status

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from workspaces.stacks.models import Stack
    from workspaces.stacks.sync.work import Result, Work


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What the three looks saw; `commit` is empty when git did not answer."""

    is_first: bool = False
    down: Sequence[str] = ()
    commit: str = ""
    git_problem: str = ""
    newer_images: Sequence[str] = ()
    source_changed: bool = False
    variables_changed: bool = False


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """`reason` says why a full sync is due; empty when nothing is."""

    reason: str
    commit: str = ""


def look(stack: Stack, now: datetime) -> Verdict:
    """Needs the stack with its host; asks git once, and nobody else but the database."""
    try:
        commit, git_problem = newest_commit(stack).id, ""
    except GitError as error:
        commit, git_problem = "", error.message
    found = Findings(
        is_first=stack.deployed_id is None,
        down=services_down(stack, now),
        commit=commit,
        git_problem=git_problem,
        newer_images=newer_images(stack),
        source_changed=not stack.pinned and not is_from_origin(stack),
        variables_changed=not stack.pinned and not has_deployed_variables(stack),
    )
    known = {stack.deployed_commit, stack.failed_commit} - {""}
    if stack.pinned:
        known.add(commit)
    if commit and commit == stack.failed_commit:
        # It came up badly once; that is not tried again and again.
        found = replace(found, source_changed=False, variables_changed=False)
    return Verdict(reason=decide(found, known=known, branch=stack.branch), commit=commit)


def decide(found: Findings, *, known: set[str], branch: str) -> str:
    """Git that can't be asked means a full sync (it might have moved); a registry that can't be
    asked means nothing, because its last answer stands."""
    if found.is_first:
        return "Nothing is deployed yet."
    if found.down:
        return f"Not running: {', '.join(found.down)}."
    if found.git_problem:
        return f"The repository could not be asked: {found.git_problem}"
    if found.commit not in known:
        return f"The branch {branch} moved to {found.commit[:8]}."
    if found.source_changed:
        return "The stack's files come from elsewhere than what is deployed."
    if found.variables_changed:
        return "The stack's variables changed."
    if found.newer_images:
        return f"The registry has a newer {', '.join(found.newer_images)}."
    return ""


def newer_images(stack: Stack) -> list[str]:
    """References in use of which the registry was seen with something else than the host has."""
    used = stack.images.filter(image__workspaces__isnull=False).select_related("image")
    return [row.reference for row in used.distinct() if update_available(row.image)]


def is_from_origin(stack: Stack) -> bool:
    """The same commit has other files under another path."""
    return stack.deployed is None or stack.deployed.origin == stack.origin


def has_deployed_variables(stack: Stack) -> bool:
    deployed = stack.deployed
    return deployed is not None and (
        deployed.variables == stack.variables
        and unseal_mapping(deployed, "secret_variables_token")
        == unseal_mapping(stack, "secret_variables_token")
    )


def services_down(stack: Stack, now: datetime) -> list[str]:
    """Services that should run and do not. Of a host that is silent nothing is known: its agent
    keeps them up by itself, and a sync could not reach it anyway."""
    if not is_fresh(stack.host, now):
        return []
    fine = {WorkspaceStatus.RUNNING, WorkspaceStatus.SNAPSHOTTING}
    rows = Workspace.objects.filter(stack=stack.pk).order_by("service")
    return [row.service for row in rows if workspace_status(row) not in fine]


def check(work: Work) -> Result:
    now = timezone.now()
    hold_for_git(work.lease, now)
    verdict = look(work.stack, now)
    with work.held():
        seen = {"available_commit": verdict.commit} if verdict.commit else {}
        work.set_stack(checked_at=now, **seen)
        asked = ask_registries(work.stack, now, by_hand=True)
    if asked:
        work.log(f"The host compares with the registry: {', '.join(asked)}.")
    if not verdict.reason:
        return End(SyncOutcome.UNCHANGED, "Nothing changed.")
    work.log(verdict.reason)
    return Go(Phase.FETCHING)
