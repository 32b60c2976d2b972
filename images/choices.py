"""Fixed vocabularies of images and builds."""

from django.db import models


class ImageKind(models.TextChoices):
    BUILD = "build", "Build"
    PULL = "pull", "Pull"
    SNAPSHOT = "snapshot", "Snapshot"


class UpdatePolicy(models.TextChoices):
    ALWAYS = "always", "Follow the registry"
    IF_MISSING = "if_missing", "Only if missing"


class BuildStatus(models.TextChoices):
    """Images show the status of their newest build."""

    PENDING = "pending", "Pending"
    BUILDING = "building", "Building"
    FINISHED = "finished", "Finished"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"


class RegistryStatus(models.TextChoices):
    """What is known of a credential: only a host's engine can try it."""

    UNTESTED = "untested", "Not tested"
    TESTING = "testing", "Testing"
    ACCEPTED = "accepted", "Accepted"
    FAILED = "failed", "Failed"


TERMINAL_BUILD_STATUSES = frozenset(
    {BuildStatus.FINISHED, BuildStatus.FAILED, BuildStatus.CANCELLED}
)


class BuildTrigger(models.TextChoices):
    CREATED = "created", "Image created"
    CHANGED = "changed", "Image changed"
    REQUESTED = "requested", "Requested"
    UPDATE = "update", "Newer digest"
    MISSING = "missing", "Missing on the host"
    RETRY = "retry", "Tried again"
