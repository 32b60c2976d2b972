"""Creation of workspaces: what is stored, what is refused, and what the host is told."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import AnonymousUser

from hosts.models import Host
from tests.factories import make_host, make_image, make_network, make_volume
from tests.workspaces.scene import CANARY
from trailer.errors import Invalid, NotAllowed
from trailer.sealed import unseal, unseal_mapping
from workspaces.models import EnvVar, Event, Revision, Workspace
from workspaces.services import workspace_create, workspace_stop
from workspaces.status import workspace_status

if TYPE_CHECKING:
    from tests.workspaces.scene import Scene


def refused(scene: Scene, actor: Any = None, **fields: Any) -> dict[str, list[str]]:
    before = Workspace.objects.count()
    with pytest.raises(Invalid) as caught:
        workspace_create(actor=actor or scene.owner, data=scene.body(**fields))
    assert Workspace.objects.count() == before
    return caught.value.fields


@pytest.mark.parametrize(
    "name", ["trailer.example.com", "TRAILER.example.com", "intern.example.org"]
)
def test_the_servers_own_name_is_no_workspaces_address(
    scene: Scene, name: str, settings: Any
) -> None:
    settings.TRAILER_PUBLIC_URL = "https://trailer.example.com"
    settings.ALLOWED_HOSTS = ["trailer.example.com", "intern.example.org"]
    subdomain, _, domain = name.partition(".")
    url = {"subdomain": subdomain, "domain": domain, "port": 80, "auth": "public"}
    sentences = refused(scene, urls=[url])
    assert "this server" in sentences["urls.0.subdomain"][0]
    scene.create(urls=[{**url, "subdomain": "box"}])


def test_a_new_workspace_belongs_to_its_maker_and_waits_for_deployment(scene: Scene) -> None:
    workspace = scene.create_full()
    assert workspace.owner == scene.owner
    assert workspace.revision == 1
    assert workspace.observed_revision == 0
    assert workspace_status(workspace) == "deployment_pending"
    assert [mount.volume_id for mount in workspace.mounts.all()] == [scene.volume.pk]
    assert list(workspace.networks.all()) == [scene.network]


def test_a_plain_workspace_removes_nothing_first(
    scene: Scene, django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(20) as asked:
        scene.create()
    assert not [one for one in asked.captured_queries if one["sql"].startswith("DELETE")]


def test_a_workspace_made_stopped_shows_stopped(scene: Scene) -> None:
    assert workspace_status(scene.create(desired_state="stopped")) == "stopped"


def test_creation_is_in_the_ledger_and_in_the_revisions(scene: Scene) -> None:
    workspace = scene.create_full()
    event = Event.objects.get(workspace=workspace)
    assert (event.kind, event.actor, event.revision) == ("created", scene.owner, 1)
    revision = Revision.objects.get(workspace=workspace)
    assert revision.actor == scene.owner
    assert revision.fields["env"] == {"MODE": "test"}
    assert unseal_mapping(revision, "secret_env_token") == {"PASSWORD": CANARY}


def test_secrets_are_encrypted_in_the_table(scene: Scene) -> None:
    scene.create_full()
    row = EnvVar.objects.get(is_secret=True)
    assert row.value == ""
    assert CANARY not in row.secret_token
    assert unseal(row, "secret_token") == CANARY


def test_creation_outdates_the_hosts_document(scene: Scene) -> None:
    before = scene.host.desired_version
    scene.create()
    assert Host.objects.get(pk=scene.host.pk).desired_version > before


def test_a_refused_creation_leaves_nothing_behind(scene: Scene) -> None:
    version = Host.objects.get(pk=scene.host.pk).desired_version
    refused(scene, memory_bytes=2**50)
    assert not Event.objects.exists()
    assert Host.objects.get(pk=scene.host.pk).desired_version == version


def test_a_name_is_taken_once_per_host(scene: Scene) -> None:
    scene.create()
    assert "already a workspace box" in refused(scene)["name"][0]
    other = make_host()
    image = make_image(other, scene.owner)
    assert scene.create(host=str(other.pk), image=str(image.pk)).host == other


@pytest.mark.parametrize(("first", "second"), [("box", "box-next"), ("box-next", "box")])
def test_the_name_of_a_replacement_is_not_given_away(
    scene: Scene, first: str, second: str
) -> None:
    scene.create(name=first)
    assert "-next" in refused(scene, name=second)["name"][0]


@pytest.mark.parametrize(
    ("held", "wanted", "clash"),
    [
        ({}, {}, True),
        ({}, {"host_ip": "127.0.0.1"}, True),
        ({"host_ip": "127.0.0.1"}, {}, True),
        ({"host_ip": "0.0.0.0"}, {"host_ip": "127.0.0.1"}, True),
        ({"host_ip": "::"}, {"host_ip": "127.0.0.1"}, True),
        ({"host_ip": "127.0.0.1"}, {"host_ip": "127.0.0.1"}, True),
        ({"host_ip": "127.0.0.1"}, {"host_ip": "127.0.0.2"}, False),
        ({"host_ip": "0.0.0.0"}, {"host_ip": "::1"}, False),
        ({"protocol": "udp"}, {}, False),
        ({"host_port": 8081}, {}, False),
    ],
)
def test_a_host_port_has_one_holder(
    scene: Scene, held: dict[str, Any], wanted: dict[str, Any], clash: bool
) -> None:
    base = {"container_port": 80, "host_port": 8080}
    scene.create(name="holder", ports=[{**base, **held}], desired_state="stopped")
    ports = [{"container_port": 22}, {**base, **wanted}]
    if clash:
        assert "holder" in refused(scene, ports=ports)["ports.1.host_port"][0]
    else:
        assert scene.create(ports=ports).ports.count() == 2


def test_the_same_host_port_is_free_on_another_host(scene: Scene) -> None:
    ports = [{"container_port": 80, "host_port": 8080}]
    scene.create(ports=ports)
    other = make_host()
    image = make_image(other, scene.owner)
    made = scene.create(host=str(other.pk), image=str(image.pk), ports=ports)
    assert made.ports.get().host_port == 8080


def test_an_address_has_one_holder_on_all_hosts_and_the_holder_is_not_named(scene: Scene) -> None:
    urls = [{"subdomain": "app", "domain": "example.com", "port": 80}]
    scene.create(name="hidden", urls=urls)
    other = make_host()
    image = make_image(other, scene.owner)
    sentences = refused(scene, host=str(other.pk), image=str(image.pk), urls=urls)
    assert "hidden" not in sentences["urls.0.subdomain"][0]
    scene.create(urls=[{**urls[0], "domain": "example.org"}])


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"memory_bytes": 16 * 1024**3 + 1}, "memory_bytes"),
        ({"cpus": 8.001}, "cpus"),
        ({"gpus": {"count": 2}}, "gpus.count"),
        ({"gpus": {"device_ids": ["GPU-b"]}}, "gpus.device_ids"),
    ],
)
def test_a_host_gives_no_more_than_it_has(
    scene: Scene, fields: dict[str, Any], where: str
) -> None:
    Host.objects.filter(pk=scene.host.pk).update(gpus=[{"id": "GPU-a", "name": "x", "index": 0}])
    assert "local" in refused(scene, **fields)[where][0]


def test_all_that_a_host_has_may_be_asked_for(scene: Scene) -> None:
    Host.objects.filter(pk=scene.host.pk).update(gpus=[{"id": "GPU-a", "name": "x", "index": 0}])
    made = scene.create(memory_bytes=16 * 1024**3, cpus=8, gpus={"count": 1})
    assert (made.memory_bytes, made.cpus, made.gpus) == (16 * 1024**3, Decimal(8), {"count": 1})
    for name, device in (("by-id", "GPU-a"), ("by-index", "0")):
        workspace_stop(actor=scene.owner, workspace=made)
        made = scene.create(name=name, gpus={"device_ids": [device]})
        assert made.gpus == {"device_ids": [device]}


def test_a_host_never_seen_has_no_known_limits(scene: Scene) -> None:
    host = make_host(online=False)
    image = make_image(host, scene.owner)
    made = scene.create(
        host=str(host.pk), image=str(image.pk), memory_bytes=2**45, cpus=500, gpus={"count": 9}
    )
    assert (made.memory_bytes, made.cpus, made.gpus) == (2**45, Decimal(500), {"count": 9})


def test_the_image_must_be_enabled_visible_and_on_the_host(scene: Scene) -> None:
    elsewhere = make_image(make_host(), scene.owner)
    disabled = make_image(scene.host, scene.owner, enabled=False)
    foreign = make_image(scene.host, scene.stranger)
    assert "another host" in refused(scene, image=str(elsewhere.pk))["image"][0]
    assert "disabled" in refused(scene, image=str(disabled.pk))["image"][0]
    assert "no such image" in refused(scene, image=str(foreign.pk))["image"][0]
    missing = "00000000-0000-4000-8000-000000000000"
    assert "no such image" in refused(scene, image=missing)["image"][0]


def test_volumes_and_networks_must_be_visible_and_on_the_host(scene: Scene) -> None:
    other = make_host()
    for volume in (make_volume(other, scene.owner), make_volume(scene.host, scene.stranger)):
        mounts = [{"volume": str(volume.pk), "target": "/data"}]
        assert "mounts.0.volume" in refused(scene, mounts=mounts)
    for network in (make_network(other, scene.owner), make_network(scene.host, scene.stranger)):
        assert "networks" in refused(scene, networks=[str(network.pk)])


def test_an_admin_may_use_everybodys_objects(scene: Scene) -> None:
    workspace = workspace_create(actor=scene.admin, data=scene.full_body())
    assert workspace.owner == scene.admin


def test_an_unknown_host_is_a_bad_field(scene: Scene) -> None:
    missing = "00000000-0000-4000-8000-000000000000"
    assert "no such host" in refused(scene, host=missing)["host"][0]


def test_only_an_admin_may_nest_virtualisation(scene: Scene) -> None:
    with pytest.raises(NotAllowed):
        scene.create(nested_virtualization=True)
    data = scene.body(nested_virtualization=True)
    assert workspace_create(actor=scene.admin, data=data).nested_virtualization


def test_nobody_creates_without_signing_in(scene: Scene) -> None:
    with pytest.raises(NotAllowed):
        workspace_create(actor=AnonymousUser(), data=scene.body())


def test_nested_virtualisation_is_refused_where_the_host_has_none(scene: Scene) -> None:
    data = scene.body(nested_virtualization=True)
    Host.objects.filter(pk=scene.host.pk).update(capabilities=["workspaces"])
    with pytest.raises(Invalid, match="/dev/kvm, which the host local does not have"):
        workspace_create(actor=scene.admin, data=data)
    Host.objects.filter(pk=scene.host.pk).update(capabilities=["nested_virtualization"])
    assert workspace_create(actor=scene.admin, data=data).nested_virtualization
