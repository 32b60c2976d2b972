"""By which key of which stack a volume is found, not by its name."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import migrations, models


def fill(apps: Any, schema_editor: Any) -> None:
    """Until now a volume was called `<stack>-<key>`, always."""
    stacks = apps.get_model("stacks", "Stack").objects
    rows = apps.get_model("stacks", "StackVolume").objects.select_related("volume")
    for row in rows.iterator():
        volume = row.volume
        row.key = volume.name.removeprefix(f"{row.stack_name}-")
        named = stacks.filter(name=row.stack_name, host=volume.host_id, owner=volume.owner_id)
        row.used_by = named.values_list("pk", flat=True).first()
        row.save(update_fields=["key", "used_by"])


class Migration(migrations.Migration):
    dependencies: ClassVar = [("stacks", "0007_webhook_deliveries")]

    operations: ClassVar = [
        migrations.AddField(
            model_name="stackvolume",
            name="key",
            field=models.CharField(default="", max_length=63),
        ),
        migrations.AddField(
            model_name="stackvolume",
            name="used_by",
            field=models.UUIDField(null=True),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
