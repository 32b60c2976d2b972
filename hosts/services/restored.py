"""After a restore: every host's state may be older than what runs there."""

from __future__ import annotations

from typing import Final

from django.db import transaction
from django.db.models import F

from hosts.models import Host
from trailer.audit.record import record
from trailer.backup.database import Mark

# Set as the rows are loaded: an agent may ask for its state the moment they are there.
HELD: Final = Mark(
    table="hosts_host",
    column="state_restored",
    statement=(
        "UPDATE hosts_host SET state_restored = TRUE, desired_version = desired_version + 1"
    ),
)


def hosts_hold_after_restore() -> int:
    """No agent removes anything until an administrator has confirmed its host's state. Also for
    backups of a version that could not be marked while they were loaded; and it is told."""
    with transaction.atomic():
        for host in Host.objects.order_by("pk"):
            Host.objects.filter(pk=host.pk).update(
                state_restored=True, desired_version=F("desired_version") + 1
            )
            record("host.restored", host, actor=None)
        return Host.objects.count()
