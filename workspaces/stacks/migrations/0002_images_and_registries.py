"""When registries were asked, and which revision last ran with an image."""

from typing import Any

from django.db import migrations, models
from django.db.models import Max


def note_newest(apps: Any, schema_editor: Any) -> None:
    """Which revision used which image was not noted before: all count as used by the newest."""
    del schema_editor
    stacks = apps.get_model("stacks", "Stack")
    images = apps.get_model("stacks", "StackImage")
    for pk, newest in stacks.objects.annotate(newest=Max("revisions__number")).values_list(
        "pk", "newest"
    ):
        images.objects.filter(stack=pk).update(last_revision=newest or 0)


class Migration(migrations.Migration):
    dependencies = [("stacks", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="stack",
            name="registries_asked_at",
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name="stackimage",
            name="last_revision",
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.RunPython(note_newest, migrations.RunPython.noop),
    ]
