"""A workspace with one thing in it by a right, and every way in which that right is lost."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.utils import timezone

from hosts.models import Host, HostDocument
from tests.factories import (
    api_client,
    make_admin,
    make_bind,
    make_capability,
    make_grant,
    make_group,
    make_host,
    make_image,
    make_network,
    make_user,
    make_volume,
)
from tests.workspaces.scene import URL, observe
from trailer.access.models import Capability, Grant, Role
from workspaces.control.compile import documents_end
from workspaces.models import Workspace
from workspaces.selectors import workspace_get

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.contrib.auth.models import Group

    from images.models import Image
    from trailer.accounts.models import User


# --- what was gained -------------------------------------------------------------------------


@dataclass
class Gained:
    """A running workspace of `mia`, who has one thing in it by a right of `by`."""

    kind: str
    boss: User
    mia: User
    owner: User
    host: Host
    base: Image
    other_image: Image
    # Who brings it in: mia herself, or somebody else whose right then counts.
    by: User
    group: Group
    thing: Any = None
    workspace: Workspace = field(default_factory=Workspace)

    def body(self, **more: Any) -> dict[str, Any]:
        body: dict[str, Any] = {"host": str(self.host.pk), "image": str(self.base.pk)}
        return {**body, **self.parts(), **more}

    def parts(self) -> dict[str, Any]:
        """What of a workspace's fields has the thing in it."""
        if self.kind in ("volume", "reading", "bind"):
            mount = {"volume": str(self.thing.pk), "target": "/data"}
            return {"mounts": [mount | {"read_only": self.kind == "reading"}]}
        if self.kind in ("network", "addresses"):
            return {"networks": [str(self.thing.pk)]}
        if self.kind == "image":
            return {"image": str(self.thing.pk)}
        return {"nested_virtualization": True} if self.kind == "privileged" else {}

    def without(self) -> dict[str, Any]:
        if self.kind == "image":
            return {"image": str(self.other_image.pk)}
        if self.kind == "privileged":
            return {"nested_virtualization": False}
        return {name: [] for name in self.parts()}

    @cached_property
    def mias(self) -> Any:
        return api_client(self.mia)

    @cached_property
    def bosss(self) -> Any:
        return api_client(self.boss)


def gained(kind: str, *, by_admin: bool = False) -> Gained:
    boss, mia, owner = make_admin("boss"), make_user("mia"), make_user("olga")
    host = make_host("north", capabilities=["nested_virtualization"])
    base = make_image(host, mia, "base")
    scene = Gained(
        kind=kind,
        boss=boss,
        mia=mia,
        owner=owner,
        host=host,
        base=base,
        other_image=make_image(host, mia, "other"),
        by=make_admin("second") if by_admin else mia,
        group=make_group(name="lab"),
    )
    if kind in ("volume", "reading"):
        scene.thing = make_volume(host, owner, "data")
    elif kind == "network":
        scene.thing = make_network(host, owner, "lan")
    elif kind == "image":
        scene.thing = make_image(host, owner, "shared")
    elif kind == "bind":
        scene.thing = make_bind(host, scene.by, name="srv", rests_on_capability=True)
        make_grant(scene.thing, mia, Role.MANAGER)
    elif kind == "addresses":
        scene.thing = make_network(
            host, scene.by, "lan", subnet="10.9.0.0/24", rests_on_capability=True
        )
        make_grant(scene.thing, mia, Role.MANAGER)
    return scene


def run(scene: Gained) -> None:
    """Made by mia, edited once so that there is something to go back to; seen running."""
    mine = scene.by == scene.mia
    first = {} if mine else scene.without()
    answer = scene.mias.post(URL, scene.body(name="box", **first))
    assert answer.status_code == 201, answer.content
    scene.workspace = Workspace.objects.get(name="box")
    if not mine:
        answer = api_client(scene.by).patch(f"{URL}{scene.workspace.pk}/", scene.parts())
        assert answer.status_code == 200, answer.content
    assert edit(scene.mias, scene, env={"A": "1"}).status_code == 200
    seen(scene, "running")


def seen(scene: Gained, status: str, **fields: Any) -> None:
    scene.workspace = workspace_get(scene.workspace.pk)
    seq = scene.workspace.report_seq + 1
    observe(scene.workspace, status, seq=seq, **fields)
    scene.workspace = workspace_get(scene.workspace.pk)


def edit(client: Any, scene: Gained, **data: Any) -> Any:
    return client.patch(f"{URL}{scene.workspace.pk}/", data)


def act(client: Any, scene: Gained, action: str, **data: Any) -> Any:
    return client.post(f"{URL}{scene.workspace.pk}/{action}/", data)


# --- how it is lost --------------------------------------------------------------------------

Loss = tuple["Callable[[Gained], None]", "Callable[[Gained], None]"]


def _role(scene: Gained) -> Role:
    return Role.EDITOR if scene.kind == "volume" else Role.VIEWER


def _grants(scene: Gained, *entries: dict[str, Any]) -> None:
    kind = scene.thing._meta.model_name
    url = f"/api/v1/{kind}s/{scene.thing.pk}/grants/"
    answer = scene.bosss.put(url, list(entries))
    assert answer.status_code == 200, answer.content


def give(scene: Gained) -> None:
    make_grant(scene.thing, scene.mia, _role(scene))


def give_group(scene: Gained) -> None:
    scene.mia.groups.add(scene.group)
    make_grant(scene.thing, scene.group, _role(scene))


