"""A restored backup cuts off the audit's end on purpose: that is written down, and no problem."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.ground.template import copy_migrated_database
from tests.trailer.test_backup import LOOK, RESTORE, SCENE, hosts, shell

if TYPE_CHECKING:
    from pathlib import Path

LATER = """
record("host.update", host)
for minutes in (10, 11):
    audit_seal(timezone.now() + timedelta(minutes=minutes))
"""
RESTORED = """
from trailer.audit.models import AuditEntry
[row] = AuditEntry.objects.filter(action="audit.restored")
assert row.changes[0]["from"].startswith("2:"), row.changes
"""


def test_a_restore_forgets_the_seals_that_came_after_the_backup(tmp_path: Path) -> None:
    file, data = tmp_path / "monday.tar.gz", tmp_path / "data"
    copy_migrated_database(data)
    shell(data, SCENE + LATER, file)
    assert (data / "audit.head").read_text().startswith("2:")
    assert hosts(shell(data, RESTORE + RESTORED + LOOK, file)) == {"north": ["a label key", True]}
    assert not (data / "audit.head").exists()
