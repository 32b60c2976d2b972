"""Status of images, builds and registries: label, colour, busy flag, allowed actions."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from hosts.status import Badge
from images.choices import BuildStatus, ImageKind, RegistryStatus
from images.selectors import check_refusal

if TYPE_CHECKING:
    from datetime import datetime

    from images.models import Image, Registry, RegistryTest

_NEEDS_ITS_HOST = frozenset({"build", "check"})

BADGES = {
    BuildStatus.PENDING: Badge("pending", "Pending", "blue", busy=True, actions=("cancel",)),
    BuildStatus.BUILDING: Badge("building", "Building", "blue", busy=True, actions=("cancel",)),
    BuildStatus.FINISHED: Badge("finished", "Finished", "green", actions=("build",)),
    BuildStatus.FAILED: Badge("failed", "Failed", "red", actions=("build",)),
    BuildStatus.CANCELLED: Badge("cancelled", "Cancelled", "grey", actions=("build",)),
}


def image_badge(status: str) -> Badge:
    return BADGES[BuildStatus(status)]


def image_badge_of(image: Image) -> Badge:
    """With the actions that this very image offers, not only its status. Needs `image.host`
    loaded."""
    badge = image_badge(image.status)
    actions = list(badge.actions)
    if image.kind == ImageKind.SNAPSHOT and image.status == BuildStatus.FINISHED:
        actions.remove("build")
    if not check_refusal(image):
        actions.append("check")
    if not image.host.enabled:
        # Nothing comes of these there until somebody enables it.
        actions = [action for action in actions if action not in _NEEDS_ITS_HOST]
    return replace(badge, actions=tuple(actions))


REGISTRY_BADGES = {
    RegistryStatus.UNTESTED: Badge("untested", "Not tested", "grey", actions=("test",)),
    RegistryStatus.TESTING: Badge("testing", "Testing", "blue", busy=True),
    RegistryStatus.ACCEPTED: Badge("accepted", "Accepted", "green", actions=("test",)),
    RegistryStatus.FAILED: Badge("failed", "Failed", "red", actions=("test",)),
}
# The engine gives a registry half of this; an agent that says nothing by then never will.
TEST_LIMIT: Final = timedelta(seconds=60)


def newest_test(registry: Registry) -> RegistryTest | None:
    """Needs `test__host` loaded where many are shown."""
    return getattr(registry, "test", None)


def registry_badge(registry: Registry, now: datetime) -> Badge:
    test = newest_test(registry)
    if test is None:
        return REGISTRY_BADGES[RegistryStatus.UNTESTED]
    if _is_overdue(test, now):
        return REGISTRY_BADGES[RegistryStatus.FAILED]
    return REGISTRY_BADGES[RegistryStatus(test.status)]


def registry_message(registry: Registry, now: datetime) -> str:
    test = newest_test(registry)
    if test is None:
        return ""
    if _is_overdue(test, now):
        return f"Host {test.host.name} did not answer. Test again, or choose another host."
    if test.status == RegistryStatus.TESTING:
        return f"Host {test.host.name} signs in."
    if test.status == RegistryStatus.ACCEPTED:
        return f"Host {test.host.name} signed in."
    return f"{test.message} (Tried by host {test.host.name}.)"


def _is_overdue(test: RegistryTest, now: datetime) -> bool:
    return test.status == RegistryStatus.TESTING and now - test.created_at > TEST_LIMIT
