"""What kernels write, as numbers: cgroups of both versions, /proc files, and rubbish."""

from __future__ import annotations

import pytest

from agent.metrics import texts

V1 = """12:pids:/docker/abc123
11:cpu,cpuacct:/docker/abc123
10:blkio:/docker/abc123
4:memory:/docker/abc123
1:name=systemd:/docker/abc123
0::/
"""
V2 = "0::/system.slice/docker-abc123.scope\n"
NET_DEV = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs
    lo:  999999     100    0    0    0     0          0         0   999999     100    0 0 0 0 0 0
  eth0: 1500     10    0    0    0     0          0         0     3000      20    0    0    0 0 0 0
  eth1:500       5    0    0    0     0          0         0     700       7    0    0    0 0 0 0
"""


def test_both_versions_say_where_a_process_belongs() -> None:
    paths = texts.cgroup_paths(V1)
    assert paths["memory"] == paths["cpu"] == paths["cpuacct"] == "/docker/abc123"
    assert paths[""] == "/"
    assert texts.cgroup_paths(V2) == {"": "/system.slice/docker-abc123.scope"}


@pytest.mark.parametrize("rubbish", ["", "\n\n", "no colons", "x:memory:/a", "1:memory:relative"])
def test_rubbish_leads_nowhere(rubbish: str) -> None:
    assert texts.cgroup_paths(rubbish) == {}


def test_one_number_or_none() -> None:
    assert texts.number("123456\n") == 123456
    assert [texts.number(text) for text in ("max\n", "", "-5", "1.5", "12 13")] == [None] * 5


def test_a_keyed_number_is_found_by_its_whole_name() -> None:
    stat = "cache 5\ntotal_inactive_file 7\ninactive_file 9\nusage_usec x\n"
    assert texts.keyed(stat, "inactive_file") == 9
    assert texts.keyed(stat, "total_inactive_file") == 7
    assert texts.keyed(stat, "usage_usec") is None
    assert texts.keyed(stat, "file") is None


def test_block_devices_are_summed_in_version_1() -> None:
    text = "8:0 Read 100\n8:0 Write 50\n8:0 Sync 1\n8:16 Read 11\n8:16 Total 11\nTotal 161\n"
    assert texts.blkio_bytes(text) == (111, 50)
    assert texts.blkio_bytes("") == (0, 0)


def test_block_devices_are_summed_in_version_2() -> None:
    text = (
        "8:0 rbytes=100 wbytes=50 rios=1 wios=1 dbytes=0 dios=0\n259:0 rbytes=11 wbytes=x\n254:1"
    )
    assert texts.io_stat_bytes(text) == (111, 50)


def test_interfaces_are_summed_without_the_loopback() -> None:
    assert texts.network_bytes(NET_DEV) == (2000, 3700)
    assert texts.network_bytes(NET_DEV, ignored=("lo", "eth1")) == (1500, 3000)
    assert texts.network_bytes("short: 1 2 3\n") == (0, 0)


TCP = """  sl  local_address rem_address   st tx_queue rx_queue
   0: 00000000:1F90 00000000:0000 0A 00000000:00000000
   1: 020011AC:1F90 010011AC:C001 01 00000000:00000000
   2: 020011AC:D431 050011AC:1538 01 00000000:00000000
   3: 0100007F:1F90 0100007F:C002 01 00000000:00000000
   4: 020011AC:1F90 010011AC:C003 06 00000000:00000000
"""
TCP6 = """  sl  local_address rem_address st
   0: 00000000000000000000000000000000:0016 00000000000000000000000000000000:0000 0A
   1: 0000000000000000FFFF0000020011AC:0016 0000000000000000FFFF0000010011AC:C005 01
rubbish
"""


def test_connections_are_those_from_outside_to_a_port_that_listens() -> None:
    assert texts.open_connections(TCP, TCP6) == 2
    assert texts.open_connections(TCP, "") == 1
    assert texts.open_connections("", "") == 0
