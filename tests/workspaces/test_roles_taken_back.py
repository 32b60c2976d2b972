"""What somebody could do with another's workspace, stack or image, or under a quota, ends with the
role, the right, the group or the limit: every way to lose it × every door. No cell is open."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import transaction
from django.utils import timezone

from images.models import Image
from tests.factories import (
    api_client,
    make_capability,
    make_grant,
    make_group,
    make_image,
    make_stack,
    make_user,
)
from tests.workspaces.scene import URL, Scene, observe
from trailer.access.models import Capability, Grant, Role
from workspaces.models import Workspace
from workspaces.selectors import workspace_get

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trailer.accounts.models import User

API = "/api/v1/"
Answer = Any


@contextmanager
def undone() -> Iterator[None]:
    point = transaction.savepoint()
    try:
        yield
    finally:
        transaction.savepoint_rollback(point)


def open_doors(doors: dict[str, Callable[[], Answer]], codes: set[int]) -> list[str]:
    """Those that answer otherwise than with one of the codes and a sentence."""
    found = []
    for name, door in doors.items():
        with undone():
            answer = door()
            if answer.status_code not in codes or not answer.json()["message"].endswith("."):
                found.append(f"{name}: {answer.status_code} {answer.content[:200]!r}")
    return found


# --- roles and rights on a workspace ---------------------------------------------------------


def grants(scene: Scene, thing: Any, *entries: dict[str, Any]) -> None:
    url = f"{API}{thing._meta.model_name}s/{thing.pk}/grants/"
    assert api_client(scene.admin).put(url, list(entries)).status_code == 200


def _removed(scene: Scene, thing: Any) -> Callable[[], None]:
    make_grant(thing, scene.stranger, Role.EDITOR)
    return lambda: grants(scene, thing)


def _lowered(scene: Scene, thing: Any) -> Callable[[], None]:
    make_grant(thing, scene.stranger, Role.EDITOR)
    return lambda: grants(scene, thing, {"user": "stranger", "role": "viewer"})


def _expired(scene: Scene, thing: Any) -> Callable[[], None]:
    soon = timezone.now() + timedelta(hours=1)
    make_grant(thing, scene.stranger, Role.EDITOR, expires_at=soon)
    past = timezone.now() - timedelta(seconds=1)

    def lose() -> None:
        Grant.objects.filter(object_id=thing.pk).update(expires_at=past)

    return lose


def _left(scene: Scene, thing: Any) -> Callable[[], None]:
    group = make_group(scene.stranger)
    make_grant(thing, group, Role.EDITOR)

    def lose() -> None:
        url = f"{API}groups/{group.pk}/"
        assert api_client(scene.admin).patch(url, {"users": []}).status_code == 200

    return lose


def _no_group(scene: Scene, thing: Any) -> Callable[[], None]:
    group = make_group(scene.stranger)
    make_grant(thing, group, Role.EDITOR)

    def lose() -> None:
        assert api_client(scene.admin).delete(f"{API}groups/{group.pk}/").status_code == 204

    return lose


def _deactivated(scene: Scene, thing: Any) -> Callable[[], None]:
    make_grant(thing, scene.stranger, Role.EDITOR)

    def lose() -> None:
        url = f"{API}users/{scene.stranger.pk}/"
        assert api_client(scene.admin).patch(url, {"is_active": False}).status_code == 200

    return lose


LOSSES: dict[str, Callable[[Scene, Any], Callable[[], None]]] = {
    "grant removed": _removed,
    "role lowered": _lowered,
    "grant ended by time": _expired,
    "left the group": _left,
    "group deleted": _no_group,
    "deactivated": _deactivated,
}


def running(scene: Scene) -> Workspace:
    workspace = scene.create()
    api_client(scene.owner).patch(f"{URL}{workspace.pk}/", {"env": {"A": "1"}})
    workspace = workspace_get(workspace.pk)
    observe(workspace, "running")
    return workspace_get(workspace.pk)


def workspace_doors(user: User, row: Workspace) -> dict[str, Callable[[], Answer]]:
    client, url = api_client(user), f"{URL}{row.pk}/"
    return {
        "redeploy": lambda: client.post(f"{url}redeploy/"),
        "plan of a redeploy": lambda: client.post(f"{url}redeploy/plan/"),
        "start": lambda: client.post(f"{url}start/"),
        "stop": lambda: client.post(f"{url}stop/"),
        "edit": lambda: client.patch(url, {"command": ["x"]}),
        "plan": lambda: client.post(f"{url}plan/", {"command": ["x"]}),
        "rollback": lambda: client.post(f"{url}rollback/", {"revision": 1}),
        "schedule": lambda: client.patch(url, {"schedule": {"start": "* * * * *"}}),
        "idle timer": lambda: client.patch(url, {"idle_stop_minutes": 5}),
        "put off": lambda: client.post(f"{url}extend/", {"minutes": 30}),
        "clone": lambda: client.post(f"{url}clone/", {"name": "copy"}),
        "snapshot": lambda: client.post(f"{url}snapshot/", {"name": "saved"}),
    }


@pytest.mark.parametrize("name", LOSSES)
def test_without_a_role_no_door_of_a_workspace_is_left(scene: Scene, name: str) -> None:
    row = running(scene)
    make_grant(scene.image, scene.stranger, Role.VIEWER)
    lose = LOSSES[name](scene, row)
    doors = workspace_doors(scene.stranger, row)
    with undone():
        assert doors["redeploy"]().status_code == 202
    lose()
    assert open_doors(doors, {401, 403, 404}) == []


@pytest.mark.parametrize("name", LOSSES)
def test_what_was_copied_by_a_role_goes_with_it(scene: Scene, name: str) -> None:
    """A snapshot that was taken as an editor starts nothing any more."""
    row = running(scene)
    make_grant(scene.image, scene.stranger, Role.VIEWER)
    lose = LOSSES[name](scene, row)
    client = api_client(scene.stranger)
    assert client.post(f"{URL}{row.pk}/snapshot/", {"name": "saved"}).status_code == 202
    Image.objects.filter(name="saved").update(status="finished", engine_id="sha256:1")
    saved = Image.objects.get(name="saved")
    body = scene.body(name="mine", image=str(saved.pk))
    assert client.post(URL, body).status_code == 201
    mine = Workspace.objects.get(name="mine")
    observe(mine, "running")
    lose()
    doors: dict[str, Callable[[], Answer]] = {
        "new workspace": lambda: client.post(URL, scene.body(name="more", image=str(saved.pk))),
        "redeploy": lambda: client.post(f"{URL}{mine.pk}/redeploy/"),
        "edit": lambda: client.patch(f"{URL}{mine.pk}/", {"command": ["x"]}),
        "clone": lambda: client.post(f"{URL}{mine.pk}/clone/", {"name": "more"}),
        "snapshot": lambda: client.post(f"{URL}{mine.pk}/snapshot/", {"name": "more"}),
    }
    assert open_doors(doors, {400, 401, 403, 404, 409}) == []


@pytest.mark.parametrize("held", ["grant", "group"])
def test_without_the_right_terminal_nothing_is_copied(scene: Scene, held: str) -> None:
    row = running(scene)
    make_grant(scene.image, scene.stranger, Role.VIEWER)
    who = {"user": "stranger"} if held == "grant" else {"group": make_group(scene.stranger).name}
    grants(scene, row, {**who, "role": "editor"})
    doors = workspace_doors(scene.stranger, row)
    with undone():
        assert doors["snapshot"]().status_code == 202
    grants(scene, row, {**who, "role": "editor", "rights": ["inspect"]})
    copies = {name: doors[name] for name in ("clone", "snapshot")}
    assert open_doors(copies, {403}) == []
    with undone():
        assert doors["redeploy"]().status_code == 202


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("kind", ["stack", "image"])
def test_without_a_role_no_door_of_a_stack_or_image_is_left(
    scene: Scene, kind: str, name: str
) -> None:
    thing: Any = scene.image if kind == "image" else make_stack(scene.host, scene.owner)
    lose = LOSSES[name](scene, thing)
    client, url = api_client(scene.stranger), f"{API}{kind}s/{thing.pk}/"
    change = {"name": "other"} if kind == "image" else {"poll_interval": 60}
    doors: dict[str, Callable[[], Answer]] = {"edit": lambda: client.patch(url, change)}
    if kind == "stack":
        doors |= {
            "deploy": lambda: client.post(f"{url}deploy/"),
            "sync": lambda: client.post(f"{url}sync/"),
            "rollback": lambda: client.post(f"{url}rollback/", {"revision": 1}),
            "variables": lambda: client.patch(url, {"variables": {"A": "b"}}),
        }
    else:
        doors |= {
            "build": lambda: client.post(f"{url}build/"),
            "check": lambda: client.post(f"{url}check/"),
            "cancel": lambda: client.post(f"{url}cancel/"),
        }
    lose()
    assert open_doors(doors, {401, 403, 404}) == []


# --- quotas ----------------------------------------------------------------------------------


def quota(scene: Scene, subject: str, **limits: Any) -> None:
    if subject == "user":
        url = f"{API}users/{scene.owner.pk}/quota/"
    else:
        url = f"{API}groups/{make_group(scene.owner).pk}/quota/"
    assert api_client(scene.admin).put(url, limits).status_code == 200


@pytest.mark.parametrize("subject", ["user", "group"])
@pytest.mark.parametrize(
    "limits",
    [{"workspaces": 0}, {"cpus": 0}, {"memory_bytes": 1}],
    ids=str,
)
def test_under_a_lowered_quota_nothing_more_is_started(
    scene: Scene, subject: str, limits: dict[str, Any]
) -> None:
    """What runs goes on and may be made anew as it is: nothing rises."""
    row = scene.create(cpus=1, memory_bytes=64 * 1024**2)
    observe(row, "running")
    off = scene.create(name="off", cpus=1, memory_bytes=64 * 1024**2, desired_state="stopped")
    observe(off, "stopped")
    client = scene.client()
    client.patch(f"{URL}{row.pk}/", {"cpus": 2, "memory_bytes": 128 * 1024**2})
    client.patch(f"{URL}{row.pk}/", {"cpus": 1, "memory_bytes": 64 * 1024**2})
    heir = make_user("heir")
    make_capability(scene.host, heir, Capability.WORKSPACES)
    with_size = {"cpus": 1, "memory_bytes": 64 * 1024**2}
    quota(scene, subject, **limits)
    bigger = {"cpus": 2, "memory_bytes": 128 * 1024**2}
    doors: dict[str, Callable[[], Answer]] = {
        "new workspace": lambda: client.post(URL, scene.body(name="new", **with_size)),
        "clone": lambda: client.post(f"{URL}{row.pk}/clone/", {"name": "copy"}),
    }
    if "workspaces" not in limits:
        # The number of workspaces stays the same by these.
        doors |= {
            "start": lambda: client.post(f"{URL}{off.pk}/start/"),
            "redeploy of a stopped one": lambda: client.post(f"{URL}{off.pk}/redeploy/"),
            "edit": lambda: client.patch(f"{URL}{row.pk}/", bigger),
            "rollback": lambda: client.post(f"{URL}{row.pk}/rollback/", {"revision": 2}),
            "edit that starts": lambda: client.patch(
                f"{URL}{off.pk}/", {"desired_state": "running"}
            ),
        }
    assert open_doors(doors, {400}) == []
    for door in doors.values():
        with undone():
            assert door().json()["code"] == "quota_exceeded"
    assert client.post(f"{URL}{row.pk}/redeploy/").status_code == 202
    assert client.post(f"{URL}{row.pk}/stop/").status_code == 202


@pytest.mark.parametrize("subject", ["user", "group"])
def test_under_a_lowered_quota_of_disk_no_image_is_made(scene: Scene, subject: str) -> None:
    row = running(scene)
    Image.objects.filter(pk=scene.image.pk).update(size_bytes=10)
    own = make_image(scene.host, scene.owner, "own", kind="build")
    quota(scene, subject, disk_bytes=1)
    client = scene.client()
    body = {"name": "n", "host": str(scene.host.pk), "kind": "pull", "reference": "busybox"}
    doors: dict[str, Callable[[], Answer]] = {
        "snapshot": lambda: client.post(f"{URL}{row.pk}/snapshot/", {"name": "saved"}),
        "new image": lambda: client.post(f"{API}images/", body),
        "build": lambda: client.post(f"{API}images/{own.pk}/build/"),
    }
    assert open_doors(doors, {400}) == []
    assert client.post(f"{URL}{row.pk}/redeploy/").status_code == 202


@pytest.mark.parametrize("subject", ["user", "group"])
def test_a_hand_over_takes_room_in_the_new_owners_quota(scene: Scene, subject: str) -> None:
    row = running(scene)
    heir = make_user("heir")
    group = make_group(heir)
    url = f"users/{heir.pk}" if subject == "user" else f"groups/{group.pk}"
    api_client(scene.admin).put(f"{API}{url}/quota/", {"workspaces": 0})
    answer = scene.client().post(f"{URL}{row.pk}/transfer/", {"owner": "heir"})
    assert (answer.status_code, answer.json()["code"]) == (400, "quota_exceeded")
