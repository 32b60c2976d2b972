"""Which stack a volume belongs to."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("hosts", "0005_prerequisites"), ("stacks", "0004_triggers")]

    operations = [
        migrations.CreateModel(
            name="StackVolume",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("stack_name", models.CharField(max_length=40)),
                (
                    "volume",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="stack_volume",
                        to="hosts.volume",
                    ),
                ),
            ],
        )
    ]
