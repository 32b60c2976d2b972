"""Whatever gives a container its host × every way in: refused to who was not given it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import Permission

from tests.admin_pages import admin_client, errors_of, form_values, messages_of
from tests.factories import api_client, make_bind, make_grant, make_image
from trailer.access.models import Role
from workspaces.models import Workspace
from workspaces.services import workspace_update

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.workspaces.scene import Scene
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db
URL = "/api/v1/workspaces/"
# Everything the engine's HostConfig takes beyond what a workspace's fields say, in the spellings
# of the engine, of Compose and of the command line. None of them may ever reach a host.
HOST_CONFIG = (
    *("privileged", "Privileged", "cap_add", "CapAdd", "cap_drop", "devices", "Devices"),
    *("device_cgroup_rules", "DeviceCgroupRules", "device_requests", "network_mode"),
    *("NetworkMode", "pid", "pid_mode", "PidMode", "ipc", "ipc_mode", "IpcMode", "uts"),
    *("uts_mode", "userns_mode", "UsernsMode", "cgroup", "cgroupns_mode", "cgroup_parent"),
    *("sysctls", "Sysctls", "security_opt", "SecurityOpt", "runtime", "Runtime", "isolation"),
    *("volumes_from", "VolumesFrom", "binds", "Binds", "volumes", "tmpfs", "Mounts", "links"),
    *("extra_hosts", "dns", "dns_opt", "group_add", "oom_kill_disable", "oom_score_adj"),
    *("pids_limit", "ulimits", "init", "read_only", "storage_opt", "volume_driver", "log_config"),
    *("restart_policy", "auto_remove", "masked_paths", "readonly_paths", "entrypoint", "user"),
    *("host_config", "HostConfig", "driver_opts", "annotations", "container_id_file"),
)
VALUES: tuple[Any, ...] = (True, "host", ["SYS_ADMIN"], {"type": "none", "device": "/"})


def create(scene: Scene, fields: dict[str, Any]) -> Any:
    return api_client(scene.stranger).post(URL, scene.body(name="evil") | fields)


def restore_snapshot(scene: Scene, fields: dict[str, Any]) -> Any:
    image = make_image(scene.host, scene.stranger, "saved", kind="snapshot", status="finished")
    body = scene.body(name="evil", image=str(image.pk)) | fields
    answer = api_client(scene.stranger).post(URL, body)
    image.delete()
    return answer


def _editor(scene: Scene, path: str, body: Any, method: str = "post") -> Any:
    row = Workspace.objects.get(name="box")
    client = api_client(scene.stranger)
    return getattr(client, method)(f"{URL}{row.pk}/{path}", body)


def update(scene: Scene, fields: dict[str, Any]) -> Any:
    return _editor(scene, "", fields, "patch")


def plan(scene: Scene, fields: dict[str, Any]) -> Any:
    return _editor(scene, "plan/", fields)


def clone(scene: Scene, fields: dict[str, Any]) -> Any:
    return _editor(scene, "clone/", {"name": "evil", **fields})


def rollback(scene: Scene, fields: dict[str, Any]) -> Any:
    return _editor(scene, "rollback/", {"revision": 1, **fields})


def snapshot(scene: Scene, fields: dict[str, Any]) -> Any:
    return _editor(scene, "snapshot/", {"name": "evil", **fields})


WAYS = (create, restore_snapshot, update, plan, clone, rollback, snapshot)


@pytest.fixture
def box(scene: Scene) -> Workspace:
    """Shared with the stranger, who may edit it and sees its image, but has no capability."""
    box = scene.create()
    make_grant(box, scene.stranger, Role.EDITOR)
    make_grant(scene.image, scene.stranger, Role.VIEWER)
    return box


@pytest.mark.parametrize("way", WAYS)
def test_no_field_of_the_engines_own_gets_in(
    way: Callable[[Scene, dict[str, Any]], Any], scene: Scene, box: Workspace
) -> None:
    given = {name: VALUES[n % len(VALUES)] for n, name in enumerate(HOST_CONFIG)}
    answer = way(scene, given)
    assert answer.status_code == 400, answer.content
    assert set(answer.json()["fields"]) == set(HOST_CONFIG)
    assert Workspace.objects.count() == 1
    assert Workspace.objects.get().revision == 1


@pytest.mark.parametrize("way", [create, restore_snapshot, update, plan])
def test_nested_virtualisation_takes_the_capability(
    way: Callable[[Scene, dict[str, Any]], Any], scene: Scene, box: Workspace
) -> None:
    answer = way(scene, {"nested_virtualization": True})
    assert answer.status_code == 403
    assert "capability privileged" in answer.json()["message"]
    assert not Workspace.objects.filter(nested_virtualization=True).exists()


@pytest.mark.parametrize("way", [create, restore_snapshot, update, plan])
def test_somebody_elses_bind_mount_is_not_there(
    way: Callable[[Scene, dict[str, Any]], Any], scene: Scene, box: Workspace
) -> None:
    bind = make_bind(scene.host, scene.admin, "/srv/private")
    answer = way(scene, {"mounts": [{"volume": str(bind.pk), "target": "/x"}]})
    assert answer.status_code == 400
    assert list(answer.json()["fields"]) == ["mounts.0.volume"]


def _privileged(scene: Scene, box: Workspace) -> Workspace:
    """An admin turned everything on (revision 2) and off again (revision 3)."""
    bind = make_bind(scene.host, scene.admin, "/srv/private")
    on = {
        "nested_virtualization": True,
        "mounts": [{"volume": str(bind.pk), "target": "/x"}],
    }
    return workspace_update(actor=scene.admin, workspace=box, data=on)


@pytest.mark.parametrize("field", ["nested_virtualization", "mounts"])
def test_a_clone_does_not_hand_on_what_its_maker_may_not_have(
    field: str, scene: Scene, box: Workspace
) -> None:
    _privileged(scene, box)
    off: Any = {"nested_virtualization": False} if field == "mounts" else {"mounts": []}
    workspace_update(actor=scene.admin, workspace=box, data=off)
    answer = clone(scene, {})
    assert answer.status_code in (400, 403), answer.content
    assert any(name.startswith(field) for name in answer.json()["fields"])
    assert Workspace.objects.count() == 1


@pytest.mark.parametrize("field", ["nested_virtualization", "mounts"])
def test_a_rollback_does_not_bring_back_what_its_maker_may_not_have(
    field: str, scene: Scene, box: Workspace
) -> None:
    _privileged(scene, box)
    off: Any = {"nested_virtualization": False} if field == "mounts" else {"mounts": []}
    workspace_update(actor=scene.admin, workspace=box, data=off)
    both = {"nested_virtualization": False, "mounts": []}
    workspace_update(actor=scene.admin, workspace=box, data=both)
    answer = _editor(scene, "rollback/", {"revision": 3})
    assert answer.status_code in (400, 403), answer.content
    assert any(name.startswith(field) for name in answer.json()["fields"])
    assert Workspace.objects.get().revision == 4


def test_a_bind_mount_is_made_by_who_holds_the_capability_only(scene: Scene) -> None:
    body: dict[str, Any] = {"name": "x", "host": str(scene.host.pk)}
    body |= {"kind": "bind", "source": "/srv/x"}
    answer = api_client(scene.stranger).post("/api/v1/volumes/", body)
    assert answer.status_code == 403
    for name in ("driver", "driver_opts", "options", "labels", "mountpoint"):
        body = {"name": "x", "host": str(scene.host.pk), name: {"type": "none", "device": "/"}}
        assert api_client(scene.stranger).post("/api/v1/volumes/", body).status_code == 400


def _staff(user: User) -> User:
    """Django's own permissions for every admin page, but no administrator of Trailer."""
    user.is_staff = True
    user.save(update_fields=["is_staff"])
    user.user_permissions.set(Permission.objects.all())
    return user


def test_the_admin_pages_give_nothing_that_the_api_refuses(scene: Scene, box: Workspace) -> None:
    client = admin_client(_staff(scene.stranger))
    url = f"/admin/workspaces/workspace/{box.pk}/change/"
    assert client.get(url).status_code == 200
    answer = client.post(url, form_values(client, url) | {"nested_virtualization": "on"})
    assert answer.status_code == 200
    told = f"{errors_of(answer)} {messages_of(answer)}"
    assert "Only an administrator, or who was given the capability privileged" in told
    box.refresh_from_db()
    assert (box.nested_virtualization, box.revision) == (False, 1)
    # Sent by somebody who may, the same form is saved: the right was missing, not a field.
    client = admin_client(scene.admin)
    answer = client.post(url, form_values(client, url) | {"nested_virtualization": "on"})
    assert answer.status_code == 302, errors_of(answer)
    box.refresh_from_db()
    assert box.nested_virtualization
