"""A start of the server is a poll like any other; it never had a trigger of its own."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("stacks", "0003_origin")]

    operations = [
        migrations.AlterField(
            model_name="sync",
            name="trigger",
            field=models.CharField(
                choices=[
                    ("created", "Stack created"),
                    ("changed", "Stack changed"),
                    ("poll", "Poll"),
                    ("webhook", "Webhook"),
                    ("deploy", "Deploy requested"),
                    ("sync", "Sync requested"),
                    ("rollback", "Rollback requested"),
                ],
                max_length=10,
            ),
        )
    ]
