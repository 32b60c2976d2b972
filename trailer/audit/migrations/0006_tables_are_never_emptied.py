"""PostgreSQL itself refuses to empty the audit or its seals; SQLite knows only DELETE for that."""

from django.db import migrations

TRIGGERS = {
    "audit_rows_whole": "audit_auditentry",
    "audit_seals_whole": "audit_auditseal",
}


def add(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        return
    for name, table in TRIGGERS.items():
        schema_editor.execute(
            f"CREATE TRIGGER {name} BEFORE TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION audit_rows_remain();"
        )


def remove(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        return
    for name, table in TRIGGERS.items():
        schema_editor.execute(f"DROP TRIGGER {name} ON {table};")


class Migration(migrations.Migration):
    dependencies = [("audit", "0005_seals_stay_as_they_are")]

    operations = [migrations.RunPython(add, remove)]
