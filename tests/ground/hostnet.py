"""The network and the traces of one simulated host: namespace, link, rules, cgroups, mounts."""

import os
import shutil
import signal
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.ground.process import run
from tests.ground.wait import eventually

BASE = Path("/tmp/trailer-test")
NAMESPACES = Path("/run/netns")
CGROUPS = Path("/sys/fs/cgroup")
PREFIX = "trailer-test-h"
HIGHEST_NUMBER = 200
# Ports of 127.0.0.1 that on every simulated host lead to the test machine's own listeners.
SHARED_PORTS = (15000, 15999)


@dataclass(frozen=True)
class HostNumber:
    """A number that this process alone uses; all names and addresses of a host follow from it.

    The claim is an abstract Unix socket: it needs no file, and the kernel drops it with the
    process, so whatever bears an unclaimed number is a leftover of a killed run.
    """

    number: int
    claim: socket.socket

    @classmethod
    def take(cls, number: int | None = None) -> Self | None:
        """Claim the given number, or the lowest free one; None if it is taken."""
        for candidate in [number] if number else range(1, HIGHEST_NUMBER + 1):
            claim = socket.socket(socket.AF_UNIX)
            try:
                claim.bind(f"\0{PREFIX}{candidate}")
            except OSError:
                claim.close()
                continue
            return cls(candidate, claim)
        return None

    @property
    def is_claimed(self) -> bool:
        """Tell whether the number is still this process's."""
        return self.claim.fileno() != -1

    @property
    def name(self) -> str:
        """Name of the network namespace, the cgroup and the rules' comment."""
        return f"{PREFIX}{self.number}"

    @property
    def link(self) -> str:
        """Name of the link's end on the test machine (at most 15 characters)."""
        return f"trltest{self.number}"

    @property
    def folder(self) -> Path:
        """Folder of all files of the host."""
        return BASE / f"h{self.number}"

    @property
    def address(self) -> str:
        """Address of the simulated host."""
        return address_of(self.number)

    @property
    def gateway(self) -> str:
        """Address of the test machine on the link."""
        return gateway_of(self.number)


def address_of(number: int) -> str:
    """Address of the simulated host with this number."""
    return f"10.77.{number}.2"


def gateway_of(number: int) -> str:
    """Address of the test machine on the link to that host."""
    return f"10.77.{number}.1"


def create_network(host: HostNumber) -> None:
    """Create the namespace, its link to the test machine, its way out, and the shared ports."""
    name, link, subnet = host.name, host.link, f"10.77.{host.number}.0/24"
    run("ip", "netns", "add", name)
    run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", name)
    run("ip", "addr", "add", f"{host.gateway}/24", "dev", link)
    run("ip", "link", "set", link, "up")
    run("ip", "-n", name, "addr", "add", f"{host.address}/24", "dev", "eth0")
    run("ip", "-n", name, "link", "set", "lo", "up")
    join_network(host)
    # A Docker engine switches this on as well and never off again.
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    remark = ["-m", "comment", "--comment", name]
    iptables = ["iptables", "-w"]
    masquerade = ["-j", "MASQUERADE"]
    run(*iptables, "-t", "nat", "-A", "POSTROUTING", "-s", subnet, *remark, *masquerade)
    run(*iptables, "-I", "FORWARD", "-i", link, *remark, "-j", "ACCEPT")
    run(*iptables, "-I", "FORWARD", "-o", link, *remark, "-j", "ACCEPT")
    inside = ["nsenter", f"--net={NAMESPACES / name}"]
    ports = f"{SHARED_PORTS[0]}:{SHARED_PORTS[1]}"
    shared = ["-d", "127.0.0.1", "-p", "tcp", "--dport", ports]
    run(*inside, "sysctl", "-qw", "net.ipv4.conf.all.route_localnet=1")
    nat = [*inside, *iptables, "-t", "nat"]
    run(*nat, "-A", "OUTPUT", *shared, "-j", "DNAT", "--to-destination", host.gateway)
    run(*nat, "-A", "POSTROUTING", "-s", "127.0.0.1", "-o", "eth0", *masquerade)


def lead_gateway_to_loopback(host: HostNumber) -> None:
    """Let the host reach, at its gateway, what listens on the test machine's loopback alone."""
    run("sysctl", "-qw", f"net.ipv4.conf.{host.link}.route_localnet=1")
    arriving = ["-i", host.link, "-d", host.gateway, "-p", "tcp"]
    remark = ["-m", "comment", "--comment", host.name]
    to_loopback = ["-j", "DNAT", "--to-destination", "127.0.0.1"]
    run("iptables", "-w", "-t", "nat", "-A", "PREROUTING", *arriving, *remark, *to_loopback)


