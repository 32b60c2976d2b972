"""The limits that this installation sets for reading repositories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.conf import settings

from workspaces.stacks.git.types import GitLimits

if TYPE_CHECKING:
    from trailer.accounts.models import User

OWN_MACHINE: Final = (
    "127.0.0.0/8",
    "::1",
    "http://127.0.0.1",
    "http://localhost",
    "http://[::1]",
    "file:///",
)


def git_limits(reader: User) -> GitLimits:
    """For repositories read on behalf of this user."""
    return GitLimits(
        allow=_allowed(reader),
        timeout_seconds=settings.TRAILER_GIT_TIMEOUT,
        known_hosts_file=str(settings.TRAILER_DATA_DIR / "git_known_hosts"),
    )


def _allowed(reader: User) -> tuple[str, ...]:
    """Who administers a standalone Trailer has the machine it runs on; nobody else reads from
    there, nor anybody where the list is set or where Trailer is several processes."""
    if settings.TRAILER_GIT_ALLOW is not None:
        return tuple(settings.TRAILER_GIT_ALLOW)
    is_standalone = not settings.REDIS_URL
    return OWN_MACHINE if is_standalone and reader.is_superuser else ()
