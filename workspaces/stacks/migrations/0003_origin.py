"""Where the files of a revision came from."""

import hashlib
from typing import Any

from django.db import migrations, models


def note_origin(apps: Any, schema_editor: Any) -> None:
    """What is deployed counts as from where the stack now says, as it did before."""
    del schema_editor
    revisions = apps.get_model("stacks", "StackRevision")
    for stack in apps.get_model("stacks", "Stack").objects.filter(deployed__isnull=False):
        places = "\0".join((stack.repository, stack.branch, stack.path))
        origin = hashlib.sha256(places.encode()).hexdigest()
        revisions.objects.filter(pk=stack.deployed_id).update(origin=origin)


class Migration(migrations.Migration):
    dependencies = [("stacks", "0002_images_and_registries")]

    operations = [
        migrations.AddField(
            model_name="stackrevision",
            name="origin",
            field=models.CharField(blank=True, default="", max_length=64),
            preserve_default=False,
        ),
        migrations.RunPython(note_origin, migrations.RunPython.noop),
    ]
