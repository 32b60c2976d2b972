"""The rule for chosen addresses, on a table of hostile and of honest networks."""

from __future__ import annotations

from ipaddress import IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.protocol.session import AddressRange
from agent.protocol.subnets import ChosenAddresses, address_problems, chooses_addresses
from tests.hostile_networks import ACCEPTED, REFUSED, TAKEN, named

PRIVATE = [IPv4Network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")]


@pytest.mark.parametrize(
    ("fields", "word", "field"), REFUSED, ids=[named(fields) for fields, _, _ in REFUSED]
)
def test_addresses_of_the_host_or_the_world_are_refused(
    fields: dict[str, str], word: str, field: str
) -> None:
    problems = address_problems(ChosenAddresses(**fields), TAKEN)
    assert word in problems[field]


@pytest.mark.parametrize("fields", ACCEPTED, ids=named)
def test_free_private_addresses_and_the_lan_of_a_macvlan_are_taken(fields: dict[str, str]) -> None:
    assert address_problems(ChosenAddresses(**fields), TAKEN) == {}


def test_the_table_is_as_long_as_it_must_be() -> None:
    assert len(REFUSED) >= 60


def test_without_a_choice_nothing_is_judged() -> None:
    left = ChosenAddresses()
    assert not chooses_addresses(left)
    assert address_problems(left, TAKEN) == {}
    for field in ("subnet", "gateway", "ip_range", "parent_interface"):
        assert chooses_addresses(ChosenAddresses(**{field: "x"}))
    assert chooses_addresses(ChosenAddresses(driver="macvlan"))


@given(st.integers(0, 2**32 - 1), st.integers(8, 30))
def test_outside_private_space_no_subnet_of_any_size_is_taken(number: int, prefix: int) -> None:
    subnet = IPv4Network((number, prefix), strict=False)
    problems = address_problems(ChosenAddresses(subnet=str(subnet)), ())
    assert ("subnet" in problems) == (not any(subnet.subnet_of(part) for part in PRIVATE))


@given(
    st.integers(0, 2**24 - 1), st.integers(8, 30), st.integers(0, 2**24 - 1), st.integers(8, 32)
)
def test_whatever_shares_an_address_with_the_host_is_refused(
    number: int, prefix: int, other: int, other_prefix: int
) -> None:
    ten = 10 << 24
    subnet = IPv4Network((ten + number, prefix), strict=False)
    used = IPv4Network((ten + other, other_prefix), strict=False)
    taken = (AddressRange(cidr=str(used), interface="eth1"),)
    problems = address_problems(ChosenAddresses(subnet=str(subnet)), taken)
    assert ("subnet" in problems) == subnet.overlaps(used)


@given(st.integers(0, 2**24 - 1), st.integers(8, 30), st.data())
def test_every_usable_address_of_a_subnet_may_be_its_gateway(
    number: int, prefix: int, data: st.DataObject
) -> None:
    subnet = IPv4Network(((10 << 24) + number, prefix), strict=False)
    usable = st.integers(int(subnet.network_address) + 1, int(subnet.broadcast_address) - 1)
    gateway = str(type(subnet.network_address)(data.draw(usable)))
    chosen = ChosenAddresses(subnet=str(subnet), gateway=gateway, ip_range=str(subnet))
    assert address_problems(chosen, ()) == {}
