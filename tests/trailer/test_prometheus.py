"""`/metrics`: Prometheus can read it, staff may, and no name breaks it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import resolve
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from agent.protocol.metrics import GpuSample as GpuReport
from agent.protocol.metrics import HostSample as HostReport
from agent.protocol.metrics import Metrics
from agent.protocol.metrics import WorkspaceSample as WorkspaceReport
from hosts.models import Host
from tests.factories import (
    api_client,
    make_admin,
    make_host,
    make_silent_host,
    make_user,
    make_workspace,
)
from workspaces.metrics import metrics_record
from workspaces.tasks import mark_silent_hosts

pytestmark = pytest.mark.django_db


def read(text: str) -> dict[str, dict[str, float]]:
    """Name of the metric -> name of the host or workspace, or status -> value."""
    found: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = sample.labels.get("name") or sample.labels.get("status") or ""
            found.setdefault(sample.name, {})[key] = sample.value
    return found


def busy_host(name: str) -> Host:
    host = make_host(name)
    workspace = make_workspace(host, name=f"on-{name}"[:63])
    use = WorkspaceReport(
        workspace_id=str(workspace.pk),
        cpu_percent=150.0,
        memory_bytes=5,
        disk_read_rate=6.0,
        network_tx_rate=7.0,
        connections=2,
    )
    sample = HostReport(cpu_percent=12.5, memory_bytes=3, memory_total_bytes=8, load=0.5)
    cards = [
        {"id": "GPU-0", "name": "H100", "index": 0},
        {"id": "GPU-1", "name": "L4", "index": 1},
    ]
    Host.objects.filter(pk=host.pk).update(gpus=cards)
    gpus = (
        GpuReport(id="GPU-0", utilization_percent=80.0, memory_bytes=9, power_watts=300.5),
        GpuReport(id="GPU-1"),
    )
    now = timezone.now()
    old = Metrics(gpus=(GpuReport(id="GPU-1", utilization_percent=1.0),))
    metrics_record(host, old, now - timedelta(seconds=15))
    metrics_record(host, Metrics(host=sample, workspaces=(use,), gpus=gpus), now)
    return host


def test_a_scrape_tells_hosts_workspaces_and_builds() -> None:
    busy_host("alpha")
    silent = make_silent_host("omega")
    text = api_client(make_admin(), scope="read").get("/metrics").content.decode()
    found = read(text)
    assert found["trailer_host_up"] == {"alpha": 1, "omega": 0}
    assert found["trailer_host_last_heartbeat_age_seconds"][silent.name] > 3500
    assert found["trailer_host_cpu_percent"] == {"alpha": 12.5}
    assert found["trailer_host_memory_used_bytes"] == {"alpha": 3}
    assert found["trailer_workspaces"] == {"deployment_pending": 1}
    assert found["trailer_workspace_cpu_percent"] == {"on-alpha": 150.0}
    assert found["trailer_workspace_disk_read_bytes_per_second"] == {"on-alpha": 6}
    assert found["trailer_workspace_network_transmit_bytes_per_second"] == {"on-alpha": 7}
    assert found["trailer_workspace_connections"] == {"on-alpha": 2}
    assert "trailer_workspace_network_receive_bytes_per_second" not in found, "nobody knows"
    assert found["trailer_gpu_utilization_percent"] == {"H100": 80}, "an older sample is over"
    assert found["trailer_gpu_memory_used_bytes"] == {"H100": 9}
    assert found["trailer_gpu_power_watts"] == {"H100": 300.5}
    assert found["trailer_builds"] == {"finished": 1}
    assert found["process_cpu_seconds_total"][""] > 0


def test_only_staff_may_scrape() -> None:
    assert api_client().get("/metrics").status_code == 401
    assert api_client(make_user()).get("/metrics").status_code == 403
    browser = Client()
    assert browser.get("/metrics").status_code == 401
    browser.force_login(make_admin())
    answer = browser.get("/metrics", headers={"Accept": "application/openmetrics-text"})
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/plain; version=0.0.4")


def test_a_hostile_name_stays_one_label() -> None:
    name = 'x"} 1\ntrailer_host_up{name="fake'
    make_host(name)
    found = read(api_client(make_admin()).get("/metrics").content.decode())
    assert found["trailer_host_up"] == {name: 1}


def test_the_number_of_queries_does_not_grow_with_the_fleet() -> None:
    client = api_client(make_admin())
    busy_host("first")
    client.get("/metrics")

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert client.get("/metrics").status_code == 200
        return len(captured)

    few = queries()
    for number in range(5):
        busy_host(f"host-{number}")
    assert queries() == few


def counted(text: str, name: str, **labels: str) -> float:
    return sum(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


def test_requests_are_counted_by_route_and_jobs_by_outcome() -> None:
    client = api_client(make_admin())
    named = resolve(f"/api/v1/hosts/{make_host().pk}/").route
    route = {"route": named, "method": "GET", "status": "200"}
    job = {"job": "workspaces.mark_silent_hosts", "outcome": "done"}
    before = client.get("/metrics").content.decode()
    for _ in range(2):
        client.get(f"/api/v1/hosts/{make_host().pk}/")
    mark_silent_hosts()
    after = client.get("/metrics").content.decode()
    for name, labels in (("trailer_http_requests_total", route), ("trailer_jobs_total", job)):
        rise = counted(after, name, **labels) - counted(before, name, **labels)
        assert rise == (2 if labels is route else 1), name
    assert counted(after, "trailer_http_request_seconds_count", method="GET") > 0
