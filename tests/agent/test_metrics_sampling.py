"""One sample per beat: files of both cgroup versions, rates, restarts, switches, GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent import clock
from agent.host_facts import Facts
from agent.metrics.cgroups import CgroupReader
from agent.metrics.counters import Counters, Subject, workspace_sample
from agent.metrics.gpus import GpuReader
from agent.metrics.host import HostReader
from agent.metrics.sampler import Sampler
from agent.metrics.subjects import Subjects
from agent.observed import ObservedContainer
from agent.protocol.state import MetricsSettings
from agent.runtime.docker_parse import container_stats
from agent.runtime.fake import FakeRuntime
from agent.runtime.port import ContainerStats
from tests.agent.fake_nvml import FakeNvml
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from agent.protocol.metrics import Metrics

MIB = 1024 * 1024
ID = "c" * 64
FACTS = Facts(
    cpu_count=2,
    memory_bytes=8 * 1024 * MIB,
    disk_free_bytes=30,
    disk_total_bytes=100,
    interfaces=(),
    gpus=(),
)


class Now:
    """The monotonic clock of the test."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Now:
    time = Now()
    monkeypatch.setattr(clock, "monotonic", time)
    return time


def subject(run: str = "1", limit: int = 0, pid: int = 42) -> Subject:
    return Subject(workspace_id="w", container_id=ID, pid=pid, run=run, memory_limit_bytes=limit)


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def version_1(root: Path, cpu_seconds: float = 2.0) -> CgroupReader:
    write(
        root,
        {
            "proc/42/cgroup": f"4:cpu,cpuacct:/docker/{ID}\n3:memory:/docker/{ID}\n"
            f"2:blkio:/docker/{ID}\n1:pids:/docker/{ID}\n",
            "proc/42/net/dev": " eth0: 1000 1 0 0 0 0 0 0 500 1 0 0 0 0 0 0\n",
            f"cg/cpu,cpuacct/docker/{ID}/cpuacct.usage": f"{round(cpu_seconds * 1e9)}\n",
            f"cg/memory/docker/{ID}/memory.usage_in_bytes": f"{50 * MIB}\n",
            f"cg/memory/docker/{ID}/memory.stat": f"cache 9\ntotal_inactive_file {10 * MIB}\n",
            f"cg/blkio/docker/{ID}/blkio.throttle.io_service_bytes": (
                "8:0 Read 700\n8:0 Write 30\n"
            ),
            f"cg/pids/docker/{ID}/pids.current": "5\n",
        },
    )
    return CgroupReader(proc=root / "proc", root=root / "cg")


def version_2(root: Path, cpu_seconds: float = 2.0) -> CgroupReader:
    scope = f"system.slice/docker-{ID}.scope"
    write(
        root,
        {
            "proc/42/cgroup": f"0::/{scope}\n",
            "proc/42/net/dev": " eth0: 1000 1 0 0 0 0 0 0 500 1 0 0 0 0 0 0\n",
            f"cg/{scope}/cpu.stat": f"usage_usec {round(cpu_seconds * 1e6)}\nuser_usec 1\n",
            f"cg/{scope}/memory.current": f"{50 * MIB}\n",
            f"cg/{scope}/memory.stat": f"anon 1\ninactive_file {10 * MIB}\n",
            f"cg/{scope}/io.stat": "8:0 rbytes=700 wbytes=30 rios=1\n",
            f"cg/{scope}/pids.current": "5\n",
        },
    )
    return CgroupReader(proc=root / "proc", root=root / "cg")


@pytest.mark.parametrize("make", [version_1, version_2])
def test_both_versions_tell_the_same_counters(make: Any, tmp_path: Path) -> None:
    found = make(tmp_path).read(subject())
    assert found is not None
    assert (found.cpu_seconds, found.memory_bytes, found.processes) == (2.0, 40 * MIB, 5)
    assert (found.disk_read_bytes, found.disk_write_bytes) == (700, 30)
    assert (found.network_rx_bytes, found.network_tx_bytes) == (1000, 500)


