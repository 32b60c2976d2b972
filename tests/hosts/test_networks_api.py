"""Networks over REST: who may, what is refused, and what deleting does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hosts.models import Host, Network, Tombstone
from tests.factories import (
    api_client,
    make_capability,
    make_host,
    make_network,
    make_workspace,
)
from trailer.access.models import Capability

if TYPE_CHECKING:
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db
URL = "/api/v1/networks/"


def test_a_network_is_seen_by_its_owner_and_admins_only(
    host: Host, owner: User, stranger: User, admin: User
) -> None:
    network = make_network(host, owner)
    for actor, count, status in ((owner, 1, 200), (admin, 1, 200), (stranger, 0, 404)):
        client = api_client(actor)
        assert client.get(URL).json()["count"] == count
        assert client.get(f"{URL}{network.pk}/").status_code == status
        assert client.patch(f"{URL}{network.pk}/", {}).status_code == status
    assert api_client(stranger).delete(f"{URL}{network.pk}/").status_code == 404
    assert api_client().get(URL).status_code == 401
    assert Network.objects.exists()


def test_a_bridge_needs_only_a_name_and_a_host(host: Host, owner: User) -> None:
    before = host.desired_version
    answer = api_client(owner).post(URL, {"name": "lab", "host": str(host.pk)})
    assert answer.status_code == 201
    body = answer.json()
    assert (body["driver"], body["internal"], body["status"]) == ("bridge", False, "pending")
    assert (body["owner"], body["host"]) == ("olga", str(host.pk))
    host.refresh_from_db()
    assert host.desired_version == before + 1


def test_a_macvlan_with_all_it_needs_is_taken(host: Host, owner: User) -> None:
    make_capability(host, owner, Capability.ADDRESSES)
    body = {
        "name": "lan",
        "host": str(host.pk),
        "driver": "macvlan",
        "parent_interface": "eth0",
        "subnet": "192.168.1.0/24",
        "gateway": "192.168.1.1",
        "ip_range": "192.168.1.128/25",
    }
    answer = api_client(owner).post(URL, body)
    assert answer.status_code == 201
    assert {name: answer.json()[name] for name in body} == body


MACVLAN = {
    "driver": "macvlan",
    "parent_interface": "eth0",
    "subnet": "192.168.1.0/24",
    "gateway": "192.168.1.1",
}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": "Lab"}, "name"),
        ({"name": "-lab"}, "name"),
        ({"name": "lab_1"}, "name"),
        ({"name": "a" * 64}, "name"),
        ({"name": "taken"}, "name"),
        ({"name": "lab\n"}, "name"),
        ({"host": "not-a-uuid"}, "host"),
        ({"host": 5}, "host"),
        ({"host": "00000000-0000-0000-0000-000000000000"}, "host"),
        ({"driver": "overlay"}, "driver"),
        ({"driver": None}, "driver"),
        ({"internal": "no"}, "internal"),
        ({"subnet": "192.168.1.1/24"}, "subnet"),
        ({"subnet": "10.5.1.0/24"}, "subnet"),
        ({"gateway": "10.0.0.1"}, "gateway"),
        ({"subnet": "192.168.1.0/24"}, "subnet"),
        ({"subnet": "192.168.2.0/24", "gateway": "10.0.0.1"}, "gateway"),
        ({"parent_interface": "eth0"}, "parent_interface"),
        (MACVLAN | {"parent_interface": ""}, "parent_interface"),
        (MACVLAN | {"parent_interface": "eth9"}, "parent_interface"),
        (MACVLAN | {"subnet": "", "gateway": ""}, "subnet"),
        (MACVLAN | {"gateway": ""}, "gateway"),
        ({"owner": "stan"}, "owner"),
        ({"status": "created"}, "status"),
    ],
)
def test_bad_input_is_refused_under_its_field(
    host: Host, owner: User, fields: dict[str, Any], field: str
) -> None:
    make_capability(host, owner, Capability.ADDRESSES)
    make_network(host, owner, name="taken", subnet="10.5.0.0/16")
    answer = api_client(owner).post(URL, {"name": "lab", "host": str(host.pk)} | fields)
    assert answer.status_code == 400
    assert field in answer.json()["fields"]
    assert Network.objects.count() == 1


def test_any_interface_is_taken_while_the_hosts_are_unknown(owner: User) -> None:
    host = make_host(online=False)
    make_capability(host, owner, Capability.ADDRESSES)
    body = {"name": "lan", "host": str(host.pk), **MACVLAN, "parent_interface": "eth9"}
    assert api_client(owner).post(URL, body).status_code == 201


def test_the_same_name_on_another_host_is_free(host: Host, owner: User) -> None:
    make_network(host, owner, name="lab")
    other = make_host()
    answer = api_client(owner).post(URL, {"name": "lab", "host": str(other.pk)})
    assert answer.status_code == 201


@pytest.mark.parametrize(
    ("name", "value"),
    [("name", "other"), ("driver", "macvlan"), ("subnet", "10.0.0.0/24"), ("internal", True)],
)
def test_a_network_can_not_be_changed(owner: User, name: str, value: object) -> None:
    network = make_network(owner=owner)
    answer = api_client(owner).patch(f"{URL}{network.pk}/", {name: value})
    assert answer.status_code == 400
    assert name in answer.json()["fields"]


def test_present_values_may_be_sent_back(owner: User) -> None:
    network = make_network(owner=owner, name="lab")
    body = {"name": "lab", "host": str(network.host_id), "driver": "bridge"}
    assert api_client(owner).patch(f"{URL}{network.pk}/", body).status_code == 200
    other = {"host": str(make_host().pk)}
    assert api_client(owner).patch(f"{URL}{network.pk}/", other).status_code == 400


def test_a_network_in_use_is_not_deleted_and_says_by_what(owner: User) -> None:
    network = make_network(owner=owner)
    workspace = make_workspace(network.host, owner, name="lab")
    workspace.networks.add(network)
    answer = api_client(owner).delete(f"{URL}{network.pk}/")
    assert (answer.status_code, answer.json()["code"]) == (409, "in_use")
    assert "lab" in answer.json()["message"]
    assert not Tombstone.objects.exists()


def test_a_deleted_network_leaves_an_order_to_remove_it(owner: User) -> None:
    network = make_network(owner=owner, name="lab")
    assert api_client(owner).delete(f"{URL}{network.pk}/").status_code == 204
    stone = Tombstone.objects.get()
    assert (stone.kind, stone.object_id, stone.name) == ("network", network.pk, "trailer-lab")
    assert not Network.objects.exists()


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("name=a", ["a"]),
        ("status=error", ["b"]),
        ("driver=macvlan", []),
        ("search=ALPHA", ["a"]),
        ("ordering=-name", ["b", "a"]),
    ],
)
def test_lists_are_filtered(host: Host, owner: User, query: str, names: list[str]) -> None:
    make_network(host, owner, name="a")
    make_network(make_host("zeta"), owner, name="b", status="error")
    rows = api_client(owner).get(f"{URL}?{query}").json()["results"]
    assert [row["name"] for row in rows] == names


def test_a_list_is_filtered_by_host(host: Host, owner: User) -> None:
    make_network(host, owner, name="a")
    make_network(make_host(), owner, name="b")
    rows = api_client(owner).get(f"{URL}?host={host.pk}").json()["results"]
    assert [row["name"] for row in rows] == ["a"]


@pytest.mark.parametrize("query", ["host=not-a-uuid", "host=5", "status=x", "driver=%00"])
def test_malformed_filters_are_refused(owner: User, query: str) -> None:
    assert api_client(owner).get(f"{URL}?{query}").status_code == 400


def test_lists_take_the_same_queries_however_many_networks_there_are(
    host: Host, owner: User, django_assert_max_num_queries: Any
) -> None:
    client = api_client(owner)
    client.get(URL)
    for number in range(10):
        make_network(make_host() if number % 2 else host, owner)
    with django_assert_max_num_queries(3):
        assert client.get(URL).json()["count"] == 10
