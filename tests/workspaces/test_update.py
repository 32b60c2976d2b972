"""Edits: what counts as a change, what each does, and who may make it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from hosts.models import Host
from images.models import Image
from tests.factories import make_image, make_network, make_volume
from tests.workspaces.scene import CANARY, observe
from trailer.errors import Conflict, Invalid, NotAllowed, NotFound
from workspaces.fields import fields_of
from workspaces.models import Event, Mount, Revision, Workspace
from workspaces.selectors import workspace_get
from workspaces.services import workspace_plan, workspace_update
from workspaces.status import workspace_status

if TYPE_CHECKING:
    from tests.workspaces.scene import Scene


def update(scene: Scene, workspace: Workspace, **data: Any) -> Workspace:
    return workspace_update(actor=scene.owner, workspace=workspace, data=data)


def running(scene: Scene, **fields: Any) -> Workspace:
    workspace = scene.create_full(**fields)
    assert observe(workspace)
    return workspace_get(workspace.pk)


def test_a_change_raises_the_revision_and_tells_why(scene: Scene) -> None:
    workspace = update(scene, running(scene), memory_bytes=128 * 1024**2)
    assert workspace.revision == 2
    assert workspace.memory_bytes == 128 * 1024**2
    assert workspace_status(workspace) == "deployment_pending"
    event = Event.objects.filter(workspace=workspace).first()
    assert event is not None
    assert (event.kind, event.actor, event.revision) == ("changed", scene.owner, 2)
    assert event.changes == [
        {
            "field": "memory_bytes",
            "from": 64 * 1024**2,
            "to": 128 * 1024**2,
            "effect": "replace",
        }
    ]
    assert list(Revision.objects.values_list("revision", flat=True)) == [2, 1]


@pytest.mark.parametrize(
    "same",
    [
        {},
        {"env": {"MODE": "test"}},
        {"secret_env": {"PASSWORD": None}},
        {"secret_env": {"PASSWORD": CANARY}},
        {"cpus": 1.50},
        {"health_check": {"test": ["CMD", "true"], "interval": 5.0, "retries": 3}},
        {"ports": [{"container_port": 80, "protocol": "tcp", "host_port": 8080, "host_ip": ""}]},
        {"gpus": {"count": 0}},
        {"desired_state": "running"},
        {"schedule": {"stop": "0 18 * * 1-5", "start": "0  8 * * 1-5"}},
        {"urls": [{"subdomain": "BOX", "domain": "Example.com", "port": 80, "tls": False}]},
    ],
)
def test_what_changes_nothing_saves_nothing(scene: Scene, same: dict[str, Any]) -> None:
    workspace = running(scene)
    version = Host.objects.get(pk=scene.host.pk).desired_version
    assert update(scene, workspace, **same).revision == 1
    assert Event.objects.count() == 1
    assert Host.objects.get(pk=scene.host.pk).desired_version == version
    assert workspace_status(workspace_get(workspace.pk)) == "running"


def test_order_never_matters(scene: Scene) -> None:
    ports = [{"container_port": n} for n in (80, 81, 82)]
    networks = [str(make_network(scene.host, scene.owner).pk) for _ in range(3)]
    volumes = [str(make_volume(scene.host, scene.owner).pk) for _ in range(2)]
    mounts = [{"volume": volume, "target": f"/{n}"} for n, volume in enumerate(volumes)]
    env = {"A": "1", "B": "2"}
    workspace = scene.create(ports=ports, networks=networks, mounts=mounts, env=env)
    workspace = update(
        scene,
        workspace,
        ports=ports[::-1],
        networks=[*networks[::-1], networks[0]],
        mounts=mounts[::-1],
        env=dict(reversed(env.items())),
    )
    assert workspace.revision == 1


@pytest.mark.parametrize(
    ("data", "action", "status"),
    [
        ({"description": "x"}, "none", "running"),
        ({"startup_timeout": 99}, "none", "running"),
        ({"shared_volumes": False}, "none", "running"),
        ({"idle_stop_minutes": None}, "none", "running"),
        ({"schedule": {}}, "none", "running"),
        ({"name": "renamed"}, "in_place", "running"),
        ({"networks": []}, "in_place", "running"),
        ({"urls": []}, "in_place", "running"),
        ({"env": {}}, "replace", "deployment_pending"),
        ({"secret_env": {}}, "replace", "deployment_pending"),
        ({"command": []}, "replace", "deployment_pending"),
        ({"cpus": None}, "replace", "deployment_pending"),
        ({"memory_bytes": None}, "replace", "deployment_pending"),
        ({"shm_bytes": None}, "replace", "deployment_pending"),
        ({"ports": []}, "replace", "deployment_pending"),
        ({"mounts": []}, "replace", "deployment_pending"),
        ({"health_check": None}, "replace", "deployment_pending"),
        ({"labels": {}}, "replace", "deployment_pending"),
        ({"desired_state": "stopped"}, "stop", "stopping"),
        ({"desired_state": "stopped", "env": {}}, "stop", "stopping"),
        ({"name": "renamed", "env": {}}, "replace", "deployment_pending"),
    ],
)
def test_each_change_has_the_effect_of_the_design(
    scene: Scene, data: dict[str, Any], action: str, status: str
) -> None:
    workspace = running(scene)
    plan = workspace_plan(actor=scene.owner, workspace=workspace, data=data)
    assert plan.action == action
    assert {change.field for change in plan.changes} == set(data)
    changed = update(scene, workspace, **data)
    assert changed.revision == 2
    assert workspace_status(changed) == status
    for name, value in data.items():
        stored = getattr(fields_of(changed), name)
        assert stored == value or (not stored and not value)


def test_a_route_change_replaces_when_routes_are_container_labels(scene: Scene) -> None:
    workspace = running(scene)
    Host.objects.filter(pk=scene.host.pk).update(router_mode="traefik-labels")
    plan = workspace_plan(actor=scene.owner, workspace=workspace, data={"urls": []})
    assert (plan.action, plan.downtime) == ("replace", "brief")


def test_an_image_with_the_same_reference_is_a_change_without_effect(scene: Scene) -> None:
    twin = make_image(scene.host, scene.owner, engine_id=scene.image.engine_id)
    workspace = running(scene)
    plan = workspace_plan(actor=scene.owner, workspace=workspace, data={"image": str(twin.pk)})
    assert [(change.field, change.effect) for change in plan.changes] == [("image", "none")]
    assert update(scene, workspace, image=str(twin.pk)).image_id == twin.pk


def test_a_plan_saves_nothing(scene: Scene) -> None:
    workspace = running(scene)
    plan = workspace_plan(actor=scene.owner, workspace=workspace, data={"cpus": 2, "name": "b"})
    assert plan.action == "replace"
    after = workspace_get(workspace.pk)
    assert (after.revision, after.name, after.cpus) == (1, "box", workspace.cpus)
    assert Event.objects.count() == Revision.objects.count() == 1


def test_a_plan_refuses_what_an_update_would_refuse(scene: Scene) -> None:
    workspace = running(scene)
    for data in ({"cpus": 0}, {"memory_bytes": 2**50}, {"host": str(scene.image.pk)}):
        with pytest.raises(Invalid):
            workspace_plan(actor=scene.owner, workspace=workspace, data=data)


def test_an_edit_of_a_stopped_workspace_deploys_nothing_before_its_start(scene: Scene) -> None:
    workspace = scene.create_full(desired_state="stopped")
    observe(workspace, "stopped")
    plan = workspace_plan(actor=scene.owner, workspace=workspace, data={"env": {}})
    assert (plan.action, plan.downtime) == ("none", "none")
    assert [change.effect for change in plan.changes] == ["replace"]
    workspace = update(scene, workspace, env={})
    assert (workspace.revision, workspace_status(workspace)) == (2, "stopped")


@pytest.mark.parametrize(
    ("data", "is_told"),
    [
        ({"name": "renamed"}, True),
        ({"name": "renamed", "env": {}}, False),
        ({"description": "x"}, False),
    ],
)
def test_a_rename_in_place_says_that_the_hostname_stays(
    scene: Scene, data: dict[str, Any], is_told: bool
) -> None:
    workspace = running(scene)
    plan = workspace_plan(actor=scene.owner, workspace=workspace, data=data)
    told = ("The hostname inside keeps the old name until the container is replaced.",)
    assert plan.notes == (told if is_told else ())


def test_a_stopped_workspace_is_renamed_in_place(scene: Scene) -> None:
    workspace = scene.create_full(desired_state="stopped")
    observe(workspace, "stopped")
    data = {"name": "renamed", "env": {}}
    plan = workspace_plan(actor=scene.owner, workspace=workspace_get(workspace.pk), data=data)
    assert (plan.action, plan.downtime) == ("in_place", "none")


def _ran_then_stopped(scene: Scene) -> Workspace:
    workspace = running(scene)
    Event.objects.create(workspace=workspace, at=timezone.now(), kind="create", revision=1)
    return update(scene, workspace, desired_state="stopped")


def test_a_start_that_brings_the_container_up_to_date_is_planned_as_a_replace(
    scene: Scene,
) -> None:
    workspace = update(scene, _ran_then_stopped(scene), cpus=2, secret_env={"PASSWORD": "new"})
    plan = workspace_plan(
        actor=scene.owner, workspace=workspace, data={"desired_state": "running"}
    )
    assert (plan.action, plan.downtime) == ("replace", "none")
    assert [change.field for change in plan.changes] == ["desired_state", "secret_env", "cpus"]
    workspace = update(scene, workspace, desired_state="running")
    event = Event.objects.filter(workspace=workspace).first()
    assert event is not None
    assert [change["field"] for change in event.changes] == ["desired_state"]


def test_a_start_after_a_change_and_its_return_is_a_start(scene: Scene) -> None:
    workspace = update(scene, _ran_then_stopped(scene), cpus=2)
    workspace = update(scene, workspace, cpus=1.5)
    plan = workspace_plan(
        actor=scene.owner, workspace=workspace, data={"desired_state": "running"}
    )
    assert (plan.action, [change.field for change in plan.changes]) == ("start", ["desired_state"])


def test_mounts_are_planned_in_the_shape_of_the_field(scene: Scene) -> None:
    workspace = running(scene)
    volume = str(make_volume(scene.host, scene.owner).pk)
    mounts = [{"volume": volume, "target": "/d", "read_only": True}]
    plan = workspace_plan(actor=scene.owner, workspace=workspace, data={"mounts": mounts})
    assert [change.new for change in plan.changes] == [mounts]


def test_a_small_change_keeps_a_deployment_that_is_still_pending(scene: Scene) -> None:
    workspace = update(scene, running(scene), env={})
    workspace = update(scene, workspace, description="typed meanwhile")
    assert workspace_status(workspace) == "deployment_pending"
    workspace = update(scene, workspace, desired_state="stopped")
    assert workspace_status(workspace) == "stopping"
    observe(workspace, "stopped", seq=2)
    workspace = update(scene, workspace_get(workspace.pk), description="and again")
    assert workspace_status(workspace) == "stopped"


def test_an_outdated_view_of_the_workspace_is_refused(scene: Scene) -> None:
    workspace = update(scene, running(scene), cpus=2)
    with pytest.raises(Conflict) as caught:
        workspace_update(
            actor=scene.owner, workspace=workspace, data={"cpus": 1}, expected_revision=1
        )
    assert caught.value.code == "revision_moved"
    assert workspace_get(workspace.pk).revision == 2
    workspace_update(actor=scene.owner, workspace=workspace, data={"cpus": 1}, expected_revision=2)


def test_an_edit_never_touches_observed_columns(scene: Scene) -> None:
    workspace = running(scene)
    observe(workspace, "error", seq=9, message="no space left")
    after = update(scene, workspace, env={})
    assert (after.observed_status, after.message, after.report_seq) == (
        "error",
        "no space left",
        9,
    )


def test_what_the_host_lost_since_blocks_no_unrelated_edit(scene: Scene) -> None:
    workspace = running(scene)
    Host.objects.filter(pk=scene.host.pk).update(memory_bytes=2**20, cpu_count=1)
    Image.objects.filter(pk=scene.image.pk).update(enabled=False)
    assert update(scene, workspace, description="x").revision == 2
    with pytest.raises(Invalid):
        update(scene, workspace, memory_bytes=65 * 1024**2)


def test_what_someone_else_attached_may_stay(scene: Scene) -> None:
    """An admin mounted their own volume into the owner's workspace."""
    workspace = running(scene)
    lent = make_volume(scene.host, scene.admin)
    mounts = [{"volume": str(lent.pk), "target": "/lent"}]
    workspace_update(actor=scene.admin, workspace=workspace, data={"mounts": mounts})
    mounts[0]["target"] = "/moved"
    update(scene, workspace, mounts=mounts)
    assert Mount.objects.get().target == "/moved"
    update(scene, workspace, mounts=[])
    with pytest.raises(Invalid):
        update(scene, workspace, mounts=mounts)


