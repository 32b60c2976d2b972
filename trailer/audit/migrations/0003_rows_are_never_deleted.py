"""The database itself refuses to delete an audit row."""

from django.db import migrations

SQLITE = """
CREATE TRIGGER audit_rows_remain BEFORE DELETE ON audit_auditentry
BEGIN SELECT RAISE(ABORT, 'audit rows are never deleted'); END;
"""
POSTGRES = """
CREATE FUNCTION audit_rows_remain() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'audit rows are never deleted'; END $$;
CREATE TRIGGER audit_rows_remain BEFORE DELETE ON audit_auditentry
FOR EACH ROW EXECUTE FUNCTION audit_rows_remain();
"""


def add(apps, schema_editor):
    vendor = schema_editor.connection.vendor
    schema_editor.execute(SQLITE if vendor == "sqlite" else POSTGRES)


def remove(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        schema_editor.execute("DROP TRIGGER audit_rows_remain;")
    else:
        schema_editor.execute("DROP TRIGGER audit_rows_remain ON audit_auditentry;")
        schema_editor.execute("DROP FUNCTION audit_rows_remain();")


class Migration(migrations.Migration):
    dependencies = [("audit", "0002_rows_stay_as_they_are")]

    operations = [migrations.RunPython(add, remove)]
