"""Who may choose a network's addresses, and which: nobody gets addresses that the host uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from hosts.models import Network
from hosts.services.networks import network_delete
from hosts.services.transfer import network_transfer
from tests.factories import api_client, make_capability, make_group, make_host, make_network
from tests.hostile_networks import ACCEPTED, INTERFACES, REFUSED, TAKEN, named
from trailer.access.models import Capability
from trailer.errors import Invalid

if TYPE_CHECKING:
    from django.test import Client

    from hosts.models import Host
    from trailer.accounts.models import User

pytestmark = pytest.mark.django_db
URL = "/api/v1/networks/"


@pytest.fixture
def busy_host() -> Host:
    """As its agent reported it: with a LAN, a VPN, and networks on its engine."""
    return make_host(
        "busy",
        interfaces=[{"name": name} for name in INTERFACES],
        address_ranges=msgspec.to_builtins(TAKEN),
    )


def post(user: User, host: Host, **fields: str) -> Any:
    return api_client(user).post(URL, {"name": "lab", "host": str(host.pk), **fields})


def test_hostile_addresses_are_refused_to_members_and_to_who_may_choose(
    busy_host: Host, owner: User
) -> None:
    """The whole table in one test: a user of its own for each row would cost half a minute."""
    make_capability(busy_host, owner, Capability.NETWORKS)
    refused = [post(owner, busy_host, **fields) for fields, _, _ in REFUSED]
    assert {(one.status_code, one.json()["code"]) for one in refused} == {(403, "not_allowed")}
    assert all("without them the engine chooses" in one.json()["message"] for one in refused)
    make_capability(busy_host, make_group(owner), Capability.ADDRESSES)
    taken = []
    for fields, word, field in REFUSED:
        answer = post(owner, busy_host, **fields)
        sentence = " ".join(answer.json().get("fields", {}).get(field, ()))
        if answer.status_code != 400 or word not in sentence:
            taken.append((named(fields), answer.status_code, answer.json()))
    assert taken == []
    assert not Network.objects.exists()


def test_free_addresses_are_given_to_who_may_choose_and_to_nobody_else(
    busy_host: Host, owner: User, stranger: User
) -> None:
    make_capability(busy_host, make_group(owner), Capability.ADDRESSES)
    for fields in ACCEPTED:
        assert post(stranger, busy_host, **fields).status_code == 403, fields
        answer = post(owner, busy_host, **fields)
        assert answer.status_code == 201, (fields, answer.json())
        Network.objects.all().delete()


@pytest.mark.parametrize(
    "fields",
    [
        {"subnet": "10.7.0.0/24"},
        {"gateway": "10.7.0.1"},
        {"ip_range": "10.7.0.0/25"},
        {"parent_interface": "eth0"},
        {"driver": "macvlan"},
    ],
)
def test_every_choice_is_a_choice_of_addresses(
    host: Host, owner: User, fields: dict[str, str]
) -> None:
    make_capability(host, owner, Capability.NETWORKS)
    assert post(owner, host, **fields).status_code == 403
    assert post(owner, host, driver="bridge", subnet="", gateway="").status_code == 201


def test_choosing_addresses_takes_the_right_to_make_networks_too(
    host: Host, owner: User, settings: Any
) -> None:
    settings.TRAILER_OPEN_HOSTS = False
    make_capability(host, owner, Capability.ADDRESSES)
    assert post(owner, host, subnet="10.7.0.0/24").status_code == 403
    make_capability(host, owner, Capability.NETWORKS)
    assert post(owner, host, subnet="10.7.0.0/24").status_code == 201


def test_all_that_is_wrong_is_told_at_once(host: Host, admin: User) -> None:
    make_network(host, admin, name="lab")
    fields = {"driver": "macvlan", "parent_interface": "eth9", "subnet": "8.8.8.0/24"}
    answer = post(admin, host, **fields)
    assert answer.status_code == 400
    assert set(answer.json()["fields"]) == {"name", "parent_interface", "subnet", "gateway"}


def test_networks_on_one_host_keep_apart_and_name_only_what_one_may_see(
    host: Host, owner: User, stranger: User
) -> None:
    make_network(host, owner, name="secret-lab", subnet="10.5.0.0/16")
    make_network(make_host(), owner, subnet="10.6.0.0/16")
    for user in (owner, stranger):
        make_capability(host, user, Capability.ADDRESSES)
    assert (
        post(owner, host, subnet="10.5.3.0/24")
        .json()["fields"]["subnet"][0]
        .startswith("10.5.3.0/24 overlaps with 10.5.0.0/16, which the network secret-lab has.")
    )
    told = post(stranger, host, subnet="10.5.3.0/24").content.decode()
    assert "the network of somebody else" in told
    assert "secret" not in told
    assert post(stranger, host, subnet="10.6.0.0/16").status_code == 201


def test_what_the_engine_chose_for_a_network_is_taken_and_what_is_deleted_is_free(
    host: Host, owner: User
) -> None:
    """A deleted network is on the host until the agent's next cycle, which takes it away."""
    make_capability(host, owner, Capability.ADDRESSES)
    chosen = make_network(host, owner, name="old", subnet="10.5.0.0/16")
    left = make_network(host, owner, name="left")
    host.address_ranges = [
        {"cidr": "172.18.0.0/16", "network": "trailer-left", "network_id": str(left.pk)},
        {"cidr": "10.5.0.0/16", "network": "trailer-old", "network_id": str(chosen.pk)},
    ]
    host.save(update_fields=["address_ranges"])
    assert "network left" in post(owner, host, subnet="172.18.5.0/24").content.decode()
    network_delete(actor=owner, network=chosen)
    assert post(owner, host, subnet="10.5.0.0/16").status_code == 201


