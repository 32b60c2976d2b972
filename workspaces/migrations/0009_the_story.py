"""How containers ended, equal ends as one row, and of what kind each revision is."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import migrations, models
from django.db.models import OuterRef, Subquery
from django.db.models.functions import Coalesce

_RUN_ALONE = ("start_requested", "stop_requested")


def note_kinds(apps: Any, schema_editor: Any) -> None:
    """Of older revisions only starts and stops are told apart from the others."""
    del schema_editor
    event = apps.get_model("workspaces", "Event").objects
    same = event.filter(
        workspace=OuterRef("workspace"),
        revision=OuterRef("revision"),
        report_epoch=None,
        kind__in=_RUN_ALONE,
    )
    found = Coalesce(Subquery(same.values("kind")[:1]), models.Value(""))
    apps.get_model("workspaces", "Revision").objects.update(kind=found)


class Migration(migrations.Migration):
    dependencies: ClassVar = [("workspaces", "0008_by_whose_right")]

    operations: ClassVar = [
        migrations.AddField("event", "count", models.PositiveIntegerField(default=1)),
        migrations.AddField("event", "exit", models.JSONField(null=True)),
        migrations.AddField("event", "health_output", models.TextField(blank=True, default="")),
        migrations.AddField("event", "last_at", models.DateTimeField(null=True)),
        migrations.AddField("event", "last_lines", models.TextField(blank=True, default="")),
        migrations.AddField(
            "revision", "kind", models.CharField(blank=True, default="", max_length=32)
        ),
        migrations.RunPython(note_kinds, migrations.RunPython.noop),
    ]
