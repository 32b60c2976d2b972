"""Documents end with the grants they rest on; folders and addresses go with their owner's capability.

What is there and whose owner has no such capability today was made otherwise, by an administrator's
leave or before there was one: it stays unjudged.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import migrations, models
from django.db.models import Q


def judge_what_is_held(apps: Any, schema_editor: Any) -> None:
    del schema_editor
    capabilities = apps.get_model("access", "HostCapability").objects
    for name, capability in (("Volume", "bind"), ("Network", "addresses")):
        rows = apps.get_model("hosts", name).objects
        judged = rows.filter(kind="bind") if name == "Volume" else rows.all()
        held = []
        for row in judged.select_related("owner").iterator():
            groups = list(row.owner.groups.values_list("pk", flat=True))
            found = capabilities.filter(
                Q(user=row.owner_id) | Q(group__in=groups),
                host_id=row.host_id,
                capability=capability,
            )
            if row.owner.is_superuser or found.exists():
                held.append(row.pk)
        rows.filter(pk__in=held).update(rests_on_capability=True)


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("access", "0004_capability_length"),
        ("hosts", "0017_engine_silent_since"),
    ]

    operations: ClassVar = [
        migrations.AddField("hostdocument", "open_hosts", models.BooleanField(default=True)),
        migrations.AddField(
            "hostdocument", "until", models.DateTimeField(db_index=True, null=True)
        ),
        migrations.AddField(
            "volume", "rests_on_capability", models.BooleanField(default=False, editable=False)
        ),
        migrations.AddField(
            "network", "rests_on_capability", models.BooleanField(default=False, editable=False)
        ),
        migrations.RunPython(judge_what_is_held, migrations.RunPython.noop),
    ]
