"""What a repository is reached with, how much of it is read, and what can go wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trailer.errors import ApplicationError

if TYPE_CHECKING:
    from workspaces.stacks.file.secret import Secret


class GitError(ApplicationError):
    """The repository can't be read now; a sentence that never holds a credential."""

    code = "git"
    status = 400


class GitRefused(GitError):
    """It may not be read at all, or holds what may not be in it: trying again changes nothing."""

    code = "git_refused"


@dataclass(frozen=True, kw_only=True)
class GitCredential:
    """A token for HTTPS, or a deploy key for SSH; `known_hosts` pins the SSH server's keys."""

    username: str = ""
    token: Secret | None = None
    deploy_key: Secret | None = None
    known_hosts: str = ""


@dataclass(frozen=True, kw_only=True)
class GitLimits:
    """`allow` is TRAILER_GIT_ALLOW; see `address` for what its entries mean."""

    allow: tuple[str, ...] = ()
    timeout_seconds: float = 60.0
    max_bytes: int = 64 * 1024 * 1024
    # Of address space, for each process: a small pack may hold what inflates without end.
    max_memory: int = 512 * 1024 * 1024
    max_objects: int = 500_000
    max_file_bytes: int = 256 * 1024
    # Where the keys of ssh servers are remembered that no credential pins.
    known_hosts_file: str = ""
