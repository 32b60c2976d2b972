"""Looking at a repository without deploying: can it be read, and what would change?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from images.registries import reference_problem
from trailer import policy
from trailer.sealed import unseal_mapping
from workspaces.stacks.file.compare import diff_lines
from workspaces.stacks.file.errors import StackFileError
from workspaces.stacks.file.reader import read_stack_file
from workspaces.stacks.git.address import is_same_server
from workspaces.stacks.git.settings import git_limits
from workspaces.stacks.git.source import GitSource
from workspaces.stacks.git.types import GitError
from workspaces.stacks.sync import repository as repositories
from workspaces.stacks.sync.summary import summary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trailer.policy import Actor
    from workspaces.stacks.file.compare import DiffLine
    from workspaces.stacks.file.types import Checkout, StackFile
    from workspaces.stacks.models import Stack


@dataclass(frozen=True, kw_only=True)
class SourceFound:
    """What is at the newest commit; `problem` is why its file could not be deployed."""

    checkout: Checkout
    services: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What deploying the newest commit would change; `problem` is why nobody can tell."""

    checkout: Checkout | None = None
    changes: list[str] = field(default_factory=list)
    lines: list[DiffLine] = field(default_factory=list)
    variables_lines: list[DiffLine] = field(default_factory=list)
    problem: str = ""


def source_check(
    *,
    actor: Actor,
    repository: str,
    branch: str = "main",
    path: str = "",
    credential: Mapping[str, str] | None = None,
    stack: Stack | None = None,
) -> SourceFound:
    """Raises GitError when it can't be read. Without a credential that of `stack` is used, by
    whoever may change where its files come from, and for its server only."""
    if stack is None:
        policy.require(actor, "stack.create")
    else:
        policy.require(actor, "stack.source", stack)
        if not credential and is_same_server(repository, stack.repository):
            credential = unseal_mapping(stack, "credential_token")
    found = GitSource(
        repository=repository,
        branch=branch,
        path=path,
        credential=repositories.git_credential(credential or {}),
        limits=git_limits(actor),
    ).fetch()
    try:
        read = read_stack_file(found.text, found.file_name)
    except StackFileError as error:
        return SourceFound(checkout=found, problem=error.message)
    images = [service.image for service in read.services]
    return SourceFound(
        checkout=found,
        services=tuple(service.name for service in read.services),
        needs=tuple(need.kind for need in read.needs),
        problem=reference_problem(images, actor),
    )


def source_compare(*, actor: Actor, stack: Stack) -> Comparison:
    """Needs `stack.deployed` loaded; asks the repository."""
    policy.require(actor, "stack.view", stack)
    try:
        found = repositories.source_of(stack).fetch()
    except GitError as error:
        return Comparison(problem=error.message)
    deployed = stack.deployed
    old_text = deployed.file_text if deployed else ""
    lines = diff_lines(old_text, found.text)
    # Encrypted values stand in this file as they stand in git.
    variables = diff_lines(deployed.variables_text if deployed else "", found.variables_text)
    try:
        new = read_stack_file(found.text, found.file_name)
    except StackFileError as error:
        return Comparison(
            checkout=found, lines=lines, variables_lines=variables, problem=error.message
        )
    return Comparison(
        checkout=found,
        changes=summary(_readable(old_text, stack), new),
        lines=lines,
        variables_lines=variables,
    )


def _readable(text: str, stack: Stack) -> StackFile | None:
    """What was deployed by an older version may no longer be read: then all is new."""
    try:
        return read_stack_file(text, stack.deployed.file_name if stack.deployed else "")
    except StackFileError:
        return None
