"""The upgrade that notes by whose right workspaces have what they have: nothing stops by it."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from django.apps import apps

from hosts.models import Host, HostDocument, Volume
from tests.factories import (
    api_client,
    make_bind,
    make_capability,
    make_grant,
    make_network,
    make_volume,
)
from trailer.access.models import Capability, Grant, Role
from workspaces.control.compile import document_for, host_state
from workspaces.models import Mount, NetworkAttachment, Workspace

if TYPE_CHECKING:
    from uuid import UUID

    from tests.workspaces.scene import Scene

_WORKSPACES = importlib.import_module("workspaces.migrations.0008_by_whose_right")
_HOSTS = importlib.import_module("hosts.migrations.0018_document_ends")


def upgrade() -> None:
    """From rows as an older version left them."""
    Workspace.objects.update(image_by=None, privileged_by=None, placed_by=None)
    Mount.objects.update(attached_by=None)
    NetworkAttachment.objects.all().delete()
    _HOSTS.judge_what_is_held(apps, None)
    _WORKSPACES.note(apps, None)


def blocked(scene: Scene) -> dict[str, str]:
    state = host_state(Host.objects.get(pk=scene.host.pk))
    return {row.spec.name: row.blocked for row in state.workspaces}


def mount(volume: Volume) -> list[dict[str, str]]:
    return [{"volume": str(volume.pk), "target": "/data"}]


def test_what_an_owner_may_use_counts_as_the_owners_and_the_rest_as_an_administrators(
    scene: Scene,
) -> None:
    granted = make_volume(scene.host, scene.stranger, "granted")
    make_grant(granted, scene.owner, Role.EDITOR)
    reading = make_volume(scene.host, scene.stranger, "reading")
    make_grant(reading, scene.owner, Role.VIEWER)
    network = make_network(scene.host, scene.stranger, "others")
    row = scene.create(mounts=mount(granted))
    # As an administrator mounted and attached it.
    row.mounts.create(volume=reading, target="/more")
    row.networks.add(network)
    upgrade()
    by = {item.volume_id: item.attached_by_id for item in Mount.objects.all()}
    assert by == {granted.pk: scene.owner.pk, reading.pk: scene.admin.pk}
    assert NetworkAttachment.objects.get().attached_by_id == scene.admin.pk
    row.refresh_from_db()
    assert (row.image_by_id, row.placed_by_id) == (scene.owner.pk, scene.owner.pk)
    assert blocked(scene) == {"box": ""}
    Grant.objects.all().delete()
    assert "the volume granted" in blocked(scene)["box"]
    assert "reading" not in blocked(scene)["box"]


def test_folders_and_addresses_from_before_are_not_judged_until_handed_over(scene: Scene) -> None:
    bind = make_bind(scene.host, scene.owner, name="srv")
    network = make_network(scene.host, scene.owner, "office", subnet="10.9.0.0/24")
    scene.create(mounts=mount(bind), networks=[str(network.pk)])
    upgrade()
    assert blocked(scene) == {"box": ""}
    make_capability(scene.host, scene.stranger, Capability.BIND)
    url = f"/api/v1/volumes/{bind.pk}/transfer/"
    answer = api_client(scene.admin).post(url, {"owner": "stranger"})
    assert answer.status_code == 202, answer.content
    assert blocked(scene) == {"box": ""}
    assert (
        api_client(scene.admin).put(f"/api/v1/hosts/{scene.host.pk}/access/", []).status_code
        == 200
    )
    assert "stranger, to whom the volume srv belongs" in blocked(scene)["box"]


def test_every_host_gets_a_document_that_was_judged(scene: Scene) -> None:
    scene.create_full()
    before: UUID = scene.host.pk
    etag = document_for(before, "").etag
    upgrade()
    assert HostDocument.objects.get(host=before).version == 0
    assert document_for(before, etag).body is None
    assert HostDocument.objects.get(host=before).version > 0
