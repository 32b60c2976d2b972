"""The database itself refuses to change or delete a seal."""

from django.db import migrations

SQLITE = {
    "audit_seals_stay": """
CREATE TRIGGER audit_seals_stay BEFORE UPDATE ON audit_auditseal
BEGIN SELECT RAISE(ABORT, 'audit seals are never changed'); END;
""",
    "audit_seals_remain": """
CREATE TRIGGER audit_seals_remain BEFORE DELETE ON audit_auditseal
BEGIN SELECT RAISE(ABORT, 'audit seals are never deleted'); END;
""",
}
# The functions are those of the rows.
POSTGRES = {
    "audit_seals_stay": """
CREATE TRIGGER audit_seals_stay BEFORE UPDATE ON audit_auditseal
FOR EACH ROW EXECUTE FUNCTION audit_rows_stay();
""",
    "audit_seals_remain": """
CREATE TRIGGER audit_seals_remain BEFORE DELETE ON audit_auditseal
FOR EACH ROW EXECUTE FUNCTION audit_rows_remain();
""",
}


def add(apps, schema_editor):
    triggers = SQLITE if schema_editor.connection.vendor == "sqlite" else POSTGRES
    for statement in triggers.values():
        schema_editor.execute(statement)


def remove(apps, schema_editor):
    table = "" if schema_editor.connection.vendor == "sqlite" else " ON audit_auditseal"
    for name in SQLITE:
        schema_editor.execute(f"DROP TRIGGER {name}{table};")


class Migration(migrations.Migration):
    dependencies = [("audit", "0004_seals")]

    operations = [migrations.RunPython(add, remove)]
