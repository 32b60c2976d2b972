"""Sessions are found by a digest of their cookie; those that are open stay so."""

import hashlib

from django.db import migrations


def _digests(apps, schema_editor):
    sessions = apps.get_model("accounts", "Session").objects
    for key in list(sessions.values_list("session_key", flat=True)):
        stored = hashlib.sha256(key.encode()).hexdigest()[:40]
        sessions.filter(session_key=key).update(session_key=stored)


class Migration(migrations.Migration):
    dependencies = [("accounts", "0005_mail_is_vouched")]

    operations = [migrations.RunPython(_digests, migrations.RunPython.noop)]
