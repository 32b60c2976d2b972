"""Which addresses nobody connects to on a user's behalf, and what opens them."""

import pytest

from agent.protocol.addresses import (
    BadEntry,
    BadHost,
    Place,
    allows,
    host_name,
    is_public,
    literal_refused,
    refused_addresses,
)

PRIVATE = [
    "0.0.0.0", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254",
    "168.63.129.16", "169.254.169.254", "169.254.170.2", "172.31.255.255", "192.0.0.1",
    "192.0.2.1", "192.168.1.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
    "::", "::1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::127.0.0.1", "64:ff9b::127.0.0.1",
    "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::",
    "2002:a9fe:a9fe::", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0",
    "fec0::1", "ff02::1",
]  # fmt: skip
PUBLIC = ["8.8.8.8", "140.82.112.3", "2606:4700::1111", "64:ff9b::8.8.8.8", "2002:808:808::"]


@pytest.mark.parametrize("address", PRIVATE)
def test_no_address_beside_the_internet_is_public(address: str) -> None:
    assert not is_public(address)
    assert refused_addresses((), Place("https", "x.example", 443), (PUBLIC[0], address))


@pytest.mark.parametrize("address", PUBLIC)
def test_an_address_of_the_internet_is_public(address: str) -> None:
    assert is_public(address)
    place = Place("https", "x.example", 443)
    assert refused_addresses((), place, (address,)) == ()
    assert refused_addresses((), place, (address,), own=(address,)) == (address,)


@pytest.mark.parametrize(
    "host",
    ["127.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "127.0.0.01", "1.2.3.4.5",
     "fe80::1%eth0", "::1%lo", "::g", "", ".", "a..b", "a b", "a/b", "-a", "a-", "h\u00f6st",
     "\u2488.example", "a%2eb", "a" * 64, "localhost.."],
)  # fmt: skip
def test_what_is_not_read_alike_by_all_programs_is_no_host(host: str) -> None:
    with pytest.raises(BadHost):
        host_name(host)


@pytest.mark.parametrize(
    ("text", "name"),
    [("Example.COM.", "example.com"), ("0:0::1", "::1"),
     ("127.0.0.1.", "127.0.0.1"), ("a_b.internal", "a_b.internal")],
)  # fmt: skip
def test_a_host_has_one_spelling(text: str, name: str) -> None:
    assert host_name(text) == name


@pytest.mark.parametrize("host", ["localhost", "x.localhost", "127.0.0.1", "::1", "::ffff:7f00:1"])
def test_what_is_private_without_a_name_server_is_known_at_once(host: str) -> None:
    assert literal_refused((), Place("http", host, 80))
    assert not literal_refused((host,), Place("http", host, 80))


def test_a_name_is_not_judged_without_its_addresses() -> None:
    assert not literal_refused((), Place("http", "registry.internal", 80))


def test_without_encryption_only_an_entry_that_says_so_opens_a_repository() -> None:
    place = Place("http", "git.internal", 80)
    assert not allows(("git.internal", "10.0.0.0/8"), place, ("10.1.1.1",))
    assert allows(("http://git.internal",), place, ())
    assert allows(("git.internal",), place, (), plain=True)
    assert allows(("10.0.0.0/8",), place, ("10.1.1.1",), plain=True)


def test_an_entry_that_means_nothing_is_said() -> None:
    with pytest.raises(BadEntry, match="ftp://x"):
        allows(("ftp://x",), Place("https", "x", 443), ())