def give_hour(scene: Gained) -> None:
    soon = timezone.now() + timedelta(hours=1)
    make_grant(scene.thing, scene.mia, _role(scene), expires_at=soon)


def give_ownership(scene: Gained) -> None:
    type(scene.thing).objects.filter(pk=scene.thing.pk).update(owner=scene.mia)
    scene.thing.refresh_from_db()


def give_nothing(scene: Gained) -> None:
    """An administrator needs no grant."""


def lose_grant(scene: Gained) -> None:
    _grants(scene)


def lower_role(scene: Gained) -> None:
    _grants(scene, {"user": "mia", "role": "viewer"})


def let_expire(scene: Gained) -> None:
    """Nobody does anything: the moment passes, and a job finds it."""
    document = HostDocument.objects.get(host=scene.host)
    assert document.until is not None
    past = timezone.now() - timedelta(seconds=1)
    Grant.objects.filter(object_id=scene.thing.pk).update(expires_at=past)
    HostDocument.objects.filter(host=scene.host).update(until=past)
    assert documents_end(timezone.now()) == 1
    assert documents_end(timezone.now()) == 0


def leave_group(scene: Gained) -> None:
    url = f"/api/v1/groups/{scene.group.pk}/"
    assert scene.bosss.patch(url, {"users": []}).status_code == 200


def leave_group_as_user(scene: Gained) -> None:
    url = f"/api/v1/users/{scene.mia.pk}/"
    assert scene.bosss.patch(url, {"groups": []}).status_code == 200


def delete_group(scene: Gained) -> None:
    url = f"/api/v1/groups/{scene.group.pk}/"
    assert scene.bosss.delete(url).status_code == 204


def hand_over_object(scene: Gained) -> None:
    kind = scene.thing._meta.model_name
    url = f"/api/v1/{kind}s/{scene.thing.pk}/"
    boss = scene.bosss
    answer = boss.post(f"{url}transfer/", {"owner": scene.owner.username})
    assert answer.status_code == 202, answer.content
    # The former owner stayed as a manager until now.
    _grants(scene)


def demote(scene: Gained) -> None:
    url = f"/api/v1/users/{scene.by.pk}/"
    assert scene.bosss.patch(url, {"is_admin": False}).status_code == 200


def deactivate(scene: Gained) -> None:
    url = f"/api/v1/users/{scene.by.pk}/"
    assert scene.bosss.patch(url, {"is_active": False}).status_code == 200


def delete_user(scene: Gained) -> None:
    url = f"/api/v1/users/{scene.by.pk}/"
    assert scene.bosss.delete(url).status_code == 204


GRANTED: dict[str, Loss] = {
    "grant removed": (give, lose_grant),
    "grant ended by time": (give_hour, let_expire),
    "grant of a group removed": (give_group, lose_grant),
    "left the group": (give_group, leave_group),
    "put out of the group": (give_group, leave_group_as_user),
    "group deleted": (give_group, delete_group),
    "object handed over": (give_ownership, hand_over_object),
}
# Somebody else brought it in, who was an administrator then.
DELETED = "administrator deleted"
BY_ADMIN: dict[str, Loss] = {
    "administrator demoted": (give_nothing, demote),
    "administrator deactivated": (give_nothing, deactivate),
    DELETED: (give_nothing, delete_user),
}


def hold(*capabilities: Capability) -> Callable[[Gained], None]:
    def give_capability(scene: Gained) -> None:
        for capability in capabilities:
            make_capability(scene.host, scene.mia, capability)

    return give_capability


def hold_by_group(*capabilities: Capability) -> Callable[[Gained], None]:
    def give_capability(scene: Gained) -> None:
        scene.mia.groups.add(scene.group)
        for capability in capabilities:
            make_capability(scene.host, scene.group, capability)

    return give_capability


def lose_capability(scene: Gained) -> None:
    url = f"/api/v1/hosts/{scene.host.pk}/access/"
    entries = [{"user": "mia", "capabilities": ["view"]}]
    assert scene.bosss.put(url, entries).status_code == 200


def _capability(kind: str) -> dict[str, Loss]:
    needed = {
        "privileged": (Capability.PRIVILEGED,),
        "bind": (Capability.BIND,),
        "addresses": (Capability.NETWORKS, Capability.ADDRESSES),
        "place": (Capability.WORKSPACES,),
    }[kind]
    return {
        "capability taken back": (hold(*needed), lose_capability),
        "capability of a group taken back": (hold_by_group(*needed), lose_capability),
        "left the group with the capability": (hold_by_group(*needed), leave_group),
        "group with the capability deleted": (hold_by_group(*needed), delete_group),
    }


CELLS = [
    *((kind, name, False) for kind in ("volume", "network", "image") for name in GRANTED),
    ("reading", "grant removed", False),
    ("volume", "role lowered", False),
    *(
        (kind, name, True)
        for kind in ("volume", "network", "image", "privileged", "bind", "addresses")
        for name in BY_ADMIN
        # Who owns something is not deleted.
        if (kind, name) not in (("bind", DELETED), ("addresses", DELETED))
    ),
    *(
        (kind, name, False)
        for kind in ("privileged", "bind", "addresses", "place")
        for name in _capability(kind)
    ),
]


def loss_of(kind: str, name: str) -> Loss:
    if name == "role lowered":
        return (give, lower_role)
    if name in GRANTED:
        return GRANTED[name]
    return BY_ADMIN[name] if name in BY_ADMIN else _capability(kind)[name]
