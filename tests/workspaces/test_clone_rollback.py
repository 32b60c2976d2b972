"""Clones and rollbacks: what is copied, what is restored, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.factories import make_host, make_image
from tests.workspaces.scene import CANARY
from trailer.errors import Invalid, NotAllowed, NotFound
from workspaces.fields import fields_of
from workspaces.models import Event, Workspace
from workspaces.services import (
    rollback_plan,
    workspace_clone,
    workspace_rollback,
    workspace_stop,
    workspace_update,
)

if TYPE_CHECKING:
    from tests.workspaces.scene import Scene


def clone(scene: Scene, workspace: Workspace, **data: Any) -> Workspace:
    return workspace_clone(actor=scene.owner, workspace=workspace, data={"name": "copy", **data})


def test_a_clone_has_all_fields_but_host_ports_and_addresses(scene: Scene) -> None:
    source = scene.create_full()
    copy = clone(scene, source)
    assert copy.pk != source.pk
    assert copy.revision == 1
    old, new = fields_of(source), fields_of(copy)
    assert [port.host_port for port in new.ports] == [None]
    assert [port.container_port for port in new.ports] == [80]
    assert new.urls == ()
    assert replace(new, name=old.name, ports=old.ports, urls=old.urls) == old
    assert new.secret_env == {"PASSWORD": CANARY}
    event = Event.objects.get(workspace=copy)
    assert (event.kind, event.cause) == ("cloned", "Cloned from box.")


def test_two_host_ports_of_one_container_port_become_one_free_one(scene: Scene) -> None:
    ports = [{"container_port": 80, "host_port": n} for n in (8080, 8081)]
    assert clone(scene, scene.create(ports=ports)).ports.count() == 1


def test_a_clone_on_another_host_takes_the_image_with_the_same_reference(scene: Scene) -> None:
    other = make_host("other")
    image = make_image(other, scene.owner, reference="docker.io/library/busybox")
    copy = clone(scene, scene.create_full(), host=str(other.pk), name="box")
    assert (copy.host, copy.image) == (other, image)
    fields = fields_of(copy)
    assert [port.host_port for port in fields.ports] == [8080]
    assert (fields.mounts, fields.networks) == ((), frozenset())
    assert fields.secret_env == {"PASSWORD": CANARY}


def test_a_clone_needs_the_image_on_the_other_host(scene: Scene) -> None:
    other = make_host("other")
    source = scene.create_full()
    make_image(other, scene.stranger)
    make_image(other, scene.owner, enabled=False)
    make_image(other, scene.owner, reference="alpine")
    with pytest.raises(Invalid) as caught:
        clone(scene, source, host=str(other.pk))
    assert "busybox:latest" in caught.value.fields["host"][0]


def test_a_built_image_can_not_be_found_on_another_host(scene: Scene) -> None:
    other = make_host("other")
    make_image(other, scene.owner)
    source = scene.create(image=str(make_image(scene.host, scene.owner, kind="build").pk))
    with pytest.raises(Invalid):
        clone(scene, source, host=str(other.pk))


def test_a_clone_keeps_within_the_other_hosts_limits(scene: Scene) -> None:
    small = make_host("small", memory_bytes=32 * 1024**2)
    make_image(small, scene.owner)
    with pytest.raises(Invalid) as caught:
        clone(scene, scene.create_full(), host=str(small.pk))
    assert "memory_bytes" in caught.value.fields


@pytest.mark.parametrize(
    ("data", "where"),
    [
        ({"name": "box"}, "name"),
        ({"name": "B"}, "name"),
        ({"name": None}, "name"),
        ({"host": "x"}, "host"),
        ({"host": "00000000-0000-4000-8000-000000000000"}, "host"),
        ({"image": "x"}, "image"),
    ],
)
def test_a_bad_clone_is_refused(scene: Scene, data: dict[str, Any], where: str) -> None:
    source = scene.create_full()
    with pytest.raises(Invalid) as caught:
        clone(scene, source, **data)
    assert list(caught.value.fields) == [where]
    assert Workspace.objects.count() == 1


def test_privileges_are_not_copied_by_someone_who_has_none(scene: Scene) -> None:
    source = scene.create()
    workspace_update(actor=scene.admin, workspace=source, data={"nested_virtualization": True})
    with pytest.raises(NotAllowed):
        clone(scene, source)


def test_a_stranger_can_neither_clone_nor_roll_back(scene: Scene) -> None:
    source = scene.create_full()
    with pytest.raises(NotFound):
        workspace_clone(actor=scene.stranger, workspace=source, data={"name": "copy"})
    with pytest.raises(NotFound):
        workspace_rollback(actor=scene.stranger, workspace=source, revision=1)


def test_a_rollback_restores_every_field_secrets_included(scene: Scene) -> None:
    workspace = scene.create_full()
    original = fields_of(workspace)
    other = make_image(scene.host, scene.owner, reference="alpine:3")
    data: dict[str, Any] = {
        "name": "other",
        "image": str(other.pk),
        "env": {"X": "1"},
        "secret_env": {"PASSWORD": "changed", "MORE": "x"},
        "ports": [],
        "mounts": [],
        "networks": [],
        "urls": [],
        "health_check": None,
        "cpus": None,
        "schedule": {},
        "description": "",
    }
    workspace_update(actor=scene.owner, workspace=workspace, data=data)
    restored = workspace_rollback(actor=scene.owner, workspace=workspace, revision=1)
    assert fields_of(restored) == original
    assert restored.revision == 3
    event = Event.objects.filter(workspace=workspace).first()
    assert event is not None
    assert (event.kind, event.cause) == ("rolled_back", "Rolled back to revision 1.")
    assert {change["field"] for change in event.changes} == set(data)
    assert CANARY not in str(event.changes)


def test_a_rollback_leaves_the_run_state_to_start_and_stop(scene: Scene) -> None:
    workspace = scene.create(cpus=1)
    workspace_update(actor=scene.owner, workspace=workspace, data={"cpus": 2})
    workspace_stop(actor=scene.owner, workspace=workspace)
    workspace = workspace_rollback(actor=scene.owner, workspace=workspace, revision=1)
    assert (workspace.desired_state, float(workspace.cpus or 0)) == ("stopped", 1.0)


def test_the_plan_of_a_rollback_is_what_it_then_does_and_saves_nothing(scene: Scene) -> None:
    workspace = scene.create_full()
    changed = workspace_update(
        actor=scene.owner,
        workspace=workspace,
        data={"env": {"MODE": "new"}, "secret_env": {"PASSWORD": "other"}},
    )
    plan = rollback_plan(actor=scene.owner, workspace=changed, revision=1)
    effects = {(change.field, change.effect) for change in plan.changes}
    assert effects == {("env", "replace"), ("secret_env", "replace")}
    assert CANARY not in str(plan)
    changed.refresh_from_db()
    assert changed.revision == 2
    workspace_rollback(actor=scene.owner, workspace=changed, revision=1)
    event = Event.objects.filter(workspace=workspace, kind="rolled_back").get()
    assert {change["field"] for change in event.changes} == {"env", "secret_env"}
    with pytest.raises(NotFound):
        rollback_plan(actor=scene.stranger, workspace=changed, revision=1)


def test_a_rollback_to_the_present_changes_nothing(scene: Scene) -> None:
    workspace = scene.create_full()
    workspace = workspace_rollback(actor=scene.owner, workspace=workspace, revision=1)
    assert workspace.revision == 1
    assert Event.objects.count() == 1


def test_a_rollback_to_what_is_gone_says_so(scene: Scene) -> None:
    workspace = scene.create_full()
    workspace_update(actor=scene.owner, workspace=workspace, data={"mounts": []})
    scene.volume.delete()
    with pytest.raises(Invalid) as caught:
        workspace_rollback(actor=scene.owner, workspace=workspace, revision=1)
    assert "mounts.0.volume" in caught.value.fields


@pytest.mark.parametrize("revision", [0, -1, 99, 2**31, 2**70, "1", 1.0, True, None, [], {}])
def test_an_unknown_revision_is_refused(scene: Scene, revision: Any) -> None:
    workspace = scene.create()
    with pytest.raises(Invalid) as caught:
        workspace_rollback(actor=scene.owner, workspace=workspace, revision=revision)
    assert list(caught.value.fields) == ["revision"]