def test_the_process_of_somebody_else_is_not_read(tmp_path: Path) -> None:
    reader = version_1(tmp_path)
    write(tmp_path, {"proc/42/cgroup": "3:memory:/user.slice\n4:cpuacct:/user.slice\n"})
    assert reader.read(subject()) is None
    assert reader.read(subject(pid=0)) is None


def test_an_ended_container_has_no_counters(tmp_path: Path) -> None:
    reader = version_2(tmp_path)
    assert reader.read(subject()) is not None
    (tmp_path / f"cg/system.slice/docker-{ID}.scope/cpu.stat").unlink()
    assert reader.read(subject()) is None


def counters(at: float, cpu: float, run: str = "1", **fields: Any) -> Counters:
    return Counters(at=at, run=run, cpu_seconds=cpu, memory_bytes=5, **fields)


def test_rates_come_from_two_samples() -> None:
    before = counters(10, 1.0, network_rx_bytes=0, disk_write_bytes=100)
    later = counters(20, 16.0, network_rx_bytes=5000, disk_write_bytes=100)
    sample = workspace_sample(subject(limit=64 * MIB), before, later, memory_total=MIB * 1024)
    assert (sample.cpu_percent, sample.network_rx_rate) == (150.0, 500.0)
    assert (sample.disk_write_rate, sample.disk_read_rate) == (0.0, None)
    assert sample.memory_limit_bytes == 64 * MIB


@pytest.mark.parametrize(
    ("before", "later"),
    [
        (None, counters(20, 16.0)),
        (counters(10, 1.0), counters(20, 16.0, run="2")),
        (counters(10, 50.0), counters(20, 16.0)),
        (counters(20, 1.0), counters(20, 16.0)),
    ],
    ids=["first", "started anew", "total shrank", "no time passed"],
)
def test_without_two_samples_of_one_run_there_is_no_rate(
    before: Counters | None, later: Counters
) -> None:
    sample = workspace_sample(subject(), before, later, memory_total=100)
    assert sample.cpu_percent is None
    assert (sample.memory_bytes, sample.memory_limit_bytes) == (5, 100)


def observed(name: str, **fields: Any) -> ObservedContainer:
    given = {"state": "running", "pid": 42, "labels": {"trailer.workspace": "w"}, **fields}
    return ObservedContainer(id=given.pop("id", ID), name=name, **given)


def test_only_own_running_containers_are_sampled() -> None:
    subjects, owned = Subjects(), frozenset({ID, "next", "old"})
    stopped = observed("trailer-old", id="old", state="exited")
    foreign = observed("trailer-w", id="foreign")
    successor = observed("trailer-w-next", id="next")
    subjects.saw((foreign, stopped, observed("trailer-w"), successor), owned)
    assert [s.container_id for s in subjects.running()] == [ID]
    subjects.saw((successor,), owned)
    assert [s.container_id for s in subjects.running()] == ["next"]
    subjects.saw((), owned)
    assert subjects.running() == ()


class Bench:
    """A sampler over written files and a fake engine."""

    def __init__(self, root: Path, now: Now, cgroups: CgroupReader | None = None) -> None:
        self.now = now
        self.runtime = FakeRuntime()
        self.subjects = Subjects()
        self.sampler = Sampler(
            subjects=self.subjects,
            runtime=self.runtime,
            gpus=GpuReader(FakeNvml(cards=0)),
            cgroups=cgroups or CgroupReader(proc=root / "proc", root=root / "cg"),
            host=HostReader(),
        )

    def sample(self, after: float = 10.0, **switches: bool) -> Metrics:
        self.now.seconds += after
        found = self.sampler.sample(MetricsSettings(**switches), FACTS)
        assert found is not None
        return found


def test_samples_cost_no_engine_call_and_follow_the_files(tmp_path: Path, now: Now) -> None:
    bench = Bench(tmp_path, now, version_1(tmp_path, cpu_seconds=2.0))
    bench.subjects.saw((observed("trailer-w", started_at="a"),), frozenset({ID}))
    (first,) = bench.sample().workspaces or ()
    assert (first.cpu_percent, first.memory_bytes) == (None, 40 * MIB)
    version_1(tmp_path, cpu_seconds=7.0)
    (second,) = bench.sample().workspaces or ()
    assert second.cpu_percent == 50.0
    assert bench.runtime.calls == 0