def test_a_report_that_makes_no_sense_takes_nothing(host: Host, admin: User) -> None:
    host.address_ranges = [{"cidr": 5}, {"cidr": "10.7.0.0/33"}, {}, {"cidr": "::%1/64"}, "x"]
    host.save(update_fields=["address_ranges"])
    assert post(admin, host, subnet="10.7.0.0/24").status_code == 201


def test_an_older_agents_interfaces_are_judged_without_their_routes(owner: User) -> None:
    old = make_host(interfaces=[{"name": "eth0", "addresses": ["10.3.0.9", "fe80::1%eth0", "?"]}])
    make_capability(old, owner, Capability.ADDRESSES)
    assert post(owner, old, subnet="10.3.0.0/24").status_code == 400
    lan = {"subnet": "10.3.0.0/24", "gateway": "10.3.0.1", "driver": "macvlan"}
    assert post(owner, old, parent_interface="eth0", **lan).status_code == 201


def test_a_network_that_exists_is_never_refused_later(host: Host, owner: User) -> None:
    """Made before there was a rule, or before the host had this LAN: its owner, who may not choose
    addresses now, goes on with it."""
    network = make_network(host, owner, name="old", subnet="192.168.1.0/24", gateway="192.168.1.1")
    body = {"name": "old", "subnet": "192.168.1.0/24", "gateway": "192.168.1.1", "ip_range": ""}
    assert api_client(owner).patch(f"{URL}{network.pk}/", body).status_code == 200
    assert api_client(owner).delete(f"{URL}{network.pk}/").status_code == 204


def test_a_network_with_chosen_addresses_is_handed_to_who_may_choose_some(
    host: Host, owner: User, stranger: User
) -> None:
    network = make_network(host, owner, subnet="10.5.0.0/16")
    with pytest.raises(Invalid, match="stan may not choose addresses or interfaces of networks"):
        network_transfer(actor=owner, network=network, owner="stan")
    make_capability(host, stranger, Capability.ADDRESSES)
    assert network_transfer(actor=owner, network=network, owner="stan").owner == stranger
    plain = make_network(host, owner)
    assert network_transfer(actor=owner, network=plain, owner="stan").owner == stranger


def test_staff_on_the_admin_pages_pass_the_same_rule(
    host: Host, admin: User, client: Client
) -> None:
    client.force_login(admin)
    fields = {"name": "lab", "host": str(host.pk), "driver": "bridge", "subnet": "8.8.8.0/24"}
    answer = client.post("/admin/hosts/network/add/", fields)
    assert answer.status_code == 200
    assert "public addresses" in answer.content.decode()
    assert not Network.objects.exists()


def test_the_form_has_fields_for_addresses_where_one_may_choose_them(
    host: Host, owner: User, client: Client
) -> None:
    make_host()
    client.force_login(owner)
    assert 'name="subnet"' not in client.get("/networks/").content.decode()
    make_capability(host, owner, Capability.ADDRESSES)
    shown = client.get("/networks/").content.decode()
    assert f'data-only-hosts="{host.pk}" hidden' in shown
    assert shown.count('name="subnet"') == 1
