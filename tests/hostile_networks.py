"""Networks that would take addresses of their host, as a table for server, agent and engine."""

from __future__ import annotations

from agent.protocol.session import AddressRange

# A host with a LAN, a second card, a VPN in two halves with routes behind it, IPv6, a route into
# nowhere, and networks on its engine.
TAKEN = (
    AddressRange(cidr="192.168.1.0/24", interface="eth0", direct=True),
    AddressRange(cidr="fd12:1::/64", interface="eth0", direct=True),
    AddressRange(cidr="172.20.0.0/16", interface="eth1", direct=True),
    AddressRange(cidr="100.64.8.0/24", interface="eth2", direct=True),
    AddressRange(cidr="10.128.0.5/32", interface="eth3", direct=True),
    AddressRange(cidr="0.0.0.0/0", interface="eth0"),
    AddressRange(cidr="0.0.0.0/0", interface="ppp0", direct=True),
    AddressRange(cidr="0.0.0.0/1", interface="tun0"),
    AddressRange(cidr="128.0.0.0/1", interface="tun0"),
    AddressRange(cidr="10.50.0.0/16", interface="tun0"),
    AddressRange(cidr="10.51.0.7/32", interface="tun0"),
    AddressRange(cidr="10.60.0.0/16"),
    AddressRange(cidr="172.17.0.0/16", network="bridge"),
    AddressRange(cidr="192.168.77.0/24", interface="eth4", direct=True),
    AddressRange(cidr="192.168.77.240/28", network="street"),
    AddressRange(cidr="172.22.0.0/16", network="named", interface="lab0"),
    AddressRange(cidr="nonsense", interface="eth9", direct=True),
)
# Interface names of that host, as its heartbeat lists them.
INTERFACES = ("eth0", "eth1", "eth2", "eth3", "eth4", "ppp0", "tun0")


def macvlan(subnet: str, parent: str = "eth0", **further: str) -> dict[str, str]:
    gateway = subnet.rpartition(".")[0] + ".1" if "." in subnet else ""
    fields = {"driver": "macvlan", "parent_interface": parent, "gateway": gateway}
    return {**fields, "subnet": subnet, **further}


def bridge(subnet: str, **further: str) -> dict[str, str]:
    return {"subnet": subnet, **further}