def test_a_beat_right_after_another_carries_no_sample(tmp_path: Path, now: Now) -> None:
    bench = Bench(tmp_path, now)
    bench.sample()
    now.seconds += 0.1
    assert bench.sampler.sample(MetricsSettings(), FACTS) is None


def test_each_family_has_its_switch(tmp_path: Path, now: Now) -> None:
    bench = Bench(tmp_path, now)
    everything = bench.sample()
    assert everything.host is not None
    assert (everything.gpus, everything.workspaces) == ((), ())
    nothing = bench.sample(host=False, gpu=False, workspace=False)
    assert (nothing.host, nothing.gpus, nothing.workspaces) == (None, None, None)


def test_the_host_is_measured(tmp_path: Path, now: Now) -> None:
    bench = Bench(tmp_path, now)
    first = bench.sample().host
    assert first is not None
    assert (first.cpu_percent, first.disk_used_bytes, first.disk_total_bytes) == (None, 70, 100)

    def measured() -> bool:
        host = bench.sample().host
        return host is not None and host.cpu_percent is not None

    # The kernel's clock of CPU times ticks a hundred times a second.
    eventually(measured)
    later = bench.sample().host
    assert later is not None
    assert later.memory_bytes is not None
    assert later.memory_total_bytes is not None
    assert 0 < later.memory_bytes < later.memory_total_bytes
    assert later.processes
    assert later.network_rx_rate is not None


def test_an_engine_that_must_be_asked_gives_rates_once_two_rounds_ended(
    tmp_path: Path, now: Now
) -> None:
    bench = Bench(tmp_path, now)
    bench.runtime.containers[ID] = observed("trailer-w")
    bench.runtime.stats[ID] = ContainerStats(cpu_seconds=1.0, memory_bytes=7, processes=1)
    bench.subjects.saw((observed("trailer-w"),), frozenset({ID}))

    def sampled(with_rate: bool) -> bool:
        samples = bench.sample().workspaces or ()
        return any((sample.cpu_percent is not None) == with_rate for sample in samples)

    eventually(lambda: sampled(with_rate=False))
    bench.runtime.stats[ID] = ContainerStats(cpu_seconds=9.0, memory_bytes=7, processes=1)
    eventually(lambda: sampled(with_rate=True))


def test_an_engine_that_fails_is_no_reason_not_to_beat(tmp_path: Path, now: Now) -> None:
    bench = Bench(tmp_path, now)
    bench.runtime.away = True
    bench.subjects.saw((observed("trailer-w"),), frozenset({ID}))
    bench.sample()
    eventually(lambda: bench.runtime.calls >= 1)
    assert bench.sample().workspaces == ()


def test_the_engines_statistics_are_read_like_docker_stats_reads_them() -> None:
    stats = container_stats(
        {
            "cpu_stats": {"cpu_usage": {"total_usage": 2_500_000_000}},
            "memory_stats": {"usage": 50, "stats": {"inactive_file": 20}},
            "pids_stats": {"current": 3},
            "networks": {"eth0": {"rx_bytes": 5, "tx_bytes": 6}, "eth1": {"rx_bytes": 1}},
            "blkio_stats": {
                "io_service_bytes_recursive": [
                    {"op": "Read", "value": 7},
                    {"op": "write", "value": 8},
                ]
            },
        }
    )
    assert (stats.cpu_seconds, stats.memory_bytes, stats.processes) == (2.5, 30, 3)
    assert (stats.network_rx_bytes, stats.network_tx_bytes) == (6, 6)
    assert (stats.disk_read_bytes, stats.disk_write_bytes) == (7, 8)
    empty = container_stats(
        {"memory_stats": {}, "blkio_stats": {"io_service_bytes_recursive": None}}
    )
    assert (empty.cpu_seconds, empty.memory_bytes, empty.disk_read_bytes) == (None, None, 0)
