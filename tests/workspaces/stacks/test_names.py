"""Names that a stack derives get out of the way of what is on the host, and adopt nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent.protocol import naming
from hosts.choices import VolumeKind
from hosts.models import Host, Network, Volume
from images.models import Image
from tests.factories import (
    api_client,
    make_admin,
    make_grant,
    make_image,
    make_network,
    make_user,
    make_volume,
    make_workspace,
)
from tests.workspaces.stacks.scene import fresh, last_sync
from trailer.access.models import Role
from workspaces.control.compile import host_state
from workspaces.models import Workspace
from workspaces.stacks.models import Stack, StackVolume
from workspaces.stacks.services.actions import stack_deploy
from workspaces.stacks.services.stacks import stack_delete, stack_update
from workspaces.stacks.services.transfer import stack_transfer
from workspaces.stacks.sync.names import is_derived

if TYPE_CHECKING:
    from tests.workspaces.stacks.scene import StackScene
    from trailer.accounts.models import User

FILE = """\
services:
  web:
    image: app:1
    volumes: [data:/data]
    networks: [default, inner]
    environment: {MODE: %s}
  db: {image: 'db:1'}
volumes: {data: }
networks: {inner: }
x-trailer: {needs: {postgres: }}
"""
# By the kind of object, what a stranger takes before the stack `shop` is made.
TAKEN = {
    "workspace": ("shop-web", "shop-db", "shop-postgres"),
    "near": ("shop-web-next",),
    "volume": ("shop-data", "shop-postgres"),
    "network": ("shop", "shop-inner"),
    "image": ("shop: app:1", "shop: db:1"),
}


@pytest.fixture
def stranger(scene: StackScene) -> User:
    return make_user("stranger")


def take(scene: StackScene, stranger: User, kind: str) -> list[Any]:
    makers: dict[str, Any] = {
        "workspace": make_workspace,
        "near": make_workspace,
        "volume": make_volume,
        "network": make_network,
        "image": make_image,
    }
    return [makers[kind](scene.host, stranger, name) for name in TAKEN[kind]]


def synced(scene: StackScene, mode: str = "one", name: str = "shop") -> Stack:
    scene.repository.push(FILE % mode)
    stack = Stack.objects.filter(name=name).first()
    if stack is None:
        stack = scene.create(name=name)
    else:
        stack_deploy(actor=stack.owner, stack=stack)
    scene.work()
    stack = fresh(stack)
    assert (stack.status, stack.message) == ("synced", "")
    return stack


def made(stack: Stack) -> dict[str, Any]:
    """Id and name of all that the stack has on its host, by the file's words."""
    rows: dict[str, Any] = {}
    for workspace in Workspace.objects.filter(stack=stack.pk):
        rows[f"workspace {workspace.service}"] = (workspace.pk, workspace.name)
        for mount in workspace.mounts.select_related("volume"):
            rows[f"volume of {workspace.service}"] = (mount.volume_id, mount.volume.name)
    for part in stack.networks.select_related("network"):
        rows[f"network {part.key}"] = (part.network_id, part.network.name)
    for image in stack.images.select_related("image"):
        rows[f"image {image.reference}"] = (image.image_id, image.image.name)
    return rows


@pytest.mark.parametrize("kind", TAKEN)
def test_names_that_somebody_took_first_keep_no_stack_from_running(
    scene: StackScene, stranger: User, kind: str
) -> None:
    theirs = take(scene, stranger, kind)
    stack = synced(scene)
    before = made(stack)
    own = {pk for pk, _ in before.values()}
    assert not own & {row.pk for row in theirs}
    for row in theirs:
        now = type(row).objects.get(pk=row.pk)
        assert (now.owner, now.name) == (stranger, row.name)
        assert not getattr(now, "stack", None)
    for model in (Workspace, Volume, Network, Image):
        mine = model.objects.filter(pk__in=own)
        assert {row.owner for row in mine} == {scene.owner}
    told = last_sync(stack).log
    assert not any(f"{row.name} " in told for row in theirs)
    # The same after the next sync of a changed file, and when the name has become free.
    synced(scene, "two")
    assert made(stack) == before
    type(theirs[0]).objects.filter(pk__in=[row.pk for row in theirs]).delete()
    synced(scene, "three")
    assert made(stack) == before


def test_only_what_clashes_gets_another_name(scene: StackScene, stranger: User) -> None:
    make_workspace(scene.host, stranger, "shop-web")
    names = {word: name for word, (_, name) in made(synced(scene)).items()}
    assert is_derived(names["workspace web"], "shop-web")
    assert names["workspace web"] != "shop-web"
    del names["workspace web"]
    assert names == {
        "workspace db": "shop-db",
        "workspace postgres": "shop-postgres",
        "volume of web": "shop-data",
        "volume of postgres": names["volume of postgres"],
        "network default": "shop",
        "network inner": "shop-inner",
        "image app:1": "shop: app:1",
        "image db:1": "shop: db:1",
        "image postgres:17": "shop: postgres:17",
    }


def test_what_a_stack_has_keeps_its_name_whatever_is_made_beside_it(
    scene: StackScene, stranger: User
) -> None:
    stack = synced(scene)
    before = made(stack)
    make_workspace(scene.host, stranger, "shop-web-next")
    Workspace.objects.filter(name="shop-web-next").update(name="shop-db-next")
    synced(scene, "two")
    assert made(stack) == before


def test_names_differ_between_stacks_and_fit_where_they_are_long(
    scene: StackScene, stranger: User
) -> None:
    name = "s" * 40
    text = "services: {%s: {image: 'app:1'}}\n" % ("w" * 22)
    make_workspace(scene.host, stranger, f"{name}-{'w' * 22}")
    scene.repository.push(text)
    stack = scene.create(name=name)
    scene.work()
    assert fresh(stack).status == "synced", fresh(stack).message
    derived = Workspace.objects.get(stack=stack.pk).name
    assert (len(derived), derived[:40]) == (63, name)


