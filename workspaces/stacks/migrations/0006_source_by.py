"""Who chose where a stack's files come from."""

from typing import Any

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import F, OuterRef, Subquery


def note_owner(apps: Any, schema_editor: Any) -> None:
    """It was not noted before; files were judged by the owner alone."""
    del schema_editor
    stacks = apps.get_model("stacks", "Stack")
    stacks.objects.update(source_by=F("owner"))
    owners = stacks.objects.filter(pk=OuterRef("stack")).values("owner")
    apps.get_model("stacks", "StackRevision").objects.update(source_by=Subquery(owners))


def _user() -> Any:
    return models.ForeignKey(
        null=True,
        on_delete=django.db.models.deletion.SET_NULL,
        related_name="+",
        to=settings.AUTH_USER_MODEL,
    )


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("stacks", "0005_volumes"),
    ]

    operations = [
        migrations.AddField(
            model_name="stack",
            name="source_by",
            field=models.ForeignKey(
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(model_name="stackrevision", name="source_by", field=_user()),
        migrations.RunPython(note_owner, migrations.RunPython.noop),
    ]
