"""What the heartbeat says about the machine: CPUs, memory, disk, interfaces, GPUs."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path

import psutil

from agent.metrics.gpus import GpuReader
from agent.metrics.texts import ENGINE_INTERFACES
from agent.protocol.session import Gpu, NetworkInterface
from agent.protocol.sessions import CAPABILITY as SESSIONS

_KVM = Path("/dev/kvm")
_IN_CONTAINER = Path("/.dockerenv")
_FEATURES = (
    *("workspaces", "networks", "volumes", "pull", "build", "push", "snapshot", "update_watch"),
    *("replace_without_downtime", SESSIONS),
)


@dataclass(frozen=True, kw_only=True)
class Facts:
    cpu_count: int
    memory_bytes: int
    disk_free_bytes: int
    disk_total_bytes: int
    interfaces: tuple[NetworkInterface, ...]
    gpus: tuple[Gpu, ...]


def has_kvm() -> bool:
    """An agent in a container cannot see the host's devices: there the engine decides."""
    return _KVM.exists() or _IN_CONTAINER.exists()


def capabilities() -> tuple[str, ...]:
    """What this agent can do here; the server sends nothing that needs more."""
    return (*_FEATURES, "nested_virtualization") if has_kvm() else _FEATURES


def free_bytes(path: str) -> int | None:
    """Room on the disk of that folder; None when this process cannot see it."""
    try:
        return int(psutil.disk_usage(path).free)
    except OSError:
        return None


class HostFacts:
    """GPUs do not come and go: once seen they are not read again."""

    def __init__(self, gpus: GpuReader | None = None) -> None:
        self._reader = gpus or GpuReader()
        self._gpus: tuple[Gpu, ...] = ()

    def read(self, data_root: str = "") -> Facts:
        """The disk is the one that the engine keeps its data on, where that can be seen."""
        self._gpus = self._gpus or self._reader.inventory()
        visible = data_root and Path(data_root).is_dir()
        disk = psutil.disk_usage(data_root if visible else "/")
        return Facts(
            cpu_count=psutil.cpu_count() or 1,
            memory_bytes=psutil.virtual_memory().total,
            disk_free_bytes=disk.free,
            disk_total_bytes=disk.total,
            interfaces=_interfaces(),
            gpus=self._gpus,
        )


def _interfaces() -> tuple[NetworkInterface, ...]:
    states = psutil.net_if_stats()
    found = []
    for name, addresses in sorted(psutil.net_if_addrs().items()):
        # Of no use as a parent interface.
        if name.startswith(ENGINE_INTERFACES):
            continue
        inet = [a.address for a in addresses if a.family in (socket.AF_INET, socket.AF_INET6)]
        macs = [a.address for a in addresses if a.family == psutil.AF_LINK]
        found.append(
            NetworkInterface(
                name=name,
                addresses=tuple(inet),
                mac=macs[0] if macs else "",
                up=states[name].isup if name in states else False,
            )
        )
    return tuple(found)