def test_its_own_name_ports_and_addresses_are_no_clash(scene: Scene) -> None:
    workspace = running(scene)
    ports = [
        {"container_port": 80, "host_port": 8080},
        {"container_port": 81, "host_port": 8081},
    ]
    urls = [
        {"subdomain": "box", "domain": "example.com", "port": 81},
        {"subdomain": "bax", "domain": "example.com", "port": 81},
    ]
    changed = update(scene, workspace, name="box", ports=ports, urls=urls)
    assert (changed.ports.count(), changed.urls.count()) == (2, 2)


def test_only_an_admin_turns_nested_virtualisation_on(scene: Scene) -> None:
    workspace = running(scene)
    with pytest.raises(NotAllowed):
        update(scene, workspace, nested_virtualization=True)
    workspace_update(actor=scene.admin, workspace=workspace, data={"nested_virtualization": True})
    assert update(scene, workspace, description="still").nested_virtualization
    assert not update(scene, workspace, nested_virtualization=False).nested_virtualization


def test_a_stranger_finds_no_workspace_and_an_admin_does(scene: Scene) -> None:
    workspace = running(scene)
    for call in (workspace_update, workspace_plan):
        with pytest.raises(NotFound):
            call(actor=scene.stranger, workspace=workspace, data={"cpus": 1})
    workspace_update(actor=scene.admin, workspace=workspace, data={"cpus": 1})
    event = Event.objects.first()
    assert event is not None
    assert event.actor == scene.admin


def test_a_deleted_workspace_can_not_be_changed(scene: Scene) -> None:
    workspace = running(scene)
    Workspace.objects.all().delete()
    with pytest.raises(NotFound):
        update(scene, workspace, cpus=1)
