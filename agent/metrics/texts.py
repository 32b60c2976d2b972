"""What the kernel writes in cgroup and /proc files, as numbers; pure, so that each is a test."""

from __future__ import annotations

_OPEN, _LISTENS = "01", "0A"
# A container that talks to itself, in the kernel's spelling of 127.0.0.1 and ::1.
_LOOPBACK = frozenset(
    {"0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F"}
)
# Made by the engine for containers: their traffic is counted at the containers already.
ENGINE_INTERFACES = ("veth", "br-", "docker", "lo")


def cgroup_paths(text: str) -> dict[str, str]:
    """`/proc/<pid>/cgroup`: controller -> path; the unified hierarchy is the empty controller."""
    paths = {}
    for line in text.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not number.isdecimal() or not path.startswith("/"):
            continue
        for controller in controllers.split(","):
            paths[controller] = path
    return paths


def number(text: str) -> int | None:
    """One whole number; `max` and rubbish are None."""
    text = text.strip()
    return int(text) if text.isdecimal() else None


def keyed(text: str, key: str) -> int | None:
    """The number behind `key` in lines of `key number`."""
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name == key:
            return number(value)
    return None


def blkio_bytes(text: str) -> tuple[int, int]:
    """Version 1, `blkio.throttle.io_service_bytes`: (read, written) over all devices."""
    read = written = 0
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and words[2].isdecimal():
            if words[1] == "Read":
                read += int(words[2])
            elif words[1] == "Write":
                written += int(words[2])
    return read, written


def io_stat_bytes(text: str) -> tuple[int, int]:
    """Version 2, `io.stat`: (read, written) over all devices."""
    totals = {"rbytes": 0, "wbytes": 0}
    for line in text.splitlines():
        for word in line.split()[1:]:
            name, _, value = word.partition("=")
            if name in totals and value.isdecimal():
                totals[name] += int(value)
    return totals["rbytes"], totals["wbytes"]


def sockets_in_use(*tables: str) -> int | None:
    """`/proc/<pid>/net/sockstat` and `sockstat6`: TCP sockets that are open or listen."""
    found = None
    for table in tables:
        for line in table.splitlines():
            name, _, rest = line.partition(":")
            words = rest.split()
            if name in {"TCP", "TCP6"} and words[:1] == ["inuse"] and words[1].isdecimal():
                found = (found or 0) + int(words[1])
    return found


def open_connections(*tables: str) -> int:
    """`/proc/<pid>/net/tcp` and `tcp6`: connections to ports that something listens on. What the
    container has opened itself, say to a database, is not somebody who uses it."""
    listening, open_to = set(), []
    for table in tables:
        for line in table.splitlines()[1:]:
            words = line.split()
            if len(words) < 4:
                continue
            port = words[1].rpartition(":")[2]
            remote = words[2].rpartition(":")[0]
            if words[3] == _LISTENS:
                listening.add(port)
            elif words[3] == _OPEN and remote not in _LOOPBACK:
                open_to.append(port)
    return sum(port in listening for port in open_to)


def network_bytes(text: str, *, ignored: tuple[str, ...] = ("lo",)) -> tuple[int, int]:
    """`/proc/<pid>/net/dev`: (received, sent) over the interfaces that are not ignored."""
    received = sent = 0
    for line in text.splitlines():
        name, colon, rest = line.partition(":")
        words = rest.split()
        if not colon or len(words) < 9 or name.strip().startswith(ignored):
            continue
        if words[0].isdecimal() and words[8].isdecimal():
            received += int(words[0])
            sent += int(words[8])
    return received, sent
