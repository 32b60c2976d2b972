"""Reads a container's counters from the kernel's files: no engine call, some 50 µs each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agent import clock
from agent.metrics import texts
from agent.metrics.connections import ConnectionReader
from agent.metrics.counters import Counters

if TYPE_CHECKING:
    from agent.metrics.counters import Subject


@dataclass(frozen=True, kw_only=True)
class Folders:
    """Where one container's files are; version 2 has them all in one folder."""

    run: str
    version: int
    cpu: Path
    memory: Path
    block: Path
    pids: Path


class CgroupReader:
    """`read` gives None for a container whose files this process cannot see."""

    def __init__(self, proc: Path = Path("/proc"), root: Path = Path("/sys/fs/cgroup")) -> None:
        self._proc = proc
        self._root = root
        self._known: dict[str, Folders] = {}
        self._connections = ConnectionReader()

    def read(self, subject: Subject) -> Counters | None:
        folders = self._folders(subject)
        if folders is None:
            return None
        found = _version_2(folders) if folders.version == 2 else _version_1(folders)
        if found is None:
            # Ended meanwhile, or started anew in other folders.
            self._known.pop(subject.container_id, None)
            return None
        cpu_seconds, memory_bytes, (read, written) = found
        received, sent = self._network(subject)
        return Counters(
            at=clock.monotonic(),
            run=subject.run,
            cpu_seconds=cpu_seconds,
            memory_bytes=memory_bytes,
            disk_read_bytes=read,
            disk_write_bytes=written,
            network_rx_bytes=received,
            network_tx_bytes=sent,
            processes=texts.number(_text(folders.pids / "pids.current")),
            connections=self._connections.read(
                subject.container_id, self._proc / str(subject.pid) / "net"
            ),
        )

    def forget_all_but(self, container_ids: set[str]) -> None:
        self._known = {i: known for i, known in self._known.items() if i in container_ids}
        self._connections.begin(container_ids)

    def _folders(self, subject: Subject) -> Folders | None:
        known = self._known.get(subject.container_id)
        if known is None or known.run != subject.run:
            known = self._find(subject)
            if known is not None:
                self._known[subject.container_id] = known
        return known

    def _find(self, subject: Subject) -> Folders | None:
        paths = texts.cgroup_paths(_text(self._proc / str(subject.pid) / "cgroup"))
        # Another process may have the number by now, or lives in another world of numbers.
        ours = {name: path for name, path in paths.items() if subject.container_id in path}
        if {"cpuacct", "memory"} <= set(ours):
            return Folders(
                run=subject.run,
                version=1,
                cpu=self._mounted("cpuacct", ours),
                memory=self._mounted("memory", ours),
                block=self._mounted("blkio", ours),
                pids=self._mounted("pids", ours),
            )
        if "" in ours:
            folder = self._root / ours[""].lstrip("/")
            return Folders(
                run=subject.run, version=2, cpu=folder, memory=folder, block=folder, pids=folder
            )
        return None

    def _mounted(self, controller: str, paths: dict[str, str]) -> Path:
        """Controllers that are mounted together have a folder of both names, and mostly links."""
        places = (controller, "cpu,cpuacct") if controller == "cpuacct" else (controller,)
        for place in places:
            if (self._root / place).is_dir():
                return self._root / place / paths.get(controller, "/-").lstrip("/")
        return self._root / controller / "-"

    def _network(self, subject: Subject) -> tuple[int | None, int | None]:
        text = _text(self._proc / str(subject.pid) / "net" / "dev")
        return texts.network_bytes(text) if text else (None, None)


def _version_1(folders: Folders) -> tuple[float, int | None, tuple[int, int]] | None:
    used = texts.number(_text(folders.cpu / "cpuacct.usage"))
    if used is None:
        return None
    memory = texts.number(_text(folders.memory / "memory.usage_in_bytes"))
    cache = texts.keyed(_text(folders.memory / "memory.stat"), "total_inactive_file")
    block = texts.blkio_bytes(_text(folders.block / "blkio.throttle.io_service_bytes"))
    return used / 1e9, _without(memory, cache), block


def _version_2(folders: Folders) -> tuple[float, int | None, tuple[int, int]] | None:
    used = texts.keyed(_text(folders.cpu / "cpu.stat"), "usage_usec")
    if used is None:
        return None
    memory = texts.number(_text(folders.memory / "memory.current"))
    cache = texts.keyed(_text(folders.memory / "memory.stat"), "inactive_file")
    return (
        used / 1e6,
        _without(memory, cache),
        texts.io_stat_bytes(_text(folders.block / "io.stat")),
    )


def _without(memory: int | None, cache: int | None) -> int | None:
    """Files that were read once are dropped when memory is needed: that is not use."""
    return None if memory is None else max(0, memory - (cache or 0))


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