def lead_loopback_out(pid: int, gateway: str, but: int) -> None:
    """Let a container's 127.0.0.1 be the test machine's, except for its own port `but`."""
    inside = ["nsenter", f"--net=/proc/{pid}/ns/net"]
    run(*inside, "sysctl", "-qw", "net.ipv4.conf.all.route_localnet=1")
    nat = [*inside, "iptables", "-w", "-t", "nat"]
    meant = ["-d", "127.0.0.1", "-p", "tcp", "!", "--dport", str(but)]
    run(*nat, "-A", "OUTPUT", *meant, "-j", "DNAT", "--to-destination", gateway)
    run(*nat, "-A", "POSTROUTING", "-s", "127.0.0.1", "!", "-o", "lo", "-j", "MASQUERADE")


def cut_network(host: HostNumber) -> None:
    """Cut the host off from everything."""
    run("ip", "-n", host.name, "link", "set", "eth0", "down")


def join_network(host: HostNumber) -> None:
    """Connect the host; the default route vanishes with the link, so it is set anew."""
    run("ip", "-n", host.name, "link", "set", "eth0", "up")
    run("ip", "-n", host.name, "route", "replace", "default", "via", host.gateway)


def remove_all_traces(host: HostNumber) -> None:
    """Remove everything that bears the host's names, whatever state a run left it in."""
    _thaw_paused_containers(host)
    eventually(
        lambda: not _kill_processes(host), 20, f"the processes of {host.name} do not end", 0.02
    )
    for mount in mounts_of(host):
        run("umount", "-l", mount, check=False)
    run("ip", "netns", "del", host.name, check=False)
    run("ip", "link", "del", host.link, check=False)
    for table, rule in rules_of(host):
        run("iptables", "-w", "-t", table, "-D", *rule.split()[1:], check=False)
    for cgroup in cgroups_of(host):
        for folder, _, _ in os.walk(cgroup, topdown=False):
            with suppress(OSError):
                Path(folder).rmdir()
    # The folder above stays: another run may be about to make its own in it.
    shutil.rmtree(host.folder, ignore_errors=True)


def traces_of(host: HostNumber) -> list[str]:
    """List everything on the test machine that bears the host's names."""
    found = [f"process {pid}" for pid in processes_of(host)]
    found += [f"mount {mount}" for mount in mounts_of(host)]
    found += [f"rule {rule}" for _, rule in rules_of(host)]
    found += [f"cgroup {cgroup}" for cgroup in cgroups_of(host)]
    places = [NAMESPACES / host.name, Path("/sys/class/net") / host.link, host.folder]
    return found + [str(place) for place in places if place.exists()]


def sweep_leftovers() -> None:
    """Remove the hosts of test runs that were killed: those whose number nobody claims."""
    names = [path.name for path in NAMESPACES.glob(f"{PREFIX}*")]
    names += [f"{PREFIX}{path.name[1:]}" for path in BASE.glob("h*")]
    for number in sorted({int(name.removeprefix(PREFIX)) for name in names}):
        host = HostNumber.take(number)
        if host is not None:
            remove_all_traces(host)
            host.claim.close()


def processes_of(host: HostNumber) -> list[int]:
    """Return the engine's processes (by network namespace) and its containers' (by cgroup)."""
    try:
        namespace = (NAMESPACES / host.name).stat().st_ino
    except FileNotFoundError:
        namespace = -1
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError):
            ours = (entry / "ns/net").stat().st_ino == namespace
            if ours or f"/{host.name}/" in (entry / "cgroup").read_text():
                found.append(int(entry.name))
    return found


def mounts_of(host: HostNumber) -> list[str]:
    """Return the mount points below the host's folder, innermost first."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    points = [line.split()[1] for line in lines]
    return sorted((p for p in points if p.startswith(f"{host.folder}/")), reverse=True)


def rules_of(host: HostNumber) -> list[tuple[str, str]]:
    """Return the packet filter rules of the test machine that carry the host's name."""
    return [
        (table, rule)
        for table in ("nat", "filter")
        for rule in run("iptables", "-w", "-t", table, "-S").splitlines()
        if host.name in rule.split()
    ]


def cgroups_of(host: HostNumber) -> list[Path]:
    """Return the host's cgroups: one per controller in version 1, one in all in version 2."""
    return [*CGROUPS.glob(f"*/{host.name}"), *CGROUPS.glob(host.name)]


def _kill_processes(host: HostNumber) -> list[int]:
    pids = processes_of(host)
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return pids


def _thaw_paused_containers(host: HostNumber) -> None:
    """Let paused containers run: in cgroup version 1 a frozen process cannot even be killed."""
    for state in (CGROUPS / "freezer" / host.name).glob("**/freezer.state"):
        with suppress(OSError):
            state.write_text("THAWED")
