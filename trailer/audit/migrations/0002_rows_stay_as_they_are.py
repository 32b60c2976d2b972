"""The database itself refuses to change an audit row."""

from django.db import migrations

SQLITE = """
CREATE TRIGGER audit_rows_stay BEFORE UPDATE ON audit_auditentry
BEGIN SELECT RAISE(ABORT, 'audit rows are never changed'); END;
"""
POSTGRES = """
CREATE FUNCTION audit_rows_stay() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'audit rows are never changed'; END $$;
CREATE TRIGGER audit_rows_stay BEFORE UPDATE ON audit_auditentry
FOR EACH ROW EXECUTE FUNCTION audit_rows_stay();
"""


def add(apps, schema_editor):
    vendor = schema_editor.connection.vendor
    schema_editor.execute(SQLITE if vendor == "sqlite" else POSTGRES)


def remove(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        schema_editor.execute("DROP TRIGGER audit_rows_stay;")
    else:
        schema_editor.execute("DROP TRIGGER audit_rows_stay ON audit_auditentry;")
        schema_editor.execute("DROP FUNCTION audit_rows_stay();")


class Migration(migrations.Migration):
    dependencies = [("audit", "0001_initial")]

    operations = [migrations.RunPython(add, remove)]
