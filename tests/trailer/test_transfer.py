"""Handing over: the same for workspaces, images, volumes, networks and stacks."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection

from hosts.services.networks import network_delete
from hosts.services.transfer import network_transfer, volume_transfer
from hosts.services.volumes import volume_delete
from images.services.images import image_delete, image_update
from images.services.transfer import image_transfer
from tests.factories import (
    api_client,
    make_bind,
    make_grant,
    make_host,
    make_image,
    make_network,
    make_stack,
    make_user,
    make_volume,
    make_workspace,
)
from trailer.access.grants import grants_replace
from trailer.access.models import Capability, Grant, HostCapability, Quota, Role
from trailer.audit.models import AuditEntry
from trailer.errors import ApplicationError, Conflict, Invalid, NotAllowed, NotFound
from workspaces.services import workspace_delete, workspace_transfer, workspace_update
from workspaces.stacks.services.stacks import stack_delete, stack_update
from workspaces.stacks.services.transfer import stack_transfer

if TYPE_CHECKING:
    from hosts.models import Host
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db
MAKERS: dict[str, Any] = {
    "workspace": make_workspace,
    "image": make_image,
    "volume": make_volume,
    "network": make_network,
    "stack": make_stack,
}
SERVICES: dict[str, Any] = {
    "workspace": workspace_transfer,
    "image": image_transfer,
    "volume": volume_transfer,
    "network": network_transfer,
    "stack": stack_transfer,
}
DELETIONS: dict[str, Any] = {
    "workspace": workspace_delete,
    "image": image_delete,
    "volume": volume_delete,
    "network": network_delete,
    "stack": stack_delete,
}
EDITS: dict[str, Any] = {
    "workspace": partial(workspace_update, data={"description": "mine"}),
    "image": partial(image_update, name="mine"),
    "stack": partial(stack_update, description="mine"),
}
COUNTED = {"workspace", "image", "stack"}
every_kind = pytest.mark.parametrize("kind", MAKERS)


def url(row: Any) -> str:
    return f"/api/v1/{row._meta.model_name}s/{row.pk}/"


def hand_over(actor: User, row: Any, owner: str, **fields: Any) -> Any:
    kind = row._meta.model_name
    return SERVICES[kind](actor=actor, **{kind: row}, owner=owner, **fields)


def fresh(row: Any) -> Any:
    return type(row).objects.get(pk=row.pk)


@every_kind
def test_the_former_owner_stays_as_a_manager_and_it_is_written_down(
    kind: str, host: Host, owner: User, stranger: User
) -> None:
    row = MAKERS[kind](host, owner)
    make_grant(row, stranger, Role.VIEWER)
    answer = api_client(owner).post(f"{url(row)}transfer/", {"owner": "stan"})
    assert (answer.status_code, answer.json()["owner"]) == (202, "stan"), answer.content
    assert answer.json()["id"] == str(row.pk)
    assert (fresh(row).owner, fresh(row).revision) == (stranger, row.revision)
    assert [(g.user, g.role) for g in Grant.objects.all()] == [(owner, Role.MANAGER)]
    [entry] = AuditEntry.objects.filter(action=f"{kind}.transfer")
    assert (entry.actor_name, entry.object_id) == ("olga", str(row.pk))
    again = api_client(owner).post(f"{url(row)}transfer/", {"owner": "olga"})
    assert again.status_code == 403


@every_kind
def test_only_the_owner_and_administrators_hand_over(
    kind: str, host: Host, owner: User, stranger: User, admin: User
) -> None:
    row = MAKERS[kind](host, owner)
    make_grant(row, stranger, Role.MANAGER)
    body = {"owner": "nobody-of-this-name"}
    # Not even whether there is such a user.
    assert api_client(stranger).post(f"{url(row)}transfer/", body).status_code == 403
    answer = api_client(admin).post(f"{url(row)}transfer/", {"owner": str(stranger.pk)})
    assert (answer.status_code, answer.json()["owner"]) == (202, "stan")


@every_kind
@pytest.mark.parametrize("body", [{}, {"owner": None}, {"owner": 5}, {"owner": "x"}, {"to": "x"}])
def test_nobody_is_no_owner(kind: str, body: Any, host: Host, owner: User) -> None:
    row = MAKERS[kind](host, owner)
    answer = api_client(owner).post(f"{url(row)}transfer/", body)
    assert answer.status_code == 400
    assert answer.json()["fields"]
    assert fresh(row).owner == owner


@every_kind
def test_a_deactivated_user_is_given_nothing(kind: str, host: Host, owner: User) -> None:
    row = MAKERS[kind](host, owner)
    make_user("gone", is_active=False)
    with pytest.raises(Invalid, match="gone is deactivated"):
        hand_over(owner, row, "gone")


@pytest.mark.parametrize(
    ("kind", "capability"),
    [
        ("workspace", Capability.WORKSPACES),
        ("image", Capability.IMAGES),
        ("volume", Capability.VOLUMES),
        ("network", Capability.NETWORKS),
        ("stack", Capability.WORKSPACES),
    ],
)
def test_the_new_owner_must_be_allowed_to_make_such_a_thing_there(
    kind: str, capability: str, host: Host, owner: User, stranger: User, settings: Any
) -> None:
    settings.TRAILER_OPEN_HOSTS = False
    row = MAKERS[kind](host, owner)
    with pytest.raises(Invalid) as caught:
        hand_over(owner, row, "stan")
    sentence = f"stan may not create {capability} on host {host.name}."
    assert caught.value.fields == {"owner": [sentence]}
    HostCapability.objects.create(user=stranger, host_id=host.pk, capability=capability)
    hand_over(owner, row, "stan")
    assert fresh(row).owner == stranger


def test_a_folder_of_the_host_is_given_only_to_who_may_mount_one(
    host: Host, admin: User, stranger: User
) -> None:
    bind = make_bind(host, admin)
    with pytest.raises(Invalid, match="stan may not mount folders of host alpha"):
        hand_over(admin, bind, "stan")
    HostCapability.objects.create(user=stranger, host_id=host.pk, capability=Capability.BIND)
    hand_over(admin, bind, "stan")
    assert fresh(bind).owner == stranger


@every_kind
def test_a_quota_makes_the_former_owner_a_viewer_of_what_it_counts(
    kind: str, host: Host, owner: User, stranger: User
) -> None:
    Quota.objects.create(user=owner, workspaces=5)
    row = MAKERS[kind](host, owner)
    hand_over(owner, row, "stan")
    held = Role.VIEWER if kind in COUNTED else Role.MANAGER
    assert [(g.user, g.role) for g in Grant.objects.all()] == [(owner, held)]


@every_kind
def test_an_outdated_view_hands_nothing_over(
    kind: str, host: Host, owner: User, stranger: User
) -> None:
    row = MAKERS[kind](host, owner)
    client = api_client(owner)
    answer = client.post(f"{url(row)}transfer/", {"owner": "stan"}, HTTP_IF_MATCH="7")
    assert (answer.status_code, answer.json()["code"]) == (409, "revision_moved")
    assert fresh(row).owner == owner
    answer = client.post(f"{url(row)}transfer/", {"owner": "stan"}, HTTP_IF_MATCH="1")
    assert answer.status_code == 202


@every_kind
def test_who_was_overtaken_by_another_hand_over_has_nothing_left_to_give(
    kind: str, host: Host, owner: User, stranger: User
) -> None:
    """`row` is what a request had read before it waited for the lock."""
    row = MAKERS[kind](host, owner)
    make_user("eva")
    hand_over(owner, fresh(row), "stan")
    with pytest.raises(NotAllowed):
        hand_over(owner, row, "eva")
    hand_over(owner, row, "stan")
    assert fresh(row).owner == stranger


@every_kind
def test_a_deletion_and_a_hand_over_at_once_leave_one_of_them(
    kind: str, host: Host, owner: User, stranger: User
) -> None:
    delete, name = DELETIONS[kind], {"confirm": "data"} if kind == "volume" else {}
    Quota.objects.create(user=owner, workspaces=9)
    row, other = MAKERS[kind](host, owner, "data"), MAKERS[kind](host, owner)
    hand_over(owner, fresh(row), "stan")
    if kind in COUNTED:
        with pytest.raises(NotAllowed):
            delete(actor=owner, **{kind: row}, **name)
        assert fresh(row).owner == stranger
    stale = fresh(other)
    type(other).objects.filter(pk=other.pk).delete()
    with pytest.raises(NotFound, match="deleted it meanwhile"):
        hand_over(owner, stale, "stan")


@pytest.mark.parametrize("kind", EDITS)
def test_an_edit_that_waited_for_a_hand_over_is_judged_anew(
    kind: str, host: Host, owner: User, stranger: User
) -> None:
    Quota.objects.create(user=owner, workspaces=9)
    row = MAKERS[kind](host, owner)
    hand_over(owner, fresh(row), "stan")
    with pytest.raises(NotAllowed):
        EDITS[kind](actor=owner, **{kind: row})
    EDITS[kind](actor=stranger, **{kind: fresh(row)})
    assert (fresh(row).owner, fresh(row).revision) == (stranger, 2)
    with pytest.raises(Conflict):
        hand_over(stranger, fresh(row), "olga", expected_revision=1)


@every_kind
def test_a_list_of_grants_that_waited_for_a_hand_over_is_judged_anew(
    kind: str, host: Host, owner: User, stranger: User
) -> None:
    Quota.objects.create(user=owner, workspaces=9)
    row = MAKERS[kind](host, owner)
    make_user("eva")
    hand_over(owner, fresh(row), "stan")
    entries = [{"user": "stan" if kind not in COUNTED else "eva", "role": "manager"}]
    with pytest.raises(NotAllowed if kind in COUNTED else Invalid):
        grants_replace(actor=owner, obj=row, entries=entries)
    assert [g.user for g in Grant.objects.all()] == [owner]


@pytest.mark.parametrize("kind", ["image", "network", "volume"])
def test_what_belongs_to_a_stack_goes_with_the_stack(kind: str, host: Host, owner: User) -> None:
    make_user("stan")
    stack, row = make_stack(host, owner, "shop"), MAKERS[kind](host, owner, "shop-part")
    if kind == "image":
        stack.images.create(reference="busybox", image=row)
    elif kind == "network":
        stack.networks.create(key="default", network=row)
    else:
        _stack_volume(row, "shop")
    with pytest.raises(Conflict, match="shop-part belongs to the stack shop"):
        hand_over(owner, row, "stan")


def test_a_volume_of_a_stack_that_is_gone_is_handed_over(host: Host, owner: User) -> None:
    user, volume = make_user("eva"), make_volume(host, owner)
    _stack_volume(volume, "shop")
    make_stack(make_host(), owner, "shop")
    hand_over(owner, volume, "eva")
    assert fresh(volume).owner == user


def _stack_volume(volume: Any, stack_name: str) -> None:
    related = type(volume)._meta.get_field("stack_volume").related_model
    related.objects.create(volume=volume, stack_name=stack_name)


@pytest.mark.django_db(transaction=True)
def test_of_hand_overs_at_once_one_is_carried_out() -> None:
    owner = make_user("olga")
    image = make_image(owner=owner)
    names = ["ada", "bob", "eva"]
    for name in names:
        make_user(name)
    barrier = threading.Barrier(len(names))

    def give(name: str) -> str:
        barrier.wait()
        try:
            image_transfer(actor=owner, image=image, owner=name)
        except ApplicationError as error:
            return error.code
        finally:
            connection.close()
        return name

    with ThreadPoolExecutor(len(names)) as pool:
        results = list(pool.map(give, names))
    [winner] = [result for result in results if result in names]
    assert sorted(result for result in results if result != winner) == ["not_allowed"] * 2
    assert fresh(image).owner.username == winner
    assert [(g.user, g.role) for g in Grant.objects.all()] == [(owner, Role.MANAGER)]
    assert AuditEntry.objects.filter(action="image.transfer").count() == 1