# What is asked for, a word of the refusal, and the field that it stands under.
REFUSED: tuple[tuple[dict[str, str], str, str], ...] = (
    # Classes.
    (bridge("8.8.8.0/24"), "public", "subnet"),
    (bridge("1.1.1.0/30"), "public", "subnet"),
    (bridge("172.32.0.0/16"), "public", "subnet"),
    (bridge("192.169.0.0/16"), "public", "subnet"),
    (bridge("11.0.0.0/8"), "public", "subnet"),
    (bridge("172.0.0.0/8"), "public", "subnet"),
    (bridge("127.0.0.0/8"), "loopback", "subnet"),
    (bridge("127.0.0.0/24"), "loopback", "subnet"),
    (bridge("127.255.255.252/30"), "loopback", "subnet"),
    (bridge("169.254.169.0/24", gateway="169.254.169.254"), "link-local", "subnet"),
    (bridge("169.254.0.0/16"), "link-local", "subnet"),
    (bridge("168.63.129.0/24"), "public", "subnet"),
    (bridge("100.100.100.0/24"), "metadata", "subnet"),
    (bridge("100.64.0.0/10"), "metadata", "subnet"),
    (bridge("100.65.0.0/16"), "providers", "subnet"),
    (bridge("224.0.0.0/8"), "multicast", "subnet"),
    (bridge("239.255.255.0/24"), "multicast", "subnet"),
    (bridge("240.0.0.0/8"), "reserved", "subnet"),
    (bridge("255.255.255.252/30"), "reserved", "subnet"),
    (bridge("0.0.0.0/8"), "stand for no host", "subnet"),
    (bridge("192.0.0.0/24"), "protocols", "subnet"),
    (bridge("192.0.2.0/24"), "documentation", "subnet"),
    (bridge("198.51.100.0/24"), "documentation", "subnet"),
    (bridge("203.0.113.0/24"), "documentation", "subnet"),
    (bridge("198.18.0.0/15"), "benchmarks", "subnet"),
    # Sizes.
    (bridge("0.0.0.0/0"), "prefix", "subnet"),
    (bridge("0.0.0.0/1"), "prefix", "subnet"),
    (bridge("128.0.0.0/1"), "prefix", "subnet"),
    (bridge("10.0.0.0/7"), "prefix", "subnet"),
    (bridge("10.7.7.0/31"), "prefix", "subnet"),
    (bridge("10.7.7.7/32"), "prefix", "subnet"),
    (bridge("10.7.7.7"), "not canonical", "subnet"),
    # Spellings.
    (bridge("localhost/8"), "not an IPv4 network", "subnet"),
    (bridge("metadata.google.internal/24"), "not an IPv4 network", "subnet"),
    (bridge("127.1/8"), "not an IPv4 network", "subnet"),
    (bridge("0177.0.0.0/8"), "not an IPv4 network", "subnet"),
    (bridge("010.0.0.0/8"), "not an IPv4 network", "subnet"),
    (bridge("0x7f.0.0.0/8"), "not an IPv4 network", "subnet"),
    (bridge("0x7f000000/8"), "not an IPv4 network", "subnet"),
    (bridge("2130706432/8"), "not an IPv4 network", "subnet"),
    (bridge("10/8"), "not an IPv4 network", "subnet"),
    (bridge("10.1.2.3/16"), "write 10.1.0.0/16", "subnet"),
    (bridge("10.7.0.0/255.255.0.0"), "not canonical", "subnet"),
    (bridge("10.7.0.0/0.0.255.255"), "not canonical", "subnet"),
    (bridge("10.7.0.0/016"), "not canonical", "subnet"),
    (bridge(" 10.7.0.0/16"), "not an IPv4 network", "subnet"),
    (bridge("10.7.0.0/16\n"), "not an IPv4 network", "subnet"),
    (bridge("10.7.0.0/16,8.8.8.0/24"), "not an IPv4 network", "subnet"),
    (bridge("１０.7.0.0/16"), "not an IPv4 network", "subnet"),
    # IPv6.
    (bridge("::1/128"), "loopback", "subnet"),
    (bridge("::/0"), "loopback", "subnet"),
    (bridge("::7f00:0/104"), "loopback", "subnet"),
    (bridge("::ffff:0:0/96"), "spelling of IPv6", "subnet"),
    (bridge("::ffff:7f00:0/104"), "spelling of IPv6", "subnet"),
    (bridge("::ffff:127.0.0.0/104"), "not canonical", "subnet"),
    (bridge("fe80::/64"), "link-local", "subnet"),
    (bridge("fe80::%1/64"), "not an IPv4 network", "subnet"),
    (bridge("fe80::1%eth0/64"), "not an IPv4 network", "subnet"),
    (bridge("ff02::/16"), "multicast", "subnet"),
    (bridge("2001:4860::/32"), "public", "subnet"),
    (bridge("2001:db8::/32"), "documentation", "subnet"),
    (bridge("2002:a00::/24"), "public", "subnet"),
    (bridge("64:ff9b::/96"), "public", "subnet"),
    (bridge("fd00:ec2::/32"), "metadata", "subnet"),
    (bridge("fc00::/7"), "metadata", "subnet"),
    (bridge("fd12:1::/64"), "Only IPv4", "subnet"),
    (bridge("fd12:3456:789a::/64"), "Only IPv4", "subnet"),
    # What this host uses itself.
    (bridge("192.168.1.0/24"), "eth0", "subnet"),
    (bridge("192.168.1.64/26"), "eth0", "subnet"),
    (bridge("192.168.0.0/16"), "overlaps", "subnet"),
    (bridge("172.20.7.0/24"), "eth1", "subnet"),
    (bridge("10.128.0.0/24"), "eth3", "subnet"),
    (bridge("10.50.3.0/24"), "tun0", "subnet"),
    (bridge("10.51.0.0/24"), "tun0", "subnet"),
    (bridge("10.0.0.0/8"), "overlaps", "subnet"),
    (bridge("10.60.1.0/24"), "a route for", "subnet"),
    (bridge("172.17.3.0/24"), "network bridge", "subnet"),
    (bridge("172.16.0.0/12"), "network bridge", "subnet"),
    # A macvlan network may be its parent's LAN, and nothing beyond it.
    (macvlan("192.168.0.0/16"), "overlaps", "subnet"),
    (macvlan("172.20.0.0/16"), "eth1", "subnet"),
    (macvlan("10.50.0.0/24", "tun0"), "tun0", "subnet"),
    (macvlan("192.168.77.240/28", "eth4", gateway="192.168.77.241"), "street", "subnet"),
    (macvlan("100.64.0.0/16", "eth2"), "providers", "subnet"),
    (macvlan("8.8.8.0/24", "ppp0"), "public", "subnet"),
    (macvlan("127.0.0.0/8", "lo"), "belongs to", "parent_interface"),
    (macvlan("10.7.0.0/24", "docker0"), "belongs to", "parent_interface"),
    (macvlan("10.7.0.0/24", "br-0123456789ab"), "belongs to", "parent_interface"),
    (macvlan("10.7.0.0/24", "docker0.5"), "belongs to", "parent_interface"),
    (macvlan("10.7.0.0/24", "lab0"), "belongs to", "parent_interface"),
    (macvlan("10.7.0.0/24", "lab0.5"), "belongs to", "parent_interface"),
    (macvlan("10.7.0.0/24", "eth0 eth1"), "name of an interface", "parent_interface"),
    (macvlan("10.7.0.0/24", "../eth0"), "name of an interface", "parent_interface"),
    # Gateway and range.
    (bridge("10.7.0.0/24", gateway="169.254.169.254"), "inside the subnet", "gateway"),
    (bridge("10.7.0.0/24", gateway="10.7.0.0"), "reserves", "gateway"),
    (bridge("10.7.0.0/24", gateway="10.7.0.255"), "reserves", "gateway"),
    (bridge("10.7.0.0/24", gateway="0x0a070001"), "not an IPv4 address", "gateway"),
    (bridge("10.7.0.0/24", gateway="10.7.0.01"), "not an IPv4 address", "gateway"),
    (bridge("10.7.0.0/24", gateway="::ffff:10.7.0.1"), "not canonical", "gateway"),
    (bridge("10.7.0.0/24", ip_range="10.7.1.0/25"), "inside the subnet", "ip_range"),
    (bridge("10.7.0.0/24", ip_range="10.7.0.0/16"), "inside the subnet", "ip_range"),
    (bridge("10.7.0.0/24", ip_range="10.7.0.1/25"), "not canonical", "ip_range"),
    (bridge("", gateway="127.0.0.1"), "Give a subnet", "gateway"),
    (bridge("", ip_range="10.7.0.0/25"), "Give a subnet", "ip_range"),
)
ACCEPTED: tuple[dict[str, str], ...] = (
    bridge("10.7.0.0/24"),
    bridge("10.7.0.0/24", gateway="10.7.0.1", ip_range="10.7.0.128/25"),
    bridge("10.9.8.4/30", gateway="10.9.8.5", ip_range="10.9.8.4/30"),
    bridge("192.168.2.0/24"),
    bridge("192.168.0.0/24"),
    bridge("172.21.0.0/16"),
    bridge("10.51.1.0/24"),
    macvlan("192.168.1.0/24"),
    macvlan("192.168.1.0/25", ip_range="192.168.1.64/26"),
    # A LAN that is not private is the host's all the same.
    macvlan("100.64.8.0/24", "eth2"),
    # How large the LAN is, an interface with a lone address does not show.
    macvlan("10.128.0.0/24", "eth3"),
    # A VLAN on which the host has no address.
    macvlan("10.7.0.0/24", "eth1"),
)


def named(row: dict[str, str]) -> str:
    """How a test's name shows a row."""
    words = [repr(row.get("subnet", "")).strip("'")]
    words += [f"{name}={value}" for name, value in row.items() if name != "subnet"]
    return " ".join(words)