def test_services_find_each_other_by_the_service_name_all_the_same(
    scene: StackScene, stranger: User
) -> None:
    take(scene, stranger, "workspace")
    take(scene, stranger, "network")
    stack = synced(scene)
    state = host_state(Host.objects.get(pk=scene.host.pk))
    desired = {item.service: item for item in state.workspaces if item.stack_id == str(stack.pk)}
    assert set(desired) == {"web", "db", "postgres"}
    shared = str(stack.networks.get(key="default").network_id)
    assert all(shared in item.spec.network_ids for item in desired.values())
    assert naming.container_name(desired["web"].spec.name) != "trailer-shop-web"


def test_two_pairs_that_spell_one_name_do_not_share_a_folder_of_the_host(
    scene: StackScene, stranger: User
) -> None:
    scene.owner = make_admin()
    scene.repository.push("services: {web: {image: 'app:1', volumes: ['/srv/a:/data']}}\n")
    stack = scene.create()
    scene.work()
    [bind] = Volume.objects.filter(kind=VolumeKind.BIND)
    taken = bind.name
    stack_delete(actor=scene.owner, stack=fresh(stack))
    Volume.objects.all().delete()
    theirs = make_volume(scene.host, stranger, taken)
    again = scene.create()
    for _ in range(2):
        scene.work()
        assert fresh(again).status == "synced", fresh(again).message
        [mount] = scene.service("web").mounts.all()
        assert (mount.volume.source, mount.volume.owner) == ("/srv/a", scene.owner)
        assert mount.volume != theirs
        stack_deploy(actor=scene.owner, stack=fresh(again))
    assert Volume.objects.filter(kind=VolumeKind.BIND).count() == 1


@pytest.mark.parametrize("origin", ["made by hand", "left by an earlier stack"])
def test_a_manager_gets_no_volume_of_the_owner_by_a_name_that_is_derived(
    scene: StackScene, origin: str
) -> None:
    """`data` of the stack `shop` spells `shop-data`, which may be the owner's private volume."""
    if origin == "made by hand":
        private = make_volume(scene.host, scene.owner, "shop-data")
    else:
        stack_delete(actor=scene.owner, stack=synced(scene))
        private = Volume.objects.get(name="shop-data")
    manager = make_user("manager")
    scene.repository.push("services: {web: {image: 'app:1'}}\n")
    stack = scene.create()
    scene.work()
    make_grant(stack, manager, Role.MANAGER)
    stack_update(actor=manager, stack=fresh(stack), repository="https://git.example.com/b.git")
    scene.repository.push(
        "services: {web: {image: 'app:1', volumes: ['data:/d']}}\nvolumes: {data: }\n"
    )
    scene.work()
    assert fresh(stack).status == "synced", fresh(stack).message
    [mount] = scene.service("web").mounts.all()
    assert mount.volume != private
    assert is_derived(mount.volume.name, "shop-data")


def test_a_stack_that_is_made_again_finds_the_volume_of_another_name(
    scene: StackScene, stranger: User
) -> None:
    make_volume(scene.host, stranger, "shop-data")
    stack = synced(scene)
    before = scene.service("web").mounts.get().volume
    stack_delete(actor=scene.owner, stack=stack)
    again = synced(scene)
    assert scene.service("web").mounts.get().volume == before
    assert StackVolume.objects.get(volume=before).used_by == again.pk


def test_a_stack_of_the_same_name_and_another_owner_gets_volumes_of_its_own(
    scene: StackScene, stranger: User
) -> None:
    stack_delete(actor=scene.owner, stack=synced(scene))
    theirs = Volume.objects.get(name="shop-data")
    former, scene.owner = scene.owner, stranger
    stack = synced(scene)
    own = scene.service("web").mounts.get().volume
    assert (own.owner, theirs.owner) == (stranger, former)
    assert own != theirs
    # Handed over to who has the other one: each service goes on with the data that it had.
    stack_transfer(actor=stranger, stack=stack, owner=former.username)
    synced(scene, "two")
    assert scene.service("web").mounts.get().volume == own


def test_names_of_the_host_are_only_taken(scene: StackScene, stranger: User) -> None:
    """A name that clashes, and a port, are refused without a word about whose they are."""
    stack = synced(scene)
    holder = make_workspace(scene.host, scene.owner, "secret-project")
    holder.ports.create(container_port=80, protocol="tcp", host_port=8080)
    image = make_image(scene.host, stranger, "base")
    body = {"host": str(scene.host.pk), "image": str(image.pk)}
    client = api_client(stranger)

    def refused(path: str, **fields: Any) -> str:
        given = {**body, **fields}
        if path != "workspaces":
            del given["image"]
        answer = client.post(f"/api/v1/{path}/", given)
        assert answer.status_code in (400, 409), answer.content
        text: str = answer.content.decode()
        assert not {word for word in (scene.owner.username, str(stack.pk)) if word in text}
        return text

    close = refused("workspaces", name="shop-web-next")
    assert "too close to a name that is taken" in close
    assert "workspace shop-web " not in close
    taken = refused("workspaces", name="mine", ports=[{"container_port": 1, "host_port": 8080}])
    assert "held by another workspace" in taken
    assert "secret-project" not in taken
    make_grant(holder, stranger, Role.VIEWER)
    assert "secret-project" in refused(
        "workspaces", name="mine", ports=[{"container_port": 1, "host_port": 8080}]
    )
    for path, name in (("volumes", "shop-data"), ("networks", "shop"), ("workspaces", "shop-web")):
        assert "already" in refused(path, name=name)
