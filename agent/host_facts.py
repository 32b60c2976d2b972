"""What the heartbeat says about the machine: CPUs, memory, disk, interfaces, GPUs."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path

import psutil

from agent.metrics.gpus import GpuReader
from agent.metrics.texts import ENGINE_INTERFACES
from agent.protocol.build_secrets import CAPABILITY as BUILD_SECRETS
from agent.protocol.session import AGENT_ARCHIVES, TELLS_EXITS, Gpu, NetworkInterface
from agent.protocol.sessions import CAPABILITY as SESSIONS

_KVM = Path("/dev/kvm")
_KVM_OF_KERNEL = Path("/sys/class/misc/kvm")
_IN_CONTAINER = Path("/.dockerenv")
_FEATURES = (
    *("workspaces", "networks", "volumes", "pull", "build", "push", "snapshot", "update_watch"),
    *("replace_without_downtime", SESSIONS, BUILD_SECRETS, AGENT_ARCHIVES),
    TELLS_EXITS,
)


@dataclass(frozen=True, kw_only=True)
class Facts:
    cpu_count: int
    memory_bytes: int
    disk_free_bytes: int
    disk_total_bytes: int
    interfaces: tuple[NetworkInterface, ...]
    gpus: tuple[Gpu, ...]
    # None while the library cannot tell; then `gpus` are those last seen.
    gpus_present: tuple[Gpu, ...] | None = None


def has_kvm() -> bool:
    """A container has other devices than its host, but the kernel's list of them is the host's."""
    return _KVM.exists() or (_IN_CONTAINER.exists() and _KVM_OF_KERNEL.exists())


def capabilities() -> tuple[str, ...]:
    """What this agent can do here; the server sends nothing that needs more."""
    return (*_FEATURES, "nested_virtualization") if has_kvm() else _FEATURES


def free_bytes(path: str) -> int | None:
    """Room on the disk of that folder; None when this process cannot see it.

    A container's own files lie on the disk of the engine's data, which it does not see."""
    try:
        seen = path if not _IN_CONTAINER.exists() or Path(path).is_dir() else "/"
        return int(psutil.disk_usage(seen).free)
    except OSError:
        return None


class HostFacts:
    """GPUs that were seen stay listed while the driver is away; a card that falls off is told."""

    def __init__(self, gpus: GpuReader | None = None) -> None:
        self._reader = gpus or GpuReader()
        self._gpus: tuple[Gpu, ...] = ()

    def read(self, data_root: str = "") -> Facts:
        """The disk is the one that the engine keeps its data on, where that can be seen."""
        present = self._reader.inventory()
        self._gpus = self._gpus if present is None else present
        visible = data_root and Path(data_root).is_dir()
        disk = psutil.disk_usage(data_root if visible else "/")
        return Facts(
            cpu_count=psutil.cpu_count() or 1,
            memory_bytes=psutil.virtual_memory().total,
            disk_free_bytes=disk.free,
            disk_total_bytes=disk.total,
            interfaces=_interfaces(),
            gpus=self._gpus,
            gpus_present=present,
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
