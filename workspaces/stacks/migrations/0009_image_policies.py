"""A stack has one image row per reference and update policy, no longer one per reference."""

from django.db import migrations, models


def copy_policies(apps, schema_editor):
    rows = apps.get_model("stacks", "StackImage").objects.select_related("image")
    for row in rows.exclude(image__update_policy="if_missing"):
        row.update_policy = row.image.update_policy
        row.save(update_fields=["update_policy"])


class Migration(migrations.Migration):
    dependencies = [("stacks", "0008_volume_keys"), ("images", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="stackimage",
            name="update_policy",
            field=models.CharField(
                choices=[("always", "Follow the registry"), ("if_missing", "Only if missing")],
                default="if_missing",
                max_length=16,
            ),
        ),
        migrations.RunPython(copy_policies, migrations.RunPython.noop),
        migrations.RemoveConstraint(model_name="stackimage", name="image_per_reference"),
        migrations.AddConstraint(
            model_name="stackimage",
            constraint=models.UniqueConstraint(
                fields=("stack", "reference", "update_policy"),
                name="image_per_reference_and_policy",
            ),
        ),
    ]
