"""The samples of a heartbeat: stored with the server's time, in a fixed number of statements."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agent.protocol.metrics import GpuSample as GpuReport
from agent.protocol.metrics import HostSample as HostReport
from agent.protocol.metrics import Metrics
from agent.protocol.metrics import WorkspaceSample as WorkspaceReport
from agent.protocol.session import Heartbeat
from hosts.models import GpuSample, Host, HostSample, HostUsage
from hosts.services.sessions import next_beat
from tests.factories import api_client, make_admin, make_agent_token, make_host, make_workspace
from trailer import events
from workspaces.metrics import metrics_record
from workspaces.models import Workspace, WorkspaceSample

pytestmark = pytest.mark.django_db

HOST = HostReport(
    cpu_percent=12.345,
    memory_bytes=4 * 1024**3,
    memory_total_bytes=8 * 1024**3,
    disk_used_bytes=10,
    disk_total_bytes=20,
    disk_read_rate=1.6,
    network_rx_rate=1500.0,
    load=0.5,
    processes=100,
)


def report(workspace: Workspace, cpu: float | None = 150.0) -> WorkspaceReport:
    return WorkspaceReport(
        workspace_id=str(workspace.pk),
        cpu_percent=cpu,
        memory_bytes=64 * 1024**2,
        memory_limit_bytes=128 * 1024**2,
        processes=3,
    )


def beat(host: Host, metrics: Metrics | None, **fields: Any) -> None:
    """Over the agents' own route, as a real agent would."""
    message = Heartbeat(epoch=host.epoch, agent_version="0.1.0", metrics=metrics, **fields)
    client = api_client()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {make_agent_token(host)}")
    answer = client.post("/api/agent/v1/heartbeat", msgspec.to_builtins(message))
    assert answer.status_code == 200, answer.content


def test_a_heartbeat_stores_each_family_and_the_latest_values() -> None:
    host, now = make_host(), timezone.now()
    workspace = make_workspace(host)
    gpu = GpuReport(id="GPU-1", utilization_percent=97.0, power_watts=250.0)
    beat(host, Metrics(host=HOST, gpus=(gpu,), workspaces=(report(workspace),)))

    row = HostSample.objects.get()
    assert abs(row.at - now.timestamp()) < 30
    assert (row.resolution, row.cpu_percent, row.disk_read_rate) == (0, 12.35, 2)
    assert GpuSample.objects.get().utilization_percent == 97.0
    sample = WorkspaceSample.objects.get()
    assert (sample.workspace_id, sample.cpu_percent, sample.processes) == (workspace.pk, 150.0, 3)
    usage = HostUsage.objects.get(host=host)
    assert (usage.cpu_percent, usage.load) == (12.35, 0.5)
    assert usage.workspaces == {str(workspace.pk): [150.0, 64 * 1024**2, 128 * 1024**2]}


@pytest.mark.parametrize("skew", [timedelta(minutes=10), timedelta(minutes=-10)])
def test_a_wrong_clock_of_the_agent_moves_no_sample_and_is_shown(skew: timedelta) -> None:
    host, now = make_host(), timezone.now()
    beat(host, Metrics(host=HOST), agent_time=(now + skew).isoformat())
    assert abs(HostSample.objects.get().at - now.timestamp()) < 30
    told = api_client(make_admin()).get(f"/api/v1/hosts/{host.pk}/").json()
    assert abs(told["clock_skew_seconds"] - skew.total_seconds()) < 5
    assert told["status"] == "online"


def test_the_number_of_statements_does_not_grow_with_the_workspaces() -> None:
    host = make_host()
    workspaces = [make_workspace(host, name=f"w{n}") for n in range(120)]

    def statements(number: int, second: int) -> int:
        reports = tuple(report(workspace) for workspace in workspaces[:number])
        at = timezone.now() + timedelta(seconds=second)
        with CaptureQueriesContext(
            connection,
        ) as captured:
            metrics_record(host, Metrics(host=HOST, workspaces=reports), at)
        return len(captured)

    assert statements(1, 1) == statements(120, 2) <= 6
    assert WorkspaceSample.objects.count() == 121


def test_families_that_are_switched_off_are_not_stored() -> None:
    host = make_host(metrics_host=False, metrics_gpu=False, metrics_workspace=False)
    workspace = make_workspace(host)
    gpus = (GpuReport(id="GPU-1", utilization_percent=1.0),)
    beat(host, Metrics(host=HOST, gpus=gpus, workspaces=(report(workspace),)))
    assert not HostSample.objects.exists()
    assert not GpuSample.objects.exists()
    assert not WorkspaceSample.objects.exists()
    usage = HostUsage.objects.get(host=host)
    assert (usage.cpu_percent, usage.workspaces) == (None, {})


def test_an_agent_writes_no_sample_of_another_hosts_workspace() -> None:
    host, foreign = make_host(), make_workspace(make_host())
    nonsense = WorkspaceReport(workspace_id="'; drop table", cpu_percent=1.0)
    beat(host, Metrics(workspaces=(report(foreign), nonsense)))
    assert not WorkspaceSample.objects.exists()


def test_impossible_numbers_are_stored_as_what_is_possible() -> None:
    host = make_host()
    wild = HostReport(cpu_percent=-5.0, memory_bytes=2**70, load=float("inf"), processes=2**40)
    metrics_record(host, Metrics(host=wild), timezone.now())
    row = HostSample.objects.get()
    assert (row.cpu_percent, row.memory_bytes, row.load) == (0.0, 2**62, None)
    assert row.processes == 2**31 - 1


def test_two_samples_of_one_second_make_one_row() -> None:
    host, now = make_host(), timezone.now()
    metrics_record(host, Metrics(host=HOST), now)
    metrics_record(host, Metrics(host=HOST), now)
    assert HostSample.objects.count() == 1


def test_browsers_are_told_once_per_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(events, "publish", lambda kind, pk, **_: told.append(f"{kind}:{pk}"))
    host = make_host()
    reports = tuple(report(make_workspace(host)) for _ in range(5))
    metrics_record(host, Metrics(host=HOST, workspaces=reports), timezone.now())
    assert told == [f"usage:{host.pk}"]


def test_samples_go_with_their_host_and_workspace() -> None:
    host = make_host()
    workspace = make_workspace(host)
    gpus = (GpuReport(id="GPU-1"),)
    beat(host, Metrics(host=HOST, gpus=gpus, workspaces=(report(workspace),)))
    workspace.delete()
    assert not WorkspaceSample.objects.exists()
    host.images.all().delete()
    host.delete()
    assert not HostSample.objects.exists()
    assert not GpuSample.objects.exists()


def test_agents_that_come_together_are_spread_over_their_interval() -> None:
    now = timezone.now()
    hosts = [Host(name=f"h{n}", heartbeat_interval=15) for n in range(1000)]
    waits = [next_beat(host, now) for host in hosts]
    assert all(7.5 <= wait <= 22.5 for wait in waits)
    beats = [int((now.timestamp() + wait) % 15) for wait in waits]
    counts = [beats.count(second) for second in range(15)]
    assert max(counts) < 3 * (1000 / 15)


def test_a_host_keeps_its_place_in_the_interval() -> None:
    host, now = Host(name="h", heartbeat_interval=15), timezone.now()
    then = now + timedelta(seconds=next_beat(host, now))
    assert next_beat(host, then) == pytest.approx(15, abs=0.01)
