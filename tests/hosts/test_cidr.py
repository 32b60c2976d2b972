"""The rules for the addresses of a network."""

from __future__ import annotations

from ipaddress import IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hosts.cidr import check_addresses, overlapping
from trailer.errors import Invalid


@pytest.mark.parametrize(
    ("subnet", "gateway", "ip_range"),
    [
        ("", "", ""),
        ("192.168.1.0/24", "", ""),
        ("192.168.1.0/24", "192.168.1.1", ""),
        ("192.168.1.0/24", "192.168.1.254", "192.168.1.128/25"),
        ("10.0.0.0/8", "10.0.0.1", "10.1.0.0/16"),
        ("10.9.8.4/30", "10.9.8.5", "10.9.8.4/30"),
    ],
)
def test_right_addresses_are_taken(subnet: str, gateway: str, ip_range: str) -> None:
    check_addresses(subnet=subnet, gateway=gateway, ip_range=ip_range)


@pytest.mark.parametrize(
    ("subnet", "gateway", "ip_range", "field"),
    [
        ("192.168.1.1/24", "", "", "subnet"),
        ("192.168.1.0", "", "", "subnet"),
        ("192.168.1.0/255.255.255.0", "", "", "subnet"),
        ("192.168.001.0/24", "", "", "subnet"),
        ("192.168.1.0/31", "", "", "subnet"),
        ("0.0.0.0/0", "", "", "subnet"),
        ("fd00::/64", "", "", "subnet"),
        ("nonsense", "", "", "subnet"),
        ("300.1.1.0/24", "", "", "subnet"),
        (" 192.168.1.0/24", "", "", "subnet"),
        ("", "192.168.1.1", "", "gateway"),
        ("192.168.1.0/24", "192.168.2.1", "", "gateway"),
        ("192.168.1.0/24", "192.168.1.0", "", "gateway"),
        ("192.168.1.0/24", "192.168.1.255", "", "gateway"),
        ("192.168.1.0/24", "one", "", "gateway"),
        ("", "", "192.168.1.0/25", "ip_range"),
        ("192.168.1.0/24", "", "192.168.2.0/25", "ip_range"),
        ("192.168.1.0/24", "", "192.168.0.0/16", "ip_range"),
        ("192.168.1.0/24", "", "192.168.1.1/25", "ip_range"),
    ],
)
def test_wrong_addresses_are_refused_under_their_field(
    subnet: str, gateway: str, ip_range: str, field: str
) -> None:
    with pytest.raises(Invalid) as caught:
        check_addresses(subnet=subnet, gateway=gateway, ip_range=ip_range)
    assert list(caught.value.fields) == [field]


def test_a_subnet_with_host_bits_is_told_its_canonical_form() -> None:
    with pytest.raises(Invalid, match=r"write 10\.1\.0\.0/16"):
        check_addresses(subnet="10.1.2.3/16", gateway="", ip_range="")


@given(st.integers(0, 2**32 - 1), st.integers(8, 30), st.data())
def test_every_usable_address_of_a_subnet_may_be_its_gateway(
    number: int, prefix: int, data: st.DataObject
) -> None:
    network = IPv4Network((number, prefix), strict=False)
    usable = st.integers(int(network.network_address) + 1, int(network.broadcast_address) - 1)
    gateway = str(type(network.network_address)(data.draw(usable)))
    check_addresses(subnet=str(network), gateway=gateway, ip_range=str(network))


def test_overlapping_names_the_network_that_collides() -> None:
    others = {"a": "", "b": "10.1.0.0/16", "c": "10.2.0.0/16"}
    assert overlapping("10.2.3.0/24", others) == "c"
    assert overlapping("10.0.0.0/8", others) == "b"
    assert overlapping("10.3.0.0/16", others) is None
