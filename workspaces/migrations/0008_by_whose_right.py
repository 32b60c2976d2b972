"""By whose right each workspace has its image, volumes, networks and place on its host.

So far nobody wrote that down. What a workspace has counts as brought in by its owner where the
owner may use it today, and else by an administrator, so that nothing stops with the upgrade that
was made by an administrator or handed over.
"""

from __future__ import annotations

from typing import Any, ClassVar

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.utils import timezone

_VIEWER, _EDITOR = 1, 2


def note(apps: Any, schema_editor: Any) -> None:
    del schema_editor
    workspaces = apps.get_model("workspaces", "Workspace").objects
    rights = _Rights(apps)
    attachment = apps.get_model("workspaces", "NetworkAttachment")
    made = []
    rows = workspaces.select_related("owner", "image").order_by("pk")
    for row in rows.prefetch_related("mounts__volume", "networks").iterator(chunk_size=500):
        workspaces.filter(pk=row.pk).update(
            image_by=rights.judge(row.owner, "image", row.image, _VIEWER),
            privileged_by=rights.capable(row, "privileged") if row.nested_virtualization else None,
            placed_by=row.owner_id
            if settings.TRAILER_OPEN_HOSTS
            else rights.capable(row, "workspaces"),
        )
        for mount in row.mounts.all():
            role = _VIEWER if mount.read_only else _EDITOR
            mount.attached_by_id = rights.judge(row.owner, "volume", mount.volume, role)
            mount.save(update_fields=["attached_by"])
        made += [
            attachment(
                workspace=row,
                network=network,
                attached_by_id=rights.judge(row.owner, "network", network, _VIEWER),
            )
            for network in row.networks.all()
        ]
    attachment.objects.bulk_create(made, batch_size=500)
    # No document was made with rights in mind yet.
    apps.get_model("hosts", "HostDocument").objects.update(version=0)


class _Rights:
    def __init__(self, apps: Any) -> None:
        users = apps.get_model(settings.AUTH_USER_MODEL).objects
        admins = users.filter(is_superuser=True, is_active=True).order_by("date_joined", "pk")
        self._admin = admins.values_list("pk", flat=True).first()
        self._grants = apps.get_model("access", "Grant").objects
        self._capabilities = apps.get_model("access", "HostCapability").objects
        self._groups: dict[Any, list[Any]] = {}

    def judge(self, owner: Any, kind: str, thing: Any, role: int) -> Any:
        """The owner's id, or an administrator's."""
        if thing.owner_id == owner.pk or (owner.is_active and owner.is_superuser):
            return owner.pk
        endless = models.Q(expires_at__isnull=True) | models.Q(expires_at__gt=timezone.now())
        held = self._grants.filter(
            self._subjects(owner), endless, kind=kind, object_id=thing.pk, role__gte=role
        )
        return owner.pk if owner.is_active and held.exists() else self._admin

    def capable(self, workspace: Any, capability: str) -> Any:
        owner = workspace.owner
        held = self._capabilities.filter(
            self._subjects(owner), host_id=workspace.host_id, capability=capability
        )
        return owner.pk if owner.is_superuser or held.exists() else self._admin

    def _subjects(self, owner: Any) -> Any:
        if owner.pk not in self._groups:
            self._groups[owner.pk] = list(owner.groups.values_list("pk", flat=True))
        return models.Q(user=owner.pk) | models.Q(group__in=self._groups[owner.pk])


def _person(*, editable: bool = True) -> models.ForeignKey[Any, Any]:
    return models.ForeignKey(
        editable=editable,
        null=True,
        on_delete=django.db.models.deletion.SET_NULL,
        related_name="+",
        to=settings.AUTH_USER_MODEL,
    )


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("access", "0004_capability_length"),
        ("hosts", "0018_document_ends"),
        ("images", "0007_snapshot_maker"),
        ("workspaces", "0007_shared_volumes"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations: ClassVar = [
        migrations.AddField("mount", "attached_by", _person()),
        migrations.AddField("mount", "evicted", models.BooleanField(default=False)),
        migrations.AddField("workspace", "image_by", _person(editable=False)),
        migrations.AddField("workspace", "privileged_by", _person(editable=False)),
        migrations.AddField("workspace", "placed_by", _person(editable=False)),
        migrations.AddField(
            "workspace", "image_evicted", models.BooleanField(default=False, editable=False)
        ),
        migrations.CreateModel(
            name="NetworkAttachment",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("evicted", models.BooleanField(default=False)),
                ("attached_by", _person()),
                (
                    "network",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="attachments",
                        to="hosts.network",
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="attachments",
                        to="workspaces.workspace",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "network"), name="attachment_once"
                    )
                ],
            },
        ),
        migrations.RunPython(note, migrations.RunPython.noop),
    ]
