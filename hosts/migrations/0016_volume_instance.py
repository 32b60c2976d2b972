"""What tells one making of a volume from another, and when one was found made again."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("hosts", "0015_address_ranges")]

    operations: ClassVar = [
        migrations.AddField(
            "volume", "data_gone_at", models.DateTimeField(blank=True, editable=False, null=True)
        ),
        migrations.AddField(
            "volume", "instance", models.CharField(blank=True, editable=False, max_length=64)
        ),
    ]
