"""A stack's repository: the git adapter, set up with what the stack and the server say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trailer.sealed import unseal_mapping
from workspaces.stacks.file.secret import Secret
from workspaces.stacks.git.settings import git_limits
from workspaces.stacks.git.source import GitSource
from workspaces.stacks.git.types import GitCredential

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workspaces.stacks.file.types import Checkout, Commit
    from workspaces.stacks.models import Stack


def newest_commit(stack: Stack) -> Commit:
    """One `ls-remote`; raises GitError."""
    return source_of(stack).newest()


def checkout(stack: Stack) -> Checkout:
    """The stack's files at the newest commit; raises GitError."""
    known = stack.deployed.fingerprint if stack.deployed is not None else ""
    return source_of(stack).fetch(known)


def source_of(stack: Stack) -> GitSource:
    return GitSource(
        repository=stack.repository,
        branch=stack.branch,
        path=stack.path,
        credential=git_credential(unseal_mapping(stack, "credential_token")),
        limits=git_limits(stack.owner, stack.source_by),
    )


def git_credential(values: Mapping[str, str]) -> GitCredential | None:
    if not values:
        return None
    token, key = values.get("token", ""), values.get("deploy_key", "")
    return GitCredential(
        username=values.get("username", ""),
        token=Secret(token) if token else None,
        deploy_key=Secret(key) if key else None,
        known_hosts=values.get("known_hosts", ""),
    )
