"""Fixed vocabularies of stacks and their syncs."""

from django.db import models


class StackStatus(models.TextChoices):
    PENDING = "pending", "Pending"
    SYNCING = "syncing", "Syncing"
    SYNCED = "synced", "Synced"
    FAILED = "failed", "Failed"
    OUT_OF_SYNC = "out_of_sync", "Out of sync"


class Trigger(models.TextChoices):
    CREATED = "created", "Stack created"
    CHANGED = "changed", "Stack changed"
    POLL = "poll", "Poll"
    WEBHOOK = "webhook", "Webhook"
    DEPLOY = "deploy", "Deploy requested"
    SYNC = "sync", "Sync requested"
    ROLLBACK = "rollback", "Rollback requested"


class Phase(models.TextChoices):
    """In the order in which a sync passes through them; RESTORING only after a failed deploy."""

    QUEUED = "queued", "Waiting its turn"
    CHECKING = "checking", "Looking for changes"
    FETCHING = "fetching", "Fetching the files"
    PREPARING = "preparing", "Checking the new revision"
    PULLING = "pulling", "Getting the images"
    NEEDS = "needs", "Starting the needs"
    SERVICES = "services", "Deploying the services"
    RESTORING = "restoring", "Bringing back the last good revision"
    DONE = "done", "Done"


class SyncOutcome(models.TextChoices):
    UNDER_WAY = "", "Under way"
    DEPLOYED = "deployed", "Deployed"
    UNCHANGED = "unchanged", "Nothing changed"
    FAILED = "failed", "Failed"


# Whoever asks like this wants to see a deploy: no quick check, and the images are pulled again.
FORCING_TRIGGERS = frozenset({Trigger.WEBHOOK, Trigger.DEPLOY})
