"""The limits that this installation sets for reading repositories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.conf import settings

from workspaces.stacks.git.types import GitLimits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trailer.accounts.models import User

OWN_MACHINE: Final = (
    "127.0.0.0/8",
    "::1",
    "http://127.0.0.1",
    "http://localhost",
    "http://[::1]",
    "file:///",
)


def git_limits(*readers: User | None) -> GitLimits:
    """For repositories read on behalf of all these users; None is somebody who is gone."""
    return GitLimits(
        allow=_allowed(readers),
        timeout_seconds=settings.TRAILER_GIT_TIMEOUT,
        known_hosts_file=str(settings.TRAILER_DATA_DIR / "git_known_hosts"),
    )


def _allowed(readers: Sequence[User | None]) -> tuple[str, ...]:
    """Who administers a standalone Trailer has the machine it runs on; nobody else reads from
    there, nor anybody where the list is set or where Trailer is several processes."""
    if settings.TRAILER_GIT_ALLOW is not None:
        return tuple(settings.TRAILER_GIT_ALLOW)
    is_standalone = not settings.REDIS_URL
    are_admins = all(reader is not None and reader.is_superuser for reader in readers)
    return OWN_MACHINE if is_standalone and are_admins else ()
