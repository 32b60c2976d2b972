"""How busy real containers are, as the agent's heartbeats tell it, without asking the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.metrics.cgroups import CgroupReader
from agent.metrics.counters import Subject
from agent.metrics.engine_stats import EngineStats
from agent.runtime.docker import DockerRuntime
from tests.engine.agent_scene import START, busybox, container, running, sleeper
from tests.ground.wait import eventually

if TYPE_CHECKING:
    from pathlib import Path

    import docker

    from agent.protocol.metrics import WorkspaceSample
    from tests.agent.fake_server import FakeServer
    from tests.engine.agent_scene import Launch
    from tests.ground.engine import PrivateEngine
    from tests.ground.proxy import DockerApiProxy

MIB = 1024 * 1024
# Two busy loops want two CPUs; the limit allows so little that a busy machine still gives it.
BURN_CPUS = 0.2
BURN = ("sh", "-c", "trap 'kill $!; exit 0' TERM; (while :; do :; done) & while :; do :; done")
HOLD = (
    "sh",
    "-c",
    "trap 'exit 0' TERM; dd if=/dev/zero of=/dev/shm/held bs=1M count=48; sleep 3600 & wait",
)


def samples(server: FakeServer, workspace_id: str) -> list[WorkspaceSample]:
    return [
        sample
        for beat in list(server.book.heartbeats)
        if beat.metrics is not None
        for sample in beat.metrics.workspaces or ()
        if sample.workspace_id == workspace_id
    ]


def latest(server: FakeServer, workspace_id: str) -> WorkspaceSample:
    return eventually(lambda: samples(server, workspace_id), START, "no sample")[-1]


def test_busy_containers_are_measured_from_their_files(
    server: FakeServer, launch: Launch, proxy: DockerApiProxy, engine_client: docker.DockerClient
) -> None:
    server.desire(
        images=(busybox(),),
        workspaces=(
            sleeper("burner", command=BURN, cpus=BURN_CPUS, memory_bytes=64 * MIB),
            sleeper("holder", command=HOLD, memory_bytes=128 * MIB),
        ),
    )
    launch(proxy.url)
    running(server, "w-burner")
    running(server, "w-holder")

    def burning() -> bool:
        sample = latest(server, "w-burner")
        return sample.cpu_percent is not None and 10 < sample.cpu_percent < 30

    eventually(burning, START, "the busy loop is not seen")
    holder = eventually(
        lambda: [s for s in samples(server, "w-holder") if (s.memory_bytes or 0) > 45 * MIB],
        START,
        f"the memory is not seen: {latest(server, 'w-holder')}",
    )[-1]
    assert 48 * MIB <= (holder.memory_bytes or 0) < 60 * MIB
    assert holder.memory_limit_bytes == 128 * MIB
    assert holder.processes is not None
    assert 1 <= holder.processes <= 5
    assert holder.network_rx_rate is not None
    assert holder.disk_read_rate is not None

    # At rest: beats and samples go on, and the engine is not asked for any of it.
    _settled(proxy)
    proxy.forget_calls()
    told = len(samples(server, "w-burner"))
    eventually(lambda: len(samples(server, "w-burner")) >= told + 3, START, "no more samples")
    assert [str(call) for call in proxy.calls] == []

    # A restart begins the totals anew: no rate for once, and none that is impossible.
    told = len(samples(server, "w-burner"))
    container(engine_client, "trailer-burner").restart(timeout=1)

    def measured_again() -> bool:
        after = [s.cpu_percent for s in samples(server, "w-burner")[told:]]
        return None in after and isinstance(after[-1], float) and after[-1] > 10

    eventually(measured_again, START, "the restart is not seen")
    assert all((s.cpu_percent or 0) < 40 for s in samples(server, "w-burner"))


def _settled(proxy: DockerApiProxy) -> None:
    """Until no call has been made for a second: the looks after a start have ended."""
    seen = [-1, 0]

    def unchanged() -> bool:
        seen.append(len(proxy.calls))
        return seen[-1] == seen[-2]

    eventually(unchanged, START, "the agent does not come to rest", interval=1.0)


def test_without_the_files_the_engine_is_asked_beside_the_heartbeat(
    clean_engine: PrivateEngine, engine_client: docker.DockerClient, tmp_path: Path
) -> None:
    made = engine_client.containers.run(
        "trailer-test/busybox:1",
        list(BURN),
        detach=True,
        nano_cpus=int(BURN_CPUS * 10**9),
        name="burner",
    )
    subject = Subject(workspace_id="w", container_id=str(made.id), pid=1, run="1")
    assert CgroupReader(proc=tmp_path, root=tmp_path).read(subject) is None
    stats = EngineStats(DockerRuntime({"DOCKER_HOST": clean_engine.url}))
    first = eventually(lambda: stats.latest((subject,)), START)[subject.container_id]

    def later() -> bool:
        return stats.latest((subject,))[subject.container_id].at > first.at

    eventually(later, START)
    second = stats.latest((subject,))[subject.container_id]
    assert first.cpu_seconds is not None
    assert second.cpu_seconds is not None
    assert 0.1 < (second.cpu_seconds - first.cpu_seconds) / (second.at - first.at) < 0.3
    assert second.memory_bytes
    assert second.processes == 2
