"""Who may open a URL: `login` becomes `users`, `none` becomes `public`; `owner` is new."""

from django.db import migrations, models

_NEW = {"login": "users", "none": "public"}
_OLD = {"users": "login", "owner": "login", "public": "none"}


def _rename(names):
    def rename(apps, schema_editor):
        for before, after in names.items():
            apps.get_model("workspaces", "Url").objects.filter(auth=before).update(auth=after)
        # A rollback writes an older revision's fields again.
        for revision in apps.get_model("workspaces", "Revision").objects.iterator():
            urls = revision.fields.get("urls") or []
            if any(url.get("auth") in names for url in urls):
                for url in urls:
                    url["auth"] = names.get(url.get("auth"), url.get("auth"))
                revision.save(update_fields=["fields"])

    return rename


class Migration(migrations.Migration):
    dependencies = [("workspaces", "0004_newest_events")]

    operations = [
        migrations.AlterField(
            model_name="url",
            name="auth",
            field=models.CharField(
                choices=[
                    ("owner", "Only the owner"),
                    ("users", "Signed-in users who may see the workspace"),
                    ("public", "Everybody"),
                ],
                default="users",
                max_length=10,
            ),
        ),
        migrations.RunPython(_rename(_NEW), _rename(_OLD)),
    ]
